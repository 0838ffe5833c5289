"""A ledger of an earlier release is opened, upgraded, and says what it said before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from alembic import command
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, Engine, MetaData, Table, create_engine, inspect, text

from resources.ledger.engine import alembic_config, normalise_url, open_ledger
from resources.ledger.retries import due_retries, waiting_retries
from resources.ledger.schema import metadata

FIRST, SECOND, THIRD, FOURTH, FIFTH = "0001", "0002", "0003", "0004", "0005"
FIRST_WORKLOAD = "equipment_manuals"
"""Every source of the time before 0005 is of the one workload that there was."""
ROWS_EACH = 3
AT, LATER = "2030-01-02T03:04:05.000000Z", "2030-01-03T03:04:05.000000Z"


def make_release(engine: Engine, revision: str) -> MetaData:
    """Make the schema of a release; its tables are returned as the database tells them."""
    config = alembic_config()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        found = MetaData()
        found.reflect(connection, only=lambda name, _: name in metadata.tables)
    return found


def fill(connection: Connection, tables: MetaData) -> None:
    """Some rows in every table, parents first, each column with a value that tells its place."""
    connection.execute(
        tables.tables["ledger_info"].insert(),
        [
            {"name": "ledger_id", "value": "0123456789abcdef"},
            {"name": "profile", "value": "dev"},
            {"name": "made_at", "value": AT},
        ],
    )
    for table in tables.sorted_tables:
        if table.name != "ledger_info":
            rows = [row_of(table, number) for number in range(1, ROWS_EACH + 1)]
            connection.execute(table.insert(), rows)


def row_of(table: Table, number: int) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for column in table.c:
        if column.type.python_type is int:
            row[column.name] = number
        else:
            length = getattr(column.type, "length", None) or 64
            row[column.name] = f"{number}{column.name}é"[:length]
    return row


def rows_of(connection: Connection, table: Table) -> list[dict[str, Any]]:
    found = connection.execute(table.select().order_by(*table.primary_key.columns))
    return [dict(row._mapping) for row in found]


@dataclass(frozen=True)
class Old:
    """A ledger of an earlier release, its tables, and all of its rows."""

    url: str
    revision: str
    tables: MetaData
    rows: dict[str, list[dict[str, Any]]]


@pytest.fixture(params=[FIRST, SECOND, THIRD, FOURTH, FIFTH])
def old(ledger_url: str, request: pytest.FixtureRequest) -> Old:
    """Return a ledger of an earlier release with rows in every table."""
    engine = create_engine(normalise_url(ledger_url))
    tables = make_release(engine, request.param)
    with engine.begin() as connection:
        fill(connection, tables)
    with engine.connect() as connection:
        rows = {table.name: rows_of(connection, table) for table in tables.sorted_tables}
    engine.dispose()
    return Old(ledger_url, request.param, tables, rows)


def test_an_earlier_release_lacks_what_the_upgrade_brings(old: Old) -> None:
    """Else the tests below would show nothing."""
    new = {"report_closings", "job_prices", "canary_usage", "audits", "backups", "trace_marks"}
    assert "merkle_root" not in old.tables.tables["reports"].c
    if old.revision in (FIRST, SECOND, THIRD, FOURTH):
        new |= {"scan_reads", "approvals", "erasures", "prunes", "replays", "source_events"}
        assert "fingerprint" not in old.tables.tables["sources"].c
    if old.revision in (FIRST, SECOND, THIRD):
        new |= {"repairs", "reviews", "quality_samples", "archive_changes", "outlet_deliveries"}
        assert "places_artifact" not in old.tables.tables["batches"].c
    if old.revision in (FIRST, SECOND):
        new |= {"alert_deliveries", "retry_decisions", "dead_letters", "late_results"}
        assert "parent_attempt_no" not in old.tables.tables["attempts"].c
    if old.revision == FIRST:
        new |= {"canaries", "intents", "alerts"}
        assert "input_ref" not in old.tables.tables["batches"].c
        assert "cached_tokens" not in old.tables.tables["dispositions"].c
    assert new & set(old.tables.tables) == set()
    assert {"batches", "dispositions", "attempts", "manifests", "moves"} <= set(old.rows)
    assert {n: len(found) for n, found in old.rows.items()} == dict.fromkeys(old.rows, ROWS_EACH)


def test_rows_are_as_they_were_and_what_is_new_is_empty(old: Old) -> None:
    url, tables, before = old.url, old.tables, old.rows
    ledger = open_ledger(url)
    assert ledger.ledger_id == "0123456789abcdef"
    with ledger.read() as connection:
        for table in metadata.sorted_tables:
            found = rows_of(connection, table)
            if table.name not in tables.tables:
                assert found == [], f"{table.name} is new"
                continue
            known = set(tables.tables[table.name].c.keys())
            new = set(table.c.keys()) - known
            kept = [{name: row[name] for name in row if name in known} for row in found]
            assert kept == before[table.name], table.name
            given = {"workload": FIRST_WORKLOAD} if table.name == "sources" else {}
            assert all(row[name] == given.get(name) for row in found for name in new), table.name
    ledger.close()


def test_the_upgraded_schema_is_that_of_a_new_ledger(old: Old) -> None:
    ledger = open_ledger(old.url)
    with ledger.engine.connect() as connection:
        heads = MigrationContext.configure(connection).get_current_heads()
        found = {
            table.name: {column["name"] for column in inspect(connection).get_columns(table.name)}
            for table in metadata.sorted_tables
        }
    ledger.close()
    assert heads != (old.revision,)
    assert found == {table.name: set(table.c.keys()) for table in metadata.sorted_tables}


def test_a_failed_upgrade_leaves_the_ledger_as_it_was(
    old: Old, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The upgrade is one transaction: what it began is not there when its end fails."""
    url, tables, before = old.url, old.tables, old.rows

    class Broken(Exception):
        pass

    real = command.upgrade

    def upgrade(*given: Any) -> None:
        real(*given)
        raise Broken

    with monkeypatch.context() as patch:
        patch.setattr(command, "upgrade", upgrade)
        with pytest.raises(Broken):
            open_ledger(url)
    engine = create_engine(normalise_url(url))
    with engine.connect() as connection:
        assert MigrationContext.configure(connection).get_current_heads() == (old.revision,)
        assert set(inspect(connection).get_table_names()) >= set(tables.tables)
        assert "backups" not in inspect(connection).get_table_names()
        assert {t.name: rows_of(connection, t) for t in tables.sorted_tables} == before
    engine.dispose()
    open_ledger(url).close()


