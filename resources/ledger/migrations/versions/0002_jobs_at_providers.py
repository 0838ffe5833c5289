"""Jobs at real providers: canaries, intents, reservations, alerts, online groups, renderings.

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what a job at a provider needs; rows of the first release stay as they are."""
    op.create_table(
        "alerts",
        sa.Column("alert_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("subject", sa.String(length=96), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("first_at", sa.String(length=27), nullable=False),
        sa.Column("last_at", sa.String(length=27), nullable=False),
        sa.Column("times", sa.Integer(), nullable=False),
        sa.Column("cleared_at", sa.String(length=27), nullable=True),
        sa.PrimaryKeyConstraint("alert_no", name=op.f("pk_alerts")),
    )
    op.create_index("ix_alerts_kind_subject", "alerts", ["kind", "subject"], unique=False)
    op.create_table(
        "intents",
        sa.Column(
            "intent_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("intent_id", sa.String(length=64), nullable=False),
        sa.Column("machine", sa.String(length=16), nullable=False),
        sa.Column(
            "subject_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("account_fingerprint", sa.String(length=64), nullable=False),
        sa.Column("recorded_at", sa.String(length=27), nullable=False),
        sa.Column("outcome", sa.String(length=16), nullable=False),
        sa.Column("provider_job_id", sa.String(length=256), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("settled_at", sa.String(length=27), nullable=True),
        sa.PrimaryKeyConstraint("intent_no", name=op.f("pk_intents")),
        sa.UniqueConstraint("intent_id", name=op.f("uq_intents_intent_id")),
    )
    op.create_index("ix_intents_subject", "intents", ["machine", "subject_no"], unique=False)
    op.create_table(
        "online_groups",
        sa.Column("batch_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("group_no", sa.Integer(), nullable=False),
        sa.Column("first_index", sa.Integer(), nullable=False),
        sa.Column("records", sa.Integer(), nullable=False),
        sa.Column("starts", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.String(length=27), nullable=False),
        sa.Column("kept_at", sa.String(length=27), nullable=True),
        sa.Column("finished_at", sa.String(length=27), nullable=True),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("possibly_paid", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("batch_no", "group_no", name=op.f("pk_online_groups")),
    )
    op.create_table(
        "renderings",
        sa.Column(
            "attempt_no",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("pages", sa.Integer(), nullable=False),
        sa.Column("pages_sent", sa.Integer(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("redactions", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("attempt_no", name=op.f("pk_renderings")),
    )
    op.create_table(
        "reservations",
        sa.Column("machine", sa.String(length=16), nullable=False),
        sa.Column(
            "subject_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("pool", sa.String(length=224), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("reserved_at", sa.String(length=27), nullable=False),
        sa.Column("released_at", sa.String(length=27), nullable=True),
        sa.PrimaryKeyConstraint("machine", "subject_no", name=op.f("pk_reservations")),
    )
    op.create_index(op.f("ix_reservations_pool"), "reservations", ["pool"], unique=False)
    op.create_table(
        "canaries",
        sa.Column(
            "canary_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("canary_id", sa.String(length=96), nullable=False),
        sa.Column("batch_key", sa.String(length=12), nullable=False),
        sa.Column("combination", sa.String(length=64), nullable=False),
        sa.Column(
            "version_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("provider", sa.String(length=32), nullable=False),
        sa.Column("mode", sa.String(length=16), nullable=False),
        sa.Column("sdk_version", sa.String(length=64), nullable=False),
        sa.Column("account_fingerprint", sa.String(length=64), nullable=True),
        sa.Column("model", sa.String(length=128), nullable=False),
        sa.Column("request_artifact", sa.String(length=64), nullable=False),
        sa.Column("request_bytes", sa.BigInteger(), nullable=False),
        sa.Column("provider_job_id", sa.String(length=256), nullable=True),
        sa.Column("intent_id", sa.String(length=64), nullable=True),
        sa.Column("state", sa.String(length=32), nullable=False),
        sa.Column("provider_outcome", sa.String(length=32), nullable=True),
        sa.Column("raw_status", sa.String(length=128), nullable=True),
        sa.Column("submitted_at", sa.String(length=27), nullable=True),
        sa.Column("provider_deadline_at", sa.String(length=27), nullable=True),
        sa.Column("internal_deadline_at", sa.String(length=27), nullable=True),
        sa.Column("next_poll_at", sa.String(length=27), nullable=True),
        sa.Column("polls", sa.Integer(), nullable=False),
        sa.Column("last_counts", sa.Text(), nullable=True),
        sa.Column("expected_records", sa.BigInteger(), nullable=False),
        sa.Column("lease_owner", sa.String(length=128), nullable=True),
        sa.Column("fencing_token", sa.BigInteger(), nullable=True),
        sa.Column("prepared_at", sa.String(length=27), nullable=False),
        sa.Column("endpoint", sa.String(length=64), nullable=True),
        sa.Column("input_ref", sa.Text(), nullable=True),
        sa.Column("input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("submissions", sa.Integer(), nullable=True),
        sa.Column("remote_files", sa.Text(), nullable=True),
        sa.Column("remote_deleted_at", sa.String(length=27), nullable=True),
        sa.Column("error_class", sa.String(length=32), nullable=True),
        sa.Column("error_code", sa.String(length=128), nullable=True),
        sa.Column("poll_failures", sa.Integer(), nullable=True),
        sa.Column("changed_at", sa.String(length=27), nullable=True),
        sa.Column("cancel_requested_at", sa.String(length=27), nullable=True),
        sa.Column("results", sa.Text(), nullable=True),
        sa.Column("findings", sa.Text(), nullable=True),
        sa.Column("judged_at", sa.String(length=27), nullable=True),
        sa.Column("expires_at", sa.String(length=27), nullable=True),
        sa.ForeignKeyConstraint(
            ["version_no"], ["processing_versions.version_no"], name=op.f("fk_canaries_version_no")
        ),
        sa.PrimaryKeyConstraint("canary_no", name=op.f("pk_canaries")),
        sa.UniqueConstraint("batch_key", name=op.f("uq_canaries_batch_key")),
        sa.UniqueConstraint("canary_id", name=op.f("uq_canaries_canary_id")),
    )
    op.create_index(op.f("ix_canaries_combination"), "canaries", ["combination"], unique=False)
    op.add_column("batches", sa.Column("endpoint", sa.String(length=64), nullable=True))
    op.add_column("batches", sa.Column("input_ref", sa.Text(), nullable=True))
    op.add_column("batches", sa.Column("input_tokens", sa.BigInteger(), nullable=True))
    op.add_column("batches", sa.Column("submissions", sa.Integer(), nullable=True))
    op.add_column("batches", sa.Column("remote_files", sa.Text(), nullable=True))
    op.add_column("batches", sa.Column("remote_deleted_at", sa.String(length=27), nullable=True))
    op.add_column("batches", sa.Column("error_class", sa.String(length=32), nullable=True))
    op.add_column("batches", sa.Column("error_code", sa.String(length=128), nullable=True))
    op.add_column("batches", sa.Column("poll_failures", sa.Integer(), nullable=True))
    op.add_column("batches", sa.Column("changed_at", sa.String(length=27), nullable=True))
    op.add_column("batches", sa.Column("cancel_requested_at", sa.String(length=27), nullable=True))
    op.add_column("dispositions", sa.Column("cached_tokens", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Refused: a ledger is never taken back to an older schema; restore a backup instead."""
    raise RuntimeError("a ledger cannot be downgraded; restore a backup of the older release")
