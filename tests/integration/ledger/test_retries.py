"""What was tried, what is due and what a version has used up, as both databases tell it."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from sqlalchemy import insert, select, update

from resources.ledger.engine import Ledger
from resources.ledger.retries import (
    AGAIN_SCHEMA,
    due_retries,
    newest_attempts,
    retries_made,
    set_not_before,
    store_decisions,
    tried_before,
    waiting_retries,
)
from resources.ledger.schema import (
    attempts,
    batches,
    dispositions,
    documents,
    manifests,
    record_state,
    records,
    retry_decisions,
    sources,
)
from tests.integration.ledger.support import AT, DIGEST, make_batch, make_version, numbers

SOON, LATER = "2030-01-02T04:00:00.000000Z", "2030-01-02T05:00:00.000000Z"


class Tries:
    """A version's attempts, written row by row."""

    def __init__(self, ledger: Ledger, versions: int = 1) -> None:
        self.ledger = ledger
        with ledger.write() as connection:
            connection.execute(
                insert(sources).values(
                    source_no=1, name="s", kind="folder", location="/", registered_at=AT
                )
            )
            for version in range(1, versions + 1):
                make_version(connection, ledger, version)

    def batch(self, number: int, *, version: int = 1, at: str | None = AT, why: str = "x") -> None:
        with self.ledger.write() as connection:
            make_batch(connection, self.ledger, number, version)
            connection.execute(
                update(batches).where(batches.c.batch_no == number).values(submitted_at=at)
            )
            connection.execute(
                update(manifests).where(manifests.c.manifest_no == number).values(replay_reason=why)
            )

    def record(self, number: int, *, version: int = 1, state: str = "submitted") -> None:
        with self.ledger.write() as connection:
            connection.execute(
                insert(documents).values(
                    document_no=number, source_no=1, document_id=f"s/{number}", first_seen_at=AT
                )
            )
            connection.execute(
                insert(records).values(
                    record_no=number,
                    record_id=f"r{number}",
                    version_no=version,
                    document_no=number,
                    source_version_no=number,
                    checksum=DIGEST,
                    operation="extract",
                    replay_reason="new_source",
                    manifest_no=1,
                )
            )
            connection.execute(
                insert(record_state).values(record_no=number, state=state, version=1, shard=0)
            )

    def attempt(
        self,
        number: int,
        record: int,
        batch: int,
        failure: str | None = None,
        path: str = "first",
        **decision: Any,
    ) -> None:
        with self.ledger.write() as connection:
            ordinal = len(
                connection.execute(
                    select(attempts.c.attempt_no).where(attempts.c.record_no == record)
                ).all()
            )
            connection.execute(
                insert(attempts).values(
                    attempt_no=number,
                    batch_no=batch,
                    record_no=record,
                    ordinal=ordinal + 1,
                    recovery_path=path,
                    request_digest=DIGEST,
                    request_offset=0,
                    request_length=1,
                )
            )
            if failure is None:
                return
            disposition = failure if failure == "expired" else "retryable_failure"
            connection.execute(
                insert(dispositions).values(
                    attempt_no=number,
                    disposition=disposition,
                    failure_class=failure,
                    diagnostics="",
                )
            )
            if decision:
                values = {"decision": "retry", "recovery_path": "repeat", "counted": 1} | decision
                connection.execute(
                    insert(retry_decisions).values(
                        attempt_no=number,
                        record_no=record,
                        failure_class=failure,
                        reason="",
                        decided_at=AT,
                        **values,
                    )
                )


@pytest.fixture
def tries(ledger: Ledger) -> Tries:
    return Tries(ledger, versions=2)


def history(tries: Tries, attempt: int, record: int, failure: str) -> dict[str, Any]:
    failed = pl.DataFrame(
        [(attempt, record, failure)],
        schema={"attempt_no": pl.Int64, "record_no": pl.Int64, "failure_class": pl.String},
        orient="row",
    )
    with tries.ledger.write() as connection:
        return tried_before(connection, tries.ledger, failed).row(0, named=True)


def test_the_first_failure_has_no_history(tries: Tries) -> None:
    tries.batch(1)
    tries.record(1)
    tries.attempt(1, 1, 1)
    assert history(tries, 1, 1, "transport") == {
        "attempt_no": 1,
        "record_no": 1,
        "failure_class": "transport",
        "attempts": 0,
        "of_class": 0,
        "free": 0,
        "paths": "",
        "first_submitted_at": AT,
    }


