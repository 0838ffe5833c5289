"""Whatever goes wrong, one line says so; nothing of a document gets into it or the logs."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from pipeline_assets.cli.errors import known_message, print_error, tell
from pipeline_assets.cli.options import NothingHere, state_in_use
from pipeline_assets.cli.run import RunFailed
from resources.ledger.errors import LedgerUnreachable
from resources.settings import SettingsError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        pytest.param(RunFailed("no luck"), "no luck", id="run"),
        pytest.param(SettingsError("X: wrong"), "X: wrong", id="settings"),
        pytest.param(LedgerUnreachable("db", "refused"), "run the same command again", id="ledger"),
        pytest.param(NothingHere(Path("/x")), "--state", id="nothing-here"),
        pytest.param(OSError(errno.ENOSPC, "full", "f"), "free some space", id="disk-full"),
        pytest.param(PermissionError(errno.EACCES, "denied", "/x/y"), "/x/y: denied", id="denied"),
        pytest.param(OSError(errno.EIO, "input/output", "f"), None, id="other-system-error"),
        pytest.param(ValueError("a mistake"), None, id="a-mistake"),
    ],
)
def test_known_message(error: Exception, said: str | None) -> None:
    message = known_message(error)
    assert (message is None) if said is None else said in (message or "")


def test_an_error_is_one_line_without_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_error("first\nsecond \x1b[31m red")
    assert capsys.readouterr().err == "tallybook: first second \\u{1b}[31m red\n"


def raised() -> Exception:
    try:
        raise ValueError("a document says: secret")
    except ValueError as error:
        return error


def test_a_mistake_leaves_a_traceback_in_the_logs_without_its_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state_in_use.set(tmp_path)
    tell(raised())
    told = capsys.readouterr().err
    (log,) = (tmp_path / "logs").iterdir()
    assert told.count("\n") == 1
    assert told.startswith("tallybook: unexpected ValueError; ")
    assert str(log) in told
    assert "secret" not in told
    written = log.read_text()
    assert "builtins.ValueError" in written
    assert "in raised" in written
    assert "a document says: secret" not in written.replace(
        'raise ValueError("a document says: secret")', ""
    )
    assert log.stat().st_mode & 0o777 == 0o600


def test_debugging_shows_the_traceback_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TALLYBOOK_DEBUG", "1")
    state_in_use.set(tmp_path / "not-there")
    tell(raised())
    assert "Traceback (most recent call last)" in capsys.readouterr().err
    assert not (tmp_path / "not-there").exists()


def test_a_folder_that_takes_no_log_is_no_second_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").touch()
    state_in_use.set(tmp_path)
    tell(raised())
    told = capsys.readouterr().err
    assert told == "tallybook: unexpected ValueError; set TALLYBOOK_DEBUG=1 to see where\n"
