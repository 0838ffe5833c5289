"""Statements over somebody else's database: which queries, which values."""

from __future__ import annotations

import pytest

from resources.sources.declared import SqlSource
from resources.sources.sql_statements import (
    QueryRefused,
    check_query,
    keys_to_bind,
    statements,
)


def declared(**given: object) -> SqlSource:
    base = {"name": "t", "workload": "w", "kind": "sql", "url_env": "U", "key": "id", "text": ["b"]}
    return SqlSource.model_validate({**base, **given})


def quoted(name: str) -> str:
    return f'"{name}"'


@pytest.mark.parametrize(
    "query",
    ["SELECT 1", "  \n select id from t", "WITH a AS (SELECT 1) SELECT * FROM a"],
)
def test_queries(query: str) -> None:
    assert check_query(query) == query


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1; DROP TABLE t",
        "SELECT 1;",
        "DELETE FROM t",
        "selection",
        "-- SELECT\nDELETE FROM t",
        "(SELECT 1)",
        " ",
    ],
)
def test_queries_that_are_refused(query: str) -> None:
    with pytest.raises(QueryRefused):
        statements(declared(query=query), "sqlite", quoted)


def test_names_are_quoted_part_by_part() -> None:
    made = statements(declared(table="shop.tickets"), "sqlite", quoted)
    assert made.columns == 'SELECT * FROM "shop"."tickets" WHERE 1 = 0'
    assert 'WHERE "id" > :last ORDER BY "id" LIMIT :page' in made.further


def test_a_query_keeps_its_colons_and_its_comments() -> None:
    made = statements(declared(query="SELECT a::text FROM t -- all"), "postgresql", quoted)
    assert "(\nSELECT a\\:\\:text FROM t -- all\n) AS documents" in made.columns


def test_texts_are_asked_for_only_where_no_change_is_known() -> None:
    made = statements(declared(table="t", changed="c"), "sqlite", quoted)
    assert 'CASE WHEN "c" IS NULL AND ' in made.first
    assert '"c" IS NULL AND ' not in made.by_keys


@pytest.mark.parametrize(
    ("dialect", "key_type", "keys", "bound"),
    [
        ("sqlite", None, ["a", "7", "007", "1.5"], ["a", "7", 7, "007", "1.5", 1.5]),
        ("sqlite", None, ["9" * 30, "-0", "1e5"], ["9" * 30, "-0", "1e5"]),
        ("postgresql", "text", ["a", "7"], ["a", "7"]),
        ("postgresql", "bigint", ["a", "7", "007", "-3"], ["7", "-3"]),
        ("postgresql", "integer", ["2147483647", "2147483648"], ["2147483647"]),
        ("postgresql", "smallint", ["-32768", "-32769", "32768"], ["-32768"]),
    ],
)
def test_keys_as_values_of_their_column(
    dialect: str, key_type: str | None, keys: list[str], bound: list[object]
) -> None:
    assert keys_to_bind(keys, dialect, key_type) == bound


@pytest.mark.parametrize(
    ("key_type", "written"),
    [("character", "bpchar[]"), ("uuid", "uuid[]"), (None, "text[]")],
)
def test_keys_are_cast_to_the_type_of_their_column(key_type: str | None, written: str) -> None:
    made = statements(declared(table="t"), "postgresql", quoted, key_type)
    assert f'"id" = ANY(CAST(:keys AS {written}))' in made.by_keys