def test_what_was_tried_is_counted_before_the_failed_attempt(tries: Tries) -> None:
    for number, at in ((1, SOON), (2, AT), (3, None), (4, LATER), (5, LATER), (6, LATER)):
        tries.batch(number, at=at)
    tries.record(1)
    tries.attempt(1, 1, 1, "transport", counted=1)
    tries.attempt(2, 1, 2, "expired", path="repeat", counted=0)
    tries.attempt(3, 1, 3, "truncated", path="repeat", counted=1)
    tries.attempt(4, 1, 4, "transport", path="larger_output", counted=1)
    tries.attempt(5, 1, 5, path="repeat")
    tries.attempt(6, 1, 6, "transport", path="repair_prompt", counted=1)
    found = history(tries, 5, 1, "transport")
    assert (found["attempts"], found["of_class"], found["free"]) == (3, 2, 1)
    assert found["paths"] == "larger_output repeat"
    assert found["first_submitted_at"] == AT, "the earliest, whatever its number"


def test_without_a_decision_the_disposition_counts(tries: Tries) -> None:
    """Failures of a release that kept no decisions."""
    for number in (1, 2, 3):
        tries.batch(number)
    tries.record(1)
    tries.attempt(1, 1, 1, "expired")
    tries.attempt(2, 1, 2, "transport", path="repeat")
    tries.attempt(3, 1, 3, path="repeat")
    found = history(tries, 3, 1, "transport")
    assert (found["attempts"], found["of_class"], found["free"]) == (1, 1, 1)


def test_a_requeue_is_a_new_start(tries: Tries) -> None:
    for number, at in ((1, AT), (2, SOON), (3, LATER), (4, LATER)):
        tries.batch(number, at=at)
    tries.record(1)
    tries.attempt(1, 1, 1, "transport", counted=1)
    tries.attempt(2, 1, 2, "transport", path="larger_output", decision="dead_letter")
    tries.attempt(3, 1, 3, "transport", path="requeue", counted=1)
    tries.attempt(4, 1, 4, path="repeat")
    found = history(tries, 4, 1, "transport")
    assert (found["attempts"], found["of_class"], found["paths"]) == (1, 1, "repeat")
    assert found["first_submitted_at"] == LATER
    assert history(tries, 2, 1, "transport")["attempts"] == 1, "what was before stays as it was"


def waits(tries: Tries, record: int, attempt: int, until: str | None, **given: Any) -> None:
    """A record that waits for a retry since this attempt."""
    version = given.pop("version", 1)
    tries.record(record, version=version, state=given.pop("state", "retry_wait"))
    decision: dict[str, Any] = {"counted": 1} | given
    tries.attempt(attempt, record, version, "transport", **decision)
    if until is not None:
        with tries.ledger.write() as connection:
            connection.execute(
                update(record_state)
                .where(record_state.c.record_no == record)
                .values(not_before=until)
            )


def due(tries: Tries, at: str, version: int = 1) -> list[int]:
    return due_retries(tries.ledger, version, at)["record_no"].to_list()


def test_what_is_due(tries: Tries) -> None:
    tries.batch(1)
    tries.batch(2, version=2)
    waits(tries, 1, 1, SOON)
    waits(tries, 2, 2, LATER)
    waits(tries, 3, 3, None)
    waits(tries, 4, 4, SOON, decision="hold")
    waits(tries, 5, 5, SOON, state="prepared")
    waits(tries, 6, 6, SOON, decision="dead_letter", state="dead_letter")
    waits(tries, 7, 7, SOON, version=2)
    assert due(tries, AT) == [3]
    assert due(tries, SOON) == [1, 3, 4]
    assert due(tries, LATER) == [1, 2, 3, 4]
    assert due(tries, LATER, version=2) == [7]
    assert waiting_retries(tries.ledger).rows() == [(1, 4, SOON), (2, 1, SOON)]
    found = due_retries(tries.ledger, 1, LATER)
    assert dict(found.schema) == AGAIN_SCHEMA
    assert found["parent_attempt_no"].to_list() == [1, 2, 3, 4]


def test_only_the_newest_decision_counts(tries: Tries) -> None:
    tries.batch(1)
    waits(tries, 1, 1, SOON)
    tries.attempt(2, 1, 1, "truncated", path="repeat", recovery_path="larger_output")
    (row,) = due_retries(tries.ledger, 1, SOON).rows(named=True)
    assert (row["parent_attempt_no"], row["parent_ordinal"], row["path"]) == (
        2,
        2,
        "larger_output",
    )
    assert waiting_retries(tries.ledger)["records"].to_list() == [1]


