"""`tallybook review`: its commands, and working through the queue with single keys."""

from __future__ import annotations

import io
import json
import os
import pty
import random
import select
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, RenderableType

from pipeline_assets.cli.app import main
from pipeline_assets.cli.review_next import KEYS, Session
from resources.context import open_context
from resources.ledger.review_queue import Wanted
from resources.settings import Settings
from tests.support.clock import FrozenClock
from tests.support.command import COMMAND, environment
from tests.support.small_archive import KEY, SAW, Archive, fill_folder, manual


@pytest.fixture(scope="session")
def reviewed_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a state folder with two published documents and three in review; it stays so."""
    folder = tmp_path_factory.mktemp("reviews")
    settings = Settings(state=folder / "state", source=folder / "documents")
    with open_context(settings, clock=FrozenClock(), rng=random.Random(7)) as context:
        archive = Archive(folder / "documents", settings, context, FrozenClock())
        fill_folder(archive)
        for number in (1, 2):
            text = manual("Band Saw", f"BS-{number}0", other=f"BS-{number}1")
            archive.write(f"saw-{number}.txt", text)
        archive.process()
    return folder / "state"


@pytest.fixture
def state(reviewed_state: Path, tmp_path: Path) -> Path:
    """Return a copy of it that a test may change."""
    shutil.copytree(reviewed_state, tmp_path / "state")
    return tmp_path / "state"


class Shell:
    """Runs `review` commands on one state folder."""

    def __init__(self, state: Path, captured: pytest.CaptureFixture[str]) -> None:
        self.state = state
        self._captured = captured
        self.told = ""

    def run(self, *words: str, status: int = 0) -> str:
        """Run a command; return its output, and keep what it said of errors in `told`."""
        found = main(["review", *words, "--state", str(self.state)])
        printed = self._captured.readouterr()
        self.told = printed.err
        assert found == status, printed.out + printed.err
        return printed.out

    def rows(self, *words: str, status: int = 0) -> list[dict[str, Any]]:
        """Run a command with --json; return the objects."""
        return [json.loads(line) for line in self.run(*words, "--json", status=status).splitlines()]


@pytest.fixture
def shell(state: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Return a shell at the state folder."""
    return Shell(state, capsys)


def test_the_list_says_what_waits_and_why(shell: Shell) -> None:
    shown = shell.run("list")
    assert "3 reviews waiting" in shown
    for part in (f"manuals/{SAW}", "uncertain_field", "product_identifiers", "review next"):
        assert part in shown
    rows = shell.rows("list", "--limit", "2")
    assert len(rows) == 2
    assert "uncertain_field" in rows[0]["rules"]
    assert "record_no" not in rows[0]
    assert shell.run("list", "--rule", "title_present") == (
        "Nothing that was asked for waits for a reviewer.\n"
    )
    assert "1 more review not shown" in shell.run("list", "--limit", "2")
    assert shown.count(f"--state {shell.state}") == 2, "what is to be typed works as it is"


def test_one_review_in_full(shell: Shell) -> None:
    shown = shell.run("show", SAW, "--by", "Ada")
    for part in (
        f"manuals/{SAW}",
        "the answer calls this field uncertain",
        "Chain Saw KS-7",
        "page 1 of 1",
        "page image",
        "@0 --reason TEXT",
    ):
        assert part in shown
    (row,) = shell.rows("show", SAW, "--page", "1", "--by", "Ada")
    assert row["page"]["text"].startswith("Chain Saw KS-7")
    quote = row["values"][0]["evidence"][0]
    assert row["page"]["text"][quote["start"] : quote["end"]] == quote["words"]
    assert shell.rows("show", str(row["review_no"]), "--by", "Ada")[0]["page"] is None


def test_accepting_what_was_seen(shell: Shell) -> None:
    first, second, third = (row["review_no"] for row in shell.rows("list"))
    shown = shell.run("accept", f"{first}@0", str(second), "--reason", "read", "--by", "Ada")
    assert "2 reviews accepted: manuals/" in shown
    assert "2 documents are published by the next run" in shown
    assert f"--state {shell.state}" in shown
    assert [row["review_no"] for row in shell.rows("list")] == [third]
    assert shell.run("accept", f"{first}@0", "--reason", "again", "--by", "Bob", status=1) == ""
    assert f"review {first} was decided already: accepted by Ada" in shell.told
    history = shell.run("show", str(first), "--by", "Ada")
    assert "accept by Ada: read" in history


