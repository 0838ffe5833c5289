"""The ledger's tables as SQLAlchemy Core metadata.

Belongs here: tables, keys and the reason for each. Does not belong here: queries
(one module per aggregate), full-text objects (the dialect modules, since they differ)
and the changes between released versions (`migrations/`).

Conventions: `*_no` are integer keys that joins use; `*_id` and `key` are the text that
people see, unique. Times are UTC text of fixed width (`2026-11-30T01:02:03.000004Z`), so
that they sort as text, load in bulk and read the same on both databases. Digests are
lower-case hexadecimal SHA-256. Tables that hold one row a record (`attempts`,
`dispositions`, `move_members`, ...) carry no foreign keys: they are written only by
set-based statements that join on the parent, and the checks of `account` and `doctor`
look for orphans; checking each row again took a third of the time of a bulk load.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
)

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = MetaData(naming_convention=NAMING)

# SQLite makes a rowid alias (fast, automatic) only of INTEGER; PostgreSQL needs BIGINT.
BigKey = BigInteger().with_variant(Integer, "sqlite")
Digest = String(64)
Time = String(27)
# PostgreSQL keeps a moved row on its page (a HOT update) when the page has room for it.
FILLFACTOR = {"fillfactor": 50}


def _life_columns() -> list[Column[Any]]:
    """The life of a job at its provider, the same for batches and canaries."""
    return [
        Column("provider_job_id", String(256)),
        Column("intent_id", String(64)),
        Column("state", String(32), nullable=False),
        Column("provider_outcome", String(32)),
        Column("raw_status", String(128)),
        Column("submitted_at", Time),
        Column("provider_deadline_at", Time),
        Column("internal_deadline_at", Time),
        Column("next_poll_at", Time),
        Column("polls", Integer, nullable=False),
        Column("last_counts", Text),
        Column("expected_records", BigInteger, nullable=False),
    ]


def _job_columns() -> list[Column[Any]]:
    """What a job at a provider needs besides what 0.1 had; null for batches of that time."""
    return [
        Column("endpoint", String(64)),
        # The uploaded input, known before the job is; a second upload is never needed.
        Column("input_ref", Text),
        # Estimated tokens of all prompts, which enqueued limits are counted in.
        Column("input_tokens", BigInteger),
        # Deliberate submissions so far: the intent of the next one ends in the next number.
        Column("submissions", Integer),
        # JSON: result files to fetch and everything that may be deleted afterwards.
        Column("remote_files", Text),
        Column("remote_deleted_at", Time),
        Column("error_class", String(32)),
        Column("error_code", String(128)),
        Column("poll_failures", Integer),
        # When status or counts were last seen to change.
        Column("changed_at", Time),
        Column("cancel_requested_at", Time),
    ]


ledger_info = Table(
    "ledger_info",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

sources = Table(
    "sources",
    metadata,
    Column("source_no", BigKey, primary_key=True),
    Column("name", String(32), nullable=False, unique=True),
    Column("kind", String(32), nullable=False),
    Column("location", Text, nullable=False),
    Column("registered_at", Time, nullable=False),
    # Whose documents they are: a source belongs to one workload.
    # The default is of ledgers from the time of one workload.
    Column("workload", String(64), nullable=False, server_default="equipment_manuals"),
    # Of the place as a whole at the end of its last scan: while it is the same, nothing changed.
    Column("fingerprint", Text),
)

snapshots = Table(
    "snapshots",
    metadata,
    Column("snapshot_no", BigKey, primary_key=True),
    Column("source_no", BigKey, ForeignKey("sources.source_no"), nullable=False),
    Column("taken_at", Time, nullable=False),
    Column("digest", Digest, nullable=False),
    Column("documents", BigInteger, nullable=False),
    Column("excluded", BigInteger, nullable=False),
    Column("added", BigInteger, nullable=False),
    Column("changed", BigInteger, nullable=False),
    Column("removed", BigInteger, nullable=False),
    Column("complete", Integer, nullable=False),
)

documents = Table(
    "documents",
    metadata,
    Column("document_no", BigKey, primary_key=True),
    Column("document_id", Text, nullable=False, unique=True),
    Column("source_no", BigKey, ForeignKey("sources.source_no"), nullable=False),
    Column("first_seen_at", Time, nullable=False),
)

source_versions = Table(
    "source_versions",
    metadata,
    Column("source_version_no", BigKey, primary_key=True),
    Column("document_no", BigKey, ForeignKey("documents.document_no"), nullable=False),
    Column("checksum", Digest, nullable=False, index=True),
    Column("bytes", BigInteger, nullable=False),
    Column("first_seen_at", Time, nullable=False),
    UniqueConstraint("document_no", "checksum"),
)

# What a source held, as intervals of snapshots: an entry is open (`to_snapshot` null) as long
# as nothing about it changes, so a rescan of an unchanged archive writes nothing.
source_entries = Table(
    "source_entries",
    metadata,
    Column("entry_no", BigKey, primary_key=True),
    Column("document_no", BigKey, ForeignKey("documents.document_no"), nullable=False, index=True),
    Column("from_snapshot", BigKey, ForeignKey("snapshots.snapshot_no"), nullable=False),
    Column("to_snapshot", BigKey, ForeignKey("snapshots.snapshot_no")),
    Column("source_version_no", BigKey, ForeignKey("source_versions.source_version_no")),
    Column("size", BigInteger, nullable=False),
    Column("mtime_ns", BigInteger, nullable=False),
    Column("device", String(24), nullable=False),
    Column("inode", String(24), nullable=False),
    Column("scanned_at_ns", BigInteger, nullable=False),
    Column("excluded", String(32)),
    Column("detail", Text, nullable=False),
    # What its place itself calls this version of it (an etag, a time of change); null for files.
    Column("mark", Text),
)

# What a scan has read and not yet stored as a snapshot: after an interruption nothing of it is
# read again. Emptied by the transaction that stores the snapshot.
scan_reads = Table(
    "scan_reads",
    metadata,
    Column("source_no", BigKey, nullable=False),
    Column("document_id", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("mtime_ns", BigInteger, nullable=False),
    Column("device", String(24), nullable=False),
    Column("inode", String(24), nullable=False),
    Column("mark", Text),
    Column("checksum", Digest),
    Column("scanned_at_ns", BigInteger, nullable=False),
    Column("excluded", String(32)),
    Column("detail", Text, nullable=False),
    PrimaryKeyConstraint("source_no", "document_id"),
)

# What somebody decided about one version of a document of a source that demands approval; the
# newest row counts.
approvals = Table(
    "approvals",
    metadata,
    Column("approval_no", BigKey, primary_key=True),
    Column("source_version_no", BigKey, nullable=False, index=True),
    # approved or refused.
    Column("decision", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("actor", String(128), nullable=False),
    Column("decided_at", Time, nullable=False),
)

# Events of a message queue that name documents; delivered at least once, in any order.
source_events = Table(
    "source_events",
    metadata,
    Column("event_no", BigKey, primary_key=True),
    Column("source_no", BigKey, ForeignKey("sources.source_no"), nullable=False),
    # The sender's name of the event, or a digest of its content where it has none.
    Column("event_key", String(128), nullable=False),
    Column("document_id", Text),
    Column("times", Integer, nullable=False),
    Column("tries", Integer, nullable=False),
    # waiting, done, dead, discarded.
    Column("state", String(16), nullable=False),
    Column("first_at", Time, nullable=False),
    Column("last_at", Time, nullable=False),
    # Closed wording: the class of what went wrong.
    Column("problem", String(128)),
    Column("owner", String(128)),
    Column("closed_at", Time),
    Column("closing_reason", Text),
    Column("closed_by", String(128)),
    UniqueConstraint("source_no", "event_key"),
)

# Documents whose content was purged. Ids and digests stay, so that the account still adds up.
erasures = Table(
    "erasures",
    metadata,
    Column("erasure_no", BigKey, primary_key=True),
    Column("document_no", BigKey, ForeignKey("documents.document_no"), nullable=False, index=True),
    Column("reason", Text, nullable=False),
    Column("actor", String(128), nullable=False),
    Column("begun_at", Time, nullable=False),
    # Null while files are still to be purged; the same command goes on from there.
    Column("finished_at", Time),
    # JSON: how many records, entries, artifacts and bytes were purged.
    Column("purged", Text, nullable=False),
)

# Artifacts from which something was erased: they keep their name and have other bytes now.
redactions = Table(
    "redactions",
    metadata,
    Column("kind", String(16), nullable=False),
    Column("digest", Digest, nullable=False),
    Column("erasure_no", BigKey, nullable=False),
    Column("present_digest", Digest, nullable=False),
    Column("redacted_at", Time, nullable=False),
    PrimaryKeyConstraint("digest", "kind", "erasure_no"),
)

# Every pruning, and every artifact that went: a missing file that is named here is no loss.
prunes = Table(
    "prunes",
    metadata,
    Column("prune_no", BigKey, primary_key=True),
    # JSON: the policy as it was applied.
    Column("policy", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("actor", String(128), nullable=False),
    Column("pruned_at", Time, nullable=False),
    # JSON: how many of each kind and how many bytes.
    Column("removed", Text, nullable=False),
)
pruned_artifacts = Table(
    "pruned_artifacts",
    metadata,
    Column("kind", String(16), nullable=False),
    Column("digest", Digest, nullable=False),
    Column("prune_no", BigKey, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    PrimaryKeyConstraint("digest", "kind", "prune_no"),
)

# The parse cache: (checksum, parser_key) decides the text; a new prompt parses nothing again.
parses = Table(
    "parses",
    metadata,
    Column("checksum", Digest, nullable=False),
    Column("parser_key", String(96), nullable=False),
    Column("excluded", String(32)),
    Column("detail", Text, nullable=False),
    Column("media_type", String(128)),
    Column("page_count", Integer),
    Column("language", String(8)),
    Column("languages", Text, nullable=False),
    Column("partial", Integer, nullable=False),
    Column("notes", Text, nullable=False),
    Column("text_pack", Digest),
    Column("thumbnail", Digest),
    Column("wall_ms", Integer, nullable=False),
    Column("cpu_ms", Integer, nullable=False),
    Column("peak_rss_bytes", BigInteger, nullable=False),
    # 0 for a failure that another machine, or a later run, may not have: it is tried again.
    Column("cacheable", Integer, nullable=False),
    Column("parsed_at", Time, nullable=False),
    PrimaryKeyConstraint("checksum", "parser_key"),
)

processing_versions = Table(
    "processing_versions",
    metadata,
    Column("version_no", BigKey, primary_key=True),
    Column("key", String(63), nullable=False, unique=True),
    Column("workload", String(64), nullable=False),
    Column("digest", Digest, nullable=False),
    Column("spec", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("state_reason", Text, nullable=False),
    Column("frozen_at", Time, nullable=False),
)

operating_settings = Table(
    "operating_settings",
    metadata,
    Column("setting_no", BigKey, primary_key=True),
    Column("version_no", BigKey, ForeignKey("processing_versions.version_no")),
    Column("name", String(64), nullable=False),
    Column("value", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("actor", String(128), nullable=False),
    Column("set_at", Time, nullable=False),
)

# Why a present document has no record under a version; a view of now, rewritten at each freeze.
exclusions = Table(
    "exclusions",
    metadata,
    Column("version_no", BigKey, ForeignKey("processing_versions.version_no"), nullable=False),
    Column("document_no", BigKey, ForeignKey("documents.document_no"), nullable=False),
    Column("source_version_no", BigKey),
    Column("reason", String(32), nullable=False),
    Column("detail", Text, nullable=False),
    PrimaryKeyConstraint("version_no", "document_no"),
)

# A deliberate replay: what was selected, why, and by whom. Never changed.
replays = Table(
    "replays",
    metadata,
    Column("replay_no", BigKey, primary_key=True),
    Column("replay_id", String(96), nullable=False, unique=True),
    Column("from_version_no", BigKey, ForeignKey("processing_versions.version_no"), nullable=False),
    Column("to_version_no", BigKey, ForeignKey("processing_versions.version_no"), nullable=False),
    # One of the closed list, and in the operator's own words.
    Column("reason", String(32), nullable=False),
    Column("note", Text, nullable=False),
    Column("actor", String(128), nullable=False),
    # The filter as it was given; null where all, or a list of documents, was meant.
    Column("expression", Text),
    Column("listed", BigInteger),
    Column("selected", BigInteger, nullable=False),
    # SHA-256 over the selection's rows (document_id, checksum, record_id), sorted.
    Column("selection_digest", Digest, nullable=False),
    Column("created_at", Time, nullable=False),
)

# The frozen selection of a replay, a document a row.
replay_members = Table(
    "replay_members",
    metadata,
    Column("replay_no", BigKey, nullable=False),
    Column("document_no", BigKey, nullable=False),
    # The record that was selected; its document's present bytes are what is processed.
    Column("record_no", BigKey, nullable=False),
    # Why it is in, in closed wording: the values of the facts that the filter looked at.
    Column("slice", Text, nullable=False),
    PrimaryKeyConstraint("replay_no", "document_no"),
)

manifests = Table(
    "manifests",
    metadata,
    Column("manifest_no", BigKey, primary_key=True),
    Column("manifest_id", String(96), nullable=False, unique=True),
    Column("version_no", BigKey, ForeignKey("processing_versions.version_no"), nullable=False),
    Column("contract_version", String(32), nullable=False),
    Column("digest", Digest, nullable=False),
    Column("expected", BigInteger, nullable=False),
    Column("artifact", Digest, nullable=False),
    Column("replay_reason", String(32), nullable=False),
    Column("frozen_at", Time, nullable=False),
    # The replay that it carries out; null where nobody asked for one.
    Column("replay_no", BigKey),
)

batches = Table(
    "batches",
    metadata,
    Column("batch_no", BigKey, primary_key=True),
    Column("batch_id", String(96), nullable=False, unique=True),
    # Twelve hexadecimal digits that every custom_id of the batch starts with.
    Column("batch_key", String(12), nullable=False, unique=True),
    Column("manifest_no", BigKey, ForeignKey("manifests.manifest_no"), nullable=False, index=True),
    Column("version_no", BigKey, ForeignKey("processing_versions.version_no"), nullable=False),
    Column("manifest_digest", Digest, nullable=False),
    Column("provider", String(32), nullable=False),
    Column("mode", String(16), nullable=False),
    Column("account_fingerprint", String(64)),
    Column("model", String(128), nullable=False),
    Column("request_schema_version", Integer, nullable=False),
    Column("request_artifact", Digest, nullable=False),
    Column("request_bytes", BigInteger, nullable=False),
    *_life_columns(),
    Column("reconciled_records", BigInteger, nullable=False),
    Column("first_attempt_no", BigKey, nullable=False),
    Column("last_attempt_no", BigKey, nullable=False),
    # The decoded results of collect and the judged values of accept, as Parquet artifacts.
    Column("collected_artifact", Digest),
    Column("staging_artifact", Digest),
    # Where each quote stands in the parsed text, as Parquet; null for rules that do not ask.
    Column("places_artifact", Digest),
    # The catalogue of known products that the batch was judged with; null where there was none.
    Column("catalogue_digest", Digest),
    Column("lease_owner", String(128)),
    Column("fencing_token", BigInteger),
    Column("prepared_at", Time, nullable=False),
    *_job_columns(),
)

batch_parents = Table(
    "batch_parents",
    metadata,
    Column("batch_no", BigKey, ForeignKey("batches.batch_no"), nullable=False),
    Column("parent_batch_no", BigKey, ForeignKey("batches.batch_no"), nullable=False),
    PrimaryKeyConstraint("batch_no", "parent_batch_no"),
)

# A small job of made-up documents that must come back right before records are sent. It has no
# records; its life at the provider has the same columns as a batch's.
canaries = Table(
    "canaries",
    metadata,
    Column("canary_no", BigKey, primary_key=True),
    Column("canary_id", String(96), nullable=False, unique=True),
    Column("batch_key", String(12), nullable=False, unique=True),
    # Digest of what it stands for: provider, mode, model, endpoint, SDK, schema, prompt.
    Column("combination", Digest, nullable=False, index=True),
    Column("version_no", BigKey, ForeignKey("processing_versions.version_no"), nullable=False),
    Column("provider", String(32), nullable=False),
    Column("mode", String(16), nullable=False),
    Column("sdk_version", String(64), nullable=False),
    Column("account_fingerprint", String(64)),
    Column("model", String(128), nullable=False),
    Column("request_artifact", Digest, nullable=False),
    Column("request_bytes", BigInteger, nullable=False),
    *_life_columns(),
    Column("lease_owner", String(128)),
    Column("fencing_token", BigInteger),
    Column("prepared_at", Time, nullable=False),
    *_job_columns(),
    # JSON list of artifacts with the raw answers.
    Column("results", Text),
    # JSON: what each made-up document came to, closed wording only.
    Column("findings", Text),
    Column("judged_at", Time),
    Column("expires_at", Time),
)

# Every deliberate call that may create a job, written before it is made.
intents = Table(
    "intents",
    metadata,
    Column("intent_no", BigKey, primary_key=True),
    Column("intent_id", String(64), nullable=False, unique=True),
    Column("machine", String(16), nullable=False),
    Column("subject_no", BigKey, nullable=False),
    Column("account_fingerprint", String(64), nullable=False),
    Column("recorded_at", Time, nullable=False),
    # When its call went out or, where that is known, ended: a new job may not be listed at once.
    Column("called_at", Time),
    Column("outcome", String(16), nullable=False),
    Column("provider_job_id", String(256)),
    Column("detail", Text, nullable=False),
    Column("settled_at", Time),
    Index("ix_intents_subject", "machine", "subject_no"),
)

# Tokens and job slots that are taken at a provider, for limits that all its jobs share.
reservations = Table(
    "reservations",
    metadata,
    Column("machine", String(16), nullable=False),
    Column("subject_no", BigKey, nullable=False),
    Column("pool", String(224), nullable=False, index=True),
    Column("tokens", BigInteger, nullable=False),
    Column("reserved_at", Time, nullable=False),
    Column("released_at", Time),
    PrimaryKeyConstraint("machine", "subject_no"),
)

# What an operator has to know and nobody has dealt with yet; one open row a kind and subject.
alerts = Table(
    "alerts",
    metadata,
    Column("alert_no", BigKey, primary_key=True),
    Column("kind", String(32), nullable=False),
    Column("subject", String(96), nullable=False),
    Column("message", Text, nullable=False),
    Column("first_at", Time, nullable=False),
    Column("last_at", Time, nullable=False),
    Column("times", Integer, nullable=False),
    Column("cleared_at", Time),
    Index("ix_alerts_kind_subject", "kind", "subject"),
)

# What of an alert each channel was told: `told_times` is the alert's `times` that it has heard of.
alert_deliveries = Table(
    "alert_deliveries",
    metadata,
    Column("alert_no", BigKey, nullable=False),
    Column("channel", String(32), nullable=False),
    Column("told_at", Time),
    Column("told_times", Integer, nullable=False),
    # Told that it is over; null while it is open or the channel does not know of it.
    Column("told_cleared_at", Time),
    Column("failures", Integer, nullable=False),
    Column("next_try_at", Time),
    # Closed wording: the class of what went wrong, never an address or a secret.
    Column("problem", String(128)),
    PrimaryKeyConstraint("alert_no", "channel"),
)

# Slices of a batch that is answered online; a started one without an end may have been paid.
online_groups = Table(
    "online_groups",
    metadata,
    Column("batch_no", BigKey, nullable=False),
    Column("group_no", Integer, nullable=False),
    Column("first_index", Integer, nullable=False),
    Column("records", Integer, nullable=False),
    Column("starts", Integer, nullable=False),
    Column("started_at", Time, nullable=False),
    # When it last ended early in good order: what was answered until then is stored.
    Column("kept_at", Time),
    Column("finished_at", Time),
    Column("calls", BigInteger, nullable=False),
    Column("possibly_paid", BigInteger, nullable=False),
    PrimaryKeyConstraint("batch_no", "group_no"),
)

# What of its document a request holds; only for requests that leave the house.
renderings = Table(
    "renderings",
    metadata,
    Column("attempt_no", BigKey, primary_key=True, autoincrement=False),
    Column("pages", Integer, nullable=False),
    Column("pages_sent", Integer, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("redactions", Integer, nullable=False),
)

# Identity, never updated; what moves is in `record_state`.
records = Table(
    "records",
    metadata,
    Column("record_no", BigKey, primary_key=True),
    Column("record_id", Text, nullable=False, unique=True),
    Column("version_no", BigKey, nullable=False),
    Column("document_no", BigKey, nullable=False, index=True),
    Column("source_version_no", BigKey, nullable=False),
    Column("checksum", Digest, nullable=False),
    Column("operation", String(32), nullable=False),
    Column("replay_reason", String(32), nullable=False),
    Column("manifest_no", BigKey, nullable=False),
    UniqueConstraint("version_no", "source_version_no"),
)

# No index on a column that moves: it halves the speed of moves (measured, DESIGN 10).
record_state = Table(
    "record_state",
    metadata,
    Column("record_no", BigKey, primary_key=True, autoincrement=False),
    Column("state", String(16), nullable=False),
    Column("version", Integer, nullable=False),
    Column("shard", Integer, nullable=False),
    Column("not_before", Time),
    postgresql_with=FILLFACTOR,
)

# One try at one record in one batch, which is also its row in the manifest. Attempt numbers of a
# batch are contiguous; its custom_id is `<batch_key>-<attempt_no>`, unique because both are.
attempts = Table(
    "attempts",
    metadata,
    Column("attempt_no", BigKey, primary_key=True, autoincrement=False),
    Column("batch_no", BigKey, nullable=False),
    Column("record_no", BigKey, nullable=False, index=True),
    Column("ordinal", Integer, nullable=False),
    Column("recovery_path", String(32), nullable=False),
    Column("request_digest", Digest, nullable=False),
    Column("request_offset", BigInteger, nullable=False),
    Column("request_length", BigInteger, nullable=False),
    # The attempt that failed before this one; null for the first, and after a replay.
    Column("parent_attempt_no", BigKey),
)

result_files = Table(
    "result_files",
    metadata,
    Column("result_file_no", BigKey, primary_key=True),
    Column("batch_no", BigKey, ForeignKey("batches.batch_no"), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("artifact", Digest, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("lines", BigInteger, nullable=False),
    Column("stored_at", Time, nullable=False),
    UniqueConstraint("batch_no", "kind", "artifact"),
)

# One row a line that the provider returned, wanted or not; the bytes stay in the artifact.
results = Table(
    "results",
    metadata,
    Column("result_file_no", BigKey, nullable=False),
    Column("line", Integer, nullable=False),
    Column("attempt_no", BigKey),
    Column("line_offset", BigInteger, nullable=False),
    Column("line_length", BigInteger, nullable=False),
    Column("anomaly", String(32)),
    PrimaryKeyConstraint("result_file_no", "line"),
)

# Written once an attempt: the key is what makes "exactly one disposition" a fact.
dispositions = Table(
    "dispositions",
    metadata,
    Column("attempt_no", BigKey, primary_key=True, autoincrement=False),
    Column("disposition", String(20), nullable=False),
    Column("failure_class", String(32)),
    Column("diagnostics", Text, nullable=False),
    Column("result_file_no", BigKey),
    Column("line", Integer),
    Column("model_revision", String(128)),
    Column("input_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("cached_tokens", BigInteger),
)

# What was decided about each attempt that did not succeed; written once, with its disposition.
retry_decisions = Table(
    "retry_decisions",
    metadata,
    Column("attempt_no", BigKey, primary_key=True, autoincrement=False),
    Column("record_no", BigKey, nullable=False),
    Column("decision", String(16), nullable=False),
    # What the next attempt does differently: `repeat`, or a named recovery path.
    Column("recovery_path", String(32), nullable=False),
    # 0 where the attempt used none of the record's limit (expiry, capacity).
    Column("counted", Integer, nullable=False),
    Column("failure_class", String(32), nullable=False),
    Column("reason", Text, nullable=False),
    Column("not_before", Time),
    Column("decided_at", Time, nullable=False),
)

# Records that the pipeline gave up, an episode a row; closed by their owner, or by a late result.
dead_letters = Table(
    "dead_letters",
    metadata,
    Column("attempt_no", BigKey, primary_key=True, autoincrement=False),
    Column("record_no", BigKey, nullable=False, index=True),
    Column("version_no", BigKey, nullable=False, index=True),
    Column("failure_class", String(32), nullable=False),
    Column("reason", Text, nullable=False),
    Column("owner", String(128), nullable=False),
    Column("opened_at", Time, nullable=False),
    Column("closed_at", Time),
    Column("closing", String(16)),
    Column("closing_reason", Text),
    Column("closed_by", String(128)),
)

# A line that came back for an attempt after its disposition was written. The disposition stays;
# `used` says whether the line's answer became the record's. Its cost counts either way.
late_results = Table(
    "late_results",
    metadata,
    Column("result_file_no", BigKey, nullable=False),
    Column("line", Integer, nullable=False),
    # Where it came in, which may be another batch than the attempt's.
    Column("batch_no", BigKey, nullable=False),
    Column("attempt_no", BigKey, nullable=False, index=True),
    Column("record_no", BigKey, nullable=False),
    Column("disposition", String(20), nullable=False),
    Column("failure_class", String(32)),
    Column("diagnostics", Text, nullable=False),
    Column("used", Integer, nullable=False),
    Column("model_revision", String(128)),
    Column("input_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("cached_tokens", BigInteger),
    Column("recorded_at", Time, nullable=False),
    PrimaryKeyConstraint("result_file_no", "line"),
)

# Answers of late results that are used: collected and judged like a batch's own.
late_answers = Table(
    "late_answers",
    metadata,
    Column("late_no", BigKey, primary_key=True),
    Column("batch_no", BigKey, ForeignKey("batches.batch_no"), nullable=False),
    Column("records", BigInteger, nullable=False),
    Column("collected_artifact", Digest, nullable=False),
    Column("staging_artifact", Digest),
    Column("places_artifact", Digest),
    Column("catalogue_digest", Digest),
    Column("collected_at", Time, nullable=False),
)

# What was mended in the form of an answer before it was usable, in this order; facts never are.
repairs = Table(
    "repairs",
    metadata,
    Column("attempt_no", BigKey, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("rule", String(32), nullable=False),
    Column("rule_version", Integer, nullable=False),
    Column("before_digest", Digest, nullable=False),
    Column("after_digest", Digest, nullable=False),
    PrimaryKeyConstraint("attempt_no", "ordinal"),
)

# The judgement of a succeeded attempt. `accepted_digest` names the values; the values themselves
# are in the batch's staging artifact until published.
judgements = Table(
    "judgements",
    metadata,
    Column("attempt_no", BigKey, primary_key=True, autoincrement=False),
    Column("record_no", BigKey, nullable=False),
    Column("outcome", String(20), nullable=False),
    Column("values_digest", Digest, nullable=False),
)

findings = Table(
    "findings",
    metadata,
    Column("finding_no", BigKey, primary_key=True),
    Column("record_no", BigKey, nullable=False, index=True),
    Column("attempt_no", BigKey, nullable=False),
    Column("rule", String(64), nullable=False),
    Column("rule_version", Integer, nullable=False),
    Column("severity", String(16), nullable=False),
    Column("field", String(64), nullable=False),
    Column("note", Text, nullable=False),
)

# What waits for a person, and what became of it: a record that a finding sent there, or an
# accepted one of a quality sample. One row a judged attempt and occasion.
reviews = Table(
    "reviews",
    metadata,
    Column("review_no", BigKey, primary_key=True, autoincrement=False),
    Column("record_no", BigKey, nullable=False, index=True),
    Column("attempt_no", BigKey, nullable=False),
    Column("version_no", BigKey, nullable=False, index=True),
    # `findings` or `quality_sample`.
    Column("kind", String(16), nullable=False),
    # The quality sample that drew it; 0 for findings.
    Column("sample_no", BigKey, nullable=False),
    Column("slice", String(96), nullable=False),
    # Higher is sooner.
    Column("priority", Integer, nullable=False),
    Column("opened_at", Time, nullable=False),
    # Grows with every act; an act names the revision that it was decided on.
    Column("revision", Integer, nullable=False),
    Column("assigned_to", String(128)),
    # When a reviewer first had it on the screen, for the time that review takes.
    Column("taken_at", Time),
    Column("taken_by", String(128)),
    # accept, correct, reject, or overtaken (the record moved on before anybody decided).
    Column("decision", String(16)),
    Column("decided_at", Time),
    Column("reviewer", String(128)),
    Column("reason", Text),
    # Of the values that the model gave, and of those that the reviewer put in their place.
    Column("values_digest", Digest, nullable=False),
    Column("corrected_digest", Digest),
    Column("corrected_content", Text),
    UniqueConstraint("attempt_no", "kind", "sample_no"),
)

# Every act on a review, in order; never changed.
review_acts = Table(
    "review_acts",
    metadata,
    Column("review_no", BigKey, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("act", String(16), nullable=False),
    Column("who", String(128), nullable=False),
    Column("reason", Text, nullable=False),
    Column("acted_at", Time, nullable=False),
    PrimaryKeyConstraint("review_no", "revision"),
)

quality_samples = Table(
    "quality_samples",
    metadata,
    Column("sample_no", BigKey, primary_key=True),
    Column("version_no", BigKey, nullable=False, index=True),
    Column("seed", BigInteger, nullable=False),
    Column("percent", Text, nullable=False),
    Column("least", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("actor", String(128), nullable=False),
    Column("drawn_at", Time, nullable=False),
)

# What each slice of a quality sample was drawn from.
quality_sample_slices = Table(
    "quality_sample_slices",
    metadata,
    Column("sample_no", BigKey, nullable=False),
    Column("slice", String(96), nullable=False),
    Column("population", BigInteger, nullable=False),
    Column("drawn", BigInteger, nullable=False),
    PrimaryKeyConstraint("sample_no", "slice"),
)

moves = Table(
    "moves",
    metadata,
    Column("move_no", BigKey, primary_key=True),
    Column("chain", String(64), nullable=False),
    Column("machine", String(16), nullable=False),
    Column("subject_no", BigKey),
    Column("from_state", String(32), nullable=False),
    Column("to_state", String(32), nullable=False),
    Column("reason", Text, nullable=False),
    Column("actor", String(128), nullable=False),
    Column("cause", Text, nullable=False),
    Column("moved_at", Time, nullable=False),
    Column("members", BigInteger, nullable=False),
    Column("members_digest", Digest, nullable=False),
    Column("previous_digest", Digest, nullable=False),
    Column("digest", Digest, nullable=False, unique=True),
    # A chain cannot fork: two moves never follow the same one.
    UniqueConstraint("chain", "previous_digest"),
    Index("ix_moves_chain_move_no", "chain", "move_no"),
)

move_members = Table(
    "move_members",
    metadata,
    Column("move_no", BigKey, nullable=False),
    Column("record_no", BigKey, nullable=False),
    PrimaryKeyConstraint("record_no", "move_no"),
    sqlite_with_rowid=False,
)

# Every change of what people see, with who wanted it and why; its entries name it.
archive_changes = Table(
    "archive_changes",
    metadata,
    Column("change_no", BigKey, primary_key=True),
    # publish, correction, restore, promote, rollback, removal, erasure.
    Column("kind", String(16), nullable=False),
    Column("version_no", BigKey),
    Column("reason", Text, nullable=False),
    Column("actor", String(128), nullable=False),
    Column("changed_at", Time, nullable=False),
    Column("shown", BigInteger, nullable=False),
    Column("hidden", BigInteger, nullable=False),
)

# Every version of every published document; valid_to is null while it is the visible one.
archive_entries = Table(
    "archive_entries",
    metadata,
    Column("entry_no", BigKey, primary_key=True, autoincrement=False),
    Column("document_no", BigKey, nullable=False),
    Column("record_no", BigKey, nullable=False),
    Column("version_no", BigKey, nullable=False),
    Column("archive_version", Integer, nullable=False),
    Column("promotion", Integer, nullable=False),
    Column("content", Text, nullable=False),
    Column("content_digest", Digest, nullable=False),
    Column("thumbnail", Digest, nullable=False),
    Column("valid_from", Time, nullable=False),
    Column("valid_to", Time),
    # The change that made it visible, and the one that ended that; null before release 0004.
    Column("change_no", BigKey),
    Column("closed_by", BigKey),
    UniqueConstraint("document_no", "archive_version"),
)

archive_heads = Table(
    "archive_heads",
    metadata,
    Column("document_no", BigKey, primary_key=True, autoincrement=False),
    Column("entry_no", BigKey, nullable=False),
    postgresql_with=FILLFACTOR,
)

# Starts with record_no: a unique key that starts with a hash inserts at two thirds of the speed.
deliveries = Table(
    "deliveries",
    metadata,
    Column("record_no", BigKey, nullable=False),
    Column("operation", String(32), nullable=False),
    Column("request_digest", Digest, nullable=False),
    Column("accepted_digest", Digest, nullable=False),
    Column("promotion", Integer, nullable=False),
    Column("disposition", String(16), nullable=False),
    Column("entry_no", BigKey, nullable=False),
    Column("delivered_at", Time, nullable=False),
    PrimaryKeyConstraint(
        "record_no", "operation", "request_digest", "accepted_digest", "promotion"
    ),
    sqlite_with_rowid=False,
)

# What each outlet has to hear of the archive: an entry that became visible (`put`), or one that
# ended without a successor (`remove`). Delivering again never asks a model again.
outlet_deliveries = Table(
    "outlet_deliveries",
    metadata,
    Column("outlet", String(32), nullable=False),
    Column("entry_no", BigKey, nullable=False),
    Column("effect", String(8), nullable=False),
    Column("document_no", BigKey, nullable=False),
    Column("idempotency_key", Digest, nullable=False),
    # due, delivered, refused (the outlet will not have it), given_up, overtaken (by a newer one).
    Column("state", String(16), nullable=False),
    Column("tries", Integer, nullable=False),
    Column("queued_at", Time, nullable=False),
    Column("next_try_at", Time),
    Column("ended_at", Time),
    Column("status_code", Integer),
    # Closed wording: the class of what went wrong, never an address, a secret or a body.
    Column("problem", String(128)),
    PrimaryKeyConstraint("entry_no", "outlet", "effect"),
)

leases = Table(
    "leases",
    metadata,
    Column("name", String(96), primary_key=True),
    Column("owner", String(128), nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("acquired_at", Time, nullable=False),
    Column("expires_at", Time, nullable=False),
    # The token of the newest transaction that committed under this lease.
    Column("committed_token", BigInteger),
    postgresql_with=FILLFACTOR,
)

# Commits that came too late: their lease had changed hands or run out. Nothing of them was written.
refused_commits = Table(
    "refused_commits",
    metadata,
    Column("refusal_no", BigKey, primary_key=True),
    Column("lease", String(96), nullable=False),
    Column("owner", String(128), nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("found_owner", String(128)),
    Column("found_token", BigInteger),
    Column("why", String(16), nullable=False),
    Column("refused_at", Time, nullable=False),
)

# Who opened source text or a page image, and why (invariant 11).
accesses = Table(
    "accesses",
    metadata,
    Column("access_no", BigKey, primary_key=True),
    Column("who", String(128), nullable=False),
    Column("why", Text, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("digest", Digest, nullable=False),
    Column("opened_at", Time, nullable=False),
)

# The account of a version, or of one of its batches, as it was at a time; kept as a baseline.
reports = Table(
    "reports",
    metadata,
    Column("report_no", BigKey, primary_key=True),
    Column("version_no", BigKey, ForeignKey("processing_versions.version_no"), nullable=False),
    Column("digest", Digest, nullable=False),
    Column("artifact", Digest, nullable=False),
    Column("invariant_holds", Integer, nullable=False),
    Column("made_at", Time, nullable=False),
    # Null where it is of the whole version.
    Column("batch_no", BigKey),
    # The page for people and the outcome of every record; null before release 0006.
    Column("page", Digest),
    Column("outcomes", Digest),
    # Over the outcomes, in their order: what a proof of one record's membership leads to.
    Column("merkle_root", Digest),
    Column("leaves", BigInteger),
    # The report that it tells the differences to.
    Column("baseline_no", BigKey),
)

# A closed report stands for good: who vouches for the collection that it accounts for. Never
# changed; the journal has a move of machine `report` for each, with the report's digest.
report_closings = Table(
    "report_closings",
    metadata,
    Column("report_no", BigKey, primary_key=True, autoincrement=False),
    Column("digest", Digest, nullable=False),
    Column("closed_by", String(128), nullable=False),
    Column("reason", Text, nullable=False),
    Column("closed_at", Time, nullable=False),
)

# What a job's tokens cost, as it was when its results came in; a newer price list changes nothing.
job_prices = Table(
    "job_prices",
    metadata,
    Column("machine", String(16), nullable=False),
    Column("subject_no", BigKey, nullable=False),
    Column("provider", String(32), nullable=False),
    Column("model", String(128), nullable=False),
    Column("mode", String(16), nullable=False),
    # The day that the price is of.
    Column("priced_at", Time, nullable=False),
    Column("basis", String(64), nullable=False),
    # The price list and its version.
    Column("package", String(64), nullable=False),
    Column("note", Text, nullable=False),
    # JSON: US dollars a million tokens, as decimal text, with its steps; null where unknown.
    Column("read_usd", Text),
    Column("cached_usd", Text),
    Column("written_usd", Text),
    PrimaryKeyConstraint("machine", "subject_no"),
)

# What the answers to a canary report of their tokens: they are paid like any other.
canary_usage = Table(
    "canary_usage",
    metadata,
    Column("canary_no", BigKey, primary_key=True, autoincrement=False),
    Column("lines", BigInteger, nullable=False),
    # Answered lines that report no tokens.
    Column("unknown", BigInteger, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    # The longest of its prompts decides which step of a price holds.
    Column("longest_input", BigInteger, nullable=False),
    Column("recorded_at", Time, nullable=False),
)

# Every audit: when somebody last looked at all the evidence, and what it came to.
audits = Table(
    "audits",
    metadata,
    Column("audit_no", BigKey, primary_key=True),
    # Null where it was of every version.
    Column("version_no", BigKey),
    # JSON: what was left out, such as a share of the artifacts.
    Column("scope", Text, nullable=False),
    Column("checked", BigInteger, nullable=False),
    Column("findings", BigInteger, nullable=False),
    # SHA-256 over the heads of all chains, and over running digests of manifests, result files,
    # archive entries and reports, as they were read.
    Column("journal_digest", Digest, nullable=False),
    Column("actor", String(128), nullable=False),
    Column("made_at", Time, nullable=False),
)

# Every backup that was finished.
backups = Table(
    "backups",
    metadata,
    Column("backup_no", BigKey, primary_key=True),
    Column("backup_id", String(96), nullable=False, unique=True),
    # Of its list of contents.
    Column("digest", Digest, nullable=False),
    Column("ledger_rows", BigInteger, nullable=False),
    Column("artifacts", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("actor", String(128), nullable=False),
    Column("made_at", Time, nullable=False),
)

# Up to which move the spans of a version were given to an exporter.
trace_marks = Table(
    "trace_marks",
    metadata,
    Column("exporter", String(16), nullable=False),
    Column("version_no", BigKey, nullable=False),
    Column("move_no", BigKey, nullable=False),
    Column("exported_at", Time, nullable=False),
    PrimaryKeyConstraint("exporter", "version_no"),
)
