"""Two daemons' workers and two commands on one ledger at once: no work is done twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.kill_series import WEATHERS, House, Weather, house
from tests.faults.two_workers import IN_USE, CrowdReport, run_crowd, run_sensors

pytestmark = pytest.mark.slow

FAIR = WEATHERS[0]
MISSING_ROWS = next(one for one in WEATHERS if one.name == "missing rows")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("sqlite", id="sqlite"),
        pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgres),
    ],
)
def at(request: pytest.FixtureRequest) -> Iterator[House]:
    """Return a house on each database."""
    with house(request.param) as opened:
        yield opened


def check(report: CrowdReport) -> None:
    print(dict(report.met), [round(one.seconds, 1) for one in report.endings], report.commands)
    assert report.violations == []
    # Else they never came near each other, and nothing was shown.
    assert report.met["LeaseHeld"] > 0


@pytest.mark.parametrize("weather", [FAIR, MISSING_ROWS], ids=lambda weather: weather.name)
def test_two_workers_at_once(at: House, weather: Weather) -> None:
    with at.series(f"two-{weather.name}", "openai", weather) as series:
        check(run_crowd(series, plain=2, commands=0))


def test_two_commands_beside_two_workers(at: House) -> None:
    with at.series("commands", "openai", FAIR) as series:
        report = run_crowd(series, plain=2, commands=2)
        check(report)
    refused = [said for status, said in report.commands if status == 1 and IN_USE in said]
    assert len(refused) == 1, report.commands


def test_two_sensors_at_once(at: House) -> None:
    with at.series("sensors", "openai", FAIR) as series:
        report = run_sensors(series)
    print(report)
    assert report.violations == []
    assert report.both > 0, "both saw the same work at the same moment"
