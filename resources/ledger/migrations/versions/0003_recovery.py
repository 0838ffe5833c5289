"""Recovery: retry decisions, dead letters, late results, refused commits, told alerts.

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def _key() -> sa.types.TypeEngine[int]:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add what recovery keeps; rows of earlier releases stay as they are."""
    op.create_table(
        "alert_deliveries",
        sa.Column("alert_no", _key(), nullable=False),
        sa.Column("channel", sa.String(length=32), nullable=False),
        sa.Column("told_at", sa.String(length=27), nullable=True),
        sa.Column("told_times", sa.Integer(), nullable=False),
        sa.Column("told_cleared_at", sa.String(length=27), nullable=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("next_try_at", sa.String(length=27), nullable=True),
        sa.Column("problem", sa.String(length=128), nullable=True),
        sa.PrimaryKeyConstraint("alert_no", "channel", name=op.f("pk_alert_deliveries")),
    )
    op.add_column("intents", sa.Column("called_at", sa.String(length=27), nullable=True))
    op.add_column("attempts", sa.Column("parent_attempt_no", _key(), nullable=True))
    op.create_table(
        "retry_decisions",
        sa.Column("attempt_no", _key(), autoincrement=False, nullable=False),
        sa.Column("record_no", _key(), nullable=False),
        sa.Column("decision", sa.String(length=16), nullable=False),
        sa.Column("recovery_path", sa.String(length=32), nullable=False),
        sa.Column("counted", sa.Integer(), nullable=False),
        sa.Column("failure_class", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("not_before", sa.String(length=27), nullable=True),
        sa.Column("decided_at", sa.String(length=27), nullable=False),
        sa.PrimaryKeyConstraint("attempt_no", name=op.f("pk_retry_decisions")),
    )
    op.create_table(
        "dead_letters",
        sa.Column("attempt_no", _key(), autoincrement=False, nullable=False),
        sa.Column("record_no", _key(), nullable=False),
        sa.Column("version_no", _key(), nullable=False),
        sa.Column("failure_class", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("owner", sa.String(length=128), nullable=False),
        sa.Column("opened_at", sa.String(length=27), nullable=False),
        sa.Column("closed_at", sa.String(length=27), nullable=True),
        sa.Column("closing", sa.String(length=16), nullable=True),
        sa.Column("closing_reason", sa.Text(), nullable=True),
        sa.Column("closed_by", sa.String(length=128), nullable=True),
        sa.PrimaryKeyConstraint("attempt_no", name=op.f("pk_dead_letters")),
    )
    op.create_index(op.f("ix_dead_letters_record_no"), "dead_letters", ["record_no"])
    op.create_index(op.f("ix_dead_letters_version_no"), "dead_letters", ["version_no"])
    op.create_table(
        "late_results",
        sa.Column("result_file_no", _key(), nullable=False),
        sa.Column("line", sa.Integer(), nullable=False),
        sa.Column("batch_no", _key(), nullable=False),
        sa.Column("attempt_no", _key(), nullable=False),
        sa.Column("record_no", _key(), nullable=False),
        sa.Column("disposition", sa.String(length=20), nullable=False),
        sa.Column("failure_class", sa.String(length=32), nullable=True),
        sa.Column("diagnostics", sa.Text(), nullable=False),
        sa.Column("used", sa.Integer(), nullable=False),
        sa.Column("model_revision", sa.String(length=128), nullable=True),
        sa.Column("input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("output_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cached_tokens", sa.BigInteger(), nullable=True),
        sa.Column("recorded_at", sa.String(length=27), nullable=False),
        sa.PrimaryKeyConstraint("result_file_no", "line", name=op.f("pk_late_results")),
    )
    op.create_index(op.f("ix_late_results_attempt_no"), "late_results", ["attempt_no"])
    op.create_table(
        "late_answers",
        sa.Column("late_no", _key(), nullable=False),
        sa.Column("batch_no", _key(), nullable=False),
        sa.Column("records", sa.BigInteger(), nullable=False),
        sa.Column("collected_artifact", sa.String(length=64), nullable=False),
        sa.Column("staging_artifact", sa.String(length=64), nullable=True),
        sa.Column("collected_at", sa.String(length=27), nullable=False),
        sa.ForeignKeyConstraint(
            ["batch_no"], ["batches.batch_no"], name=op.f("fk_late_answers_batch_no")
        ),
        sa.PrimaryKeyConstraint("late_no", name=op.f("pk_late_answers")),
    )
    op.create_table(
        "refused_commits",
        sa.Column("refusal_no", _key(), nullable=False),
        sa.Column("lease", sa.String(length=96), nullable=False),
        sa.Column("owner", sa.String(length=128), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("found_owner", sa.String(length=128), nullable=True),
        sa.Column("found_token", sa.BigInteger(), nullable=True),
        sa.Column("why", sa.String(length=16), nullable=False),
        sa.Column("refused_at", sa.String(length=27), nullable=False),
        sa.PrimaryKeyConstraint("refusal_no", name=op.f("pk_refused_commits")),
    )
    _decide_what_waits()


def _decide_what_waits() -> None:
    """Records that failed under an earlier release get the rows that recovery looks for."""
    op.execute(
        "INSERT INTO retry_decisions (attempt_no, record_no, decision, recovery_path, counted, "
        "failure_class, reason, decided_at) "
        "SELECT a.attempt_no, a.record_no, 'retry', 'repeat', "
        "CASE WHEN p.disposition IN ('expired', 'cancelled') THEN 0 ELSE 1 END, "
        "COALESCE(p.failure_class, 'missing_result'), 'it waited before decisions were kept', "
        "b.prepared_at FROM record_state s JOIN attempts a ON a.record_no = s.record_no "
        "JOIN batches b ON b.batch_no = a.batch_no "
        "LEFT JOIN dispositions p ON p.attempt_no = a.attempt_no WHERE s.state = 'retry_wait'"
    )
    op.execute(
        "INSERT INTO dead_letters (attempt_no, record_no, version_no, failure_class, reason, "
        "owner, opened_at) "
        "SELECT a.attempt_no, a.record_no, b.version_no, COALESCE(p.failure_class, 'unknown'), "
        "COALESCE(p.diagnostics, 'it was given up before reasons were kept'), 'operators', "
        "COALESCE((SELECT MAX(m.moved_at) FROM move_members k JOIN moves m "
        "ON m.move_no = k.move_no WHERE k.record_no = a.record_no "
        "AND m.to_state = 'dead_letter'), b.prepared_at) "
        "FROM record_state s JOIN attempts a ON a.record_no = s.record_no "
        "JOIN batches b ON b.batch_no = a.batch_no "
        "LEFT JOIN dispositions p ON p.attempt_no = a.attempt_no WHERE s.state = 'dead_letter'"
    )


def downgrade() -> None:
    """Refused: a ledger is never taken back to an older schema; restore a backup instead."""
    raise RuntimeError("a ledger cannot be downgraded; restore a backup of the older release")
