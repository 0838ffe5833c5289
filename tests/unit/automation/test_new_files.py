"""The decision about sources: what a run is asked for, for which source, and what is remembered."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.automation.new_files import (
    FIRST_SETTLE_SECONDS,
    LONGEST_SETTLE_SECONDS,
    Found,
    Remembered,
    SourceRun,
    Waiting,
    decide_sources,
    settle_seconds,
)
from pipeline_assets.ingest.look import Look

NOW = 2_000_000.0
V, W = "v-1", "w-1"


def found(source: str = "a", *, version: str = V, **given: Any) -> Found:
    look = given.pop("look", Look())
    return Found(source, version, look, 30, **given)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        pytest.param(found(), None, id="nothing"),
        pytest.param(found(look=Look(new=1, mark="m")), ("new",), id="new"),
        pytest.param(found(look=Look(changed=2, mark="m")), ("changed",), id="changed"),
        pytest.param(found(look=Look(removed=1, mark="m")), ("removed",), id="removed"),
        pytest.param(
            found(look=Look(new=1, changed=1, removed=1, mark="m")),
            ("changed", "new", "removed"),
            id="all-of-it",
        ),
        pytest.param(
            found(look=Look(removed=1, mark="m", finished=False)), None, id="half-a-look-misses-all"
        ),
        pytest.param(
            found(look=Look(new=1, mark="m", finished=False)), ("new",), id="half-a-look-sees-new"
        ),
        pytest.param(found(look=Look(unsettled=3)), None, id="being-written"),
        pytest.param(found(look=Look(new=1, unsettled=3, mark="m")), ("new",), id="some-are-done"),
        pytest.param(found(events=2), ("event",), id="events"),
        pytest.param(
            found(events=2, look=Look(unsettled=2)), None, id="events-of-what-is-being-written"
        ),
        pytest.param(
            found(events=3, look=Look(unsettled=2)), ("event",), id="an-event-beyond-those"
        ),
        pytest.param(found(pending=Waiting(4, "p")), ("pending",), id="known-to-the-ledger"),
        pytest.param(found(withdrawal=Waiting(1, "w")), ("withdrawal",), id="to-be-withdrawn"),
    ],
)
def test_what_a_run_is_for(given: Found, why: tuple[str, ...] | None) -> None:
    decision = decide_sources([given], {}, NOW, busy=())
    assert [(run.source, run.version, run.why) for run in decision.runs] == (
        [] if why is None else [("a", V, why)]
    )


NEW = Look(new=1, mark="m")


@pytest.mark.parametrize(
    ("given", "memory", "busy", "asked", "later"),
    [
        pytest.param([found(look=NEW)], {}, {V}, [], ["a"], id="busy"),
        pytest.param([found(look=NEW)], {}, {W}, ["a"], [], id="another-version-is-busy"),
        pytest.param(
            [found("b", look=NEW), found("a", look=NEW)], {}, (), ["a"], ["b"], id="one-at-a-time"
        ),
        pytest.param(
            [found("a", look=NEW), found("b", look=NEW)],
            {"a": Remembered(asked_at=5.0), "b": Remembered(asked_at=4.0)},
            (),
            ["b"],
            ["a"],
            id="who-waits-longest",
        ),
        pytest.param(
            [found("a", look=NEW), found("b", look=NEW, version=W)],
            {},
            (),
            ["a", "b"],
            [],
            id="two-versions",
        ),
        pytest.param(
            [found("a"), found("b", look=NEW)], {}, (), ["b"], [], id="only-what-has-work"
        ),
    ],
)
def test_whose_turn_it_is(
    given: list[Found],
    memory: dict[str, Remembered],
    busy: set[str],
    asked: list[str],
    later: list[str],
) -> None:
    decision = decide_sources(given, memory, NOW, busy)
    assert [run.source for run in decision.runs] == asked
    assert list(decision.later) == later
    assert {name for name, kept in decision.memory.items() if kept.asked_at == NOW} == set(asked)


def test_the_run_leaves_alone_what_the_look_left_alone() -> None:
    (run,) = decide_sources([found(look=NEW)], {}, NOW, busy=()).runs
    assert run == SourceRun(V, "a", 30, ("new",), "a-m")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param({"look": NEW}, {"look": NEW}, True, id="the-same-work"),
        pytest.param({"look": NEW}, {"look": Look(new=1, mark="n")}, False, id="other-files"),
        pytest.param({"events": 1}, {"events": 2}, False, id="more-events"),
        pytest.param(
            {"pending": Waiting(1, "p1")},
            {"pending": Waiting(1, "p2")},
            False,
            id="other-documents",
        ),
        pytest.param(
            {"look": NEW},
            {"look": NEW, "withdrawal": Waiting(1, "w")},
            False,
            id="and-a-withdrawal",
        ),
    ],
)
def test_the_mark_names_the_work(one: dict[str, Any], other: dict[str, Any], same: bool) -> None:
    first, second = (
        decide_sources([found(**each)], {}, NOW, busy=()).runs[0].mark for each in (one, other)
    )
    assert (first == second) is same


@pytest.mark.parametrize(
    ("declared", "before", "seconds"),
    [
        pytest.param(5, None, FIRST_SETTLE_SECONDS, id="the-first-look"),
        pytest.param(60, None, 60, id="declared-for-longer"),
        pytest.param(5, Remembered(listed_at=NOW - 31), 31, id="since-the-look-before"),
        pytest.param(0, Remembered(listed_at=NOW - 600), 600, id="after-a-pause"),
        pytest.param(
            5, Remembered(listed_at=NOW - 10**6), LONGEST_SETTLE_SECONDS, id="after-a-long-pause"
        ),
        pytest.param(5, Remembered(listed_at=NOW + 60), 5, id="a-clock-that-went-back"),
        pytest.param(
            5, Remembered(looked_at=NOW - 31), FIRST_SETTLE_SECONDS, id="never-listed-before"
        ),
    ],
)
def test_how_long_a_document_has_to_hold_still(
    declared: int, before: Remembered | None, seconds: int
) -> None:
    assert settle_seconds(declared, before, NOW) == seconds


def test_what_is_remembered() -> None:
    memory = {
        "a": Remembered(looked_at=1, listed_at=1, mark="m", since=1, asked_at=1, stamp="old"),
        "b": Remembered(looked_at=1, listed_at=1, mark="m", since=1),
        "left": Remembered(looked_at=2, listed_at=2),
    }
    given = [
        found("a", look=Look(unsettled=1, mark="m"), stamp="s"),
        found("c", pending=Waiting(1, "p"), stamp="s"),
    ]
    after = decide_sources(given, memory, NOW, {V}, unreadable={"b", "new"}).memory
    assert after["a"] == Remembered(NOW, NOW, "m", 1, 1, "s"), "the mark is as old as it was"
    assert after["b"] == Remembered(looked_at=NOW, listed_at=1, mark="m", since=1)
    assert after["new"] == Remembered(looked_at=NOW), "it had its turn, and nothing is known of it"
    assert after["c"].stamp == "", "the ledger is asked again while it has something"
    assert after["left"] == memory["left"]


LOOKS = st.builds(
    Look,
    new=st.integers(0, 2),
    changed=st.integers(0, 2),
    removed=st.integers(0, 2),
    unsettled=st.integers(0, 2),
    mark=st.sampled_from(["", "m"]),
    finished=st.booleans(),
)
FOUNDS = st.lists(
    st.builds(
        Found,
        source=st.sampled_from("abcdef"),
        version=st.sampled_from([V, W]),
        look=LOOKS,
        settle_seconds=st.integers(0, 100),
        events=st.integers(0, 3),
        pending=st.builds(Waiting, st.integers(0, 2)),
    ),
    unique_by=lambda each: each.source,
)


@given(FOUNDS, st.sets(st.sampled_from([V, W])))
def test_a_version_gets_one_run_and_no_work_is_forgotten(
    given: list[Found], busy: set[str]
) -> None:
    decision = decide_sources(given, {}, NOW, busy)
    asked = [run.version for run in decision.runs]
    assert len(asked) == len(set(asked))
    assert not busy & set(asked)
    with_work = {
        run.source for each in given for run in decide_sources([each], {}, NOW, busy=()).runs
    }
    assert with_work == {run.source for run in decision.runs} | set(decision.later)
    assert decision.memory.keys() == {each.source for each in given}
