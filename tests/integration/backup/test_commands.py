"""The commands as a person types them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline_assets.backup.make import make_backup
from pipeline_assets.cli.app import main
from resources.context import open_context
from tests.support.command import json_lines, one_json
from tests.support.released import KEYS, load_released
from tests.support.small_shop import settings_for

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    returncode: int
    stdout: str
    stderr: str


Command = Callable[..., Done]


@pytest.fixture
def tallybook(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Return what runs a command in a folder, in this process: starting one takes seconds."""

    def run(*words: str, cwd: Path) -> Done:
        monkeypatch.chdir(cwd)
        status = main(words)
        told = capsys.readouterr()
        return Done(status, told.out, told.err)

    return run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder with a state folder (of the second release, upgraded) and a backup."""
    folder = tmp_path_factory.mktemp("shop")
    state = folder / "state"
    load_released("0002", state, f"sqlite:///{state / 'ledger.sqlite'}")
    with open_context(settings_for(folder)) as context:
        make_backup(context, folder / "backup", "Ada")
    yield folder


def test_a_backup_is_made_listed_and_verified(made: Path, tallybook: Command) -> None:
    done = tallybook("backup", "--out", "again", "--state", "state", "--by", "Bo", cwd=made)
    assert done.returncode == 0, done.stderr
    assert "Not in it:" in done.stdout
    listed = json_lines(tallybook("backup", "list", "--state", "state", "--json", cwd=made).stdout)
    assert [row["actor"] for row in listed] == ["Bo", "Ada"]
    verdict = one_json(tallybook("backup", "verify", "again", "--json", cwd=made).stdout)
    assert verdict["whole"] is True
    assert verdict["digest"] == listed[0]["digest"]
    assert verdict["artifacts"] == listed[0]["artifacts"]


def test_a_restore_says_what_is_held_and_what_is_looked_for(made: Path, tallybook: Command) -> None:
    done = tallybook("restore", "backup", "--state", "new", cwd=made)
    assert done.returncode == 0, done.stderr
    assert "release --state" in done.stdout
    rows = json_lines(tallybook("batch", "list", "--state", "new", "--json", cwd=made).stdout)
    assert [row["state"] for row in rows] == ["submitted"]
    released = tallybook(
        *("release", "--state", "new", "--version", KEYS["0002"], "--reason", "it is off"), cwd=made
    )
    assert released.returncode == 0, released.stderr
    again = tallybook("restore", "backup", "--state", "new", cwd=made)
    assert again.returncode == 1
    assert "empty place" in again.stderr


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("backup",), 2, "--out"),
        (("backup", "verify", "nowhere"), 1, "contents.json"),
        (("restore", "nowhere", "--state", "other"), 1, "contents.json"),
        (("restore", "backup"), 2, "--state"),
        (("backup", "--out", "state/backup", "--state", "state"), 1, "state folder"),
        (("migrate", "--state", "nowhere"), 1, "no ledger"),
    ],
    ids=["no-out", "verify-nothing", "restore-nothing", "no-state", "inside", "migrate-nothing"],
)
def test_what_cannot_be_done_is_one_line(
    words: tuple[str, ...], status: int, says: str, made: Path, tallybook: Command
) -> None:
    done = tallybook(*words, cwd=made)
    assert done.returncode == status
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_ledger_of_prod_is_migrated_by_command_alone(
    tmp_path: Path, tallybook: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    load_released("0002", state, f"sqlite:///{state / 'ledger.sqlite'}")
    with sqlite3.connect(state / "ledger.sqlite") as connection:
        connection.execute("UPDATE ledger_info SET value = 'prod' WHERE name = 'profile'")
    connection.close()
    monkeypatch.setenv("TALLYBOOK_PROFILE", "prod")
    status = tallybook("batch", "list", "--state", "state", cwd=tmp_path)
    assert status.returncode == 1
    assert "tallybook migrate" in status.stderr
    check = tallybook("migrate", "--check", "--state", "state", cwd=tmp_path)
    assert check.returncode == 3
    assert "1 submitted" in check.stdout
    done = tallybook("migrate", "--state", "state", "--json", cwd=tmp_path)
    assert one_json(done.stdout)["upgraded"] is True
    again = tallybook("migrate", "--check", "--state", "state", cwd=tmp_path)
    assert (again.returncode, "up to date" in again.stdout) == (0, True)
    listed = tallybook("batch", "list", "--state", "state", "--json", cwd=tmp_path)
    assert [row["state"] for row in json_lines(listed.stdout)] == ["submitted"]


def test_an_empty_database_becomes_a_ledger(
    tmp_path: Path, tallybook: Command, monkeypatch: pytest.MonkeyPatch, ledger_url: str
) -> None:
    """By whoever may make tables; nobody else's first command has to."""
    monkeypatch.setenv("TALLYBOOK_LEDGER_URL", ledger_url)
    monkeypatch.setenv("TALLYBOOK_PROFILE", "prod")
    check = tallybook("migrate", "--check", "--state", "state", cwd=tmp_path)
    assert (check.returncode, "makes the schema" in check.stdout) == (3, True)
    done = tallybook("migrate", "--state", "state", cwd=tmp_path)
    assert (done.returncode, "Done" in done.stdout) == (0, True)
    again = tallybook("migrate", "--state", "state", cwd=tmp_path)
    assert (again.returncode, "up to date" in again.stdout) == (0, True)