def test_which_paths_a_record_has_gone(tries: Tries) -> None:
    tries.batch(1)
    waits(tries, 1, 1, SOON)
    tries.attempt(2, 1, 1, "truncated", path="larger_output", counted=1)
    tries.attempt(3, 1, 1, "too_large", path="fewer_pages", counted=1)
    waits(tries, 2, 4, SOON)
    rows = due_retries(tries.ledger, 1, SOON)
    assert rows.select("larger_output", "repair_prompt", "fewer_pages").rows() == [
        (1, 0, 1),
        (0, 0, 0),
    ]


def test_newest_attempts_of_given_records(tries: Tries) -> None:
    tries.batch(1)
    waits(tries, 1, 1, SOON, state="published")
    waits(tries, 2, 2, SOON)
    waits(tries, 3, 3, SOON, version=1)
    tries.attempt(4, 1, 1, path="repeat")
    with tries.ledger.write() as connection:
        found = newest_attempts(connection, tries.ledger, 1, numbers(2, 1, 1, 99))
        other = newest_attempts(connection, tries.ledger, 2, numbers(1))
    assert found.select("record_no", "parent_attempt_no", "state").rows() == [
        (1, 4, "published"),
        (2, 2, "retry_wait"),
    ]
    assert other.is_empty()


def test_decisions_set_when_records_are_due(tries: Tries) -> None:
    tries.batch(1)
    for number, state in ((1, "retry_wait"), (2, "retry_wait"), (3, "dead_letter")):
        tries.record(number, state=state)
        tries.attempt(number, number, 1)
    decided = pl.DataFrame(
        {
            "attempt_no": [1, 2, 3],
            "record_no": [1, 2, 3],
            "decision": ["retry", "hold", "dead_letter"],
            "recovery_path": ["repeat"] * 3,
            "counted": [1, 0, 1],
            "failure_class": ["transport", "quota", "refused"],
            "reason": ["a", "b", "c"],
            "not_before": [SOON, LATER, None],
        }
    )
    with tries.ledger.write() as connection:
        store_decisions(connection, tries.ledger, decided.clear(), AT)
        store_decisions(connection, tries.ledger, decided, AT)
    with tries.ledger.read() as connection:
        states = connection.execute(
            select(record_state.c.not_before).order_by(record_state.c.record_no)
        ).scalars()
        assert list(states) == [SOON, LATER, None]
        rows = connection.execute(select(retry_decisions).order_by(retry_decisions.c.attempt_no))
        kept = [(row.decision, row.counted, row.not_before, row.decided_at) for row in rows]
    assert kept == [
        ("retry", 1, SOON, AT),
        ("hold", 0, LATER, AT),
        ("dead_letter", 1, None, AT),
    ]


def test_only_waiting_records_are_put_off(tries: Tries) -> None:
    tries.batch(1)
    waits(tries, 1, 1, SOON)
    waits(tries, 2, 2, None, state="prepared")
    with tries.ledger.write() as connection:
        set_not_before(connection, tries.ledger, numbers(1, 2), LATER)
        found = connection.execute(
            select(record_state.c.not_before).order_by(record_state.c.record_no)
        ).scalars()
        assert list(found) == [LATER, None]


def test_retries_that_were_made_and_that_wait(tries: Tries) -> None:
    tries.batch(1)
    tries.batch(2, version=2)
    with tries.ledger.read() as connection:
        assert retries_made(connection, 1) == 0
    for number, why, size, state in (
        (3, "transient_retry", 5, "prepared"),
        (4, "transient_retry", 7, "completed"),
        (5, "transient_retry", 100, "cancelled"),
        (6, "operator", 1000, "completed"),
    ):
        tries.batch(number, why=why)
        with tries.ledger.write() as connection:
            connection.execute(
                update(batches)
                .where(batches.c.batch_no == number)
                .values(expected_records=size, state=state)
            )
    waits(tries, 1, 1, SOON)
    waits(tries, 2, 2, SOON, decision="hold")
    waits(tries, 3, 3, SOON, version=2)
    with tries.ledger.read() as connection:
        assert retries_made(connection, 1) == 5 + 7 + 1
        assert retries_made(connection, 2) == 1
