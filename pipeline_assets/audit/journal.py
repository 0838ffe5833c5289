"""The journal: its chains, and whether every state follows from legal moves.

Belongs here: one pass over the membership table that recomputes every digest (`resources/ledger/
journal.py`) and follows every record's path beside it; the paths of batches, versions, canaries and
reports; the heads against those that were seen earlier. Does not belong here: what else the rows
say.

A record's moves are in the order of their numbers: each locks the record's row before it is given
one. Memory holds a page of members and the moves, never all members.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from sqlalchemy import select

from pipeline_assets.audit.look import Look
from resources.ledger.audits import HEAD_DIGITS
from resources.ledger.journal import JournalVerdict, head_after, verify_all
from resources.ledger.schema import moves
from resources.ledger.transitions import MACHINES, START, Machine

CHAIN, LEGAL, PATH, STATE, HEADS = (
    "journal.chain",
    "journal.legal",
    "journal.path",
    "journal.state",
    "journal.heads",
)

_PROBLEMS = {
    "digest does not match the row": "a row whose digest is the one that was written with it",
    "members do not match their digest": "the members that were moved",
    "member count does not match": "as many members as the row says",
    "not linked to the start of its chain": "a row that follows another one of its chain",
    "two moves follow the same one": "one move after each",
}
_MOVE_SCHEMA = {
    "move_no": pl.Int64,
    "machine": pl.String,
    "subject_no": pl.Int64,
    "from_state": pl.String,
    "to_state": pl.String,
}
_STATES_OF: Mapping[Machine, str] = {
    "batch": "SELECT batch_no, batch_id, state FROM batches",
    "canary": "SELECT canary_no, canary_id, state FROM canaries",
    "version": "SELECT version_no, key, state FROM processing_versions",
    "report": "SELECT report_no, 'report ' || CAST(report_no AS VARCHAR), 'closed' "
    "FROM report_closings",
}


def check_journal(look: Look) -> JournalVerdict:
    """Check the whole journal; returns the verdict over its chains."""
    found = look.rows(
        "SELECT move_no, machine, subject_no, from_state, to_state FROM moves ORDER BY move_no",
        _MOVE_SCHEMA,
    )
    _check_legal(look, found)
    paths = RecordPaths(look, found.select("move_no", "from_state", "to_state"))
    verdict = verify_all(look.connection, look.context.ledger.dialect, paths.watch)
    paths.finish()
    _check_chains(look, verdict)
    for machine, sql in sorted(_STATES_OF.items()):
        _check_subjects(look, machine, sql, found)
    return verdict


def _check_chains(look: Look, verdict: JournalVerdict) -> None:
    findings = look.findings
    for chain in verdict.chains:
        findings.looked(CHAIN, chain.moves)
        for fault in chain.faults:
            findings.add(
                CHAIN,
                f"move {fault.move_no} of chain {chain.chain}",
                fault.problem,
                _PROBLEMS[fault.problem],
            )
    for move_no in verdict.lost:
        findings.add(
            CHAIN, f"move {move_no}", "memberships and no move", "the move that they belong to"
        )


def _check_legal(look: Look, found: pl.DataFrame) -> None:
    legal = pl.DataFrame(
        [
            (machine, source, target)
            for machine, table in MACHINES.items()
            for source, targets in table.items()
            for target in targets
        ],
        schema={"machine": pl.String, "from_state": pl.String, "to_state": pl.String},
        orient="row",
    )
    look.findings.looked(LEGAL, found.height)
    wrong = found.join(legal, on=["machine", "from_state", "to_state"], how="anti").sort("move_no")
    for row in wrong.iter_rows(named=True):
        look.findings.add(
            LEGAL,
            f"move {row['move_no']}",
            f"a {row['machine']} went from {row['from_state']!r} to {row['to_state']!r}",
            "a move that docs/transitions.md has",
        )


class RecordPaths:
    """Follows every record through its moves, while pages of members go by."""

    def __init__(self, look: Look, journal: pl.DataFrame) -> None:
        self._look = look
        self._journal = journal
        self._tail = pl.DataFrame(schema={"record_no": pl.Int64, "move_no": pl.Int64})
        self._judged = -(2**62)

    def watch(self, page: pl.DataFrame) -> None:
        """A page of members, in the order of record and move."""
        page = pl.concat([self._tail, page])
        last = page["record_no"][-1]
        # The last record of a page may go on in the next one.
        self._tail = page.filter(pl.col("record_no") == last)
        whole = page.filter(pl.col("record_no") < last)
        if not whole.is_empty():
            self._judge(whole, int(whole["record_no"][-1]))

    def finish(self) -> None:
        """No further page comes."""
        self._judge(self._tail, 2**62)

    def _judge(self, members: pl.DataFrame, last: int) -> None:
        steps = members.join(self._journal, on="move_no", how="left", maintain_order="left")
        same = pl.col("record_no") == pl.col("record_no").shift(1)
        steps = steps.with_columns(
            before=pl.when(same).then(pl.col("to_state").shift(1)).otherwise(pl.lit(START))
        )
        # A member without its move is told with the chains.
        broken = steps.filter(
            pl.col("from_state").is_not_null()
            & pl.col("before").is_not_null()
            & (pl.col("from_state") != pl.col("before"))
        )
        ends = steps.group_by("record_no", maintain_order=True).agg(
            pl.col("to_state").last(), moves=pl.len().cast(pl.Int64)
        )
        self._look.findings.looked(PATH, members.height)
        self._tell_paths(broken)
        self._compare(ends, last)
        self._judged = last

    def _tell_paths(self, broken: pl.DataFrame) -> None:
        if broken.is_empty():
            return
        names = self._look.names_of_records(broken["record_no"])
        for row in broken.iter_rows(named=True):
            self._look.findings.add(
                PATH,
                f"record {names.get(row['record_no'], row['record_no'])}",
                f"move {row['move_no']} starts at {row['from_state'] or 'nothing'!r} where the "
                f"move before it left {row['before'] or 'nothing'!r}",
                "moves that follow one another",
            )

    def _compare(self, ends: pl.DataFrame, last: int) -> None:
        states = self._look.rows(
            "SELECT r.record_no, r.record_id, s.state, s.version FROM records r "
            "LEFT JOIN record_state s ON s.record_no = r.record_no "
            "WHERE r.record_no > ? AND r.record_no <= ? ORDER BY r.record_no",
            {
                "record_no": pl.Int64,
                "record_id": pl.String,
                "state": pl.String,
                "version": pl.Int64,
            },
            self._judged,
            last,
        )
        self._look.findings.looked(STATE, states.height)
        both = states.join(ends, on="record_no", how="full", coalesce=True)
        # Creation is the first move and version 0.
        wrong = both.filter(
            pl.col("state").ne_missing(pl.col("to_state"))
            | pl.col("version").ne_missing(pl.col("moves") - 1)
        ).sort("record_no")
        for row in wrong.iter_rows(named=True):
            self._look.findings.add(
                STATE, f"record {row['record_id'] or row['record_no']}", _state(row), _said(row)
            )


def _state(row: Mapping[str, Any]) -> str:
    if row["record_id"] is None:
        return "no record"
    if row["state"] is None:
        return "no state"
    return f"state {row['state']!r}, version {row['version']}"


def _said(row: Mapping[str, Any]) -> str:
    if row["moves"] is None:
        return "moves that made it; the journal has none"
    return f"state {row['to_state']!r}, version {row['moves'] - 1}, as {row['moves']} moves say"


def _check_subjects(look: Look, machine: Machine, sql: str, found: pl.DataFrame) -> None:
    own = found.filter(pl.col("machine") == machine).sort("subject_no", "move_no")
    same = pl.col("subject_no") == pl.col("subject_no").shift(1)
    steps = own.with_columns(
        before=pl.when(same).then(pl.col("to_state").shift(1)).otherwise(pl.lit(START))
    )
    rows = look.rows(sql, {"subject_no": pl.Int64, "name": pl.String, "state": pl.String})
    names = dict(rows.select("subject_no", "name").iter_rows())
    look.findings.looked(STATE, rows.height)
    for row in steps.filter(pl.col("from_state") != pl.col("before")).iter_rows(named=True):
        look.findings.add(
            PATH,
            f"{machine} {names.get(row['subject_no'], row['subject_no'])}",
            f"move {row['move_no']} starts at {row['from_state'] or 'nothing'!r} where the move "
            f"before it left {row['before'] or 'nothing'!r}",
            "moves that follow one another",
        )
    ends = own.group_by("subject_no", maintain_order=True).agg(pl.col("to_state").last())
    both = rows.join(ends, on="subject_no", how="full", coalesce=True)
    wrong = both.filter(pl.col("state").ne_missing(pl.col("to_state"))).sort("subject_no")
    for row in wrong.iter_rows(named=True):
        look.findings.add(
            STATE,
            f"{machine} {row['name'] or row['subject_no']}",
            f"state {row['state']!r}" if row["state"] else f"no such {machine}",
            f"state {row['to_state']!r}, as its last move says"
            if row["to_state"]
            else "a move that made it; the journal has none",
        )


def check_heads(
    look: Look, verdict: JournalVerdict, seen: Mapping[str, tuple[int, str]], by: str
) -> None:
    """Compare the chains with what somebody saw of them earlier.

    Args:
        look: the evidence.
        verdict: the chains now.
        seen: chain → how many moves it had, and its head or the first digits of it.
        by: who saw them, e.g. `audit 3`.
    """
    now = {chain.chain: chain for chain in verdict.chains}
    look.findings.looked(HEADS, len(seen))
    for name, (count, head) in sorted(seen.items()):
        chain = now.get(name)
        have = 0 if chain is None else chain.moves
        if have < count:
            look.findings.add(
                HEADS,
                f"chain {name}",
                f"{have} moves",
                f"at least {count}, as {by} saw them: its newest moves were cut off",
            )
            continue
        if chain is not None and have == count and chain.head.startswith(head):
            continue
        then = head_then(look, name, count)
        if then is None or not then.startswith(head):
            look.findings.add(
                HEADS,
                f"chain {name}",
                f"its move number {count} has the digest {(then or 'of nothing')[:HEAD_DIGITS]}",
                f"{head[:HEAD_DIGITS]}, as {by} saw it: the chain was written anew",
            )


def head_then(look: Look, chain: str, count: int) -> str | None:
    """The digest of a chain's `count`-th move; None where it has not so many."""
    rows = look.connection.execute(
        select(moves.c.previous_digest, moves.c.digest).where(moves.c.chain == chain)
    )
    return head_after([dict(row) for row in rows.mappings()], count)


def heads_of(verdict: JournalVerdict) -> dict[str, tuple[int, str]]:
    """Chain → its moves and the first digits of its head, for a later audit."""
    return {chain.chain: (chain.moves, chain.head[:HEAD_DIGITS]) for chain in verdict.chains}
