"""A source that only looks as if its documents were gone: half written, or declared anew."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline_assets.ingest.look import look_at_source
from pipeline_assets.ingest.scan import ScanReport, scan_declared
from resources.context import Context
from resources.ledger.source_snapshots import SourceMoved, present_documents
from resources.settings import load_settings
from resources.sources.declared import source_named
from resources.sources.opening import open_source
from tests.integration.stages.support import ON_ONE_DATABASE

TICKETS = "support_tickets"
HEADER = "id,ref,body\n"
ROWS = "1,a,first\n2,b,second\n3,c,third\n"

Declare = Callable[..., Context]


@pytest.fixture
def declare(context: Context, tmp_path: Path, shared_url: str) -> Declare:
    """Return a function that declares a table of tickets, and gives the context that has it."""

    def declared(**more: object) -> Context:
        table = {"kind": "table", "path": "t.csv", "workload": TICKETS, "key": "id", **more}
        file = tmp_path / "sources.yaml"
        file.write_text(yaml.safe_dump({"sources": {"tickets": {"text": ["body"], **table}}}))
        settings = load_settings(
            state=context.settings.state_folder, ledger_url=shared_url, sources=file
        )
        return replace(context, settings=settings)

    return declared


def write(tmp_path: Path, text: str, *, seconds_ago: float) -> None:
    (tmp_path / "t.csv").write_text(text)
    then = time.time() - seconds_ago
    os.utime(tmp_path / "t.csv", (then, then))


def scan(context: Context, **given: Any) -> ScanReport:
    return scan_declared(context, workload=TICKETS, **given)[0]


def looked(context: Context, settle_seconds: int) -> tuple[int, int, int]:
    declared = source_named(context.settings, "tickets")
    look = look_at_source(
        context,
        open_source(declared, context.ledger),
        declared,
        now_ns=time.time_ns(),
        settle_seconds=settle_seconds,
        seconds=60,
    )
    return look.new, look.removed, look.unsettled


def ids(context: Context) -> list[str]:
    return present_documents(context.ledger, TICKETS)["document_id"].to_list()


@ON_ONE_DATABASE
@pytest.mark.parametrize("seconds_ago", [0.0, 10.0])
def test_a_table_that_is_being_written_is_left_alone(
    declare: Declare, tmp_path: Path, seconds_ago: float
) -> None:
    context = declare()
    write(tmp_path, HEADER + ROWS, seconds_ago=100)
    assert scan(context, settle_seconds=30).snapshot.added == 3
    write(tmp_path, HEADER + "1,a,first\n", seconds_ago=seconds_ago)  # the rest is still to come
    assert looked(context, 30) == (0, 0, 1)
    report = scan(context, settle_seconds=30)
    assert (report.unsettled, report.snapshot.removed, report.snapshot.written) == (1, 0, False)
    assert len(ids(context)) == report.snapshot.documents == 3
    write(tmp_path, HEADER + ROWS + "4,d,fourth\n", seconds_ago=31)
    assert looked(context, 30) == (1, 0, 0)
    assert scan(context, settle_seconds=30).snapshot.added == 1


@ON_ONE_DATABASE
def test_whoever_scans_by_hand_waits_for_nothing(declare: Declare, tmp_path: Path) -> None:
    context = declare()
    write(tmp_path, HEADER + ROWS, seconds_ago=0)
    assert scan(context).snapshot.added == 3
    assert looked(context, 0) == (0, 0, 0)


@ON_ONE_DATABASE
def test_a_new_table_that_is_being_written_leaves_no_trace(
    declare: Declare, tmp_path: Path
) -> None:
    context = declare()
    write(tmp_path, HEADER + '1,a,"never clo', seconds_ago=0)
    report = scan(context, settle_seconds=30)
    assert (report.unsettled, report.snapshot.documents, report.read) == (1, 0, 0)
    assert ids(context) == []


def test_another_key_column_is_another_source(declare: Declare, tmp_path: Path) -> None:
    write(tmp_path, HEADER + ROWS, seconds_ago=100)
    context = declare(removed="withdraw")
    scan(context)
    before = ids(context)
    with pytest.raises(SourceMoved, match="'ref'"):
        scan(declare(removed="withdraw", key="ref"))
    assert ids(context) == before
    assert scan(declare(key="ref"), moved=True).snapshot.removed == 3


def test_other_text_columns_are_the_same_documents(declare: Declare, tmp_path: Path) -> None:
    write(tmp_path, HEADER + ROWS, seconds_ago=100)
    scan(declare())
    snapshot = scan(declare(text=["ref", "body"])).snapshot
    assert (snapshot.added, snapshot.changed, snapshot.removed) == (0, 3, 0)


@ON_ONE_DATABASE
def test_a_table_that_was_moved_is_read_anew(
    context: Context, tmp_path: Path, shared_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Another database counts its changes by itself: the same number tells nothing.
    for name, body in (("old", "first"), ("new", "another")):
        with closing(sqlite3.connect(tmp_path / f"{name}.sqlite3")) as database:
            database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT, changed INTEGER)")
            database.execute("INSERT INTO t VALUES (1, ?, 7)", (body,))
            database.commit()
    file = tmp_path / "sources.yaml"
    table = {"kind": "sql", "url_env": "SHOP_URL", "table": "t", "key": "id", "text": ["body"]}
    table |= {"workload": TICKETS, "changed": "changed"}
    file.write_text(yaml.safe_dump({"sources": {"tickets": table}}))
    settings = load_settings(
        state=context.settings.state_folder, ledger_url=shared_url, sources=file
    )
    context = replace(context, settings=settings)
    monkeypatch.setenv("SHOP_URL", f"sqlite:///{tmp_path / 'old.sqlite3'}")
    assert scan(context).read == 1
    assert scan(context).read == 0
    monkeypatch.setenv("SHOP_URL", f"sqlite:///{tmp_path / 'new.sqlite3'}")
    with pytest.raises(SourceMoved):
        scan(context)
    report = scan(context, moved=True)
    assert (report.read, report.snapshot.changed) == (1, 1)
