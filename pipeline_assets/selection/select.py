"""Selecting records of a version by a filter, and telling why each is in.

Belongs here: which records are looked at, slice by slice, and the answer. Does not belong here:
what becomes of a selection (a replay freezes it).

Memory holds the facts of one slice of records; the answer grows with what is selected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.known_version import KnownVersion
from pipeline_assets.selection.bind import Bound, bind, fact_of, value_of
from pipeline_assets.selection.errors import UnknownListedDocuments
from pipeline_assets.selection.evaluate import condition, why
from pipeline_assets.selection.expression import AllOf, Comparison, Expression, Where
from pipeline_assets.selection.load import BASE_SCHEMA, Book, read_facts
from pipeline_assets.workloads.fields import fields_of
from pipeline_assets.workloads.workload import PublishedField
from resources.context import Context
from resources.ledger.numbers import MOST_NUMBERS

SLICE_RECORDS = 25_000
"""Records whose facts are in memory at a time."""
SELECTED_SCHEMA = {**BASE_SCHEMA, "slice": pl.String}
EVERY, LISTED = "every record", "listed"
"""The slice of a record that no filter chose."""
_PUSHED = {"state": "s.state", "checksum": "r.checksum", "source": "c.name"}
"""Facts whose equality the database looks for: closed, and cheap to compare."""


def select_records(
    context: Context,
    version: KnownVersion,
    where: Where | None,
    documents: pl.Series | None = None,
) -> pl.DataFrame:
    """The records of a version that a filter chooses (`SELECTED_SCHEMA`), by record_no.

    Args:
        context: the open resources.
        version: whose records.
        where: the filter; None: all of them.
        documents: ids; records of other documents are not looked at.

    Raises:
        UnknownFact, AmbiguousFact, FactMisused: the filter does not fit the version's workload.
        UnknownListedDocuments: there is no such document.
        UnknownWorkload: the filter names a field, and the workload is not installed.
        ArtifactMissing, ContractRefused: staged values of a field cannot be read.
    """
    return pl.concat(
        [
            pl.DataFrame(schema=SELECTED_SCHEMA),
            *selected_slices(context, version, where, documents),
        ]
    )


def selected_slices(
    context: Context,
    version: KnownVersion,
    where: Where | None,
    documents: pl.Series | None = None,
) -> Iterator[pl.DataFrame]:
    """What `select_records` gives, part by part, for selections of any size."""
    fields = fields_reader(context, version.workload)
    bound = None if where is None else bind(where, fields)
    with context.ledger.read() as connection:
        book = Book(connection, context, version, _by_fact(bound, fields))
        wanted = None if documents is None else _document_numbers(connection, context, documents)
        numbers = _numbers(connection, context, version, bound, wanted)
        plain = EVERY if documents is None else LISTED
        for start in range(0, numbers.len(), SLICE_RECORDS):
            yield _chosen(book, numbers.slice(start, SLICE_RECORDS), bound, plain)


def slices(selected: pl.DataFrame) -> pl.DataFrame:
    """slice, records: how many records each slice has, largest first."""
    counts = selected.group_by("slice").agg(records=pl.len().cast(pl.Int64))
    return counts.sort("records", "slice", descending=[True, False])


def fields_reader(context: Context, workload: str) -> Callable[[], tuple[PublishedField, ...]]:
    """What gives the fields of a workload, which is loaded only where a filter names one."""
    return lambda: fields_of(context.settings, workload)


def _by_fact(
    bound: Bound | None, fields: Callable[[], tuple[PublishedField, ...]]
) -> dict[str, PublishedField]:
    if bound is None or all(fact.group != "field" for fact in bound.facts.values()):
        return {}
    return {fact_of(field).name: field for field in fields()}


def _chosen(book: Book, numbers: pl.Series, bound: Bound | None, plain: str) -> pl.DataFrame:
    if bound is None:
        return read_facts(book, numbers, []).with_columns(slice=pl.lit(plain))
    facts = read_facts(book, numbers, [fact for _, fact in bound.mentioned])
    chosen = facts.filter(condition(bound)).with_columns(slice=why(bound))
    return chosen.select(list(SELECTED_SCHEMA))


def _numbers(
    connection: Connection,
    context: Context,
    version: KnownVersion,
    bound: Bound | None,
    documents: pl.Series | None,
) -> pl.Series:
    """The records to look at, sorted; what cannot be chosen is left out where that is cheap."""
    pushed = [] if bound is None else list(_pushed(bound.where.expression, bound))
    also = "".join(f" AND {column} = ?" for column, _ in pushed)
    rows = context.ledger.dialect.fetch(
        connection,
        "SELECT r.record_no, r.document_no FROM records r "  # noqa: S608 - our own columns alone
        "LEFT JOIN record_state s ON s.record_no = r.record_no "
        "JOIN documents d ON d.document_no = r.document_no "
        f"JOIN sources c ON c.source_no = d.source_no WHERE r.version_no = ?{also}",
        {"record_no": pl.Int64, "document_no": pl.Int64},
        (version.version_no, *(value for _, value in pushed)),
    )
    if documents is not None:
        rows = rows.filter(pl.col("document_no").is_in(documents.implode()))
    return rows["record_no"].sort()


def _pushed(expression: Expression, bound: Bound) -> Iterator[tuple[str, str]]:
    """Equalities that every chosen record fulfils: column, value."""
    parts = expression.parts if isinstance(expression, AllOf) else (expression,)
    for part in parts:
        if isinstance(part, Comparison) and part.operator == "=" and part.fact.text in _PUSHED:
            value = value_of(part.fact, bound.fact(part.fact), part.value)
            yield _PUSHED[part.fact.text], str(value)


def _document_numbers(connection: Connection, context: Context, documents: pl.Series) -> pl.Series:
    given = documents.cast(pl.String).unique(maintain_order=True)
    parts = [pl.DataFrame(schema={"document_no": pl.Int64, "document_id": pl.String})]
    for start in range(0, given.len(), MOST_NUMBERS):
        # No id has a zero character, and PostgreSQL takes no text with one.
        names = [name for name in given.slice(start, MOST_NUMBERS) if "\0" not in name]
        if not names:
            continue
        parts.append(
            context.ledger.dialect.fetch(
                connection,
                "SELECT document_no, document_id FROM documents WHERE document_id IN "  # noqa: S608
                f"({','.join('?' * len(names))})",
                {"document_no": pl.Int64, "document_id": pl.String},
                names,
            )
        )
    found = pl.concat(parts)
    unknown = given.filter(~given.is_in(found["document_id"].implode()))
    if not unknown.is_empty():
        raise UnknownListedDocuments(unknown.to_list())
    return found["document_no"]
