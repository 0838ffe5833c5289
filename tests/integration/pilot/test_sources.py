"""Pilots over every kind of source, and what of a source must not be taken."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest
from sqlalchemy import insert, select

from pipeline_assets.ingest import parse_documents as parsing
from pipeline_assets.ingest.parse_documents import parse_documents
from pipeline_assets.ingest.scan import scan_declared
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.versions import open_version
from resources.context import Context, open_context
from resources.ledger.approvals import Decision, record, standing_of
from resources.ledger.schema import documents, erasures
from resources.settings import load_settings
from tests.integration.pilot.support import InProcess, PilotPlace
from tests.integration.stages.support import InProcessPool, manual
from tests.support.clock import FrozenClock

pytestmark = pytest.mark.slow

MANUALS, TICKETS = "manuals-baseline-2", "tickets-baseline-1"
SOURCES = """
sources:
  shelf:
    kind: folder
    path: shelf
    workload: equipment_manuals
  asked:
    kind: folder
    path: asked
    workload: equipment_manuals
    approval: true
  inbox:
    kind: queue
    transport: folder
    path: events
    workload: equipment_manuals
    documents: {kind: folder, path: dropped}
  tickets:
    kind: table
    path: tickets.csv
    key: id
    text: [subject, body]
    workload: support_tickets
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ledger_url: str) -> PilotPlace:
    """Return a place with sources of four kinds; the archive's ledger is where the test says."""
    monkeypatch.setattr(parsing, "ParserPool", InProcessPool)
    for name in ("shelf", "asked", "events", "dropped"):
        (tmp_path / name).mkdir()
    for source, count in (("shelf", 3), ("asked", 3), ("dropped", 2)):
        for number in range(count):
            text = manual(f"{source.title()} Pump", f"WP-{100 + number}")
            (tmp_path / source / f"d{number}.txt").write_text(text)
    rows = "".join(
        f"{number},Broken KT-{number},My KT-{number} does not start any more. Please help me.\n"
        for number in range(8)
    )
    (tmp_path / "tickets.csv").write_text("id,subject,body\n" + rows)
    (tmp_path / "sources.yaml").write_text(SOURCES)
    settings = load_settings(
        state=tmp_path / "state",
        sources=tmp_path / "sources.yaml",
        parser_workers=1,
        ledger_url=ledger_url,
    )
    return PilotPlace(settings, InProcess(FrozenClock()))


def prepare_main(place: PilotPlace, main: Context) -> None:
    """Scan and parse, then approve one document and erase another."""
    scan_declared(main, workload="equipment_manuals")
    version = open_version(main, MANUALS)
    parse_documents(main, parser_settings(version.spec), version.spec.workload)
    ledger = main.ledger
    with ledger.write() as connection:
        found = standing_of(connection, ledger, ["asked/d0.txt", "asked/d2.txt"])
        numbers = dict(found.select("document_id", "source_version_no").iter_rows())
        decisions: dict[str, Decision] = {"asked/d0.txt": "approved", "asked/d2.txt": "refused"}
        for name, decision in decisions.items():
            record(connection, ledger, pl.Series([numbers[name]]), decision, "the test", "tester")
        number = connection.execute(
            select(documents.c.document_no).where(documents.c.document_id == "shelf/d1.txt")
        ).scalar_one()
        connection.execute(
            insert(erasures).values(
                document_no=number,
                reason="asked for",
                actor="tester",
                begun_at=ledger.now(),
                purged="{}",
            )
        )


def test_what_must_not_be_taken_is_not(place: PilotPlace) -> None:
    clock = place.step.clock
    with open_context(place.settings, clock=clock, rng=random.Random(1)) as main:
        prepare_main(place, main)
        plan = place.plan(MANUALS, main=main)
        assert plan.left_out == {"erased": 1, "not_approved": 2}
        assert [one.document_id for one in plan.taken] == [
            "asked/d0.txt",
            "inbox/d0.txt",
            "inbox/d1.txt",
            "shelf/d0.txt",
            "shelf/d2.txt",
        ]
        outcome = place.go_on(plan, main=main)
    (version,) = place.report(outcome).versions
    assert version.outcomes == {"published": 5}, "what was approved stays approved"
    assert (place.folder(plan) / "ledger.sqlite").is_file()


def test_bytes_that_nobody_approved_are_not_processed(place: PilotPlace) -> None:
    clock = place.step.clock
    with open_context(place.settings, clock=clock, rng=random.Random(1)) as main:
        prepare_main(place, main)
        plan = place.plan(MANUALS, main=main)
        file = place.settings.sources_file.parent / "asked" / "d0.txt"
        file.write_text(file.read_text() + "Another last line.\n")
        outcome = place.go_on(plan, main=main)
    report = place.report(outcome)
    assert report.changed == ("asked/d0.txt",)
    assert report.versions[0].excluded == {"awaiting_approval": 1}


def test_rows_of_a_table(place: PilotPlace) -> None:
    plan = place.plan(TICKETS, sample=5)
    assert len(plan.taken) == 5
    assert all(one.checksum is not None for one in plan.taken), "a table says them by itself"
    outcome = place.go_on(plan)
    report = place.report(outcome)
    (version,) = report.versions
    assert sum(version.outcomes.values()) == 5
    assert "pending" not in version.outcomes
    assert report.changed == ()
    assert version.workers is not None
    assert version.workers.value is None, "rows need no parser processes"
    assert version.projection is not None
    assert version.projection.local_hours is not None
