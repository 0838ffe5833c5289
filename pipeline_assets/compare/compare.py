"""Two processing versions side by side, on the documents that both have values for.

Belongs here: which values stand for a version, and counting in shards. Does not belong here: the
outcome of a pair (`fields.py`) and showing it (`html.py`, `cli/compare.py`).

What stands for a version is, of each document, its newest record that is accepted or published:
the newest archive entry of a published one, also where the archive shows another version now, and
the staged or corrected values of one that is accepted and not promoted yet. So two versions can be
compared before the second is shown to anybody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.account.shards import shards
from pipeline_assets.compare.fields import (
    BETWEEN,
    OUTCOMES,
    is_changed,
    outcomes_of,
    texts_of,
)
from pipeline_assets.known_version import KnownVersion, known_version
from pipeline_assets.slices import UNPARSED, slices_of_version
from pipeline_assets.workloads.fields import fields_of
from pipeline_assets.workloads.workload import PublishedField
from resources.context import Context
from resources.contracts import STAGING, scan_frame
from resources.ledger.engine import Ledger
from resources.ledger.numbers import is_one_of

SLICE = "slice"

_STANDING_SCHEMA = {
    "document_no": pl.Int64,
    "record_no": pl.Int64,
    "source_version_no": pl.Int64,
    "entry_no": pl.Int64,
    "attempt_no": pl.Int64,
    "artifact": pl.String,
}
_JUDGED_LAST = (
    "NOT EXISTS (SELECT 1 FROM attempts n JOIN judgements k ON k.attempt_no = n.attempt_no "
    "WHERE n.record_no = a.record_no AND n.attempt_no > a.attempt_no)"
)


class SameVersion(ValueError):
    """A version was to be compared with itself."""

    def __init__(self, key: str) -> None:
        super().__init__(f"{key} is given twice; name two processing versions.")


class OtherWorkload(ValueError):
    """Two versions were to be compared that extract other things."""

    def __init__(self, first: KnownVersion, second: KnownVersion) -> None:
        super().__init__(
            f"{first.key} is of workload {first.workload}, and {second.key} of {second.workload}: "
            "they have other fields. Name two versions of one workload (tallybook versions)."
        )


class UnclearCondition(ValueError):
    """A condition on what is listed cannot be read."""

    def __init__(self, text: str, fields: Sequence[PublishedField]) -> None:
        names = [field.name for field in fields]
        super().__init__(
            f"{text!a} is no condition; expected a field ({', '.join(names)}) with an outcome "
            f"({', '.join(OUTCOMES)}), such as {names[0]}=changed, or slice=NAME."
        )


class ContradictingConditions(UnclearCondition):
    """Two conditions on the same thing, of which a document meets one at most."""

    def __init__(self, name: str, first: str, second: str) -> None:
        ValueError.__init__(
            self,
            f"{name}={first!a} and {name}={second!a} never hold together, and a document is listed "
            f"if it meets every condition; give {name} once.",
        )


@dataclass(frozen=True)
class ListedDocument:
    """A document with the values of both versions.

    Attributes:
        document_id: its id.
        slice: its slice.
        outcomes: field → outcome.
        first: field → values of the first version; more than one of a list only.
        second: the same of the second.
    """

    document_id: str
    slice: str
    outcomes: dict[str, str]
    first: dict[str, list[str]]
    second: dict[str, list[str]]


@dataclass
class Comparison:
    """How two versions differ.

    Attributes:
        first: key of the first version.
        second: key of the second.
        workload: of both.
        labels: field → what people read, in the order of the fields.
        both: documents that both have values for.
        changed: those of them with a value that is another one.
        unpublished: documents whose values were not published yet, of the first and the second.
        other_bytes: documents of which the two read different bytes.
        only_first: documents that the first alone has values for.
        only_second: documents that the second alone has values for.
        fields: field → outcome → documents.
        slices: slice → what is counted of its documents.
        matching: documents that fit the conditions.
        listed: those of them that are listed, by document_id.
        only_first_ids: some of those documents, by document_id.
        only_second_ids: likewise.
    """

    first: str
    second: str
    workload: str
    labels: dict[str, str]
    both: int = 0
    changed: int = 0
    unpublished: tuple[int, int] = (0, 0)
    other_bytes: int = 0
    only_first: int = 0
    only_second: int = 0
    fields: dict[str, dict[str, int]] = field(default_factory=dict)
    slices: dict[str, dict[str, Any]] = field(default_factory=dict)
    matching: int = 0
    listed: list[ListedDocument] = field(default_factory=list)
    only_first_ids: list[str] = field(default_factory=list)
    only_second_ids: list[str] = field(default_factory=list)


def read_conditions(texts: Sequence[str], fields: Sequence[PublishedField]) -> dict[str, str]:
    """Conditions on what is listed: field → outcome, and slice → its name.

    Args:
        texts: as they are typed, `FIELD=OUTCOME` or `slice=NAME`.
        fields: of the workload that is compared.

    Raises:
        UnclearCondition: one cannot be read.
        ContradictingConditions: no document can meet two of them.
    """
    names = {field.name for field in fields}
    conditions: dict[str, str] = {}
    for text in texts:
        name, separator, wanted = text.partition("=")
        known = (name in names and wanted in OUTCOMES) or (name == SLICE and wanted)
        if not separator or not known:
            raise UnclearCondition(text, fields)
        if conditions.get(name, wanted) != wanted:
            raise ContradictingConditions(name, conditions[name], wanted)
        conditions[name] = wanted
    return conditions


def compare_versions(
    context: Context,
    first: str,
    second: str,
    *,
    where: Sequence[str] = (),
    limit: int = 200,
) -> Comparison:
    """Compare two versions; memory holds numbers of all documents and values of one shard.

    Args:
        context: the open resources.
        first: key of the version that is compared with.
        second: key of the version that is new.
        where: conditions on the documents that are listed, `FIELD=OUTCOME` or `slice=NAME`;
            changed ones if none is given. All documents are counted, whatever is listed.
        limit: at most so many documents in each list.

    Raises:
        SameVersion: the keys are the same.
        OtherWorkload: the versions are of two workloads.
        UnknownWorkload: their workload is not installed any more.
        UnclearCondition, ContradictingConditions: a condition cannot be read or met.
        MalformedVersionKey, VersionNeverUsed: there is no such version here.
        ContractRefused, ArtifactMissing: staged values cannot be read.
    """
    if first == second:
        raise SameVersion(first)
    one, other = known_version(context, first), known_version(context, second)
    if one.workload != other.workload:
        raise OtherWorkload(one, other)
    fields = fields_of(context.settings, one.workload)
    conditions = read_conditions(where, fields)
    labels = {field.name: field.label for field in fields}
    found = Comparison(first, second, one.workload, labels)
    found.fields = {name: dict.fromkeys(OUTCOMES, 0) for name in labels}
    ledger = context.ledger
    with ledger.read() as connection:
        a, b = (_standing(connection, ledger, version) for version in (one, other))
        pairs = _with_ids(connection, ledger, a.join(b, on="document_no", suffix="_b"))
        pairs = _with_slices(connection, ledger, pairs, other)
        _count_ends(connection, context, found, a, b)
        found.both = pairs.height
        found.unpublished = (
            pairs["entry_no"].null_count(),
            pairs["entry_no_b"].null_count(),
        )
        found.other_bytes = pairs.filter(
            pl.col("source_version_no") != pl.col("source_version_no_b")
        ).height
        for part in shards(context, pairs, "document_id"):
            _compare_shard(connection, context, found, part, fields, conditions, limit)
    return found


def _compare_shard(
    connection: Connection,
    context: Context,
    found: Comparison,
    part: pl.DataFrame,
    fields: Sequence[PublishedField],
    where: Mapping[str, str],
    limit: int,
) -> None:
    first = texts_of(_contents(connection, context, part, ""), fields)
    second = texts_of(_contents(connection, context, part, "_b"), fields)
    outcomes = outcomes_of(first, second)
    changed = is_changed(outcomes)
    found.changed += int(changed.sum())
    for name in found.fields:
        for outcome, count in outcomes[name].value_counts().iter_rows():
            found.fields[name][outcome] += count
    _count_slices(found, outcomes.with_columns(changed=changed, slice=part["slice"]))
    fits = changed if not where else _fits(outcomes.with_columns(slice=part["slice"]), where)
    found.matching += int(fits.sum())
    rows = fits.arg_true().head(max(0, limit - len(found.listed)))
    for row in rows:
        found.listed.append(
            ListedDocument(
                part["document_id"][row],
                part["slice"][row],
                outcomes.row(row, named=True),
                _shown(first, row),
                _shown(second, row),
            )
        )


def _fits(outcomes: pl.DataFrame, where: Mapping[str, str]) -> pl.Series:
    return outcomes.select(
        fits=pl.all_horizontal(pl.col(name) == wanted for name, wanted in where.items())
    )["fits"]


def _shown(values: pl.DataFrame, row: int) -> dict[str, list[str]]:
    return {
        name: [] if value is None else value.split(BETWEEN)
        for name, value in values.row(row, named=True).items()
    }


def _count_slices(found: Comparison, outcomes: pl.DataFrame) -> None:
    counts = outcomes.group_by("slice").agg(
        pl.len().alias("documents"),
        pl.col("changed").sum(),
        *(
            (pl.col(name) == outcome).sum().alias(f"{name} {outcome}")
            for name in found.fields
            for outcome in OUTCOMES
        ),
    )
    for row in counts.sort("slice").iter_rows(named=True):
        total = found.slices.setdefault(
            row["slice"],
            {
                "documents": 0,
                "changed": 0,
                "fields": {name: dict.fromkeys(OUTCOMES, 0) for name in found.fields},
            },
        )
        total["documents"] += row["documents"]
        total["changed"] += row["changed"]
        for name in found.fields:
            for outcome in OUTCOMES:
                total["fields"][name][outcome] += row[f"{name} {outcome}"]
    found.slices = dict(sorted(found.slices.items()))


def _standing(connection: Connection, ledger: Ledger, version: KnownVersion) -> pl.DataFrame:
    """Of each document, where the values are that stand for the version (`_STANDING_SCHEMA`)."""
    published = ledger.dialect.fetch(
        connection,
        "SELECT e.document_no, e.record_no, r.source_version_no, e.entry_no, NULL, NULL "
        "FROM archive_entries e JOIN records r ON r.record_no = e.record_no "
        "LEFT JOIN record_state s ON s.record_no = e.record_no WHERE e.version_no = ? "
        # What was rejected or withdrawn stands for nothing, also while it is tried again.
        "AND (s.state IS NULL OR s.state IN ('published', 'accepted'))",
        _STANDING_SCHEMA,
        (version.version_no,),
    )
    accepted = ledger.dialect.fetch(
        connection,
        "SELECT r.document_no, r.record_no, r.source_version_no, NULL, a.attempt_no, "  # noqa: S608
        "b.staging_artifact FROM record_state s JOIN records r ON r.record_no = s.record_no "
        "JOIN attempts a ON a.record_no = r.record_no "
        "JOIN judgements j ON j.attempt_no = a.attempt_no "
        "JOIN batches b ON b.batch_no = a.batch_no "
        f"WHERE s.state = 'accepted' AND r.version_no = ? AND {_JUDGED_LAST}",
        _STANDING_SCHEMA,
        (version.version_no,),
    )
    # A record is published again after it was accepted again, so its entry is the older one.
    newest = published.sort("entry_no").unique("record_no", keep="last")
    return (
        pl.concat([newest, accepted])
        .sort("record_no", "attempt_no", nulls_last=False)
        .unique("document_no", keep="last")
    )


def _with_ids(connection: Connection, ledger: Ledger, rows: pl.DataFrame) -> pl.DataFrame:
    names = ledger.dialect.fetch(
        connection,
        "SELECT document_no, document_id FROM documents",
        {"document_no": pl.Int64, "document_id": pl.String},
    )
    return rows.join(names, on="document_no")


def _with_slices(
    connection: Connection, ledger: Ledger, pairs: pl.DataFrame, version: KnownVersion
) -> pl.DataFrame:
    """As the second version's parser sees the documents."""
    known = slices_of_version(connection, ledger, version.version_no, version.parser_key)
    return pairs.join(
        known.select("record_no", "slice"), left_on="record_no_b", right_on="record_no", how="left"
    ).with_columns(pl.col("slice").fill_null(UNPARSED))


