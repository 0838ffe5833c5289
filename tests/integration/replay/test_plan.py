"""What a plan says is what freezing does: nothing is counted, priced or sent that may not be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from pipeline_assets.erasure.purge import erase
from pipeline_assets.ingest.scan import scan_declared
from pipeline_assets.prepare.estimate import estimate
from pipeline_assets.replay.model import ReplayPlan
from pipeline_assets.replay.plan import BARRED, DUPLICATE, NO_TEXT, NOT_RECORDED, plan_replay
from pipeline_assets.versions import look_at_version
from resources.ledger.retries import retries_made
from resources.ledger.schema import metadata, parses
from tests.integration.replay.support import FAN, ONE, PUMP, SAW, TWO, Works, request
from tests.integration.stages.support import ON_ONE_DATABASE, manual

pytestmark = [ON_ONE_DATABASE]
COPY = "copy.txt"
SHOP = """
sources:
  shop:
    kind: folder
    path: {folder}
    workload: equipment_manuals
    approval: true
"""


@pytest.fixture
def done(works: Works) -> Works:
    """Three documents, published under ONE."""
    works.fill().run(ONE)
    return works


def plan_of(works: Works, from_key: str = ONE, to_key: str = TWO, **wish: Any) -> ReplayPlan:
    version = look_at_version(works.context, to_key)
    return plan_replay(works.context, version, request(from_key, **wish))


def selected(plan: ReplayPlan) -> list[str]:
    return [name.removeprefix("shop/") for name in plan.members["document_id"]]


def require_promise(works: Works, promised: ReplayPlan) -> None:
    """Carry a replay of everything out, and fail where the plan promised something else."""
    report = works.replay()
    assert report.records == promised.members.height
    if report.replay is not None:
        assert report.replay.selected == promised.members.height
    assert set(works.states(TWO)) == set(promised.members["document_id"])


def test_a_copy_of_what_the_version_has_is_not_promised(done: Works) -> None:
    """Under ONE the copy became a record while the pump had other bytes; now it has them again."""
    pump = manual("Circulation Pump", "WP-100")
    done.write(PUMP, manual("Circulation Pump", "WP-300"))
    done.write(COPY, pump)
    done.run(ONE)
    done.replay(documents=(f"shop/{COPY}",), name="r-0")
    done.write(PUMP, pump)
    done.run(ONE)
    plan = plan_of(done, where='title like "*Pump*"', documents=(f"shop/{PUMP}",))
    assert (selected(plan), plan.skipped[DUPLICATE]) == ([], 1)
    assert done.replay(documents=(f"shop/{PUMP}",), name="r-1").replay is None


def test_of_two_copies_one_is_promised(done: Works) -> None:
    done.write(COPY, manual("Circulation Pump", "WP-300"))
    done.run(ONE)
    done.write(COPY, manual("Circulation Pump", "WP-100"))
    done.accept(ONE)
    plan = plan_of(done)
    assert selected(plan) == [COPY, FAN, SAW]
    assert plan.skipped == {DUPLICATE: 1}
    require_promise(done, plan)


def test_what_the_parser_could_not_read_is_not_promised(done: Works) -> None:
    with done.context.ledger.write() as connection:
        checksum = pl.Series(plan_of(done, where='title like "*Pump*"').members["checksum"]).item()
        connection.execute(
            parses.update().where(parses.c.checksum == checksum).values(excluded="no_text")
        )
    plan = plan_of(done)
    assert (selected(plan), plan.skipped) == ([FAN, SAW], {NO_TEXT: 1})
    assert estimate(done.context, look_at_version(done.context, TWO), plan).records == 2
    require_promise(done, plan)


@pytest.mark.parametrize("to_key", [ONE, TWO])
def test_what_needs_approval_is_not_sent_again_without(done: Works, to_key: str) -> None:
    declared = done.folder.parent / "sources.yaml"
    declared.write_text(SHOP.format(folder=done.folder), encoding="utf-8")
    settings = done.context.settings.model_copy(update={"sources": declared})
    # The folder is declared, not given.
    settings.model_fields_set.discard("source")
    assert settings.sources_file == declared
    done = replace(done, context=replace(done.context, settings=settings))
    plan = plan_of(done, ONE, to_key)
    assert (selected(plan), plan.skipped) == ([], {BARRED["awaiting_approval"]: 3})
    assert done.replay(ONE, to_key).replay is None


def test_what_was_erased_is_told_as_that(done: Works) -> None:
    name = f"shop/{FAN}"
    erase(done.context, done.document_no(name), name, "asked to", "ada")
    for to_key in (ONE, TWO):
        plan = plan_of(done, ONE, to_key)
        assert (selected(plan), plan.skipped) == ([PUMP, SAW], {BARRED["erased"]: 1})
    require_promise(done, plan_of(done))


def test_a_listed_document_without_a_record_is_told(done: Works) -> None:
    done.write("late.txt", manual("Belt Sander", "BS-4"))
    scan_declared(done.context)
    both = (f"shop/{PUMP}", "shop/late.txt")
    plan = plan_of(done, documents=both)
    assert (selected(plan), plan.skipped) == ([PUMP], {NOT_RECORDED: 1})
    # What a filter does not choose is no fault of the list.
    plan = plan_of(done, documents=both, where="state = rejected")
    assert (selected(plan), plan.skipped) == ([], {NOT_RECORDED: 1})


def test_corrections_are_counted_whichever_version_takes_their_place(done: Works) -> None:
    done.decide(
        done.record_of(f"shop/{PUMP}"), "correct", title="Pump of ours", kind="quality_sample"
    )
    assert plan_of(done, ONE, TWO).corrected == 1
    assert plan_of(done, ONE, ONE).corrected == 1
    assert plan_of(done, ONE, ONE, documents=(f"shop/{FAN}",)).corrected == 0


def test_a_replay_uses_up_no_retry(done: Works) -> None:
    done.replay(ONE, ONE, reason="transient_retry")
    with done.context.ledger.read() as connection:
        assert retries_made(connection, done.version(ONE).version_no) == 0


@pytest.mark.parametrize("to_key", [ONE, TWO])
def test_a_look_writes_no_row_anywhere(done: Works, to_key: str) -> None:
    def rows() -> dict[str, list[str]]:
        with done.context.ledger.read() as connection:
            return {
                table.name: sorted(str(row) for row in connection.execute(table.select()))
                for table in metadata.sorted_tables
            }

    before = rows()
    plan = plan_of(done, ONE, to_key, where="state = published")
    estimate(done.context, look_at_version(done.context, to_key), plan)
    assert rows() == before