def test_correcting_field_by_field(shell: Shell) -> None:
    number = str(shell.rows("show", SAW, "--by", "Ada")[0]["review_no"])
    assert shell.rows(
        "correct",
        number,
        "--set",
        "product_identifiers=KS-7,KS-9",
        "--set",
        "description=",
        "--evidence",
        "product_identifiers=1:The KS-9 is a chain saw",
        "--reason",
        "both are printed",
        "--by",
        "Ada",
    ) == [{"corrected": 1, "documents": [f"manuals/{SAW}"], "hidden": 0}]
    (row,) = shell.rows("show", number, "--by", "Ada")
    assert [(v["field"], v["value"]) for v in row["corrected"]][1:3] == [
        ("product_identifiers", "KS-7"),
        ("product_identifiers", "KS-9"),
    ]
    assert row["corrected"][-1]["status"] == "absent"
    assert "corrected to" in shell.run("show", number, "--by", "Ada")


def test_a_selection_is_shown_first_and_decided_only_as_shown(shell: Shell) -> None:
    words = ("reject", "--where-rule", "uncertain_field", "--version", KEY)
    words = (*words, "--reason", "a bad batch", "--by", "Ada")
    shown = shell.run(*words, status=3)
    assert "3 reviews to reject, selection" in shown
    assert "Nothing was changed" in shown
    (asked,) = shell.rows(*words, status=3)
    assert (asked["reviews"], asked["confirmed"]) == (3, False)
    assert asked["rules"]["uncertain_field"] == 3
    assert asked["selected"] == [f"{row['review_no']}@0" for row in shell.rows("list")]
    assert "uncertain_field 3" in shown
    assert asked["selection"] in shown
    first = shell.rows("list")[0]["review_no"]
    shell.run("assign", str(first), "--to", "Bob", "--by", "Ada")
    assert shell.run(*words, "--confirm", asked["selection"], status=1) == ""
    assert "the selection changed since it was looked at" in shell.told
    assert len(shell.rows("list")) == 3
    (again,) = shell.rows(*words, status=3)
    assert shell.run(*words, "--confirm", again["selection"]).startswith("3 reviews rejected: ")
    assert shell.rows("list") == []


def test_assigning(shell: Shell) -> None:
    first = shell.rows("list")[0]["review_no"]
    assert shell.run("assign", str(first), "--to", "Bob", "--by", "Ada").startswith(
        "1 review assigned: "
    )
    assert [row["review_no"] for row in shell.rows("list", "--assigned", "Bob")] == [first]
    assert len(shell.rows("list", "--unassigned")) == 2
    (asked,) = shell.rows("assign", "--where-kind", "findings", "--to", "Cy", status=3)
    confirm = ("--confirm", asked["selection"])
    shell.run("assign", "--where-kind", "findings", "--to", "Cy", "--by", "Ada", *confirm)
    assert len(shell.rows("list", "--assigned", "Cy")) == 3


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        pytest.param(["accept", "1"], 2, "Missing option '--reason'", id="no-reason"),
        pytest.param(["accept", "1", "--reason", " "], 1, "found an empty reason", id="blank"),
        pytest.param(
            ["accept", "--reason", "x"], 1, "neither review numbers nor", id="no-selection"
        ),
        pytest.param(
            ["accept", "--reason", "x", "--version", KEY],
            1,
            "neither review numbers nor",
            id="a-whole-version",
        ),
        pytest.param(
            ["reject", "1", "--where-rule", "x", "--reason", "x"],
            1,
            "both review numbers and conditions",
            id="two-selections",
        ),
        pytest.param(["accept", "99", "--reason", "x"], 1, "there is no review 99", id="unknown"),
        pytest.param(["accept", "one", "--reason", "x"], 1, "NUMBER@REVISION", id="no-number"),
        pytest.param(
            ["accept", "1", "--reason", "x", "--by", " "], 1, "name of 0 characters", id="nobody"
        ),
        pytest.param(["show", "9" * 30], 1, "NUMBER@REVISION", id="no-such-number"),
        pytest.param(["show", "nothing.pdf"], 1, "there is no document", id="no-document"),
        pytest.param(["show", "pump-wp-100.txt"], 1, "never sent to review", id="no-review"),
        pytest.param(
            ["correct", "1", "--set", "language=xx1", "--reason", "x"],
            1,
            "correction of language is refused",
            id="impossible-language",
        ),
        pytest.param(
            ["correct", "1", "--set", "title", "--reason", "x"], 1, "FIELD=VALUE", id="no-value"
        ),
        pytest.param(
            ["reject", "--where-rule", "nothing", "--reason", "x"],
            1,
            "no review that waits fits",
            id="empty-selection",
        ),
        pytest.param(["list", "--version", "other-1"], 1, "nothing was processed", id="version"),
        pytest.param(["list", "--kind", "other"], 2, "'--kind'", id="kind"),
        pytest.param(["next"], 1, "needs a terminal", id="no-terminal"),
    ],
)
def test_what_is_refused_is_one_line(
    words: list[str], status: int, said: str, shell: Shell
) -> None:
    before = shell.rows("list")
    assert shell.run(*words, status=status) == ""
    assert said in shell.told
    assert shell.told.count("\n") == 1
    assert shell.rows("list") == before


