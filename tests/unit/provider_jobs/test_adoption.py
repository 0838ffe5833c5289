"""What is made of a submission whose outcome is not known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.provider_jobs.adoption import (
    GRACE,
    Absent,
    Adopt,
    Decision,
    Quarantine,
    Wait,
    decide_adoption,
)
from resources.providers.port import Found, Job

RECORDED = datetime(2026, 11, 30, 12, tzinfo=UTC)
LATER = RECORDED + GRACE + timedelta(seconds=1)
ONE, TWO = Job("job-1", "running", "running"), Job("job-2", "running", "running")


def decide(found: Found, *, same: bool = True, now: datetime = LATER, taken: str = "") -> Decision:
    return decide_adoption(
        found, same_account=same, taken=set(taken.split()), called_at=RECORDED, now=now
    )


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        pytest.param(decide(Found((ONE,), (), True)), Adopt(ONE, ()), id="found"),
        pytest.param(decide(Found((ONE, TWO), (), True)), Adopt(ONE, (TWO,)), id="one-too-many"),
        pytest.param(decide(Found((ONE,), (), False)), Adopt(ONE, ()), id="list-not-whole"),
        pytest.param(decide(Found((ONE,), (), True), same=False), Adopt(ONE, ()), id="other-key"),
        pytest.param(decide(Found((ONE,), (), True), now=RECORDED), Adopt(ONE, ()), id="at-once"),
        pytest.param(
            decide(Found((ONE, TWO), (), True), taken="job-1"), Adopt(TWO, ()), id="one-is-taken"
        ),
        pytest.param(decide(Found((), (), True)), Absent(), id="absent"),
        pytest.param(decide(Found((ONE,), (), True), taken="job-1"), Absent(), id="only-taken"),
        pytest.param(decide(Found((), (ONE,), True), taken="job-1"), Absent(), id="maybe-taken"),
    ],
)
def test_decisions(decision: Decision, expected: Decision) -> None:
    assert decision == expected


@pytest.mark.parametrize(
    ("decision", "kind", "says"),
    [
        pytest.param(decide(Found((), (), True), same=False), Quarantine, "account", id="account"),
        pytest.param(decide(Found((), (ONE,), True)), Quarantine, "job-1", id="cannot-be-told"),
        pytest.param(decide(Found((), (), True), now=RECORDED), Wait, "listed", id="too-early"),
        pytest.param(decide(Found((), (), False)), Wait, "list", id="list-not-whole"),
    ],
)
def test_decisions_with_a_reason(decision: Decision, kind: type, says: str) -> None:
    assert isinstance(decision, kind)
    assert says in getattr(decision, "reason", "")


jobs = st.lists(st.sampled_from([ONE, TWO]), max_size=2, unique=True).map(tuple)


@given(jobs, jobs, st.booleans(), st.booleans(), st.integers(-60, 1_000))
def test_absence_is_never_taken_on_trust(
    ours: tuple[Job, ...], maybe: tuple[Job, ...], complete: bool, same: bool, seconds: int
) -> None:
    now = RECORDED + timedelta(seconds=seconds)
    if isinstance(decide(Found(ours, maybe, complete), same=same, now=now), Absent):
        assert same and complete
        assert not ours and not maybe
        assert now >= RECORDED + GRACE
