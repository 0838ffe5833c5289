"""Proving the journal: every hash chain is whole, and its digests say what the rows say.

Belongs here: recomputing digests from what is stored and following the links. Does not belong
here: writing the journal (`moves.py`), and whether the states follow from it (`account`).

What a chain cannot show by itself is that its newest rows were cut off: compare `head` with the
one in a report.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl
from sqlalchemy import Connection, select

from resources.ledger.dialect import Dialect
from resources.ledger.frames import digest_of_members, member_bytes
from resources.ledger.moves import GENESIS, move_digest
from resources.ledger.schema import moves

Problem = Literal[
    "digest does not match the row",
    "members do not match their digest",
    "member count does not match",
    "not linked to the start of its chain",
    "two moves follow the same one",
]

MEMBERS_A_PAGE = 100_000
"""Membership rows held at once: about 20 MB, whatever the size of the journal."""

_DIGESTED = (
    "chain",
    "machine",
    "subject_no",
    "from_state",
    "to_state",
    "reason",
    "actor",
    "cause",
    "moved_at",
    "members",
    "members_digest",
    "previous_digest",
)
_PAGE = (
    "SELECT record_no, move_no FROM move_members WHERE (record_no, move_no) > (?, ?) {only} "
    "ORDER BY record_no, move_no LIMIT ?"
)
_IN_CHAIN = "AND move_no IN (SELECT move_no FROM moves WHERE chain = ?)"


@dataclass(frozen=True)
class ChainFault:
    """What is wrong with one journal row."""

    move_no: int
    problem: Problem


@dataclass(frozen=True)
class ChainVerdict:
    """What a hash chain proves.

    Attributes:
        chain: its name.
        moves: journal rows that carry its name, linked or not.
        members: membership rows of those moves.
        head: digest of the last move that is linked to the start; GENESIS for an empty chain.
        faults: what is wrong, by move number; empty for a whole chain.
    """

    chain: str
    moves: int
    members: int
    head: str
    faults: tuple[ChainFault, ...]

    @property
    def holds(self) -> bool:
        """Is every row linked, and does every digest match?"""
        return not self.faults


@dataclass(frozen=True)
class JournalVerdict:
    """What the whole journal proves.

    Attributes:
        chains: one verdict a chain, by name.
        orphans: membership rows whose move is not in the journal.
        lost: the numbers that those rows give their moves, sorted.
    """

    chains: tuple[ChainVerdict, ...]
    orphans: int
    lost: tuple[int, ...] = ()

    @property
    def holds(self) -> bool:
        """Is every chain whole, and does every membership row belong to a move?"""
        return self.orphans == 0 and all(verdict.holds for verdict in self.chains)


@dataclass(frozen=True)
class _Membership:
    count: int
    digest: str


def chains(connection: Connection) -> list[str]:
    """The names of all hash chains, sorted by code point."""
    return sorted(connection.execute(select(moves.c.chain).distinct()).scalars())


def verify_chain(connection: Connection, dialect: Dialect, chain: str) -> ChainVerdict:
    """Follow one chain from its start and recompute every digest on it.

    Reads the membership table once from end to end; for many chains use `verify_all`.
    """
    rows = _rows(connection, chain)
    found = _memberships(connection, dialect, chain)
    return _judge(chain, rows, found)


def verify_all(
    connection: Connection, dialect: Dialect, watch: Callable[[pl.DataFrame], None] | None = None
) -> JournalVerdict:
    """Verify every chain in one pass over the membership table.

    Args:
        connection: inside a transaction.
        dialect: the database's own way to read.
        watch: is shown every page of the membership table (record_no, move_no, in this order), so
            that whoever asks more of it need not read it again.
    """
    found = _memberships(connection, dialect, None, watch)
    by_chain: dict[str, list[Mapping[str, Any]]] = {}
    for row in _rows(connection, None):
        by_chain.setdefault(row["chain"], []).append(row)
    known = {row["move_no"] for rows in by_chain.values() for row in rows}
    return JournalVerdict(
        chains=tuple(_judge(chain, by_chain[chain], found) for chain in sorted(by_chain)),
        orphans=sum(member.count for move_no, member in found.items() if move_no not in known),
        lost=tuple(sorted(move_no for move_no in found if move_no not in known)),
    )


def head_after(rows: Sequence[Mapping[str, Any]], count: int) -> str | None:
    """The digest of a chain's `count`-th move, by its links; None where it has not so many.

    Args:
        rows: previous_digest and digest of the chain's moves, in any order.
        count: 0 for the empty chain.
    """
    next_of = {row["previous_digest"]: row["digest"] for row in rows}
    head: str | None = GENESIS
    for _ in range(count):
        head = None if head is None else next_of.get(head)
    return head


def _rows(connection: Connection, chain: str | None) -> list[Mapping[str, Any]]:
    wanted = select(moves).order_by(moves.c.move_no)
    if chain is not None:
        wanted = wanted.where(moves.c.chain == chain)
    return [dict(row) for row in connection.execute(wanted).mappings()]


def _memberships(
    connection: Connection,
    dialect: Dialect,
    chain: str | None,
    watch: Callable[[pl.DataFrame], None] | None = None,
) -> dict[int, _Membership]:
    # In order of record_no each move meets its members as its digest wants them, so the digests
    # of all moves grow side by side and no set is ever held whole.
    counts: dict[int, int] = {}
    digests: dict[int, Any] = {}
    for page in _member_pages(connection, dialect, chain):
        if watch is not None:
            watch(page)
        grouped = page.group_by("move_no", maintain_order=True).agg("record_no")
        for move_no, members in zip(grouped["move_no"], grouped["record_no"], strict=True):
            counts[move_no] = counts.get(move_no, 0) + len(members)
            digests.setdefault(move_no, hashlib.sha256()).update(member_bytes(members))
    return {no: _Membership(counts[no], digests[no].hexdigest()) for no in counts}


def _member_pages(
    connection: Connection, dialect: Dialect, chain: str | None
) -> Iterator[pl.DataFrame]:
    sql = _PAGE.format(only="" if chain is None else _IN_CHAIN)
    only = () if chain is None else (chain,)
    schema = {"record_no": pl.Int64, "move_no": pl.Int64}
    last: tuple[int, int] = (-(2**62), 0)
    while True:
        page = dialect.fetch(connection, sql, schema, (*last, *only, MEMBERS_A_PAGE))
        if page.is_empty():
            return
        yield page
        last = page.row(-1)


def _judge(
    chain: str, rows: Sequence[Mapping[str, Any]], found: Mapping[int, _Membership]
) -> ChainVerdict:
    faults = [
        ChainFault(row["move_no"], problem)
        for row in rows
        for problem in _problems_of_row(row, found.get(row["move_no"]))
    ]
    head, link_faults = _follow(rows)
    return ChainVerdict(
        chain=chain,
        moves=len(rows),
        members=sum(found[row["move_no"]].count for row in rows if row["move_no"] in found),
        head=head,
        faults=tuple(sorted([*faults, *link_faults], key=lambda f: (f.move_no, f.problem))),
    )


def _problems_of_row(row: Mapping[str, Any], stored: _Membership | None) -> list[Problem]:
    problems: list[Problem] = []
    if move_digest({name: row[name] for name in _DIGESTED}) != row["digest"]:
        problems.append("digest does not match the row")
    # A batch or version is its own only member; the members of a record move are rows.
    expected = _Membership(row["members"], row["members_digest"])
    if row["subject_no"] is not None:
        subject = pl.Series([row["subject_no"]], dtype=pl.Int64)
        actual = _Membership(1, digest_of_members(subject))
        if stored is not None:
            problems.append("member count does not match")
    else:
        actual = stored or _Membership(0, digest_of_members(pl.Series([], dtype=pl.Int64)))
    if actual.count != expected.count:
        problems.append("member count does not match")
    if actual.digest != expected.digest:
        problems.append("members do not match their digest")
    return problems


def _follow(rows: Sequence[Mapping[str, Any]]) -> tuple[str, list[ChainFault]]:
    next_of: dict[str, Mapping[str, Any]] = {}
    faults: list[ChainFault] = []
    for row in rows:
        if row["previous_digest"] in next_of:
            faults.append(ChainFault(row["move_no"], "two moves follow the same one"))
        else:
            next_of[row["previous_digest"]] = row
    head = GENESIS
    linked: set[int] = set()
    while head in next_of and next_of[head]["move_no"] not in linked:
        linked.add(next_of[head]["move_no"])
        head = next_of[head]["digest"]
    forked = {fault.move_no for fault in faults}
    faults += [
        ChainFault(row["move_no"], "not linked to the start of its chain")
        for row in rows
        if row["move_no"] not in linked and row["move_no"] not in forked
    ]
    return head, faults
