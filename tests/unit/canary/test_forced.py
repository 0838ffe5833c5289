"""Failures that are forced: each once, where it was chosen, and the step is begun again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, insert, select

from pipeline_assets.canary.forced import Failure, forced
from resources.context import Context, open_context
from resources.ledger.alerts import raise_alert
from resources.ledger.schema import alerts, sources
from resources.settings import load_settings

COMMITTED = Failure("after", alerts, committed=True)
UNDONE = Failure("before", alerts, committed=False)
ELSEWHERE = Failure("elsewhere", sources, committed=True)


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with open_context(load_settings(state=tmp_path / "state")) as opened:
        yield opened


def count(context: Context) -> int:
    with context.ledger.read() as connection:
        return connection.execute(select(func.count()).select_from(alerts)).scalar_one()


@pytest.mark.parametrize(
    ("failures", "noted", "found"),
    [
        pytest.param([], [], [0], id="none"),
        pytest.param([COMMITTED], ["after"], [0, 1], id="what was committed stays"),
        pytest.param([UNDONE], ["before"], [0, 0], id="what was not is undone"),
        pytest.param([UNDONE, COMMITTED], ["before", "after"], [0, 0, 1], id="one after another"),
        pytest.param([ELSEWHERE], [], [0], id="another table"),
    ],
)
def test_a_step_fails_and_is_begun_again(
    context: Context, failures: list[Failure], noted: list[str], found: list[int]
) -> None:
    begun: list[int] = []
    told: list[str] = []

    def step(given: Context) -> str:
        begun.append(count(given))
        with given.ledger.write() as connection:
            raise_alert(connection, "kind", f"subject {len(begun)}", "message", given.ledger.now())
        return "done"

    assert forced(context, failures, step, told.append) == "done"
    assert told == noted
    assert begun == found
    assert count(context) == found[-1] + 1


def test_an_error_of_the_step_itself_goes_through(context: Context) -> None:
    def step(given: Context) -> None:
        with given.ledger.write() as connection:
            connection.execute(insert(alerts).values(kind="only this"))

    with pytest.raises(Exception, match="NOT NULL"):
        forced(context, [COMMITTED], step, lambda _: None)
