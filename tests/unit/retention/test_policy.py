"""Which things a policy lets go, case by case."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from pipeline_assets.retention.policy import (
    ALL,
    DECLARED,
    LATE,
    NEEDED,
    NEWEST,
    NOT_ENDED,
    OPEN_RECORDS,
    OPEN_WORK,
    SHARED,
    STILL_RUNNING,
    YOUNG,
    RetentionPolicy,
    Run,
    UnknownWhat,
    decide_requests,
    decide_results,
    decide_runs,
    decide_texts,
    parse_what,
)
from resources.clock import to_text
from resources.ledger.prunes import BATCH_SCHEMA, FILE_SCHEMA, PACK_SCHEMA

NOW = datetime(2030, 6, 1, tzinfo=UTC)
POLICY = RetentionPolicy()
NOBODY = pl.Series([], dtype=pl.String)


def ago(days: float) -> str:
    return to_text(NOW - timedelta(days=days))


def batch(
    state: str = "completed", ended: str | None = None, unsettled: int = 0, number: int = 1
) -> tuple[int, str, str, str, str | None, int]:
    return (number, f"v-m1-b{number}", state, f"request-{number}", ended or ago(91), unsettled)


def batches(*rows: tuple[int, str, str, str, str | None, int]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=BATCH_SCHEMA, orient="row")


@pytest.mark.parametrize(
    ("row", "why"),
    [
        pytest.param(batch(), None, id="old and settled"),
        pytest.param(batch(ended=ago(89)), YOUNG, id="too young"),
        pytest.param(batch(ended=ago(90)), YOUNG, id="of exactly the age"),
        pytest.param(batch(unsettled=1), OPEN_RECORDS, id="one record is open or published"),
        pytest.param(batch("retry_required"), NOT_ENDED, id="waits for retries"),
        pytest.param(batch("incident"), NOT_ENDED, id="is an incident"),
        pytest.param(batch("quarantined"), NOT_ENDED, id="is in doubt"),
        pytest.param(batch("cancelled"), None, id="was discarded"),
        pytest.param(batch("completed_with_errors"), None, id="some failed for good"),
    ],
)
def test_requests_and_results_of_a_batch(
    row: tuple[int, str, str, str, str | None, int], why: str | None
) -> None:
    frame = batches(row)
    assert decide_requests(frame, NOBODY, POLICY, NOW)["why"].to_list() == [why]
    files = pl.DataFrame([(1, "result-1", 0)], schema=FILE_SCHEMA, orient="row")
    assert decide_results(frame, files, POLICY, NOW)["why"].to_list() == [why]


def test_a_file_with_late_results_of_open_records_stays() -> None:
    files = pl.DataFrame([(1, "result-1", 2), (1, "result-2", 0)], schema=FILE_SCHEMA, orient="row")
    found = decide_results(batches(batch()), files, POLICY, NOW)
    assert dict(found.select("digest", "why").iter_rows()) == {"result-1": LATE, "result-2": None}


def test_a_file_stays_as_long_as_anything_that_names_it() -> None:
    files = pl.DataFrame([(1, "same", 0), (2, "same", 0)], schema=FILE_SCHEMA, orient="row")
    two = batches(batch(), batch(unsettled=1, number=2))
    assert decide_results(two, files, POLICY, NOW)["why"].to_list() == [OPEN_RECORDS]
    canaries = pl.Series(["request-1"])
    assert decide_requests(batches(batch()), canaries, POLICY, NOW)["why"].to_list() == [SHARED]


@pytest.mark.parametrize(
    ("key", "at", "needed", "why"),
    [
        pytest.param("old", ago(31), 0, None, id="nobody declares or needs it"),
        pytest.param("new", ago(31), 0, DECLARED, id="a version declares its parser"),
        pytest.param("old", ago(31), 1, NEEDED, id="a published record was made of it"),
        pytest.param("old", ago(29), 0, YOUNG, id="too young"),
    ],
)
def test_texts(key: str, at: str, needed: int, why: str | None) -> None:
    packs = pl.DataFrame([("pack", key, at, 3, needed)], schema=PACK_SCHEMA, orient="row")
    assert decide_texts(packs, {"new"}, POLICY, NOW)["why"].to_list() == [why]


def run(
    name: str, days: float | None, *, partition: str | None = "v", succeeded: bool = True
) -> Run:
    ended = None if days is None else NOW - timedelta(days=days)
    return Run(name, "job", (), partition, succeeded, ended)


def test_runs() -> None:
    runs = [
        run("running", None, succeeded=False),
        run("failed since", 40, succeeded=False),
        run("newest good", 50),
        run("older", 60),
        run("other partition", 70, partition="w"),
        run("open", 80, partition="o"),
        run("open before", 90, partition="o"),
    ]
    going, kept = decide_runs(runs, {"o"}, NOW - timedelta(days=30))
    assert [one.run_id for one in going] == ["failed since", "older"]
    assert kept == {STILL_RUNNING: 1, NEWEST: 3, OPEN_WORK: 1}


def test_a_young_run_stays() -> None:
    going, kept = decide_runs([run("a", 1), run("b", 2)], set(), NOW - timedelta(days=30))
    assert (going, kept) == ([], {NEWEST: 1, YOUNG: 1})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (None, ALL),
        ("results", ("results",)),
        ("runs, results", ("results", "runs")),
    ],
)
def test_what_is_a_list(text: str | None, found: tuple[str, ...]) -> None:
    assert parse_what(text) == found


@pytest.mark.parametrize("text", ["", ",", "everything", "results,manifests"])
def test_what_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(UnknownWhat, match="results, requests, parses, leftovers, runs"):
        parse_what(text)


def test_leftovers_are_never_taken_younger_than_a_day() -> None:
    policy = POLICY.older_than(0)
    assert (policy.results, policy.leftovers) == (0, 1)
    assert POLICY.older_than(7).leftovers == 7
