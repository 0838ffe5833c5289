"""One look: queue what changed, and tell the outlet what it is owed.

Belongs here: the order of queue, claim, send and outcome, and the alert. Does not belong here:
what an answer means (`queue.py`), the statements (`resources/ledger/outlets.py`).

One worker at a time, by the lease of the outlet. A round counts its tries and commits that before
it sends anything; its outcomes are committed after. A process that dies in between leaves rows
that are due and tried: they are sent again with the same key, which the receiver knows. No step of
this ever asks a model again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.account.export import entries_of
from pipeline_assets.outlets.http import Outlet, configured_outlet
from pipeline_assets.outlets.payload import Message, message_of
from pipeline_assets.outlets.queue import Answer, outcome_of, queue_changes
from resources.clock import to_text
from resources.context import Context
from resources.ledger.alerts import clear_alerts, raise_alert
from resources.ledger.leases import Heartbeat, Lease, LeaseHeld, LeaseLost, fenced, held
from resources.ledger.outlets import (
    PROBLEM_LENGTH,
    SETTLED_SCHEMA,
    claim,
    due_after,
    gone_documents,
    has_due,
    has_newer_entry,
    make_due_again,
    newest_queued,
    settle,
    unwelcome_count,
)

ROUND = 64
"""Deliveries that are claimed together: so many are sent once more if the process dies."""
LEASE_SECONDS = 600
"""Above the longest round (`http.ROUND_SECONDS` and one conversation) by far."""
ALERT = "outlet_failing"


@dataclass(frozen=True)
class SendReport:
    """What came of a look.

    Attributes:
        outlet: its name; None if none is configured.
        queued: changes that were found since the last look.
        delivered: deliveries that it took.
        refused: deliveries that it will never take.
        given_up: deliveries that failed too long.
        failed: deliveries that are tried again later.
        problem: what went wrong last, in closed wording.
        busy: another sender was at it, so nothing was done here.
        broken_off: the outlet was taken to be down, or the time was up, before all was tried.
    """

    outlet: str | None = None
    queued: int = 0
    delivered: int = 0
    refused: int = 0
    given_up: int = 0
    failed: int = 0
    problem: str | None = None
    busy: bool = False
    broken_off: bool = False

    @property
    def troubled(self) -> bool:
        """Was anything not taken?"""
        return bool(self.refused or self.given_up or self.failed)


def send_changes(
    context: Context,
    *,
    outlet: Outlet | None = None,
    at_once: bool = False,
    seconds: float | None = None,
) -> SendReport:
    """Tell the outlet every change that it does not know of.

    Quick and silent where no outlet is configured or nothing is owed: it then writes nothing.

    Args:
        context: the open resources.
        outlet: the outlet; that of the settings by default.
        at_once: try now what waits after a failure.
        seconds: begin no further shard or round after so long; None for no limit.

    Raises:
        LedgerError: the ledger does not answer.
    """
    way = configured_outlet(context.settings) if outlet is None else outlet
    if way is None:
        return SendReport()
    if not _owed(context, way.name, at_once):
        return SendReport(way.name)
    try:
        with held(context.ledger, lease_of(way.name), context.worker, LEASE_SECONDS) as lease:
            return _Look(context, way, lease, at_once, seconds).run()
    except (LeaseHeld, LeaseLost):
        return SendReport(way.name, busy=True)


def retry_deliveries(context: Context, outlet: str, documents: Sequence[int] | None) -> int:
    """Make refused and given-up deliveries due again, where they still say what is shown.

    Args:
        context: the open resources.
        outlet: the outlet's name.
        documents: those of these documents; None for all.

    Returns:
        How many are due again.

    Raises:
        LeaseHeld: a sender is at it.
    """
    ledger = context.ledger
    with (
        held(ledger, lease_of(outlet), context.worker) as lease,
        fenced(ledger, lease) as connection,
    ):
        return make_due_again(connection, ledger, outlet, documents, ledger.now())


def lease_of(outlet: str) -> str:
    """The lease that an outlet's rows are written under."""
    return f"outlet:{outlet}"


def _owed(context: Context, outlet: str, at_once: bool) -> bool:
    """Reading only: a look that finds nothing takes no lease."""
    ledger = context.ledger
    with ledger.read() as connection:
        return (
            has_newer_entry(connection, newest_queued(connection, outlet))
            or has_due(connection, outlet, None if at_once else ledger.now())
            or not gone_documents(connection, ledger, outlet, 1).is_empty()
        )


