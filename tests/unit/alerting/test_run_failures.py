"""The words of a failed run: closed, bounded, one subject for a version and job."""

from __future__ import annotations

import pytest

from pipeline_assets.alerting.run_failures import run_message, run_subject
from resources.ledger.alerts import SUBJECT_LENGTH


@pytest.mark.parametrize(
    ("job", "partition", "subject"),
    [
        ("process_version", "v-1", "v-1/process_version"),
        ("process_version", None, "process_version"),
        ("j", "v" * 200, "v" * SUBJECT_LENGTH),
    ],
)
def test_subject(job: str, partition: str | None, subject: str) -> None:
    assert run_subject(job, partition) == subject


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([], "run r-1 failed outside its steps"),
        (["manifest"], "run r-1 failed in manifest"),
        (list("abcdefghij"), "run r-1 failed in a, b, c, d, e, f, g, h and 2 more"),
    ],
)
def test_message(steps: list[str], message: str) -> None:
    assert run_message("r-1", steps) == message
