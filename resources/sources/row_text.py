r"""The text of a row, its checksum and its document id, a frame of rows at a time.

Here: the normal form of a row's text, and ids made from keys. Not here: where rows come from
(`table_file`, `sql_table`), and which of them are documents (`row_listing`).

A row's document is its text in normal form: line ends are `\n`, no control characters but `\n` and
`\t`, NFC, no blanks at line ends, no empty line at either end. With one text column it is that
column's value; with several it is a paragraph `<column>: <value>` for each value that is not
empty, in the declared order, with an empty line between two. Its bytes are the UTF-8 of that text.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence

import polars as pl

from resources.sources.document_id import (
    MAX_DOCUMENT_ID_BYTES,
    DocumentIdTooLong,
    document_id,
    escape_path_exactly,
    shortened_document_id,
)

_LINE_ENDS = r"\r\n?|[\x0b\x0c\x{85}\x{2028}\x{2029}]"
_CONTROLS = r"[\x00-\x08\x0e-\x1f\x7f-\x{9f}]"
_BLANKS_AT_LINE_END = r"(?m)[^\S\n]+$"
_PLAIN_KEY = r"^[ -$&-9;-?A-~]+$"
_HEAD_BYTES = 200


def normal_text(values: pl.Series) -> pl.Series:
    """Texts in normal form; null becomes the empty text. The normal form of it is the same text."""
    texts = values.fill_null("").str.replace_all(_LINE_ENDS, "\n").str.replace_all(_CONTROLS, "")
    # Composing is the slow part, and changes nothing in ASCII.
    if (texts.str.len_bytes() != texts.str.len_chars()).any():
        texts = texts.str.normalize("NFC")
    return texts.str.replace_all(_BLANKS_AT_LINE_END, "").str.strip_chars("\n")


def row_texts(columns: Sequence[tuple[str, pl.Series]]) -> pl.Series:
    """The text of each row.

    Args:
        columns: name and values of each text column, in the declared order.
    """
    if len(columns) == 1:
        return normal_text(columns[0][1]).rename("text")
    named = pl.DataFrame(
        {f"{number}": normal_text(values) for number, (_, values) in enumerate(columns)}
    )
    paragraphs = [
        pl.when(pl.col(f"{number}") != "").then(
            pl.concat_str(pl.lit(f"{name}: "), pl.col(f"{number}"))
        )
        for number, (name, _) in enumerate(columns)
    ]
    return named.select(
        pl.concat_str(paragraphs, separator="\n\n", ignore_nulls=True).alias("text")
    ).to_series()


def row_checksums(texts: pl.Series) -> pl.Series:
    """SHA-256 of each text's UTF-8 bytes, in lower-case hexadecimal."""
    sha256 = hashlib.sha256
    return pl.Series(
        "checksum",
        [sha256(text.encode()).hexdigest() for text in texts.to_list()],
        dtype=pl.String,
    )


def is_no_key(keys: pl.Series) -> pl.Series:
    """Where a key is null or nothing but white space, so that it names no row."""
    return (keys.fill_null("").str.strip_chars() == "").rename("no_key")


def row_ids(source_name: str, keys: pl.Series) -> pl.DataFrame:
    """The document ids of keys that are not blank.

    Returns:
        document_id, and `too_long` where it is only a shortened one.
    """
    room = MAX_DOCUMENT_ID_BYTES - len(source_name) - 1
    plain = keys.str.contains(_PLAIN_KEY) & (keys.str.len_bytes() <= room)
    ids = pl.DataFrame({"key": keys}).select(
        document_id=pl.concat_str(pl.lit(f"{source_name}/"), pl.col("key")),
        too_long=pl.lit(value=False),
    )
    if plain.all():
        return ids
    odd = (~plain).arg_true()
    made = [_row_id(source_name, key.encode()) for key in keys.gather(odd).to_list()]
    return ids.with_columns(
        ids["document_id"].scatter(odd, pl.Series([name for name, _ in made], dtype=pl.String)),
        ids["too_long"].scatter(odd, pl.Series([long for _, long in made], dtype=pl.Boolean)),
    )


def keyless_id(source_name: str, number: int) -> str:
    """The name of a row without a key: it can be listed as excluded, never processed.

    Args:
        source_name: the source.
        number: the row's, from 1. Nothing else names such a row, so a row that is put in before it
            gives it another name; no other document can have this name, because `%~` is in no id.
    """
    return f"{source_name}/%~row-{number}"


def collision_id(source_name: str, key: bytes, told_apart_by: str) -> str:
    """The name of a row whose document id another row has: listed as excluded, never processed.

    Args:
        source_name: the source.
        key: the row's key; two spellings that fold to one id give one name.
        told_apart_by: what makes it another row than the first: its checksum, or its place.
    """
    folded = unicodedata.normalize("NFC", key.decode()).encode()
    head = escape_path_exactly(folded[:_HEAD_BYTES])
    digest = hashlib.sha256(folded + b"\0" + told_apart_by.encode()).hexdigest()
    return f"{source_name}/{head}%~{digest}"


def _row_id(source_name: str, key: bytes) -> tuple[str, bool]:
    try:
        return document_id(source_name, key), False
    except DocumentIdTooLong:
        return shortened_document_id(source_name, key), True
