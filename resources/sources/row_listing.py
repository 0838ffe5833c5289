"""Which rows are documents, and why the others are none; a frame of rows at a time.

Here: judging rows into listed documents, the same for every source that holds rows. Not here:
where rows come from (`table_file`, `sql_table`), and the text of a row (`row_text`).

The first row with a key is the document. A later row with the same key, or with one that folds to
the same id, is the same document told again if its text is the same: it is left out. With another
text it is excluded as `id_collision`, under a name of its own.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import polars as pl

from resources.sources.listing import LISTED_ROWS, LISTED_SCHEMA, TEXT_SCHEMA, ListedSource
from resources.sources.port import EntryRefused
from resources.sources.row_text import (
    collision_id,
    is_no_key,
    keyless_id,
    row_checksums,
    row_ids,
    row_texts,
)
from resources.sources.seen_rows import SeenRows

#: Rows of a frame of texts at most.
TEXT_ROWS = 5_000
#: A frame of rows ends early at about so much text, so that long rows do not fill the memory.
FRAME_CHARACTERS = 16_000_000
_MARK_DIGITS = 8
_COLLISION = "another row has the same document id"


def rows_schema(columns: int) -> dict[str, type[pl.DataType]]:
    """The columns of a frame of rows.

    `row` is the row's number; `key`, `mark` and `text_0` … are values as text, null where the row
    has none; `big` says that a value is longer than a document may be (its text is then null);
    `unread` says that the texts were not asked for.
    """
    return {
        "row": pl.Int64,
        "key": pl.String,
        "mark": pl.String,
        "big": pl.Boolean,
        "unread": pl.Boolean,
        **{f"text_{number}": pl.String for number in range(columns)},
    }


@dataclass(frozen=True)
class RowRules:
    """How rows become documents.

    Attributes:
        source_name: what document ids start with.
        columns: names of the text columns, as they stand in a text.
        max_row_bytes: longer documents are excluded.
        made_of: what else decides which text a row has, such as its table.
    """

    source_name: str
    columns: tuple[str, ...]
    max_row_bytes: int
    made_of: tuple[str, ...] = ()

    @property
    def mark_of(self) -> str:
        """A short digest that every mark ends in: under other rules no known mark holds."""
        facts = repr((self.columns, self.max_row_bytes, self.made_of))
        return hashlib.sha256(facts.encode()).hexdigest()[:_MARK_DIGITS]


class RowListing:
    """Judges the rows of one listing, in order.

    Args:
        rules: how rows become documents.

    Attributes:
        entries: how many documents were listed so far, the excluded ones among them.
    """

    def __init__(self, rules: RowRules) -> None:
        self._rules = rules
        self._seen = SeenRows()
        self.entries = 0

    def listed(self, rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """The documents (`LISTED_SCHEMA`) of further rows (`rows_schema`)."""
        if rows.is_empty():
            return
        judged = judge_rows(rows, self._rules)
        judged = judged.with_columns(digest=self._seen.digests(judged["digest"]))
        listed = self._without_repeats(judged).select(list(LISTED_SCHEMA))
        self.entries += listed.height
        yield from listed.iter_slices(LISTED_ROWS)

    def _without_repeats(self, judged: pl.DataFrame) -> pl.DataFrame:
        judged = judged.with_columns(before=self._seen.find(judged["document_id"]))
        fresh = judged["before"].is_null() & judged["document_id"].is_first_distinct()
        if not fresh.all():
            judged = self._tell_apart(judged, fresh)
            fresh = judged["fresh"]
        self._seen.add(judged.filter(fresh)["document_id"], judged.filter(fresh)["digest"])
        return judged

    def _tell_apart(self, judged: pl.DataFrame, fresh: pl.Series) -> pl.DataFrame:
        first = pl.coalesce("before", pl.col("digest").first().over("document_id"))
        judged = judged.with_columns(fresh=fresh).filter(
            pl.col("fresh") | (pl.col("digest") != first)
        )
        again = (~judged["fresh"]).arg_true()
        names = [
            collision_id(self._rules.source_name, place, apart)
            for place, apart in judged[again].select("place", "apart").iter_rows()
        ]
        # A repeated key speaks before anything that is wrong with the row itself.
        judged = judged.with_columns(
            document_id=judged["document_id"].scatter(again, pl.Series(names, dtype=pl.String)),
            checksum=pl.when("fresh").then("checksum"),
            excluded=pl.when("fresh").then("excluded").otherwise(pl.lit("id_collision")),
            detail=pl.when("fresh").then("detail").otherwise(pl.lit(_COLLISION)),
        )
        # The names of collisions are remembered too: each of their texts is told once.
        known = self._seen.find(judged["document_id"]).is_not_null()
        return judged.filter(~known & judged["document_id"].is_first_distinct()).with_columns(
            fresh=pl.lit(value=True)
        )


def judge_rows(rows: pl.DataFrame, rules: RowRules) -> pl.DataFrame:
    """Rows as listed documents, without regard to other rows.

    Returns:
        `LISTED_SCHEMA`, with `text` (null where there is none), `digest` (the same for the same
        text, another in each row whose text is not known), and `apart`, which tells the row from
        others with its key.
    """
    unknown = pl.col("unread") | pl.col("big")
    texts = row_texts([(name, rows[f"text_{at}"]) for at, name in enumerate(rules.columns)])
    judged = pl.DataFrame(
        {
            "row": rows["row"],
            "place": rows["key"].fill_null("").cast(pl.Binary),
            "mark": rows["mark"] + f" {rules.mark_of}",
            "unread": rows["unread"],
            "big": rows["big"],
            "text": texts,
            "checksum": _checksums(texts, rows["unread"]),
            "no_key": is_no_key(rows["key"]),
        }
    ).with_columns(
        _ids(rows, rules.source_name),
        size=pl.when("unread").then(0).otherwise(pl.col("text").str.len_bytes()).cast(pl.Int64),
        mtime_ns=pl.lit(0, pl.Int64),
        device=pl.lit("0"),
        inode=pl.lit("0"),
        excluded=pl.lit(None, pl.String),
        detail=pl.lit(""),
        apart=pl.when(unknown)
        .then(
            pl.concat_str(
                pl.lit("row "),
                pl.int_range(pl.len()).over("place").cast(pl.String),
                pl.lit(" of "),
                rows["key"].fill_null(""),
            )
        )
        .otherwise("checksum"),
        digest=pl.when(unknown)
        .then(pl.concat_str(pl.lit("row "), pl.col("row").cast(pl.String)))
        .otherwise("checksum"),
    )
    judged = _excluded(judged, pl.col("no_key"), "no_key", "")
    judged = _excluded(judged, pl.col("too_long"), "name_too_long", "")
    read = ~pl.col("unread")
    limit = f"more than {rules.max_row_bytes} bytes"
    too_large = pl.col("big") | (pl.col("size") > rules.max_row_bytes)
    judged = _excluded(judged, read & too_large, "too_large", limit)
    judged = _excluded(judged, read & (pl.col("text") == ""), "empty", "")
    return judged.with_columns(
        checksum=pl.when(read & pl.col("excluded").is_null()).then("checksum"),
        text=pl.when(read & pl.col("excluded").is_null()).then("text"),
    )


def rows_with_ids(rows: pl.DataFrame, source_name: str, wanted: pl.Series) -> pl.DataFrame:
    """The rows whose document id is among the wanted ones; rows without a key have none."""
    keyed = rows.filter(~is_no_key(rows["key"]))
    ids = row_ids(source_name, keyed["key"])["document_id"]
    return keyed.filter(ids.is_in(wanted.implode()))


def texts_of(judged: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The texts (`TEXT_SCHEMA`) of judged rows that are documents, the first of each id."""
    documents = judged.unique("document_id", keep="first", maintain_order=True).filter(
        pl.col("excluded").is_null()
    )
    yield from documents.select(list(TEXT_SCHEMA)).iter_slices(TEXT_ROWS)


