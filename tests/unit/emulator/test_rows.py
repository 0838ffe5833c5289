"""What each fault of a result file does to its lines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.provider_emulator.faults import Fault
from tests.provider_emulator.rows import ALIEN_ID, mangle_lines
from tests.provider_emulator.world import World


def line(row_id: str, answer: str) -> bytes:
    return json.dumps({"id": row_id, "answer": answer}).encode()


LINES = [(f"r{n}", line(f"r{n}", f"a{n}")) for n in range(4)]


def mangled(*kinds: tuple[str, dict[str, Any]], rows: int = 4) -> list[bytes]:
    world = World()
    try:
        for kind, args in kinds:
            world.faults.add(Fault("openai", "lines", kind, args=args))
        return mangle_lines(world, "openai", "job", LINES[:rows], lambda i: line(i, "alien"))
    finally:
        world.close()


def pairs(lines: list[bytes]) -> list[str]:
    return [f"{one['id']}={one['answer']}" for one in map(json.loads, lines)]


@pytest.mark.parametrize(
    ("kind", "args", "expected"),
    [
        pytest.param("missing", {"index": 2}, "r0=a0 r1=a1 r3=a3", id="missing"),
        pytest.param("missing", {}, "r1=a1 r2=a2 r3=a3", id="missing-first"),
        pytest.param("duplicate", {"index": 1}, "r0=a0 r1=a1 r2=a2 r3=a3 r1=a1", id="duplicate"),
        pytest.param(
            "duplicate_differs", {"index": 1}, "r0=a0 r1=a1 r2=a2 r3=a3 r1=a2", id="differs"
        ),
        pytest.param("alien", {}, f"r0=a0 r1=a1 r2=a2 r3=a3 {ALIEN_ID}=alien", id="alien"),
        pytest.param(
            "alien", {"custom_id": "x"}, "r0=a0 r1=a1 r2=a2 r3=a3 x=alien", id="alien-named"
        ),
        pytest.param("swap", {}, "r0=a1 r1=a0 r2=a2 r3=a3", id="swap"),
        pytest.param("swap", {"a": 3, "b": 1}, "r0=a0 r1=a3 r2=a2 r3=a1", id="swap-chosen"),
        pytest.param("shift", {}, "r1=a0 r2=a1 r3=a2 r0=a3", id="shift"),
    ],
)
def test_lines(kind: str, args: dict[str, Any], expected: str) -> None:
    assert pairs(mangled((kind, args))) == expected.split()


def test_malformed_is_half_a_line() -> None:
    lines = mangled(("malformed", {"index": 3}))
    with pytest.raises(json.JSONDecodeError):
        json.loads(lines[3])
    assert lines[:3] == [data for _, data in LINES[:3]]


def test_crlf_ends_every_line() -> None:
    assert mangled(("crlf", {})) == [data + b"\r" for _, data in LINES]


def test_shuffle_keeps_all_lines() -> None:
    lines = mangled(("shuffle", {}))
    assert sorted(lines) == [data for _, data in LINES]
    assert lines != [data for _, data in LINES]


def test_faults_follow_each_other() -> None:
    assert pairs(mangled(("missing", {"index": 0}), ("swap", {}))) == ["r1=a2", "r2=a1", "r3=a3"]


def test_late_brings_what_was_kept_back_from_another_job() -> None:
    world = World()
    try:
        world.faults.add(Fault("openai", "lines", "missing", args={"index": 2}))
        world.faults.add(Fault("*", "lines", "late", times=2, after=1))
        assert len(mangle_lines(world, "openai", "job", LINES, lambda i: line(i, "alien"))) == 3
        later = [("r9", line("r9", "a9"))]
        assert mangle_lines(world, "gemini", "job", later, lambda i: line(i, "alien")) == [
            later[0][1]
        ], "another provider's"
        found = mangle_lines(world, "openai", "retry", later, lambda i: line(i, "alien"))
        assert pairs(found) == ["r9=a9", "r2=a2"]
        assert "openai.held_back" in world.state
        assert world.state["openai.held_back"] == [], "once"
    finally:
        world.close()


@pytest.mark.parametrize(
    "kind",
    ["missing", "duplicate", "duplicate_differs", "malformed", "shuffle", "swap", "crlf", "shift"],
)
@pytest.mark.parametrize("rows", [0, 1])
def test_small_files(kind: str, rows: int) -> None:
    expected = {"missing": 0, "duplicate": 2 * rows, "duplicate_differs": 2 * rows}
    assert len(mangled((kind, {}), rows=rows)) == expected.get(kind, rows)
