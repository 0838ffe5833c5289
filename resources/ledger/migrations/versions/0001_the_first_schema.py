"""The first schema: every table of the first release, and the full-text object.

Revision ID: 0001
Revises: nothing
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make every table of the first release."""
    op.create_table(
        "accesses",
        sa.Column(
            "access_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("who", sa.String(length=128), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("opened_at", sa.String(length=27), nullable=False),
        sa.PrimaryKeyConstraint("access_no", name=op.f("pk_accesses")),
    )
    op.create_table(
        "archive_entries",
        sa.Column(
            "entry_no",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column(
            "document_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column(
            "record_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column(
            "version_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("archive_version", sa.Integer(), nullable=False),
        sa.Column("promotion", sa.Integer(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("content_digest", sa.String(length=64), nullable=False),
        sa.Column("thumbnail", sa.String(length=64), nullable=False),
        sa.Column("valid_from", sa.String(length=27), nullable=False),
        sa.Column("valid_to", sa.String(length=27), nullable=True),
        sa.PrimaryKeyConstraint("entry_no", name=op.f("pk_archive_entries")),
        sa.UniqueConstraint(
            "document_no",
            "archive_version",
            name=op.f("uq_archive_entries_document_no_archive_version"),
        ),
    )
    op.create_table(
        "archive_heads",
        sa.Column(
            "document_no",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("entry_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.PrimaryKeyConstraint("document_no", name=op.f("pk_archive_heads")),
        postgresql_with={"fillfactor": 50},
    )
    op.create_table(
        "attempts",
        sa.Column(
            "attempt_no",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("batch_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column(
            "record_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("recovery_path", sa.String(length=32), nullable=False),
        sa.Column("request_digest", sa.String(length=64), nullable=False),
        sa.Column("request_offset", sa.BigInteger(), nullable=False),
        sa.Column("request_length", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("attempt_no", name=op.f("pk_attempts")),
    )
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_attempts_record_no"), ["record_no"], unique=False)

    op.create_table(
        "deliveries",
        sa.Column(
            "record_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("operation", sa.String(length=32), nullable=False),
        sa.Column("request_digest", sa.String(length=64), nullable=False),
        sa.Column("accepted_digest", sa.String(length=64), nullable=False),
        sa.Column("promotion", sa.Integer(), nullable=False),
        sa.Column("disposition", sa.String(length=16), nullable=False),
        sa.Column("entry_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("delivered_at", sa.String(length=27), nullable=False),
        sa.PrimaryKeyConstraint(
            "record_no",
            "operation",
            "request_digest",
            "accepted_digest",
            "promotion",
            name=op.f("pk_deliveries"),
        ),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "dispositions",
        sa.Column(
            "attempt_no",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("disposition", sa.String(length=20), nullable=False),
        sa.Column("failure_class", sa.String(length=32), nullable=True),
        sa.Column("diagnostics", sa.Text(), nullable=False),
        sa.Column(
            "result_file_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True
        ),
        sa.Column("line", sa.Integer(), nullable=True),
        sa.Column("model_revision", sa.String(length=128), nullable=True),
        sa.Column("input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("output_tokens", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("attempt_no", name=op.f("pk_dispositions")),
    )
    op.create_table(
        "findings",
        sa.Column(
            "finding_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column(
            "record_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column(
            "attempt_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("rule", sa.String(length=64), nullable=False),
        sa.Column("rule_version", sa.Integer(), nullable=False),
        sa.Column("severity", sa.String(length=16), nullable=False),
        sa.Column("field", sa.String(length=64), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("finding_no", name=op.f("pk_findings")),
    )
    with op.batch_alter_table("findings", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_findings_record_no"), ["record_no"], unique=False)

    op.create_table(
        "judgements",
        sa.Column(
            "attempt_no",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column(
            "record_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("outcome", sa.String(length=20), nullable=False),
        sa.Column("values_digest", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("attempt_no", name=op.f("pk_judgements")),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.String(length=96), nullable=False),
        sa.Column("owner", sa.String(length=128), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("acquired_at", sa.String(length=27), nullable=False),
        sa.Column("expires_at", sa.String(length=27), nullable=False),
        sa.Column("committed_token", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
        postgresql_with={"fillfactor": 50},
    )
    op.create_table(
        "ledger_info",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_ledger_info")),
    )
    op.create_table(
        "move_members",
        sa.Column("move_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column(
            "record_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.PrimaryKeyConstraint("record_no", "move_no", name=op.f("pk_move_members")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "moves",
        sa.Column("move_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("chain", sa.String(length=64), nullable=False),
        sa.Column("machine", sa.String(length=16), nullable=False),
        sa.Column(
            "subject_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True
        ),
        sa.Column("from_state", sa.String(length=32), nullable=False),
        sa.Column("to_state", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("actor", sa.String(length=128), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("moved_at", sa.String(length=27), nullable=False),
        sa.Column("members", sa.BigInteger(), nullable=False),
        sa.Column("members_digest", sa.String(length=64), nullable=False),
        sa.Column("previous_digest", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("move_no", name=op.f("pk_moves")),
        sa.UniqueConstraint(
            "chain", "previous_digest", name=op.f("uq_moves_chain_previous_digest")
        ),
        sa.UniqueConstraint("digest", name=op.f("uq_moves_digest")),
    )
    with op.batch_alter_table("moves", schema=None) as batch_op:
        batch_op.create_index("ix_moves_chain_move_no", ["chain", "move_no"], unique=False)

    op.create_table(
        "parses",
        sa.Column("checksum", sa.String(length=64), nullable=False),
        sa.Column("parser_key", sa.String(length=96), nullable=False),
        sa.Column("excluded", sa.String(length=32), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("media_type", sa.String(length=128), nullable=True),
        sa.Column("page_count", sa.Integer(), nullable=True),
        sa.Column("language", sa.String(length=8), nullable=True),
        sa.Column("languages", sa.Text(), nullable=False),
        sa.Column("partial", sa.Integer(), nullable=False),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("text_pack", sa.String(length=64), nullable=True),
        sa.Column("thumbnail", sa.String(length=64), nullable=True),
        sa.Column("wall_ms", sa.Integer(), nullable=False),
        sa.Column("cpu_ms", sa.Integer(), nullable=False),
        sa.Column("peak_rss_bytes", sa.BigInteger(), nullable=False),
        sa.Column("cacheable", sa.Integer(), nullable=False),
        sa.Column("parsed_at", sa.String(length=27), nullable=False),
        sa.PrimaryKeyConstraint("checksum", "parser_key", name=op.f("pk_parses")),
    )
    op.create_table(
        "processing_versions",
        sa.Column(
            "version_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("key", sa.String(length=63), nullable=False),
        sa.Column("workload", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("state_reason", sa.Text(), nullable=False),
        sa.Column("frozen_at", sa.String(length=27), nullable=False),
        sa.PrimaryKeyConstraint("version_no", name=op.f("pk_processing_versions")),
        sa.UniqueConstraint("key", name=op.f("uq_processing_versions_key")),
    )
    op.create_table(
        "record_state",
        sa.Column(
            "record_no",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("not_before", sa.String(length=27), nullable=True),
        sa.PrimaryKeyConstraint("record_no", name=op.f("pk_record_state")),
        postgresql_with={"fillfactor": 50},
    )
    op.create_table(
        "records",
        sa.Column(
            "record_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("record_id", sa.Text(), nullable=False),
        sa.Column(
            "version_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column(
            "document_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column(
            "source_version_no",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            nullable=False,
        ),
        sa.Column("checksum", sa.String(length=64), nullable=False),
        sa.Column("operation", sa.String(length=32), nullable=False),
        sa.Column("replay_reason", sa.String(length=32), nullable=False),
        sa.Column(
            "manifest_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.PrimaryKeyConstraint("record_no", name=op.f("pk_records")),
        sa.UniqueConstraint("record_id", name=op.f("uq_records_record_id")),
        sa.UniqueConstraint(
            "version_no", "source_version_no", name=op.f("uq_records_version_no_source_version_no")
        ),
    )
    with op.batch_alter_table("records", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_records_document_no"), ["document_no"], unique=False)

    op.create_table(
        "results",
        sa.Column(
            "result_file_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("line", sa.Integer(), nullable=False),
        sa.Column(
            "attempt_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True
        ),
        sa.Column("line_offset", sa.BigInteger(), nullable=False),
        sa.Column("line_length", sa.BigInteger(), nullable=False),
        sa.Column("anomaly", sa.String(length=32), nullable=True),
        sa.PrimaryKeyConstraint("result_file_no", "line", name=op.f("pk_results")),
    )
    op.create_table(
        "sources",
        sa.Column(
            "source_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("registered_at", sa.String(length=27), nullable=False),
        sa.PrimaryKeyConstraint("source_no", name=op.f("pk_sources")),
        sa.UniqueConstraint("name", name=op.f("uq_sources_name")),
    )
    op.create_table(
        "documents",
        sa.Column(
            "document_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column(
            "source_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("first_seen_at", sa.String(length=27), nullable=False),
        sa.ForeignKeyConstraint(
            ["source_no"], ["sources.source_no"], name=op.f("fk_documents_source_no")
        ),
        sa.PrimaryKeyConstraint("document_no", name=op.f("pk_documents")),
        sa.UniqueConstraint("document_id", name=op.f("uq_documents_document_id")),
    )
    op.create_table(
        "manifests",
        sa.Column(
            "manifest_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("manifest_id", sa.String(length=96), nullable=False),
        sa.Column(
            "version_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("contract_version", sa.String(length=32), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("expected", sa.BigInteger(), nullable=False),
        sa.Column("artifact", sa.String(length=64), nullable=False),
        sa.Column("replay_reason", sa.String(length=32), nullable=False),
        sa.Column("frozen_at", sa.String(length=27), nullable=False),
        sa.ForeignKeyConstraint(
            ["version_no"], ["processing_versions.version_no"], name=op.f("fk_manifests_version_no")
        ),
        sa.PrimaryKeyConstraint("manifest_no", name=op.f("pk_manifests")),
        sa.UniqueConstraint("manifest_id", name=op.f("uq_manifests_manifest_id")),
    )
    op.create_table(
        "operating_settings",
        sa.Column(
            "setting_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column(
            "version_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True
        ),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("actor", sa.String(length=128), nullable=False),
        sa.Column("set_at", sa.String(length=27), nullable=False),
        sa.ForeignKeyConstraint(
            ["version_no"],
            ["processing_versions.version_no"],
            name=op.f("fk_operating_settings_version_no"),
        ),
        sa.PrimaryKeyConstraint("setting_no", name=op.f("pk_operating_settings")),
    )
    op.create_table(
        "reports",
        sa.Column(
            "report_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column(
            "version_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("artifact", sa.String(length=64), nullable=False),
        sa.Column("invariant_holds", sa.Integer(), nullable=False),
        sa.Column("made_at", sa.String(length=27), nullable=False),
        sa.ForeignKeyConstraint(
            ["version_no"], ["processing_versions.version_no"], name=op.f("fk_reports_version_no")
        ),
        sa.PrimaryKeyConstraint("report_no", name=op.f("pk_reports")),
    )
    op.create_table(
        "snapshots",
        sa.Column(
            "snapshot_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column(
            "source_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("taken_at", sa.String(length=27), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("documents", sa.BigInteger(), nullable=False),
        sa.Column("excluded", sa.BigInteger(), nullable=False),
        sa.Column("added", sa.BigInteger(), nullable=False),
        sa.Column("changed", sa.BigInteger(), nullable=False),
        sa.Column("removed", sa.BigInteger(), nullable=False),
        sa.Column("complete", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["source_no"], ["sources.source_no"], name=op.f("fk_snapshots_source_no")
        ),
        sa.PrimaryKeyConstraint("snapshot_no", name=op.f("pk_snapshots")),
    )
    op.create_table(
        "batches",
        sa.Column("batch_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("batch_id", sa.String(length=96), nullable=False),
        sa.Column("batch_key", sa.String(length=12), nullable=False),
        sa.Column(
            "manifest_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column(
            "version_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("manifest_digest", sa.String(length=64), nullable=False),
        sa.Column("provider", sa.String(length=32), nullable=False),
        sa.Column("mode", sa.String(length=16), nullable=False),
        sa.Column("account_fingerprint", sa.String(length=64), nullable=True),
        sa.Column("model", sa.String(length=128), nullable=False),
        sa.Column("request_schema_version", sa.Integer(), nullable=False),
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
        sa.Column("reconciled_records", sa.BigInteger(), nullable=False),
        sa.Column(
            "first_attempt_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column(
            "last_attempt_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("collected_artifact", sa.String(length=64), nullable=True),
        sa.Column("staging_artifact", sa.String(length=64), nullable=True),
        sa.Column("lease_owner", sa.String(length=128), nullable=True),
        sa.Column("fencing_token", sa.BigInteger(), nullable=True),
        sa.Column("prepared_at", sa.String(length=27), nullable=False),
        sa.ForeignKeyConstraint(
            ["manifest_no"], ["manifests.manifest_no"], name=op.f("fk_batches_manifest_no")
        ),
        sa.ForeignKeyConstraint(
            ["version_no"], ["processing_versions.version_no"], name=op.f("fk_batches_version_no")
        ),
        sa.PrimaryKeyConstraint("batch_no", name=op.f("pk_batches")),
        sa.UniqueConstraint("batch_id", name=op.f("uq_batches_batch_id")),
        sa.UniqueConstraint("batch_key", name=op.f("uq_batches_batch_key")),
    )
    with op.batch_alter_table("batches", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_batches_manifest_no"), ["manifest_no"], unique=False)

    op.create_table(
        "exclusions",
        sa.Column(
            "version_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column(
            "document_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column(
            "source_version_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True
        ),
        sa.Column("reason", sa.String(length=32), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["document_no"], ["documents.document_no"], name=op.f("fk_exclusions_document_no")
        ),
        sa.ForeignKeyConstraint(
            ["version_no"],
            ["processing_versions.version_no"],
            name=op.f("fk_exclusions_version_no"),
        ),
        sa.PrimaryKeyConstraint("version_no", "document_no", name=op.f("pk_exclusions")),
    )
    op.create_table(
        "source_versions",
        sa.Column(
            "source_version_no",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            nullable=False,
        ),
        sa.Column(
            "document_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("checksum", sa.String(length=64), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("first_seen_at", sa.String(length=27), nullable=False),
        sa.ForeignKeyConstraint(
            ["document_no"], ["documents.document_no"], name=op.f("fk_source_versions_document_no")
        ),
        sa.PrimaryKeyConstraint("source_version_no", name=op.f("pk_source_versions")),
        sa.UniqueConstraint(
            "document_no", "checksum", name=op.f("uq_source_versions_document_no_checksum")
        ),
    )
    with op.batch_alter_table("source_versions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_source_versions_checksum"), ["checksum"], unique=False)

    op.create_table(
        "batch_parents",
        sa.Column("batch_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column(
            "parent_batch_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["batch_no"], ["batches.batch_no"], name=op.f("fk_batch_parents_batch_no")
        ),
        sa.ForeignKeyConstraint(
            ["parent_batch_no"], ["batches.batch_no"], name=op.f("fk_batch_parents_parent_batch_no")
        ),
        sa.PrimaryKeyConstraint("batch_no", "parent_batch_no", name=op.f("pk_batch_parents")),
    )
    op.create_table(
        "result_files",
        sa.Column(
            "result_file_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("batch_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("artifact", sa.String(length=64), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("lines", sa.BigInteger(), nullable=False),
        sa.Column("stored_at", sa.String(length=27), nullable=False),
        sa.ForeignKeyConstraint(
            ["batch_no"], ["batches.batch_no"], name=op.f("fk_result_files_batch_no")
        ),
        sa.PrimaryKeyConstraint("result_file_no", name=op.f("pk_result_files")),
        sa.UniqueConstraint(
            "batch_no", "kind", "artifact", name=op.f("uq_result_files_batch_no_kind_artifact")
        ),
    )
    op.create_table(
        "source_entries",
        sa.Column("entry_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column(
            "document_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column(
            "from_snapshot", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column(
            "to_snapshot", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True
        ),
        sa.Column(
            "source_version_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True
        ),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("mtime_ns", sa.BigInteger(), nullable=False),
        sa.Column("device", sa.String(length=24), nullable=False),
        sa.Column("inode", sa.String(length=24), nullable=False),
        sa.Column("scanned_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("excluded", sa.String(length=32), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["document_no"], ["documents.document_no"], name=op.f("fk_source_entries_document_no")
        ),
        sa.ForeignKeyConstraint(
            ["from_snapshot"],
            ["snapshots.snapshot_no"],
            name=op.f("fk_source_entries_from_snapshot"),
        ),
        sa.ForeignKeyConstraint(
            ["source_version_no"],
            ["source_versions.source_version_no"],
            name=op.f("fk_source_entries_source_version_no"),
        ),
        sa.ForeignKeyConstraint(
            ["to_snapshot"], ["snapshots.snapshot_no"], name=op.f("fk_source_entries_to_snapshot")
        ),
        sa.PrimaryKeyConstraint("entry_no", name=op.f("pk_source_entries")),
    )
    with op.batch_alter_table("source_entries", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_source_entries_document_no"), ["document_no"], unique=False
        )
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            "CREATE VIRTUAL TABLE archive_search USING fts5("
            "title, identifiers, description, language UNINDEXED, "
            "tokenize=\"ascii tokenchars '-/.'\")"
        )
    else:
        op.execute(
            "CREATE TABLE archive_search (entry_no BIGINT PRIMARY KEY, words TSVECTOR NOT NULL)"
        )
        op.execute("CREATE INDEX ix_archive_search_words ON archive_search USING GIN (words)")


def downgrade() -> None:
    """Refused: a ledger is never taken back to an older schema; restore a backup instead."""
    raise RuntimeError("a ledger cannot be downgraded; restore a backup of the older release")