def vanished(wanted: pl.DataFrame, found: pl.Series) -> pl.DataFrame:
    """Wanted documents that are not among the found ones, as excluded (`READ_SCHEMA`)."""
    return (
        wanted.filter(~pl.col("document_id").is_in(found.implode()))
        .drop("place")
        .with_columns(excluded=pl.lit("unreadable"), detail=pl.lit("no longer there"))
    )


def open_row(source: ListedSource, document_id: str) -> BinaryIO:
    """The bytes of one row's document.

    Raises:
        EntryRefused: there is no such row, or it is excluded now.
        SourceError: the source is not usable.
    """
    for frame in source.texts(pl.Series([document_id], dtype=pl.String)):
        for text in frame["text"]:
            return io.BytesIO(text.encode())
    raise EntryRefused(document_id, "unreadable", "no longer there")


def _checksums(texts: pl.Series, unread: pl.Series) -> pl.Series:
    if unread.all():
        return pl.Series("checksum", [None] * len(texts), dtype=pl.String)
    return row_checksums(texts)


def _ids(rows: pl.DataFrame, source_name: str) -> list[pl.Series]:
    keyless = is_no_key(rows["key"])
    if not keyless.any():
        return row_ids(source_name, rows["key"]).get_columns()
    at = keyless.arg_true()
    ids = row_ids(source_name, rows["key"].scatter(at, "-"))
    names = [keyless_id(source_name, number) for number in rows["row"].gather(at).to_list()]
    return [ids["document_id"].scatter(at, pl.Series(names, dtype=pl.String)), ids["too_long"]]


def _excluded(frame: pl.DataFrame, where: pl.Expr, reason: str, detail: str) -> pl.DataFrame:
    """Exclude rows for which nothing else speaks already."""
    hit = where & pl.col("excluded").is_null()
    return frame.with_columns(
        excluded=pl.when(hit).then(pl.lit(reason)).otherwise("excluded"),
        detail=pl.when(hit).then(pl.lit(detail)).otherwise("detail"),
        checksum=pl.when(~hit).then("checksum"),
    )
