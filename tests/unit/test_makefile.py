"""What `make` and `.ci/run` do around the tools, shown with stand-ins for the tools."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    shutil.which("make") is None or shutil.which("bash") is None, reason="needs make and bash"
)


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def call(folder: Path, *command: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    search = os.environ["PATH"] if path is None else f"{path}:{os.environ['PATH']}"
    # Without MAKEFLAGS and the like: these tests themselves run below a `make test`.
    return subprocess.run(
        command,
        cwd=folder,
        env={"PATH": search, "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def tree(tmp_path: Path, repository: Path) -> Path:
    """A folder with the real Makefile and pins, and nothing installed."""
    for name in ("Makefile", "pyproject.toml", "requirements.txt", "requirements-dev.txt"):
        shutil.copy(repository / name, tmp_path)
    return tmp_path


@pytest.fixture
def installed(tree: Path) -> Path:
    """The same with an environment that counts as up to date."""
    (tree / ".venv").mkdir()
    for name in ("pyvenv.cfg", ".installed-runtime", ".installed-dev"):
        (tree / ".venv" / name).touch()
    return tree


def test_help_lists_every_public_target(tree: Path) -> None:
    shown = call(tree, "make").stdout
    for target in ("install", "install-dev", "run", "test", "lint", "ui", "bench", "lock", "docs"):
        assert f"make {target} " in shown


@pytest.mark.parametrize(
    ("python", "complaint"),
    [
        pytest.param(
            'case "$*" in *version_info*) exit 1;; --version) echo Python 3.9.2;; esac',
            "needs Python 3.11 or newer; './python' is Python 3.9.2",
            id="too-old",
        ),
        pytest.param(
            'case "$*" in *ensurepip*) exit 1;; esac',
            "apt-get install python3-venv",
            id="no-venv",
        ),
        pytest.param(None, "needs Python 3.11 or newer", id="no-python"),
    ],
)
def test_python_that_will_not_do_is_refused(python: str | None, complaint: str, tree: Path) -> None:
    if python is not None:
        script(tree / "python", python)
    outcome = call(tree, "make", "install", "PYTHON=./python")
    assert outcome.returncode != 0
    assert complaint in outcome.stderr
    assert not (tree / ".venv").exists()


@pytest.mark.parametrize(
    ("status", "passes"), [(0, True), (3, True), (1, False), (2, False), (139, False)]
)
def test_run_takes_waiting_for_a_person_as_success(
    status: int, passes: bool, installed: Path
) -> None:
    script(installed / ".venv/bin/tallybook", f'echo "called with $*"; exit {status}')
    outcome = call(installed, "make", "run", "RUN_ARGS=--source a/b")
    assert outcome.stdout.startswith("called with run --source a/b\n")
    assert (outcome.returncode == 0) is passes
    assert passes or f"Error {status}" in outcome.stderr


def test_changed_pins_are_installed_again_and_broken_ones_are_told(installed: Path) -> None:
    script(
        installed / ".venv/bin/python",
        'echo "$*" >> calls; case "$*" in *" check") echo "a 1 needs b"; exit 1;; esac',
    )
    assert call(installed, "make", "install").returncode == 0
    assert not (installed / "calls").exists()
    later = (installed / ".venv/.installed-runtime").stat().st_mtime + 10
    os.utime(installed / "requirements.txt", (later, later))
    outcome = call(installed, "make", "install")
    assert outcome.returncode != 0
    assert "a 1 needs b" in outcome.stderr
    calls = (installed / "calls").read_text().splitlines()
    assert "--no-deps --require-hashes --only-binary :all: -r requirements.txt" in calls[0]
    assert "--no-deps --no-build-isolation -e ." in calls[1]


PAGES = {
    "transitions": "resources.ledger.transitions",
    "capabilities": "resources.providers.capabilities",
}


def test_docs_writes_every_page_that_is_made_from_code(installed: Path) -> None:
    (installed / "docs").mkdir()
    script(installed / ".venv/bin/python", 'echo "$*" >> calls; echo "printed by $2"')
    assert call(installed, "make", "docs").returncode == 0
    pages = {path.name: path.read_text() for path in (installed / "docs").iterdir()}
    assert pages == {f"{name}.md": f"printed by {module}\n" for name, module in PAGES.items()}
    assert (installed / "calls").read_text().splitlines() == [f"-m {m}" for m in PAGES.values()]


@pytest.mark.parametrize("failing", PAGES)
def test_a_page_that_cannot_be_made_keeps_its_old_text(failing: str, installed: Path) -> None:
    (installed / "docs").mkdir()
    for name in PAGES:
        (installed / "docs" / f"{name}.md").write_text("old\n")
    script(
        installed / ".venv/bin/python",
        f"echo half; [ $2 != {PAGES[failing]} ] || exit 1",
    )
    assert call(installed, "make", "docs").returncode != 0
    assert (installed / "docs" / f"{failing}.md").read_text() == "old\n"


@pytest.mark.parametrize("upgrade", [False, True])
def test_lock_needs_no_installation_that_fits_the_old_pins(upgrade: bool, installed: Path) -> None:
    """New lines in pyproject.toml have no pin yet, so installing them first could only fail."""
    for name in (".installed-runtime", ".installed-dev"):
        (installed / ".venv" / name).unlink()
    script(installed / ".venv/bin/python", "echo called >> calls; exit 1")
    script(installed / ".venv/bin/uv", "exit 0")
    script(installed / "scripts/lock.sh", 'echo "$UV $*"')
    outcome = call(installed, "make", "lock", *(["UPGRADE=1"] if upgrade else []))
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.split() == [
        str(installed / ".venv/bin/uv"),
        *(["--upgrade"] if upgrade else []),
    ]
    assert not (installed / "calls").exists()


def test_lock_installs_what_it_needs_where_that_is_missing(installed: Path) -> None:
    script(installed / ".venv/bin/python", "exit 0")
    script(installed / "scripts/lock.sh", "echo locked")
    older = (installed / "requirements-dev.txt").stat().st_mtime - 10
    os.utime(installed / ".venv/.installed-dev", (older, older))
    outcome = call(installed, "make", "lock")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.endswith("locked\n")
    assert (installed / ".venv/.installed-dev").stat().st_mtime > older, "was installed anew"


def test_state_is_deleted_only_when_confirmed(tree: Path) -> None:
    state = tree / "data" / "state"
    state.mkdir(parents=True)
    refused = call(tree, "make", "clean-state")
    assert refused.returncode != 0
    assert "CONFIRM=yes" in refused.stderr
    assert state.is_dir()
    assert call(tree, "make", "clean-state", "CONFIRM=yes").returncode == 0
    assert not state.exists()


@pytest.mark.parametrize(
    ("failing", "status", "closing"),
    [
        pytest.param("none", 0, ["= 5 passed in 0.10s =", "= 2 passed in 0.10s ="], id="all-pass"),
        pytest.param("test", 1, ["= 5 passed in 0.10s ="], id="fast-tests-fail"),
        pytest.param("run", 1, ["= 5 passed in 0.10s ="], id="run-fails"),
        pytest.param("test-slow", 1, ["= 5 passed in 0.10s =", "= 2 passed in 0.10s ="], id="slow"),
    ],
)
def test_ci_runs_all_and_ends_with_what_pytest_said(
    failing: str, status: int, closing: list[str], tmp_path: Path, repository: Path
) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(repository / ".ci" / "run", tmp_path / ".ci" / "run")
    script(
        tmp_path / "bin" / "make",
        'echo "$1 CI=$CI" >> made\n'
        "case $1 in test) echo '= 5 passed in 0.10s =';;\n"
        "test-slow) echo '= 2 passed in 0.10s =';; esac\n"
        f"[ $1 != {failing} ] || exit 1",
    )
    script(tmp_path / "bin" / "chromium", "exit 0")
    outcome = call(tmp_path, ".ci/run", path=tmp_path / "bin")
    assert outcome.returncode == status
    assert outcome.stdout.splitlines()[-len(closing) :] == closing
    targets = [line.split()[0] for line in (tmp_path / "made").read_text().splitlines()]
    wanted = ["test", "run", "test-slow"]
    assert targets == (wanted if failing == "none" else wanted[: wanted.index(failing) + 1])
    assert "CI=true" in (tmp_path / "made").read_text()
