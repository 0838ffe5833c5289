"""Online answers in virtual time: nothing lost, nothing twice, and nobody called too soon."""

from __future__ import annotations

import asyncio
import io
import os
import random
import signal
from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline_assets.online_calls.call_plan import REPEATED, CallPolicy
from pipeline_assets.online_calls.online import (
    BEAT_SECONDS,
    BatchAnswers,
    GroupResult,
    answer_batch,
    answer_group,
)
from pipeline_assets.online_calls.window import Window, open_window
from resources.providers.port import FailureClass, MalformedLine, Reply
from tests.support.clock import START
from tests.support.scripted_online import OK, Crash, MemoryStore, PlainWire, ScriptedClient
from tests.support.virtual_loop import LoopClock, VirtualLoop

POLICY = CallPolicy()
LOST = Reply(0, failure="transport", ambiguous=True)
BUSY = Reply(429, failure="rate_limited")


def requests(count: int) -> list[tuple[str, bytes]]:
    return [(f"r{row}", f"body of r{row}".encode()) for row in range(count)]


def request_file(count: int) -> io.BytesIO:
    wire = PlainWire()
    return io.BytesIO(b"".join(wire.encode_request(*row) + b"\n" for row in requests(count)))


def run_group(
    client: ScriptedClient,
    count: int,
    *,
    window: Window | None = None,
    policy: CallPolicy = POLICY,
    beat: Callable[[], None] = lambda: None,
) -> tuple[GroupResult, float]:
    async def run() -> tuple[GroupResult, float]:
        result = await answer_group(
            client,
            PlainWire(),
            requests(count),
            model="model",
            window=window or Window(4, 8),
            policy=policy,
            rng=random.Random(3),
            now=LoopClock(),
            beat=beat,
        )
        return result, asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(run())


def walk(
    client: ScriptedClient,
    store: MemoryStore,
    count: int,
    *,
    data: io.BytesIO | None = None,
    group_rows: int = 5,
    window: Window | None = None,
) -> BatchAnswers:
    return answer_batch(
        client,
        PlainWire(),
        data or request_file(count),
        model="model",
        store=store,
        window=window or Window(3, 4),
        policy=POLICY,
        rng=random.Random(5),
        now=LoopClock(),
        group_rows=group_rows,
        loop_factory=VirtualLoop,
    )


def ids(lines: list[bytes]) -> list[str]:
    return [line.decode().split("|")[0] for line in lines]


def all_ids(count: int) -> list[str]:
    return [custom_id for custom_id, _ in requests(count)]


# -- a group --


def test_lines_are_in_request_order_whatever_the_order_of_answers() -> None:
    client = ScriptedClient(takes=lambda custom_id: 30.0 - int(custom_id[1:]))
    result, _ = run_group(client, 20)
    assert result.lines == [f"r{row}|200|yes".encode() for row in range(20)]
    assert (result.calls, result.possibly_paid, result.stopped, result.unanswered) == (
        20,
        0,
        None,
        (),
    )


@pytest.mark.parametrize(
    ("reply", "calls", "possibly_paid"),
    [
        pytest.param(Reply(429, b"slow", failure="rate_limited"), 4, 0, id="rate limited"),
        pytest.param(Reply(529, b"busy", failure="overloaded"), 4, 0, id="overloaded"),
        pytest.param(Reply(500, b"oops", failure="server_error"), 4, 0, id="server error"),
        pytest.param(Reply(0, failure="transport"), 4, 0, id="never connected"),
        pytest.param(LOST, 2, 2, id="answer lost"),
        pytest.param(
            Reply(504, failure="server_error", ambiguous=True), 2, 2, id="ambiguous gateway"
        ),
        pytest.param(Reply(400, b"bad", failure="invalid_request"), 1, 0, id="invalid request"),
        pytest.param(Reply(400, b"no", failure="unsupported"), 1, 0, id="unsupported"),
    ],
)
def test_a_row_that_always_fails_gets_the_line_of_its_last_reply(
    reply: Reply, calls: int, possibly_paid: int
) -> None:
    client = ScriptedClient({"r1": [reply] * 9})
    result, _ = run_group(client, 3)
    assert result.lines == [
        b"r0|200|yes",
        PlainWire().encode_reply("r1", reply),
        b"r2|200|yes",
    ]
    assert client.calls == {"r0": 1, "r1": calls, "r2": 1}
    assert (result.calls, result.possibly_paid) == (calls + 2, possibly_paid)
    assert (result.stopped, result.unanswered) == (None, ())