class FakeTerminal:
    """A reviewer whose keys and typed lines are known beforehand."""

    def __init__(self, keys: str, typed: Sequence[str] = ()) -> None:
        self._keys: Iterator[str] = iter(keys)
        self._typed: Iterator[str] = iter(typed)
        self._console = Console(width=120, record=True, file=io.StringIO())
        self.said: list[str] = []
        self.screens = 0

    def key(self) -> str:
        return next(self._keys)

    def ask(self, question: str, default: str) -> str:
        self.said.append(f"{question} [{default}]")
        return next(self._typed) or default

    def clear(self) -> None:
        self.screens += 1

    def show(self, drawn: RenderableType) -> None:
        self._console.print(drawn)

    def say(self, line: str) -> None:
        self.said.append(line)

    @property
    def shown(self) -> str:
        return self._console.export_text(clear=False)


def _work(state: Path, terminal: FakeTerminal, who: str = "Ada") -> dict[str, int]:
    with open_context(Settings(state=state)) as context:
        session = Session(context, terminal, who)
        session.work(Wanted())
    return dict(session.done)


def test_one_after_the_other_with_single_keys(shell: Shell) -> None:
    terminal = FakeTerminal("nptoxa" + "r" + "r" + "s", ["1", "", " ", "not a manual"])
    assert _work(shell.state, terminal) == {"accepted": 1, "rejected": 1, "skipped": 1}
    assert any(line.startswith("found an empty reason for reject") for line in terminal.said)
    assert terminal.said[-1] == "Nothing more waits for you here."
    assert len(shell.rows("list")) == 1
    for part in ("the answer calls this field uncertain", "page 1 of 1", "Band Saw BS-10"):
        assert part in terminal.shown
    decided = [shell.rows("show", str(number), "--by", "x")[0] for number in (1, 2, 3)]
    assert sorted(str(row["decision"]) for row in decided) == ["None", "accept", "reject"]
    assert {row["taken_by"] for row in decided} == {"Ada"}


def test_correcting_with_questions(shell: Shell) -> None:
    # Title: too short at first, so the reviewer is asked again; the description goes.
    typed = ["x", "", "", "", "Band Saw", "BS-10, BS-11", "", "-", ""]
    terminal = FakeTerminal("ccq", typed)
    assert _work(shell.state, terminal) == {"corrected": 1}
    assert any("correction of title is refused" in line for line in terminal.said)
    assert (
        "Product identifiers (empty keeps it, - for none, several with ',' between)"
        in (terminal.said[2])
    )
    (row,) = [
        row
        for row in (shell.rows("show", str(number), "--by", "x")[0] for number in (1, 2, 3))
        if row["decision"]
    ]
    assert (row["decision"], row["reason"]) == ("correct", "corrected from the document")
    values = {(value["field"], value["value"]) for value in row["corrected"]}
    assert ("title", "Band Saw") in values
    assert ("description", None) in values


def test_a_colleague_who_was_quicker_is_named(shell: Shell) -> None:
    class Slow(FakeTerminal):
        def ask(self, question: str, default: str) -> str:
            number = shell.rows("list")[0]["review_no"]
            shell.run("accept", str(number), "--reason", "first", "--by", "Bob")
            return super().ask(question, default)

    terminal = Slow("r" + " " + "q", ["not a manual"])
    assert _work(shell.state, terminal) == {}
    assert any("decided already: accepted by Bob" in line for line in terminal.said)


def test_a_review_that_cannot_be_shown_stops_nobody(shell: Shell) -> None:
    for file in (shell.state / "artifacts" / "text").rglob("*"):
        if file.is_file():
            file.unlink()
    terminal = FakeTerminal("xxx")
    assert _work(shell.state, terminal) == {"not shown": 3}
    assert sum("is not in the store" in line for line in terminal.said) == 3
    assert terminal.said[-1] == "Nothing more waits for you here."
    assert _work(shell.state, FakeTerminal("q")) == {"not shown": 1}


@pytest.mark.slow
def test_a_real_terminal(state: Path) -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "review", "next", "--by", "Ada", "--state", str(state)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment(TERM="xterm", COLUMNS="120", LINES="50"),
        close_fds=True,
        start_new_session=True,
    )
    os.close(slave)
    seen = ""

    def until(words: str, keys: bytes = b"") -> None:
        """Read on until the words are shown; what is typed before a key is waited for is lost."""
        nonlocal seen
        limit = time.monotonic() + 60
        while words not in seen:
            assert time.monotonic() < limit, seen
            if keys:
                os.write(master, keys)
            if select.select([master], [], [], 0.5)[0]:
                seen += os.read(master, 65536).decode(errors="replace")
        seen = seen[seen.index(words) + len(words) :]

    try:
        until(f"q {KEYS['q']}")
        until("Reason", b"a")
        os.write(master, b"\n")
        until(f"q {KEYS['q']}")
        until("Ada: 1 accepted.", b"q")
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()
        process.wait()
        os.close(master)
