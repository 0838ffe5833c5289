"""A made-up second workload: its fields and contents, for tests of what readers show of it.

It has no prompt and no rules; nothing is extracted under it. Where whole workloads are meant, see
the tests of the packaged ones.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline_assets.workloads import registry
from pipeline_assets.workloads.workload import PublishedField

NOTES = "made_up_notes"
FIELDS = (
    PublishedField("subject", "Subject", search="title"),
    PublishedField("kind", "Kind of note"),
    PublishedField("people", "People", many=True),
    PublishedField("tongue", "Tongue", search="language"),
)


class Installed:
    """Whether the workload can be found; tests take it away."""

    def __init__(self) -> None:
        self.there = True

    def load(self, name: str, folder: Path | None = None) -> Any:
        if name != NOTES:
            return registry.load_workload(name, folder)
        if not self.there:
            raise registry.UnknownWorkload(name)
        return SimpleNamespace(name=NOTES, fields=FIELDS)


def install(monkeypatch: pytest.MonkeyPatch) -> Installed:
    """Let readers find the workload."""
    installed = Installed()
    monkeypatch.setattr("pipeline_assets.workloads.fields.load_workload", installed.load)
    return installed


def note(subject: str | None, kind: str = "memo", people: tuple[str, ...] = ()) -> dict[str, Any]:
    """Content of the workload, as it would be published."""

    def one(value: str | None) -> dict[str, Any]:
        status = "absent" if value is None else "found"
        return {"value": value, "status": status, "evidence": []}

    return {
        "subject": one(subject),
        "kind": one(kind),
        "people": [one(person) for person in people],
        "tongue": one("de"),
    }
