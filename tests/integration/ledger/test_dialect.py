"""Bulk load, staging and fetching: what goes in comes out, on both databases."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, select, text

from resources.ledger.engine import Ledger
from resources.ledger.schema import ledger_info, record_state
from tests.integration.ledger.support import count

SCHEMA: dict[str, Any] = {
    "number": pl.Int64,
    "small": pl.Int32,
    "real": pl.Float64,
    "said": pl.String,
}
MANY = 30_000
BIG = 2**62

TEXTS = [
    pytest.param("", id="empty"),
    pytest.param(" ", id="blank"),
    pytest.param('say "so"', id="double quotes"),
    pytest.param("it's", id="single quote"),
    pytest.param('"', id="one double quote"),
    pytest.param("a,b;c\td", id="separators"),
    pytest.param("line\nline\r\nline\r", id="line ends"),
    pytest.param("\n", id="only a line end"),
    pytest.param("C:\\temp\\new \\N \\", id="backslashes"),
    pytest.param("\\N", id="the null of another format"),
    pytest.param("\\.", id="the end of another format"),
    pytest.param("first\n\\.\nlast", id="the end of another format on a line of its own"),
    pytest.param("NULL", id="the word null"),
    pytest.param("100 % ? :name %s $1 {}", id="marks of parameters"),
    pytest.param("\U0001f6e0\ufe0f \U00020bb7\u91ce\u5bb6 \U00010428", id="astral characters"),
    pytest.param("e\u0301 \u202e \u200b \ufeff", id="combining and invisible characters"),
    pytest.param("\x01\x1f\x7f\x85\u2028", id="control characters"),
    pytest.param("x" * 1_000_000, id="long"),
]


def staged(ledger: Ledger, frame: pl.DataFrame) -> pl.DataFrame:
    """Return `frame` after a trip through a staged table."""
    with ledger.write() as connection:
        ledger.dialect.stage(connection, "stage_test", frame)
        columns = ",".join(frame.columns)
        return ledger.dialect.fetch(
            connection, f"SELECT {columns} FROM stage_test ORDER BY {columns}", frame.schema
        )


@pytest.mark.parametrize("said", TEXTS)
def test_a_text_comes_back_as_it_was(ledger: Ledger, said: str) -> None:
    frame = pl.DataFrame({"number": [1], "said": [said]})
    assert staged(ledger, frame).equals(frame)
    # One column alone: an empty line must not be taken for no row, nor an empty text for a null.
    assert staged(ledger, frame.select("said")).equals(frame.select("said"))
    with ledger.write() as connection:
        ledger.dialect.load(
            connection, ledger_info, pl.DataFrame({"name": ["said"], "value": [said]})
        )
        found = ledger.dialect.fetch(
            connection,
            "SELECT value FROM ledger_info WHERE name = ? AND value = ?",
            {"value": pl.String},
            ("said", said),
        )
        stored = connection.execute(
            select(ledger_info.c.value).where(ledger_info.c.name == "said")
        ).scalar_one()
    assert found["value"].to_list() == [said]
    assert stored == said


def test_nulls_and_empty_texts_are_told_apart(ledger: Ledger) -> None:
    frame = pl.DataFrame(
        {
            "number": [1, 2, 3, None],
            "small": [None, 0, -1, 2],
            "real": [0.1, None, -1e300, 2.0],
            "said": ["", None, "x", None],
        },
        schema=SCHEMA,
    )
    with ledger.write() as connection:
        ledger.dialect.stage(connection, "stage_test", frame)
        found = ledger.dialect.fetch(
            connection,
            "SELECT number, small, real, said FROM stage_test ORDER BY COALESCE(number, 9)",
            SCHEMA,
        )
        nulls = connection.execute(
            text("SELECT COUNT(*) FROM stage_test WHERE said IS NULL")
        ).scalar_one()
    assert found.equals(frame)
    assert nulls == 2


def test_a_column_of_nothing_but_nulls_keeps_its_type(ledger: Ledger) -> None:
    frame = pl.DataFrame({"number": [None, None], "said": [None, None]}, schema_overrides=SCHEMA)
    found = staged(ledger, frame.select("said", "number"))
    assert found.schema == {"said": pl.String, "number": pl.Int64}
    assert found.null_count().row(0) == (2, 2)


def test_an_empty_frame_makes_an_empty_table(ledger: Ledger) -> None:
    frame = pl.DataFrame(schema=SCHEMA)
    found = staged(ledger, frame)
    assert found.height == 0
    assert found.schema == frame.schema
    with ledger.write() as connection:
        ledger.dialect.load(connection, record_state, pl.DataFrame(schema={"record_no": pl.Int64}))
    assert count(ledger, record_state) == 0


@pytest.mark.parametrize("number", [0, -1, 2**31, -(2**31) - 1, 2**53 + 1, BIG, 2**63 - 1])
def test_numbers_are_exact(ledger: Ledger, number: int) -> None:
    frame = pl.DataFrame({"number": [number]}, schema={"number": pl.Int64})
    assert staged(ledger, frame).equals(frame)


def test_counts_of_polars_can_be_staged(ledger: Ledger) -> None:
    frame = pl.DataFrame({"said": ["a", "b"]}).with_row_index("number")
    assert frame.schema["number"] == pl.UInt32
    assert staged(ledger, frame).equals(frame)


def test_sums_and_counts_come_back_as_integers(ledger: Ledger) -> None:
    frame = pl.DataFrame({"number": [BIG, 5, -BIG]}, schema={"number": pl.Int64})
    with ledger.write() as connection:
        ledger.dialect.stage(connection, "stage_test", frame)
        found = ledger.dialect.fetch(
            connection,
            "SELECT SUM(number), COUNT(*), MAX(number) FROM stage_test",
            {"sum": pl.Int64, "count": pl.Int64, "max": pl.Int64},
        )
    assert found.row(0) == (5, 3, BIG)


def test_a_query_without_rows_has_its_types(ledger: Ledger) -> None:
    with ledger.read() as connection:
        found = ledger.dialect.fetch(connection, "SELECT 1, 'x' WHERE 1 = 0", {
            "number": pl.Int64, "said": pl.String,
        })  # fmt: skip
    assert found.schema == {"number": pl.Int64, "said": pl.String}


def test_a_percent_sign_in_a_query_is_only_that(ledger: Ledger) -> None:
    with ledger.read() as connection:
        found = ledger.dialect.fetch(
            connection,
            "SELECT name FROM ledger_info WHERE name LIKE 'ledger%' AND value <> ?",
            {"name": pl.String},
            ("%s",),
        )
    assert found["name"].to_list() == ["ledger_id"]


def test_staging_again_replaces_what_was_staged(ledger: Ledger) -> None:
    with ledger.write() as connection:
        for frame in (pl.DataFrame({"number": [1, 2]}), pl.DataFrame({"said": ["only"]})):
            ledger.dialect.stage(connection, "stage_test", frame)
        rows = connection.execute(text("SELECT * FROM stage_test")).all()
    assert [tuple(row) for row in rows] == [("only",)]


def test_what_one_transaction_staged_is_not_in_the_way_of_the_next(ledger: Ledger) -> None:
    for number in range(3):
        frame = pl.DataFrame({"number": [number]}, schema={"number": pl.Int64})
        assert staged(ledger, frame).equals(frame)


def test_columns_load_by_name_in_any_order(ledger: Ledger) -> None:
    frame = pl.DataFrame({"shard": [7], "version": [2], "record_no": [1], "state": ["queued"]})
    with ledger.write() as connection:
        ledger.dialect.load(connection, record_state, frame)
        row = connection.execute(select(record_state)).one()
    assert tuple(row) == (1, "queued", 2, 7, None)


def test_a_load_that_fails_leaves_nothing(ledger: Ledger) -> None:
    frame = pl.DataFrame({"record_no": [1, 2, 1]}).with_columns(
        state=pl.lit("queued"), version=pl.lit(0), shard=pl.lit(0)
    )
    with pytest.raises(ledger.dialect.driver_error), ledger.write() as connection:
        ledger.dialect.load(connection, record_state, frame)
    assert count(ledger, record_state) == 0


def test_thirty_thousand_rows(ledger: Ledger) -> None:
    said = 'a "detail"\nof \\ two lines \U0001f6e0'
    frame = pl.DataFrame({"number": range(MANY)}, schema={"number": pl.Int64}).with_columns(
        small=pl.lit(None, dtype=pl.Int32),
        real=pl.col("number") / 3,
        said=pl.lit(said) + pl.col("number").cast(pl.String),
    )
    with ledger.write() as connection:
        ledger.dialect.stage(connection, "stage_test", frame)
        ledger.dialect.load(
            connection,
            ledger_info,
            frame.select(name=pl.col("number").cast(pl.String), value="said"),
        )
        joined = connection.execute(
            text("SELECT COUNT(*) FROM ledger_info JOIN stage_test ON said = value")
        ).scalar_one()
        found = ledger.dialect.fetch(
            connection,
            "SELECT number, small, real, said FROM stage_test ORDER BY number",
            frame.schema,
        )
    assert joined == MANY
    assert found.equals(frame)


CELLS = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), max_size=8)
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.integers(-(2**31), 2**31 - 1),
        st.none() | st.floats(allow_nan=False, allow_infinity=False),
        st.none() | CELLS,
    ),
    max_size=8,
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=ROWS)
def test_any_rows_come_back_as_they_were(ledger: Ledger, rows: list[tuple[Any, ...]]) -> None:
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row").with_row_index("place")
    with ledger.write() as connection:
        ledger.dialect.stage(connection, "stage_test", frame)
        found = ledger.dialect.fetch(
            connection, "SELECT place, number, small, real, said FROM stage_test ORDER BY place",
            frame.schema,
        )  # fmt: skip
    assert found.rows() == frame.rows()


def test_the_right_to_a_chain_ends_with_the_transaction(ledger: Ledger) -> None:
    for _ in range(2):
        with ledger.write() as connection:
            ledger.dialect.lock_chain(connection, "batch:1")
            ledger.dialect.lock_opening(connection)


SECRET = "what a document says"


def repeated(ledger: Ledger, connection: Connection) -> None:
    for _ in range(2):
        connection.execute(ledger_info.insert().values(name=SECRET, value=SECRET))


def repeated_in_bulk(ledger: Ledger, connection: Connection) -> None:
    rows = pl.DataFrame({"name": [SECRET, SECRET], "value": [SECRET, SECRET]})
    ledger.dialect.load(connection, ledger_info, rows)


def null_in_bulk(ledger: Ledger, connection: Connection) -> None:
    rows = pl.DataFrame({"name": [SECRET], "value": [None]})
    ledger.dialect.load(connection, ledger_info, rows)


@pytest.mark.parametrize("mistake", [repeated, repeated_in_bulk, null_in_bulk])
def test_errors_name_the_constraint_and_carry_no_values(
    ledger: Ledger, mistake: Callable[[Ledger, Connection], None]
) -> None:
    with pytest.raises(Exception, match="ledger_info") as failure, ledger.write() as connection:
        mistake(ledger, connection)
    assert SECRET not in "".join(traceback.format_exception(failure.value))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        pytest.param("AVG(number)", 1.5, id="mean"),
        pytest.param("SUM(number) - 10", -7.0, id="negative sum"),
    ],
)
def test_fractions_come_back_as_floats(ledger: Ledger, sql: str, expected: float) -> None:
    with ledger.write() as connection:
        ledger.dialect.stage(connection, "stage_test", pl.DataFrame({"number": [1, 2]}))
        found = ledger.dialect.fetch(
            connection, f"SELECT {sql} FROM stage_test", {"found": pl.Float64}
        )
    assert found.item() == expected
