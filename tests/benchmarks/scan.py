"""`python -m tests.benchmarks.scan`: how fast sources are scanned, and in how much memory.

Belongs here: making sources of a given size, scanning each twice in processes of their own, and one
JSON line for each pass. Does not belong here: parsing and everything after it (`pipeline.py`).

The second pass is over an unchanged source: that is the one that a sensor makes all day.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import yaml

from pipeline_assets.ingest.scan import scan_declared
from resources.context import open_context
from resources.settings import load_settings
from resources.sources.directory import DirectorySource
from tests.support.postgres import fresh_database, postgres_server

SEED = 20261130
ROW_CHARACTERS = 200
URL_VARIABLE = "TALLYBOOK_BENCH_URL"
_WORDS = "pump motor valve bearing noise after start stop leak filter oil water panel error".split()


def main() -> None:
    """Make what was asked for, scan it, print a line for each pass."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=0, help="a folder of so many small files")
    parser.add_argument("--csv-rows", type=int, default=0, help="a CSV file of so many rows")
    parser.add_argument("--sql-rows", type=int, default=0, help="a table of so many rows")
    parser.add_argument("--changed", action="store_true", help="the table has a column of changes")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--child", nargs=3, metavar=("CASE", "STATE", "LEDGER"), help="one pass")
    given = parser.parse_args()
    if given.child is not None:
        _one_pass(*given.child)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case, count, make in (
            ("files", given.files, make_files),
            ("csv", given.csv_rows, make_csv),
            ("sql", given.sql_rows, make_table),
        ):
            if count:
                place = folder / case
                place.mkdir()
                _declare(place, case, make(place, count), changed=given.changed)
                with _ledger(given.database, place) as url:
                    for _ in range(given.passes):
                        _child(case, place, url)


def make_files(place: Path, count: int) -> Path:
    """A folder of small files, 500 to a sub-folder."""
    for start in range(0, count, 500):
        below = place / "files" / f"{start // 500:05d}"
        below.mkdir(parents=True)
        for number in range(start, min(start + 500, count)):
            (below / f"document-{number}.txt").write_text(f"document {number}\n")
    return place / "files"


def make_csv(place: Path, count: int) -> Path:
    """A CSV file with a key, a subject and a text."""
    file = place / "rows.csv"
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(("id", "changed", "subject", "body"))
        writer.writerows(_rows(count))
    return file


def make_table(place: Path, count: int) -> Path:
    """An SQLite database with a table `tickets`."""
    file = place / "rows.sqlite3"
    with sqlite3.connect(file) as connection:
        connection.execute(
            "CREATE TABLE tickets (id INTEGER PRIMARY KEY, changed TEXT, subject TEXT, body TEXT)"
        )
        rows = _rows(count)
        while part := list(islice(rows, 10_000)):
            connection.executemany("INSERT INTO tickets VALUES (?, ?, ?, ?)", part)
    connection.close()
    return file


def _rows(count: int) -> Iterator[tuple[int, str, str, str]]:
    rng = random.Random(SEED)
    for number in range(count):
        words = rng.choices(_WORDS, k=ROW_CHARACTERS // 6)
        yield number, f"v{number % 7}", f"ticket {number}", " ".join(words)


def _declare(place: Path, case: str, made: Path, *, changed: bool) -> None:
    common: dict[str, object] = {"workload": "equipment_manuals"}
    kinds: dict[str, dict[str, object]] = {
        "files": {"kind": "folder", "path": str(made)},
        "csv": {"kind": "table", "path": str(made), "key": "id", "text": ["subject", "body"]},
        "sql": {
            "kind": "sql",
            "url_env": URL_VARIABLE,
            "table": "tickets",
            "key": "id",
            "text": ["subject", "body"],
        },
    }
    if changed and case != "files":
        common["changed"] = "changed"
    (place / "sources.yaml").write_text(
        yaml.safe_dump({"sources": {"bench": {**kinds[case], **common}}})
    )


@contextmanager
def _ledger(database: str, place: Path) -> Iterator[str]:
    if database == "sqlite":
        yield f"sqlite:///{place / 'ledger.sqlite3'}"
        return
    with postgres_server() as server, fresh_database(server) as url:
        yield url.render_as_string(hide_password=False)


def _child(case: str, place: Path, url: str) -> None:
    environment = dict(os.environ)
    if case == "sql":
        environment[URL_VARIABLE] = f"sqlite:///{place / 'rows.sqlite3'}"
    subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.scan", "--child", case, str(place), url],
        check=True,
        env=environment,
    )


def _one_pass(case: str, place: str, url: str) -> None:
    folder = Path(place)
    settings = load_settings(
        state=folder / "state", sources=folder / "sources.yaml", ledger_url=url
    )
    listed: dict[str, float] = {}
    if case == "files":
        walked = _seconds(lambda: sum(1 for _ in DirectorySource("w", folder / "files").walk()))
        listed["walk_alone_seconds"] = walked
    with open_context(settings) as context:
        started = time.perf_counter()
        (report,) = scan_declared(context)
        seconds = time.perf_counter() - started
    snapshot = report.snapshot
    print(
        json.dumps(
            {
                "case": case,
                "database": url.partition(":")[0].partition("+")[0],
                "pass": "first" if snapshot.added else "unchanged",
                "documents": snapshot.documents,
                "read": report.read,
                "seconds": round(seconds, 2),
                "documents_per_second": round(snapshot.documents / seconds),
                "peak_rss_mb": _peak_rss_mb(),
                **listed,
            }
        ),
        flush=True,
    )


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return round(time.perf_counter() - started, 2)


def _peak_rss_mb() -> int:
    """The high-water mark of this process alone, which begins anew with its program."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) // 1024
    raise OSError("this system does not tell the peak memory of a process in /proc/self/status")


if __name__ == "__main__":
    main()
