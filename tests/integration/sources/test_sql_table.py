"""Tables and queries of databases as sources, on SQLite and on PostgreSQL."""

from __future__ import annotations

import gc
import hashlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, create_engine, event, text

from resources.sources import sql_table
from resources.sources.declared import SqlSource
from resources.sources.listing import LISTED_SCHEMA, READ_SCHEMA, TEXT_SCHEMA
from resources.sources.port import SourceEmpty, SourceMissing, SourceUnreadable, WalkUnfinished
from resources.sources.row_text import collision_id, keyless_id
from resources.sources.sql_table import SqlTable
from tests.support.postgres import fresh_database

VARIABLE = "TICKETS_URL"
PASSWORD = "s3cret-word"
BACKENDS = [
    pytest.param("sqlite", id="sqlite"),
    pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgres),
]


@pytest.fixture(scope="module", params=BACKENDS)
def module_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('rows') / 'rows.sqlite3'}"
        return
    with fresh_database(request.getfixturevalue("postgres")) as url:
        yield url.render_as_string(hide_password=False)


@pytest.fixture(scope="module")
def engine(module_url: str) -> Iterator[Engine]:
    engine = create_engine(module_url)
    if engine.dialect.name == "sqlite":
        # So that rows can be added while a listing is under way, as a server allows.
        event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA journal_mode=WAL"))
    yield engine
    engine.dispose()


@pytest.fixture
def url(module_url: str, engine: Engine) -> str:
    run(engine, "DROP TABLE IF EXISTS t", "CREATE TABLE t (id TEXT, body TEXT, seen TEXT)")
    return module_url


def run(engine: Engine, *statements: str) -> None:
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def fill(engine: Engine, rows: list[tuple[Any, ...]]) -> None:
    with engine.begin() as connection:
        given = [{"id": row[0], "body": row[1], "seen": (*row, None)[2]} for row in rows]
        if given:
            connection.execute(text("INSERT INTO t VALUES (:id, :body, :seen)"), given)


def source(url: str, **declared: Any) -> SqlTable:
    base = {"name": "t", "workload": "w", "kind": "sql", "url_env": VARIABLE, "key": "id"}
    if "query" not in declared:
        base["table"] = "t"
    given = SqlSource.model_validate({**base, "text": ["body"], **declared})
    return SqlTable(given, environ={VARIABLE: url})


def listed(table: SqlTable) -> pl.DataFrame:
    listing = table.listing()
    frames = list(listing)
    whole = pl.concat(frames) if frames else pl.DataFrame(schema=LISTED_SCHEMA)
    assert dict(whole.schema) == LISTED_SCHEMA
    assert listing.report().entries == whole.height
    assert whole["document_id"].is_unique().all()
    return whole


