"""Forms of output."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
import typer

from pipeline_assets.cli import output
from pipeline_assets.cli.progress import LineProgress, shown_progress


def test_json_is_one_safe_line(capsys: pytest.CaptureFixture[str]) -> None:
    output.emit_json_lines([{"a": "Größe\n\u202e\x1b"}, {"a": None}])
    written = capsys.readouterr().out
    assert written == '{"a":"Größe\\n\\u202e\\u001b"}\n{"a":null}\n'
    assert json.loads(written.split("\n")[0]) == {"a": "Größe\n\u202e\x1b"}


def test_a_table_cuts_nothing_when_piped(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 120
    output.table("Of [bold]things[/bold]", ("name", "n"), [(long, 7), (None, 12), ("[red]", 1)])
    shown = capsys.readouterr().out
    assert long in shown
    assert "[red]" in shown
    assert "[bold]things[/bold]" in shown
    assert "\x1b" not in shown


def test_facts_leave_out_what_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    output.facts([("a", 1), ("long name", "x\x1b"), ("b", None), ("c", "")], 2)
    assert capsys.readouterr().out == "  a          1\n  long name  x\\u{1b}\n"


def test_times_are_local(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "Etc/GMT-5")
    time.tzset()
    try:
        assert output.local("2030-01-02T20:04:05.000000Z") == "2030-01-03 01:04:05"
        assert output.local(None) is None
    finally:
        monkeypatch.undo()
        time.tzset()


def test_commands_can_be_typed_where_the_reader_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "tallybook"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setenv("PATH", str(program.parent))
    assert output.command("explain", "a b.pdf") == "tallybook explain 'a b.pdf'"
    monkeypatch.setenv("PATH", os.devnull)
    assert output.command("run") == "bin/tallybook run"


def test_a_reader_that_left_ends_the_command_quietly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Closed:
        def write(self, text: str) -> int:
            raise BrokenPipeError

        def fileno(self) -> int:
            return target.fileno()

    with (tmp_path / "out").open("w") as target:
        monkeypatch.setattr(sys, "stdout", Closed())
        with pytest.raises(typer.Exit) as ended:
            output.say("anything")
    assert ended.value.exit_code == output.PIPE_CLOSED


def test_progress_elsewhere_is_a_line_a_piece(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress() as progress:
        assert isinstance(progress, LineProgress)
        for total in (3, 0):
            progress.start("parsing", total)
            progress.advance(total)
            progress.finish()
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.startswith("parsing: 3 in ")
    assert written.err.count("\n") == 1


def test_progress_on_a_terminal_is_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with shown_progress() as progress:
        progress.start("parsing", 2)
        progress.advance()
        progress.advance()
        progress.finish()
        progress.start("nothing", 0)
        progress.finish()
        progress.start("publishing", None)
        progress.advance(5)
        progress.finish()
    shown = terminal.getvalue()
    assert "2/2" in shown
    assert "5/5" in shown
    assert "nothing" not in shown
