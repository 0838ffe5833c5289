"""A step of a pilot in a process of its own, so that its time and memory are its own.

Belongs here: starting the process, its answer, and its end. Does not belong here: what a step does
(`steps.py`).

The process is started fresh, never forked: a fork would take over open databases, and the memory
of the process that started it. It ends when that process ends, however it ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any

from pipeline_assets.pilot.errors import StepDied, StepFailed
from pipeline_assets.pilot.steps import (
    PARSE,
    PROCESS,
    PUBLISH,
    SCAN,
    Standing,
    Work,
    parse_step,
    process_step,
    publish_step,
    scan_step,
)
from resources.context import Context, make_private, open_context
from resources.settings import Settings

STEPS: dict[str, Callable[[Context, Work, str], Standing | None]] = {
    SCAN: lambda context, work, _key: scan_step(context, work),
    PARSE: parse_step,
    PROCESS: process_step,
    PUBLISH: publish_step,
}
_LEFT_ALONE = 1


class StepBroke(RuntimeError):
    """A step met a mistake in the code; its traceback is a note of this error."""


def run_step(settings: Settings, work: Work, step: str, key: str) -> Standing | None:
    """Run one step in a process of its own and wait for it.

    Args:
        settings: of the pilot.
        work: what it is about.
        step: a name of `steps.py`.
        key: the version; of no meaning to `scan`.

    Returns:
        Where the version stands; None of other steps than `process`.

    Raises:
        StepFailed: it ended in an error that is written for people.
        StepDied: its process ended without an answer.
        StepBroke: it met a mistake in the code.
    """
    fresh = multiprocessing.get_context("spawn")
    ours, theirs = fresh.Pipe(duplex=False)
    process = fresh.Process(
        target=_in_process, args=(theirs, settings, work, step, key), name=f"pilot-{step}"
    )
    with _no_interrupt():
        process.start()
    theirs.close()
    try:
        kind, *told = ours.recv()
    except EOFError:
        process.join()
        raise StepDied(_named(step, key), process.exitcode) from None
    finally:
        ours.close()
        _end(process)
    if kind == "done":
        return told[0]
    if kind == "failed":
        raise StepFailed(_named(step, key), told[0])
    error = StepBroke(f"the step {_named(step, key)} met {told[0]}")
    error.add_note(told[1])
    raise error


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """What is started in here is not interrupted before it says that it may be.

    A process that is interrupted while it loads its modules ends in a traceback on the terminal.
    """
    # Started with the first process otherwise, it lets interrupts through again.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _named(step: str, key: str) -> str:
    return step if step == SCAN else f"{step} {key}"


def _end(process: Any) -> None:
    process.join(5)
    if process.is_alive():
        # Whatever it was at is resumable: it is only alive here if this process is being ended.
        process.terminate()
        process.join()
    process.close()


def _in_process(answer: Connection, settings: Settings, work: Work, step: str, key: str) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        with open_context(settings) as context:
            answer.send(("done", STEPS[step](context, work, key)))
    except KeyboardInterrupt:
        return
    except Exception as error:  # noqa: BLE001 - the last resort of a process: all is told
        answer.send(_told(settings, error))


def _told(settings: Settings, error: Exception) -> tuple[str, ...]:
    from pipeline_assets.expected_errors import EXPECTED_ERRORS

    if isinstance(error, (*EXPECTED_ERRORS, OSError)):
        return ("failed", str(error))
    # Names and places only: the messages of foreign libraries may quote a document.
    places = "".join(traceback.format_tb(error.__traceback__))
    logs = make_private(settings.state_folder / "logs")
    file = logs / f"step-{os.getpid()}.log"
    file.write_text(f"{type(error).__name__}\n{places}", encoding="utf-8")
    return ("broke", f"{type(error).__name__}; where it happened is in {file}", places)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(_LEFT_ALONE)