def marks(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with marks without the digest that they end in."""
    return frame.with_columns(mark=pl.col("mark").str.replace(" [0-9a-f]{8}$", ""))


def ids(table: SqlTable) -> list[str]:
    return listed(table)["document_id"].to_list()


def texts(table: SqlTable, names: list[str]) -> dict[str, str]:
    frames = list(table.texts(pl.Series(names, dtype=pl.String)))
    assert all(dict(frame.schema) == TEXT_SCHEMA for frame in frames)
    found = [row for frame in frames for row in frame.iter_rows()]
    assert all(checksum == sha(body) for _, checksum, body in found)
    assert len({name for name, _, _ in found}) == len(found)
    return {name: body for name, _, body in found}


def sha(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def test_rows_with_checksums(url: str, engine: Engine) -> None:
    fill(
        engine, [("b", "two\r\n"), ("a", "one"), (None, "x"), ("c", " "), ("", "y"), ("d", "z" * 9)]
    )
    table = source(url, max_row_bytes=8)
    assert listed(table).select("document_id", "size", "mark", "checksum", "excluded").rows() == [
        (keyless_id("t", 1), 0, None, None, "no_key"),
        (keyless_id("t", 2), 1, None, None, "no_key"),
        ("t/a", 3, None, sha("one"), None),
        ("t/b", 3, None, sha("two"), None),
        ("t/c", 0, None, None, "empty"),
        ("t/d", 0, None, None, "too_large"),
    ]
    names = ["t/a", "t/b", "t/c", "t/d", "t/e", keyless_id("t", 1)]
    assert texts(table, names) == {"t/a": "one", "t/b": "two"}
    assert table.open("t/a").read() == b"one"


def test_rows_with_a_column_of_changes(url: str, engine: Engine) -> None:
    fill(engine, [("a", "one", "m1"), ("b", "two", None), ("c", "", None), ("d", "z" * 9, "m2")])
    table = source(url, changed="seen", max_row_bytes=8)
    whole = listed(table)
    columns = ["document_id", "size", "mark", "checksum", "excluded"]
    assert marks(whole).select(columns).rows() == [
        ("t/a", 0, "m1", None, None),
        ("t/b", 3, None, sha("two"), None),
        ("t/c", 0, None, None, "empty"),
        ("t/d", 0, "m2", None, None),
    ]
    run(engine, "UPDATE t SET body = 'new', seen = 'm3' WHERE id = 'a'")
    wanted = whole.filter(pl.col("checksum").is_null() & pl.col("excluded").is_null())
    wanted = pl.concat([wanted, wanted.head(1).with_columns(document_id=pl.lit("t/9"), place=b"9")])
    read = pl.concat(list(table.read(wanted))).sort("document_id")
    assert dict(read.schema) == READ_SCHEMA
    assert marks(read).select(columns).rows() == [
        ("t/9", 0, "m1", None, "unreadable"),
        ("t/a", 3, "m3", sha("new"), None),
        ("t/d", 0, "m2", None, "too_large"),
    ]


@pytest.mark.parametrize("changed", [None, "seen"])
def test_rows_with_one_key_are_told_apart_wherever_pages_end(
    url: str, engine: Engine, changed: str | None
) -> None:
    rows = [("a", "one", "m"), *[("b", f"{at}", f"m{at}") for at in range(5)], ("c", "x", "m")]
    fill(engine, rows)
    whole = [listed(source(url, changed=changed, page_rows=size)) for size in (5, 6, 7, 100)]
    assert all(frame.equals(whole[0]) for frame in whole)
    assert whole[0]["excluded"].to_list() == [None, None, *["id_collision"] * 4, None]
    read = pl.concat(list(source(url, changed=changed).read(whole[0][:2])))
    assert read["checksum"].to_list() == [sha("one"), sha("0")]
    assert texts(source(url, changed=changed), ["t/b"]) == {"t/b": "0"}


def test_a_row_that_is_told_twice_is_one_document(url: str, engine: Engine) -> None:
    fill(engine, [("a", "one"), ("a", "one "), ("a", "two")])
    assert ids(source(url)) == ["t/a", collision_id("t", b"a", sha("two"))]


def test_too_many_rows_with_one_key(url: str, engine: Engine) -> None:
    fill(engine, [("a", f"{at}") for at in range(9)])
    with pytest.raises(SourceUnreadable, match=r"more than 4 of its rows, .* have one key"):
        listed(source(url, page_rows=4))


def test_equal_keys_under_the_columns_collation_are_different_documents(
    url: str, engine: Engine
) -> None:
    if engine.dialect.name == "sqlite":
        column = "TEXT COLLATE NOCASE"
    else:
        run(
            engine,
            "CREATE COLLATION IF NOT EXISTS any_case "
            "(provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        )
        column = "TEXT COLLATE any_case"
    run(engine, "DROP TABLE t", f"CREATE TABLE t (id {column}, body TEXT, seen TEXT)")
    fill(engine, [(key, key, "m") for key in ("a", "A", "b", "B", "c", "C")])
    for changed in (None, "seen"):
        for size in (2, 3, 5):
            whole = listed(source(url, page_rows=size, changed=changed))
            assert sorted(whole["document_id"]) == [f"t/{key}" for key in "ABCabc"]
            assert whole["excluded"].null_count() == 6
    assert texts(source(url), ["t/A", "t/b"]) == {"t/A": "A", "t/b": "b"}


def test_keys_that_fold_to_one_id_and_their_texts(url: str, engine: Engine) -> None:
    fill(engine, [("a\u0308", "one"), ("ö", "two")])
    table = source(url)
    assert sorted(ids(table)) == ["t/ä", "t/ö"]
    assert texts(table, ["t/ä", "t/ö"]) == {"t/ä": "one", "t/ö": "two"}
    fill(engine, [("ä", "three")])
    whole = listed(table).filter(pl.col("document_id") == "t/ä")
    assert whole["checksum"].to_list() == [sha(texts(table, ["t/ä"])["t/ä"])]


@pytest.mark.parametrize(
    ("kind", "values", "keys"),
    [
        pytest.param("INTEGER", ["10", "9", "-1"], ["-1", "9", "10"], id="integers"),
        pytest.param("BIGINT", ["9007199254740993", "1"], ["1", "9007199254740993"], id="bigints"),
        pytest.param("TEXT", ["'10'", "'9'", "'007'"], ["007", "10", "9"], id="texts"),
        pytest.param("DOUBLE PRECISION", ["1.5", "-2.25"], ["-2.25", "1.5"], id="floats"),
        pytest.param("VARCHAR(9)", ["'b'", "'a b'"], ["a b", "b"], id="varchars"),
    ],
)
def test_types_of_keys(
    url: str, engine: Engine, kind: str, values: list[str], keys: list[str]
) -> None:
    run(engine, "DROP TABLE t", f"CREATE TABLE t (id {kind} PRIMARY KEY, body TEXT, seen TEXT)")
    for value in values:
        run(engine, f"INSERT INTO t VALUES ({value}, 'x', 'm')")
    for size in (1, 2, 50):
        assert ids(source(url, page_rows=size)) == [f"t/{key}" for key in keys]
    table = source(url, changed="seen")
    names = [f"t/{key}" for key in keys]
    assert texts(table, names) == dict.fromkeys(names, "x")
    read = pl.concat(list(table.read(listed(table))))
    assert sorted(read["document_id"]) == sorted(names)
    assert read["excluded"].null_count() == len(keys)


@pytest.mark.parametrize(
    ("kind", "value", "key", "mark"),
    [
        (
            "uuid",
            "'0b3f1d5e-0000-4000-8000-000000000001'",
            "0b3f1d5e-0000-4000-8000-000000000001",
            None,
        ),
        ("numeric", "1.50", "1.50", None),
        ("char(4)", "'ab'", "ab", None),
        ("date", "'2026-01-02'", "2026-01-02", None),
        ("timestamptz", "'2026-01-02 03:04:05.6+02'", "2026-01-02 01%3A04%3A05.6+00", None),
        ("boolean", "true", "true", None),
    ],
    ids=lambda value: str(value) if value else "",
)
def test_types_of_keys_that_only_postgresql_has(
    url: str, engine: Engine, kind: str, value: str, key: str, mark: None
) -> None:
    if engine.dialect.name != "postgresql":
        pytest.skip("types of PostgreSQL")
    run(
        engine,
        "DROP TABLE t",
        f"CREATE TABLE t (id {kind}, body jsonb, seen timestamptz)",
        f"INSERT INTO t VALUES ({value}, '{{\"a\": 1}}', '2026-01-01 00:00+05')",
    )
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET timezone TO ''Asia/Tokyo''', "
            "current_database()); END $$"
        )
    table = source(url, changed="seen")
    assert marks(listed(table)).select("document_id", "mark").rows() == [
        (f"t/{key}", "2025-12-31 19:00:00+00")
    ]
    assert texts(table, [f"t/{key}"]) == {f"t/{key}": '{"a": 1}'}


def test_binary_keys_are_refused(url: str, engine: Engine) -> None:
    kind = "BLOB" if engine.dialect.name == "sqlite" else "BYTEA"
    value = "x'6162'" if kind == "BLOB" else "'\\x6162'"
    run(engine, "DROP TABLE t", f"CREATE TABLE t (id {kind}, body TEXT)")
    run(engine, f"INSERT INTO t VALUES ({value}, 'x')")
    with pytest.raises(SourceUnreadable, match="binary"):
        listed(source(url))


def test_nul_in_a_text_ends_nothing(url: str, engine: Engine) -> None:
    if engine.dialect.name != "sqlite":
        pytest.skip("PostgreSQL holds no NUL")
    run(engine, "INSERT INTO t VALUES ('a', 'one' || char(0) || ' two', NULL)")
    assert texts(source(url), ["t/a"]) == {"t/a": "one two"}


def test_a_query(url: str, engine: Engine) -> None:
    fill(engine, [("a", "one"), ("b", "two 100%")])
    query = "SELECT 'x:' || id AS id, body, ':last' AS label FROM t WHERE body LIKE '%o%' -- all"
    table = source(url, query=query, text=["label", "body"], page_rows=1)
    assert ids(table) == ["t/x%3Aa", "t/x%3Ab"]
    assert texts(table, ["t/x%3Ab"]) == {"t/x%3Ab": "label: :last\n\nbody: two 100%"}
    assert table.location.endswith(" query, rows named by 'id'")


def test_names_are_taken_exactly(url: str, engine: Engine) -> None:
    run(engine, 'DROP TABLE IF EXISTS "Select"')
    run(engine, 'CREATE TABLE "Select" ("Ticket No" TEXT, "from" TEXT)')
    run(engine, "INSERT INTO \"Select\" VALUES ('1', 'me')")
    declared = {"table": "Select", "key": "Ticket No", "text": ["from", "Ticket No"]}
    table = source(url, **declared)
    assert texts(table, ["t/1"]) == {"t/1": "from: me\n\nTicket No: 1"}
    with pytest.raises(SourceUnreadable, match="no column 'FROM'"):
        listed(source(url, **{**declared, "text": ["FROM"]}))


@pytest.mark.parametrize(
    ("declared", "error", "problem"),
    [
        pytest.param({"table": "nothing"}, SourceMissing, "nothing", id="table"),
        pytest.param({"key": "no"}, SourceUnreadable, "no column 'no'; it has 'id'", id="key"),
        pytest.param({"text": ["no"]}, SourceUnreadable, "no column 'no'", id="text"),
        pytest.param({"changed": "no"}, SourceUnreadable, "no column 'no'", id="changed"),
        pytest.param(
            {"query": "SELECT id, body FROM nothing"}, SourceUnreadable, "nothing", id="query"
        ),
        pytest.param({"query": "SELECT FROM WHERE"}, SourceUnreadable, "syntax", id="grammar"),
        pytest.param({"query": "DELETE FROM t"}, SourceUnreadable, "SELECT", id="delete"),
        pytest.param({}, SourceEmpty, "no row", id="no-rows"),
    ],
)
def test_what_cannot_be_listed(
    url: str, declared: dict[str, Any], error: type[Exception], problem: str
) -> None:
    with pytest.raises(error, match=problem):
        listed(source(url, **declared))


def test_an_empty_table_may_be_declared(url: str) -> None:
    assert listed(source(url, allow_empty=True)).is_empty()


def test_rows_that_are_added_meanwhile_neither_hide_nor_show(url: str, engine: Engine) -> None:
    fill(engine, [(f"k{at:03}", "x") for at in range(100)])
    frames = source(url, page_rows=10).listing()
    seen = next(frames)["document_id"].to_list()
    fill(engine, [("a", "new"), ("k000a", "new"), ("k050a", "new"), ("z", "new")])
    run(engine, "DELETE FROM t WHERE id = 'k070'")
    seen += [name for frame in frames for name in frame["document_id"]]
    assert seen == [f"t/k{at:03}" for at in range(100)]


def test_a_connection_that_is_lost_in_the_middle(url: str, engine: Engine) -> None:
    if engine.dialect.name != "postgresql":
        pytest.skip("SQLite has no connection to lose")
    fill(engine, [(f"k{at:03}", "x") for at in range(100)])
    listing = source(url, page_rows=10).listing()
    next(listing)
    run(
        engine,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    with pytest.raises(SourceUnreadable, match="does not answer"):
        list(listing)
    with pytest.raises(WalkUnfinished):
        listing.report()
    with warnings.catch_warnings():
        # SQLAlchemy drops the cursor of a lost connection, which psycopg remarks on.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_nothing_is_written(url: str, engine: Engine) -> None:
    if engine.dialect.name != "postgresql":
        pytest.skip("an SQLite file is opened for reading")
    run(
        engine,
        "CREATE OR REPLACE FUNCTION spoil() RETURNS TEXT LANGUAGE sql AS "
        "$$ INSERT INTO t VALUES ('spoilt', 'x', 'y') RETURNING id $$",
    )
    with pytest.raises(SourceUnreadable):
        listed(source(url, query="SELECT spoil() AS id, 'x' AS body"))
    with pytest.raises(SourceEmpty):
        listed(source(url))


def test_long_texts_come_in_short_pages(
    url: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_table, "FRAME_CHARACTERS", 1_000)
    monkeypatch.setattr(sql_table, "_STEP_ROWS", 5)
    fill(engine, [(f"k{at:03}", "x" * 90) for at in range(60)])
    monkeypatch.setattr(sql_table, "_FIRST_KEYS", 2)
    table = source(url)
    sizes = [frame.height for frame in table.listing()]
    assert sum(sizes) == 60
    assert max(sizes) <= 15
    names = listed(table)["document_id"]
    assert len(texts(table, names.to_list())) == 60
    assert max(frame.height for frame in table.texts(names)) <= 11
    marked = source(url, changed="seen")
    run(engine, "UPDATE t SET seen = 'm'")
    read = list(marked.read(listed(marked)))
    assert sum(frame.height for frame in read) == 60
    assert max(frame.height for frame in read) <= 11


def test_more_text_with_one_key_than_fits_is_never_cut_short(
    url: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_table, "FRAME_CHARACTERS", 1_000)
    monkeypatch.setattr(sql_table, "_STEP_ROWS", 5)
    fill(engine, [("a", f"{at}" + "x" * 90) for at in range(11)])
    assert listed(source(url)).height == 11
    fill(engine, [("a", f"{at}" + "x" * 90) for at in range(11, 20)])
    with pytest.raises(SourceUnreadable, match="more text than fits"):
        listed(source(url))


KEYS = st.sampled_from([None, "", "a", "A", "b", "ä", "a\u0308", "z:1", "z%"])
BODIES = st.sampled_from([None, "", "one", "two", "two "])


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(KEYS, BODIES), max_size=12), size=st.integers(1, 5))
def test_listing_any_table_in_pages_is_listing_it_at_once(
    url: str, engine: Engine, rows: list[tuple[str | None, str | None]], size: int
) -> None:
    run(engine, "DELETE FROM t")
    fill(engine, rows)
    pages = listed(source(url, allow_empty=True, page_rows=max(size, 12)))
    documents = pages.filter(pl.col("excluded").is_null())
    expected: dict[str, set[str]] = {}
    for key, body in rows:
        if key:
            folded = key.replace("a\u0308", "ä").replace("%", "%25").replace(":", "%3A")
            expected.setdefault(f"t/{folded}", set()).add((body or "").rstrip())
    held = dict(documents.select("document_id", "checksum").iter_rows())
    for name, bodies in expected.items():
        assert name in pages["document_id"]
        assert held.get(name) in {sha(body) for body in bodies} | {None}
    keyless = sum(1 for key, _ in rows if not key)
    distinct = sum(len(bodies) for bodies in expected.values())
    assert pages["excluded"].to_list().count("no_key") == keyless
    assert pages.height == keyless + distinct
    small = [(f"{at:03}", body) for at, (_, body) in enumerate(rows)]
    run(engine, "DELETE FROM t")
    fill(engine, small)
    assert ids(source(url, allow_empty=True, page_rows=size)) == [f"t/{key}" for key, _ in small]


def test_a_variable_that_is_not_set() -> None:
    declared = source("").__dict__["_declared"]
    table = SqlTable(declared, environ={})
    assert table.location == f"${VARIABLE} table t, rows named by 'id'"
    with pytest.raises(SourceMissing, match=f"{VARIABLE} is not set"):
        next(table.listing())


@pytest.mark.parametrize(
    ("url", "error"),
    [
        pytest.param(f"postgresql://u:{PASSWORD}@127.0.0.1:1/d", SourceUnreadable, id="nobody"),
        pytest.param(f"postgresql://u:{PASSWORD}@host:x/d", SourceUnreadable, id="bad-port"),
        pytest.param(f"{PASSWORD}", SourceUnreadable, id="no-url"),
        pytest.param(f"nosuch://u:{PASSWORD}@h/d", SourceUnreadable, id="no-driver"),
        pytest.param(f"sqlite:///{PASSWORD}-less/none.db", SourceMissing, id="no-file"),
    ],
)
def test_databases_that_cannot_be_reached(url: str, error: type[Exception]) -> None:
    table = source(url)
    with pytest.raises(error) as caught:
        next(table.listing())
    shown = f"{caught.value!r} {caught.value.__cause__!r} {table.location}"
    assert PASSWORD not in shown.replace(f"{PASSWORD}-less", "")


def test_where_it_is_without_secrets() -> None:
    secret = f"postgresql://user:{PASSWORD}@host:5/d?password={PASSWORD}&sslkey=k"
    assert source(secret).location == "postgresql://host:5/d table t, rows named by 'id'"


def test_a_missing_sqlite_file_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "none.sqlite3"
    with pytest.raises(SourceMissing, match="no database file"):
        next(source(f"sqlite:///{path}").listing())
    assert not path.exists()
    path.write_bytes(b"no database at all, but long enough to be looked at" * 20)
    with pytest.raises(SourceUnreadable):
        next(source(f"sqlite:///{path}").listing())


def test_no_fingerprint(url: str) -> None:
    assert source(url).fingerprint() is None
