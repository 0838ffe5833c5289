"""The exit status of run, status and report, and what is said of what waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline_assets.account.report import JournalAccount, Report
from pipeline_assets.account.status import Status, Waiting
from pipeline_assets.account.violations import pending_sentence
from pipeline_assets.cli.account import exit_status, next_steps, print_outcomes, print_waiting
from pipeline_assets.cli.options import make_settings


def report(*violations: str, pending: int = 0, **states: int) -> Report:
    return Report(
        processing_version="v",
        digest="d",
        state="active",
        manifests=(),
        documents=sum(states.values()) + pending + 1,
        expected=sum(states.values()),
        states=states,
        former={},
        excluded={"empty": 1},
        pending=pending,
        attempts={},
        late_results={},
        sample=None,
        invariant_holds=not violations,
        violations=violations,
        journal=JournalAccount(0, ""),
        made_at="2030-01-02T03:04:05.000000Z",
        seconds=0.0,
    )


def status(*waiting: Waiting, **states: int) -> Status:
    return Status(
        processing_version="v",
        state="held",
        state_reason="the budget is used up",
        documents=3,
        excluded=0,
        stages={},
        states=states,
        batches={},
        open_records=0,
        oldest_open_at=None,
        oldest_open_seconds=None,
        waiting=waiting,
    )


REVIEW = Waiting("awaiting_review", 1, by_person=True)
PENDING = Waiting("pending", 2, by_person=False)


@pytest.mark.parametrize(
    ("account", "now", "expected"),
    [
        pytest.param(report(published=1), status(), 0, id="done"),
        pytest.param(report(awaiting_review=1), status(REVIEW), 3, id="waits"),
        pytest.param(report("two of one"), status(), 1, id="broken"),
        pytest.param(report("two of one"), status(REVIEW), 1, id="broken-and-waits"),
        pytest.param(report(pending_sentence(2), pending=2), status(PENDING), 3, id="unfinished"),
        pytest.param(report(pending_sentence(2), "more", pending=2), status(PENDING), 1, id="both"),
    ],
)
def test_exit_status(account: Report, now: Status, expected: int) -> None:
    assert exit_status(account, now) == expected


@pytest.mark.parametrize(
    ("waiting", "said"),
    [
        (REVIEW, "Waits: 1 record for a reviewer (stopped by a rule or an uncertain field)."),
        (PENDING, "Waits: 2 documents for another run (scanned and not processed)."),
        (Waiting("submitted", 5, by_person=False), "Waits: 5 records for another run (submitted)."),
        (
            Waiting("batch submitted", 2, by_person=False),
            "Waits: 2 batches for another run (batch submitted).",
        ),
        (
            Waiting("batch incident", 1, by_person=True),
            "Waits: 1 batch for an operator (results do not add up to the manifest).",
        ),
        (
            Waiting("held", 1, by_person=True),
            "Waits: an operator has to release the version (the budget is used up).",
        ),
    ],
)
def test_what_waits_is_said(
    waiting: Waiting, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_waiting(status(waiting))
    assert capsys.readouterr().out == f"{said}\n"


def test_the_table_adds_up(capsys: pytest.CaptureFixture[str]) -> None:
    print_outcomes(report("two of one", pending=0, published=2))
    shown = capsys.readouterr().out
    assert "3 documents = 2 expected + 1 excluded." in shown
    assert "Does not add up: two of one" in shown
    print_outcomes(report(published=2))
    assert "the account adds up." in capsys.readouterr().out


def test_next_steps_name_the_place_where_it_is_not_the_default(tmp_path: Path) -> None:
    now = status(REVIEW, Waiting("prepared", 1, by_person=False), published=1)
    examples = {"awaiting_review": "s/a b.pdf", "published": "s/c.pdf"}
    here = next_steps(now, make_settings(), examples, "pump")
    assert [step.split(" ", 1)[1] for step in here] == [
        "explain 's/a b.pdf'",
        "run",
        "show s/c.pdf",
        "search pump",
        "export --output archive.jsonl",
    ]
    there = next_steps(now, make_settings(state=tmp_path, version="v-2"), examples)
    assert all(f"--state {tmp_path}" in step for step in there)
    assert there[1].endswith("--version v-2")
