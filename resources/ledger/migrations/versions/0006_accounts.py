"""Accounts: reports as baselines, their closings, prices of jobs, audits, backups, trace marks.

Revision ID: 0006
Revises: 0005
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def _key() -> sa.types.TypeEngine[int]:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add what accounts keep."""
    for column in (
        sa.Column("batch_no", _key(), nullable=True),
        sa.Column("page", sa.String(length=64), nullable=True),
        sa.Column("outcomes", sa.String(length=64), nullable=True),
        sa.Column("merkle_root", sa.String(length=64), nullable=True),
        sa.Column("leaves", sa.BigInteger(), nullable=True),
        sa.Column("baseline_no", _key(), nullable=True),
    ):
        op.add_column("reports", column)
    op.create_table(
        "report_closings",
        sa.Column("report_no", _key(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("closed_by", sa.String(length=128), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("closed_at", sa.String(length=27), nullable=False),
        sa.PrimaryKeyConstraint("report_no", name=op.f("pk_report_closings")),
    )
    _create_costs()
    _create_evidence()


def _create_costs() -> None:
    op.create_table(
        "job_prices",
        sa.Column("machine", sa.String(length=16), nullable=False),
        sa.Column("subject_no", _key(), nullable=False),
        sa.Column("provider", sa.String(length=32), nullable=False),
        sa.Column("model", sa.String(length=128), nullable=False),
        sa.Column("mode", sa.String(length=16), nullable=False),
        sa.Column("priced_at", sa.String(length=27), nullable=False),
        sa.Column("basis", sa.String(length=64), nullable=False),
        sa.Column("package", sa.String(length=64), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("read_usd", sa.Text(), nullable=True),
        sa.Column("cached_usd", sa.Text(), nullable=True),
        sa.Column("written_usd", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("machine", "subject_no", name=op.f("pk_job_prices")),
    )
    op.create_table(
        "canary_usage",
        sa.Column("canary_no", _key(), autoincrement=False, nullable=False),
        sa.Column("lines", sa.BigInteger(), nullable=False),
        sa.Column("unknown", sa.BigInteger(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cached_tokens", sa.BigInteger(), nullable=False),
        sa.Column("longest_input", sa.BigInteger(), nullable=False),
        sa.Column("recorded_at", sa.String(length=27), nullable=False),
        sa.PrimaryKeyConstraint("canary_no", name=op.f("pk_canary_usage")),
    )


def _create_evidence() -> None:
    op.create_table(
        "audits",
        sa.Column("audit_no", _key(), nullable=False),
        sa.Column("version_no", _key(), nullable=True),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("checked", sa.BigInteger(), nullable=False),
        sa.Column("findings", sa.BigInteger(), nullable=False),
        sa.Column("journal_digest", sa.String(length=64), nullable=False),
        sa.Column("actor", sa.String(length=128), nullable=False),
        sa.Column("made_at", sa.String(length=27), nullable=False),
        sa.PrimaryKeyConstraint("audit_no", name=op.f("pk_audits")),
    )
    op.create_table(
        "backups",
        sa.Column("backup_no", _key(), nullable=False),
        sa.Column("backup_id", sa.String(length=96), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("ledger_rows", sa.BigInteger(), nullable=False),
        sa.Column("artifacts", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(length=128), nullable=False),
        sa.Column("made_at", sa.String(length=27), nullable=False),
        sa.PrimaryKeyConstraint("backup_no", name=op.f("pk_backups")),
        sa.UniqueConstraint("backup_id", name=op.f("uq_backups_backup_id")),
    )
    op.create_table(
        "trace_marks",
        sa.Column("exporter", sa.String(length=16), nullable=False),
        sa.Column("version_no", _key(), nullable=False),
        sa.Column("move_no", _key(), nullable=False),
        sa.Column("exported_at", sa.String(length=27), nullable=False),
        sa.PrimaryKeyConstraint("exporter", "version_no", name=op.f("pk_trace_marks")),
    )
