"""Sources, removal and replay: scans that resume, approvals, events, erasures, prunes, replays.

Revision ID: 0005
Revises: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

FIRST_WORKLOAD = "equipment_manuals"
"""The one workload that there was before this release: every source is its own."""


def _key() -> sa.types.TypeEngine[int]:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add what sources, removal and replay keep."""
    op.add_column(
        "sources",
        sa.Column("workload", sa.String(length=64), nullable=False, server_default=FIRST_WORKLOAD),
    )
    op.add_column("sources", sa.Column("fingerprint", sa.Text(), nullable=True))
    op.add_column("source_entries", sa.Column("mark", sa.Text(), nullable=True))
    op.add_column("manifests", sa.Column("replay_no", _key(), nullable=True))
    op.create_table(
        "scan_reads",
        sa.Column("source_no", _key(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("mtime_ns", sa.BigInteger(), nullable=False),
        sa.Column("device", sa.String(length=24), nullable=False),
        sa.Column("inode", sa.String(length=24), nullable=False),
        sa.Column("mark", sa.Text(), nullable=True),
        sa.Column("checksum", sa.String(length=64), nullable=True),
        sa.Column("scanned_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("excluded", sa.String(length=32), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("source_no", "document_id", name=op.f("pk_scan_reads")),
    )
    _create_decisions_about_documents()
    _create_prunes()
    _create_replays()


def _create_decisions_about_documents() -> None:
    op.create_table(
        "approvals",
        sa.Column("approval_no", _key(), nullable=False),
        sa.Column("source_version_no", _key(), nullable=False),
        sa.Column("decision", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("actor", sa.String(length=128), nullable=False),
        sa.Column("decided_at", sa.String(length=27), nullable=False),
        sa.PrimaryKeyConstraint("approval_no", name=op.f("pk_approvals")),
    )
    op.create_index(op.f("ix_approvals_source_version_no"), "approvals", ["source_version_no"])
    op.create_table(
        "source_events",
        sa.Column("event_no", _key(), nullable=False),
        sa.Column("source_no", _key(), nullable=False),
        sa.Column("event_key", sa.String(length=128), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=True),
        sa.Column("times", sa.Integer(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("first_at", sa.String(length=27), nullable=False),
        sa.Column("last_at", sa.String(length=27), nullable=False),
        sa.Column("problem", sa.String(length=128), nullable=True),
        sa.Column("owner", sa.String(length=128), nullable=True),
        sa.Column("closed_at", sa.String(length=27), nullable=True),
        sa.Column("closing_reason", sa.Text(), nullable=True),
        sa.Column("closed_by", sa.String(length=128), nullable=True),
        sa.ForeignKeyConstraint(
            ["source_no"], ["sources.source_no"], name=op.f("fk_source_events_source_no_sources")
        ),
        sa.PrimaryKeyConstraint("event_no", name=op.f("pk_source_events")),
        sa.UniqueConstraint(
            "source_no", "event_key", name=op.f("uq_source_events_source_no_event_key")
        ),
    )
    op.create_table(
        "erasures",
        sa.Column("erasure_no", _key(), nullable=False),
        sa.Column("document_no", _key(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("actor", sa.String(length=128), nullable=False),
        sa.Column("begun_at", sa.String(length=27), nullable=False),
        sa.Column("finished_at", sa.String(length=27), nullable=True),
        sa.Column("purged", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["document_no"],
            ["documents.document_no"],
            name=op.f("fk_erasures_document_no_documents"),
        ),
        sa.PrimaryKeyConstraint("erasure_no", name=op.f("pk_erasures")),
    )
    op.create_index(op.f("ix_erasures_document_no"), "erasures", ["document_no"])
    op.create_table(
        "redactions",
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("erasure_no", _key(), nullable=False),
        sa.Column("present_digest", sa.String(length=64), nullable=False),
        sa.Column("redacted_at", sa.String(length=27), nullable=False),
        sa.PrimaryKeyConstraint("digest", "kind", "erasure_no", name=op.f("pk_redactions")),
    )


def _create_prunes() -> None:
    op.create_table(
        "prunes",
        sa.Column("prune_no", _key(), nullable=False),
        sa.Column("policy", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("actor", sa.String(length=128), nullable=False),
        sa.Column("pruned_at", sa.String(length=27), nullable=False),
        sa.Column("removed", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("prune_no", name=op.f("pk_prunes")),
    )
    op.create_table(
        "pruned_artifacts",
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("prune_no", _key(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", "kind", "prune_no", name=op.f("pk_pruned_artifacts")),
    )


def _create_replays() -> None:
    op.create_table(
        "replays",
        sa.Column("replay_no", _key(), nullable=False),
        sa.Column("replay_id", sa.String(length=96), nullable=False),
        sa.Column("from_version_no", _key(), nullable=False),
        sa.Column("to_version_no", _key(), nullable=False),
        sa.Column("reason", sa.String(length=32), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("actor", sa.String(length=128), nullable=False),
        sa.Column("expression", sa.Text(), nullable=True),
        sa.Column("listed", sa.BigInteger(), nullable=True),
        sa.Column("selected", sa.BigInteger(), nullable=False),
        sa.Column("selection_digest", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.String(length=27), nullable=False),
        sa.ForeignKeyConstraint(
            ["from_version_no"],
            ["processing_versions.version_no"],
            name=op.f("fk_replays_from_version_no_processing_versions"),
        ),
        sa.ForeignKeyConstraint(
            ["to_version_no"],
            ["processing_versions.version_no"],
            name=op.f("fk_replays_to_version_no_processing_versions"),
        ),
        sa.PrimaryKeyConstraint("replay_no", name=op.f("pk_replays")),
        sa.UniqueConstraint("replay_id", name=op.f("uq_replays_replay_id")),
    )
    op.create_table(
        "replay_members",
        sa.Column("replay_no", _key(), nullable=False),
        sa.Column("document_no", _key(), nullable=False),
        sa.Column("record_no", _key(), nullable=False),
        sa.Column("slice", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("replay_no", "document_no", name=op.f("pk_replay_members")),
    )


def downgrade() -> None:
    """Refused: a ledger is never taken back to an older schema; restore a backup instead."""
    raise RuntimeError("a ledger cannot be downgraded; restore a backup of the older release")
