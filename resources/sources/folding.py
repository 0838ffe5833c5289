"""Which listed documents fold to one id, told without holding the list in memory.

Belongs here: holding rows back on disk until all of them are seen, and giving those that clash an
id of their own. Does not belong here: the grammar of ids (`document_id.py`) and any kind of
source. Only rows whose raw name is not ASCII need this: names in ASCII have ids of their own, but
for the few signs that fold to ASCII, which the source looks after.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from resources.sources.document_id import (
    DocumentIdTooLong,
    exact_document_id,
    shortened_document_id,
)
from resources.sources.listing import LISTED_ROWS, LISTED_SCHEMA

COLLISION = ("id_collision", "another name differs only in Unicode composition")


@contextmanager
def held_back() -> Iterator[HeldBack]:
    """A place on disk for rows, gone at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="tallybook-listing-") as folder:
        yield HeldBack(Path(folder))


class HeldBack:
    """Rows of `LISTED_SCHEMA` on disk; in memory are one frame and eight bytes a row.

    Args:
        folder: an empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rows: list[tuple[object, ...]] = []
        self._hashes: list[pl.Series] = []
        self._parts: list[Path] = []

    def add(self, row: tuple[object, ...]) -> None:
        """Hold a row back."""
        self._rows.append(row)
        if len(self._rows) >= LISTED_ROWS:
            self._put_away()

    def frames(self, source_name: str) -> Iterator[pl.DataFrame]:
        """All rows in their order; those that share an id are `id_collision`, by exact ids."""
        self._put_away()
        shared = self._shared()
        for part in self._parts:
            frame = pl.read_ipc(part)
            yield frame if shared.is_empty() else _told_apart(source_name, frame, shared)

    def _put_away(self) -> None:
        if not self._rows:
            return
        frame = pl.DataFrame(self._rows, schema=LISTED_SCHEMA, orient="row")
        part = self._folder / f"{len(self._parts)}.arrow"
        frame.write_ipc(part)
        self._parts.append(part)
        self._hashes.append(frame["document_id"].hash())
        self._rows = []

    def _shared(self) -> pl.Series:
        """The ids that more than one row has: suspects by hash, then by the ids themselves."""
        none = pl.Series([], dtype=pl.String)
        if not self._hashes:
            return none
        hashes = pl.concat(self._hashes)
        suspects = hashes.filter(hashes.is_duplicated()).unique()
        if suspects.is_empty():
            return none
        ids = pl.concat(
            [
                ids.filter(ids.hash().is_in(suspects.implode()))
                for ids in (pl.read_ipc(part)["document_id"] for part in self._parts)
            ]
        )
        return ids.filter(ids.is_duplicated()).unique()


def _told_apart(source_name: str, frame: pl.DataFrame, shared: pl.Series) -> pl.DataFrame:
    clashes = frame["document_id"].is_in(shared.implode())
    if not clashes.any():
        return frame
    ids = [
        exact_or_shortened(source_name, place) if clash else identity
        for identity, place, clash in zip(
            frame["document_id"], frame["place"], clashes, strict=True
        )
    ]
    reason, detail = COLLISION
    clash = pl.lit(clashes)
    return frame.with_columns(
        document_id=pl.Series(ids, dtype=pl.String),
        excluded=pl.when(clash).then(pl.lit(reason)).otherwise(pl.col("excluded")),
        detail=pl.when(clash).then(pl.lit(detail)).otherwise(pl.col("detail")),
    )


def exact_or_shortened(source_name: str, place: bytes) -> str:
    """An id that no other name has, for a document that is named and not read."""
    try:
        return exact_document_id(source_name, place)
    except DocumentIdTooLong:
        return shortened_document_id(source_name, place)
