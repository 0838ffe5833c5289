"""When planted faults strike, and which are refused because they never could."""

from __future__ import annotations

from typing import Any

import pytest

from tests.provider_emulator.faults import Fault, FaultPlan, InvalidFault, read_fault


def strikes(fault: Fault, count: int, **facts: Any) -> list[bool]:
    plan = FaultPlan()
    plan.add(fault)
    return [plan.take("openai", "create", **facts) is not None for _ in range(count)]


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        pytest.param(Fault("openai", "create", "status"), "x---", id="once"),
        pytest.param(Fault("*", "create", "status"), "x---", id="every-provider"),
        pytest.param(Fault("openai", "create", "status", times=2), "xx--", id="twice"),
        pytest.param(Fault("openai", "create", "status", times=None), "xxxx", id="for-ever"),
        pytest.param(Fault("openai", "create", "status", after=2), "--x-", id="after"),
        pytest.param(
            Fault("openai", "create", "status", times=2, after=1), "-xx-", id="after-and-times"
        ),
        pytest.param(Fault("gemini", "create", "status"), "----", id="other-provider"),
        pytest.param(Fault("openai", "upload", "status"), "----", id="other-operation"),
        pytest.param(
            Fault("openai", "create", "status", args={"match": {"job_id": "j1"}}),
            "x---",
            id="facts-match",
        ),
        pytest.param(
            Fault("openai", "create", "status", args={"match": {"job_id": "j2"}}),
            "----",
            id="facts-differ",
        ),
        pytest.param(
            Fault("openai", "create", "status", args={"match": {"unknown": 1}}),
            "----",
            id="facts-missing",
        ),
    ],
)
def test_strikes(fault: Fault, expected: str) -> None:
    assert strikes(fault, 4, job_id="j1") == [letter == "x" for letter in expected]


def test_the_first_due_fault_strikes_and_those_let_through_are_counted() -> None:
    plan = FaultPlan()
    plan.add(Fault("openai", "create", "delay", after=1))
    plan.add(Fault("openai", "create", "status"))
    struck = [plan.take("openai", "create") for _ in range(3)]
    assert [fault and fault.kind for fault in struck] == ["status", "delay", None]


def test_take_all_uses_each_up_once() -> None:
    plan = FaultPlan()
    plan.add(Fault("openai", "lines", "shuffle", times=None))
    plan.add(Fault("openai", "lines", "missing"))
    assert [one.kind for one in plan.take_all("openai", "lines")] == ["shuffle", "missing"]
    assert [one.kind for one in plan.take_all("openai", "lines")] == ["shuffle"]


def test_pending_tells_what_has_not_struck() -> None:
    plan = FaultPlan()
    plan.add(Fault("openai", "create", "status"))
    plan.add(Fault("openai", "list", "status"))
    plan.take("openai", "create")
    assert [one.op for one in plan.pending()] == ["list"]
    plan.clear()
    assert plan.pending() == []


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        pytest.param("status", "mapping", id="no-mapping"),
        pytest.param({"provider": "openai", "op": "create"}, "kind", id="field-missing"),
        pytest.param(
            {"provider": "openai", "op": "create", "kind": "status", "time": 1},
            "at most",
            id="field-unknown",
        ),
        pytest.param(
            {"provider": "openia", "op": "create", "kind": "status"}, "openia", id="provider"
        ),
        pytest.param(
            {"provider": "openai", "op": "creation", "kind": "status"}, "creation", id="operation"
        ),
        pytest.param(
            {"provider": "openai", "op": "create", "kind": "cut"}, "cut", id="kind-of-another-op"
        ),
        pytest.param(
            {"provider": "openai", "op": "create", "kind": "status", "times": 0},
            "times",
            id="never",
        ),
        pytest.param(
            {"provider": "openai", "op": "create", "kind": "status", "times": "2"},
            "whole numbers",
            id="times-as-text",
        ),
        pytest.param(
            {"provider": "openai", "op": "create", "kind": "status", "args": [1]},
            "args",
            id="args",
        ),
        pytest.param(
            {"provider": "openai", "op": "create", "kind": "status", "args": {"match": "j"}},
            "match",
            id="match",
        ),
    ],
)
def test_refused(data: object, complaint: str) -> None:
    with pytest.raises(InvalidFault, match=complaint):
        read_fault(data)


def test_a_list_is_planted_whole_or_not_at_all() -> None:
    plan = FaultPlan()
    good = {"provider": "openai", "op": "create", "kind": "status"}
    with pytest.raises(InvalidFault):
        plan.load([good, {"provider": "openai"}])
    assert plan.pending() == []
    plan.load([good])
    assert plan.pending() == [Fault("openai", "create", "status")]
