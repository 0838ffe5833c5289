"""Answering a batch by online calls, group by group.

Belongs here: the event loop around the calls of a group, and the walk over a request file. Does
not belong here: which call comes next (`call_plan.py`), how many at once (`window.py`), a
provider's format and connection (`resources/providers`), and the ledger, which the caller brings
as a `GroupStore`.

A group is what is durable at once: it is marked before its first call and stored after its last.
What a crash can cost is the calls of one group.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, BinaryIO, Protocol

from pipeline_assets.online_calls.call_plan import CallPlan, CallPolicy
from pipeline_assets.online_calls.window import Window
from resources.batched import batched
from resources.providers.port import (
    FailureClass,
    OnlineClient,
    Reply,
    SourceLine,
    Wire,
    split_lines,
)

GROUP_ROWS = 50
"""Rows of a group. It bounds what a crash may cost, and each group costs two transactions."""
BEAT_SECONDS = 20.0
"""The longest wait between two beats: far below a third of a lease, when renewal is due."""

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True)
class GroupResult:
    """What came of the calls of a group.

    Attributes:
        lines: result lines (no newline) in request order, of the rows that are settled.
        calls: calls made.
        possibly_paid: calls that may have been run, and paid, though no answer came.
        stopped: why the group ended early: authentication or quota, or the class of a failure
            whose retry-after was beyond the policy's patience. None where every row is settled
            or was given its tries.
        unanswered: indices of the rows without a line, which only an early end leaves.
        window: as the calls left it; the next group starts with it.
    """

    lines: list[bytes]
    calls: int
    possibly_paid: int
    stopped: FailureClass | None
    unanswered: tuple[int, ...]
    window: Window


@dataclass(frozen=True)
class BatchAnswers:
    """What came of a walk over a request file.

    Attributes:
        groups: groups that were finished in this walk.
        lines: result lines that were stored in this walk.
        calls: calls made in it.
        possibly_paid: as in `GroupResult`; those of a walk that crashed are the store's to know.
        stopped: None where every group is finished now; else why the walk ended early, and the
            rest is left for a later walk.
        window: as the calls left it. Its `blocked_until` says when a later walk may begin.
    """

    groups: int
    lines: int
    calls: int
    possibly_paid: int
    stopped: FailureClass | None
    window: Window


class GroupStore(Protocol):
    """What is durable of a batch's groups. Every method but `beat` is durable when it returns."""

    def finished(self) -> set[int]:
        """The groups whose rows all have a stored line."""
        ...

    def answered(self, group: int) -> Collection[str]:
        """The custom ids in a group that is not finished whose lines `keep` has stored."""
        ...

    def start(self, group: int, first: int, count: int) -> None:
        """Mark that calls of a group begin; its rows are `count` from `first` on.

        A group that was started before, and neither finished nor kept since, broke off between
        its calls: each of its rows may have been paid.
        """
        ...

    def finish(self, group: int, lines: bytes, calls: int, possibly_paid: int) -> None:
        """Store the lines of a group (each with its newline) and that it is complete."""
        ...

    def keep(self, group: int, lines: bytes, calls: int, possibly_paid: int) -> None:
        """Store the lines, maybe none, of a group that ended early in good order.

        It is not finished: the rows without a line are called in a later walk.
        """
        ...

    def beat(self) -> None:
        """Show that the work goes on; what it raises ends the walk."""
        ...


async def answer_group(
    client: OnlineClient,
    wire: Wire,
    requests: Sequence[tuple[str, bytes]],
    *,
    model: str,
    window: Window,
    policy: CallPolicy,
    rng: random.Random,
    now: Callable[[], datetime],
    sleep: Sleep = asyncio.sleep,
    beat: Callable[[], None] = lambda: None,
) -> GroupResult:
    """Call every request until it is settled or the group has to end.

    When the group ends early, calls that are under way are waited for: their answers are paid.

    Args:
        client: makes one call each time.
        wire: writes replies as result lines.
        requests: custom id and body of each row.
        model: the provider's name of the model.
        window: as the previous group left it.
        policy: limits of tries and patience.
        rng: draws the backoff.
        now: the time, aware.
        sleep: waits for seconds.
        beat: called after every reply or `BEAT_SECONDS`; what it raises ends the group.
    """
    plan = CallPlan(len(requests), window, policy, rng)
    under_way: dict[asyncio.Task[Reply], int] = {}
    try:
        while not plan.done:
            while (row := plan.take(now())) is not None:
                custom_id, body = requests[row]
                call = asyncio.ensure_future(client.answer(custom_id, model, body))
                under_way[call] = row
            pause = _pause(plan.wake_at(now()), now())
            # In row order, so that a repetition with the same randomness draws the same waits.
            for call in sorted(await _any_done(under_way, pause, sleep), key=under_way.__getitem__):
                plan.settle(under_way.pop(call), call.result(), now())
            beat()
    finally:
        await _cancel(under_way)
    lines = [
        wire.encode_reply(custom_id, plan.settled[row])
        for row, (custom_id, _) in enumerate(requests)
        if row in plan.settled
    ]
    return GroupResult(
        lines, plan.calls, plan.possibly_paid, plan.stopped, plan.unanswered, plan.window
    )


