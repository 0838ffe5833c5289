"""What only grows: rows that were there when somebody looked earlier are there, and the same.

Belongs here: running digests over tables whose rows are added in a fixed order and never changed,
and comparing them with those of an earlier audit. Does not belong here: the journal, whose moves
are chained in the ledger itself (`journal.py`).

No hash chain covers these rows. Whoever exchanges a result file, its row and everything that was
made of it leaves a ledger that fits together; only what somebody saw earlier tells.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from pipeline_assets.audit.look import Look
from resources.ledger.audits import HEAD_DIGITS

KEPT = "rows.kept"

Seen = Mapping[str, tuple[int, str]]
"""Trail → how many rows it had, and the first digits of the digest over them."""


@dataclass(frozen=True)
class Trail:
    """The rows of one trail.

    Attributes:
        what: its rows, for people.
        count: how many there are.
        digest: SHA-256 over all of them.
        at: number of rows → SHA-256 over so many first ones; for the numbers that were asked for.
    """

    what: str
    count: int
    digest: str
    at: Mapping[int, str]


@dataclass(frozen=True)
class _Kind:
    """A table, cut into trails whose rows are added one after another.

    Attributes:
        name: first part of the trails' names.
        what: for people; the trail's owner follows.
        sql: the trail's number, its owner for people, and the row as one text, in order.
    """

    name: str
    what: str
    sql: str


def _row(*columns: str) -> str:
    return " || ' ' || ".join(f"COALESCE(CAST({column} AS VARCHAR), '-')" for column in columns)


# Each kind's rows are written under a lease or lock that its trail is named by, so that none with
# a lower number can come in later.
_KINDS = (
    _Kind(
        "manifests",
        "manifests of version ",
        "SELECT m.version_no, v.key, "  # noqa: S608 - our own columns
        f"{_row('m.manifest_no', 'm.manifest_id', 'm.digest', 'm.expected', 'm.artifact')} "
        "FROM manifests m JOIN processing_versions v ON v.version_no = m.version_no "
        "ORDER BY m.version_no, m.manifest_no",
    ),
    _Kind(
        "results",
        "result files of batch ",
        "SELECT f.batch_no, b.batch_id, "  # noqa: S608 - our own columns
        f"{_row('f.result_file_no', 'f.kind', 'f.artifact', 'f.bytes', 'f.lines')} "
        "FROM result_files f JOIN batches b ON b.batch_no = f.batch_no "
        "ORDER BY f.batch_no, f.result_file_no",
    ),
    _Kind(
        "archive",
        "archive entries",
        "SELECT 0, '', "  # noqa: S608 - our own columns
        + _row(
            *("e.entry_no", "e.document_no", "e.record_no", "e.version_no", "e.archive_version"),
            *("e.promotion", "e.content_digest", "e.valid_from", "e.change_no"),
        )
        + " FROM archive_entries e ORDER BY e.entry_no",
    ),
    _Kind(
        "reports",
        "kept reports of version ",
        "SELECT q.version_no, v.key, "  # noqa: S608 - our own columns
        f"{_row('q.report_no', 'q.digest', 'q.artifact', 'q.page', 'q.outcomes', 'q.merkle_root')} "
        "FROM reports q JOIN processing_versions v ON v.version_no = q.version_no "
        "ORDER BY q.version_no, q.report_no",
    ),
)
_SCHEMA = {"trail": pl.Int64, "owner": pl.String, "row": pl.String}


class _Growing:
    def __init__(self, what: str, wanted: frozenset[int]) -> None:
        self._what, self._wanted = what, wanted
        self._digest = hashlib.sha256()
        self._count = 0
        self._at: dict[int, str] = {}

    def add(self, row: str) -> None:
        self._digest.update(row.encode() + b"\n")
        self._count += 1
        if self._count in self._wanted:
            self._at[self._count] = self._digest.hexdigest()

    def trail(self) -> Trail:
        return Trail(self._what, self._count, self._digest.hexdigest(), self._at)


def read_trails(look: Look, seen: Iterable[Seen]) -> dict[str, Trail]:
    """Every trail by name.

    Args:
        look: the evidence.
        seen: what earlier audits saw; their counts are those that `Trail.at` has.
    """
    wanted: dict[str, set[int]] = {}
    for each in seen:
        for name, (count, _) in each.items():
            wanted.setdefault(name, set()).add(count)
    found: dict[str, _Growing] = {}
    for kind in _KINDS:
        for part in look.stream(kind.sql, _SCHEMA):
            for number, owner, row in part.iter_rows():
                name = f"{kind.name}:{number}"
                if name not in found:
                    counts = frozenset(wanted.get(name, ()))
                    found[name] = _Growing(f"{kind.what}{owner}", counts)
                found[name].add(row)
    return {name: growing.trail() for name, growing in found.items()}


def check_trails(look: Look, trails: Mapping[str, Trail], seen: Seen, by: str) -> None:
    """Compare the trails with what somebody saw of them earlier.

    Args:
        look: the evidence.
        trails: as they are now; `at` has the counts of `seen`.
        seen: as they were.
        by: who saw them, e.g. `audit 3`.
    """
    look.findings.looked(KEPT, len(seen))
    for name, (count, digest) in sorted(seen.items()):
        trail = trails.get(name)
        what = f"trail {name}" if trail is None else trail.what
        if trail is None or trail.count < count:
            look.findings.add(
                KEPT,
                what,
                f"{0 if trail is None else trail.count} rows",
                f"at least {count}, as {by} saw them",
            )
        elif not trail.at[count].startswith(digest):
            look.findings.add(
                KEPT,
                what,
                f"first {count} rows with digest {trail.at[count][:HEAD_DIGITS]}",
                f"{digest[:HEAD_DIGITS]}, as {by} saw them: rows were changed or put in between",
            )


def seen_now(trails: Mapping[str, Trail]) -> dict[str, tuple[int, str]]:
    """Trail → its rows and the first digits of their digest, for a later audit."""
    return {name: (trail.count, trail.digest[:HEAD_DIGITS]) for name, trail in trails.items()}
