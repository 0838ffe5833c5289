"""What became of every record and of every document without one: the table under a report.

Belongs here: the rows, their order, and each row as the leaf of a Merkle tree. Does not belong
here: counting them (`tally.py`) and where the table is kept (`kept.py`).

A version's table has every record that was ever in one of its manifests, those of documents that
were changed or removed since among them, and every present document that has no record. Nothing
in a row says when it was computed: the same ledger gives the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

import msgspec
import polars as pl
from sqlalchemy import Connection

from pipeline_assets.account.outcomes import PENDING_REASON, last_reasons
from pipeline_assets.account.standing import PENDING, standings_of
from pipeline_assets.known_version import KnownVersion
from pipeline_assets.slices import SLICE_FACTS, slices
from resources.contracts import FrameContract
from resources.ledger.engine import Ledger
from resources.ledger.numbers import MOST_NUMBERS, is_one_of

OUTCOMES = FrameContract(
    "outcomes",
    1,
    MappingProxyType(
        {
            "subject": pl.String,
            "record_id": pl.String,
            "document_id": pl.String,
            "checksum": pl.String,
            "present": pl.Boolean,
            "state": pl.String,
            "reason": pl.String,
            "batch": pl.String,
            "attempts": pl.Int64,
            "disposition": pl.String,
            "failure_class": pl.String,
            "request_digest": pl.String,
            "judged": pl.String,
            "accepted_digest": pl.String,
            "delivery": pl.String,
            "archive_version": pl.Int64,
            "visible": pl.Boolean,
            "slice": pl.String,
            "media_type": pl.String,
            "pages": pl.Int64,
        }
    ),
)
"""One row a record, or a document without one, sorted by `subject` by code point.

`subject` is the record's id, or the document's where there is no record. `present`: the sources
hold these bytes now. `reason`: why it is excluded, or of the last move of a record that is neither
accepted nor published. `batch`, `disposition`, `failure_class` and `request_digest` are of the
newest attempt, `judged` of the newest answer. `accepted_digest` names the values that were
delivered, or may be. `visible`: the archive shows this record's values."""

ACCEPTED_STATES = ("accepted", "published")

_KEYS = {"subject": pl.String, "record_no": pl.Int64, "document_no": pl.Int64}
_OF_VERSION = "SELECT record_id, record_no, document_no FROM records WHERE version_no = ?"
_OF_BATCH = (
    "SELECT r.record_id, r.record_no, r.document_no FROM batches b JOIN attempts a "
    "ON a.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no "
    "JOIN records r ON r.record_no = a.record_no WHERE b.batch_no = ?"
)
_WITHOUT_RECORD = (
    "SELECT d.document_id, NULL, d.document_no FROM source_entries e "
    "JOIN documents d ON d.document_no = e.document_no "
    "JOIN sources c ON c.source_no = d.source_no AND c.workload = ? "
    "LEFT JOIN records r ON r.version_no = ? AND r.source_version_no = e.source_version_no "
    "WHERE e.to_snapshot IS NULL AND r.record_no IS NULL"
)
_RECORDS = """
SELECT r.record_no, r.record_id, d.document_id, r.checksum,
    CASE WHEN e.entry_no IS NULL THEN 0 ELSE 1 END, COALESCE(s.state, 'unknown'),
    p.media_type, p.language, p.page_count, p.notes, p.partial
FROM records r JOIN documents d ON d.document_no = r.document_no
LEFT JOIN record_state s ON s.record_no = r.record_no
LEFT JOIN source_entries e ON e.document_no = r.document_no
    AND e.source_version_no = r.source_version_no AND e.to_snapshot IS NULL
LEFT JOIN parses p ON p.checksum = r.checksum AND p.parser_key = ?
WHERE """
_RECORD_SCHEMA = {
    "record_no": pl.Int64,
    "record_id": pl.String,
    "document_id": pl.String,
    "checksum": pl.String,
    "present": pl.Int64,
    "state": pl.String,
    "media_type": pl.String,
    **SLICE_FACTS,
}
_ATTEMPTS = """
SELECT n.record_no, n.attempts, b.batch_id, p.disposition, p.failure_class, a.request_digest
FROM (SELECT record_no, COUNT(*) AS attempts, MAX(attempt_no) AS newest FROM attempts
    WHERE {records} GROUP BY record_no) n
JOIN attempts a ON a.attempt_no = n.newest JOIN batches b ON b.batch_no = a.batch_no
LEFT JOIN dispositions p ON p.attempt_no = n.newest
"""
_ATTEMPT_SCHEMA = {
    "record_no": pl.Int64,
    "attempts": pl.Int64,
    "batch": pl.String,
    "disposition": pl.String,
    "failure_class": pl.String,
    "request_digest": pl.String,
}
_JUDGED = """
SELECT n.record_no, j.attempt_no, j.outcome, j.values_digest
FROM (SELECT a.record_no, MAX(a.attempt_no) AS newest FROM attempts a
    JOIN judgements g ON g.attempt_no = a.attempt_no WHERE {records} GROUP BY a.record_no) n
JOIN judgements j ON j.attempt_no = n.newest
"""
_JUDGED_SCHEMA = {
    "record_no": pl.Int64,
    "attempt_no": pl.Int64,
    "judged": pl.String,
    "values_digest": pl.String,
}
_CORRECTED = (
    "SELECT attempt_no, decided_at, corrected_digest FROM reviews "
    "WHERE decision = 'correct' AND {records}"
)
_DELIVERED = (
    "SELECT record_no, promotion, delivered_at, accepted_digest, disposition, entry_no "
    "FROM deliveries WHERE {records}"
)
_DELIVERED_SCHEMA = {
    "record_no": pl.Int64,
    "promotion": pl.Int64,
    "delivered_at": pl.String,
    "delivered_digest": pl.String,
    "delivery": pl.String,
    "entry_no": pl.Int64,
}
_SHOWN = (
    "SELECT h.entry_no, g.record_no, g.archive_version FROM archive_heads h "
    "JOIN archive_entries g ON g.entry_no = h.entry_no WHERE {documents}"
)


