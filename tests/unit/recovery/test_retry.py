"""The decision about a failed attempt: every class, every limit, and what always holds."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.processing_version import PACKAGED_SPECS, Spec, find_spec
from pipeline_assets.failures import RETRYABLE
from pipeline_assets.recovery.retry import (
    CHANGED_PATHS,
    CLASS_LIMITS,
    DECIDED_SCHEMA,
    DOUBLINGS,
    FAILED_SCHEMA,
    FEWER_PAGES,
    LARGER_OUTPUT,
    LONGEST_DELAY,
    REPAIR_PROMPT,
    REPEAT,
    SMALLER_BATCH,
    Budget,
    History,
    RecordLimits,
    RetryDecision,
    allowed_paths,
    backoff,
    decide_retries,
    decide_retry,
)
from resources.clock import from_text, to_text

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
LIMITS = RecordLimits(attempts=4, free=3, time=timedelta(hours=168))
FIRST = History(1, 1, 0, frozenset(), NOW - timedelta(hours=1))
FREE = History(0, 1, 1, frozenset(), NOW - timedelta(hours=1))
EVERY_PATH = frozenset(CHANGED_PATHS)
NO_LIMIT = Budget()
MINUTE = timedelta(minutes=1)


class Highest(random.Random):
    """Draws the greatest number there is below one."""

    def random(self) -> float:
        return 1 - 2**-53


def decide(failure: str, history: History = FIRST, **given: Any) -> RetryDecision:
    return decide_retry(
        failure,
        history,
        given.get("limits", LIMITS),
        given.get("budget", NO_LIMIT),
        given.get("paths", EVERY_PATH),
        NOW,
        given.get("rng", Highest()),
    )


OWNERS = (
    "invalid_request",
    "unsupported",
    "refused",
    "content_filtered",
    "duplicate_conflict",
    "business_rule",
    "evidence_missing",
    "low_certainty",
    "a class that is not known",
)
AGAIN = {
    # class: retries, longest first delay, path
    "transport": (3, MINUTE, REPEAT),
    "server_error": (3, MINUTE, REPEAT),
    "rate_limited": (5, 2 * MINUTE, REPEAT),
    "overloaded": (5, 2 * MINUTE, REPEAT),
    "missing_result": (2, MINUTE, REPEAT),
    "misrouted": (1, MINUTE, REPEAT),
    "truncated": (1, MINUTE, LARGER_OUTPUT),
    "malformed_json": (1, MINUTE, REPAIR_PROMPT),
    "schema_violation": (1, MINUTE, REPAIR_PROMPT),
    "too_large": (1, MINUTE, FEWER_PAGES),
}
FREE_CLASSES = {
    "expired": (5 * MINUTE, REPEAT),
    "cancelled": (5 * MINUTE, REPEAT),
    "capacity": (15 * MINUTE, SMALLER_BATCH),
}
HOLDS = ("auth", "quota")


def test_the_tables_here_know_every_class() -> None:
    assert set(CLASS_LIMITS) == {*AGAIN, *FREE_CLASSES, *HOLDS}
    assert set(CLASS_LIMITS) >= RETRYABLE


@pytest.mark.parametrize("failure", OWNERS)
def test_what_no_attempt_mends_is_its_owners(failure: str) -> None:
    found = decide(failure)
    assert (found.kind, found.not_before, found.hold) == ("dead_letter", None, None)
    assert found.counted
    assert failure in found.reason


@pytest.mark.parametrize("failure", AGAIN)
def test_the_first_failure_is_followed_by_another_attempt(failure: str) -> None:
    _, delay, path = AGAIN[failure]
    found = decide(failure)
    assert (found.kind, found.path, found.counted, found.hold) == ("retry", path, True, None)
    assert found.not_before is not None
    assert delay - timedelta(milliseconds=1) < found.not_before - NOW <= delay


@pytest.mark.parametrize("failure", AGAIN)
def test_the_limit_of_a_class(failure: str) -> None:
    retries, _, path = AGAIN[failure]
    plenty = replace(LIMITS, attempts=20)
    last = replace(FIRST, attempts=retries, of_class=retries)
    assert decide(failure, last, limits=plenty).kind == "retry"
    over = replace(FIRST, attempts=retries + 1, of_class=retries + 1)
    found = decide(failure, over, limits=plenty)
    assert (found.kind, found.path, found.not_before) == ("dead_letter", path, None)
    assert f"at most {retries} retries" in found.reason


@pytest.mark.parametrize("failure", AGAIN)
def test_the_limit_of_a_record_is_over_all_classes(failure: str) -> None:
    assert decide(failure, replace(FIRST, attempts=3)).kind == "retry"
    found = decide(failure, replace(FIRST, attempts=4))
    assert (found.kind, found.reason) == ("dead_letter", "all 4 attempts are used up")


@pytest.mark.parametrize("failure", [*AGAIN, *FREE_CLASSES])
def test_the_limit_of_time(failure: str) -> None:
    start = FIRST if failure in AGAIN else FREE
    edge = replace(start, first_submitted_at=NOW - LIMITS.time)
    assert decide(failure, edge).kind == "retry"
    assert decide(failure, replace(start, first_submitted_at=None)).kind == "retry"
    over = replace(start, first_submitted_at=NOW - LIMITS.time - timedelta(seconds=1))
    found = decide(failure, over)
    assert (found.kind, found.hold) == (
        ("dead_letter", None) if failure in AGAIN else ("hold", "free_retries")
    ), "what the provider never ran is not buried"
    assert "more than 168 hours ago" in found.reason


@pytest.mark.parametrize("failure", FREE_CLASSES)
def test_free_retries_use_no_attempt_and_are_counted(failure: str) -> None:
    delay, path = FREE_CLASSES[failure]
    found = decide(failure, FREE)
    assert (found.kind, found.path, found.counted) == ("retry", path, False)
    assert found.not_before is not None
    assert delay - timedelta(milliseconds=1) < found.not_before - NOW <= delay
    used_up = replace(FREE, attempts=99, of_class=3, free=3)
    assert decide(failure, used_up).kind == "retry", "its limit is not that of attempts"
    found = decide(failure, replace(FREE, of_class=4, free=4))
    assert (found.kind, found.hold, found.counted) == ("hold", "free_retries", False)
    assert found.not_before is not None, "it goes on when the version is released"


@pytest.mark.parametrize("failure", HOLDS)
def test_what_an_account_must_settle_holds_the_version(failure: str) -> None:
    ancient = History(99, 99, 99, EVERY_PATH, NOW - timedelta(days=999))
    for history in (FREE, ancient):
        found = decide(failure, history, budget=Budget(0, 0, Decimal(0), Decimal(0)))
        assert (found.kind, found.hold, found.counted) == ("hold", failure, False)
        assert found.not_before == NOW


CHANGED = [failure for failure, (_, _, path) in AGAIN.items() if path in CHANGED_PATHS]


@pytest.mark.parametrize("failure", CHANGED)
def test_a_changed_request_is_only_made_where_the_version_allows_it_and_once(failure: str) -> None:
    path = AGAIN[failure][2]
    found = decide(failure, paths=EVERY_PATH - {path})
    assert (found.kind, found.reason) == ("dead_letter", f"the version allows no {path}")
    gone = replace(FIRST, attempts=2, paths=frozenset({path, REPEAT}))
    found = decide(failure, gone)
    assert (found.kind, found.reason) == ("dead_letter", f"{path} was tried and did not help")
    other = replace(FIRST, attempts=2, paths=EVERY_PATH - {path})
    assert decide(failure, other).kind == "retry"


def test_an_answer_that_stays_unusable_in_another_way_is_not_repaired_twice() -> None:
    gone = replace(FIRST, attempts=2, of_class=1, paths=frozenset({REPAIR_PROMPT}))
    assert decide("malformed_json", gone).kind == "dead_letter"
    assert decide("schema_violation", gone).kind == "dead_letter"


@pytest.mark.parametrize("failure", [*AGAIN, *FREE_CLASSES])
@pytest.mark.parametrize(
    ("budget", "says"),
    [
        pytest.param(Budget(attempts=7, retries_made=7), "7 retries", id="attempts"),
        pytest.param(
            Budget(money=Decimal("2.50"), spent=Decimal("2.50")), "2.50 of 2.50", id="money"
        ),
        pytest.param(Budget(money=Decimal(1), spent=None), "not known", id="unknown-cost"),
    ],
)
def test_a_budget_that_is_used_up_holds_and_never_buries(
    failure: str, budget: Budget, says: str
) -> None:
    found = decide(failure, FIRST if failure in AGAIN else FREE, budget=budget)
    assert (found.kind, found.hold) == ("hold", "budget")
    assert says in found.reason
    assert found.not_before is not None
    assert found.counted is (failure in AGAIN)


@pytest.mark.parametrize(
    "budget",
    [
        pytest.param(Budget(attempts=7, retries_made=6), id="one-attempt-left"),
        pytest.param(Budget(money=Decimal("2.50"), spent=Decimal("2.49")), id="a-cent-left"),
        pytest.param(Budget(money=None, spent=None), id="no-limit-and-unknown-cost"),
    ],
)
def test_a_budget_with_something_left(budget: Budget) -> None:
    assert decide("transport", budget=budget).kind == "retry"


@pytest.mark.parametrize("failure", ["refused", "truncated"])
def test_what_is_an_owners_stays_so_under_a_used_up_budget(failure: str) -> None:
    spent = Budget(attempts=1, retries_made=1)
    assert decide(failure, paths=frozenset(), budget=spent).kind == "dead_letter"


def test_the_bound_of_the_delay_doubles_up_to_two_hours() -> None:
    bounds = [backoff(MINUTE, number, Highest()) for number in range(1, 30)]
    wanted = [min(LONGEST_DELAY, MINUTE * 2 ** min(number, DOUBLINGS)) for number in range(29)]
    for found, bound in zip(bounds, wanted, strict=True):
        assert bound - timedelta(milliseconds=1) < found <= bound


def test_the_jitter_is_full() -> None:
    rng = random.Random(1)
    drawn = [backoff(timedelta(minutes=8), 1, rng) for _ in range(4000)]
    quarters = Counter(int(delay / timedelta(minutes=2)) for delay in drawn)
    assert set(quarters) == {0, 1, 2, 3}
    assert all(850 < count < 1150 for count in quarters.values())


FAILURES = sorted({*CLASS_LIMITS, *OWNERS})
histories = st.builds(
    History,
    attempts=st.integers(0, 12),
    of_class=st.integers(1, 12),
    free=st.integers(0, 12),
    paths=st.frozensets(st.sampled_from([*CHANGED_PATHS, REPEAT])),
    first_submitted_at=st.none()
    | st.integers(0, 400).map(lambda hours: NOW - timedelta(hours=hours)),
)
record_limits = st.builds(
    RecordLimits,
    attempts=st.integers(1, 8),
    free=st.integers(0, 5),
    time=st.integers(1, 300).map(lambda hours: timedelta(hours=hours)),
)
budgets = st.builds(
    Budget,
    attempts=st.none() | st.integers(0, 40),
    retries_made=st.integers(0, 40),
    money=st.none() | st.integers(0, 9).map(Decimal),
    spent=st.none() | st.integers(0, 9).map(Decimal),
)
path_sets = st.frozensets(st.sampled_from(CHANGED_PATHS))


@given(
    failure=st.sampled_from(FAILURES),
    history=histories,
    limits=record_limits,
    budget=budgets,
    paths=path_sets,
    seed=st.integers(0, 2**32),
)
def test_what_always_holds(
    failure: str,
    history: History,
    limits: RecordLimits,
    budget: Budget,
    paths: frozenset[str],
    seed: int,
) -> None:
    found = decide_retry(failure, history, limits, budget, paths, NOW, random.Random(seed))
    rule = CLASS_LIMITS.get(failure)
    assert (found.kind == "dead_letter") == (found.not_before is None)
    assert (found.kind == "hold") == (found.hold is not None)
    assert found.reason
    if rule is None:
        assert found.kind == "dead_letter"
        return
    assert found.counted is not rule.free
    if found.not_before is not None:
        bound = min(LONGEST_DELAY, rule.first_delay * 2 ** min(DOUBLINGS, history.of_class - 1))
        assert timedelta(0) <= found.not_before - NOW <= bound
    # Whether the version may go on has no say in who is buried.
    rich = decide_retry(failure, history, limits, Budget(), paths, NOW, random.Random(seed))
    assert (found.kind == "dead_letter") == (rich.kind == "dead_letter")
    if found.kind != "retry":
        return
    assert rule.free or (history.attempts < limits.attempts and history.of_class <= rule.retries)
    assert not rule.free or history.free <= limits.free
    assert budget.attempts is None or budget.retries_made < budget.attempts
    assert budget.money is None or (budget.spent is not None and budget.spent < budget.money)
    if found.path in CHANGED_PATHS:
        assert found.path in paths
        assert found.path not in history.paths


@given(
    failures=st.lists(st.sampled_from(FAILURES), min_size=30, max_size=30),
    limits=record_limits,
    paths=path_sets,
    seed=st.integers(0, 2**32),
)
def test_a_life_of_failures_ends_within_the_limits(
    failures: list[str], limits: RecordLimits, paths: frozenset[str], seed: int
) -> None:
    """A record is followed from failure to failure, its history kept beside the decisions."""
    rng = random.Random(seed)
    counted = free = 0
    seen: Counter[str] = Counter()
    gone: Counter[str] = Counter()
    now = NOW
    ended = None
    for failure in failures:
        rule = CLASS_LIMITS.get(failure)
        is_free = rule is not None and rule.free
        counted, free = counted + (not is_free), free + is_free
        seen[failure] += 1
        history = History(counted, seen[failure], free, frozenset(gone), NOW)
        found = decide_retry(failure, history, limits, Budget(), paths, now, rng)
        ended = found.kind
        if found.kind != "retry":
            break
        assert found.not_before is not None
        now = found.not_before
        gone[found.path] += 1
    assert ended != "retry", "thirty failures are too many for any limit"
    assert counted <= limits.attempts
    assert max((gone[path] for path in CHANGED_PATHS), default=0) <= 1


rows = st.fixed_dictionaries(
    {
        "failure_class": st.sampled_from(FAILURES),
        "attempts": st.integers(0, 4),
        "of_class": st.integers(0, 3),
        "free": st.integers(0, 4),
        "paths": st.sampled_from(["", "larger_output", "repair_prompt repeat"]),
        "first_submitted_at": st.sampled_from(
            [None, to_text(NOW - timedelta(hours=2)), to_text(NOW - timedelta(hours=200))]
        ),
    }
)


def failed_frame(found: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows with numbers that are in no order of histories."""
    numbered = [
        {"attempt_no": 1000 - number, "record_no": 10 * number, **row}
        for number, row in enumerate(found)
    ]
    return pl.DataFrame(numbered, schema=FAILED_SCHEMA)


