"""Where a live proof happens: a state folder of its own inside the state.

Belongs here: finding or beginning it, its settings, and its marks (what was forced, the verdict).
Does not belong here: the work (`live.py`) and the verdict (`prove.py`).

A proof is gone on with until it has a verdict; then the same command begins another one. Nothing
of it is ever seen in the archive of the state that it lies in.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from pipeline_assets.canary.proof_errors import ProofDamaged
from resources.context import make_private
from resources.settings import Settings

PROOFS = "proofs"
SOURCE = "canary"
"""What the ids of its documents start with."""
_DOCUMENTS, _FORCED, _VERDICT = "documents", "forced.json", "verdict.json"


@dataclass(frozen=True)
class ProofPlace:
    """The folder of one proof, `<state>/proofs/<version>-<number>`."""

    folder: Path
    key: str

    @property
    def name(self) -> str:
        """How people call it."""
        return self.folder.name

    @property
    def documents(self) -> Path:
        """The folder of its documents; there once it was agreed that they are sent."""
        return self.folder / _DOCUMENTS

    @property
    def begun(self) -> bool:
        """Were its documents written, so that going on needs nobody's word?"""
        return self.documents.is_dir()

    def settings(self, outer: Settings, workload: str) -> Settings:
        """The settings of the proof: the outer ones with a ledger, files and a source of its own.

        No catalogue of products is asked: the documents are made up, and so are their products.
        """
        defaults = type(outer).model_fields
        return outer.model_copy(
            update={
                "home": self.folder,
                "state": self.folder,
                "ledger_url": None,
                "source": self.documents,
                "source_name": SOURCE,
                "source_workload": workload,
                "workloads": outer.workload_folder,
                "specs": None if outer.specs is None else outer.place(outer.specs),
                "catalogue": defaults["catalogue"].default,
                "catalogue_url": None,
                "version": self.key,
            }
        )

    def write_documents(self, texts: dict[str, str]) -> None:
        """Put the documents there, all or none."""
        part = self.folder / f"{_DOCUMENTS}.part"
        part.mkdir(mode=0o700, exist_ok=True)
        for name, text in texts.items():
            # Line ends as they are: some documents are about them.
            (part / name).write_bytes(text.encode())
        part.rename(self.documents)

    def forced(self) -> list[str]:
        """Names of the failures that were forced so far."""
        return self._read(_FORCED) or []

    def note_forced(self, name: str) -> None:
        """Remember that a failure was forced, so that it is not forced again."""
        self._write(_FORCED, [*self.forced(), name])

    def verdict(self) -> dict[str, Any] | None:
        """What the proof came to; None while it goes on."""
        return self._read(_VERDICT)

    def note_verdict(self, verdict: dict[str, Any]) -> None:
        """Remember what it came to; it is over then."""
        self._write(_VERDICT, verdict)

    def _read(self, name: str) -> Any:
        file = self.folder / name
        try:
            return msgspec.json.decode(file.read_bytes())
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            raise ProofDamaged(file) from error

    def _write(self, name: str, value: Any) -> None:
        file = self.folder / name
        part = file.with_suffix(".part")
        part.write_bytes(msgspec.json.encode(value))
        part.chmod(0o600)
        with part.open("rb") as stream:
            os.fsync(stream.fileno())
        part.rename(file)


def proof_place(settings: Settings, key: str) -> ProofPlace:
    """The proof of a version that has no verdict yet, else a new one.

    Raises:
        ProofDamaged: a file of the newest one cannot be read.
    """
    folder = make_private(make_private(settings.state_folder) / PROOFS)
    numbers = [
        int(number)
        for found in folder.iterdir()
        if (number := found.name.removeprefix(f"{key}-")) != found.name and number.isdigit()
    ]
    newest = max(numbers, default=0)
    if newest:
        place = ProofPlace(folder / f"{key}-{newest}", key)
        if place.verdict() is None:
            return place
    return ProofPlace(make_private(folder / f"{key}-{newest + 1}"), key)
