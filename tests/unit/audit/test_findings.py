"""Findings are counted, kept up to a bound, and told once."""

from __future__ import annotations

import pytest

from pipeline_assets.audit import findings as module
from pipeline_assets.audit.artifacts import in_sample
from pipeline_assets.audit.findings import Findings


def test_the_same_thing_told_twice_counts_once() -> None:
    found = Findings()
    for _ in range(2):
        found.add("a", "row 1", "x", "y")
    found.add("b", "row 1", "x", "y")
    assert (found.total, [each.check for each in found.all()]) == (2, ["a", "b"])
    assert [each.check for each in found.of(["b"])] == ["b"]


def test_more_than_are_kept_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 3)
    found = Findings()
    for number in range(10):
        found.add("a", f"row {number}", "x", "y")
    assert (found.total, len(found.all())) == (10, 3)


def test_what_is_left_out_is_said_once() -> None:
    found = Findings()
    found.leave_out("a spec")
    found.leave_out("a spec")
    assert found.left_out == ["a spec"]


def test_a_sample_is_a_share_and_can_be_repeated() -> None:
    names = [f"{number:064x}" for number in range(4000)]
    drawn = [name for name in names if in_sample(name, 10, 7)]
    assert drawn == [name for name in names if in_sample(name, 10, 7)]
    assert 300 < len(drawn) < 500
    assert drawn != [name for name in names if in_sample(name, 10, 8)]
    assert not any(in_sample(name, 0, 7) for name in names)
    assert all(in_sample(name, 100, 7) for name in names)


def test_what_was_found_elsewhere_is_taken_with_its_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "KEPT", 3)
    found, others = Findings(), Findings()
    found.add("a", "row 0", "x", "y")
    others.looked("a", 7)
    for number in range(1, 6):
        others.add("a", f"row {number}", "x", "y")
    found.take(others)
    assert (found.total, len(found.all()), found.checked["a"]) == (6, 3, 7)
