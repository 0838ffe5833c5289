"""What a live proof refuses, told to people.

Belongs here: the errors alone, so that whoever tells them imports no stage.
"""

from __future__ import annotations

from pathlib import Path


class ProofDamaged(Exception):
    """A file of a proof's folder does not hold what was written to it."""

    def __init__(self, file: Path) -> None:
        super().__init__(
            f"{file} cannot be read as it was written. Remove the folder {file.parent.name} of the "
            "proofs, if nothing in it is wanted any more, and start again."
        )


class ProofStuck(Exception):
    """Nothing of a proof goes on by itself any more."""

    def __init__(self, folder: Path, key: str, why: str) -> None:
        super().__init__(
            f"the proof {folder.name} does not go on: {why}. Look at it with `tallybook status "
            f"--state {folder} --version {key}`; once the cause is gone, the same "
            "command goes on with it."
        )


class ProofNotConfirmed(Exception):
    """Nobody said that a provider outside this machine may be asked and paid."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"nothing was sent: the provider at {place} would be asked, and paid. Say with --yes "
            "that it is meant."
        )