def test_an_upgraded_ledger_takes_new_rows(old: Old) -> None:
    ledger = open_ledger(old.url)
    with ledger.write() as connection:
        connection.execute(text("UPDATE batches SET endpoint = 'e', submissions = 1"))
        connection.execute(text("UPDATE dispositions SET cached_tokens = 7"))
    with ledger.read() as connection:
        assert set(connection.execute(text("SELECT cached_tokens FROM dispositions"))) == {(7,)}
    ledger.close()


RECORD_STATES = (
    # state, disposition, failure class, diagnostics of records 1, 2, ...
    ("retry_wait", "retryable_failure", "overloaded", "status 529"),
    ("retry_wait", "expired", "expired", "the window ended"),
    ("retry_wait", "cancelled", "cancelled", "it was cancelled"),
    ("dead_letter", "permanent_failure", "invalid_request", "status 400"),
    ("dead_letter", None, None, None),
    ("published", "succeeded", None, ""),
    ("submitted", None, None, None),
)


def fail(connection: Connection, tables: MetaData) -> None:
    """One attempt a record; each record is as `RECORD_STATES` says."""
    tab = tables.tables
    for number, (state, disposition, failure, diagnostics) in enumerate(RECORD_STATES, start=1):
        values = {"record_no": number, "document_no": number, "version_no": 1}
        connection.execute(tab["records"].insert(), [row_of(tab["records"], number) | values])
        connection.execute(
            tab["record_state"].insert(),
            [row_of(tab["record_state"], number) | {"state": state, "not_before": None}],
        )
        connection.execute(
            tab["attempts"].insert(),
            [row_of(tab["attempts"], number) | {"attempt_no": 10 * number, "batch_no": 1}],
        )
        if disposition is not None:
            connection.execute(
                tab["dispositions"].insert(),
                [
                    row_of(tab["dispositions"], number)
                    | {
                        "attempt_no": 10 * number,
                        "disposition": disposition,
                        "failure_class": failure,
                        "diagnostics": diagnostics,
                    }
                ],
            )


