"""CSV and Parquet files as sources: what is listed, and what is refused."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import subprocess
import sys
import textwrap
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.sources import csv_rows
from resources.sources.checksums import RACY_WINDOW_NS
from resources.sources.declared import TableSource
from resources.sources.listing import LISTED_SCHEMA, READ_SCHEMA, TEXT_SCHEMA
from resources.sources.port import (
    EntryRefused,
    SourceEmpty,
    SourceMissing,
    SourceUnreadable,
    WalkUnfinished,
)
from resources.sources.row_text import keyless_id
from resources.sources.table_file import TableFile, open_table

SECRET = "Herr Muster"


def source(path: Path, **declared: Any) -> TableFile:
    given = {"name": "t", "workload": "w", "kind": "table", "key": "id", "text": ["body"]}
    return open_table(TableSource.model_validate({**given, "path": path, **declared}))


def written(folder: Path, content: bytes | str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def listed(table: TableFile) -> pl.DataFrame:
    listing = table.listing()
    frames = list(listing)
    whole = pl.concat(frames) if frames else pl.DataFrame(schema=LISTED_SCHEMA)
    assert listing.report().entries == whole.height
    assert listing.report().complete
    return whole


def texts(table: TableFile, ids: list[str]) -> dict[str, str]:
    frames = list(table.texts(pl.Series(ids, dtype=pl.String)))
    assert all(dict(frame.schema) == TEXT_SCHEMA for frame in frames)
    found = [row for frame in frames for row in frame.iter_rows()]
    assert len({name for name, _, _ in found}) == len(found)
    return {name: text for name, _, text in found}


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param("id,body\n1,one\n2,two\n", {"t/1": "one", "t/2": "two"}, id="plain"),
        pytest.param("id,body\r\n1,one\r\n", {"t/1": "one"}, id="crlf"),
        pytest.param("id,body\r1,one\r", {"t/1": "one"}, id="cr"),
        pytest.param("id,body\n1,one", {"t/1": "one"}, id="no-line-end-at-the-end"),
        pytest.param("\ufeffid,body\n1,one\n", {"t/1": "one"}, id="byte-order-mark"),
        pytest.param("id,body\n007,x\n1e5,y\n", {"t/007": "x", "t/1e5": "y"}, id="keys-are-text"),
        pytest.param('id,body\n1,"a, ""b""\nc"\n', {"t/1": 'a, "b"\nc'}, id="quoted"),
        pytest.param("body,x,id\none,,1\n", {"t/1": "one"}, id="any-order-of-columns"),
        pytest.param("\nid,body\n\n1,one\n\n\n2,two\n\n", {"t/1": "one", "t/2": "two"}, id="blank"),
        pytest.param('id,body\n1,19" rack\n', {"t/1": '19" rack'}, id="quote-in-a-bare-value"),
        pytest.param("id,body\n1,a\0b\n", {"t/1": "ab"}, id="nul"),
        pytest.param("id,body\na@b:c%,x\n", {"t/a%40b%3Ac%25": "x"}, id="escaped-key"),
        pytest.param("id,body\n../../etc,x\n", {"t/../../etc": "x"}, id="a-key-is-no-path"),
    ],
)
def test_csv(tmp_path: Path, content: str, expected: dict[str, str]) -> None:
    table = source(written(tmp_path, content))
    whole = listed(table)
    assert dict(whole.select("document_id", "checksum").iter_rows()) == {
        name: sha(text) for name, text in expected.items()
    }
    assert texts(table, list(expected)) == expected
    assert {name: table.open(name).read().decode() for name in expected} == expected


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(b"", "names 0 columns, and 'id' not", id="no-bytes"),
        pytest.param(b"id,text\n1,x\n", "names 2 columns, and 'body' not", id="missing-column"),
        pytest.param(b"id;body\n1;x\n", "names 1 columns, and 'id' not", id="semicolons"),
        pytest.param(b"id,body,body\n1,x,y\n", "'body' twice", id="column-twice"),
        pytest.param(b"id,body\n1,x\n2\n", "line 3 has 1 values, its first line has 2", id="short"),
        pytest.param(b"id,body\n1,x,y\n", "line 2 has 3 values", id="long"),
        pytest.param(
            b'id,body\n1,"a\nb\nc"\n\n2,x,y\n3,z\n', "line 6 has 3 values", id="after-long-row"
        ),
        pytest.param(b'id,body\n1,x\n2,"y\n3,z\n', "line 3 is never closed", id="never-closed"),
        pytest.param(b'id,body\n1,"x"y"\n2,z\n', "line 2 holds a quote inside", id="stray-quote"),
        pytest.param(b"id,body\n1,x\n2,\xe4\n", "line 3 is not UTF-8", id="latin-1"),
        pytest.param("id,body\n1,x\n".encode("utf-16"), "line 1 is not UTF-8", id="utf-16"),
        pytest.param(
            b"id,body\n" + b"1,\xc3\xa4\n" * 100_000 + b"2,\xff", "line 100002 ", id="far-down"
        ),
    ],
)
def test_broken_csv_is_refused_with_the_place(tmp_path: Path, content: bytes, problem: str) -> None:
    table = source(written(tmp_path, content))
    listing = table.listing()
    with pytest.raises(SourceUnreadable, match=problem) as caught:
        list(listing)
    assert SECRET not in str(caught.value)
    with pytest.raises(WalkUnfinished):
        listing.report()


def test_endless_values_do_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_rows, "LONGEST_LINE", 200_000)
    line = written(tmp_path, "id,body\n1," + "x" * 300_000, "line.csv")
    with pytest.raises(SourceUnreadable, match="line 2 is longer than 200000"):
        list(source(line).listing())
    value = written(tmp_path, 'id,body\n1,x\n2,"' + "x\n" * 150_000, "value.csv")
    with pytest.raises(SourceUnreadable, match=r"line 3 (is never closed|holds a value beyond)"):
        list(source(value).listing())


def test_names_of_columns_are_not_told_since_they_may_be_values(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable) as caught:
        list(source(written(tmp_path, f"1,{SECRET}\n")).listing())
    assert SECRET not in str(caught.value)


def test_no_file_and_no_regular_file(tmp_path: Path) -> None:
    for look in (lambda t: list(t.listing()), lambda t: t.fingerprint()):
        with pytest.raises(SourceMissing):
            look(source(tmp_path / "none.csv"))
        (tmp_path / "folder.csv").mkdir(exist_ok=True)
        with pytest.raises(SourceUnreadable, match="no regular file"):
            look(source(tmp_path / "folder.csv"))
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(SourceUnreadable, match="no regular file"):
        list(source(tmp_path / "pipe.csv").listing())


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link.csv").symlink_to(written(tmp_path, "id,body\n1,x\n", "real.csv"))
    assert listed(source(tmp_path / "link.csv")).height == 1


def test_a_table_without_rows(tmp_path: Path) -> None:
    path = written(tmp_path, "id,body\n")
    with pytest.raises(SourceEmpty):
        list(source(path).listing())
    assert listed(source(path, allow_empty=True)).is_empty()


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, "id,body\n" + "".join(f"{at},x\n" for at in range(60_000)))
    listing = source(path).listing()
    next(listing)
    with path.open("a") as file:
        file.write("new,x\n")
    with pytest.raises(SourceUnreadable, match="changed while"):
        list(listing)


def test_a_file_that_is_replaced_while_it_is_read_is_read_to_its_end(tmp_path: Path) -> None:
    path = written(tmp_path, "id,body\n" + "".join(f"{at},x\n" for at in range(60_000)))
    listing = source(path).listing()
    count = next(listing).height
    written(tmp_path, "id,body\n1,y\n", "new").rename(path)
    assert count + sum(frame.height for frame in listing) == 60_000


def test_marks_and_limits(tmp_path: Path) -> None:
    path = written(tmp_path, "id,body,seen\n1,x,monday\n2,xxxxxx,\n,x,\n")
    whole = listed(source(path, changed="seen", max_row_bytes=5))
    whole = whole.with_columns(mark=pl.col("mark").str.head(-9))
    assert whole.select("document_id", "mark", "excluded").rows() == [
        ("t/1", "monday", None),
        ("t/2", "", "too_large"),
        (keyless_id("t", 3), "", "no_key"),
    ]


def test_fingerprint(tmp_path: Path) -> None:
    path = written(tmp_path, "id,body,x\n1,x,y\n")
    settled = path.stat().st_mtime_ns + RACY_WINDOW_NS

    def fingerprint(now_ns: int = settled, **declared: Any) -> str | None:
        found = source(path, **declared)
        found._now_ns = lambda: now_ns
        return found.fingerprint()

    first = fingerprint()
    assert first is not None
    assert fingerprint() == first
    assert fingerprint(settled - 1) is None
    others = {
        fingerprint(key="x"),
        fingerprint(text=["x"]),
        fingerprint(text=["body", "x"]),
        fingerprint(text=["body"], changed="x"),
        fingerprint(max_row_bytes=9),
    }
    assert len(others | {first}) == 6
    os.utime(path, ns=(1, 1))
    assert fingerprint() != first


def test_reading_rows_again(tmp_path: Path) -> None:
    table = source(written(tmp_path, "id,body\n1,x\n2,\n3,y\n"))
    wanted = (
        listed(table)
        .with_columns(checksum=pl.lit(None, pl.String))
        .filter(pl.col("document_id") != "t/3")
    )
    wanted = pl.concat([wanted, wanted.head(1).with_columns(document_id=pl.lit("t/9"))])
    read = pl.concat(list(table.read(wanted)))
    assert dict(read.schema) == READ_SCHEMA
    assert read.select("document_id", "checksum", "excluded").rows() == [
        ("t/1", sha("x"), None),
        ("t/2", None, "empty"),
        ("t/9", None, "unreadable"),
    ]


def test_texts_are_of_the_first_row_with_an_id_and_of_documents_alone(tmp_path: Path) -> None:
    table = source(written(tmp_path, "id,body\n1,x\n1,y\n2,\n3,z\n"))
    assert texts(table, ["t/1", "t/2", "t/9"]) == {"t/1": "x"}
    with pytest.raises(EntryRefused):
        table.open("t/2")


CELLS = st.text(st.sampled_from("ab,\"'\n\r;é \t"), max_size=6)


@settings(max_examples=40)
@given(st.lists(st.tuples(CELLS, CELLS), max_size=12), st.sampled_from(["\n", "\r\n"]))
def test_what_a_csv_writer_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], end: str
) -> None:
    folder = tmp_path_factory.mktemp("csv")
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator=end, quoting=csv.QUOTE_ALL).writerows([("id", "body"), *rows])
    table = source(written(folder, buffer.getvalue()), allow_empty=True)
    parquet = folder / "t.parquet"
    pl.DataFrame(rows, schema={"id": pl.String, "body": pl.String}, orient="row").write_parquet(
        parquet
    )
    assert listed(table).equals(listed(source(parquet, allow_empty=True)))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param(pa.array([7, None], pa.int64()), ["7", None], id="integers"),
        pytest.param(pa.array([1.5, None]), ["1.5", None], id="floats"),
        pytest.param(pa.array([Decimal("1.50"), None]), ["1.50", None], id="decimals"),
        pytest.param(pa.array([True, None]), ["true", None], id="truth"),
        pytest.param(pa.array([date(2026, 1, 2), None]), ["2026-01-02", None], id="dates"),
        pytest.param(
            pa.array([datetime(2026, 1, 2, tzinfo=UTC), None]),
            ["2026-01-02 00:00:00.000000+00:00", None],
            id="times",
        ),
        pytest.param(pa.array(["x", None]).dictionary_encode(), ["x", None], id="dictionary"),
        pytest.param(pa.array(["x", None], pa.large_string()), ["x", None], id="large"),
        pytest.param(pa.array([b"x", None]), ["x", None], id="bytes-that-are-text"),
        pytest.param(pa.nulls(2), [None, None], id="nulls"),
    ],
)
def test_types_of_parquet(tmp_path: Path, values: pa.Array, expected: list[str | None]) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"id": ["1", "2"], "body": values}), path)
    table = source(path)
    wanted = {f"t/{at}": text for at, text in enumerate(expected, start=1) if text is not None}
    assert texts(table, ["t/1", "t/2"]) == wanted
    assert listed(table)["excluded"].to_list() == [None if text else "empty" for text in expected]


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        pytest.param({"id": ["1"], "x": ["y"]}, "2 columns, and 'body' not", id="missing"),
        pytest.param({"id": ["1"], "body": [["y"]]}, "'body' holds list", id="nested"),
        pytest.param({"id": ["1"], "body": [b"\xff"]}, "that is no text", id="not-utf-8"),
    ],
)
def test_parquet_that_is_no_such_table(
    tmp_path: Path, table: dict[str, list[Any]], problem: str
) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(table), path)
    with pytest.raises(SourceUnreadable, match=problem):
        list(source(path).listing())


@pytest.mark.parametrize("keep", [0, 3, 60, 2_000, -9, -1], ids=str)
def test_damaged_parquet(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "t.parquet"
    frame = pl.DataFrame({"id": [f"{at}" for at in range(5_000)], "body": "x"})
    frame.write_parquet(path, compression="uncompressed")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(SourceUnreadable, match="Parquet"):
        list(source(path).listing())


@pytest.mark.parametrize("places", [slice(200, 400), slice(50, 51)], ids=["values", "head"])
def test_parquet_with_bytes_exchanged_in_its_pages(tmp_path: Path, places: slice) -> None:
    path = tmp_path / "t.parquet"
    frame = pl.DataFrame({"id": [f"{at:09}" for at in range(5_000)], "body": "x"})
    frame.write_parquet(path, compression="zstd")
    content = bytearray(path.read_bytes())
    content[places] = bytes(0 if byte else 255 for byte in content[places])
    path.write_bytes(content)
    with pytest.raises(SourceUnreadable, match="it is no Parquet file, or is damaged"):
        list(source(path).listing())


def test_long_rows_come_in_short_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_rows, "FRAME_CHARACTERS", 1_000_000)
    rows = "".join(f"{at},{'x' * 10_000}\n" for at in range(300))
    sizes = [frame.height for frame in source(written(tmp_path, f"id,body\n{rows}")).listing()]
    assert sizes == [200, 100]


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_million_rows_in_bounded_memory(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"t.{ending}"
    rows = pl.int_range(1_000_000, eager=True).cast(pl.String)
    frame = pl.DataFrame({"id": rows}).with_columns(body=pl.col("id") + pl.lit(" word" * 40))
    if ending == "csv":
        frame.write_csv(path)
    else:
        frame.write_parquet(path, row_group_size=1_000_000)
    program = f"""
        import psutil, threading
        from tests.integration.sources.test_table_file import source
        from pathlib import Path
        peak, done = 0, threading.Event()
        def watch():
            global peak
            while not done.wait(0.02):
                peak = max(peak, psutil.Process().memory_info().rss)
        watcher = threading.Thread(target=watch)
        watcher.start()
        listing = source(Path({str(path)!r})).listing()
        print(sum(frame.height for frame in listing), end=" ")
        done.set()
        watcher.join()
        print(peak)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    count, peak = map(int, run.stdout.split())
    assert count == 1_000_000
    assert peak < 500_000_000
