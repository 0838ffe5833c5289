"""Planting one thing after another, and judging whether the audit names it.

Belongs here: the series over states, databases and plants. Does not belong here: the plants
(`plants.py`) and the states (`states.py`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pipeline_assets.audit.run import AuditReport, audit
from tests.faults.tampering.plants import PLANTS, Hands, Plant
from tests.faults.tampering.states import (
    State,
    copied,
    make_erased,
    make_messy,
    make_reviewed,
)
from tests.support.postgres import PostgresServer, fresh_database

Database = Literal["sqlite", "postgresql"]


@dataclass(frozen=True)
class Outcome:
    """What one plant, or an untouched state, came to.

    Attributes:
        what: which.
        right: the audit named what was planted, or found nothing where nothing was.
        planted: False for an untouched state.
        told: the subject that was named, or what was found instead.
    """

    what: str
    right: bool
    planted: bool
    told: str


def run_series(
    databases: Iterable[Database],
    server: PostgresServer | None,
    tell: Callable[[Outcome], None],
    plants: Iterable[Plant] = PLANTS,
) -> list[Outcome]:
    """Plant everything on every kind of database; files are the same on each."""
    outcomes: list[Outcome] = []

    def note(outcome: Outcome) -> None:
        outcomes.append(outcome)
        tell(outcome)

    chosen = list(plants)
    for database in databases:
        with (
            tempfile.TemporaryDirectory(prefix="tampering-") as name,
            _database(database, server) as make_url,
        ):
            folder = Path(name)
            for outcome in _untouched(database, folder, make_url):
                note(outcome)
            state = make_reviewed(folder / "reviewed", make_url())
            note(_judge_untouched(database, state))
            for plant in chosen:
                if database == "sqlite" or plant.in_sql:
                    with copied(state, folder / "copy") as copy:
                        note(_planted(database, copy, plant))
    return outcomes


@contextmanager
def _database(
    database: Database, server: PostgresServer | None
) -> Iterator[Callable[[], str | None]]:
    """Give URLs of fresh databases; None stands for a file in the state folder."""
    if database == "sqlite":
        yield lambda: None
        return
    assert server is not None, "PostgreSQL is asked for and no server runs"
    with ExitStack() as stack:
        yield lambda: stack.enter_context(fresh_database(server)).render_as_string(
            hide_password=False
        )


def _untouched(
    database: Database, folder: Path, make_url: Callable[[], str | None]
) -> Iterator[Outcome]:
    for make in (make_erased, make_messy):
        yield _judge_untouched(database, make(folder / make.__name__, make_url()))


def _judge_untouched(database: Database, state: State) -> Outcome:
    report = _audit(state)
    told = "nothing" if report.clean else _first(report)
    clean = report.clean and not report.left_out
    return Outcome(f"{database}: {state.name}, untouched", clean, planted=False, told=told)


def _planted(database: Database, state: State, plant: Plant) -> Outcome:
    with state.opened() as context:
        wanted = plant.act(Hands(context))
    report = _audit(state)
    named = [finding.subject for finding in report.findings if wanted in f"{finding.subject} "]
    told = named[0] if named else f"not {wanted!r}, but {_first(report)}"
    return Outcome(f"{database}: {plant.name}", bool(named), planted=True, told=told)


def _audit(state: State) -> AuditReport:
    with state.opened() as context:
        return audit(context)


def _first(report: AuditReport) -> str:
    if not report.findings:
        return "; ".join(report.left_out) or "nothing"
    finding = report.findings[0]
    return f"{finding.check}: {finding.subject}: {finding.found}"