@pytest.mark.parametrize("revision", [FIRST, SECOND])
def test_what_had_failed_before_decisions_were_kept(ledger_url: str, revision: str) -> None:
    """Records that wait are due, and dead letters have an owner, a reason and a date."""
    engine = create_engine(normalise_url(ledger_url))
    tables = make_release(engine, revision)
    emptied = ("records", "record_state", "attempts", "dispositions", "moves", "move_members")
    with engine.begin() as connection:
        fill(connection, tables)
        for name in emptied:
            connection.execute(tables.tables[name].delete())
        for row in (1, 2, 3):
            connection.execute(
                text("UPDATE batches SET version_no = 1, prepared_at = :at WHERE batch_no = :row"),
                {"at": AT, "row": row},
            )
        fail(connection, tables)
        for move, (to_state, at) in enumerate((("submitted", AT), ("dead_letter", LATER)), start=1):
            values = {"to_state": to_state, "moved_at": at}
            connection.execute(
                tables.tables["moves"].insert(), [row_of(tables.tables["moves"], move) | values]
            )
            connection.execute(
                tables.tables["move_members"].insert(), [{"move_no": move, "record_no": 4}]
            )
    engine.dispose()

    ledger = open_ledger(ledger_url)
    with ledger.read() as connection:
        decided = rows_of(connection, metadata.tables["retry_decisions"])
        letters = rows_of(connection, metadata.tables["dead_letters"])
    assert [
        (row["attempt_no"], row["record_no"], row["failure_class"], row["counted"])
        for row in decided
    ] == [(10, 1, "overloaded", 1), (20, 2, "expired", 0), (30, 3, "cancelled", 0)]
    assert {(row["decision"], row["recovery_path"], row["not_before"]) for row in decided} == {
        ("retry", "repeat", None)
    }
    assert [
        (row["attempt_no"], row["version_no"], row["failure_class"], row["reason"])
        for row in letters
    ] == [
        (40, 1, "invalid_request", "status 400"),
        (50, 1, "unknown", "it was given up before reasons were kept"),
    ]
    assert [row["opened_at"] for row in letters] == [LATER, AT], (
        "when it was moved, if that is known"
    )
    assert {(row["owner"], row["closed_at"]) for row in letters} == {("operators", None)}
    assert waiting_retries(ledger).rows() == [(1, 3, "")]
    due = due_retries(ledger, 1, AT)
    assert due.select("record_no", "parent_attempt_no", "path").rows() == [
        (1, 10, "repeat"),
        (2, 20, "repeat"),
        (3, 30, "repeat"),
    ]
    ledger.close()
    # A second opening adds nothing.
    again = open_ledger(ledger_url)
    with again.read() as connection:
        assert rows_of(connection, metadata.tables["retry_decisions"]) == decided
    again.close()


WAITING_STATES = (
    # state, outcomes of its attempts' judgements: only the last one of a waiting record is reviewed
    ("awaiting_review", ("awaiting_review",)),
    ("awaiting_review", ("awaiting_review", "awaiting_review")),
    ("accepted", ("accepted",)),
    ("published", ("accepted",)),
    ("prepared", ("awaiting_review",)),
)


@pytest.mark.parametrize("revision", [SECOND, THIRD])
def test_what_waits_for_a_reviewer_can_be_reviewed(ledger_url: str, revision: str) -> None:
    engine = create_engine(normalise_url(ledger_url))
    tables = make_release(engine, revision)
    tab = tables.tables
    with engine.begin() as connection:
        fill(connection, tables)
        for name in ("record_state", "attempts", "judgements", "moves", "move_members"):
            connection.execute(tab[name].delete())
        connection.execute(text("UPDATE batches SET version_no = 3, prepared_at = :at"), {"at": AT})
        for number, (state, outcomes) in enumerate(WAITING_STATES, start=1):
            connection.execute(
                tab["record_state"].insert(),
                [row_of(tab["record_state"], number) | {"state": state, "not_before": None}],
            )
            for index, outcome in enumerate(outcomes):
                key = {"attempt_no": 10 * number + index, "record_no": number}
                connection.execute(
                    tab["attempts"].insert(), [row_of(tab["attempts"], 1) | key | {"batch_no": 1}]
                )
                connection.execute(
                    tab["judgements"].insert(),
                    [row_of(tab["judgements"], number) | key | {"outcome": outcome}],
                )
        connection.execute(
            tab["moves"].insert(),
            [row_of(tab["moves"], 1) | {"to_state": "awaiting_review", "moved_at": LATER}],
        )
        connection.execute(tab["move_members"].insert(), [{"move_no": 1, "record_no": 2}])
    engine.dispose()

    ledger = open_ledger(ledger_url)
    with ledger.read() as connection:
        found = rows_of(connection, metadata.tables["reviews"])
    ledger.close()
    assert [
        (row["record_no"], row["attempt_no"], row["version_no"], row["opened_at"]) for row in found
    ] == [(1, 10, 3, AT), (2, 21, 3, LATER)]
    assert {(row["kind"], row["decision"], row["revision"]) for row in found} == {
        ("findings", None, 0)
    }