def outcome_shards(
    connection: Connection, ledger: Ledger, version: KnownVersion, batch_no: int | None = None
) -> Iterator[pl.DataFrame]:
    """The rows of a version, or of the records of one of its batches (`OUTCOMES`), in shards.

    Memory holds the subjects and one shard.
    """
    keys = _keys(connection, ledger, version, batch_no)
    for part in keys.iter_slices(MOST_NUMBERS):
        records = part.filter(pl.col("record_no").is_not_null())
        documents = part.filter(pl.col("record_no").is_null())["document_no"]
        frames = []
        if records.height:
            frames.append(_of_records(connection, ledger, version, records))
        if documents.len():
            frames.append(_of_documents(connection, ledger, version, documents))
        yield OUTCOMES.conform(pl.concat(frames).sort("subject"))


def leaves_of(frame: pl.DataFrame) -> Iterator[bytes]:
    """Each row as the leaf of a Merkle tree, in the frame's order.

    A leaf is a JSON array without white space, in UTF-8: the contract with its version, then the
    columns of `OUTCOMES` in their order; null, true, false, whole numbers and texts only.
    """
    encode = msgspec.json.Encoder().encode
    for row in OUTCOMES.conform(frame).iter_rows():
        yield encode((OUTCOMES.tag, *row))


def _keys(
    connection: Connection, ledger: Ledger, version: KnownVersion, batch_no: int | None
) -> pl.DataFrame:
    """Every subject in its order, as numbers: the texts are let go once they are sorted."""
    if batch_no is not None:
        parts = list(ledger.dialect.stream(connection, _OF_BATCH, _KEYS, (batch_no,)))
    else:
        of_version = (version.version_no,)
        parts = list(ledger.dialect.stream(connection, _OF_VERSION, _KEYS, of_version))
        parts += ledger.dialect.stream(
            connection, _WITHOUT_RECORD, _KEYS, (version.workload, version.version_no)
        )
    every = pl.concat(parts) if parts else pl.DataFrame(schema=_KEYS)
    return every.sort("subject").drop("subject")


