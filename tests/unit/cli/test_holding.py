"""`status`, `hold` and `release`: why nothing is submitted, and how that is changed."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline_assets.account.hold_facts import HoldFacts
from pipeline_assets.account.status import Status, Waiting
from pipeline_assets.cli import app
from pipeline_assets.cli.account import print_waiting
from pipeline_assets.cli.output import local
from pipeline_assets.recovery.holds import hold
from resources.context import open_context
from resources.settings import Settings
from tests.support.clock import FrozenClock
from tests.support.small_archive import PUMP, Archive, manual

MOMENT = "2030-01-02T04:34:05.000000Z"


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """Return an archive of one published document, with its context open."""
    folder, clock = tmp_path / "documents", FrozenClock()
    settings = Settings(state=tmp_path / "state", source=folder)
    with open_context(settings, clock=clock, rng=random.Random(7)) as context:
        archive = Archive(folder, settings, context, clock)
        archive.write(PUMP, manual("Water Pump", "WP-100"))
        archive.process()
        yield archive


def run(archive: Archive, *words: str) -> int:
    return app.main([*words, "--state", str(archive.settings.state_folder)])


def test_a_hold_is_put_on_shown_and_taken_off(
    archive: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(archive, "status") == 0
    shown = capsys.readouterr().out
    assert "held for" not in shown
    assert "1 of the last 1 results are usable (100 %); floor 50 %, from 20 results on" in shown
    assert run(archive, "hold", "--reason", "prices are being looked at") == 0
    assert run(archive, "hold", "--reason", "again") == 1
    told = capsys.readouterr()
    assert "is held." in told.out
    assert "held for operator since" in told.err
    assert "expected one that is active" in told.err

    assert run(archive, "status") == 3
    shown = capsys.readouterr().out
    assert "operator" in shown
    assert "prices are being looked at" in shown
    assert "release --reason TEXT --state" in shown
    assert re.search(r"^operator +the version is held, since ", shown, re.MULTILINE)
    assert run(archive, "status", "--json") == 3
    assert json.loads(capsys.readouterr().out)["held"]["ends"] == "by command"

    assert run(archive, "release", "--reason", "they are fine") == 0
    assert run(archive, "release", "--reason", "again") == 1
    told = capsys.readouterr()
    assert "is active." in told.out
    assert "is active; expected one that is held" in told.err
    assert run(archive, "status") == 0


def test_an_operator_takes_over_what_would_end_by_itself(
    archive: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hold(archive.context, archive.version().version_no, "backpressure", "told by the test")
    assert run(archive, "hold", "--reason", "stay") == 0
    capsys.readouterr()
    assert run(archive, "status", "--json") == 3
    assert json.loads(capsys.readouterr().out)["held"]["kind"] == "operator"


@pytest.mark.parametrize(
    ("held", "said"),
    [
        pytest.param(
            HoldFacts("breaker", "few are usable", MOMENT, "a test", True, MOMENT, "by itself"),
            "Waits: the version, held for breaker, goes on by itself at "
            f"{local(MOMENT)} (few are usable).",
            id="at-a-time",
        ),
        pytest.param(
            HoldFacts("backpressure", "behind", MOMENT, "a test", True, None, "by itself, later"),
            "Waits: the version, held for backpressure, goes on by itself, later (behind).",
            id="at-no-known-time",
        ),
        pytest.param(
            HoldFacts("auth", "refused", MOMENT, "a test", False, None, "by command"),
            "Waits: an operator has to release the version, held for auth (refused).",
            id="by-command",
        ),
    ],
)
def test_what_a_held_version_waits_for(
    held: HoldFacts, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    now = Status(
        processing_version="v",
        state="held",
        state_reason=held.reason,
        documents=0,
        excluded=0,
        stages={},
        states={},
        batches={},
        open_records=0,
        oldest_open_at=None,
        oldest_open_seconds=None,
        waiting=(Waiting("held", 1, by_person=not held.ends_by_itself),),
        held=held,
    )
    print_waiting(now)
    assert capsys.readouterr().out == f"{said}\n"
