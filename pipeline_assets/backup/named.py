"""Which artifacts a backup has to hold: those that the dumped rows name, by the same snapshot.

Belongs here: that question. Does not belong here: copying them (`copies.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from sqlalchemy import Connection

from resources import kept_bytes
from resources.artifacts import GONE, KINDS
from resources.context import Context
from resources.ledger.erasures import redactions_now
from resources.ledger.prunes import named_artifacts, pruned_names

_HEX = "0123456789abcdef"

# Bytes are kept of what a manifest froze; of an erased document nothing is, unless another one
# has the same bytes.
_KEPT_BYTES = (
    "SELECT DISTINCT checksum FROM records WHERE checksum >= ? AND checksum < ? "
    "AND document_no NOT IN (SELECT document_no FROM erasures)"
)


WANTED_SCHEMA = {"kind": pl.String, "digest": pl.String, "excuse": pl.String}
"""An artifact that rows name; `excuse` says why it is no loss where the store does not have it."""
PRUNED, NOT_KEPT = "pruned", "not kept"


def named(connection: Connection, context: Context) -> Iterator[pl.DataFrame]:
    """Every artifact that the ledger names (`WANTED_SCHEMA`), a sixteenth of a kind at a time."""
    pruned = pruned_names(connection, context.ledger)
    erased = redactions_now(connection, context.ledger).filter(pl.col("present_digest") == GONE)
    for kind in KINDS:
        of_kind = pl.col("kind") == kind
        removed, emptied = pruned.filter(of_kind)["digest"], erased.filter(of_kind)["digest"]
        for prefix in _HEX:
            digests = named_artifacts(connection, context.ledger, kind, prefix) - {""}
            missed = digests
            if kind == "source":
                missed = _missed(connection, context, prefix)
            digest = pl.col("digest")
            yield pl.DataFrame({"digest": sorted(digests)}, schema={"digest": pl.String}).select(
                kind=pl.lit(kind, dtype=pl.String),
                digest=digest,
                excuse=pl.when(digest.is_in(removed.implode()))
                .then(pl.lit(PRUNED))
                .when(digest.is_in(emptied.implode()) | ~digest.is_in(sorted(missed)))
                .then(pl.lit(NOT_KEPT)),
            )


def _missed(connection: Connection, context: Context, prefix: str) -> set[str]:
    """Checksums of records whose bytes are kept nowhere else: a row's text is its copy."""
    needed = context.ledger.dialect.fetch(
        connection, _KEPT_BYTES, {"checksum": pl.String}, (prefix, prefix + "g")
    )["checksum"]
    absent = needed.filter(
        pl.Series([not context.artifacts.has("source", one) for one in needed], dtype=pl.Boolean)
    )
    if absent.is_empty():
        return set(needed)
    as_text = kept_bytes.kept(connection, context.ledger, context.artifacts, absent)
    return set(needed) - set(absent.filter(as_text))
