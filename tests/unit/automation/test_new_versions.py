"""The decision about files of versions: what is shown, and what is told once."""

from __future__ import annotations

import pytest

from pipeline_assets.automation.new_versions import SpecFile, VersionDecision, decide_versions

GOOD = SpecFile("a.yaml", "1", key="a")
BAD = SpecFile("b.yaml", "1", problem="b.yaml: model: missing")


@pytest.mark.parametrize(
    ("files", "registered", "told", "expected"),
    [
        pytest.param([], [], {}, VersionDecision((), {}, {}), id="nothing"),
        pytest.param([GOOD], [], {}, VersionDecision(("a",), {}, {}), id="new"),
        pytest.param([GOOD], ["a"], {}, VersionDecision((), {}, {}), id="known"),
        pytest.param([], ["a"], {}, VersionDecision((), {}, {}), id="gone-is-never-taken-away"),
        pytest.param(
            [SpecFile("c.yaml", "1", key="c"), GOOD],
            ["x"],
            {},
            VersionDecision(("a", "c"), {}, {}),
            id="several",
        ),
        pytest.param(
            [BAD],
            [],
            {},
            VersionDecision((), {"b.yaml": "b.yaml: model: missing"}, {"b.yaml": "1"}),
            id="broken",
        ),
        pytest.param(
            [BAD], [], {"b.yaml": "1"}, VersionDecision((), {}, {"b.yaml": "1"}), id="told-once"
        ),
        pytest.param(
            [BAD],
            [],
            {"b.yaml": "0"},
            VersionDecision((), {"b.yaml": "b.yaml: model: missing"}, {"b.yaml": "1"}),
            id="broken-otherwise",
        ),
        pytest.param(
            [SpecFile("b.yaml", "2", key="b")],
            [],
            {"b.yaml": "1"},
            VersionDecision(("b",), {}, {}),
            id="mended",
        ),
        pytest.param([], [], {"b.yaml": "1"}, VersionDecision((), {}, {}), id="broken-and-gone"),
        pytest.param(
            [GOOD, BAD],
            [],
            {},
            VersionDecision(("a",), {"b.yaml": "b.yaml: model: missing"}, {"b.yaml": "1"}),
            id="a-broken-one-hinders-no-other",
        ),
    ],
)
def test_decision(
    files: list[SpecFile], registered: list[str], told: dict[str, str], expected: VersionDecision
) -> None:
    assert decide_versions(files, registered, told) == expected