class _Look:
    """The rounds of one look."""

    def __init__(
        self,
        context: Context,
        outlet: Outlet,
        lease: Lease,
        at_once: bool,
        seconds: float | None,
    ) -> None:
        self._context = context
        self._ledger = context.ledger
        self._outlet = outlet
        self._lease = lease
        self._at_once = at_once
        self._until = None if seconds is None else context.clock() + timedelta(seconds=seconds)
        self._counts = {"delivered": 0, "refused": 0, "given_up": 0, "due": 0}
        self._problem: str | None = None
        self._down = False

    def run(self) -> SendReport:
        queued = queue_changes(self._context, self._lease, self._outlet.name, self._time_is_up)
        heart = Heartbeat(self._ledger, self._lease, LEASE_SECONDS)
        after, broken_off = 0, False
        self._context.progress.start("telling the outlet", None)
        while not broken_off:
            rows, messages = self._claim(after)
            if rows.is_empty():
                break
            answers = self._outlet.send(messages)
            heart.beat()
            self._settle(rows, answers)
            self._context.progress.advance(sum(answer is not None for answer in answers))
            after = int(rows["entry_no"][-1])
            self._down = None in answers
            broken_off = self._down or self._time_is_up()
        self._context.progress.finish()
        report = SendReport(
            self._outlet.name,
            queued,
            self._counts["delivered"],
            self._counts["refused"],
            self._counts["given_up"],
            self._counts["due"],
            self._problem,
            broken_off=broken_off,
        )
        self._alert(report)
        return report

    def _time_is_up(self) -> bool:
        return self._until is not None and self._context.clock() >= self._until

    def _claim(self, after: int) -> tuple[pl.DataFrame, list[Message]]:
        ledger, name = self._ledger, self._outlet.name
        with fenced(ledger, self._lease) as connection:
            now = self._context.clock()
            rows = due_after(
                connection, ledger, name, after, None if self._at_once else to_text(now), ROUND
            )
            if rows.is_empty():
                return rows, []
            until = to_text(now + timedelta(seconds=LEASE_SECONDS))
            claim(connection, ledger, name, rows, until)
            return rows, self._messages(connection, rows)

    def _messages(self, connection: Connection, rows: pl.DataFrame) -> list[Message]:
        entries = entries_of(connection, self._ledger, rows["entry_no"])
        return [message_of(row, entries[row["entry_no"]]) for row in rows.iter_rows(named=True)]

    def _settle(self, rows: pl.DataFrame, answers: Sequence[Answer | None]) -> None:
        now = self._context.clock()
        settled = [
            self._settled(row, answer, now)
            for row, answer in zip(rows.iter_rows(named=True), answers, strict=True)
        ]
        with fenced(self._ledger, self._lease) as connection:
            frame = pl.DataFrame(settled, schema=SETTLED_SCHEMA)
            settle(connection, self._ledger, self._outlet.name, frame)

    def _settled(self, row: dict[str, Any], answer: Answer | None, now: datetime) -> dict[str, Any]:
        """A claimed row's outcome; one that was not begun is as it was before its claim."""
        base = {"entry_no": row["entry_no"], "effect": row["effect"], "ended_at": None}
        if answer is None:
            kept = ("tries", "next_try_at", "status_code", "problem")
            return base | {"state": "due"} | {name: row[name] for name in kept}
        tries = row["tries"] + 1
        outcome = outcome_of(answer, tries, row["queued_at"], now, self._context.rng)
        self._counts[outcome.state] += 1
        self._problem = outcome.problem or self._problem
        return base | {
            "state": outcome.state,
            "tries": tries,
            "next_try_at": None if outcome.next_try_at is None else to_text(outcome.next_try_at),
            "ended_at": None if outcome.state == "due" else to_text(now),
            "status_code": answer.status,
            "problem": None if outcome.problem is None else outcome.problem[:PROBLEM_LENGTH],
        }

    def _alert(self, report: SendReport) -> None:
        """Raise when deliveries are lost or the outlet is down; clear when all is well again."""
        name = self._outlet.name
        serious = report.refused or report.given_up or (report.failed and self._down)
        with fenced(self._ledger, self._lease) as connection:
            unwelcome = unwelcome_count(connection, name)
            at = self._ledger.now()
            if serious:
                raise_alert(connection, ALERT, name, _sentence(report, unwelcome), at)
            elif not unwelcome and report.delivered:
                clear_alerts(connection, name, at, (ALERT,))


def _sentence(report: SendReport, unwelcome: int) -> str:
    parts = [f"the outlet {report.outlet} did not take a change ({report.problem})"]
    if unwelcome:
        parts.append(f"{unwelcome} were refused or given up")
    if report.failed:
        parts.append(f"{report.failed} are tried again")
    return "; ".join(parts)
