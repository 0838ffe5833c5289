"""A run that dies anywhere, and is started again, ends in the same archive."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from resources.ledger.journal import verify_all
from resources.ledger.leases import LEASE_SECONDS, LeaseHeld, LeaseLost, acquire
from resources.ledger.schema import batches, leases, metadata
from tests.integration.stages.support import ON_ONE_DATABASE, PUMP, Shop, manual
from tests.support.clock import FrozenClock

POINTS = [
    ("pipeline_assets.ingest.scan", "register_source"),
    ("pipeline_assets.ingest.scan", "store_scan"),
    ("pipeline_assets.ingest.parse_documents", "keep_source"),
    ("pipeline_assets.ingest.parse_documents", "store_frame"),
    ("pipeline_assets.ingest.parse_documents", "store_parses"),
    ("pipeline_assets.prepare.freeze", "write_requests"),
    ("pipeline_assets.prepare.freeze", "store_frame"),
    ("pipeline_assets.prepare.freeze", "store_manifest"),
    ("pipeline_assets.prepare.freeze", "replace_exclusions"),
    ("pipeline_assets.submit.answer_embedded", "update_batch"),
    ("pipeline_assets.submit.answer_embedded", "move_records"),
    ("pipeline_assets.submit.answer_embedded", "_record_intent"),
    ("pipeline_assets.submit.answer_embedded", "_answer"),
    ("pipeline_assets.submit.answer_embedded", "store_result_file"),
    ("pipeline_assets.submit.answer_embedded", "move_batch"),
    ("pipeline_assets.collect.collect_batches", "_start"),
    ("pipeline_assets.collect.collect_batches", "reconcile_batch"),
    ("pipeline_assets.collect.settle", "store_frame"),
    ("pipeline_assets.collect.settle", "store_results"),
    ("pipeline_assets.collect.settle", "count_dispositions"),
    ("pipeline_assets.collect.settle", "_move"),
    ("pipeline_assets.collect.settle", "move_batch"),
    ("pipeline_assets.accept.judge_batches", "_judge"),
    ("pipeline_assets.accept.judge_batches", "store_frame"),
    ("pipeline_assets.accept.judge_batches", "store_judgements"),
    ("pipeline_assets.accept.judge_batches", "update_batch"),
    ("pipeline_assets.accept.judge_batches", "move_records"),
    ("pipeline_assets.publish.publish_accepted", "delivered"),
    ("resources.ledger.archive", "_replace_heads"),
    ("pipeline_assets.publish.publish_accepted", "publish_entries"),
    ("pipeline_assets.publish.publish_accepted", "move_records"),
]
"""In the order of the pipeline; each is a step after which the run dies."""


class Crash(BaseException):
    """The process is gone."""


def dying_after(real: Callable[..., Any]) -> Callable[..., Any]:
    def step(*given: Any, **named: Any) -> Any:
        real(*given, **named)
        raise Crash

    return step


def test_dying_after_every_step_in_turn(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice over: with an empty archive, and with a corrected document."""
    shop.fill()
    for text in (None, manual("Circulation Pump", "WP-200")):
        if text is not None:
            shop.write(PUMP, text)
        for module, name in POINTS:
            with monkeypatch.context() as patch:
                home = importlib.import_module(module)
                patch.setattr(home, name, dying_after(getattr(home, name)))
                with pytest.raises(Crash):
                    shop.walk()
        walk = shop.walk()
        assert walk.publish.published == 2, "the last step is done again"
    with shop.context.ledger.read() as connection:
        assert verify_all(connection, shop.context.ledger.dialect).holds
    archive, counts, states = shop.archive(), shop.counts(), shop.states()
    assert len(archive) == 4

    with shop.context.ledger.write() as connection:
        for table in reversed(metadata.sorted_tables):
            if table.name not in ("ledger_info", "leases"):
                connection.execute(table.delete())
        connection.exec_driver_sql("DELETE FROM archive_search")
    shop.write(PUMP, manual("Circulation Pump", "WP-100"))
    shop.walk()
    shop.write(PUMP, manual("Circulation Pump", "WP-200"))
    shop.walk()
    assert shop.archive() == archive
    assert shop.states() == states
    assert shop.counts() == counts, "nothing was written twice"


def test_a_dead_worker_keeps_its_lease_until_it_expires(
    shop: Shop, frozen_clock: FrozenClock
) -> None:
    version = shop.fill().prepare()
    batch = "batch:manuals-baseline-2-m1-b1"
    acquire(shop.context.ledger, batch, "someone@elsewhere:1")
    before = shop.rows(batches)
    assert list(shop.walk().submit.waiting) == ["manuals-baseline-2-m1-b1"]
    assert shop.rows(batches) == before
    frozen_clock.advance(LEASE_SECONDS + 1)
    assert shop.walk().publish.published == 2
    assert version.key == "manuals-baseline-2"


@ON_ONE_DATABASE
@pytest.mark.parametrize("name", ["source:shop", "manifest:manuals-baseline-2"])
def test_one_worker_at_a_time(shop: Shop, name: str) -> None:
    shop.fill()
    acquire(shop.context.ledger, name, "someone@elsewhere:1")
    with pytest.raises(LeaseHeld):
        shop.walk()
    assert shop.archive() == []


def test_the_late_commit_of_a_worker_that_lost_its_lease(
    shop: Shop, frozen_clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It judged for too long; meanwhile another worker took the batch over and finished it."""
    home = importlib.import_module("pipeline_assets.accept.judge_batches")
    real = home._judge
    other = Shop(shop.folder, replace(shop.context, worker="other@elsewhere:2"))

    def slow(*given: Any) -> Any:
        judged = real(*given)
        monkeypatch.setattr(home, "_judge", real)
        frozen_clock.advance(LEASE_SECONDS + 1)
        assert other.walk().publish.published == 2
        return judged

    monkeypatch.setattr(home, "_judge", slow)
    shop.fill()
    with pytest.raises(LeaseLost):
        shop.walk()
    assert len(shop.archive()) == 2
    tokens = {row["name"]: row["token"] for row in shop.rows(leases)}
    assert max(tokens.values()) >= 2
    assert shop.walk().publish.published == 0
