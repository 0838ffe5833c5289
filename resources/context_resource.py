"""The Dagster resource that gives an asset the open context of the state folder.

Belongs here: opening the context inside a run, telling an expected error in one line, and writing
on the run which process works on it. Does not belong here: what the context holds
(`resources/context.py`) and any work.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import dagster as dg

from resources.clock import Clock, system_clock
from resources.context import Context, Progress, SilentProgress, open_context
from resources.processes import ProcessIdentity, this_process
from resources.settings import Settings, require_supported_platform

PID_TAG = "tallybook/pid"
HOST_TAG = "tallybook/host"
START_TAG = "tallybook/process_start"


@dataclass(frozen=True)
class ContextOpening:
    """How contexts are opened: everything that a run's configuration does not say.

    Attributes:
        settings: where things are; they may hold a database password, so they stay out of the
            resource's configuration, which Dagster shows.
        expected: errors whose message is meant for people; they fail a step in one line.
        progress: where long work tells how far it is.
        clock: the time.
    """

    settings: Settings
    expected: tuple[type[Exception], ...]
    progress: Progress = field(default_factory=SilentProgress)
    clock: Clock = system_clock


class ContextResource(dg.ConfigurableResource):
    """Opens the ledger and the artifacts of the state folder for one step."""

    opening: dg.ResourceDependency[ContextOpening]

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Write on the run which process works on it, so that a leftover can be told."""
        # Also for runs that the user interface launches: Dagster itself records no process.
        if context.run is not None and context.instance is not None:
            tags = process_tags(this_process())
            if any(context.run.tags.get(name) != value for name, value in tags.items()):
                context.instance.add_run_tags(context.run.run_id, tags)

    @contextmanager
    def open(self) -> Iterator[Context]:
        """The open context for the length of a block.

        Raises:
            dagster.Failure: an expected error, its message as the description, itself as the cause.
        """
        opening = self.opening
        try:
            require_supported_platform()
            with open_context(
                opening.settings, clock=opening.clock, progress=opening.progress
            ) as context:
                yield context
        except opening.expected as error:
            # The same run again cannot help before somebody did what the message says.
            raise dg.Failure(description=str(error), allow_retries=False) from error


def process_tags(process: ProcessIdentity) -> dict[str, str]:
    """The run tags that name a process."""
    return {PID_TAG: str(process.pid), HOST_TAG: process.host, START_TAG: process.started}


def tagged_process(tags: dict[str, str]) -> ProcessIdentity | None:
    """The process that a run's tags name; None if they name none."""
    pid, host = tags.get(PID_TAG, ""), tags.get(HOST_TAG)
    if not pid.isdecimal() or host is None:
        return None
    return ProcessIdentity(int(pid), host, tags.get(START_TAG, ""))
