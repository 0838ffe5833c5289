"""What the sources of a workload hold now, by stratum, and the documents that a pilot takes of it.

Belongs here: one pass over the sources, and what the main ledger knows of their documents. Does not
belong here: the decision (`strata.py`) and scanning the sample (`steps.py`).

The main ledger is only read. Memory holds one frame of the listing and at most `sample` candidates
of each stratum, however large the archive is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import polars as pl

from pipeline_assets.pilot.errors import NothingToSample
from pipeline_assets.pilot.strata import FACTS_SCHEMA, allocate, choose, places, strata
from resources.context import Context
from resources.ledger.frames import json_of_texts
from resources.settings import Settings
from resources.sources.declared import DeclaredSource, declared_sources
from resources.sources.sampled import open_to_look

_KNOWN_SCHEMA = {
    "document_id": pl.String,
    "checksum": pl.String,
    "entry_excluded": pl.String,
    "decision": pl.String,
    "erased": pl.Int64,
    "parse_excluded": pl.String,
    "page_count": pl.Int64,
    "language": pl.String,
    "notes": pl.String,
    "parser_key": pl.String,
    "parsed_at": pl.String,
}
_KNOWN = (
    "SELECT d.document_id, v.checksum, e.excluded, (SELECT a.decision FROM approvals a "
    "WHERE a.source_version_no = e.source_version_no ORDER BY a.approval_no DESC LIMIT 1), "
    "CASE WHEN EXISTS (SELECT 1 FROM erasures x WHERE x.document_no = d.document_no) "
    "THEN 1 ELSE 0 END, p.excluded, p.page_count, p.language, p.notes, p.parser_key, p.parsed_at "
    "FROM ({texts}) s JOIN documents d ON d.document_id = s.value "
    "LEFT JOIN source_entries e ON e.document_no = d.document_no AND e.to_snapshot IS NULL "
    "LEFT JOIN source_versions v ON v.source_version_no = e.source_version_no "
    "LEFT JOIN parses p ON p.checksum = v.checksum"
)
_CANDIDATE_SCHEMA = {
    "document_id": pl.String,
    "source": pl.String,
    "stratum": pl.String,
    "place": pl.Int64,
    "size": pl.Int64,
    "checksum": pl.String,
}


class StratumCount(msgspec.Struct, frozen=True):
    """A stratum as the sources hold it.

    Attributes:
        name: see `strata.py`.
        documents: how many there are.
        bytes: their size together, as listed.
        sampled: how many of them are taken.
    """

    name: str
    documents: int
    bytes: int
    sampled: int


class Taken(msgspec.Struct, frozen=True):
    """A document that a pilot takes.

    Attributes:
        document_id: its id.
        source: the name of its source.
        stratum: its stratum.
        bytes: its size, as listed.
        checksum: SHA-256 that the main ledger, or the listing itself, has for it; None: never read.
    """

    document_id: str
    source: str
    stratum: str
    bytes: int
    checksum: str | None


@dataclass(frozen=True)
class Population:
    """What the sources hold, and what is taken of it.

    Attributes:
        strata: by name.
        taken: by document id.
        left_out: why → documents that are in no stratum: those that the listing itself leaves out,
            erased ones, and those that nobody approved.
        known: documents of the strata whose stratum the main ledger's parses tell.
    """

    strata: tuple[StratumCount, ...]
    taken: tuple[Taken, ...]
    left_out: dict[str, int]
    known: int

    @property
    def documents(self) -> int:
        """Documents of all strata."""
        return sum(stratum.documents for stratum in self.strata)


@dataclass
class _Tally:
    counts: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    known: int = 0
    kept: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_CANDIDATE_SCHEMA))

    def leave(self, why: str, count: int) -> None:
        if count:
            self.left_out[why] = self.left_out.get(why, 0) + count


def look_at_population(
    settings: Settings,
    main: Context | None,
    workload: str,
    *,
    sample: int,
    seed: int,
    parser_keys: Sequence[str],
) -> Population:
    """Count what the sources of a workload hold by stratum, and choose a sample.

    Args:
        settings: where the sources are declared.
        main: the main archive, open; None where nothing was ever processed.
        workload: whose sources.
        sample: documents to take.
        seed: what the order of the documents is made of.
        parser_keys: the parses that tell a document's stratum; others only where these are missing.

    Raises:
        InvalidSources: the declarations cannot be used.
        SourceError: a source cannot be listed.
        NothingToSample: no source holds a document to try.
        SampleTooSmall: there are more strata than `sample`.
    """
    tally = _Tally()
    for declared in declared_sources(settings):
        if declared.workload == workload:
            _look_at_source(declared, main, tally, sample, seed, parser_keys)
    if not tally.counts:
        raise NothingToSample(workload)
    allocation = allocate(tally.counts, sample)
    taken = choose(tally.kept, allocation)
    return Population(
        strata=tuple(
            StratumCount(name, tally.counts[name], tally.sizes[name], allocation[name])
            for name in sorted(tally.counts)
        ),
        taken=tuple(
            Taken(row["document_id"], row["source"], row["stratum"], row["size"], row["checksum"])
            for row in taken.iter_rows(named=True)
        ),
        left_out=dict(sorted(tally.left_out.items())),
        known=tally.known,
    )


def _look_at_source(
    declared: DeclaredSource,
    main: Context | None,
    tally: _Tally,
    sample: int,
    seed: int,
    parser_keys: Sequence[str],
) -> None:
    for listed in open_to_look(declared).listing():
        frame = listed.select("document_id", "size", "excluded", listed_checksum="checksum")
        for why, count in frame["excluded"].drop_nulls().value_counts().iter_rows():
            tally.leave(str(why), int(count))
        frame = frame.filter(pl.col("excluded").is_null()).drop("excluded")
        _count(_with_facts(frame, main, parser_keys), declared, tally, sample, seed)


def _with_facts(
    frame: pl.DataFrame, main: Context | None, parser_keys: Sequence[str]
) -> pl.DataFrame:
    known = pl.DataFrame(schema=_KNOWN_SCHEMA)
    if main is not None and not frame.is_empty():
        ledger = main.ledger
        with ledger.read() as connection:
            known = ledger.dialect.fetch(
                connection,
                _KNOWN.format(texts=ledger.dialect.texts_of_json),
                _KNOWN_SCHEMA,
                (json_of_texts(frame["document_id"]),),
            )
    newest = (
        known.with_columns(
            meant=pl.col("parser_key").is_in(list(parser_keys)).fill_null(value=False)
        )
        .sort("meant", "parsed_at", nulls_last=False)
        .unique("document_id", keep="last")
        .drop("meant", "parser_key", "parsed_at")
    )
    return frame.join(newest, on="document_id", how="left", maintain_order="left").with_columns(
        excluded=pl.coalesce("entry_excluded", "parse_excluded"),
        checksum=pl.coalesce("listed_checksum", "checksum"),
        erased=pl.col("erased").fill_null(0),
    )


def _count(
    facts: pl.DataFrame, declared: DeclaredSource, tally: _Tally, sample: int, seed: int
) -> None:
    tally.leave("erased", int((facts["erased"] > 0).sum()))
    facts = facts.filter(pl.col("erased") == 0)
    if declared.approval:
        approved = (pl.col("decision") == "approved").fill_null(value=False)
        tally.leave("not_approved", facts.height - facts.filter(approved).height)
        facts = facts.filter(approved)
    if facts.is_empty():
        return
    rows = facts.with_columns(
        strata(facts.select(list(FACTS_SCHEMA))).alias("stratum"),
        places(facts["document_id"], seed).alias("place"),
        pl.lit(declared.name).alias("source"),
    )
    tally.known += rows.filter(~pl.col("stratum").str.starts_with("unparsed/")).height
    counted = rows.group_by("stratum").agg(pl.len(), pl.col("size").sum())
    for name, documents, size in counted.iter_rows():
        tally.counts[name] = tally.counts.get(name, 0) + documents
        tally.sizes[name] = tally.sizes.get(name, 0) + size
    both = pl.concat([tally.kept, rows.select(list(_CANDIDATE_SCHEMA))])
    tally.kept = (
        both.sort("place", "document_id")
        .group_by("stratum")
        .head(sample)
        .select(list(_CANDIDATE_SCHEMA))
    )
