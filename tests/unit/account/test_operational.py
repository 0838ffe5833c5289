"""The figures of operation, worked out by hand from a few batches and their moves."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from sqlalchemy import Connection, insert

from pipeline_assets.account.operational import (
    DISPOSITIONS,
    UNRECONCILED,
    OperationalFacts,
    ProviderCounts,
    operational_facts,
)
from pipeline_assets.distribution import distribution
from resources.clock import to_text
from resources.context import Context, open_context
from resources.ledger import schema
from resources.settings import Settings
from tests.support.clock import FrozenClock
from tests.support.small_archive import KEY, Archive

SPEC = '{"provider":"openai","mode":"batch"}'
OTHER = '{"provider":"anthropic","mode":"online"}'
NOTHING = distribution(pl.Series([], dtype=pl.Float64))

# state of the batch, (from, to, seconds after the start) of its moves, records, other columns
WAY = (("submitting", "submitted", 100), ("submitted", "running", 400))
BATCHES = (
    (
        "completed",
        (
            *WAY,
            ("running", "results_available", 4000),
            ("results_available", "reconciling", 4010),
            ("reconciling", "incident", 4020),
            ("incident", "reconciling", 4500),
            ("reconciling", "completed", 4600),
        ),
        10,
        {"polls": 7, "reconciled_records": 10},
    ),
    (
        # Never seen running, and ended early: there was nothing to fetch.
        "retry_required",
        (
            ("submitting", "submitted", 100),
            ("submitted", "reconciling", 700),
            ("reconciling", "retry_required", 730),
        ),
        4,
        {"polls": 1, "reconciled_records": 4},
    ),
    (
        "running",
        (*WAY,),
        6,
        {
            "polls": 3,
            "reconciled_records": 2,
            "last_counts": '{"total":6,"succeeded":2,"failed":1,"pending":null}',
        },
    ),
    ("submitted", (("submitting", "submitted", 9000),), 5, {"polls": 1, "last_counts": None}),
    ("submitted", (("submitting", "submitted", 9940),), 2, {"last_counts": '{"total":2}'}),
    ("quarantined", (("submitting", "quarantined", 5000),), 3, {}),
    ("prepared", (), 8, {}),
    ("results_available", (*WAY, ("running", "results_available", 9400)), 1, {"polls": 2}),
)
NOW = 10_000


@pytest.fixture
def context(ledger_url: str, tmp_path: Path) -> Iterator[Context]:
    """Return a context on a ledger with those batches, and one of another version."""
    clock = FrozenClock()
    settings = Settings(state=tmp_path / "state", ledger_url=ledger_url)
    with open_context(settings, clock=clock, rng=random.Random(7)) as opened:
        begun = clock()
        with opened.ledger.write() as connection:
            _versions(connection, to_text(begun))
            first = 1
            for number, (state, way, records, columns) in enumerate(BATCHES, start=1):
                _batch(connection, number, state, first, records, columns, to_text(begun))
                _moves(connection, number, way, begun)
                first += records
            _attempts(connection, opened)
        clock.advance(NOW)
        yield opened


def _versions(connection: Connection, at: str) -> None:
    for number, spec in ((1, SPEC), (2, OTHER)):
        connection.execute(
            insert(schema.processing_versions).values(
                version_no=number,
                key=f"made-up-{number}",
                workload="equipment_manuals",
                digest="0" * 64,
                spec=spec,
                state="active",
                state_reason="",
                frozen_at=at,
            )
        )
        connection.execute(
            insert(schema.manifests).values(
                manifest_no=number,
                manifest_id=f"m-{number}",
                version_no=number,
                contract_version="1",
                digest="0" * 64,
                expected=1,
                artifact="0" * 64,
                replay_reason="new_source",
                frozen_at=at,
            )
        )


def _batch(
    connection: Connection,
    number: int,
    state: str,
    first: int,
    records: int,
    columns: Mapping[str, object],
    at: str,
) -> None:
    values: dict[str, object] = {
        "batch_no": number,
        "batch_id": f"m-b{number}",
        "batch_key": f"{number:012}",
        "manifest_no": 1,
        "version_no": 1,
        "manifest_digest": "0" * 64,
        "provider": "openai",
        "mode": "batch",
        "model": "m",
        "request_schema_version": 1,
        "request_artifact": "0" * 64,
        "request_bytes": 1,
        "state": state,
        "polls": 0,
        "expected_records": records,
        "reconciled_records": 0,
        "first_attempt_no": first,
        "last_attempt_no": first + records - 1,
        "prepared_at": at,
    }
    connection.execute(insert(schema.batches).values(**values | dict(columns)))


def _moves(
    connection: Connection, number: int, way: tuple[tuple[str, str, int], ...], begun: datetime
) -> None:
    # A move of the batch's records stands in the same chain, and is none of the batch's.
    rows = [("record", "prepared", "submitted", 50), *(("batch", *step) for step in way)]
    for step, (machine, left, to, seconds) in enumerate(rows):
        connection.execute(
            insert(schema.moves).values(
                chain=f"batch:{number}",
                machine=machine,
                subject_no=number,
                from_state=left,
                to_state=to,
                reason="",
                actor="",
                cause="",
                moved_at=to_text(begun + timedelta(seconds=seconds)),
                members=0,
                members_digest="0" * 64,
                previous_digest=f"{number:03}{step:061}",
                digest=f"{number:03}{step + 1:061}",
            )
        )


def _attempts(connection: Connection, context: Context) -> None:
    """Of every batch; those of the third follow failed ones, one of the prepared batch too."""
    total = sum(records for _, _, records, _ in BATCHES)
    numbers = pl.int_range(1, total + 1, eager=True, dtype=pl.Int64)
    again = numbers.is_between(15, 20) | (numbers == 31)
    frame = pl.DataFrame({"attempt_no": numbers}).with_columns(
        batch_no=pl.lit(1, dtype=pl.Int64),
        record_no="attempt_no",
        ordinal=pl.lit(1, dtype=pl.Int64),
        recovery_path=pl.when(numbers == 15)
        .then(pl.lit("larger_output"))
        .when(again)
        .then(pl.lit("repeat"))
        .otherwise(pl.lit("first")),
        request_digest=pl.lit("0" * 64),
        request_offset=pl.lit(0, dtype=pl.Int64),
        request_length=pl.lit(1, dtype=pl.Int64),
        parent_attempt_no=pl.when(again).then(1),
    )
    context.ledger.dialect.load(connection, schema.attempts, frame)
    answers = (
        *[("succeeded", None)] * 9,
        ("permanent_failure", "refused"),
        *[("retryable_failure", "truncated")] * 3,
        ("expired", "expired"),
    )
    for number, (disposition, failure) in enumerate(answers, start=1):
        connection.execute(
            insert(schema.dispositions).values(
                attempt_no=number,
                disposition=disposition,
                failure_class=failure,
                diagnostics="",
            )
        )
    for number, size in ((1, 700), (2, 300)):
        connection.execute(
            insert(schema.result_files).values(
                result_file_no=number,
                batch_no=1,
                kind="output",
                artifact=f"{number:064}",
                bytes=size,
                lines=number,
                stored_at=context.ledger.now(),
            )
        )


def test_every_figure_of_a_version(context: Context) -> None:
    facts, other = operational_facts(context)
    assert facts == OperationalFacts(
        processing_version="made-up-1",
        provider="openai",
        mode="batch",
        queue_now=distribution(pl.Series([1000.0, 60.0])),
        queue_ended=distribution(pl.Series([300.0, 600.0, 300.0, 300.0])),
        running_now=distribution(pl.Series([9600.0])),
        running_ended=distribution(pl.Series([3600.0, 9000.0])),
        reconciling_now=distribution(pl.Series([600.0])),
        reconciling_ended=distribution(pl.Series([600.0, 30.0])),
        provider_counts=ProviderCounts(
            jobs=3, silent=1, total=8, succeeded=2, failed=1, pending=None
        ),
        dispositions={
            "succeeded": 9,
            "retryable_failure": 3,
            "permanent_failure": 1,
            "cancelled": 0,
            "expired": 1,
        },
        failures={"refused": 1, "truncated": 3, "expired": 1},
        jobs=6,
        polls=14,
        most_polls=7,
        attempts=28,
        retries={"larger_output": 1, "repeat": 5},
        result_files=2,
        download_bytes=1000,
        result_lines=3,
        unreconciled={
            "submitting": 0,
            "quarantined": 3,
            "submitted": 7,
            "running": 4,
            "results_available": 1,
            "reconciling": 0,
            "incident": 0,
        },
        incidents=0,
        incidents_ever=1,
        quarantined=1,
        quarantined_ever=1,
    )
    assert facts.retry_rate == 6 / 28
    assert facts.polls_per_job == 14 / 6
    assert (other.processing_version, other.provider, other.mode) == (
        "made-up-2",
        "anthropic",
        "online",
    )


def test_a_version_without_batches(context: Context) -> None:
    (facts,) = operational_facts(context, ["made-up-2", "never-used"])
    assert facts.queue_now == facts.running_ended == facts.reconciling_ended == NOTHING
    assert facts.dispositions == dict.fromkeys(DISPOSITIONS, 0)
    assert facts.unreconciled == dict.fromkeys(UNRECONCILED, 0)
    assert facts.provider_counts == ProviderCounts(0, 0, None, None, None, None)
    assert (facts.jobs, facts.attempts, facts.download_bytes) == (0, 0, 0)
    assert facts.retry_rate is None
    assert facts.polls_per_job is None
    assert facts.as_json()["retry_rate"] is None


def test_after_a_real_run(read_archive: Archive) -> None:
    (facts,) = operational_facts(read_archive.context)
    assert (facts.processing_version, facts.provider, facts.mode) == (KEY, "baseline", "embedded")
    assert (facts.jobs, facts.attempts, facts.polls, facts.retries) == (1, 3, 0, {})
    assert facts.dispositions["succeeded"] == facts.result_lines == 3
    assert facts.download_bytes > 0
    assert facts.queue_ended.count == facts.running_ended.count == 1
    assert facts.reconciling_ended.count == 1
    assert sum(facts.unreconciled.values()) == 0
    assert facts.as_json()["polls_per_job"] == 0
