"""Commands on one state folder, as a person types them.

Belongs here: running one and keeping what it printed. Does not belong here: what a certain command
says (its own test file).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline_assets.cli.app import main


class StateTerminal:
    """Runs commands on one state folder and keeps what they print."""

    def __init__(self, state: Path, captured: pytest.CaptureFixture[str]) -> None:
        self._state = state
        self._captured = captured
        self.told = ""

    def run(self, *words: str, status: int = 0) -> str:
        """Run a command; return its output, and keep what it said of errors in `told`."""
        found = main([*words, "--state", str(self._state)])
        printed = self._captured.readouterr()
        self.told = printed.err
        assert found == status, printed.out + printed.err
        return printed.out
