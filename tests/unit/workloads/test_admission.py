"""The three rules of admission: one that does not hold is refused with its reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline_assets.workloads.admission import RULES, NotAdmitted, require_admitted
from pipeline_assets.workloads.registry import load_workload
from pipeline_assets.workloads.support_tickets.workload import load
from pipeline_assets.workloads.workload import Admission, Kept, Workload

GOOD = load()


def with_rule(rule: str, kept: Kept) -> Workload:
    return replace(GOOD, admission=replace(GOOD.admission, **{rule: kept}))


def test_the_rules_are_those_of_the_declaration() -> None:
    assert tuple(RULES) == tuple(Admission.__dataclass_fields__)


@pytest.mark.parametrize("name", ["equipment_manuals", "support_tickets"])
def test_packaged_workloads_are_admitted(name: str) -> None:
    require_admitted(load_workload(name))


@pytest.mark.parametrize(
    ("rule", "because"),
    [
        pytest.param("result_may_be_late", "the clerk waits for the answer", id="late"),
        pytest.param("stands_alone", "a page is judged by the page before it", id="alone"),
        pytest.param("effect_can_be_retried", "each result sends a payment.", id="retried"),
    ],
)
def test_a_rule_that_does_not_hold_is_told(rule: str, because: str) -> None:
    with pytest.raises(NotAdmitted) as refused:
        require_admitted(with_rule(rule, Kept(holds=False, because=because)))
    assert (refused.value.name, refused.value.rule) == ("support_tickets", rule)
    assert refused.value.because == because.rstrip(".")
    message = str(refused.value)
    assert because.rstrip(".") in message
    assert RULES[rule] in message
    assert "Nothing was frozen or sent" in message


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("because", ["", "  ", "."])
@pytest.mark.parametrize("holds", [True, False])
def test_a_rule_without_a_reason_is_refused(rule: str, because: str, holds: bool) -> None:
    with pytest.raises(NotAdmitted, match="it does not say how") as refused:
        require_admitted(with_rule(rule, Kept(holds=holds, because=because)))
    assert refused.value.rule == rule


def test_the_first_of_several_is_told() -> None:
    no = Kept(holds=False, because="no")
    with pytest.raises(NotAdmitted) as refused:
        require_admitted(replace(GOOD, admission=Admission(no, no, no)))
    assert refused.value.rule == next(iter(RULES))
