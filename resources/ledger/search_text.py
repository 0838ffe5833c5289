"""How text becomes search tokens, the same for entries and queries and on both databases.

Belongs here: folding and cutting text into tokens. Does not belong here: storing or ranking
them (the dialect modules).

Tokens are runs of letters, digits, `-`, `/` and `.`, so that part numbers stay whole; case,
accents and the many hyphens of Unicode are folded; each Chinese, Japanese or Korean character is
a token of its own, so that a word inside a sentence is found as a phrase.
"""

from __future__ import annotations

import polars as pl

MAX_TOKENS = 1000
"""Tokens of one field that are indexed."""
MAX_TOKEN_LENGTH = 64
"""Characters of a token that are indexed. Three full fields are 768 KB at the very most;
PostgreSQL refuses a vector above 1 MB, and one such entry would fail its whole shard."""
MAX_QUERY_LENGTH = 2000
"""Characters of a query that count; PostgreSQL gives up at some ten thousand terms."""

_TRADE_SIGNS = r"[\x{2122}\x{2120}]"
"""Normalisation would make `Pump™` the word `pumptm`."""
# The marks that a reader can do without: accents, Hebrew and Arabic points; not the vowels of
# Indian scripts, nor the sound marks that tell Japanese `ga` from `ka`. And invisible characters,
# such as the soft hyphens inside words.
_DROPPED = r"[\p{Mn}&&[\p{Inherited}\p{Hebrew}]--[\x{3099}\x{309A}]]|\p{Cf}"
_HYPHENS = r"[\x{2010}\x{2011}\x{2212}]"
_CJK = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\x{30FC}]"
_ASCII_TOKEN = r"[a-z0-9](?:[a-z0-9/.\-]*[a-z0-9])?"  # noqa: S105 - a pattern
_TOKEN = r"[\p{L}\p{N}][\p{L}\p{N}\p{M}/.\-]*[\p{L}\p{N}\p{M}]|[\p{L}\p{N}]"  # noqa: S105 - a pattern


def tokens(text: pl.Expr) -> pl.Expr:
    """The text as tokens separated by single spaces; null becomes an empty string."""
    return text.fill_null("").map_batches(_tokens, return_dtype=pl.String)


def _tokens(texts: pl.Series) -> pl.Series:
    """Plain ASCII needs no folding but that of case: a third of the time of the whole way."""
    frame = pl.DataFrame({"text": texts}).with_row_index("row")
    plain = pl.col("text").str.len_bytes() == pl.col("text").str.len_chars()
    ascii_texts = pl.col("text").str.to_lowercase().str.extract_all(_ASCII_TOKEN)
    parts = [
        frame.filter(plain).select("row", text=_joined(ascii_texts)),
        frame.filter(~plain).select("row", text=_joined(_folded_tokens(pl.col("text")))),
    ]
    return pl.concat(parts).sort("row")["text"].alias(texts.name)


def _folded_tokens(text: pl.Expr) -> pl.Expr:
    folded = (
        text.str.replace_all(_TRADE_SIGNS, " ")
        .str.normalize("NFKD")
        .str.replace_all(_DROPPED, "")
        .str.normalize("NFKC")
        .str.replace_all(_HYPHENS, "-")
        .str.to_lowercase()
        .str.replace_all("ς", "σ", literal=True)  # the one letter with two small forms
        .str.replace_all(f"({_CJK})", " ${1} ")
    )
    return folded.str.extract_all(_TOKEN)


def _joined(found: pl.Expr) -> pl.Expr:
    return (
        found.list.head(MAX_TOKENS)
        .list.join(" ")
        .str.replace_all(rf"(\S{{{MAX_TOKEN_LENGTH}}})\S+", "${1}")
    )


def query_terms(query: str) -> list[list[str]]:
    """A person's query as terms; each term's tokens must stand next to each other.

    Blank-separated words are terms; a word that folds to several tokens is a phrase. Of a longer
    query the first `MAX_QUERY_LENGTH` characters count.
    """
    words = query[:MAX_QUERY_LENGTH].split()
    if not words:
        return []
    folded = pl.DataFrame({"word": words}).select(tokens(pl.col("word")))["word"].to_list()
    return [found.split(" ") for found in folded if found]
