"""The test database itself: every way to get one, and that nothing of it is left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import psycopg
import pytest
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import make_url

from tests.support import postgres as support
from tests.support.postgres import (
    KEEPER,
    URL_VARIABLE,
    PostgresServer,
    PostgresUnavailableError,
    fresh_database,
    local_bin_dirs,
    postgres_server,
    started_from,
    wheel_bin_dirs,
)

BIN_DIR_FINDERS = [
    pytest.param(local_bin_dirs, id="local"),
    pytest.param(wheel_bin_dirs, id="wheel"),
]


def server_version(server: PostgresServer) -> int:
    with fresh_database(server) as url:
        plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(plain) as connection:
            return connection.info.server_version


def wait_until(condition: Callable[[], bool], limit_s: float = 20.0) -> bool:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


@pytest.mark.parametrize("find", BIN_DIR_FINDERS)
def test_server_starts_from_binaries_and_is_stopped(find: Callable[[], list[Path]]) -> None:
    folders = find()
    if not folders:
        pytest.skip("no PostgreSQL binaries of this kind on this machine")
    started = time.monotonic()
    with started_from(folders[0]) as server:
        took = time.monotonic() - started
        assert server_version(server) >= 13_00_00
        assert server.pid is not None
        assert psutil.pid_exists(server.pid)
    assert not psutil.pid_exists(server.pid)
    assert took < 10


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another account")
def test_wheel_in_a_private_folder_is_copied_to_where_the_server_can_read_it(
    tmp_path: Path,
) -> None:
    tmp_path.chmod(0o700)
    binaries = wheel_bin_dirs()[0]
    package = binaries.parent.parent
    for part in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(part, tmp_path / part.name, symlinks=True)
    with started_from(tmp_path / binaries.relative_to(package.parent)) as server:
        assert server_version(server) >= 13_00_00


def test_named_server_is_used_and_not_stopped(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = postgres.url.set(drivername="postgresql").render_as_string(hide_password=False)
    monkeypatch.setenv(URL_VARIABLE, bare)
    with postgres_server() as server:
        assert server.origin == "environment"
        assert server.url.drivername == "postgresql+psycopg"
        server_version(server)
    server_version(postgres)


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        pytest.param("nonsense", "not a database URL", id="no-url"),
        pytest.param("sqlite:///x.db", "names a sqlite database", id="other-database"),
        pytest.param("postgresql://me:hunter2@127.0.0.1:1/db", "127.0.0.1:1/db", id="nobody-there"),
    ],
)
def test_named_server_that_fails_is_an_error(
    url: str, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(URL_VARIABLE, url)
    with pytest.raises(PostgresUnavailableError) as caught, postgres_server():
        pass
    assert complaint in str(caught.value)
    assert "Remedy" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_without_any_binaries_the_error_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    monkeypatch.setattr(support, "local_bin_dirs", list)
    monkeypatch.setattr(support, "wheel_bin_dirs", list)
    failure = pytest.raises(
        PostgresUnavailableError, match=r"nothing was found(?s:.)*make install-dev"
    )
    with failure, postgres_server():
        pass


def test_binaries_that_fail_give_way_to_the_next(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not in tmp_path: that is private to us, and the server's account could not enter it.
    folder = tempfile.TemporaryDirectory(prefix="tallybook-broken-")
    request.addfinalizer(folder.cleanup)
    Path(folder.name).chmod(0o755)
    broken = Path(folder.name) / "bin"
    broken.mkdir()
    for name in ("initdb", "postgres"):
        (broken / name).write_text("#!/bin/sh\necho broken on purpose >&2\nexit 7\n")
        (broken / name).chmod(0o755)
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    monkeypatch.setattr(support, "local_bin_dirs", lambda: [broken])
    monkeypatch.setattr(support, "wheel_bin_dirs", list)
    failure = pytest.raises(PostgresUnavailableError, match="status 7:\nbroken on purpose")
    with failure, postgres_server():
        pass
    working = [*local_bin_dirs(), *wheel_bin_dirs()][:1]
    monkeypatch.setattr(support, "wheel_bin_dirs", lambda: working)
    with postgres_server() as server:
        assert server.origin == str(working[0])


@pytest.mark.parametrize(
    "end", [pytest.param(signal.SIGKILL, id="killed"), pytest.param(signal.SIGINT, id="interrupt")]
)
def test_server_does_not_outlive_its_starter(end: signal.Signals, repository: Path) -> None:
    program = (
        "import json, sys, time\n"
        "from tests.support.postgres import started_from\n"
        "from pathlib import Path\n"
        "with started_from(Path(sys.argv[1])) as server:\n"
        "    print(json.dumps(server.pid), flush=True)\n"
        "    time.sleep(60)\n"
    )
    binaries = [*local_bin_dirs(), *wheel_bin_dirs()][0]
    starter = subprocess.Popen(
        [sys.executable, "-c", program, str(binaries)],
        cwd=repository,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert starter.stdout is not None
    with starter.stdout:
        server_pid = json.loads(starter.stdout.readline())
        server = psutil.Process(server_pid)
        data = Path(server.cmdline()[server.cmdline().index("-D") + 1])
        starter.send_signal(end)
        starter.wait(20)
    assert wait_until(lambda: not psutil.pid_exists(server_pid))
    assert wait_until(lambda: not data.parent.exists())


def test_keeper_reports_a_folder_without_binaries(tmp_path: Path) -> None:
    outcome = subprocess.run(
        [sys.executable, "-I", str(KEEPER), str(tmp_path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert outcome.returncode == 1
    assert "could not be executed" in json.loads(outcome.stdout)["error"]
    assert not outcome.stderr


def test_databases_are_fresh_and_dropped(postgres: PostgresServer) -> None:
    with fresh_database(postgres) as first, fresh_database(postgres) as second:
        assert first.database != second.database
        engine = create_engine(first)
        holder = engine.connect()  # an open connection must not keep the database alive
        holder.execute(text("CREATE TABLE made_by_a_test (a int)"))
        holder.commit()
        other = create_engine(second)
        assert inspect(other).get_table_names() == []
        other.dispose()
    plain = postgres.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain) as connection:
        names = {row[0] for row in connection.execute("SELECT datname FROM pg_database")}
    assert first.database not in names
    holder.invalidate()
    holder.close()
    engine.dispose()


def test_ledger_url_is_an_empty_database(ledger_url: str) -> None:
    engine = create_engine(ledger_url)
    try:
        assert inspect(engine).get_table_names() == []
    finally:
        engine.dispose()
    assert make_url(ledger_url).drivername in {"sqlite", "postgresql+psycopg"}


def test_environment_is_scrubbed_but_for_the_test_settings() -> None:
    left = {name for name in os.environ if name.startswith(("TALLYBOOK_", "DAGSTER_", "OPENAI_"))}
    assert left <= {URL_VARIABLE, "TALLYBOOK_DEV_CORPUS", "TALLYBOOK_CHROMIUM"}
