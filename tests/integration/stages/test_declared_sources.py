"""Several declared sources: which are scanned, what fails alone, and what is parsed of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import yaml

from pipeline_assets.ingest import parse_documents as parse_module
from pipeline_assets.ingest import scan as scan_module
from pipeline_assets.ingest.look import Look, look_at_source
from pipeline_assets.ingest.parse_documents import parse_documents
from pipeline_assets.ingest.scan import NoSource, SomeSourcesFailed, scan_declared
from resources import kept_bytes
from resources.context import Context
from resources.ledger.leases import LeaseHeld, acquire
from resources.ledger.parses import missing_parses, missing_slice
from resources.ledger.schema import erasures, parses, sources
from resources.ledger.source_snapshots import (
    SourceOfOtherWorkload,
    newest_digests,
    present_documents,
)
from resources.parser_settings import PARSER_VERSION, ParserSettings
from resources.settings import load_settings
from resources.sources.declared import UnknownSource, declared_sources
from resources.sources.opening import open_source
from resources.sources.port import SourceMissing
from tests.integration.stages.support import ON_ONE_DATABASE, InProcessPool, manual
from tests.support.memory_source import WORKLOAD

TICKETS = "support_tickets"
PARSER = ParserSettings(PARSER_VERSION, ocr_pages=0, max_pages=10)

Declare = Callable[..., Context]


@pytest.fixture
def declare(
    context: Context, tmp_path: Path, shared_url: str, monkeypatch: pytest.MonkeyPatch
) -> Declare:
    """Return a function that declares sources and gives the context that has them."""
    monkeypatch.setattr(parse_module, "ParserPool", InProcessPool)

    def declared(**given: dict[str, object]) -> Context:
        file = tmp_path / "sources.yaml"
        file.write_text(yaml.safe_dump({"sources": given}))
        settings = load_settings(
            state=context.settings.state_folder,
            ledger_url=shared_url,
            sources=file,
            parser_workers=1,
        )
        return replace(context, settings=settings)

    return declared


def folder(tmp_path: Path, name: str, **files: str) -> dict[str, object]:
    """A folder with files, and its declaration."""
    (tmp_path / name).mkdir(exist_ok=True)
    for file, content in files.items():
        (tmp_path / name / f"{file}.txt").write_text(content)
    return {"kind": "folder", "path": name, "workload": WORKLOAD}


def rows(tmp_path: Path, name: str, **texts: str) -> dict[str, object]:
    """A CSV file, and its declaration."""
    lines = [f"{key},{text}" for key, text in texts.items()]
    (tmp_path / f"{name}.csv").write_text("\n".join(["id,body", *lines]) + "\n")
    return {
        "kind": "table",
        "path": f"{name}.csv",
        "workload": TICKETS,
        "key": "id",
        "text": ["body"],
    }


def present(context: Context, workload: str) -> list[str]:
    return present_documents(context.ledger, workload)["document_id"].to_list()


def test_sources_of_two_workloads(declare: Declare, tmp_path: Path) -> None:
    context = declare(
        manuals=folder(tmp_path, "manuals", a="1", b="2"), tickets=rows(tmp_path, "tickets", t1="x")
    )
    assert [report.source for report in scan_declared(context, workload=TICKETS)] == ["tickets"]
    assert present(context, WORKLOAD) == []
    assert present(context, TICKETS) == ["tickets/t1"]
    assert [report.source for report in scan_declared(context)] == ["manuals", "tickets"]
    assert present(context, WORKLOAD) == ["manuals/a.txt", "manuals/b.txt"]
    assert present(context, TICKETS) == ["tickets/t1"]
    assert [name for name, _ in newest_digests(context.ledger)] == ["manuals", "tickets"]
    assert [report.source for report in scan_declared(context, only="manuals")] == ["manuals"]
    with pytest.raises(UnknownSource, match="declared are manuals, tickets"):
        scan_declared(context, only="other")
    with pytest.raises(SourceOfOtherWorkload, match="'manuals' belongs to"):
        scan_declared(context, only="manuals", workload=TICKETS)


@ON_ONE_DATABASE
def test_a_workload_without_any_source(declare: Declare, tmp_path: Path) -> None:
    context = declare(tickets=rows(tmp_path, "tickets", t1="x"))
    with pytest.raises(NoSource, match=r"declared are: tickets \(support_tickets\)"):
        scan_declared(context, workload=WORKLOAD)
    scan_declared(context)
    # Once it had one: what was kept of it can be processed still.
    assert scan_declared(declare(), workload=TICKETS) == []


@ON_ONE_DATABASE
def test_one_source_that_fails_does_not_keep_the_others(declare: Declare, tmp_path: Path) -> None:
    there = folder(tmp_path, "there", a="1")
    gone: dict[str, object] = {"kind": "folder", "path": "nowhere", "workload": WORKLOAD}
    context = declare(after=there, gone=gone, lost=gone)
    with pytest.raises(SomeSourcesFailed, match=r"either: lost\..*nevertheless: after"):
        scan_declared(context)
    assert present(context, WORKLOAD) == ["after/a.txt"]
    with context.ledger.read() as connection:
        assert [row.name for row in connection.execute(sources.select())] == ["after"]
    with pytest.raises(SourceMissing, match="source gone"):
        scan_declared(context, only="gone")
    acquire(context.ledger, "source:after", "someone@elsewhere:1")
    with pytest.raises(LeaseHeld):
        scan_declared(declare(after=there))


@ON_ONE_DATABASE
def test_moved_and_unsettled_are_passed_on(declare: Declare, tmp_path: Path) -> None:
    context = declare(a=folder(tmp_path, "one", x="1"))
    (report,) = scan_declared(context, settle_seconds=3600)
    assert (report.unsettled, report.snapshot.documents) == (1, 0)
    scan_declared(context)
    other = declare(a=folder(tmp_path, "two", x="1"))
    with pytest.raises(scan_module.SourceMoved):
        scan_declared(other)
    assert not scan_declared(other, moved=True)[0].snapshot.written


@ON_ONE_DATABASE
def test_a_table_that_may_still_be_written_is_left_as_a_whole(
    declare: Declare, tmp_path: Path
) -> None:
    context = declare(tickets=rows(tmp_path, "tickets", t1="one", t2="two"))
    (report,) = scan_declared(context, settle_seconds=60)
    assert (report.unsettled, report.snapshot.documents) == (1, 0)
    scan_declared(context)
    rows(tmp_path, "tickets", t1="one")
    (report,) = scan_declared(context, settle_seconds=60)
    assert (report.unsettled, report.snapshot.documents, report.snapshot.written) == (1, 2, False)
    (one,) = declared_sources(context.settings)
    source = open_source(one, context.ledger)
    now = time.time_ns()
    young = look_at_source(context, source, one, now_ns=now, settle_seconds=60, seconds=9)
    assert young == Look(unsettled=1)
    old = look_at_source(context, source, one, now_ns=now, settle_seconds=0, seconds=9)
    assert (old.removed, old.anything) == (1, True)
    hour_ago = time.time() - 3600
    os.utime(tmp_path / "tickets.csv", (hour_ago, hour_ago))
    (report,) = scan_declared(context, settle_seconds=60)
    assert (report.unsettled, report.snapshot.removed) == (0, 1)
    (tmp_path / "tickets.csv").unlink()
    with pytest.raises(SourceMissing):
        scan_declared(context, settle_seconds=60)


def test_files_and_rows_are_parsed_in_slices(
    declare: Declare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parse_module, "FILES_A_SLICE", 1)
    monkeypatch.setattr(parse_module, "ROWS_A_SLICE", 2)
    text = manual("Circulation Pump", "WP-100")
    context = declare(
        first=folder(tmp_path, "first", a=text, b=text, c=manual("Fan", "F-1")),
        second=folder(tmp_path, "second", d=text),
        tickets=rows(tmp_path, "tickets", t1="one", t2="two", t3="three"),
    )
    scan_declared(context)
    report = parse_documents(context, PARSER, WORKLOAD)
    assert (report.parsed, report.cached, report.gone) == (2, 0, 0), "each content once"
    with context.ledger.read() as connection:
        assert len(connection.execute(parses.select()).all()) == 2
    report = parse_documents(context, PARSER, TICKETS)
    assert (report.parsed + sum(report.failed.values()), report.gone) == (3, 0)
    again = parse_documents(context, PARSER, TICKETS)
    assert (again.parsed, again.cached, again.ocr_available) == (0, 3, None)


def test_what_is_kept(declare: Declare, tmp_path: Path) -> None:
    """Of a row the text is the kept copy; of a file the file."""
    context = declare(
        manuals=folder(tmp_path, "manuals", a=manual("Fan", "F-1")),
        tickets=rows(tmp_path, "tickets", t1="the printer in room four does not print any more"),
    )
    scan_declared(context)

    def kept() -> list[bool]:
        with context.ledger.read() as connection:
            checksums = pl.concat(
                [
                    present_documents(context.ledger, workload)["checksum"]
                    for workload in (WORKLOAD, TICKETS)
                ]
            )
            return kept_bytes.kept(
                connection, context.ledger, context.artifacts, checksums
            ).to_list()

    assert kept() == [False, False]
    parse_documents(context, PARSER, WORKLOAD)
    assert kept() == [True, False]
    parse_documents(context, PARSER, TICKETS)
    assert kept() == [True, True]
    with context.ledger.read() as connection:
        packs = connection.execute(parses.select()).all()
    for row in packs:
        context.artifacts.path("text", row.text_pack).unlink()
    assert kept() == [True, False]


def test_what_was_erased_is_not_parsed_again(declare: Declare, tmp_path: Path) -> None:
    context = declare(manuals=folder(tmp_path, "manuals", a="one", b="two"))
    scan_declared(context)
    first = present_documents(context.ledger, WORKLOAD)["document_no"][0]
    early = missing_parses(context.ledger, PARSER.key, WORKLOAD)["source_version_no"]
    with context.ledger.write() as connection:
        connection.execute(
            erasures.insert().values(
                document_no=first, reason="asked for", actor="x", begun_at="", purged="{}"
            )
        )
    missing = missing_parses(context.ledger, PARSER.key, WORKLOAD)
    rows = missing_slice(context.ledger, PARSER.key, missing["source_version_no"])
    assert rows["document_id"].to_list() == ["manuals/b.txt"]
    rows = missing_slice(context.ledger, PARSER.key, early)
    assert rows["document_id"].to_list() == ["manuals/b.txt"], "erased while others were parsed"


@ON_ONE_DATABASE
def test_documents_of_a_source_that_is_not_declared_any_more(
    declare: Declare, tmp_path: Path
) -> None:
    one = folder(tmp_path, "one", a=manual("Fan", "F-1"))
    two = folder(tmp_path, "two", b=manual("Pump", "P-1"))
    scan_declared(declare(one=one, two=two))
    context = declare(two=two)
    report = parse_documents(context, PARSER, WORKLOAD)
    assert (report.parsed, report.gone) == (1, 1)
    parse_documents(declare(one=one, two=two), PARSER, WORKLOAD)
    other = ParserSettings(PARSER_VERSION, ocr_pages=1, max_pages=10)
    report = parse_documents(context, other, WORKLOAD)
    assert (report.parsed, report.gone) == (2, 0), "its copy is kept"