def _count_ends(
    connection: Connection,
    context: Context,
    found: Comparison,
    a: pl.DataFrame,
    b: pl.DataFrame,
) -> None:
    for mine, others, name in ((a, b, "only_first"), (b, a, "only_second")):
        alone = mine.join(others, on="document_no", how="anti").select("document_no")
        setattr(found, name, alone.height)
        ids = _with_ids(connection, context.ledger, alone)["document_id"].sort()
        setattr(found, f"{name}_ids", ids.head(_IDS_SHOWN).to_list())


_IDS_SHOWN = 200


def _contents(connection: Connection, context: Context, part: pl.DataFrame, side: str) -> pl.Series:
    """The content that stands for a version, of each row of a shard."""
    rows = part.select(
        entry_no=f"entry_no{side}", attempt_no=f"attempt_no{side}", artifact=f"artifact{side}"
    )
    entries = context.ledger.dialect.fetch(
        connection,
        "SELECT entry_no, content FROM archive_entries "  # noqa: S608 - numbers alone
        f"WHERE {is_one_of('entry_no', rows['entry_no'].drop_nulls())}",
        {"entry_no": pl.Int64, "content": pl.String},
    )
    staged = _staged(connection, context, rows.drop_nulls("attempt_no"))
    return (
        rows.join(entries, on="entry_no", how="left", maintain_order="left")
        .join(staged, on="attempt_no", how="left", suffix="_staged", maintain_order="left")
        .select(pl.coalesce("content", "content_staged").alias("content"))["content"]
    )


