"""Erased documents in the ledger: the tombstones, and what is taken out of rows.

Belongs here: every statement on `erasures` and `redactions`, finding where something of a document
stands, and emptying the columns that hold its values. Does not belong here: deciding whether a
document may be erased and changing files (`pipeline_assets/erasure`).

Which columns are emptied and which stay is decided in `docs/adr/023-erasure.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import msgspec
import polars as pl
from sqlalchemy import Connection, delete, insert, select, text, update

from resources.artifacts import Kind
from resources.ledger.archive import end_entries
from resources.ledger.archive_changes import open_change
from resources.ledger.archive_visibility import visible_of_document
from resources.ledger.dead_letters import close_dead_letters
from resources.ledger.engine import Ledger
from resources.ledger.moves import Cause, move_records, version_chain
from resources.ledger.reviews import close_overtaken
from resources.ledger.schema import (
    archive_entries,
    erasures,
    findings,
    parses,
    records,
    redactions,
    replay_members,
    reviews,
)

NOTHING = "{}"
"""The content of an archive entry whose document was erased."""

FACT_SCHEMA = {
    "record_no": pl.Int64,
    "record_id": pl.String,
    "version_no": pl.Int64,
    "state": pl.String,
    "checksum": pl.String,
}
BATCH_SCHEMA = {"batch_id": pl.String, "state": pl.String}
NEEDED_SCHEMA = {"checksum": pl.String, "document_id": pl.String}
RANGE_SCHEMA = {"artifact": pl.String, "offset": pl.Int64, "length": pl.Int64}
FRAME_SCHEMA = {"artifact": pl.String}
TEXT_SCHEMA = {"checksum": pl.String, "text_pack": pl.String, "thumbnail": pl.String}

# Batches that somebody is still at, or that are still at their provider.
_OPEN = "b.state NOT IN ('completed', 'completed_with_errors', 'retry_required', 'cancelled')"
_OF_DOCUMENT = "JOIN records r ON r.record_no = a.record_no AND r.document_no = ? "
_BATCHES = f"SELECT DISTINCT a.batch_no FROM attempts a {_OF_DOCUMENT}"  # noqa: S608
# Late results came in with another batch than that of their attempt.
_LATE_BATCHES = (
    "SELECT DISTINCT l.batch_no FROM late_results l "
    "JOIN records r ON r.record_no = l.record_no AND r.document_no = ?"
)


@dataclass(frozen=True)
class Begun:
    """An erasure that was begun, as its row says.

    Attributes:
        erasure_no: its number.
        document_no: whose.
        reason: why.
        actor: who wanted it.
        begun_at: when.
        finished_at: None while files are still to be purged.
        purged: what goes, and how much went.
    """

    erasure_no: int
    document_no: int
    reason: str
    actor: str
    begun_at: str
    finished_at: str | None
    purged: Purged


class Purged(msgspec.Struct, frozen=True):
    """What an erasure takes away: digests that were decided when it began, and counts.

    Attributes:
        checksums: of the bytes that go; those that another document needs stay.
        shared: of the bytes that stay.
        text_packs: artifacts with their text.
        thumbnails: page images that no other document has.
        records: records withdrawn.
        entries: archive entries emptied.
        reviews: corrections emptied.
        notes: notes of findings emptied.
        artifacts: files changed or deleted.
        bytes: taken out of files.
        missing: files that were not there.
    """

    checksums: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    text_packs: tuple[str, ...] = ()
    thumbnails: tuple[str, ...] = ()
    records: int = 0
    entries: int = 0
    reviews: int = 0
    notes: int = 0
    artifacts: int = 0
    bytes: int = 0
    missing: int = 0


@dataclass(frozen=True)
class Standing:
    """What the ledger knows of a document that is to be erased.

    Attributes:
        records: `FACT_SCHEMA`.
        open_batches: `BATCH_SCHEMA`: unfinished batches that hold a request of it.
        needed: `NEEDED_SCHEMA`: its bytes that another document needs, and which.
        checksums: of every version of it that was ever seen.
    """

    records: pl.DataFrame
    open_batches: pl.DataFrame
    needed: pl.DataFrame
    checksums: tuple[str, ...] = field(default=())


def erased_documents(ledger: Ledger) -> pl.Series:
    """document_no of every document that was erased; it is never processed again."""
    with ledger.read() as connection:
        return ledger.dialect.fetch(
            connection,
            "SELECT DISTINCT document_no FROM erasures ORDER BY document_no",
            {"document_no": pl.Int64},
        )["document_no"]


def erasure_of(connection: Connection, document_no: int) -> Begun | None:
    """The newest erasure of a document; None where it was never erased."""
    row = connection.execute(
        select(erasures)
        .where(erasures.c.document_no == document_no)
        .order_by(erasures.c.erasure_no.desc())
        .limit(1)
    ).first()
    if row is None:
        return None
    return Begun(
        row.erasure_no,
        row.document_no,
        row.reason,
        row.actor,
        row.begun_at,
        row.finished_at,
        msgspec.json.decode(row.purged, type=Purged),
    )


def is_erased(connection: Connection, record_no: int) -> bool:
    """Was the document of a record erased?"""
    return (
        connection.execute(
            select(erasures.c.erasure_no)
            .join(records, records.c.document_no == erasures.c.document_no)
            .where(records.c.record_no == record_no)
            .limit(1)
        ).first()
        is not None
    )


def standing_of_document(connection: Connection, ledger: Ledger, document_no: int) -> Standing:
    """What decides whether a document can be erased, and how much of it."""
    dialect = ledger.dialect
    return Standing(
        records=dialect.fetch(
            connection,
            "SELECT r.record_no, r.record_id, r.version_no, s.state, r.checksum FROM records r "
            "JOIN record_state s ON s.record_no = r.record_no WHERE r.document_no = ? "
            "ORDER BY r.record_no",
            FACT_SCHEMA,
            (document_no,),
        ),
        open_batches=dialect.fetch(
            connection,
            f"SELECT b.batch_id, b.state FROM batches b WHERE {_OPEN} "  # noqa: S608
            f"AND b.batch_no IN ({_BATCHES}) ORDER BY b.batch_no",
            BATCH_SCHEMA,
            (document_no,),
        ),
        needed=dialect.fetch(
            connection,
            "SELECT DISTINCT v.checksum, d.document_id FROM source_versions own "
            "JOIN source_versions v ON v.checksum = own.checksum "
            "AND v.document_no <> own.document_no "
            "JOIN documents d ON d.document_no = v.document_no WHERE own.document_no = ? "
            "AND NOT EXISTS (SELECT 1 FROM erasures x WHERE x.document_no = v.document_no) "
            "AND (EXISTS (SELECT 1 FROM source_entries e "
            "WHERE e.source_version_no = v.source_version_no AND e.to_snapshot IS NULL) "
            # A withdrawn record too: its document may come back, and the audit names its bytes.
            "OR EXISTS (SELECT 1 FROM records r WHERE r.document_no = v.document_no "
            "AND r.source_version_no = v.source_version_no)) "
            "ORDER BY v.checksum, d.document_id",
            NEEDED_SCHEMA,
            (document_no,),
        ),
        checksums=tuple(
            dialect.fetch(
                connection,
                "SELECT checksum FROM source_versions WHERE document_no = ? ORDER BY checksum",
                {"checksum": pl.String},
                (document_no,),
            )["checksum"]
        ),
    )


def versions_of_document(connection: Connection, ledger: Ledger, document_no: int) -> list[str]:
    """Keys of the versions that may freeze a request of the document: those of its workload."""
    return ledger.dialect.fetch(
        connection,
        "SELECT v.key FROM processing_versions v JOIN sources c ON c.workload = v.workload "
        "JOIN documents d ON d.source_no = c.source_no AND d.document_no = ? ORDER BY v.key",
        {"key": pl.String},
        (document_no,),
    )["key"].to_list()


def begin_erasure(
    connection: Connection,
    ledger: Ledger,
    document_no: int,
    standing: Standing,
    checksums: tuple[str, ...],
    shared: tuple[str, ...],
    cause: Cause,
) -> Begun:
    """Take a document out of everything that the ledger shows or holds of it.

    Args:
        connection: a write transaction that holds the archive's lock.
        ledger: the ledger.
        document_no: the document.
        standing: what was read of it in this transaction.
        checksums: of the bytes that are purged.
        shared: of the bytes that another document needs.
        cause: why, by whom and when.

    Raises:
        MoveRefused: a record moved meanwhile; roll back.
    """
    packs, images = _texts_of(connection, ledger, document_no, checksums)
    key = connection.execute(
        insert(erasures).values(
            document_no=document_no,
            reason=cause.reason,
            actor=cause.actor,
            begun_at=cause.at,
            finished_at=None,
            purged="{}",
        )
    ).inserted_primary_key
    assert key is not None  # noqa: S101 - both databases return the key of a single insert
    moved = _withdraw(
        connection,
        ledger,
        standing.records,
        replace(cause, reason=f"its document was erased: {cause.reason}"),
    )
    with open_change(connection, "erasure", None, cause) as change:
        visible = visible_of_document(connection, ledger, document_no)
        if not visible.is_empty():
            end_entries(connection, ledger, visible, change.at, change.number)
            change.count(0, visible.height)
    entries, corrections, notes = _empty(connection, ledger, document_no, standing.records)
    _forget_parses(connection, checksums)
    purged = Purged(
        checksums=checksums,
        shared=shared,
        text_packs=tuple(packs),
        thumbnails=tuple(images),
        records=moved,
        entries=entries,
        reviews=corrections,
        notes=notes,
    )
    number = int(key[0])
    note_purged(connection, number, purged, None)
    return Begun(number, document_no, cause.reason, cause.actor, cause.at, None, purged)


def look_through_again(
    connection: Connection, ledger: Ledger, begun: Begun, standing: Standing
) -> Begun:
    """Empty what came back since an erasure began, and find the files that hold it.

    Bytes that another document needs by now are left to it.
    """
    needed = set(standing.needed["checksum"])
    checksums = tuple(
        name for name in (*begun.purged.checksums, *standing.checksums) if name not in needed
    )
    checksums = tuple(dict.fromkeys(checksums))
    packs, images = _texts_of(connection, ledger, begun.document_no, checksums)
    entries, corrections, notes = _empty(connection, ledger, begun.document_no, standing.records)
    _forget_parses(connection, checksums)
    was = begun.purged
    purged = msgspec.structs.replace(
        was,
        checksums=checksums,
        text_packs=tuple(dict.fromkeys((*was.text_packs, *packs))),
        thumbnails=tuple(dict.fromkeys((*was.thumbnails, *images))),
        entries=max(was.entries, entries),
        reviews=was.reviews + corrections,
        notes=was.notes + notes,
        missing=0,
    )
    note_purged(connection, begun.erasure_no, purged, begun.finished_at)
    return replace(begun, purged=purged)


def note_purged(
    connection: Connection, erasure_no: int, purged: Purged, finished_at: str | None
) -> None:
    """Write how far an erasure is."""
    connection.execute(
        update(erasures)
        .where(erasures.c.erasure_no == erasure_no)
        .values(purged=msgspec.json.encode(purged).decode(), finished_at=finished_at)
    )


def note_redaction(
    connection: Connection, kind: Kind, digest: str, erasure_no: int, present: str, at: str
) -> None:
    """Write which digest an artifact has after an erasure; once more, where it is done again."""
    place = (
        (redactions.c.kind == kind)
        & (redactions.c.digest == digest)
        & (redactions.c.erasure_no == erasure_no)
    )
    connection.execute(delete(redactions).where(place))
    connection.execute(
        insert(redactions).values(
            kind=kind,
            digest=digest,
            erasure_no=erasure_no,
            present_digest=present,
            redacted_at=at,
        )
    )


def present_digests(ledger: Ledger, kind: Kind, digest: str) -> frozenset[str]:
    """The digests that an artifact had after its erasures."""
    with ledger.read() as connection:
        return frozenset(
            connection.execute(
                select(redactions.c.present_digest).where(
                    redactions.c.kind == kind, redactions.c.digest == digest
                )
            ).scalars()
        )


def redactions_now(connection: Connection, ledger: Ledger) -> pl.DataFrame:
    """Every artifact that something was erased from: kind, digest, present_digest of the last."""
    return ledger.dialect.fetch(
        connection,
        "SELECT kind, digest, present_digest FROM redactions ORDER BY redacted_at, erasure_no",
        {"kind": pl.String, "digest": pl.String, "present_digest": pl.String},
    ).unique(["kind", "digest"], keep="last", maintain_order=True)


def request_ranges(connection: Connection, ledger: Ledger, document_no: int) -> pl.DataFrame:
    """Where in request files its lines stand (`RANGE_SCHEMA`)."""
    return ledger.dialect.fetch(
        connection,
        "SELECT b.request_artifact, a.request_offset, a.request_length FROM attempts a "  # noqa: S608
        f"{_OF_DOCUMENT}JOIN batches b ON b.batch_no = a.batch_no",
        RANGE_SCHEMA,
        (document_no,),
    )


def result_ranges(connection: Connection, ledger: Ledger, document_no: int) -> pl.DataFrame:
    """Where in result files lines for its attempts stand (`RANGE_SCHEMA`), late ones too."""
    return ledger.dialect.fetch(
        connection,
        "SELECT f.artifact, l.line_offset, l.line_length FROM results l "  # noqa: S608
        "JOIN result_files f ON f.result_file_no = l.result_file_no "
        f"JOIN attempts a ON a.attempt_no = l.attempt_no {_OF_DOCUMENT}",
        RANGE_SCHEMA,
        (document_no,),
    )


def result_artifacts(connection: Connection, ledger: Ledger, document_no: int) -> list[str]:
    """Result files that may hold a line about it: of its batches, and where late lines came in."""
    return ledger.dialect.fetch(
        connection,
        f"SELECT DISTINCT f.artifact FROM result_files f WHERE f.batch_no IN ({_BATCHES}) "  # noqa: S608
        f"OR f.batch_no IN ({_LATE_BATCHES}) ORDER BY f.artifact",
        {"artifact": pl.String},
        (document_no, document_no),
    )["artifact"].to_list()


def frame_artifacts(connection: Connection, ledger: Ledger, document_no: int) -> list[str]:
    """Frames that may hold rows of its attempts: collected, staged, places, of late ones too."""
    columns = ("collected_artifact", "staging_artifact", "places_artifact")
    parts = [
        f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL "  # noqa: S608 - our own names
        f"AND batch_no IN ({which})"
        for table, which in (("batches", _BATCHES), ("late_answers", _LATE_BATCHES))
        for column in columns
    ]
    return ledger.dialect.fetch(
        connection, " UNION ".join(parts), FRAME_SCHEMA, (document_no,) * len(parts)
    )["artifact"].to_list()


def attempts_of_document(connection: Connection, ledger: Ledger, document_no: int) -> pl.Series:
    """attempt_no of every attempt at its records."""
    return ledger.dialect.fetch(
        connection,
        f"SELECT a.attempt_no FROM attempts a {_OF_DOCUMENT}ORDER BY a.attempt_no",  # noqa: S608
        {"attempt_no": pl.Int64},
        (document_no,),
    )["attempt_no"]


def custom_id_parts(connection: Connection, ledger: Ledger, document_no: int) -> pl.DataFrame:
    """batch_key and index of every attempt at its records."""
    return ledger.dialect.fetch(
        connection,
        "SELECT b.batch_key, a.attempt_no - b.first_attempt_no FROM attempts a "  # noqa: S608
        f"{_OF_DOCUMENT}JOIN batches b ON b.batch_no = a.batch_no",
        {"batch_key": pl.String, "index": pl.Int64},
        (document_no,),
    )


def still_named(connection: Connection, thumbnail: str) -> bool:
    """Does the parse cache, or an entry of a document that was not erased, name a page image?"""
    erased = select(erasures.c.document_no)
    in_cache = select(parses.c.thumbnail).where(parses.c.thumbnail == thumbnail).limit(1)
    in_archive = (
        select(archive_entries.c.thumbnail)
        .where(
            archive_entries.c.thumbnail == thumbnail,
            archive_entries.c.document_no.not_in(erased),
        )
        .limit(1)
    )
    return any(connection.execute(query).first() is not None for query in (in_cache, in_archive))


def texts_in_use(connection: Connection, ledger: Ledger, text_pack: str) -> set[str]:
    """The checksum of every parse whose text is in a pack."""
    return set(
        ledger.dialect.fetch(
            connection,
            "SELECT checksum FROM parses WHERE text_pack = ?",
            {"checksum": pl.String},
            (text_pack,),
        )["checksum"]
    )


def kept_at_provider(connection: Connection, ledger: Ledger, document_no: int) -> list[str]:
    """Batches with a request of it whose files were never deleted at their provider."""
    return ledger.dialect.fetch(
        connection,
        "SELECT b.batch_id FROM batches b WHERE b.provider_job_id IS NOT NULL "  # noqa: S608
        "AND b.mode = 'batch' AND b.remote_deleted_at IS NULL "
        f"AND b.batch_no IN ({_BATCHES}) ORDER BY b.batch_no",
        {"batch_id": pl.String},
        (document_no,),
    )["batch_id"].to_list()


def came_back(connection: Connection, ledger: Ledger) -> pl.DataFrame:
    """Result lines of erased documents in files that were stored since: document_id, artifact."""
    return ledger.dialect.fetch(
        connection,
        "SELECT DISTINCT d.document_id, f.artifact FROM erasures x "
        "JOIN documents d ON d.document_no = x.document_no "
        "JOIN records r ON r.document_no = x.document_no "
        "JOIN attempts a ON a.record_no = r.record_no "
        "JOIN results l ON l.attempt_no = a.attempt_no "
        "JOIN result_files f ON f.result_file_no = l.result_file_no "
        "WHERE x.finished_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM redactions t "
        "JOIN erasures y ON y.erasure_no = t.erasure_no AND y.document_no = x.document_no "
        "WHERE t.kind = 'result' AND t.digest = f.artifact) "
        "AND NOT EXISTS (SELECT 1 FROM pruned_artifacts p "
        "WHERE p.kind = 'result' AND p.digest = f.artifact) ORDER BY d.document_id",
        {"document_id": pl.String, "artifact": pl.String},
    )


def unfinished_erasures(connection: Connection, ledger: Ledger) -> list[str]:
    """document_id of the erasures that were begun and not finished."""
    return ledger.dialect.fetch(
        connection,
        "SELECT DISTINCT d.document_id FROM erasures x "
        "JOIN documents d ON d.document_no = x.document_no WHERE x.finished_at IS NULL "
        "ORDER BY d.document_id",
        {"document_id": pl.String},
    )["document_id"].to_list()


def shown_though_erased(connection: Connection, ledger: Ledger) -> list[str]:
    """document_id of erased documents with a visible entry, or a record that is not withdrawn."""
    return ledger.dialect.fetch(
        connection,
        "SELECT DISTINCT d.document_id FROM erasures x "
        "JOIN documents d ON d.document_no = x.document_no "
        "LEFT JOIN archive_heads h ON h.document_no = x.document_no "
        "WHERE h.entry_no IS NOT NULL OR EXISTS (SELECT 1 FROM records r "
        "JOIN record_state s ON s.record_no = r.record_no "
        "WHERE r.document_no = x.document_no AND s.state <> 'withdrawn') ORDER BY d.document_id",
        {"document_id": pl.String},
    )["document_id"].to_list()


def kept_though_erased(connection: Connection, ledger: Ledger) -> pl.DataFrame:
    """Bytes that only erased documents have: document_id, checksum, text_pack (null: none)."""
    return ledger.dialect.fetch(
        connection,
        "SELECT DISTINCT d.document_id, v.checksum, p.text_pack FROM erasures x "
        "JOIN documents d ON d.document_no = x.document_no "
        "JOIN source_versions v ON v.document_no = x.document_no "
        "LEFT JOIN parses p ON p.checksum = v.checksum AND p.text_pack IS NOT NULL "
        "WHERE x.finished_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM source_versions o "
        "WHERE o.checksum = v.checksum AND o.document_no NOT IN "
        "(SELECT y.document_no FROM erasures y)) ORDER BY d.document_id",
        {"document_id": pl.String, "checksum": pl.String, "text_pack": pl.String},
    )


def _texts_of(
    connection: Connection, ledger: Ledger, document_no: int, checksums: tuple[str, ...]
) -> tuple[list[str], list[str]]:
    """Text packs with the text of these bytes, and page images that nobody else has."""
    _stage_checksums(connection, ledger, checksums)
    found = ledger.dialect.fetch(
        connection,
        "SELECT p.checksum, p.text_pack, p.thumbnail FROM parses p "
        "JOIN stage_erased s ON s.checksum = p.checksum",
        TEXT_SCHEMA,
    )
    shown = connection.execute(
        select(archive_entries.c.thumbnail)
        .where(archive_entries.c.document_no == document_no)
        .distinct()
    ).scalars()
    images = {*found["thumbnail"].drop_nulls(), *shown} - {""}
    ledger.dialect.stage(
        connection,
        "stage_images",
        pl.DataFrame({"thumbnail": sorted(images)}, schema={"thumbnail": pl.String}),
    )
    others = ledger.dialect.fetch(
        connection,
        "SELECT s.thumbnail FROM stage_images s WHERE EXISTS (SELECT 1 FROM parses p "
        "WHERE p.thumbnail = s.thumbnail AND p.checksum NOT IN "
        "(SELECT checksum FROM stage_erased)) "
        "OR EXISTS (SELECT 1 FROM archive_entries e WHERE e.thumbnail = s.thumbnail "
        "AND e.document_no <> ?)",
        {"thumbnail": pl.String},
        (document_no,),
    )["thumbnail"]
    return sorted(found["text_pack"].drop_nulls().unique()), sorted(images - set(others))


def _withdraw(connection: Connection, ledger: Ledger, records: pl.DataFrame, cause: Cause) -> int:
    """Withdraw every record that is not, and close what waits for a person about them."""
    open_ones = records.filter(pl.col("state") != "withdrawn")
    for (version_no, state), part in open_ones.group_by("version_no", "state", maintain_order=True):
        move_records(
            connection,
            ledger.dialect,
            part["record_no"],
            str(state),
            "withdrawn",
            cause,
            version_chain(int(str(version_no))),
        )
    numbers = records["record_no"]
    close_dead_letters(
        connection,
        ledger,
        numbers,
        closing="withdrawn",
        reason="its document was erased",
        by=cause.actor,
        at=cause.at,
    )
    close_overtaken(
        connection, ledger, numbers, cause.at, by=cause.actor, why="its document was erased"
    )
    return open_ones.height


def _empty(
    connection: Connection, ledger: Ledger, document_no: int, records: pl.DataFrame
) -> tuple[int, int, int]:
    """Empty every column that holds values or text; entries, corrections and notes, counted."""
    own = archive_entries.c.document_no == document_no
    numbers = ledger.dialect.fetch(
        connection,
        "SELECT entry_no FROM archive_entries WHERE document_no = ?",
        {"entry_no": pl.Int64},
        (document_no,),
    )
    ledger.dialect.stage(connection, "stage_emptied", numbers)
    ledger.dialect.drop_search(connection, "stage_emptied")
    connection.execute(update(archive_entries).where(own).values(content=NOTHING))
    ledger.dialect.stage(connection, "stage_withdrawn", records.select("record_no"))
    chosen = select(text("record_no")).select_from(text("stage_withdrawn"))
    corrections = connection.execute(
        update(reviews)
        .where(reviews.c.record_no.in_(chosen), reviews.c.corrected_content.is_not(None))
        .values(corrected_content=None)
    ).rowcount
    notes = connection.execute(
        update(findings)
        .where(findings.c.record_no.in_(chosen), findings.c.note != "")
        .values(note="")
    ).rowcount
    connection.execute(
        update(replay_members).where(replay_members.c.document_no == document_no).values(slice="")
    )
    return numbers.height, corrections, notes


def _forget_parses(connection: Connection, checksums: tuple[str, ...]) -> None:
    """What reading the bytes gave; what it cost stays.

    The row is one that is tried again (`cacheable` 0): another document that has the same bytes
    one day is read anew, while the erased one is not read again.
    """
    if not checksums:
        return
    connection.execute(
        update(parses)
        .where(parses.c.checksum.in_(select(text("checksum")).select_from(text("stage_erased"))))
        .values(
            excluded="erased",
            detail="",
            media_type=None,
            page_count=None,
            language=None,
            languages="",
            notes="",
            text_pack=None,
            thumbnail=None,
            cacheable=0,
        )
    )


def _stage_checksums(connection: Connection, ledger: Ledger, checksums: tuple[str, ...]) -> None:
    ledger.dialect.stage(
        connection,
        "stage_erased",
        pl.DataFrame({"checksum": list(checksums)}, schema={"checksum": pl.String}),
    )
