"""Typing what a page of the documentation tells to type, in a place that is made for it.

Belongs here: a copy of the project, a shell that runs a page's commands in their order, and what
each of them came to. Does not belong here: what places there are (`places.py`).
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.documentation.blocks import Command

REPOSITORY = Path(__file__).resolve().parents[2]
COPIED = (
    *("Makefile", "README.md", "pyproject.toml", "sources.yaml", "dagster.yaml", "workspace.yaml"),
    *("partitions", "resources", "pipeline_assets", "scripts", "deploy", "docs"),
    *("requirements.txt", "requirements-dev.txt"),
)
PROGRAMS = {
    "tallybook": "-m pipeline_assets.cli.app",
    "python": "",
    "dagster": "-m dagster",
    "pick": "-m tests.documentation.programs.pick",
    "serve": "-m tests.documentation.programs.serve",
    "at-terminal": "-m tests.documentation.programs.at_terminal",
}
"""What a shell of the place finds first, and how this interpreter runs it."""
STAND_INS = {
    "curl": "-m tests.documentation.programs.curl",
    "psql": "-m tests.documentation.programs.psql",
}
"""The same where the machine has no such program."""
PAGE_SECONDS = 900
END_SECONDS = 20.0
SERVED = "served.txt"
_MARK = "@@tallybook-documentation@@"


@dataclass(frozen=True)
class Service:
    """A command that goes on until somebody ends it.

    Attributes:
        begins: how its text begins.
        port: the one that it listens at, if nobody names another.
        option: what names another, such as `PORT=`.
    """

    begins: str
    port: int
    option: str


@dataclass(frozen=True)
class Manners:
    """What a reader does besides typing.

    Attributes:
        services: commands that are started, and ended when the page is over.
        keys: beginning of a command that asks at the terminal → the keys that answer.
    """

    services: tuple[Service, ...] = ()
    keys: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Typed:
    """A command that was typed, and what came of it."""

    command: Command
    text: str
    status: int
    output: str


def copy_project(folder: Path) -> Path:
    """The project as a clone has it, with the tests' virtual environment and no state."""
    folder.mkdir(parents=True)
    for name in COPIED:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, folder / name)
    (folder / "data").mkdir()
    for path in (REPOSITORY / "data").iterdir():
        if path.name != "state":
            (shutil.copytree if path.is_dir() else shutil.copy2)(path, folder / "data" / path.name)
    (folder / "tests").symlink_to(REPOSITORY / "tests")
    binaries = folder / ".venv" / "bin"
    binaries.mkdir(parents=True)
    missing = {name: module for name, module in STAND_INS.items() if shutil.which(name) is None}
    for name, module in (PROGRAMS | missing).items():
        _write_program(binaries / name, folder, module)
    for stamp in ("pyvenv.cfg", ".installed-runtime", ".installed-dev"):
        # Behind everything that they are made from: make then has nothing to install.
        (folder / ".venv" / stamp).touch()
    return folder


def _write_program(path: Path, folder: Path, module: str) -> None:
    path.write_text(
        f'#!/bin/sh\nexport PYTHONPATH="{folder}" PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1\n'
        f'exec "{sys.executable}" {module} "$@"\n'
    )
    path.chmod(0o755)


def type_commands(
    page: list[Command],
    folder: Path,
    variables: Mapping[str, str],
    words: Mapping[str, str],
    manners: Manners,
) -> list[Typed]:
    """Type commands one after the other into one shell.

    Args:
        page: the commands.
        folder: a copy of the project, where the shell stands.
        variables: of the environment; the settings and keys of whoever runs this are left out.
        words: what a reader would put in the place of a word, such as DOCUMENT; text of a shell.
        manners: which commands serve, and which ask.

    Raises:
        subprocess.TimeoutExpired: the page took longer than `PAGE_SECONDS`.
    """
    ports = {str(service.port): str(_free_port()) for service in manners.services}
    texts = [_put_in(_as_done(command.text, manners), {**words, **ports}) for command in page]
    script = folder / "typed.sh"
    lines = ["IFS=$'\\n'"]  # so that a word may stand for a name with spaces
    for number, text in enumerate(texts):
        lines.append(f"{text}\nprintf '\\n{_MARK} {number} %d\\n' $?")
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    try:
        output = _run(["bash", str(script)], folder, _environment(folder) | dict(variables))
    finally:
        _end_services(folder / SERVED)
    pieces = re.split(rf"\n{_MARK} (\d+) (\d+)\n", output)
    outputs, numbers, statuses = pieces[0::3], pieces[1::3], pieces[2::3]
    assert [int(number) for number in numbers] == list(range(len(page))), output[-2_000:]
    return [
        Typed(command, text, int(status), output.strip())
        for command, text, status, output in zip(page, texts, statuses, outputs, strict=False)
    ]


def _run(words: list[str], folder: Path, environment: dict[str, str]) -> str:
    with subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # so that what a command started can be ended with it
    ) as shell:
        try:
            output, _ = shell.communicate(timeout=PAGE_SECONDS)
        except subprocess.TimeoutExpired as late:
            os.killpg(shell.pid, signal.SIGKILL)
            said = late.stdout.decode(errors="replace") if isinstance(late.stdout, bytes) else ""
            raise AssertionError(f"not in {PAGE_SECONDS} s:\n{said[-2_000:]}") from late
    return output


def _as_done(text: str, manners: Manners) -> str:
    plain = text.removeprefix(".venv/bin/")
    for service in manners.services:
        if plain.startswith(service.begins):
            more = "" if str(service.port) in text else f" {service.option}{service.port}"
            text = text.replace(service.begins, service.begins + more, 1)
            return f"serve {service.port} {SERVED} {shlex.quote(text)}"
    for begins, keys in (manners.keys or {}).items():
        if plain.startswith(begins):
            return f"at-terminal {shlex.quote(keys)} {text}"
    return text


def _end_services(listed: Path) -> None:
    """End what `serve` started, as Ctrl-C does, and what is left of it by force."""
    if not listed.exists():
        return
    groups = [int(line) for line in listed.read_text(encoding="utf-8").split()]
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGINT)
    deadline = time.monotonic() + END_SECONDS
    while time.monotonic() < deadline and any(_is_there(group) for group in groups):
        time.sleep(0.1)
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def _is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _environment(folder: Path) -> dict[str, str]:
    private = ("TALLYBOOK_", "DAGSTER_", "OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_", "AWS_")
    # Of a make that runs the tests: a make that is typed here is none of its children.
    private += ("MAKE", "MFLAGS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(private)}
    return kept | {
        "PATH": f"{folder / '.venv' / 'bin'}:{kept['PATH']}",
        "HOME": str(folder),
        "COLUMNS": "100",
    }


def _put_in(text: str, words: Mapping[str, str]) -> str:
    if not words:
        return text
    longest_first = sorted(words, key=len, reverse=True)
    pattern = "|".join(re.escape(word) for word in longest_first)
    return re.sub(rf"(?<![\w/-])(?:{pattern})(?![\w-])", lambda found: words[found[0]], text)
