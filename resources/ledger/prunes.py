"""Prunings in the ledger: what may go, what went, and which artifacts rows still name.

Belongs here: every statement on `prunes` and `pruned_artifacts`, and the questions that a policy
decides on. Does not belong here: the policy and deleting files (`pipeline_assets/retention`).
"""

from __future__ import annotations

import msgspec
import polars as pl
from sqlalchemy import Connection, func, insert, select, text

from resources.artifacts import Kind
from resources.kept_bytes import ROW_KINDS
from resources.ledger.engine import Ledger
from resources.ledger.moves import Cause
from resources.ledger.schema import pruned_artifacts, prunes

SETTLED = ("discarded", "cancelled", "rejected", "superseded", "withdrawn")
"""States of records that ended without being published: nobody waits for anything of them."""

BATCH_SCHEMA = {
    "batch_no": pl.Int64,
    "batch_id": pl.String,
    "state": pl.String,
    "request_artifact": pl.String,
    "ended_at": pl.String,
    "unsettled": pl.Int64,
}
FILE_SCHEMA = {"batch_no": pl.Int64, "artifact": pl.String, "foreign_unsettled": pl.Int64}
PACK_SCHEMA = {
    "text_pack": pl.String,
    "parser_key": pl.String,
    "newest_at": pl.String,
    "texts": pl.Int64,
    "needed": pl.Int64,
}
PRUNED_SCHEMA = {"kind": pl.String, "digest": pl.String, "bytes": pl.Int64}

_SETTLED = "(" + ", ".join(f"'{state}'" for state in SETTLED) + ")"
_ROWS = ", ".join(f"'{kind}'" for kind in ROW_KINDS)
# What a replay's answer was rejected for, or given up, is still shown: its evidence stays.
_UNSETTLED = (
    f"(s.state NOT IN {_SETTLED} OR EXISTS "  # noqa: S608 - our own names
    "(SELECT 1 FROM records k "
    "JOIN archive_heads h ON h.document_no = k.document_no "
    "JOIN archive_entries g ON g.entry_no = h.entry_no AND g.record_no = k.record_no "
    "WHERE k.record_no = s.record_no))"
)
# A record that was withdrawn while it waited for a retry goes on by itself when its document comes
# back: it repeats its stored request, and one that was pruned would stop every run.
_MAY_RETURN = (
    "(s.state = 'withdrawn' AND EXISTS (SELECT 1 FROM move_members k "
    "JOIN moves w ON w.move_no = k.move_no AND w.to_state = 'withdrawn' "
    "AND w.from_state = 'retry_wait' WHERE k.record_no = s.record_no) "
    "AND NOT EXISTS (SELECT 1 FROM records q JOIN erasures x ON x.document_no = q.document_no "
    "WHERE q.record_no = s.record_no))"
)

# Every column that names an artifact of a kind, as `SELECT name`; `{}` is the column's condition.
_NAMES: dict[Kind, tuple[tuple[str, str], ...]] = {
    "source": (("checksum", "source_versions"),),
    "text": (("text_pack", "parses"),),
    "thumbnail": (("thumbnail", "parses"), ("thumbnail", "archive_entries")),
    "manifest": (("artifact", "manifests"),),
    "request": (("request_artifact", "batches"), ("request_artifact", "canaries")),
    "result": (("artifact", "result_files"),),
    "frame": (
        ("collected_artifact", "batches"),
        ("staging_artifact", "batches"),
        ("places_artifact", "batches"),
        ("collected_artifact", "late_answers"),
        ("staging_artifact", "late_answers"),
        ("places_artifact", "late_answers"),
    ),
    "report": (("artifact", "reports"), ("page", "reports"), ("outcomes", "reports")),
}


def pruned_at(ledger: Ledger, kind: Kind, digest: str) -> str | None:
    """When an artifact was pruned; None where it never was."""
    with ledger.read() as connection:
        return connection.execute(
            select(func.max(prunes.c.pruned_at))
            .join(pruned_artifacts, pruned_artifacts.c.prune_no == prunes.c.prune_no)
            .where(pruned_artifacts.c.kind == kind, pruned_artifacts.c.digest == digest)
        ).scalar()


def pruned_names(connection: Connection, ledger: Ledger) -> pl.DataFrame:
    """Every artifact that was ever pruned (`PRUNED_SCHEMA`), once."""
    return ledger.dialect.fetch(
        connection,
        "SELECT kind, digest, MAX(bytes) FROM pruned_artifacts GROUP BY kind, digest "
        "ORDER BY kind, digest",
        PRUNED_SCHEMA,
    )


def ended_batches(connection: Connection, ledger: Ledger) -> pl.DataFrame:
    """Every batch (`BATCH_SCHEMA`): when it last moved, and how many of its records are open.

    `unsettled` counts records that are published, or may still be worked on: those too that would
    be tried again if their document came back.
    """
    return ledger.dialect.fetch(
        connection,
        "SELECT b.batch_no, b.batch_id, b.state, b.request_artifact, "  # noqa: S608 - our own names
        "(SELECT MAX(m.moved_at) FROM moves m WHERE m.chain = 'batch:' || b.batch_no "
        "AND m.machine = 'batch'), (SELECT COUNT(*) FROM attempts a "
        "JOIN record_state s ON s.record_no = a.record_no "
        f"WHERE a.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no "
        f"AND ({_UNSETTLED} OR {_MAY_RETURN})) "
        "FROM batches b ORDER BY b.batch_no",
        BATCH_SCHEMA,
    )


