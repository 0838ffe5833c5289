"""Which published records came from a flawed configuration.

Belongs here: the visible entries of every version, judged by the attempt that each came from, and
counted. Does not belong here: repairing anything, which a replay does.

A filter is asked of the attempt whose values are shown, not of the newest one: a record that was
asked again meanwhile still shows what the flawed configuration made of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.known_version import KnownVersion, known_version
from pipeline_assets.selection.bind import Bound, bind, fact_of
from pipeline_assets.selection.errors import AmbiguousFact, FactMisused, UnknownFact
from pipeline_assets.selection.evaluate import condition
from pipeline_assets.selection.expression import (
    Comparison,
    FactName,
    Literal,
    Where,
    all_of,
)
from pipeline_assets.selection.facts import FACTS
from pipeline_assets.selection.load import ATTEMPT_SCHEMA, Book, newest_attempts, read_facts
from pipeline_assets.selection.select import SLICE_RECORDS, fields_reader
from pipeline_assets.workloads.workload import PublishedField
from resources.context import Context

_GROUPS = ("batch", "model_revision", "replay")
_TRUE = Literal("true", quoted=False)
_TOLD = (*_GROUPS, "published")
_FOUND_SCHEMA = {
    "document_id": pl.String,
    "record_id": pl.String,
    **dict.fromkeys(_TOLD, pl.String),
}


@dataclass(frozen=True)
class BlamedGroup:
    """Visible records of one version that came from one batch, model revision and replay.

    Attributes:
        version: key of the processing version.
        batch: id of the batch; None where no attempt is known that gave the values.
        model_revision: as the provider told it; None where it told none.
        replay: id of the replay that the attempt was made for; None where it was for none.
        records: how many.
        first_published: when the earliest of them became visible, UTC.
        last_published: when the latest did.
    """

    version: str
    batch: str | None
    model_revision: str | None
    replay: str | None
    records: int
    first_published: str
    last_published: str


@dataclass
class Blame:
    """What a filter found among the visible records.

    Attributes:
        records: how many it found.
        visible: how many the archive shows in all.
        groups: most records first.
        documents: (version, document id) of each, by version and id; empty unless asked for.
        skipped: version → why the filter says nothing of it: its workload has no such field.
    """

    records: int = 0
    visible: int = 0
    groups: list[BlamedGroup] = field(default_factory=list)
    documents: list[tuple[str, str]] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def versions(self) -> list[str]:
        """The versions that have records of it, most first."""
        counts: dict[str, int] = {}
        for group in self.groups:
            counts[group.version] = counts.get(group.version, 0) + group.records
        return sorted(counts, key=lambda version: (-counts[version], version))


def blame(context: Context, where: Where, *, documents: bool = False) -> Blame:
    """Find the visible records that a filter chooses, of every version.

    Args:
        context: the open resources.
        where: the filter.
        documents: list the documents too.

    Raises:
        UnknownFact, AmbiguousFact, FactMisused: the filter fits no workload in the archive.
        UnknownWorkload: the filter names a field, and a workload is not installed.
    """
    found, errors = Blame(), []
    with context.ledger.read() as connection:
        keys = _visible_versions(connection, context)
        for key, visible in keys:
            found.visible += visible
            version = known_version(context, key)
            try:
                bound = bind(where, fields_reader(context, version.workload))
            except (UnknownFact, AmbiguousFact, FactMisused) as error:
                errors.append(error)
                found.skipped[key] = str(error)
                continue
            _add(found, connection, context, version, bound, documents=documents)
    if errors and len(errors) == len(keys):
        raise errors[0]
    if not keys:
        # An empty archive is no reason to take any filter for a good one.
        bind(where, lambda: _every_field(context))
    found.groups.sort(key=lambda group: (-group.records, group.version, group.first_published))
    found.documents.sort()
    return found


def _visible_versions(connection: Connection, context: Context) -> list[tuple[str, int]]:
    rows = context.ledger.dialect.fetch(
        connection,
        "SELECT v.key, COUNT(*) FROM archive_heads h "
        "JOIN archive_entries e ON e.entry_no = h.entry_no "
        "JOIN processing_versions v ON v.version_no = e.version_no GROUP BY v.key",
        {"key": pl.String, "visible": pl.Int64},
    )
    return rows.sort("key").rows()


def _every_field(context: Context) -> tuple[PublishedField, ...]:
    """The fields of every workload that the ledger knows."""
    with context.ledger.read() as connection:
        rows = context.ledger.dialect.fetch(
            connection,
            "SELECT DISTINCT workload FROM processing_versions",
            {"workload": pl.String},
        )["workload"]
    by_name = {
        entry.name: entry
        for workload in rows.sort()
        for entry in fields_reader(context, workload)()
    }
    return tuple(by_name.values())


def _add(
    found: Blame,
    connection: Connection,
    context: Context,
    version: KnownVersion,
    bound: Bound,
    *,
    documents: bool,
) -> None:
    fields = {}
    if any(fact.group == "field" for fact in bound.facts.values()):
        fields = {
            fact_of(entry).name: entry for entry in fields_reader(context, version.workload)()
        }
    book = Book(connection, context, version, fields)
    parts = list(_chosen(book, bound))
    every = pl.concat([pl.DataFrame(schema=_FOUND_SCHEMA), *parts])
    found.records += every.height
    grouped = every.group_by(_GROUPS).agg(
        records=pl.len(), first=pl.col("published").min(), last=pl.col("published").max()
    )
    found.groups.extend(BlamedGroup(version.key, *row) for row in grouped.iter_rows())
    if documents:
        found.documents.extend((version.key, name) for name in every["document_id"])


def _chosen(book: Book, bound: Bound) -> Iterator[pl.DataFrame]:
    wanted = {fact.name: fact for _, fact in bound.mentioned} | {
        name: FACTS[name] for name in _TOLD
    }
    numbers = book.context.ledger.dialect.fetch(
        book.connection,
        "SELECT e.record_no FROM archive_heads h "
        "JOIN archive_entries e ON e.entry_no = h.entry_no WHERE e.version_no = ?",
        {"record_no": pl.Int64},
        (book.version.version_no,),
    )["record_no"].sort()
    for start in range(0, numbers.len(), SLICE_RECORDS):
        part = numbers.slice(start, SLICE_RECORDS)
        facts = read_facts(book, part, list(wanted.values()), attempts=shown_attempts(book, part))
        yield facts.filter(condition(bound)).select(list(_FOUND_SCHEMA))


def shown_attempts(book: Book, numbers: pl.Series) -> pl.DataFrame:
    """`ATTEMPT_SCHEMA` of visible records: the attempt that gave the values that are shown.

    It has the request and the values of the entry's delivery; the first of several that have, since
    the same values were not delivered again. Where no attempt has them (a ledger from before
    deliveries had digests), the newest judged one is taken.
    """
    given = book.rows(
        "SELECT e.record_no, MIN(a.attempt_no) FROM records r "
        "JOIN archive_heads h ON h.document_no = r.document_no "
        "JOIN archive_entries e ON e.entry_no = h.entry_no AND e.record_no = r.record_no "
        "JOIN deliveries y ON y.record_no = e.record_no AND y.entry_no = e.entry_no "
        "JOIN attempts a ON a.record_no = e.record_no AND a.request_digest = y.request_digest "
        "JOIN judgements j ON j.attempt_no = a.attempt_no "
        "LEFT JOIN reviews w ON w.record_no = a.record_no AND w.attempt_no = a.attempt_no "
        "AND w.decision = 'correct' AND w.corrected_digest = y.accepted_digest "
        "WHERE (j.values_digest = y.accepted_digest OR w.review_no IS NOT NULL) AND ",
        {"record_no": pl.Int64, "given_no": pl.Int64},
        "r.record_no",
        numbers,
        after=" GROUP BY e.record_no",
    )
    newest = newest_attempts(book, numbers).join(given, on="record_no", how="left")
    shown = pl.coalesce("given_no", "judged_no")
    return newest.with_columns(attempt_no=shown, answered_no=shown, judged_no=shown).select(
        list(ATTEMPT_SCHEMA)
    )


def replay_filter(where: Where) -> str:
    """The filter for a replay: the same of visible records; it looks at their newest attempts."""
    return str(all_of([where.expression, Comparison(FactName("visible"), "=", _TRUE)]))


def listed(found: Blame) -> Iterable[dict[str, Any]]:
    """The documents as plain values, for a list."""
    return ({"version": version, "document_id": name} for version, name in found.documents)
