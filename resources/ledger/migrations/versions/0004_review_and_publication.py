"""Review and publication: repairs, reviews, quality samples, archive changes, outlets.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def _key() -> sa.types.TypeEngine[int]:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add what review and publication keep; records that wait get the review that they wait for."""
    for table in ("batches", "late_answers"):
        for column in ("places_artifact", "catalogue_digest"):
            op.add_column(table, sa.Column(column, sa.String(length=64), nullable=True))
    for column in ("change_no", "closed_by"):
        op.add_column("archive_entries", sa.Column(column, _key(), nullable=True))
    op.create_table(
        "repairs",
        sa.Column("attempt_no", _key(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("rule", sa.String(length=32), nullable=False),
        sa.Column("rule_version", sa.Integer(), nullable=False),
        sa.Column("before_digest", sa.String(length=64), nullable=False),
        sa.Column("after_digest", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("attempt_no", "ordinal", name=op.f("pk_repairs")),
    )
    _create_reviews()
    op.create_table(
        "archive_changes",
        sa.Column("change_no", _key(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("version_no", _key(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("actor", sa.String(length=128), nullable=False),
        sa.Column("changed_at", sa.String(length=27), nullable=False),
        sa.Column("shown", sa.BigInteger(), nullable=False),
        sa.Column("hidden", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("change_no", name=op.f("pk_archive_changes")),
    )
    op.create_table(
        "outlet_deliveries",
        sa.Column("outlet", sa.String(length=32), nullable=False),
        sa.Column("entry_no", _key(), nullable=False),
        sa.Column("effect", sa.String(length=8), nullable=False),
        sa.Column("document_no", _key(), nullable=False),
        sa.Column("idempotency_key", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("queued_at", sa.String(length=27), nullable=False),
        sa.Column("next_try_at", sa.String(length=27), nullable=True),
        sa.Column("ended_at", sa.String(length=27), nullable=True),
        sa.Column("status_code", sa.Integer(), nullable=True),
        sa.Column("problem", sa.String(length=128), nullable=True),
        sa.PrimaryKeyConstraint("entry_no", "outlet", "effect", name=op.f("pk_outlet_deliveries")),
    )
    _open_what_waits()


def _create_reviews() -> None:
    op.create_table(
        "reviews",
        sa.Column("review_no", _key(), autoincrement=False, nullable=False),
        sa.Column("record_no", _key(), nullable=False),
        sa.Column("attempt_no", _key(), nullable=False),
        sa.Column("version_no", _key(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("sample_no", _key(), nullable=False),
        sa.Column("slice", sa.String(length=96), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("opened_at", sa.String(length=27), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("assigned_to", sa.String(length=128), nullable=True),
        sa.Column("taken_at", sa.String(length=27), nullable=True),
        sa.Column("taken_by", sa.String(length=128), nullable=True),
        sa.Column("decision", sa.String(length=16), nullable=True),
        sa.Column("decided_at", sa.String(length=27), nullable=True),
        sa.Column("reviewer", sa.String(length=128), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("values_digest", sa.String(length=64), nullable=False),
        sa.Column("corrected_digest", sa.String(length=64), nullable=True),
        sa.Column("corrected_content", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("review_no", name=op.f("pk_reviews")),
        sa.UniqueConstraint(
            "attempt_no", "kind", "sample_no", name=op.f("uq_reviews_attempt_no_kind_sample_no")
        ),
    )
    op.create_index(op.f("ix_reviews_record_no"), "reviews", ["record_no"])
    op.create_index(op.f("ix_reviews_version_no"), "reviews", ["version_no"])
    op.create_table(
        "review_acts",
        sa.Column("review_no", _key(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("act", sa.String(length=16), nullable=False),
        sa.Column("who", sa.String(length=128), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("acted_at", sa.String(length=27), nullable=False),
        sa.PrimaryKeyConstraint("review_no", "revision", name=op.f("pk_review_acts")),
    )
    op.create_table(
        "quality_samples",
        sa.Column("sample_no", _key(), nullable=False),
        sa.Column("version_no", _key(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("percent", sa.Text(), nullable=False),
        sa.Column("least", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("actor", sa.String(length=128), nullable=False),
        sa.Column("drawn_at", sa.String(length=27), nullable=False),
        sa.PrimaryKeyConstraint("sample_no", name=op.f("pk_quality_samples")),
    )
    op.create_index(op.f("ix_quality_samples_version_no"), "quality_samples", ["version_no"])
    op.create_table(
        "quality_sample_slices",
        sa.Column("sample_no", _key(), nullable=False),
        sa.Column("slice", sa.String(length=96), nullable=False),
        sa.Column("population", sa.BigInteger(), nullable=False),
        sa.Column("drawn", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("sample_no", "slice", name=op.f("pk_quality_sample_slices")),
    )


def _open_what_waits() -> None:
    """Records that wait for a reviewer since an earlier release can be reviewed."""
    op.execute(
        "INSERT INTO reviews (review_no, record_no, attempt_no, version_no, kind, sample_no, "
        "slice, priority, opened_at, revision, values_digest) "
        "SELECT ROW_NUMBER() OVER (ORDER BY a.attempt_no), a.record_no, a.attempt_no, "
        "b.version_no, 'findings', 0, '', 0, COALESCE((SELECT MAX(m.moved_at) "
        "FROM move_members k JOIN moves m ON m.move_no = k.move_no "
        "WHERE k.record_no = a.record_no AND m.to_state = 'awaiting_review'), b.prepared_at), "
        "0, j.values_digest "
        "FROM record_state s JOIN attempts a ON a.record_no = s.record_no "
        "JOIN judgements j ON j.attempt_no = a.attempt_no "
        "JOIN batches b ON b.batch_no = a.batch_no "
        "WHERE s.state = 'awaiting_review' AND NOT EXISTS (SELECT 1 FROM attempts n "
        "JOIN judgements o ON o.attempt_no = n.attempt_no "
        "WHERE n.record_no = a.record_no AND n.attempt_no > a.attempt_no)"
    )


def downgrade() -> None:
    """Refused: a ledger is never taken back to an older schema; restore a backup instead."""
    raise RuntimeError("a ledger cannot be downgraded; restore a backup of the older release")
