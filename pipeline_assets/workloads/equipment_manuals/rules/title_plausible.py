"""Rule `title_plausible`: what is given as the title can be one, by its words and by its place.

Stops file names, stamps of download sites, headings of sections, entries of tables of contents,
sentences, addresses, and titles that are cut or stand too far behind. That the words are printed
at all is for `title_present` and the evidence rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import polars as pl

from pipeline_assets.workloads.equipment_manuals.baseline import vocabulary
from pipeline_assets.workloads.equipment_manuals.rules import title_lines, title_words
from pipeline_assets.workloads.foreign_matter import foreign_matter
from pipeline_assets.workloads.workload import Rule, Shard

_SCHEMA = {"row": pl.Int64, "note": pl.String}
_BARE = "says only what kind of document it is"
_LEAFLET_PAGES = 2
_LEAST_PAGES = 4  # of a document, for what most of them repeat to be seen


def make_rule(thresholds: Mapping[str, Any]) -> Rule:
    """The rule for the workload's thresholds.

    Args:
        thresholds: `title`: `last_page`, behind which no title stands; `stamp_share`, of a
            document's pages, from which on a line without product and kind is a stamp.
    """
    limits = thresholds["title"]

    def check(shard: Shard) -> pl.DataFrame:
        titled = _titled(shard)
        places = shard.places.filter((pl.col("field") == "title") & pl.col("start").is_not_null())
        texts = shard.page_texts(places.select("row", "page").unique())
        found = [
            foreign_matter(titled.select("row", text="title")),
            _too_late(places, limits["last_page"]),
            _words(titled),
            _bare_kinds(titled, shard.records),
            _lines(titled, places, texts),
            _file_names(titled, places),
            _stamps(shard, titled, places, texts, limits["stamp_share"]),
        ]
        return (
            pl.concat([part.cast({"row": pl.Int64}) for part in found])
            .unique()
            .join(titled.select("row"), on="row", how="semi")
            .sort("row", "note")
            .select("row", field=pl.lit("title"), note="note")
        )

    return Rule(id="title_plausible", version=1, severity="review", check=check, family="title")


def _titled(shard: Shard) -> pl.DataFrame:
    """row, title, identifiers, doubtful, document_id of the answers that are sure of a title."""
    given = (pl.col("title_status") == "found") & (pl.col("title").str.strip_chars() != "")
    return (
        shard.values.filter(given)
        .select(
            "row",
            "title",
            pl.col("identifiers").list.drop_nulls(),
            doubtful=title_words.doubtful(pl.col("title")),
        )
        .join(shard.records.select("row", "document_id"), on="row", maintain_order="left")
    )


def _too_late(places: pl.DataFrame, last_page: int) -> pl.DataFrame:
    return (
        places.group_by("row")
        .agg(pl.col("page").min())
        .filter(pl.col("page") > last_page)
        .select("row", note=pl.format("stands on page {} and not at the front", pl.col("page")))
    )


def _words(titled: pl.DataFrame) -> pl.DataFrame:
    return _looked_at(
        titled.filter("doubtful"),
        title_words.against,
    )


def _bare_kinds(titled: pl.DataFrame, records: pl.DataFrame) -> pl.DataFrame:
    """Titles such as "User Manual", but those of leaflets that name no product."""
    short = records.filter(pl.col("page_count") <= _LEAFLET_PAGES).select("row")
    leaflets = titled.filter(pl.col("identifiers").list.len() == 0).join(
        short, on="row", how="semi"
    )
    return _looked_at(
        titled.filter("doubtful").join(leaflets, on="row", how="anti"),
        lambda title, _: _BARE if title_words.is_bare_kind(title) else None,
    )


def _looked_at(
    titled: pl.DataFrame, against: Callable[[str, list[str]], str | None]
) -> pl.DataFrame:
    notes = [
        (row, note)
        for row, title, identifiers in titled.select("row", "title", "identifiers").iter_rows()
        if (note := against(title, identifiers)) is not None
    ]
    return pl.DataFrame(notes, schema=_SCHEMA, orient="row")


def _lines(titled: pl.DataFrame, places: pl.DataFrame, texts: pl.DataFrame) -> pl.DataFrame:
    """Titles whose lines are looked at: those that do not take up their whole lines as they are."""
    spots = title_lines.spots(places, texts)
    plain = (
        spots.with_columns(whole=title_lines.whole())
        .group_by("row", maintain_order=True)
        .agg(pl.col("whole").all(), printed=pl.col("quote").str.join(" "))
        .join(titled, on="row", maintain_order="left")
        .filter(pl.col("whole") & (pl.col("printed") == pl.col("title")) & ~pl.col("doubtful"))
    )
    rest = spots.join(plain, on="row", how="anti", maintain_order="left")
    about = {
        row: (title, identifiers)
        for row, title, identifiers in titled.select("row", "title", "identifiers").iter_rows()
    }
    notes = [
        (row, note)
        for row, found in title_lines.read_spots(rest)
        if row in about
        for note in _line_notes(*about[row], found)
    ]
    return pl.DataFrame(notes, schema=_SCHEMA, orient="row")


def _line_notes(title: str, identifiers: list[str], found: list[title_lines.Spot]) -> Iterator[str]:
    note = title_lines.against(title, found, identifiers)
    if note is not None:
        yield note
    if title_words.is_bare_kind(title) and not title_lines.first_heading(found):
        yield _BARE
    if not title_words.is_composed(title, [spot.quote for spot in found]):
        yield "has its words in another order than they are printed, or twice"


def _file_names(titled: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """Titles that are the document's file name and are not printed so."""
    last = pl.col("document_id").str.split("/").list.last()
    squeezed = [
        pl.col("title"), last, last.str.replace(r"\.[^.]{1,5}$", "")
    ]  # fmt: skip
    title, name, stem = (
        text.str.to_lowercase().str.replace_all(r"[^\p{L}\p{M}\p{N}]", "") for text in squeezed
    )
    printed = places.group_by("row", maintain_order=True).agg(
        printed=pl.col("quote")
        .str.join("")
        .str.to_lowercase()
        .str.replace_all(r"[^\p{L}\p{M}\p{N}]", "")
    )
    return (
        titled.join(printed, on="row", how="left")
        .filter((title == name) | (title == stem))
        .filter(~pl.col("printed").fill_null("").str.contains(title, literal=True))
        .select("row", note=pl.lit("is the name of the document's file and is not printed"))
    )


