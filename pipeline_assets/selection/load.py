"""Reading the facts of a slice of records, group by group, and only those that a filter names.

Belongs here: one statement a group. Does not belong here: what facts mean (`facts.py`), the values
of fields (`contents.py`), and which records are looked at (`select.py`, `blame.py`).

A record has several attempts; which of them its facts are of is decided once, in `Attempts`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import polars as pl
from sqlalchemy import Connection, select

from pipeline_assets.known_version import KnownVersion
from pipeline_assets.selection.contents import field_values
from pipeline_assets.selection.evaluate import COLUMN_TYPES
from pipeline_assets.selection.facts import Fact, Group
from pipeline_assets.workloads.registry import load_workload
from pipeline_assets.workloads.workload import FIRST_ACCEPTANCE, FIRST_PROMPT, PublishedField
from resources.context import Context
from resources.ledger.frames import PolarsType
from resources.ledger.numbers import is_one_of, parts_of
from resources.ledger.schema import processing_versions

BASE_SCHEMA = {
    "record_no": pl.Int64,
    "record_id": pl.String,
    "document_no": pl.Int64,
    "document_id": pl.String,
    "checksum": pl.String,
    "state": pl.String,
}
ATTEMPT_SCHEMA = {
    "record_no": pl.Int64,
    "attempt_no": pl.Int64,
    "answered_no": pl.Int64,
    "judged_no": pl.Int64,
    "failed_no": pl.Int64,
    "attempts": pl.Int64,
}
"""Of each record its newest attempt, its newest one with a disposition, the newest judged one, the
newest one that failed, and how many there are."""

_RECORDS = (
    "FROM records r LEFT JOIN record_state s ON s.record_no = r.record_no "
    "JOIN documents d ON d.document_no = r.document_no "
    "JOIN sources c ON c.source_no = d.source_no "
    "LEFT JOIN source_versions v ON v.source_version_no = r.source_version_no WHERE "
)
_FROM: Mapping[Group, str] = {
    "parse": (
        "FROM records r JOIN parses p ON p.checksum = r.checksum AND p.parser_key = ? WHERE "
    ),
    "attempt": (
        "FROM attempts a JOIN records r ON r.record_no = a.record_no "
        "JOIN batches b ON b.batch_no = a.batch_no "
        "JOIN manifests m ON m.manifest_no = b.manifest_no "
        "LEFT JOIN replays y ON y.replay_no = m.replay_no WHERE "
    ),
    # A line that came late and is used says which model answered; its attempt's end stays.
    "answer": (
        "FROM dispositions p "
        "LEFT JOIN late_results l ON l.attempt_no = p.attempt_no AND l.used = 1 "
        "LEFT JOIN result_files f ON f.result_file_no = "
        "COALESCE(l.result_file_no, p.result_file_no) WHERE "
    ),
    "failure": "FROM dispositions p WHERE ",
}
_KEY: Mapping[Group, tuple[str, str]] = {
    "parse": ("r.record_no", "record_no"),
    "attempt": ("a.attempt_no", "attempt_no"),
    "answer": ("p.attempt_no", "answered_no"),
    "failure": ("p.attempt_no", "failed_no"),
}
"""Of the groups with one row a record: the key in SQL, and the column that it is joined to."""
_OF_ATTEMPTS = frozenset(
    {"attempts", "attempt", "answer", "failure", "judgement", "review", "field"}
)

_OF_ENTRIES = frozenset({"entry", "field"})


@dataclass(frozen=True)
class Book:
    """What facts are read from: one view of the ledger, and one version.

    Attributes:
        connection: the transaction.
        context: the open resources.
        version: whose records are looked at.
        fields: the fields of its workload, by the name of their fact.
    """

    connection: Connection
    context: Context
    version: KnownVersion
    fields: Mapping[str, PublishedField]

    def rows(
        self,
        sql: str,
        schema: Mapping[str, PolarsType],
        column: str,
        numbers: pl.Series,
        *,
        parameters: Sequence[object] = (),
        after: str = "",
    ) -> pl.DataFrame:
        """The rows of a statement that ends in WHERE, for rows whose `column` is one of these."""
        parts = [
            self.context.ledger.dialect.fetch(
                self.connection, f"{sql}{is_one_of(column, part)}{after}", schema, parameters
            )
            for part in parts_of(numbers)
        ]
        return pl.concat([pl.DataFrame(schema=dict(schema)), *parts])

    @cached_property
    def constants(self) -> Mapping[str, object]:
        """The facts that all records of the version share."""
        row = self.connection.execute(
            select(processing_versions.c.spec).where(
                processing_versions.c.version_no == self.version.version_no
            )
        ).one()
        spec: dict[str, Any] = msgspec.json.decode(row.spec)
        return {
            "version": self.version.key,
            "workload": self.version.workload,
            "prompt": (spec.get("request") or {}).get("prompt", FIRST_PROMPT),
            "acceptance": spec.get("acceptance") or FIRST_ACCEPTANCE,
            "parser": spec["parser"]["version"],
            "schema": spec["schema_version"],
        }

    @cached_property
    def prompt_digest(self) -> str | None:
        """SHA-256 of the version's prompt; None where its workload has that prompt no more."""
        workload = load_workload(self.version.workload, self.context.settings.workload_folder)
        prompt = workload.prompts.get(str(self.constants["prompt"]))
        return None if prompt is None else hashlib.sha256(prompt).hexdigest()


