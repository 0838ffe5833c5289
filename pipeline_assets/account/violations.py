"""Whether the account adds up: every way in which it might not, as sentences.

Belongs here: set-based checks of the invariants over one version, each a statement or two. Does
not belong here: files on disk, leases and the journal's digests (`integrity.py`).
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.account import representations
from pipeline_assets.account.standing import UNKNOWN, Standings
from pipeline_assets.known_version import KnownVersion
from resources.ledger.batches import COMPLETE
from resources.ledger.engine import Ledger
from resources.ledger.representations import (
    headless_entries,
    name_entries,
    stray_search_entries,
    unsearchable_entries,
)

SHOWN = 3
"""A sentence names so many examples, and counts the rest."""

# Attempt numbers of a batch are contiguous, so ranges of the key stand in for an index.
_BATCHES = """
SELECT b.batch_id, b.state, b.expected_records, b.reconciled_records,
    b.last_attempt_no - b.first_attempt_no + 1,
    (SELECT COUNT(*) FROM attempts a WHERE a.batch_no = b.batch_no
        AND a.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no),
    (SELECT COUNT(DISTINCT a.record_no) FROM attempts a
        WHERE a.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no),
    (SELECT COUNT(*) FROM dispositions p
        WHERE p.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no)
FROM batches b WHERE {which} ORDER BY b.batch_no
"""
_MANIFESTS = """
SELECT m.manifest_id, m.expected, CAST(COALESCE(SUM(b.expected_records), 0) AS BIGINT)
FROM manifests m LEFT JOIN batches b ON b.manifest_no = m.manifest_no
WHERE m.version_no = ? GROUP BY m.manifest_id, m.expected
HAVING m.expected <> COALESCE(SUM(b.expected_records), 0) ORDER BY m.manifest_id
"""
_COUNTS = (
    (
        "{n} records have no state",
        "SELECT COUNT(*) FROM records r LEFT JOIN record_state s ON s.record_no = r.record_no "
        "WHERE r.version_no = ? AND s.record_no IS NULL",
    ),
    (
        "{n} records are in no manifest of the version",
        "SELECT COUNT(*) FROM records r LEFT JOIN manifests m ON m.manifest_no = r.manifest_no "
        "AND m.version_no = r.version_no WHERE r.version_no = ? AND m.manifest_no IS NULL",
    ),
    (
        "{n} attempts are at records that do not exist",
        "SELECT COUNT(*) FROM batches b JOIN attempts a "
        "ON a.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no "
        "LEFT JOIN records r ON r.record_no = a.record_no AND r.version_no = b.version_no "
        "WHERE b.version_no = ? AND r.record_no IS NULL",
    ),
    (
        "{n} records were never attempted",
        "SELECT COUNT(*) FROM records r WHERE r.version_no = ? AND NOT EXISTS "
        "(SELECT 1 FROM attempts a WHERE a.record_no = r.record_no)",
    ),
    (
        "{n} judgements are of attempts that did not succeed",
        "SELECT COUNT(*) FROM batches b JOIN judgements j "
        "ON j.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no "
        "LEFT JOIN dispositions p ON p.attempt_no = j.attempt_no "
        "AND p.disposition = 'succeeded' WHERE b.version_no = ? AND p.attempt_no IS NULL "
        "AND NOT EXISTS (SELECT 1 FROM late_results l "
        "WHERE l.attempt_no = j.attempt_no AND l.used = 1 AND l.disposition = 'succeeded')",
    ),
    (
        "{n} records wait for a retry without a decision that says so",
        "SELECT COUNT(*) FROM records r JOIN record_state s ON s.record_no = r.record_no "
        "WHERE r.version_no = ? AND s.state = 'retry_wait' AND NOT EXISTS "
        "(SELECT 1 FROM attempts a JOIN retry_decisions t ON t.attempt_no = a.attempt_no "
        "WHERE a.record_no = r.record_no AND t.decision IN ('retry', 'hold'))",
    ),
    (
        "{n} records are dead letters that nobody owns",
        "SELECT COUNT(*) FROM records r JOIN record_state s ON s.record_no = r.record_no "
        "WHERE r.version_no = ? AND s.state = 'dead_letter' AND NOT EXISTS "
        "(SELECT 1 FROM dead_letters l WHERE l.record_no = r.record_no AND l.closed_at IS NULL)",
    ),
    (
        "{n} records were given two attempts at once",
        "SELECT COUNT(*) FROM (SELECT a.record_no FROM batches b JOIN attempts a "
        "ON a.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no "
        "WHERE b.version_no = ? AND b.state NOT IN ('completed', 'completed_with_errors', "
        "'retry_required', 'cancelled') GROUP BY a.record_no HAVING COUNT(*) > 1) w",
    ),
    (
        "{n} published records have no archive entry",
        "SELECT COUNT(*) FROM records r JOIN record_state s ON s.record_no = r.record_no "
        "LEFT JOIN archive_entries e ON e.document_no = r.document_no "
        "AND e.record_no = r.record_no "
        "WHERE r.version_no = ? AND s.state = 'published' AND e.entry_no IS NULL",
    ),
    (
        "{n} published records were not delivered",
        "SELECT COUNT(*) FROM records r JOIN record_state s ON s.record_no = r.record_no "
        "WHERE r.version_no = ? AND s.state = 'published' AND NOT EXISTS "
        "(SELECT 1 FROM deliveries y WHERE y.record_no = r.record_no)",
    ),
    (
        "{n} archive entries are of records that were never published",
        "SELECT COUNT(*) FROM archive_entries e "
        "LEFT JOIN record_state s ON s.record_no = e.record_no "
        # What was published stays visible while a replay asks again, and whatever comes of it.
        "WHERE e.version_no = ? AND e.valid_to IS NULL "
        "AND (s.state IS NULL OR s.state = 'withdrawn' OR (s.state <> 'published' "
        "AND COALESCE((SELECT m.to_state FROM move_members k "
        "JOIN moves m ON m.move_no = k.move_no WHERE k.record_no = e.record_no "
        "AND m.from_state = 'published' ORDER BY m.move_no DESC LIMIT 1), '') <> 'prepared'))",
    ),
)
_LOOSE_DISPOSITIONS = (
    "SELECT COUNT(*) FROM dispositions p LEFT JOIN attempts a ON a.attempt_no = p.attempt_no "
    "WHERE a.attempt_no IS NULL"
)
_COUNT = {"n": pl.Int64}


def find_violations(
    connection: Connection, ledger: Ledger, version: KnownVersion, standings: Standings
) -> list[str]:
    """What does not add up under a version, a sentence each; empty where the invariant holds."""
    return [
        *_of_documents(standings),
        *_of_batches(connection, ledger, "b.version_no = ?", version.version_no),
        *_of_manifests(connection, ledger, version),
        *_of_counts(connection, ledger, version),
        *_of_representations(connection, ledger),
    ]


def batch_violations(connection: Connection, ledger: Ledger, batch_no: int) -> list[str]:
    """What does not add up in one batch, a sentence each; its records alone are read."""
    return _of_batches(connection, ledger, "b.batch_no = ?", batch_no)


def pending_sentence(pending: int) -> str:
    """What is said of documents that were scanned after the last freeze."""
    return (
        f"{pending} documents have neither a record nor an exclusion: the source changed after "
        "the last run of this version; run it again"
    )


def some(names: list[str]) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _of_documents(standings: Standings) -> list[str]:
    found = []
    if standings.pending:
        found.append(pending_sentence(standings.pending))
    if standings.doubled:
        found.append(f"{standings.doubled} documents have both a record and an exclusion")
    if standings.states.get(UNKNOWN):
        found.append(f"{standings.states[UNKNOWN]} documents have a record without a state")
    return found


def _of_batches(connection: Connection, ledger: Ledger, which: str, number: int) -> list[str]:
    schema = {
        "batch_id": pl.String,
        "state": pl.String,
        "expected": pl.Int64,
        "reconciled": pl.Int64,
        "span": pl.Int64,
        "attempts": pl.Int64,
        "records": pl.Int64,
        "dispositions": pl.Int64,
    }
    rows = ledger.dialect.fetch(connection, _BATCHES.format(which=which), schema, (number,))
    found = []
    for row in rows.iter_rows(named=True):
        name, expected = row["batch_id"], row["expected"]
        if not expected == row["span"] == row["attempts"] == row["records"]:
            found.append(
                f"batch {name} should hold {expected} attempts at as many records and holds "
                f"{row['attempts']} at {row['records']}"
            )
        if row["state"] == "incident":
            found.append(
                f"batch {name} is an incident: {row['dispositions']} of {expected} attempts have "
                "a disposition"
            )
        elif row["state"] in COMPLETE:
            if not expected == row["dispositions"] == row["reconciled"]:
                found.append(
                    f"batch {name} is {row['state']} and has {row['dispositions']} dispositions "
                    f"for {expected} attempts"
                )
        elif row["dispositions"] > 0 and row["state"] != "reconciling":
            found.append(f"batch {name} is {row['state']} and has dispositions already")
    return found


def _of_manifests(connection: Connection, ledger: Ledger, version: KnownVersion) -> list[str]:
    rows = ledger.dialect.fetch(
        connection,
        _MANIFESTS,
        {"manifest_id": pl.String, "expected": pl.Int64, "in_batches": pl.Int64},
        (version.version_no,),
    )
    return [
        f"manifest {name} has {expected} records and its batches have {in_batches}"
        for name, expected, in_batches in rows.iter_rows()
    ]


def _of_counts(connection: Connection, ledger: Ledger, version: KnownVersion) -> list[str]:
    found = []
    for sentence, sql in _COUNTS:
        count = ledger.dialect.fetch(connection, sql, _COUNT, (version.version_no,)).item()
        if count:
            found.append(sentence.format(n=count))
    loose = ledger.dialect.fetch(connection, _LOOSE_DISPOSITIONS, _COUNT).item()
    if loose:
        found.append(f"{loose} dispositions belong to no attempt")
    return found


def _of_representations(connection: Connection, ledger: Ledger) -> list[str]:
    found = []
    for sentence, frame in (
        (
            "documents whose archive entry and head disagree",
            headless_entries(connection, ledger).unique("document_id", maintain_order=True),
        ),
        (
            "published documents without a thumbnail",
            representations.without_thumbnail(connection, ledger),
        ),
        (
            "published documents that search cannot find (tallybook doctor --fix)",
            name_entries(connection, ledger, unsearchable_entries(connection, ledger)),
        ),
    ):
        names = frame["document_id"].to_list()
        if names:
            found.append(f"{len(names)} {sentence}: {some(names)}")
    stray = stray_search_entries(connection, ledger).height
    if stray:
        found.append(f"{stray} search entries of nothing visible (tallybook doctor --fix)")
    return found