def history_of(row: dict[str, Any]) -> History:
    rule = CLASS_LIMITS.get(row["failure_class"])
    free = rule is not None and rule.free
    submitted = row["first_submitted_at"]
    return History(
        row["attempts"] + (not free),
        row["of_class"] + 1,
        row["free"] + free,
        frozenset(row["paths"].split()),
        None if submitted is None else from_text(submitted),
    )


@given(found=st.lists(rows, max_size=25), paths=path_sets, budget=budgets)
def test_many_are_decided_like_one(
    found: list[dict[str, Any]], paths: frozenset[str], budget: Budget
) -> None:
    failed = failed_frame(found)
    unlimited = replace(budget, attempts=None)
    decided = decide_retries(failed, LIMITS, unlimited, paths, NOW, random.Random(3))
    assert dict(decided.rows.schema) == DECIDED_SCHEMA
    assert decided.rows["attempt_no"].to_list() == sorted(failed["attempt_no"])
    asked = {row["attempt_no"]: row for row in failed.iter_rows(named=True)}
    holds = set()
    for row in decided.rows.iter_rows(named=True):
        before = asked[row["attempt_no"]]
        one = decide_retry(
            row["failure_class"],
            history_of(before),
            LIMITS,
            unlimited,
            paths,
            NOW,
            random.Random(3),
        )
        assert (row["record_no"], row["failure_class"]) == (
            before["record_no"],
            before["failure_class"],
        )
        assert (row["decision"], row["recovery_path"], row["reason"]) == (
            one.kind,
            one.path,
            one.reason,
        )
        assert row["counted"] == int(one.counted)
        assert (row["not_before"] is None) == (one.not_before is None)
        holds |= {one.hold} - {None}
    assert set(decided.holds) == holds