def test_a_row_that_recovers_gets_its_answer() -> None:
    client = ScriptedClient({"r0": [BUSY, Reply(500, failure="server_error"), LOST]})
    result, _ = run_group(client, 1)
    assert result.lines == [b"r0|200|yes"]
    assert (result.calls, result.possibly_paid) == (4, 1)


def test_tries_are_spaced_by_growing_waits() -> None:
    gaps: list[list[float]] = [[], [], []]
    for seed in range(40):
        client = ScriptedClient({"r0": [BUSY] * 4}, takes=lambda _id: 0.0)

        async def run(client: ScriptedClient = client, seed: int = seed) -> None:
            await answer_group(
                client,
                PlainWire(),
                requests(1),
                model="model",
                window=open_window(1),
                policy=POLICY,
                rng=random.Random(seed),
                now=LoopClock(),
            )

        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(run())
        times = [sent.at for sent in client.sent]
        for number in range(3):
            gaps[number].append(times[number + 1] - times[number])
    for number, ceiling in enumerate((1.0, 2.0, 4.0)):
        assert 0 <= min(gaps[number]) < 0.25 * ceiling
        assert 0.75 * ceiling < max(gaps[number]) <= ceiling + 1e-6


def test_retry_after_is_obeyed_by_the_whole_window() -> None:
    client = ScriptedClient(
        {"r2": [Reply(429, retry_after=40, failure="rate_limited")]},
        takes=lambda custom_id: 1.0 if custom_id == "r2" else 3.0,
    )
    result, _ = run_group(client, 12, window=Window(4, 4))
    times = [sent.at for sent in client.sent]
    assert times[:4] == [0.0] * 4
    assert min(times[4:]) == pytest.approx(41.0)
    assert [sent.at for sent in client.sent if sent.custom_id == "r2"][1] >= 41.0
    assert ids(result.lines) == all_ids(12)


def test_a_block_from_an_earlier_group_is_obeyed() -> None:
    client = ScriptedClient()
    result, ended = run_group(client, 1, window=Window(1, 1).blocked(500, START))
    assert client.sent[0].at == pytest.approx(500)
    assert ended == pytest.approx(501)
    assert result.lines == [b"r0|200|yes"]


def test_a_wait_beyond_patience_ends_the_group() -> None:
    asked = Reply(429, retry_after=3600, failure="rate_limited")
    client = ScriptedClient({"r2": [asked]}, takes=lambda custom_id: 1.0 + (custom_id == "r3"))
    result, ended = run_group(client, 12)
    assert (result.stopped, ended) == ("rate_limited", 2.0)
    assert ids(result.lines) == ["r0", "r1", "r3"]
    assert result.window.blocked_until == START + timedelta(seconds=3601)
    assert set(client.calls.values()) == {1}


