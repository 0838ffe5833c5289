"""Rows that only grow: more of them is no finding; fewer, or others, is one that names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pytest

from pipeline_assets.audit.findings import Findings
from pipeline_assets.audit.look import Look
from pipeline_assets.audit.run import _longest
from pipeline_assets.audit.trails import KEPT, Trail, check_trails, seen_now


@dataclass(frozen=True)
class OnlyFindings:
    findings: Findings


NOW = {"results:1": Trail("result files of batch b1", 3, "c" * 64, {2: "b" * 64, 3: "c" * 64})}


@pytest.mark.parametrize(
    ("seen", "found"),
    [
        pytest.param({}, [], id="nothing was seen"),
        pytest.param({"results:1": (3, "c" * 16)}, [], id="the same"),
        pytest.param({"results:1": (2, "b" * 16)}, [], id="one more"),
        pytest.param(
            {"results:1": (2, "d" * 16)},
            [("result files of batch b1", f"first 2 rows with digest {'b' * 16}")],
            id="others",
        ),
        pytest.param(
            {"results:1": (4, "c" * 16)}, [("result files of batch b1", "3 rows")], id="fewer"
        ),
        pytest.param({"results:2": (1, "a" * 16)}, [("trail results:2", "0 rows")], id="none"),
    ],
)
def test_trails_against_what_was_seen(
    seen: dict[str, tuple[int, str]], found: list[tuple[str, str]]
) -> None:
    findings = Findings()
    check_trails(cast("Look", OnlyFindings(findings)), NOW, seen, "audit 3")
    assert [(each.subject, each.found) for each in findings.of([KEPT])] == found
    assert findings.checked[KEPT] == len(seen)


def test_a_later_audit_is_held_against_the_longest_that_was_seen() -> None:
    assert seen_now(NOW) == {"results:1": (3, "c" * 16)}
    assert _longest(
        {"a": (2, "x"), "b": (5, "y")}, {"a": (3, "z"), "b": (5, "w"), "c": (1, "v")}
    ) == {
        "a": (3, "z"),
        "b": (5, "y"),
        "c": (1, "v"),
    }