@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=6),
    attempts=st.integers(0, 25),
    made=st.integers(0, 10),
)
def test_a_group_fits_the_budget_whole_or_waits_whole(
    sizes: list[int], attempts: int, made: int
) -> None:
    found = [
        {
            "failure_class": "transport",
            "attempts": 0,
            "of_class": 0,
            "free": 0,
            "paths": "",
            "first_submitted_at": to_text(NOW - timedelta(minutes=group)),
        }
        for group, size in enumerate(sizes)
        for _ in range(size)
    ]
    failed = failed_frame(found)
    budget = Budget(attempts=attempts, retries_made=made)
    decided = decide_retries(failed, LIMITS, budget, EVERY_PATH, NOW, random.Random(3))
    joined = decided.rows.join(failed.select("attempt_no", "first_submitted_at"), on="attempt_no")
    for _, group in joined.group_by("first_submitted_at"):
        assert group["decision"].n_unique() == 1
        assert group["not_before"].n_unique() == 1, "they share a retry manifest"
    retried = decided.rows.filter(pl.col("decision") == "retry").height
    assert made + retried <= max(attempts, made)
    assert "dead_letter" not in decided.rows["decision"]
    assert (set(decided.holds) == {"budget"}) == (retried < failed.height)
    left = attempts - made - retried
    waiting = joined.filter(pl.col("decision") == "hold")["first_submitted_at"].value_counts()
    assert all(count > left for count in waiting["count"])