def _staged(connection: Connection, context: Context, rows: pl.DataFrame) -> pl.DataFrame:
    """attempt_no, content of accepted records that are not published: corrected, or as staged."""
    schema = {"attempt_no": pl.Int64, "content": pl.String}
    if rows.is_empty():
        return pl.DataFrame(schema=schema)
    attempts = rows["attempt_no"]
    corrected = context.ledger.dialect.fetch(
        connection,
        "SELECT attempt_no, corrected_content FROM reviews "  # noqa: S608 - numbers alone
        f"WHERE decision = 'correct' AND {is_one_of('attempt_no', attempts)} ORDER BY review_no",
        schema,
    ).unique("attempt_no", keep="last")
    parts = [corrected]
    open_ = rows.join(corrected, on="attempt_no", how="anti")
    for artifact in _artifacts(connection, context, open_):
        path = context.artifacts.require("frame", artifact)
        parts.append(
            scan_frame(STAGING, path)
            .filter(pl.col("attempt_no").is_in(open_["attempt_no"].implode()))
            .select("attempt_no", "content")
            .collect()
        )
    # What came late is staged once more, with its set; the set is looked at first.
    return pl.concat(parts).unique("attempt_no", keep="first", maintain_order=True)


def _artifacts(connection: Connection, context: Context, rows: pl.DataFrame) -> Iterator[str]:
    """Staging frames that may hold these attempts: those of late answers, then their batches."""
    late = context.ledger.dialect.fetch(
        connection,
        "SELECT DISTINCT w.staging_artifact FROM late_answers w "  # noqa: S608 - numbers alone
        "JOIN late_results l ON l.batch_no = w.batch_no AND l.used = 1 "
        f"WHERE w.staging_artifact IS NOT NULL AND {is_one_of('l.attempt_no', rows['attempt_no'])}",
        {"artifact": pl.String},
    )
    yield from late["artifact"]
    yield from rows["artifact"].drop_nulls().unique(maintain_order=True)