def answer_batch(
    client: OnlineClient,
    wire: Wire,
    requests: BinaryIO,
    *,
    model: str,
    store: GroupStore,
    window: Window,
    policy: CallPolicy,
    rng: random.Random,
    now: Callable[[], datetime],
    sleep: Sleep = asyncio.sleep,
    group_rows: int = GROUP_ROWS,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> BatchAnswers:
    """Walk a request file and answer every group that is not finished; close the client.

    An interruption, or whatever else is raised, leaves what the store has: the next walk calls
    the group that broke off again and no other.

    Args:
        client: used by one event loop of this function's own; closed in any case.
        wire: reads requests and writes result lines.
        requests: the request file; its bytes must be verified by now.
        model: the provider's name of the model.
        store: what is durable.
        window: the window to begin with.
        policy: limits of tries and patience.
        rng: draws the backoff.
        now: the time, aware.
        sleep: waits for seconds.
        group_rows: rows of a group; it must stay the same for the life of a batch.
        loop_factory: makes the event loop, where it is not the platform's own.

    Raises:
        MalformedLine: the request file has a line that the wire did not write.
    """
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        try:
            answers = BatchAnswers(0, 0, 0, 0, None, window)
            finished = store.finished()
            for group, lines in enumerate(batched(split_lines(requests), group_rows)):
                if group in finished:
                    continue
                todo = _todo(wire, lines, store.answered(group))
                store.start(group, group * group_rows, len(lines))
                result = runner.run(
                    answer_group(
                        client,
                        wire,
                        todo,
                        model=model,
                        window=answers.window,
                        policy=policy,
                        rng=rng,
                        now=now,
                        sleep=sleep,
                        beat=store.beat,
                    )
                )
                _store(store, group, result)
                answers = _add(answers, result)
                if answers.stopped is not None:
                    break
            return answers
        finally:
            runner.run(client.close())


def _todo(
    wire: Wire, lines: Sequence[SourceLine], answered: Collection[str]
) -> list[tuple[str, bytes]]:
    decoded = (wire.decode_request(line.data) for line in lines)
    return [(custom_id, body) for custom_id, body in decoded if custom_id not in answered]


def _store(store: GroupStore, group: int, result: GroupResult) -> None:
    lines = b"".join(line + b"\n" for line in result.lines)
    save = store.keep if result.unanswered else store.finish
    save(group, lines, result.calls, result.possibly_paid)


def _add(answers: BatchAnswers, result: GroupResult) -> BatchAnswers:
    return replace(
        answers,
        groups=answers.groups + (not result.unanswered),
        lines=answers.lines + len(result.lines),
        calls=answers.calls + result.calls,
        possibly_paid=answers.possibly_paid + result.possibly_paid,
        stopped=result.stopped,
        window=result.window,
    )


def _pause(wake_at: datetime | None, now: datetime) -> float:
    if wake_at is None:
        return BEAT_SECONDS
    return min(max((wake_at - now).total_seconds(), 0.0), BEAT_SECONDS)


async def _any_done(
    calls: Collection[asyncio.Task[Reply]], pause: float, sleep: Sleep
) -> list[asyncio.Task[Reply]]:
    """The calls that are done as soon as there is one, or when the pause is over."""
    timer = asyncio.ensure_future(sleep(pause))
    try:
        await asyncio.wait({*calls, timer}, return_when=asyncio.FIRST_COMPLETED)
        if timer.done():
            timer.result()  # a sleep that fails must not become a loop without rest
    finally:
        await _cancel([timer])
    return [call for call in calls if call.done()]


async def _cancel(tasks: Collection[asyncio.Future[Any]]) -> None:
    """End tasks and wait until they have ended; what they end with is of no use any more."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
