"""Commands of the documentation that take minutes, with smaller figures (`RUN_ELSEWHERE`).

Belongs here: only what no other test runs.
"""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.acceptance import adversarial
from tests.e2e import providers


@pytest.mark.slow
def test_make_providers_e2e(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One provider of four; both modes."""
    monkeypatch.setattr(providers, "PROVIDERS", ("anthropic",))
    with patch.dict(os.environ, {"TALLYBOOK_E2E_STATE": str(tmp_path)}):
        status = providers.main()
    said = capsys.readouterr().out
    assert status == 0, said
    assert {"anthropic batch equal", "anthropic online equal"} <= set(said.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--samples", "--gold"], "accepted"),
        (["--samples", "--only", "title"], "accepted=0 wrong_rule=0"),
    ],
    ids=["right answers", "tricks"],
)
def test_make_adversarial(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The sample manuals; the corpus is not everywhere."""
    assert adversarial.main(words) == 0
    assert says in capsys.readouterr().out
