"""Bad input ends in one line that says what was found and what helps, never in a traceback."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess

import psycopg
import pytest
from sqlalchemy.engine import make_url

from partitions.processing_version import PACKAGED_SPECS
from pipeline_assets.cli.app import main
from resources.ledger.engine import open_ledger
from tests.support.command import one_json, tallybook

KEY = "manuals-baseline-2"
KNOWN = ", ".join(sorted(path.stem for path in PACKAGED_SPECS.glob("*.yaml")))
Told = Callable[..., str]


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Told:
    """Return a call of a command that has to fail with one line, which it returns."""

    def call(*arguments: object, status: int = 1) -> str:
        assert main([str(argument) for argument in arguments]) == status
        return one_line(capsys.readouterr().err)

    return call


def one_line(errors: str) -> str:
    assert errors.startswith("tallybook: ")
    assert errors.count("\n") == 1, errors
    return errors


def refused(outcome: CompletedProcess[str]) -> str:
    """Return the one line of a command that failed after it had begun to work."""
    assert outcome.returncode == 1, outcome.stderr
    assert "Traceback" not in outcome.stderr
    return one_line(outcome.stderr[outcome.stderr.index("tallybook: ") :])


@pytest.fixture
def source(tmp_path: Path, repository: Path) -> Path:
    """Return a folder with one small document."""
    folder = tmp_path / "docs"
    folder.mkdir()
    shutil.copy(repository / "data" / "manuals" / "horno-hc-30.html", folder)
    return folder


# The source


def test_a_missing_source(tmp_path: Path, told: Told) -> None:
    said = told("run", "--source", tmp_path / "none", "--state", tmp_path / "state")
    assert "does not exist" in said
    assert "mount or create it" in said
    assert not (tmp_path / "state").exists()


def test_a_source_that_is_a_file(source: Path, tmp_path: Path, told: Told) -> None:
    file = source / "horno-hc-30.html"
    assert "is not a folder" in told("run", "--source", file, "--state", tmp_path / "state")


def test_an_empty_source(tmp_path: Path, told: Told) -> None:
    (tmp_path / "docs").mkdir()
    said = told("run", "--source", tmp_path / "docs", "--state", tmp_path / "state")
    assert "docs" in said
    assert "empty" in said


def test_an_unreadable_source(
    source: Path, tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    # Root may open every folder, so the refusal is made here.
    def refuse(path: object, flags: int, *rest: int, **options: int) -> int:
        if path in (os.fsencode(source), str(source)):
            raise PermissionError(13, "Permission denied", str(source))
        return real(path, flags, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse)
    said = told("run", "--source", source, "--state", tmp_path / "state")
    assert "cannot be" in said
    assert "ermission" in said


@pytest.mark.slow
def test_a_source_that_vanishes_later_loses_nothing(source: Path, tmp_path: Path) -> None:
    """An unmounted disk must not look like an archive from which everything was removed."""
    run = ("run", "--source", source, "--state", tmp_path / "state")
    assert tallybook(*run, cwd=tmp_path).returncode == 0
    report = ("report", "--json", "--state", tmp_path / "state")
    before = one_json(tallybook(*report, cwd=tmp_path).stdout)
    (source / "horno-hc-30.html").unlink()
    assert "empty" in refused(tallybook(*run, cwd=tmp_path))
    after = one_json(tallybook(*report, cwd=tmp_path).stdout)
    assert after["states"] == before["states"] == {"published": 1}


# Processing versions


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("Not A Key", "is not a processing version key: expected 1 to 63"),
        ("../up", "is not a processing version key"),
        ("manuals-baseline-9", f"known: {KNOWN}; looked in"),
    ],
)
def test_a_wrong_version_key(key: str, said: str, tmp_path: Path, told: Told) -> None:
    assert said in told("run", "--version", key, "--state", tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_a_version_that_was_never_used(sqlite_ledger: Path, told: Told) -> None:
    said = told("report", "--version", "never-used", "--state", sqlite_ledger)
    assert "used so far: none" in said
    assert "tallybook run --version never-used" in said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(
            lambda text: text + "temperature: 1\n", "unknown field 'temperature'", id="unknown"
        ),
        pytest.param(
            lambda text: text.replace("model: rules-1\n", ""), "'model' is missing", id="missing"
        ),
        pytest.param(
            lambda text: text.replace("schema_version: 1", "schema_version: one"),
            "'schema_version'",
            id="wrong-type",
        ),
        pytest.param(lambda text: text.replace("own-1", "own-2"), "name the file", id="other-key"),
        pytest.param(lambda text: text + "\t: [", "is not valid YAML at line", id="no-yaml"),
    ],
)
def test_a_spec_that_cannot_be_used(
    change: Callable[[str], str],
    said: str,
    tmp_path: Path,
    repository: Path,
    told: Told,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = (repository / "partitions" / "versions" / f"{KEY}.yaml").read_text()
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "own-1.yaml").write_text(change(spec.replace(KEY, "own-1")))
    monkeypatch.setenv("TALLYBOOK_SPECS", str(folder))
    line = told("run", "--version", "own-1", "--state", tmp_path / "state")
    assert "own-1.yaml" in line
    assert said in line


@pytest.mark.slow
def test_a_spec_that_was_changed_after_use(source: Path, tmp_path: Path, repository: Path) -> None:
    folder = tmp_path / "specs"
    folder.mkdir()
    spec = (repository / "partitions" / "versions" / f"{KEY}.yaml").read_text()
    file = folder / "own-1.yaml"
    file.write_text(spec.replace(KEY, "own-1"))
    run = ("run", "--version", "own-1", "--source", source, "--state", tmp_path / "state")
    first = tallybook(*run, cwd=tmp_path, TALLYBOOK_SPECS=str(folder))
    assert first.returncode == 0, first.stderr
    file.write_text(file.read_text().replace("ocr_pages: 12", "ocr_pages: 13"))
    said = refused(tallybook(*run, cwd=tmp_path, TALLYBOOK_SPECS=str(folder)))
    assert "own-1.yaml" in said
    assert "frozen digest" in said


# Ledger and settings


@pytest.fixture
def sqlite_ledger(tmp_path: Path) -> Path:
    """Return a state folder with a ledger in which nothing happened."""
    from resources.context import open_context
    from resources.settings import Settings

    with open_context(Settings(state=tmp_path / "state")):
        pass
    return tmp_path / "state"


@pytest.mark.parametrize("command", ["run", "status", "doctor"])
def test_a_ledger_from_a_newer_release(command: str, sqlite_ledger: Path, told: Told) -> None:
    with sqlite3.connect(sqlite_ledger / "ledger.sqlite") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    said = told(command, "--state", sqlite_ledger)
    assert "schema 9999, which this release" in said
    assert "Install the release that wrote it" in said


def test_a_ledger_of_another_profile(
    sqlite_ledger: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TALLYBOOK_PROFILE", "prod")
    assert "made under profile 'dev'" in told("status", "--state", sqlite_ledger)


def test_a_file_that_is_no_ledger(tmp_path: Path, told: Told) -> None:
    (tmp_path / "ledger.sqlite").write_text("not a database, but long enough to look at" * 50)
    assert "is not a Tallybook ledger" in told("status", "--state", tmp_path)


def test_a_state_folder_that_is_a_file(tmp_path: Path, told: Told) -> None:
    (tmp_path / "state").touch()
    assert str(tmp_path / "state") in told("run", "--state", tmp_path / "state")


def test_a_state_folder_without_a_ledger(tmp_path: Path, told: Told) -> None:
    for command in ("status", "report", "outcomes", "export", "doctor"):
        assert "there is no ledger in" in told(command, "--state", tmp_path / "none")


@pytest.mark.parametrize(
    ("name", "value"),
    [("PARSER_WORKERS", "many"), ("PROFILE", "test"), ("SOURCE_NAME", "A B")],
)
def test_a_wrong_setting(
    name: str, value: str, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"TALLYBOOK_{name}", value)
    assert f"TALLYBOOK_{name}: " in told("status")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        pytest.param(
            "postgresql://me:pass-word@127.0.0.1:1/tallybook", "cannot be reached", id="down"
        ),
        pytest.param("mysql://me:pass-word@127.0.0.1/x", "cannot live in 'mysql'", id="other"),
        pytest.param("pass-word", "it is not a database URL", id="no-url"),
    ],
)
def test_a_ledger_url_that_does_not_work(
    url: str, said: str, tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TALLYBOOK_LEDGER_URL", url)
    for command in ("run", "status"):
        line = told(command, "--state", tmp_path / "state")
        assert said in line
        assert "pass-word" not in line


# A database that goes away, a disk that is full: nothing is lost, running again works


@contextmanager
def cut_at_first_attempt(url: str) -> Iterator[None]:
    """The server ends the connection that writes the first attempt, in the middle of its work."""
    open_ledger(url).close()
    server = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$"
        )
        connection.execute(
            "CREATE TRIGGER cut BEFORE INSERT ON attempts FOR EACH ROW EXECUTE FUNCTION cut()"
        )
        try:
            yield
        finally:
            connection.execute("DROP FUNCTION cut CASCADE")


@pytest.mark.slow
@pytest.mark.postgres
def test_a_database_that_goes_away_in_a_run(
    source: Path, tmp_path: Path, postgres_url: str
) -> None:
    run = ("run", "--source", source, "--state", tmp_path / "state")
    with cut_at_first_attempt(postgres_url):
        said = refused(tallybook(*run, cwd=tmp_path, TALLYBOOK_LEDGER_URL=postgres_url))
    assert "cannot be reached" in said
    assert "run the same command again" in said
    again = tallybook(*run, cwd=tmp_path, TALLYBOOK_LEDGER_URL=postgres_url)
    assert again.returncode == 0, again.stderr
    assert "the account adds up" in again.stdout


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Mount a disk of so many bytes, or skip where that is not permitted."""
    folder.mkdir(exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mount") is None, reason="there is no mount command")
@pytest.mark.parametrize(
    ("holds", "size", "said"),
    [
        pytest.param("state", "700k", "free some space", id="all-of-the-state"),
        pytest.param("ledger", "500k", "no space is left for sqlite:", id="the-ledger"),
        pytest.param("state/artifacts", "150k", "in artifacts for an artifact", id="sources"),
        pytest.param("state/artifacts", "420k", "in artifacts for an artifact", id="results"),
    ],
)
def test_a_full_disk(
    holds: str, size: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run stops in one line, and goes on to the same end once there is room."""
    # The disks here are smaller than the room that is kept free, so nothing would be begun.
    monkeypatch.setenv("TALLYBOOK_DISK_RESERVE_MB", "0")
    (tmp_path / "state").mkdir()
    if holds == "ledger":
        monkeypatch.setenv("TALLYBOOK_LEDGER_URL", f"sqlite:///{tmp_path}/ledger/l.db")
    run = ("run", "--state", tmp_path / "state")
    with small_disk(tmp_path / holds, size) as disk:
        line = refused(tallybook(*run, cwd=tmp_path))
        assert said in line
        assert "run the same command again" in line
        subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)
        again = tallybook(*run, cwd=tmp_path)
        assert again.returncode == 3, again.stderr
        assert "the account adds up" in again.stdout
        doctor = tallybook("doctor", "--state", tmp_path / "state", cwd=tmp_path)
        assert doctor.returncode == 0, doctor.stdout
