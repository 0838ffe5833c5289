"""What a pilot refuses, one exception for each situation.

Belongs here: their messages. Does not belong here: when they are raised.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class PilotError(Exception):
    """Base of everything that a pilot refuses; never raised itself."""


class NoVersions(PilotError):
    """No version was named, or one twice."""

    def __init__(self, given: Sequence[str]) -> None:
        named = ", ".join(given) or "none"
        super().__init__(
            f"found the versions {named}; expected one or more keys, each once, with commas "
            "between (tallybook versions lists them)."
        )


class OtherWorkloads(PilotError):
    """Versions were to be tried together that extract other things."""

    def __init__(self, workloads: dict[str, str]) -> None:
        found = ", ".join(f"{key} ({workload})" for key, workload in workloads.items())
        super().__init__(
            f"the versions are of several workloads: {found}. They have other documents and other "
            "fields: make a pilot for each workload."
        )


class NothingToSample(PilotError):
    """The sources of a workload hold no document that a version could be tried on."""

    def __init__(self, workload: str) -> None:
        super().__init__(
            f"the sources of workload {workload!r} hold no document to try a version on; documents "
            "that the scan leaves out, that were erased, or that still wait for approval are not "
            "taken. Look at them with: tallybook sources"
        )


class SampleTooSmall(PilotError):
    """There are more strata than documents were asked for."""

    def __init__(self, sample: int, strata: int) -> None:
        super().__init__(
            f"a sample of {sample} cannot have a document of each of {strata} strata; expected at "
            f"least {strata} (--sample {strata})."
        )


class UnknownPilot(PilotError):
    """No pilot has that id here."""

    def __init__(self, pilot_id: str, known: Sequence[str]) -> None:
        super().__init__(
            f"there is no pilot {pilot_id!r} in this state folder; there are: "
            f"{', '.join(known) or 'none'} (tallybook pilot list)."
        )


class PilotDamaged(PilotError):
    """The plan of a pilot cannot be read."""

    def __init__(self, file: Path, problem: str) -> None:
        super().__init__(
            f"the plan {file} cannot be used ({problem}), so the pilot cannot go on. Drop it and "
            "make it again: tallybook pilot drop "
            f"{file.parent.name} --reason TEXT"
        )


class JobsStillOut(PilotError):
    """A pilot has jobs at a provider, which would be forgotten with it."""

    def __init__(self, pilot_id: str, jobs: Sequence[str]) -> None:
        super().__init__(
            f"pilot {pilot_id} has {len(jobs)} open jobs at a provider ({', '.join(jobs[:5])}): "
            "they would go on, be paid, and nobody would know of them. Cancel them first "
            "(tallybook batch cancel, with the pilot's folder as --state), or drop it all the same "
            "with --force."
        )


class DropReasonMissing(PilotError):
    """A pilot was to be dropped without a reason."""

    def __init__(self) -> None:
        super().__init__("found an empty reason; say why the pilot is dropped (--reason TEXT).")


class StepFailed(PilotError):
    """A step of a pilot ended in an error that is written for people."""

    def __init__(self, step: str, message: str) -> None:
        self.message = message
        super().__init__(f"{step}: {message}")


class StepDied(PilotError):
    """The process of a step ended without a word."""

    def __init__(self, step: str, exit_code: int | None) -> None:
        super().__init__(
            f"the process of the step {step} ended early (exit status {exit_code}); expected an "
            "answer. What it had committed is kept: give the same command again. If it was ended "
            "for want of memory, set TALLYBOOK_PARSER_WORKERS lower."
        )


class TruthUnreadable(PilotError):
    """A file of known values cannot be used."""

    def __init__(self, file: Path, problem: str) -> None:
        super().__init__(
            f"the file of known values {file.name} cannot be used: {problem}. Expected JSON lines "
            "(.jsonl) or a table (.csv) with document_id and the fields of the workload."
        )