def read_facts(
    book: Book, numbers: pl.Series, facts: Sequence[Fact], attempts: pl.DataFrame | None = None
) -> pl.DataFrame:
    """`BASE_SCHEMA` and a column for each fact, one row a record, by record.

    Args:
        book: what is read from.
        numbers: the records.
        facts: the facts that are needed.
        attempts: `ATTEMPT_SCHEMA`: the attempts that facts are of; the newest ones by default.
    """
    needed: dict[Group, list[Fact]] = {}
    for fact in facts:
        needed.setdefault(fact.group, []).append(fact)
    frame = _records(book, numbers, needed.pop("record", []))
    if attempts is None and not _OF_ATTEMPTS.isdisjoint(needed):
        attempts = newest_attempts(book, numbers)
    if attempts is not None:
        frame = frame.join(attempts, on="record_no", how="left")
    if not _OF_ENTRIES.isdisjoint(needed):
        frame = frame.join(entries(book, numbers), on="record_no", how="left").with_columns(
            pl.col("visible").fill_null(value=False)
        )
    for group, wanted in needed.items():
        frame = _with_group(book, frame, group, wanted)
    return frame.sort("record_no").select(
        *BASE_SCHEMA, *(fact.name for fact in facts if fact.name not in BASE_SCHEMA)
    )


def newest_attempts(book: Book, numbers: pl.Series) -> pl.DataFrame:
    """`ATTEMPT_SCHEMA` of records, whatever their attempts are for."""
    return book.rows(
        "SELECT a.record_no, MAX(a.attempt_no), MAX(p.attempt_no), MAX(j.attempt_no), "
        "MAX(CASE WHEN p.failure_class IS NOT NULL THEN p.attempt_no END), COUNT(*) "
        "FROM attempts a LEFT JOIN dispositions p ON p.attempt_no = a.attempt_no "
        "LEFT JOIN judgements j ON j.attempt_no = a.attempt_no WHERE ",
        ATTEMPT_SCHEMA,
        "a.record_no",
        numbers,
        after=" GROUP BY a.record_no",
    )


def _records(book: Book, numbers: pl.Series, wanted: list[Fact]) -> pl.DataFrame:
    more = [fact for fact in wanted if fact.name not in BASE_SCHEMA]
    columns = "".join(f", {fact.sql}" for fact in more)
    frame = book.rows(
        "SELECT r.record_no, r.record_id, r.document_no, d.document_id, r.checksum, s.state"
        f"{columns} {_RECORDS}",
        {**BASE_SCHEMA, **{fact.name: COLUMN_TYPES[fact.kind] for fact in more}},
        "r.record_no",
        numbers,
    )
    return frame.with_columns(
        pl.col(column).alias(name)
        for name, column in (("document", "document_id"), ("record", "record_id"))
        if any(fact.name == name for fact in wanted) and name not in frame.columns
    )


def _with_group(book: Book, frame: pl.DataFrame, group: Group, wanted: list[Fact]) -> pl.DataFrame:
    if group == "version":
        return frame.with_columns(_constant(book, fact) for fact in wanted)
    if group == "attempts":
        return frame.with_columns(pl.col("attempts").fill_null(0))
    if group in _FROM:
        return _with_columns(book, frame, group, wanted)
    if group == "present":
        return _with_presence(book, frame)
    if group == "judgement":
        return _with_judgement(book, frame, wanted)
    if group == "review":
        return _with_review(book, frame)
    if group == "entry":
        return frame
    return _with_fields(book, frame, wanted)


def _constant(book: Book, fact: Fact) -> pl.Expr:
    value = book.prompt_digest if fact.name == "prompt_digest" else book.constants[fact.name]
    return pl.lit(value, dtype=COLUMN_TYPES[fact.kind]).alias(fact.name)


