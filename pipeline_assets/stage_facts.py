"""What the ledger says about each stage: the digest of its content, and a version's numbers.

Belongs here: the queries behind data versions and the numbers that the assets report. Does not
belong here: reporting them (`asset.py` of each stage) and the account of every document
(`pipeline_assets/account`).

A digest covers what a stage made and nothing of when or how: the same content gives the same
digest, so materialising again without new work keeps the data version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import Row, Select, bindparam, select, text

from resources.clock import from_text
from resources.ledger.engine import Ledger
from resources.ledger.reviews import QUALITY_SAMPLE
from resources.ledger.schema import (
    archive_entries,
    batches,
    dispositions,
    documents,
    manifests,
    parses,
    result_files,
    reviews,
    source_entries,
    source_versions,
    sources,
)

ROWS_A_FETCH = 10_000
"""Rows held at a time while a digest is computed: memory does not grow with the archive."""

SETTLED = frozenset({"published", "rejected", "discarded", "cancelled", "superseded", "withdrawn"})
"""States in which nobody and nothing has to do anything more for a record."""


@dataclass(frozen=True)
class VersionNumbers:
    """How a version's records stand; only records of documents as they are now.

    Attributes:
        states: records by state.
        excluded: present documents that have no record, by reason.
        failures: failed attempts ever, by failure class.
        oldest_open_hours: age of the oldest record that still needs something; 0 if none does.
    """

    states: dict[str, int]
    excluded: dict[str, int]
    failures: dict[str, int]
    oldest_open_hours: float

    def in_state(self, state: str) -> int:
        """Records in one state."""
        return self.states.get(state, 0)


def parses_digest(ledger: Ledger, parser_key: str, workload: str) -> str:
    """Over (checksum, parser key, outcome) of every document that a workload's sources hold."""
    present = (
        select(source_versions.c.checksum)
        .join(
            source_entries,
            source_entries.c.source_version_no == source_versions.c.source_version_no,
        )
        .join(documents, documents.c.document_no == source_entries.c.document_no)
        .join(sources, sources.c.source_no == documents.c.source_no)
        .where(source_entries.c.to_snapshot.is_(None), sources.c.workload == workload)
    )
    # No text_pack: the same texts are packed otherwise after an interrupted run.
    return _digest(
        ledger,
        select(parses.c.checksum, parses.c.parser_key, parses.c.excluded, parses.c.page_count)
        .where(parses.c.parser_key == parser_key, parses.c.checksum.in_(present))
        .order_by(parses.c.checksum),
    )


def manifests_digest(ledger: Ledger, version_no: int) -> str:
    """Over the digests of a version's manifests."""
    return _digest(
        ledger,
        select(manifests.c.manifest_id, manifests.c.digest)
        .where(manifests.c.version_no == version_no)
        .order_by(manifests.c.manifest_no),
    )


def submitted_digest(ledger: Ledger, version_no: int) -> str:
    """Over the request bytes and provider jobs of a version's submitted batches."""
    return _digest(
        ledger,
        select(batches.c.batch_id, batches.c.request_artifact, batches.c.provider_job_id)
        .where(batches.c.version_no == version_no, batches.c.submitted_at.is_not(None))
        .order_by(batches.c.batch_no),
    )


def results_digest(ledger: Ledger, version_no: int) -> str:
    """Over the raw result files of a version's batches."""
    return _digest(
        ledger,
        select(batches.c.batch_id, result_files.c.kind, result_files.c.artifact)
        .join(batches, batches.c.batch_no == result_files.c.batch_no)
        .where(batches.c.version_no == version_no)
        .order_by(result_files.c.result_file_no),
    )


def staging_digest(ledger: Ledger, version_no: int) -> str:
    """Over the judged values of a version's batches."""
    return _digest(
        ledger,
        select(batches.c.batch_id, batches.c.staging_artifact)
        .where(batches.c.version_no == version_no, batches.c.staging_artifact.is_not(None))
        .order_by(batches.c.batch_no),
    )


def archive_digest(ledger: Ledger, version_no: int) -> str:
    """Over the entries of a version that are visible now."""
    return _digest(
        ledger,
        select(
            documents.c.document_id,
            archive_entries.c.archive_version,
            archive_entries.c.content_digest,
            archive_entries.c.thumbnail,
        )
        .join(documents, documents.c.document_no == archive_entries.c.document_no)
        .where(archive_entries.c.version_no == version_no, archive_entries.c.valid_to.is_(None))
        .order_by(archive_entries.c.document_no),
    )


def samples_digest(ledger: Ledger, version_no: int) -> str:
    """Over what was drawn into a version's quality samples and what was decided of it."""
    return _digest(
        ledger,
        select(reviews.c.record_no, reviews.c.values_digest, reviews.c.slice, reviews.c.decision)
        .where(reviews.c.version_no == version_no, reviews.c.kind == QUALITY_SAMPLE)
        .order_by(reviews.c.review_no),
    )


def version_numbers(ledger: Ledger, version_no: int) -> VersionNumbers:
    """How the records of a version stand now."""
    with ledger.read() as connection:
        states = connection.execute(_STATES, {"version_no": version_no}).all()
        excluded = connection.execute(_EXCLUDED, {"version_no": version_no}).all()
        failures = connection.execute(
            _FAILURES, {"version_no": version_no, "succeeded": "succeeded"}
        ).all()
    opened = [from_text(row.since) for row in states if row.state not in SETTLED]
    age = max((ledger.clock() - moment for moment in opened), default=None)
    return VersionNumbers(
        states=_counts(states),
        excluded=_counts(excluded),
        failures=_counts(failures),
        oldest_open_hours=0.0 if age is None else round(age.total_seconds() / 3600, 2),
    )


_STATES = text(
    "SELECT s.state, COUNT(*) AS records, MIN(m.frozen_at) AS since FROM records r "
    "JOIN record_state s ON s.record_no = r.record_no "
    "JOIN manifests m ON m.manifest_no = r.manifest_no "
    "JOIN source_entries e ON e.document_no = r.document_no "
    "AND e.source_version_no = r.source_version_no AND e.to_snapshot IS NULL "
    "WHERE r.version_no = :version_no GROUP BY s.state ORDER BY s.state"
)
_EXCLUDED = text(
    "SELECT reason, COUNT(*) AS records FROM exclusions WHERE version_no = :version_no "
    "GROUP BY reason ORDER BY reason"
)
_FAILURES = (
    select(dispositions.c.failure_class, text("COUNT(*) AS records"))
    .select_from(dispositions)
    .join(
        batches,
        dispositions.c.attempt_no.between(batches.c.first_attempt_no, batches.c.last_attempt_no),
    )
    .where(
        batches.c.version_no == bindparam("version_no"),
        dispositions.c.disposition != bindparam("succeeded"),
    )
    .group_by(dispositions.c.failure_class)
    .order_by(dispositions.c.failure_class)
)


def _counts(rows: Iterable[Row[*tuple[Any, ...]]]) -> dict[str, int]:
    return {str(row[0]): int(row[1]) for row in rows}


def _digest(ledger: Ledger, rows: Select[*tuple[Any, ...]]) -> str:
    digest = hashlib.sha256()
    encoder = msgspec.json.Encoder()
    with ledger.read() as connection:
        for row in connection.execute(rows.execution_options(yield_per=ROWS_A_FETCH)):
            digest.update(encoder.encode(tuple(row)))
            digest.update(b"\n")
    return digest.hexdigest()
