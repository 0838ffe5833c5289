"""The command as a whole: help, usage, and its last resort."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest

from pipeline_assets.cli import app
from resources.settings import require_supported_platform
from tests.support.command import tallybook

COMMANDS = (
    "run",
    "status",
    "report",
    "outcomes",
    "search",
    "show",
    "explain",
    "export",
    "versions",
    "doctor",
    "about",
    "alerts",
    "automation",
    "batch",
    "blame",
    "canary",
    "dead-letter",
    "erase",
    "hold",
    "prune",
    "release",
    "replay",
    "replays",
    "settings",
    "sources",
)


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in COMMANDS)


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    started = time.monotonic()
    outcome = tallybook("--help", cwd=tmp_path, PYTHONPROFILEIMPORTTIME="1")
    assert outcome.returncode == 0
    assert "run" in outcome.stdout
    for heavy in ("dagster", "polars", "sqlalchemy"):
        assert f"| {heavy}\n" not in outcome.stderr
    # A second on a quiet machine; tests may share theirs.
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main([command, "--help"]) == 0
    assert f"tallybook {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["nonsense"], "No such command 'nonsense'", id="unknown-command"),
        pytest.param(["reprot"], "Did you mean 'report'", id="misspelt-command"),
        pytest.param(["status", "--colour"], "No such option: --colour", id="unknown-option"),
        pytest.param(["explain"], "Missing argument 'DOCUMENT'", id="missing-argument"),
        pytest.param(
            ["search", "x", "--limit", "0"],
            "Input should be greater than or equal to 1",
            id="range",
        ),
        pytest.param(
            ["run", "--source-name", "Not A Name"], "is not usable: expected 1 to 31", id="name"
        ),
    ],
)
def test_wrong_usage(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(arguments) == 2
    told = capsys.readouterr().err
    assert told.startswith("tallybook: ")
    assert told.count("\n") == 1
    assert said in told
    assert "--help" in told


def test_without_a_command_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main([]) == 2
    assert "explain" in capsys.readouterr().out


def test_windows_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "resources.settings.require_supported_platform",
        partial(require_supported_platform, "win32"),
    )
    assert app.main(["status"]) == 1
    assert capsys.readouterr().err == (
        "tallybook: Tallybook runs on Linux (macOS: best effort), not on Windows: use WSL 2 or a "
        "Linux machine.\n"
    )


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        pytest.param(KeyboardInterrupt(), 130, "run the same command again", id="interrupted"),
        pytest.param(RuntimeError("a document"), 1, "unexpected RuntimeError", id="mistake"),
        pytest.param(BrokenPipeError(), 141, "", id="reader-left"),
    ],
)
def test_the_last_resort(
    error: BaseException,
    status: int,
    said: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("pipeline_assets.cli.app.get_command", fail)
    assert app.main(["status"]) == status
    told = capfd.readouterr().err
    assert "Traceback" not in told
    assert "a document" not in told
    assert said in told
    assert told.count("\n") == (1 if said else 0)
