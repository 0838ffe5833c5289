"""The configuration of a manifest: a replay that is said by half freezes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline_assets.prepare.asset import FreezeConfig, require_one_meaning
from pipeline_assets.replay.model import ReplayRefused


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({}, id="usual run"),
        pytest.param({"replay_reason": "operator"}, id="a reason for what is new"),
        pytest.param({"retries_only": True}, id="retries"),
        pytest.param({"replay_from": "v-1", "note": "why"}, id="replay"),
        pytest.param(
            {"replay_from": "v-1", "note": "why", "where": "pages > 1", "documents": ["m/a"]},
            id="replay of some",
        ),
    ],
)
def test_what_means_one_thing(given: dict[str, Any]) -> None:
    require_one_meaning(FreezeConfig(**given))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param({"where": "pages > 1"}, "gives where without replay_from", id="filter"),
        pytest.param({"documents": []}, "gives documents without", id="an empty list"),
        pytest.param({"note": "why", "actor": "ada"}, "gives note, actor without", id="words"),
        pytest.param({"where": "pages > 1", "retries_only": True}, "gives where", id="retries too"),
        pytest.param(
            {"replay_from": "v-1", "note": "why", "retries_only": True},
            "exclude each other",
            id="replay and retries",
        ),
    ],
)
def test_what_is_said_by_half_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ReplayRefused, match=message):
        require_one_meaning(FreezeConfig(**given))