def _with_columns(
    book: Book, frame: pl.DataFrame, group: Group, wanted: list[Fact]
) -> pl.DataFrame:
    """Facts that are columns of one row for a record, or for one of its attempts."""
    key, joined = _KEY[group]
    columns = ", ".join(fact.sql for fact in wanted)
    found = book.rows(
        f"SELECT {key}, {columns} {_FROM[group]}",
        {joined: pl.Int64, **{fact.name: COLUMN_TYPES[fact.kind] for fact in wanted}},
        key,
        frame[joined],
        parameters=(book.version.parser_key,) if group == "parse" else (),
    )
    return frame.join(found.unique(joined, keep="last"), on=joined, how="left")


def _with_presence(book: Book, frame: pl.DataFrame) -> pl.DataFrame:
    found = book.rows(
        "SELECT r.record_no, CASE WHEN e.entry_no IS NULL THEN 1 ELSE 0 END, "
        "CASE WHEN e.source_version_no <> r.source_version_no THEN 1 ELSE 0 END "
        "FROM records r LEFT JOIN source_entries e "
        "ON e.document_no = r.document_no AND e.to_snapshot IS NULL WHERE ",
        {"record_no": pl.Int64, "removed": pl.Int64, "changed_source": pl.Int64},
        "r.record_no",
        frame["record_no"],
    )
    flags = found.unique("record_no", keep="last").with_columns(
        pl.col("removed", "changed_source").cast(pl.Boolean)
    )
    return frame.join(flags, on="record_no", how="left")


def _with_judgement(book: Book, frame: pl.DataFrame, wanted: list[Fact]) -> pl.DataFrame:
    """Sets of what was found in, and mended of, the judged attempt; empty where it was judged."""
    names = {fact.name for fact in wanted}
    sets = []
    if names & {"finding", "finding_field"}:
        # `findings` has an index by record, none by attempt.
        sets.append(
            book.rows(
                "SELECT DISTINCT attempt_no, rule, field FROM findings WHERE ",
                {"judged_no": pl.Int64, "finding": pl.String, "finding_field": pl.String},
                "record_no",
                frame["record_no"],
            )
        )
    if "repaired" in names:
        sets.append(
            book.rows(
                "SELECT attempt_no, rule FROM repairs WHERE ",
                {"judged_no": pl.Int64, "repaired": pl.String},
                "attempt_no",
                frame["judged_no"],
            )
        )
    for rows in sets:
        columns = [name for name in rows.columns if name in names]
        members = rows.group_by("judged_no").agg(pl.col(columns).unique().sort())
        frame = frame.join(members, on="judged_no", how="left").with_columns(
            pl.when(pl.col("judged_no").is_not_null())
            .then(pl.col(name).fill_null(pl.lit([], dtype=pl.List(pl.String))))
            .alias(name)
            for name in columns
        )
    return frame


def _with_review(book: Book, frame: pl.DataFrame) -> pl.DataFrame:
    """What people decided about the judged attempt; the newest decision counts."""
    found = book.rows(
        "SELECT attempt_no, decision, reviewer FROM reviews "
        "WHERE decision IN ('accept', 'correct', 'reject') AND ",
        {"judged_no": pl.Int64, "decision": pl.String, "reviewed_by": pl.String},
        "record_no",
        frame["record_no"],
        after=" ORDER BY decided_at, review_no",
    )
    newest = found.group_by("judged_no", maintain_order=True).agg(
        pl.col("decision", "reviewed_by").last(),
        corrected=(pl.col("decision") == "correct").any(),
    )
    return frame.join(newest, on="judged_no", how="left").with_columns(
        pl.col("corrected").fill_null(value=False)
    )


def entries(book: Book, numbers: pl.Series) -> pl.DataFrame:
    """record_no, entry_no, published, visible: of each record its newest entry of the archive.

    What is shown again is a new entry, so no older one is visible. Records that were never
    published have none.
    """
    found = book.rows(
        "SELECT r.record_no, e.entry_no, e.valid_from, "
        "CASE WHEN h.entry_no IS NULL THEN 0 ELSE 1 END FROM records r "
        # By document: the entries have no index by record.
        "JOIN archive_entries e ON e.document_no = r.document_no AND e.record_no = r.record_no "
        "LEFT JOIN archive_heads h ON h.entry_no = e.entry_no WHERE ",
        {
            "record_no": pl.Int64,
            "entry_no": pl.Int64,
            "published": pl.String,
            "visible": pl.Int64,
        },
        "r.record_no",
        numbers,
    )
    return (
        found.sort("entry_no")
        .unique("record_no", keep="last")
        .with_columns(pl.col("visible").cast(pl.Boolean))
    )


def _with_fields(book: Book, frame: pl.DataFrame, wanted: list[Fact]) -> pl.DataFrame:
    fields = {fact.name: book.fields[fact.name] for fact in wanted}
    values = field_values(book, frame.select("record_no", "judged_no", "entry_no"), fields)
    return frame.join(values, on="record_no", how="left")