def test_the_window_settles_at_what_the_provider_takes() -> None:
    def judge(_id: str, under_way: int) -> Reply | None:
        return BUSY if under_way > 5 else None

    client = ScriptedClient(judge=judge)
    result, _ = run_group(client, 300, window=Window(16, 16), policy=CallPolicy(tries=50))
    late = [sent.under_way for sent in client.sent[len(client.sent) // 2 :]]
    assert max(late) <= 6
    assert max(late) > 3
    assert ids(result.lines) == all_ids(300)
    assert all(line.endswith(b"|yes") for line in result.lines)


def test_the_window_grows_to_its_limit_and_no_further() -> None:
    client = ScriptedClient()
    result, _ = run_group(client, 200, window=open_window(8))
    assert client.most_under_way == 8
    assert client.sent[0].at == client.sent[3].at < client.sent[4].at
    assert result.window.size == 8


@pytest.mark.parametrize("failure", ["auth", "quota"])
def test_a_refused_account_ends_the_group_at_once_and_keeps_answers(failure: FailureClass) -> None:
    client = ScriptedClient(
        {"r0": [BUSY] * 9, "r5": [Reply(401, failure=failure)]},
        takes=lambda custom_id: 7.0 if custom_id == "r4" else 1.0,
    )
    result, ended = run_group(client, 30, window=Window(6, 6))
    assert result.stopped == failure
    # The call that was under way is waited for, and nothing else: no backoff, no further row.
    assert ended == 7.0
    assert ids(result.lines) == ["r1", "r2", "r3", "r4"]
    assert result.unanswered == (0, *range(5, 30))
    assert set(client.calls) == set(all_ids(6))
    assert client.broken_off == 0


def test_beats_go_on_through_long_calls_and_long_waits() -> None:
    beats: list[float] = []
    client = ScriptedClient(
        {"r0": [Reply(429, retry_after=290, failure="rate_limited")]}, takes=lambda _id: 90.0
    )
    _, ended = run_group(client, 1, beat=lambda: beats.append(asyncio.get_running_loop().time()))
    assert ended > 470
    gaps = [after - before for before, after in zip([0.0, *beats], [*beats, ended], strict=True)]
    assert max(gaps) <= BEAT_SECONDS + 1e-6
    assert len(beats) < 2 * ended / BEAT_SECONDS


def test_a_beat_that_fails_ends_the_group_and_its_calls() -> None:
    def beat() -> None:
        if asyncio.get_running_loop().time() > 5:
            raise Crash

    client = ScriptedClient(takes=lambda custom_id: 1.0 + int(custom_id[1:]))
    with pytest.raises(Crash):
        run_group(client, 40, beat=beat, window=Window(8, 8))
    assert client.broken_off > 0


def test_a_client_that_raises_ends_the_group_and_its_calls() -> None:
    def judge(custom_id: str, _under_way: int) -> Reply | None:
        if custom_id == "r9":
            raise ZeroDivisionError
        return None

    client = ScriptedClient(judge=judge, takes=lambda custom_id: 1.0 + int(custom_id[1:]))

    async def run() -> None:
        with pytest.raises(ZeroDivisionError):
            await answer_group(
                client,
                PlainWire(),
                requests(40),
                model="model",
                window=open_window(8),
                policy=POLICY,
                rng=random.Random(1),
                now=LoopClock(),
            )
        # Seen before the loop ends, which would break off what is left over anyway.
        assert client.broken_off == client.sent[-1].under_way - 1 > 0

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(run())


def test_a_sleep_that_raises_is_not_taken_for_a_pause() -> None:
    async def sleep(_seconds: float) -> None:
        raise ZeroDivisionError

    async def run() -> None:
        await answer_group(
            ScriptedClient(),
            PlainWire(),
            requests(2),
            model="model",
            window=open_window(1),
            policy=POLICY,
            rng=random.Random(1),
            now=LoopClock(),
            sleep=sleep,
        )

    with asyncio.Runner(loop_factory=VirtualLoop) as runner, pytest.raises(ZeroDivisionError):
        runner.run(run())


def test_no_rows_need_no_call() -> None:
    result, ended = run_group(ScriptedClient(), 0)
    assert (result.lines, result.calls, result.unanswered, ended) == ([], 0, (), 0.0)


FAILURES: list[FailureClass] = [
    "transport",
    "rate_limited",
    "overloaded",
    "server_error",
    "capacity",
    "invalid_request",
    "unsupported",
    "auth",
    "quota",
]
REPLY = st.one_of(
    st.just(OK),
    st.builds(
        Reply,
        status=st.just(500),
        retry_after=st.none() | st.floats(0, 400),
        failure=st.sampled_from(FAILURES[:5]),
        ambiguous=st.booleans(),
    ),
    st.builds(Reply, status=st.just(400), failure=st.sampled_from(FAILURES[:7])),
    # Seldom, or every group would end at once.
    st.builds(Reply, status=st.just(401), failure=st.sampled_from(FAILURES)),
)


@settings(max_examples=150)
@given(
    script=st.dictionaries(
        st.integers(0, 24).map(lambda row: f"r{row}"), st.lists(REPLY, max_size=6), max_size=12
    ),
    count=st.integers(0, 25),
    limit=st.integers(1, 9),
    takes=st.lists(st.floats(0, 30), min_size=1, max_size=7),
)
def test_every_row_has_one_line_or_is_named(
    script: dict[str, list[Reply]], count: int, limit: int, takes: list[float]
) -> None:
    client = ScriptedClient(script, takes=lambda custom_id: takes[int(custom_id[1:]) % len(takes)])
    result, _ = run_group(client, count, window=open_window(limit))

    answered = ids(result.lines)
    unanswered = [f"r{row}" for row in result.unanswered]
    assert sorted(answered + unanswered) == sorted(all_ids(count))
    assert answered == [custom_id for custom_id in all_ids(count) if custom_id in set(answered)]
    assert (result.stopped is None) == (not unanswered)
    assert client.most_under_way <= limit
    assert result.calls == len(client.sent)
    assert max(client.calls.values(), default=0) <= POLICY.tries
    ambiguous = 0
    for custom_id, calls in client.calls.items():
        replies = (script.get(custom_id, []) + [OK] * calls)[:calls]
        ambiguous += sum(reply.ambiguous for reply in replies)
        assert sum(reply.ambiguous for reply in replies[:-1]) <= POLICY.ambiguous_tries
        assert all(reply.failure in REPEATED for reply in replies[:-1])
        if custom_id in answered:
            line = result.lines[answered.index(custom_id)]
            assert line == PlainWire().encode_reply(custom_id, replies[-1])
    assert result.possibly_paid == ambiguous


# -- a batch --


def test_a_walk_answers_every_group() -> None:
    client, store = ScriptedClient(), MemoryStore()
    answers = walk(client, store, 12)
    assert b"".join(store.lines) == b"".join(f"r{row}|200|yes\n".encode() for row in range(12))
    assert store.starts == [(0, 0, 5), (1, 5, 5), (2, 10, 2)]
    assert (answers.groups, answers.lines, answers.calls, answers.stopped) == (3, 12, 12, None)
    assert (store.calls, store.possibly_paid, store.doubted) == (12, 0, 0)
    assert store.beats > 0
    assert client.closed


def test_an_empty_file_needs_no_call() -> None:
    client, store = ScriptedClient(), MemoryStore()
    assert walk(client, store, 0).groups == 0
    assert (client.sent, store.starts, client.closed) == ([], [], True)


def test_the_window_goes_on_from_group_to_group() -> None:
    client = ScriptedClient()
    answers = walk(client, MemoryStore(), 60, window=Window(1, 4))
    assert answers.window.size == 4
    assert client.most_under_way == 4


def test_a_finished_walk_calls_nobody_again() -> None:
    store = MemoryStore()
    walk(ScriptedClient(), store, 12)
    again = ScriptedClient()
    answers = walk(again, store, 12)
    assert (again.sent, answers.groups, answers.stopped) == ([], 0, None)
    assert len(store.lines) == 12
    assert again.closed


def test_a_stopped_walk_keeps_answers_and_a_later_one_calls_the_rest_only() -> None:
    first = ScriptedClient({"r6": [Reply(402, failure="quota")]}, takes=lambda _id: 2.0)
    store = MemoryStore()
    answers = walk(first, store, 12)
    # The window has grown to four: r5, r7 and r8 were under way with the row that was refused.
    assert (answers.stopped, answers.groups, answers.lines) == ("quota", 1, 8)
    assert ids(store.lines) == [*all_ids(6), "r7", "r8"]
    assert first.closed

    second = ScriptedClient()
    assert walk(second, store, 12).stopped is None
    assert list(second.calls) == ["r6", "r9", "r10", "r11"]
    assert sorted(ids(store.lines)) == sorted(all_ids(12))
    assert (store.doubted, store.calls) == (0, len(first.sent) + len(second.sent))
    assert store.finished() == {0, 1, 2}
    # A group keeps its rows, whatever part of them is called.
    assert store.starts == [(0, 0, 5), (1, 5, 5), (1, 5, 5), (2, 10, 2)]


def test_a_stop_before_any_answer_is_kept_as_well() -> None:
    client = ScriptedClient(judge=lambda _id, _under_way: Reply(401, failure="auth"))
    store = MemoryStore()
    answers = walk(client, store, 12)
    assert (answers.stopped, answers.lines, store.lines, store.calls) == ("auth", 0, [], 3)
    walk(ScriptedClient(), store, 12)
    assert store.doubted == 0


def test_an_interruption_leaves_what_is_durable() -> None:
    def judge(custom_id: str, _under_way: int) -> Reply | None:
        if custom_id == "r7":
            os.kill(os.getpid(), signal.SIGINT)
        return None

    first, store = ScriptedClient(judge=judge), MemoryStore()
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        walk(first, store, 12)
    assert signal.getsignal(signal.SIGINT) == before
    assert first.closed
    assert first.broken_off > 0
    assert ids(store.lines) == all_ids(5)

    walk(ScriptedClient(), store, 12)
    assert ids(store.lines) == all_ids(12)
    assert store.doubted == 5


def test_a_broken_request_file_is_refused_and_the_client_closed() -> None:
    client, store = ScriptedClient(), MemoryStore()
    data = io.BytesIO(request_file(6).getvalue() + b"nonsense\n")
    with pytest.raises(MalformedLine):
        walk(client, store, 6, data=data)
    assert client.closed
    assert [group for group, _, _ in store.starts] == [0]


@settings(max_examples=120)
@given(
    count=st.integers(0, 17),
    group_rows=st.integers(1, 7),
    crashes=st.lists(st.integers(1, 40), max_size=4),
    failing=st.dictionaries(
        st.integers(0, 16).map(lambda row: f"r{row}"),
        st.lists(st.sampled_from([BUSY, LOST, Reply(402, failure="quota")]), max_size=2),
        max_size=4,
    ),
)
def test_no_crash_loses_a_row_or_stores_it_twice(
    count: int, group_rows: int, crashes: list[int], failing: dict[str, list[Reply]]
) -> None:
    store, done, paid = MemoryStore(), False, 0
    script = {row: list(replies) for row, replies in failing.items()}
    for crash in [*crashes, *[None] * 20]:
        store.crash_at = store.steps + crash if crash else None
        stored_before = set(ids(store.lines))
        client = ScriptedClient(script)
        try:
            done = walk(client, store, count, group_rows=group_rows).stopped is None
        except Crash:
            done = False
        assert client.closed
        assert not stored_before & set(client.calls)
        for row, calls in client.calls.items():
            replies = script.pop(row, [])
            script[row] = replies[calls:]
            paid += max(0, calls - len(replies))
        if done:
            break
    assert done
    assert sorted(ids(store.lines)) == sorted(all_ids(count))
    answered = sum(line.endswith(b"|yes\n") for line in store.lines)
    assert paid - answered <= store.doubted
