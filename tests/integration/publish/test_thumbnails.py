"""A thumbnail that somebody deleted is found, and rendered again from the kept bytes."""

from __future__ import annotations

import dagster as dg
import polars as pl
import pytest

from pipeline_assets.account import health, integrity
from pipeline_assets.account.health import Problem
from pipeline_assets.ingest import thumbnails
from pipeline_assets.ingest.parsing import document
from pipeline_assets.ingest.thumbnails import RenderReport, render_lost
from pipeline_assets.publish.completeness import incomplete_entries
from pipeline_assets.repair_archive import RepairReport, repair_archive
from resources.artifacts import ArtifactDamaged
from tests.integration.publish.support import BOTH, FAN, ONE, PUMP, TWO, Stall
from tests.integration.stages import support
from tests.integration.stages.support import ON_ONE_DATABASE, InProcessPool

PUMP_ID = f"shop/{PUMP}"


@pytest.fixture
def deleted(stall: Stall, monkeypatch: pytest.MonkeyPatch) -> Stall:
    """Return a published archive whose thumbnail files somebody deleted."""
    monkeypatch.setattr(thumbnails, "ParserPool", InProcessPool)
    stall.run(ONE)
    for digest in _named(stall):
        stall.context.artifacts.path("thumbnail", digest).unlink()
    return stall


def _named(stall: Stall) -> set[str]:
    """Thumbnails that visible entries name."""
    with stall.context.ledger.read() as connection:
        rows = connection.exec_driver_sql(
            "SELECT thumbnail FROM archive_entries WHERE valid_to IS NULL"
        )
        return {row[0] for row in rows}


def _problems(stall: Stall) -> list[Problem]:
    return [*integrity.diagnose(stall.context), *health.look(stall.context)]


def test_found_and_rendered_with_the_same_bytes(deleted: Stall) -> None:
    assert set(incomplete_entries(deleted.context)["missing"]) == {"thumbnail"}
    kinds = {problem.kind: problem.fixable for problem in _problems(deleted)}
    assert kinds == {"lost_thumbnail": True, "missing_artifact": False}
    before = deleted.facts()
    assert repair_archive(deleted.context) == RepairReport(0, 0, rendered=2, renamed=0, left=0)
    assert _problems(deleted) == []
    assert deleted.facts() == before, "no entry had to be touched"
    assert repair_archive(deleted.context).mended == 0
    deleted.require_whole()


def test_other_bytes_are_a_change_of_their_own(
    deleted: Stall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another release of the renderer draws another picture of the same document."""
    was = _named(deleted)
    real = document.parse_document
    monkeypatch.setattr(support, "_PARSED", {})
    monkeypatch.setattr(
        support,
        "parse_document",
        lambda *given, **named: _redrawn(real(*given, **named)),
    )
    assert repair_archive(deleted.context) == RepairReport(0, 0, rendered=2, renamed=2, left=0)
    assert _problems(deleted) == []
    assert not _named(deleted) & was
    assert deleted.sequence(PUMP_ID) == [(ONE, 1, "publish"), (ONE, 2, "restore")]
    assert deleted.shown() == dict.fromkeys(BOTH, ONE)
    assert repair_archive(deleted.context).mended == 0
    deleted.require_whole()
    # Whatever shows these values again names the picture that is there.
    for to in (1, 2):
        deleted.run(TWO) if to == 1 else deleted.promote(TWO)
        assert deleted.rollback_document(PUMP_ID, to=to).put_back == 1
        deleted.require_whole()
    deleted.promote(TWO)
    assert deleted.promote(ONE).shown_again == 2
    deleted.require_whole()


def _redrawn(outcome: object) -> object:
    from dataclasses import replace

    from pipeline_assets.ingest.parsing.model import ParsedDocument

    assert isinstance(outcome, ParsedDocument)
    return replace(outcome, thumbnail=(outcome.thumbnail or b"") + b"another release")


@ON_ONE_DATABASE
def test_without_the_kept_bytes_it_is_told(deleted: Stall) -> None:
    for kept in deleted.context.artifacts.root.glob("source/*/*"):
        kept.unlink()
    assert render_lost(deleted.context) == RenderReport(gone=2)
    assert repair_archive(deleted.context).left == 2
    (told,) = [problem for problem in _problems(deleted) if problem.kind == "lost_thumbnail"]
    assert not told.fixable


@ON_ONE_DATABASE
def test_a_damaged_copy_keeps_nothing_from_the_others(deleted: Stall) -> None:
    first = deleted.query(
        f"SELECT checksum FROM records WHERE record_no = {deleted.record_of(f'shop/{FAN}')}",
        {"checksum": pl.String},
    ).item()
    deleted.context.artifacts.path("source", first).write_text("other bytes")
    with pytest.raises(ArtifactDamaged, match="backup"):
        repair_archive(deleted.context)
    left = incomplete_entries(deleted.context)
    assert left["document_id"].to_list() == [f"shop/{FAN}"]


@ON_ONE_DATABASE
def test_every_missing_thing_at_once(deleted: Stall) -> None:
    with deleted.context.ledger.write() as connection:
        connection.exec_driver_sql("DELETE FROM archive_heads")
        connection.exec_driver_sql("DELETE FROM archive_search")
    report = repair_archive(deleted.context)
    assert (report.heads, report.search_entries, report.rendered, report.left) == (2, 2, 2, 0)
    assert deleted.shown() == dict.fromkeys(BOTH, ONE)


@ON_ONE_DATABASE
def test_the_job_mends_it(deleted: Stall) -> None:
    from pipeline_assets.definitions import build_definitions

    job = build_definitions(deleted.context.settings).get_job_def("repair_archive")
    with dg.DagsterInstance.ephemeral() as instance:
        result = job.execute_in_process(instance=instance)
    assert result.success
    assert incomplete_entries(deleted.context).is_empty()