def test_nothing_failed_nothing_decided() -> None:
    empty = pl.DataFrame(schema=FAILED_SCHEMA)
    decided = decide_retries(empty, LIMITS, NO_LIMIT, EVERY_PATH, NOW, random.Random(1))
    assert (decided.rows.height, dict(decided.rows.schema)) == (0, DECIDED_SCHEMA)
    assert decided.holds == {}


def packaged(key: str) -> Spec:
    return find_spec(key, [PACKAGED_SPECS])


@pytest.mark.parametrize(
    ("key", "paths"),
    [
        ("manuals-openai-batch-2", EVERY_PATH),
        ("manuals-openai-batch-1", frozenset()),
        ("manuals-baseline-1", frozenset()),
    ],
)
def test_a_version_allows_what_its_spec_names(key: str, paths: frozenset[str]) -> None:
    assert allowed_paths(packaged(key)) == paths


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ("output_tokens", LARGER_OUTPUT),
        ("repair_prompt", REPAIR_PROMPT),
        ("document_tokens", FEWER_PAGES),
    ],
)
def test_each_path_has_its_own_field(field: str, path: str) -> None:
    spec = packaged("manuals-openai-batch-2")
    assert spec.request is not None and spec.request.recovery is not None
    recovery = spec.request.recovery.model_copy(update={field: None})
    request = spec.request.model_copy(update={"recovery": recovery})
    assert allowed_paths(spec.model_copy(update={"request": request})) == EVERY_PATH - {path}
