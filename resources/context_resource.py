"""The Dagster resource that gives an asset the open context of the state folder.

Belongs here: opening the context inside a run, telling an expected error in one line, and writing
on the run which process works on it. Does not belong here: what the context holds
(`resources/context.py`) and any work.
"""

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import dagster as dg

from resources.clock import Clock
from resources.context import Context, Progress, SilentProgress, open_context
from resources.processes import ProcessIdentity, this_process
from resources.settings import Settings, require_supported_platform

PID_TAG = "tallybook/pid"
HOST_TAG = "tallybook/host"
START_TAG = "tallybook/process_start"
RUN_TAG = "tallybook/process_run"
"""The run that the other three were written for: a re-execution inherits the tags of its parent."""

NO_SPACE = (
    "no space is left on the disk. What was committed is intact: free some space and run the same "
    "command again."
)


class StepBroke(Exception):
    """A mistake in the code, without its message, which may quote a document.

    Dagster keeps what a step raises in the event log. The places in the code go with it; the
    exception itself is in `error` for whoever runs in the same process.
    """

    def __init__(self, error: Exception) -> None:
        self.error = error
        super().__init__(
            f"unexpected {type(error).__name__}, a mistake in the code. Its message is not kept, "
            "since it may quote a document: the same run on the command line writes where it "
            "happened into the state folder's logs."
        )


@dataclass(frozen=True)
class ContextOpening:
    """How contexts are opened: everything that a run's configuration does not say.

    Attributes:
        settings: where things are; they may hold a database password, so they stay out of the
            resource's configuration, which Dagster shows.
        expected: errors whose message is meant for people; they fail a step in one line.
        progress: where long work tells how far it is.
        clock: the time; the settings' own by default.
    """

    settings: Settings
    expected: tuple[type[Exception], ...]
    progress: Progress = field(default_factory=SilentProgress)
    clock: Clock | None = None


class ContextResource(dg.ConfigurableResource):
    """Opens the ledger and the artifacts of the state folder for one step."""

    opening: dg.ResourceDependency[ContextOpening]

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Write on the run which process works on it, so that a leftover can be told."""
        # Also for runs that the user interface launches: Dagster itself records no process.
        if context.run is not None and context.instance is not None:
            tags = process_tags(this_process(), context.run.run_id)
            if any(context.run.tags.get(name) != value for name, value in tags.items()):
                context.instance.add_run_tags(context.run.run_id, tags)

    @contextmanager
    def open(self) -> Iterator[Context]:
        """The open context for the length of a block.

        Raises:
            dagster.Failure: an expected error, its message as the description, itself as the cause.
            StepBroke: any other error.
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
        except Exception as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise dg.Failure(description=NO_SPACE, allow_retries=False) from error
            raise StepBroke(error).with_traceback(error.__traceback__) from None


def process_tags(process: ProcessIdentity, run_id: str) -> dict[str, str]:
    """The tags that say which process works on a run."""
    return {
        PID_TAG: str(process.pid),
        HOST_TAG: process.host,
        START_TAG: process.started,
        RUN_TAG: run_id,
    }


def tagged_process(tags: Mapping[str, str], run_id: str) -> ProcessIdentity | None:
    """The process that works on a run, by its tags; None if they do not say."""
    pid, host = tags.get(PID_TAG, ""), tags.get(HOST_TAG)
    if not pid.isdecimal() or host is None or tags.get(RUN_TAG) != run_id:
        return None
    return ProcessIdentity(int(pid), host, tags.get(START_TAG, ""))