def result_files_of_all(connection: Connection, ledger: Ledger) -> pl.DataFrame:
    """Every result file (`FILE_SCHEMA`) with how many lines it has for open records of others.

    A late result comes in with another batch than that of its attempt.
    """
    return ledger.dialect.fetch(
        connection,
        "SELECT f.batch_no, f.artifact, (SELECT COUNT(*) FROM late_results l "  # noqa: S608
        "JOIN record_state s ON s.record_no = l.record_no "
        f"WHERE l.result_file_no = f.result_file_no AND {_UNSETTLED}) FROM result_files f "
        "ORDER BY f.result_file_no",
        FILE_SCHEMA,
    )


def canary_requests(connection: Connection, ledger: Ledger) -> pl.Series:
    """Request artifacts of canaries: made-up documents, which are never pruned."""
    return ledger.dialect.fetch(
        connection, "SELECT request_artifact FROM canaries", {"artifact": pl.String}
    )["artifact"]


def text_packs(connection: Connection, ledger: Ledger) -> pl.DataFrame:
    """Every text pack and parser key (`PACK_SCHEMA`) with how many of its texts are needed.

    Needed are texts of records that are published or open. A text is needed too by any record
    of a row of a table: it is the only copy of its bytes that is kept.
    """
    return ledger.dialect.fetch(
        connection,
        "SELECT p.text_pack, p.parser_key, MAX(p.parsed_at), COUNT(*), "  # noqa: S608
        "SUM(CASE WHEN EXISTS (SELECT 1 FROM source_versions v "
        "JOIN documents d ON d.document_no = v.document_no "
        "JOIN sources c ON c.source_no = d.source_no "
        "JOIN records r ON r.document_no = v.document_no "
        "AND r.source_version_no = v.source_version_no "
        "JOIN record_state s ON s.record_no = r.record_no WHERE v.checksum = p.checksum "
        f"AND (c.kind IN ({_ROWS}) OR {_UNSETTLED})) THEN 1 ELSE 0 END) "
        "FROM parses p WHERE p.text_pack IS NOT NULL GROUP BY p.text_pack, p.parser_key "
        "ORDER BY p.text_pack, p.parser_key",
        PACK_SCHEMA,
    )


def live_specs(connection: Connection, ledger: Ledger) -> list[str]:
    """Specs (canonical JSON) of the versions that are not retired."""
    return ledger.dialect.fetch(
        connection,
        "SELECT spec FROM processing_versions WHERE state <> 'retired'",
        {"spec": pl.String},
    )["spec"].to_list()


def open_versions(connection: Connection, ledger: Ledger) -> set[str]:
    """Keys of versions with a record that is neither published nor settled."""
    return set(
        ledger.dialect.fetch(
            connection,
            "SELECT DISTINCT v.key FROM processing_versions v "  # noqa: S608 - our own names
            "JOIN records r ON r.version_no = v.version_no "
            "JOIN record_state s ON s.record_no = r.record_no "
            f"WHERE s.state <> 'published' AND {_UNSETTLED}",
            {"key": pl.String},
        )["key"]
    )


def named_artifacts(connection: Connection, ledger: Ledger, kind: Kind, prefix: str) -> set[str]:
    """Artifacts of a kind that rows name, those whose names begin with two digits alone."""
    found: set[str] = set()
    for column, table in _NAMES[kind]:
        found |= set(
            ledger.dialect.fetch(
                connection,
                f"SELECT DISTINCT {column} FROM {table} "  # noqa: S608 - our own names
                f"WHERE {column} >= ? AND {column} < ?",
                {"digest": pl.String},
                (prefix, prefix + "g"),
            )["digest"]
        )
    if kind == "result":
        lists = ledger.dialect.fetch(
            connection,
            "SELECT results FROM canaries WHERE results IS NOT NULL",
            {"results": pl.String},
        )["results"]
        found |= {name for text_ in lists for name in msgspec.json.decode(text_, type=list[str])}
    return found


def record_prune(
    connection: Connection, ledger: Ledger, policy: str, going: pl.DataFrame, cause: Cause
) -> int:
    """Write a pruning with every artifact that goes (`PRUNED_SCHEMA`); returns its number.

    Commit it before a file is deleted. What the parse cache holds of deleted texts goes with it.
    """
    counted = {
        str(kind): {"files": part.height, "bytes": int(part["bytes"].sum())}
        for (kind,), part in going.group_by("kind", maintain_order=True)
    }
    key = connection.execute(
        insert(prunes).values(
            policy=policy,
            reason=cause.reason,
            actor=cause.actor,
            pruned_at=cause.at,
            removed=msgspec.json.encode(counted).decode(),
        )
    ).inserted_primary_key
    assert key is not None  # noqa: S101 - both databases return the key of a single insert
    number = int(key[0])
    ledger.dialect.load(
        connection,
        pruned_artifacts,
        going.select(*PRUNED_SCHEMA, prune_no=pl.lit(number, dtype=pl.Int64)),
    )
    ledger.dialect.stage(
        connection, "stage_pruned", going.filter(pl.col("kind") == "text").select("digest")
    )
    connection.execute(
        text("DELETE FROM parses WHERE text_pack IN (SELECT digest FROM stage_pruned)")
    )
    return number