def _stamps(
    shard: Shard, titled: pl.DataFrame, places: pl.DataFrame, texts: pl.DataFrame, share: float
) -> pl.DataFrame:
    """Titles without product and kind whose lines stand on most pages of their document."""
    long = shard.records.filter(pl.col("page_count") >= _LEAST_PAGES).select("row")
    unnamed = [
        row
        for row, title, identifiers in titled.filter("doubtful")
        .join(long, on="row", how="semi")
        .select("row", "title", "identifiers")
        .iter_rows()
        if not (vocabulary.names_kind(title) or title_words.names_product(title, identifiers))
    ]
    spots = title_lines.spots(places.filter(pl.col("row").is_in(unnamed)), texts)
    lines = spots.select(
        "row",
        line=pl.concat_str(pl.col("before").str.strip_chars_start(), "quote", pl.col("behind")),
    )
    notes: list[tuple[int, str]] = []
    if not lines.is_empty():
        for pages in shard.document_texts(lines["row"].unique().sort()):
            on_most = (
                pages.join(lines, on="row")
                .group_by("row", "line")
                .agg(on=pl.col("text").str.contains(pl.col("line"), literal=True).mean())
                .group_by("row")
                .agg(pl.col("on").min())
                .filter(pl.col("on") >= share)
            )
            notes += [(row, "is printed on most pages") for row in on_most["row"]]
    return pl.DataFrame(notes, schema=_SCHEMA, orient="row")