def _of_records(
    connection: Connection, ledger: Ledger, version: KnownVersion, keys: pl.DataFrame
) -> pl.DataFrame:
    numbers = keys["record_no"]
    fetch = ledger.dialect.fetch
    records = fetch(
        connection,
        _RECORDS + is_one_of("r.record_no", numbers),
        _RECORD_SCHEMA,
        (version.parser_key,),
    )
    attempts = fetch(connection, _with(_ATTEMPTS, "record_no", numbers), _ATTEMPT_SCHEMA)
    joined = (
        records.with_columns(slice=slices(records))
        .join(attempts, on="record_no", how="left")
        .join(_answers(connection, ledger, numbers), on="record_no", how="left")
        .join(_deliveries(connection, ledger, keys), on="record_no", how="left")
    )
    unsettled = joined.filter(~pl.col("state").is_in(ACCEPTED_STATES))["record_no"]
    reasons = last_reasons(connection, ledger, unsettled)
    return joined.join(reasons, on="record_no", how="left").select(
        pl.col("record_id").alias("subject"),
        "record_id",
        "document_id",
        "checksum",
        pl.col("present") == 1,
        "state",
        "reason",
        "batch",
        pl.col("attempts").fill_null(0),
        "disposition",
        "failure_class",
        "request_digest",
        "judged",
        _accepted_digest(),
        "delivery",
        "archive_version",
        pl.col("archive_version").is_not_null().alias("visible"),
        "slice",
        "media_type",
        pl.col("page_count").alias("pages"),
    )


def _accepted_digest() -> pl.Expr:
    """The values that were delivered; else those that may be, or might have been."""
    stands = pl.col("state").is_in(ACCEPTED_STATES)
    overtaken = pl.col("state").is_in(("superseded", "withdrawn")) & (
        pl.col("judged") == "accepted"
    )
    return pl.coalesce(
        pl.col("delivered_digest"),
        pl.when(stands | overtaken).then(pl.coalesce("corrected_digest", "values_digest")),
    ).alias("accepted_digest")


def _answers(connection: Connection, ledger: Ledger, numbers: pl.Series) -> pl.DataFrame:
    """record_no, judged, values_digest, corrected_digest of the newest answer of each record."""
    judged = ledger.dialect.fetch(
        connection, _with(_JUDGED, "a.record_no", numbers), _JUDGED_SCHEMA
    )
    corrected = (
        ledger.dialect.fetch(
            connection,
            _with(_CORRECTED, "record_no", numbers),
            {
                "attempt_no": pl.Int64,
                "decided_at": pl.String,
                "corrected_digest": pl.String,
            },
        )
        .sort("decided_at")
        .unique("attempt_no", keep="last")
        .drop("decided_at")
    )
    return judged.join(corrected, on="attempt_no", how="left").drop("attempt_no")


def _deliveries(connection: Connection, ledger: Ledger, keys: pl.DataFrame) -> pl.DataFrame:
    """record_no, delivered_digest, delivery, archive_version; the last is null where not shown."""
    delivered = (
        ledger.dialect.fetch(
            connection, _with(_DELIVERED, "record_no", keys["record_no"]), _DELIVERED_SCHEMA
        )
        .sort("promotion", "delivered_at")
        .unique("record_no", keep="last")
        .select("record_no", "delivered_digest", "delivery")
    )
    shown = ledger.dialect.fetch(
        connection,
        _SHOWN.format(documents=is_one_of("h.document_no", keys["document_no"])),
        {"entry_no": pl.Int64, "record_no": pl.Int64, "archive_version": pl.Int64},
    ).drop("entry_no")
    return delivered.join(shown, on="record_no", how="left")


def _of_documents(
    connection: Connection, ledger: Ledger, version: KnownVersion, numbers: pl.Series
) -> pl.DataFrame:
    found = standings_of(connection, ledger, version, numbers)
    nothing = {
        name: pl.lit(None, dtype=OUTCOMES.schema[name])
        for name in (
            "record_id",
            "batch",
            "disposition",
            "failure_class",
            "request_digest",
            "judged",
            "accepted_digest",
            "delivery",
            "archive_version",
            "slice",
        )
    }
    reason = pl.when(pl.col("state") == PENDING).then(pl.lit(PENDING_REASON)).otherwise("reason")
    return (
        found.with_columns(
            subject=pl.col("document_id"),
            present=pl.lit(value=True),
            reason=reason,
            attempts=pl.lit(0, dtype=pl.Int64),
            visible=pl.lit(value=False),
        )
        .with_columns(**nothing)
        .select(list(OUTCOMES.schema))
    )


def _with(sql: str, column: str, numbers: pl.Series) -> str:
    return sql.format(records=is_one_of(column, numbers))
