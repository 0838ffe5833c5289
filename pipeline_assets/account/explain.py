"""The whole story of one document under one version, from its bytes to its publication.

Belongs here: reading each chapter from the ledger. Does not belong here: how it is shown
(`cli/explain.py`), and document text, of which nothing is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.account.documents import DocumentKey, find_document
from pipeline_assets.account.standing import standings_of
from pipeline_assets.known_version import KnownVersion, known_version
from resources import kept_bytes
from resources.artifacts import ArtifactStore, Kind
from resources.context import Context
from resources.contracts import MANIFEST, scan_frame
from resources.ledger.engine import Ledger
from resources.ledger.erasures import erasure_of
from resources.ledger.frames import PolarsType
from resources.record_ids import custom_id, reference
from resources.sources.reasons import EXCLUSION_REASONS

_INT, _TEXT = pl.Int64, pl.String
_CHANGE = ("kind", "reason", "actor")
_REPLAY = ("id", "reason", "note", "actor", "expression")
# Not to be taken for the reason that a record was made for.
_REPLAY_SCHEMA = {f"of_replay_{what}": _TEXT for what in _REPLAY}


@dataclass(frozen=True)
class Explanation:
    """The chapters, each as plain JSON values.

    Attributes:
        document_id: the document.
        processing_version: the version's key.
        present: does its source hold it now?
        state: of its present bytes: a record's state, `excluded` or `pending`; `removed`.
        source: where it comes from, its bytes, since when it is so.
        parse: what reading it gave and cost; None if it was never read under this version.
        exclusion: reason, meaning and detail; None if it has a record.
        records: one for each of its versions of bytes that was processed, newest first, with
            manifest, attempts, findings and moves; record and attempt name the replay that
            they are part of.
        publications: its archive entries, newest first, of any version.
        erasure: why, by whom and when its content was erased; None if it was not.
    """

    document_id: str
    processing_version: str
    present: bool
    state: str
    source: dict[str, Any]
    parse: dict[str, Any] | None
    exclusion: dict[str, Any] | None
    records: list[dict[str, Any]]
    publications: list[dict[str, Any]]
    erasure: dict[str, Any] | None

    def as_json(self) -> dict[str, Any]:
        """All chapters in order."""
        return dict(vars(self))


def explain(context: Context, document: str, key: str) -> Explanation:
    """Tell the story of a document.

    Args:
        context: the open resources.
        document: its id, or an ending that no other id has.
        key: under which version.

    Raises:
        MalformedVersionKey, VersionNeverUsed: there is no such version here.
        UnknownDocument, AmbiguousDocument: no document, or several.
    """
    version = known_version(context, key)
    found = find_document(context, document)
    with context.ledger.read() as connection:
        book = _Book(connection, context.ledger, context.artifacts, version, found)
        standing = standings_of(
            connection,
            context.ledger,
            version,
            pl.Series([found.document_no], dtype=pl.Int64),
        )
        now = standing.row(0, named=True) if standing.height else None
        source = book.source()
        return Explanation(
            document_id=found.document_id,
            processing_version=version.key,
            present=now is not None,
            state="removed" if now is None else now["state"],
            source=source,
            parse=book.parse(source["checksum"]),
            exclusion=_exclusion(now),
            records=book.records(),
            publications=book.publications(),
            erasure=book.erasure(),
        )


def _exclusion(now: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if now is None or now["reason"] is None:
        return None
    return {
        "reason": now["reason"],
        "meaning": EXCLUSION_REASONS.get(now["reason"], ""),
        "detail": now["detail"],
    }


def _replay(row: dict[str, Any]) -> dict[str, Any] | None:
    """Take the replay that a manifest carries out from a row; None where it carries out none."""
    found = {what: row.pop(f"of_replay_{what}") for what in _REPLAY}
    return found if found["id"] is not None else None


@dataclass(frozen=True)
class _Book:
    """Reads the chapters of one document inside one transaction."""

    connection: Connection
    ledger: Ledger
    artifacts: ArtifactStore
    version: KnownVersion
    document: DocumentKey

    def source(self) -> dict[str, Any]:
        newest = self._rows(
            "SELECT c.name, c.kind, c.location, d.first_seen_at, e.size, e.excluded, v.checksum, "
            "f.snapshot_no, f.taken_at, t.snapshot_no, t.taken_at FROM source_entries e "
            "JOIN documents d ON d.document_no = e.document_no "
            "JOIN sources c ON c.source_no = d.source_no "
            "LEFT JOIN source_versions v ON v.source_version_no = e.source_version_no "
            "JOIN snapshots f ON f.snapshot_no = e.from_snapshot "
            "LEFT JOIN snapshots t ON t.snapshot_no = e.to_snapshot "
            "WHERE e.document_no = ? ORDER BY e.entry_no DESC LIMIT 1",
            {
                "name": _TEXT,
                "kind": _TEXT,
                "location": _TEXT,
                "first_seen_at": _TEXT,
                "bytes": _INT,
                "excluded": _TEXT,
                "checksum": _TEXT,
                "snapshot": _INT,
                "snapshot_taken_at": _TEXT,
                "gone_in_snapshot": _INT,
                "gone_at": _TEXT,
            },
            (self.document.document_no,),
        )[0]
        versions = self._rows(
            "SELECT checksum, bytes, first_seen_at FROM source_versions WHERE document_no = ? "
            "ORDER BY source_version_no DESC",
            {"checksum": _TEXT, "bytes": _INT, "first_seen_at": _TEXT},
            (self.document.document_no,),
        )
        del newest["excluded"]
        known = pl.Series([newest["checksum"]], dtype=pl.String).drop_nulls()
        kept = kept_bytes.kept(self.connection, self.ledger, self.artifacts, known).any()
        return {**newest, "bytes_kept": kept, "versions": versions}

    def parse(self, checksum: str | None) -> dict[str, Any] | None:
        rows = self._rows(
            "SELECT parser_key, excluded, detail, media_type, page_count, language, languages, "
            "partial, notes, thumbnail, text_pack, wall_ms, cpu_ms, peak_rss_bytes, parsed_at "
            "FROM parses WHERE checksum = ? AND parser_key = ?",
            {
                "parser": _TEXT,
                "excluded": _TEXT,
                "detail": _TEXT,
                "media_type": _TEXT,
                "pages": _INT,
                "language": _TEXT,
                "languages": _TEXT,
                "partial": _INT,
                "notes": _TEXT,
                "thumbnail": _TEXT,
                "text_pack": _TEXT,
                "wall_ms": _INT,
                "cpu_ms": _INT,
                "peak_rss_bytes": _INT,
                "parsed_at": _TEXT,
            },
            (checksum, self.version.parser_key),
        )
        if not rows:
            return None
        parse = rows[0]
        parse["languages"] = parse["languages"].split()
        parse["notes"] = parse["notes"].split()
        parse["partial"] = bool(parse["partial"])
        return parse

    def records(self) -> list[dict[str, Any]]:
        rows = self._rows(
            "SELECT r.record_no, r.record_id, s.state, r.checksum, r.operation, r.replay_reason, "
            "s.not_before, m.manifest_id, "
            "y.replay_id, y.reason, y.note, y.actor, y.expression FROM records r "
            "LEFT JOIN record_state s ON s.record_no = r.record_no "
            "LEFT JOIN manifests m ON m.manifest_no = r.manifest_no "
            "LEFT JOIN replays y ON y.replay_no = m.replay_no "
            "WHERE r.version_no = ? AND r.document_no = ? ORDER BY r.record_no DESC",
            {
                "record_no": _INT,
                "record_id": _TEXT,
                "state": _TEXT,
                "source_checksum": _TEXT,
                "operation": _TEXT,
                "replay_reason": _TEXT,
                "not_before": _TEXT,
                "first_manifest_id": _TEXT,
                **_REPLAY_SCHEMA,
            },
            (self.version.version_no, self.document.document_no),
        )
        for row in rows:
            number = row.pop("record_no")
            row["reference"] = reference(row["record_id"])
            row["replay"] = _replay(row)
            row["attempts"] = self._attempts(number, row["record_id"])
            row["moves"] = self._moves(number)
        return rows

    def publications(self) -> list[dict[str, Any]]:
        searchable = set(self.ledger.dialect.search_entries(self.connection)["entry_no"])
        rows = self._rows(
            "SELECT e.entry_no, e.archive_version, v.key, r.record_id, h.entry_no, e.promotion, "
            "e.content_digest, e.thumbnail, e.valid_from, e.valid_to, y.operation, "
            "y.request_digest, y.accepted_digest, y.disposition, y.delivered_at, "
            "c.kind, c.reason, c.actor, o.kind, o.reason, o.actor "
            "FROM archive_entries e JOIN processing_versions v ON v.version_no = e.version_no "
            "LEFT JOIN records r ON r.record_no = e.record_no "
            "LEFT JOIN archive_heads h ON h.entry_no = e.entry_no "
            "LEFT JOIN archive_changes c ON c.change_no = e.change_no "
            "LEFT JOIN archive_changes o ON o.change_no = e.closed_by "
            "LEFT JOIN deliveries y ON y.record_no = e.record_no AND y.entry_no = e.entry_no "
            "WHERE e.document_no = ? ORDER BY e.archive_version DESC, y.delivered_at",
            {
                "entry_no": _INT,
                "archive_version": _INT,
                "processing_version": _TEXT,
                "record_id": _TEXT,
                "visible": _INT,
                "promotion": _INT,
                "content_digest": _TEXT,
                "thumbnail": _TEXT,
                "valid_from": _TEXT,
                "valid_to": _TEXT,
                "operation": _TEXT,
                "request_digest": _TEXT,
                "accepted_digest": _TEXT,
                "disposition": _TEXT,
                "delivered_at": _TEXT,
                **{f"{end}_{what}": _TEXT for end in ("shown", "ended") for what in _CHANGE},
            },
            (self.document.document_no,),
        )
        return [self._publication(row, searchable) for row in rows]

    def erasure(self) -> dict[str, Any] | None:
        """The tombstone."""
        found = erasure_of(self.connection, self.document.document_no)
        if found is None:
            return None
        return {
            "reason": found.reason,
            "actor": found.actor,
            "begun_at": found.begun_at,
            "finished_at": found.finished_at,
        }

    def _pruned_at(self, kind: Kind, digest: str) -> str | None:
        """When a file that is not there was pruned; None for one that is there, or lost."""
        return None if self.artifacts.has(kind, digest) else self.artifacts.pruned_at(kind, digest)

    def _publication(self, row: dict[str, Any], searchable: set[int]) -> dict[str, Any]:
        delivery = {
            name: row.pop(name)
            for name in (
                "operation",
                "request_digest",
                "accepted_digest",
                "disposition",
                "delivered_at",
            )
        }
        shown, ended = (
            {what: row.pop(f"{end}_{what}") for what in _CHANGE} for end in ("shown", "ended")
        )
        entry = row.pop("entry_no")
        return {
            **row,
            "shown_by": shown if shown["kind"] is not None else None,
            "ended_by": ended if ended["kind"] is not None else None,
            "visible": row["visible"] is not None,
            "search_entry": entry in searchable,
            "thumbnail_kept": self.artifacts.has("thumbnail", row["thumbnail"]),
            "delivery": delivery if delivery["disposition"] is not None else None,
        }

    def _attempts(self, record_no: int, record_id: str) -> list[dict[str, Any]]:
        rows = self._rows(
            "SELECT a.attempt_no, a.ordinal, a.recovery_path, f.ordinal, a.request_digest, "
            "a.request_offset, a.request_length, b.batch_id, b.batch_key, b.first_attempt_no, "
            "b.state, b.provider, b.mode, b.model, b.provider_job_id, b.provider_outcome, "
            "b.raw_status, b.submitted_at, b.request_artifact, m.manifest_id, m.digest, "
            "m.artifact, m.expected, m.frozen_at, "
            "y.replay_id, y.reason, y.note, y.actor, y.expression FROM attempts a "
            "JOIN batches b ON b.batch_no = a.batch_no "
            "JOIN manifests m ON m.manifest_no = b.manifest_no "
            "LEFT JOIN replays y ON y.replay_no = m.replay_no "
            "LEFT JOIN attempts f ON f.attempt_no = a.parent_attempt_no "
            "WHERE a.record_no = ? ORDER BY a.attempt_no",
            {
                "attempt_no": _INT,
                "ordinal": _INT,
                "recovery_path": _TEXT,
                "follows": _INT,
                "request_digest": _TEXT,
                "request_offset": _INT,
                "request_length": _INT,
                "batch_id": _TEXT,
                "batch_key": _TEXT,
                "first_attempt_no": _INT,
                "state": _TEXT,
                "provider": _TEXT,
                "mode": _TEXT,
                "model": _TEXT,
                "provider_job_id": _TEXT,
                "provider_outcome": _TEXT,
                "raw_status": _TEXT,
                "submitted_at": _TEXT,
                "request_artifact": _TEXT,
                "manifest_id": _TEXT,
                "manifest_digest": _TEXT,
                "manifest_artifact": _TEXT,
                "manifest_expected": _INT,
                "frozen_at": _TEXT,
                **_REPLAY_SCHEMA,
            },
            (record_no,),
        )
        return [self._attempt(row, record_no, record_id) for row in rows]

    def _attempt(self, row: dict[str, Any], record_no: int, record_id: str) -> dict[str, Any]:
        number = row["attempt_no"]
        return {
            "ordinal": row["ordinal"],
            "recovery_path": row["recovery_path"],
            "follows": row["follows"],
            "custom_id": custom_id(row["batch_key"], number - row["first_attempt_no"]),
            "replay": _replay(row),
            "manifest": {
                "manifest_id": row["manifest_id"],
                "digest": row["manifest_digest"],
                "expected": row["manifest_expected"],
                "row": self._manifest_row(row["manifest_artifact"], record_id),
                "frozen_at": row["frozen_at"],
            },
            "request": {
                "digest": row["request_digest"],
                "artifact": row["request_artifact"],
                "offset": row["request_offset"],
                "length": row["request_length"],
                "pruned_at": self._pruned_at("request", row["request_artifact"]),
            },
            "batch": {
                name: row[name]
                for name in (
                    "batch_id",
                    "state",
                    "provider",
                    "mode",
                    "model",
                    "provider_job_id",
                    "provider_outcome",
                    "raw_status",
                    "submitted_at",
                )
            },
            "results": self._results(number),
            "repairs": self._repairs(number),
            "disposition": self._disposition(number),
            "decision": self._decision(number),
            "late_results": self._late_results(number),
            "judgement": self._judgement(number),
            "findings": self._findings(number),
            "reviews": self._reviews(number, record_no),
        }

    def _manifest_row(self, artifact: str, record_id: str) -> int | None:
        """The row's place in the frozen manifest, from 0; None if the file is not there."""
        if not self.artifacts.has("manifest", artifact):
            return None
        rows = (
            scan_frame(MANIFEST, self.artifacts.path("manifest", artifact))
            .select("record_id")
            .with_row_index("row")
            .filter(pl.col("record_id") == record_id)
            .collect()
        )
        return int(rows["row"][0]) if rows.height else None

    def _results(self, attempt_no: int) -> list[dict[str, Any]]:
        rows = self._rows(
            "SELECT f.kind, f.artifact, l.line, l.line_offset, l.line_length, l.anomaly "
            "FROM attempts a JOIN result_files f ON f.batch_no = a.batch_no "
            "JOIN results l ON l.result_file_no = f.result_file_no "
            "AND l.attempt_no = a.attempt_no WHERE a.attempt_no = ? "
            "ORDER BY f.result_file_no, l.line",
            {
                "kind": _TEXT,
                "artifact": _TEXT,
                "line": _INT,
                "offset": _INT,
                "length": _INT,
                "anomaly": _TEXT,
            },
            (attempt_no,),
        )
        return [{**row, "pruned_at": self._pruned_at("result", row["artifact"])} for row in rows]

    def _repairs(self, attempt_no: int) -> list[dict[str, Any]]:
        """What was mended in the form of the attempt's answer, in order."""
        return self._rows(
            "SELECT rule, rule_version, before_digest, after_digest FROM repairs "
            "WHERE attempt_no = ? ORDER BY ordinal",
            {
                "rule": _TEXT,
                "rule_version": _INT,
                "before_digest": _TEXT,
                "after_digest": _TEXT,
            },
            (attempt_no,),
        )

    def _disposition(self, attempt_no: int) -> dict[str, Any] | None:
        rows = self._rows(
            "SELECT disposition, failure_class, diagnostics, model_revision, input_tokens, "
            "output_tokens FROM dispositions WHERE attempt_no = ?",
            {
                "disposition": _TEXT,
                "failure_class": _TEXT,
                "diagnostics": _TEXT,
                "model_revision": _TEXT,
                "input_tokens": _INT,
                "output_tokens": _INT,
            },
            (attempt_no,),
        )
        return rows[0] if rows else None

    def _decision(self, attempt_no: int) -> dict[str, Any] | None:
        """What was decided after the attempt failed."""
        rows = self._rows(
            "SELECT t.decision, t.recovery_path, t.counted, t.reason, t.not_before, l.owner, "
            "l.closing, l.closing_reason FROM retry_decisions t "
            "LEFT JOIN dead_letters l ON l.attempt_no = t.attempt_no WHERE t.attempt_no = ?",
            {
                "decision": _TEXT,
                "recovery_path": _TEXT,
                "counted": _INT,
                "reason": _TEXT,
                "not_before": _TEXT,
                "owner": _TEXT,
                "closing": _TEXT,
                "closing_reason": _TEXT,
            },
            (attempt_no,),
        )
        return {**rows[0], "counted": bool(rows[0]["counted"])} if rows else None

    def _late_results(self, attempt_no: int) -> list[dict[str, Any]]:
        """Lines that came back after the attempt's disposition was written."""
        rows = self._rows(
            "SELECT b.batch_id, f.artifact, l.line, r.line_offset, r.line_length, l.disposition, "
            "l.failure_class, l.used, l.input_tokens, l.output_tokens, l.recorded_at "
            "FROM late_results l JOIN batches b ON b.batch_no = l.batch_no "
            "JOIN result_files f ON f.result_file_no = l.result_file_no "
            "JOIN results r ON r.result_file_no = l.result_file_no AND r.line = l.line "
            "WHERE l.attempt_no = ? ORDER BY l.result_file_no, l.line",
            {
                "came_with": _TEXT,
                "artifact": _TEXT,
                "line": _INT,
                "offset": _INT,
                "length": _INT,
                "disposition": _TEXT,
                "failure_class": _TEXT,
                "used": _INT,
                "input_tokens": _INT,
                "output_tokens": _INT,
                "recorded_at": _TEXT,
            },
            (attempt_no,),
        )
        return [{**row, "used": bool(row["used"])} for row in rows]

    def _judgement(self, attempt_no: int) -> dict[str, Any] | None:
        rows = self._rows(
            "SELECT outcome, values_digest FROM judgements WHERE attempt_no = ?",
            {"outcome": _TEXT, "values_digest": _TEXT},
            (attempt_no,),
        )
        return rows[0] if rows else None

    def _findings(self, attempt_no: int) -> list[dict[str, Any]]:
        return self._rows(
            "SELECT f.rule, f.rule_version, f.severity, f.field, f.note FROM attempts a "
            "JOIN findings f ON f.record_no = a.record_no AND f.attempt_no = a.attempt_no "
            "WHERE a.attempt_no = ? ORDER BY f.finding_no",
            {
                "rule": _TEXT,
                "rule_version": _INT,
                "severity": _TEXT,
                "field": _TEXT,
                "note": _TEXT,
            },
            (attempt_no,),
        )

    def _reviews(self, attempt_no: int, record_no: int) -> list[dict[str, Any]]:
        """Where a person was asked about the attempt's values, and what they decided."""
        rows = self._rows(
            "SELECT review_no, revision, kind, sample_no, slice, opened_at, assigned_to, taken_at, "
            "taken_by, decision, decided_at, reviewer, reason, corrected_digest FROM reviews "
            "WHERE record_no = ? AND attempt_no = ? ORDER BY review_no",
            {
                "review": _INT,
                "revision": _INT,
                "kind": _TEXT,
                "sample": _INT,
                "slice": _TEXT,
                "opened_at": _TEXT,
                "assigned_to": _TEXT,
                "taken_at": _TEXT,
                "taken_by": _TEXT,
                "decision": _TEXT,
                "decided_at": _TEXT,
                "reviewer": _TEXT,
                "reason": _TEXT,
                "corrected_digest": _TEXT,
            },
            (record_no, attempt_no),
        )
        return [{**row, "acts": self._acts(row["review"])} for row in rows]

    def _acts(self, review_no: int) -> list[dict[str, Any]]:
        return self._rows(
            "SELECT revision, act, who, reason, acted_at FROM review_acts WHERE review_no = ? "
            "ORDER BY revision",
            {"revision": _INT, "act": _TEXT, "who": _TEXT, "reason": _TEXT, "at": _TEXT},
            (review_no,),
        )

    def _moves(self, record_no: int) -> list[dict[str, Any]]:
        return self._rows(
            "SELECT m.moved_at, m.from_state, m.to_state, m.reason, m.actor, m.cause, m.chain, "
            "m.members, m.digest FROM move_members n JOIN moves m ON m.move_no = n.move_no "
            "WHERE n.record_no = ? ORDER BY n.move_no",
            {
                "at": _TEXT,
                "from": _TEXT,
                "to": _TEXT,
                "reason": _TEXT,
                "actor": _TEXT,
                "cause": _TEXT,
                "chain": _TEXT,
                "members": _INT,
                "digest": _TEXT,
            },
            (record_no,),
        )

    def _rows(
        self, sql: str, schema: Mapping[str, PolarsType], parameters: Sequence[object]
    ) -> list[dict[str, Any]]:
        return self.ledger.dialect.fetch(self.connection, sql, schema, parameters).to_dicts()
