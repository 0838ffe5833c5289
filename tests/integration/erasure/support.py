"""What the tests of erasures share: a document of rare words, and looking for them everywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pipeline_assets.account.documents import find_document
from pipeline_assets.erasure.purge import EraseReport, erase
from tests.support.small_archive import Archive, manual

RARE = "rare.txt"
RARE_WORDS = ("Quarzblitz", "QL-7788", "Überschwemmungsjäger")
RARE_TEXT = manual("Quarzblitz", "QL-7788") + "\nThe Überschwemmungsjäger of the QL-7788 is blue.\n"


@dataclass(frozen=True)
class Erasable:
    """An archive, and erasing one of its documents."""

    archive: Archive

    def number(self, name: str) -> int:
        """The number of a document."""
        return find_document(self.archive.context, name).document_no

    def erase(self, name: str) -> EraseReport:
        """Erase a document."""
        found = find_document(self.archive.context, name)
        return erase(
            self.archive.context, found.document_no, found.document_id, "asked by its owner", "Ada"
        )

    def state_of(self, name: str) -> list[str]:
        """The states of a document's records."""
        return self.column(
            "SELECT s.state FROM record_state s JOIN records r ON r.record_no = s.record_no "
            f"WHERE r.document_no = {self.number(name)} ORDER BY r.record_no"
        )

    def column(self, sql: str) -> list:
        """The first column of a query."""
        with self.archive.context.ledger.read() as connection:
            return [row[0] for row in connection.exec_driver_sql(sql)]


def words_in(folder: Path, words: tuple[str, ...] = RARE_WORDS) -> dict[str, list[str]]:
    """Files below a folder that hold a word in any form → the words."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        data = path.read_bytes() + b"".join(_unpacked(path))
        here = [word for word in words if any(form in data for form in forms(word))]
        if here:
            found[str(path.relative_to(folder))] = here
    return found


def forms(word: str) -> set[bytes]:
    """A word as it may stand in a file: plain, escaped, in the search's spelling."""
    ascii_only = json.dumps(word).strip('"')
    folded = word.lower().encode("ascii", "ignore").decode()
    return {word.encode(), word.lower().encode(), ascii_only.encode(), folded.encode()}


def _unpacked(path: Path) -> Iterator[bytes]:
    """What a Parquet file holds; its pages are compressed."""
    if path.read_bytes()[:4] == b"PAR1":
        frame = pl.read_parquet(path)
        yield frame.write_json().encode()
        yield from (str(value).encode() for row in frame.iter_rows() for value in row)
