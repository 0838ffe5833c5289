"""Episodes of dead letters on both databases: opened, found, closed, and those of old releases."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
import pytest
from sqlalchemy import Connection, insert, select

from resources.ledger.dead_letters import (
    DEAD_LETTER_SCHEMA,
    FOUND_SCHEMA,
    UNCLASSIFIED,
    assign_dead_letters,
    close_dead_letters,
    find_dead_letters,
    open_dead_letters,
    stale_episodes,
)
from resources.ledger.engine import Ledger
from resources.ledger.moves import batch_chain, move_records
from resources.ledger.schema import (
    attempts,
    dead_letters,
    dispositions,
    documents,
    records,
    result_files,
    results,
    sources,
)
from tests.integration.ledger.support import AT, CAUSE, DIGEST, numbers, seeded

LATER = "2030-01-03T03:04:05.000000Z"
PATH = ("queued", "prepared", "submitted", "dead_letter")


def given_up(ledger: Ledger, *members: int, batch: int = 1, classified: bool = True) -> None:
    """Records of one batch, one attempt each (number = 100 + record), all of them dead letters."""
    chain = seeded(ledger, members, batch)
    with ledger.write() as connection:
        connection.execute(
            insert(sources).values(
                source_no=batch, name=f"s{batch}", kind="folder", location="/", registered_at=AT
            )
        )
        connection.execute(
            insert(result_files).values(
                result_file_no=batch,
                batch_no=batch,
                kind="output",
                artifact=DIGEST,
                bytes=100,
                lines=1,
                stored_at=AT,
            )
        )
        for number in members:
            connection.execute(
                insert(documents).values(
                    document_no=number,
                    document_id=f"s/{number}",
                    source_no=batch,
                    first_seen_at=AT,
                )
            )
            connection.execute(
                insert(records).values(
                    record_no=number,
                    record_id=f"r{number}",
                    version_no=batch,
                    document_no=number,
                    source_version_no=number,
                    checksum=DIGEST,
                    operation="extract",
                    replay_reason="new_source",
                    manifest_no=batch,
                )
            )
            add_attempt(connection, number, 100 + number, batch, classified=classified)
        for before, after in pairwise(PATH):
            move_records(connection, ledger.dialect, numbers(*members), before, after, CAUSE, chain)


def add_attempt(
    connection: Connection,
    record: int,
    attempt: int,
    batch: int,
    *,
    classified: bool,
    line: int | None = None,
) -> None:
    line = record if line is None else line
    connection.execute(
        insert(attempts).values(
            attempt_no=attempt,
            batch_no=batch,
            record_no=record,
            ordinal=1,
            recovery_path="none",
            request_digest=DIGEST,
            request_offset=0,
            request_length=1,
        )
    )
    connection.execute(
        insert(dispositions).values(
            attempt_no=attempt,
            disposition="permanent_failure" if classified else "succeeded",
            failure_class="refused" if classified else None,
            diagnostics="the model refused" if classified else "",
            result_file_no=batch,
            line=line,
        )
    )
    connection.execute(
        insert(results).values(
            result_file_no=batch,
            line=line,
            attempt_no=attempt,
            line_offset=10 * line,
            line_length=7,
        )
    )


def rows(*members: int, version: int = 1, **changes: str) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "attempt_no": 100 + number,
                "record_no": number,
                "version_no": version,
                "failure_class": "refused",
                "reason": "the model refused",
                "owner": "team:archive",
                "opened_at": AT,
            }
            | changes
            for number in members
        ],
        schema=DEAD_LETTER_SCHEMA,
    )


def store(ledger: Ledger, frame: pl.DataFrame) -> None:
    with ledger.write() as connection:
        open_dead_letters(connection, ledger, frame)


def find(ledger: Ledger, version: int | None = 1, *, only_open: bool = True) -> pl.DataFrame:
    with ledger.read() as connection:
        return find_dead_letters(connection, ledger, version, only_open=only_open)


def close(ledger: Ledger, *members: int, closing: str = "discarded") -> int:
    with ledger.write() as connection:
        return close_dead_letters(
            connection,
            ledger,
            numbers(*members),
            closing=closing,
            reason="of no use",
            by="a person",
            at=LATER,
        )


def leave(ledger: Ledger, number: int, state: str) -> None:
    with ledger.write() as connection:
        move_records(
            connection,
            ledger.dialect,
            numbers(number),
            "dead_letter",
            state,
            CAUSE,
            batch_chain(1),
        )


def test_an_open_episode_says_why_since_when_whose_and_where_the_answer_lies(
    ledger: Ledger,
) -> None:
    given_up(ledger, 1)
    store(ledger, rows(1))
    found = find(ledger)
    assert dict(found.schema) == FOUND_SCHEMA
    assert found.to_dicts() == [
        {
            "record_no": 1,
            "record_id": "r1",
            "document_id": "s/1",
            "version_no": 1,
            "version_key": "v1",
            "state": "dead_letter",
            "failure_class": "refused",
            "reason": "the model refused",
            "owner": "team:archive",
            "opened_at": AT,
            "closed_at": None,
            "closing": None,
            "closing_reason": None,
            "closed_by": None,
            "recorded": 1,
            "attempts": 1,
            "newest_batch_no": 1,
            "attempt_no": 101,
            "ordinal": 1,
            "recovery_path": "none",
            "batch_no": 1,
            "batch_id": "b1",
            "disposition": "permanent_failure",
            "diagnostics": "the model refused",
            "result_file_no": 1,
            "result_artifact": DIGEST,
            "line": 1,
            "line_offset": 10,
            "line_length": 7,
        }
    ]


@pytest.mark.parametrize(
    ("classified", "failure_class", "reason"),
    [
        pytest.param(True, "refused", "the model refused", id="failed"),
        pytest.param(False, UNCLASSIFIED, "a reason", id="judged unusable"),
    ],
)
def test_a_dead_letter_without_an_episode_is_found_too(
    ledger: Ledger, classified: bool, failure_class: str, reason: str
) -> None:
    given_up(ledger, 1, 2, classified=classified)
    store(ledger, rows(2))
    found = find(ledger).row(0, named=True)
    assert (found["record_no"], found["recorded"], found["owner"]) == (1, 0, "")
    assert (found["failure_class"], found["reason"]) == (failure_class, reason)
    assert (found["opened_at"], found["attempt_no"]) == (AT, 101)
    assert find(ledger)["recorded"].to_list() == [0, 1]


def test_opening_again_changes_nothing(ledger: Ledger) -> None:
    given_up(ledger, 1, 2)
    store(ledger, rows(1))
    store(ledger, rows(1, 2, owner="someone else", opened_at=LATER))
    assert find(ledger).select("record_no", "owner", "opened_at").rows() == [
        (1, "team:archive", AT),
        (2, "someone else", LATER),
    ]


def test_a_closed_episode_of_the_same_attempt_is_opened_again(ledger: Ledger) -> None:
    given_up(ledger, 1)
    store(ledger, rows(1))
    close(ledger, 1, closing="answered")
    store(ledger, rows(1, failure_class="schema_violation", opened_at=LATER))
    (found,) = find(ledger).to_dicts()
    assert (found["recorded"], found["failure_class"]) == (1, "schema_violation")
    assert (found["opened_at"], found["closed_at"], found["closing"]) == (LATER, None, None)


def test_closing_counts_what_was_open_and_keeps_how_it_ended(ledger: Ledger) -> None:
    given_up(ledger, 1, 2, 3)
    store(ledger, rows(1, 2))
    assert close(ledger, 1, 3) == 1
    assert close(ledger, 1, 3) == 0
    leave(ledger, 1, "discarded")
    assert find(ledger)["record_no"].to_list() == [2, 3]
    history = find(ledger, only_open=False).filter(pl.col("record_no") == 1)
    assert history.select("closed_at", "closing", "closing_reason", "closed_by").rows() == [
        (LATER, "discarded", "of no use", "a person")
    ]


def test_a_record_that_is_given_up_again_is_found_beside_its_settled_episode(
    ledger: Ledger,
) -> None:
    given_up(ledger, 1)
    given_up(ledger, 2, batch=2)
    store(ledger, rows(1))
    close(ledger, 1, closing="requeued")
    with ledger.write() as connection:
        add_attempt(connection, 1, 201, 2, classified=True, line=9)
    (found,) = find(ledger).to_dicts()
    assert (found["attempt_no"], found["attempts"], found["recorded"]) == (201, 2, 0)
    both = find(ledger, only_open=False)
    assert both.select("attempt_no", "closing", "batch_no", "newest_batch_no").rows() == [
        (101, "requeued", 1, 2),
        (201, None, 2, 2),
    ]


def test_closing_wants_a_known_end(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="'forgotten'; expected one of"):
        close(ledger, 1, closing="forgotten")


def test_nothing_is_opened_or_closed_for_nothing(ledger: Ledger) -> None:
    store(ledger, rows())
    assert close(ledger) == 0
    assert find(ledger, None).is_empty()


def test_an_episode_whose_record_went_elsewhere_is_stale_and_no_dead_letter(
    ledger: Ledger,
) -> None:
    given_up(ledger, 1, 2)
    store(ledger, rows(1, 2))
    leave(ledger, 1, "withdrawn")
    assert find(ledger)["record_no"].to_list() == [2]
    with ledger.read() as connection:
        assert stale_episodes(connection, ledger, 1).rows() == [(1, "s/1", "withdrawn")]


def test_versions_are_told_apart(ledger: Ledger) -> None:
    given_up(ledger, 1)
    given_up(ledger, 2, batch=2)
    store(ledger, rows(1))
    assert find(ledger, 2)["record_no"].to_list() == [2]
    assert find(ledger, None)["version_key"].to_list() == ["v1", "v2"]


def test_an_owner_is_given_to_open_episodes_only(ledger: Ledger) -> None:
    given_up(ledger, 1, 2)
    store(ledger, rows(1, 2))
    close(ledger, 1)
    with ledger.write() as connection:
        assert assign_dead_letters(connection, ledger, numbers(1, 2), "Ada") == 1
        assert assign_dead_letters(connection, ledger, numbers(), "Ada") == 0
    with ledger.read() as connection:
        owners = connection.execute(
            select(dead_letters.c.owner).order_by(dead_letters.c.record_no)
        ).scalars()
        assert list(owners) == ["team:archive", "Ada"]


def test_text_that_looks_like_sql_or_csv_is_kept_as_it_is(ledger: Ledger) -> None:
    given_up(ledger, 1)
    reason = 'said "no", it\'s 100 % over; \\N'
    store(ledger, rows(1, reason=reason))
    assert find(ledger)["reason"].to_list() == [reason]
