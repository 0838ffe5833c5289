"""Frames on their way into the ledger: column order, types, and the digest of a set."""

from __future__ import annotations

import hashlib
import struct

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.ledger.frames import columns_of, declared, digest_of_members
from resources.ledger.schema import record_state

TYPES: dict[type[pl.DataType], str] = {pl.Int64: "BIGINT", pl.String: "TEXT"}
REFUSED = [
    pytest.param(pl.Series("state", [True]), id="boolean"),
    pytest.param(pl.Series("state", [1.5], dtype=pl.Float32), id="32-bit float"),
    pytest.param(pl.Series("state", [b"x"]), id="bytes"),
    pytest.param(pl.Series("state", [["x"]]), id="list"),
    pytest.param(pl.Series("state", [0]).cast(pl.Datetime), id="datetime"),
]


def test_columns_come_in_the_tables_order() -> None:
    frame = pl.DataFrame({"shard": [1], "state": ["queued"], "record_no": [7]})
    assert columns_of(frame, record_state).columns == ["record_no", "state", "shard"]


def test_a_column_of_no_such_table_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\['colour'\] that record_state does not have"):
        columns_of(pl.DataFrame({"record_no": [1], "colour": ["red"]}), record_state)


@pytest.mark.parametrize("column", REFUSED)
def test_a_type_that_the_databases_store_differently_is_refused(column: pl.Series) -> None:
    with pytest.raises(TypeError, match="column state is"):
        columns_of(column.to_frame(), record_state)
    with pytest.raises(TypeError, match="column state is"):
        declared(column.to_frame(), TYPES)


def test_declared_columns() -> None:
    frame = pl.DataFrame({"a": [1], "b": ["x"]})
    assert declared(frame, TYPES) == "a BIGINT,b TEXT"


@given(st.sets(st.integers(0, 2**63 - 1), max_size=20), st.randoms())
def test_the_digest_of_a_set_does_not_depend_on_order(members: set[int], order: object) -> None:
    shuffled = sorted(members)
    order.shuffle(shuffled)  # pyright: ignore[reportAttributeAccessIssue]
    expected = hashlib.sha256(struct.pack(f"<{len(members)}q", *sorted(members))).hexdigest()
    assert digest_of_members(pl.Series(shuffled, dtype=pl.Int64)) == expected


def test_the_width_of_the_integers_does_not_matter() -> None:
    wide, narrow = (pl.Series([3, 1, 2], dtype=kind) for kind in (pl.Int64, pl.UInt32))
    assert digest_of_members(wide) == digest_of_members(narrow)
