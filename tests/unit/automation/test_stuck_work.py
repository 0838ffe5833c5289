"""What stands still: a table of facts, and the words for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pipeline_assets.automation.stuck_work import (
    REVIEWS,
    SILENT,
    STUCK,
    BatchFact,
    Facts,
    Group,
    Limits,
    find_stuck,
)

NOW = datetime(2030, 1, 10, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
LIMITS = {"v": Limits(stuck=24 * HOUR, review=168 * HOUR), "w": Limits(48 * HOUR, 24 * HOUR)}
MINUTE = "2030-01-09 11:59 UTC"
LONG = NOW - 24 * HOUR - timedelta(minutes=1)
SHORT = NOW - 24 * HOUR + timedelta(minutes=1)


def batch(state: str, since: datetime = LONG, **times: datetime) -> BatchFact:
    return BatchFact("v", "v-m1-b0", state, since, **times)


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        pytest.param(Facts(), None, id="nothing"),
        pytest.param(
            Facts(records=(Group("v", "prepared", LONG, 3),)),
            f"records that do not move: 3 prepared; the oldest since {MINUTE}",
            id="records",
        ),
        pytest.param(
            Facts(records=(Group("v", "prepared", SHORT, 3),)), None, id="records-not-yet"
        ),
        pytest.param(
            Facts(
                records=(
                    Group("v", "retry_wait", LONG, 1),
                    Group("v", "prepared", LONG - HOUR, 2),
                    Group("v", "prepared", SHORT, 9),
                    Group("v", "prepared", LONG, 3),
                )
            ),
            "records that do not move: 5 prepared, 1 retry_wait; "
            "the oldest since 2030-01-09 10:59 UTC",
            id="records-of-several-moments",
        ),
        pytest.param(
            Facts(records=(Group("w", "prepared", LONG, 3),)), None, id="a-version-of-more-patience"
        ),
        pytest.param(
            Facts(batches=(batch("running", deadline=NOW - HOUR, next_poll=NOW - HOUR),)),
            "batch v-m1-b0 passed its deadline at 2030-01-10 11:00 UTC unasked",
            id="past-its-deadline",
        ),
        pytest.param(
            Facts(
                batches=(
                    batch("submitted", deadline=NOW - HOUR, next_poll=NOW - timedelta(minutes=5)),
                )
            ),
            None,
            id="past-its-deadline-and-asked-about",
        ),
        pytest.param(
            Facts(batches=(batch("running", deadline=NOW + HOUR, next_poll=NOW - 9 * HOUR),)),
            None,
            id="the-provider-has-time",
        ),
        pytest.param(Facts(batches=(batch("running"),)), None, id="no-deadline"),
        pytest.param(
            Facts(batches=(batch("quarantined", NOW),)),
            "batch v-m1-b0 has been quarantined since 2030-01-10 12:00 UTC and waits for a person",
            id="quarantined",
        ),
        pytest.param(
            Facts(batches=(batch("incident"),)),
            f"batch v-m1-b0 has been incident since {MINUTE} and waits for a person",
            id="incident",
        ),
        pytest.param(
            Facts(batches=(batch("results_available"),)),
            f"batch v-m1-b0 has been results_available since {MINUTE}",
            id="results-that-nobody-fetches",
        ),
        pytest.param(
            Facts(batches=(batch("results_available", SHORT),)), None, id="results-just-now"
        ),
        pytest.param(Facts(batches=(batch("prepared"),)), None, id="prepared-counts-as-records"),
        pytest.param(
            Facts(batches=tuple(batch("quarantined", NOW) for _ in range(5))),
            "; ".join(
                [
                    "batch v-m1-b0 has been quarantined since 2030-01-10 12:00 UTC and waits for "
                    "a person"
                ]
                * 3
                + ["and 2 more batches"]
            ),
            id="many-batches",
        ),
        pytest.param(
            Facts(canaries={"v": "v-c1 failed"}),
            "batches wait for a canary: v-c1 failed",
            id="canary",
        ),
    ],
)
def test_stuck_work(facts: Facts, told: str | None) -> None:
    found = find_stuck(facts, NOW, LIMITS)
    assert found == {STUCK: {} if told is None else {"v": told}, REVIEWS: {}, SILENT: {}}


@pytest.mark.parametrize(
    ("reviews", "told"),
    [
        pytest.param((Group("v", "", LONG, 3),), {}, id="not-yet"),
        pytest.param(
            (Group("w", "", LONG, 1), Group("w", "", SHORT, 1)),
            {"w": f"1 review has been open for too long, the oldest since {MINUTE}"},
            id="one",
        ),
        pytest.param(
            (Group("w", "", LONG, 1), Group("w", "", LONG - HOUR, 2)),
            {"w": "3 reviews have been open for too long, the oldest since 2030-01-09 10:59 UTC"},
            id="several",
        ),
    ],
)
def test_reviews(reviews: tuple[Group, ...], told: dict[str, str]) -> None:
    assert find_stuck(Facts(reviews=reviews), NOW, LIMITS)[REVIEWS] == told


@pytest.mark.parametrize(
    ("silence", "silent"),
    [
        pytest.param(timedelta(seconds=31), False, id="a-tick-ago"),
        pytest.param(HOUR, False, id="an-hour"),
        pytest.param(2 * HOUR, True, id="two-hours"),
    ],
)
def test_sources_that_automation_does_not_look_at(silence: timedelta, silent: bool) -> None:
    found = find_stuck(Facts(sources={"shop": silence}), NOW, LIMITS)[SILENT]
    assert list(found) == (["shop"] if silent else [])


def test_the_words_stay_the_same_while_nothing_changes() -> None:
    facts = Facts(records=(Group("v", "prepared", LONG, 3),), reviews=(Group("w", "", LONG, 1),))
    assert find_stuck(facts, NOW, LIMITS) == find_stuck(facts, NOW + 5 * HOUR, LIMITS)
