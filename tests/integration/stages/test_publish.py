"""Publishing: only what was accepted, once, whole, and never older values over newer ones."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from sqlalchemy import delete, update

from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.publish.candidates import AcceptanceUnproven, StagedValuesDiffer
from pipeline_assets.publish.completeness import incomplete_entries
from pipeline_assets.publish.publish_accepted import PublishReport, publish_accepted
from pipeline_assets.submit.submit_batches import submit_batches
from resources.artifacts import ArtifactDamaged, ArtifactMissing
from resources.contracts import STAGING, read_frame, store_frame
from resources.ledger.archive import publish_entries
from resources.ledger.moves import batch_chain, move_records
from resources.ledger.schema import (
    archive_entries,
    archive_heads,
    batches,
    deliveries,
    judgements,
    parses,
    record_state,
)
from tests.integration.stages.support import FAN, ON_ONE_DATABASE, PUMP, Shop, html, manual


def set_state(shop: Shop, record_no: int, state: str) -> None:
    """What no code does: a state changed without a move, as a restored backup would."""
    with shop.context.ledger.write() as connection:
        connection.execute(
            update(record_state).where(record_state.c.record_no == record_no).values(state=state)
        )


def test_a_delivery_has_one_effect(shop: Shop) -> None:
    shop.fill().walk()
    before, counts = shop.archive(), shop.counts()
    (first, _second) = shop.rows(record_state)
    set_state(shop, first["record_no"], "accepted")
    report = publish_accepted(shop.context, shop.version())
    assert report == PublishReport(published=0, already=1, replaced=0)
    assert shop.archive() == before
    after = shop.counts()
    assert {name for name in after if after[name] != counts[name]} == {"moves", "move_members"}
    assert set(shop.states().values()) == {"published"}


def test_delivered_and_new_records_of_one_batch(shop: Shop) -> None:
    version = shop.fill().accept()
    first = shop.rows(record_state)[0]["record_no"]
    set_state(shop, first, "awaiting_review")
    assert publish_accepted(shop.context, version).published == 1
    second = shop.rows(record_state)[1]["record_no"]
    set_state(shop, first, "accepted")
    set_state(shop, second, "accepted")
    assert publish_accepted(shop.context, version) == PublishReport(1, 1, 0)
    assert len(shop.rows(archive_entries)) == len(shop.rows(deliveries)) == 2


@ON_ONE_DATABASE
@pytest.mark.parametrize("state", ["awaiting_review", "rejected", "dead_letter", "superseded"])
def test_only_what_the_ledger_calls_accepted(shop: Shop, state: str) -> None:
    version = shop.fill().accept()
    set_state(shop, shop.rows(record_state)[0]["record_no"], state)
    assert publish_accepted(shop.context, version).published == 1
    assert len(shop.archive()) == 1


def staging_path(shop: Shop) -> Path:
    return shop.context.artifacts.path("frame", shop.rows(batches)[0]["staging_artifact"])


def replace_staging(shop: Shop, *changes: pl.Expr) -> None:
    """Another staging file, whole and named by its own digest."""
    rows = read_frame(STAGING, staging_path(shop)).with_columns(changes)
    stored = store_frame(shop.context.artifacts, "frame", STAGING, [rows])
    with shop.context.ledger.write() as connection:
        connection.execute(update(batches).values(staging_artifact=stored.digest))


def change_one_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def lose_thumbnail(shop: Shop) -> None:
    for row in shop.rows(parses):
        if row["thumbnail"]:
            shop.context.artifacts.path("thumbnail", row["thumbnail"]).unlink(missing_ok=True)


@ON_ONE_DATABASE
@pytest.mark.parametrize(
    ("tamper", "error"),
    [
        pytest.param(
            lambda shop: change_one_bit(staging_path(shop)), ArtifactDamaged, id="bytes-changed"
        ),
        pytest.param(
            lambda shop: replace_staging(shop, pl.lit('{"title":1}').alias("content")),
            StagedValuesDiffer,
            id="other-values-under-the-old-digest",
        ),
        pytest.param(
            lambda shop: replace_staging(shop, pl.lit("0" * 64).alias("values_digest")),
            StagedValuesDiffer,
            id="other-digest",
        ),
        pytest.param(
            lambda shop: replace_staging(shop, pl.col("record_no") + 1000),
            StagedValuesDiffer,
            id="other-records",
        ),
        pytest.param(lambda shop: staging_path(shop).unlink(), ArtifactMissing, id="file-is-gone"),
        pytest.param(lose_thumbnail, ArtifactMissing, id="thumbnail-is-gone"),
    ],
)
def test_nothing_is_published_that_was_not_accepted(
    shop: Shop, tamper: Callable[[Shop], None], error: type[Exception]
) -> None:
    version = shop.fill().accept()
    tamper(shop)
    before = shop.counts()
    with pytest.raises(error, match="backup"):
        publish_accepted(shop.context, version)
    assert shop.counts() == before
    assert shop.archive() == []
    assert set(shop.states().values()) == {"accepted"}


def test_a_state_alone_proves_no_acceptance(shop: Shop) -> None:
    """Judged for review, then set to accepted past the journal: publishing alone leaks nothing."""
    version = shop.fill().accept()
    with shop.context.ledger.write() as connection:
        connection.execute(update(judgements).values(outcome="awaiting_review"))
    with pytest.raises(AcceptanceUnproven, match="restore the ledger"):
        publish_accepted(shop.context, version)
    assert shop.archive() == []


@ON_ONE_DATABASE
def test_answers_that_were_changed_are_not_judged(shop: Shop) -> None:
    version = shop.fill().prepare()
    submit_batches(shop.context, version)
    collect_batches(shop.context, version)
    path = shop.context.artifacts.path("frame", shop.rows(batches)[0]["collected_artifact"])
    change_one_bit(path)
    with pytest.raises(ArtifactDamaged):
        judge_batches(shop.context, version)
    assert set(shop.states().values()) == {"collected"}


def test_an_older_answer_never_replaces_a_newer_one(shop: Shop) -> None:
    """The record of the old bytes waited for a person while the document was corrected."""
    shop.write(PUMP, manual("Circulation Pump", "WP-100"))
    version = shop.accept()
    (old,) = shop.rows(record_state)
    set_state(shop, old["record_no"], "awaiting_review")
    shop.write(PUMP, manual("Circulation Pump", "WP-200"))
    assert shop.walk().publish == PublishReport(1, 0, 0)
    before = shop.archive()
    with shop.context.ledger.write() as connection:
        move_records(
            connection,
            shop.context.ledger.dialect,
            pl.Series([old["record_no"]]),
            "awaiting_review",
            "accepted",
            shop.context.cause("a reviewer accepted it", "review"),
            batch_chain(shop.rows(batches)[0]["batch_no"]),
        )
    report = publish_accepted(shop.context, version)
    assert (report.published, report.replaced, report.superseded) == (0, 0, 1)
    assert shop.archive() == before
    states = [row["state"] for row in shop.rows(record_state)]
    assert states == ["superseded", "published"]
    assert publish_accepted(shop.context, version) == PublishReport(0, 0, 0)


def test_old_and_new_accepted_together_end_in_the_new_one(shop: Shop) -> None:
    shop.write(PUMP, manual("Circulation Pump", "WP-100"))
    shop.accept()
    shop.write(PUMP, manual("Circulation Pump", "WP-200"))
    shop.walk()
    (visible,) = [row for row in shop.rows(archive_entries) if row["valid_to"] is None]
    assert '"WP-200"' in visible["content"]
    assert shop.search("WP-200") == [visible["entry_no"]]
    assert shop.search("WP-100") == []


def test_every_published_document_is_complete(shop: Shop) -> None:
    shop.fill().walk()
    assert incomplete_entries(shop.context).is_empty()
    with shop.context.ledger.write() as connection:
        connection.execute(delete(archive_heads))
    # The entry has no head, and what search finds is nothing that is visible.
    assert set(incomplete_entries(shop.context)["missing"]) == {"head", "metadata"}


def test_two_workers_publish_the_same_document(shop: Shop) -> None:
    """Batches of two versions hold it; the second waits, and replaces what the first published."""
    shop.write(FAN, html(manual("Ventilator", "VF-20")))
    shop.walk()
    ledger = shop.context.ledger
    (entry,) = shop.rows(archive_entries)
    with ledger.write() as connection:
        connection.execute(delete(archive_heads))
        connection.execute(delete(archive_entries))
        connection.execute(delete(deliveries))
        connection.exec_driver_sql("DELETE FROM archive_search")
    candidate = pl.DataFrame(
        {
            "record_no": [entry["record_no"]],
            "document_no": [entry["document_no"]],
            "request_digest": ["a" * 64],
            "content": ["{}"],
            "values_digest": ["b" * 64],
            "thumbnail": ["c" * 64],
            "title": ["one"],
            "identifiers": [""],
            "description": [""],
            "language": ["en"],
            "promotion": [1],
        }
    )
    second = candidate.with_columns(record_no=pl.col("record_no") + 1)
    outcome: list[object] = []
    begun = threading.Event()

    def publish_second() -> None:
        begun.set()
        try:
            with ledger.write() as connection:
                outcome.append(publish_entries(connection, ledger, 1, second, ledger.now(), 2))
        except Exception as error:  # noqa: BLE001 - told to the test
            outcome.append(error)

    with ledger.write() as connection:
        assert publish_entries(connection, ledger, 1, candidate, ledger.now(), 1) == 0
        worker = threading.Thread(target=publish_second)
        worker.start()
        begun.wait()
        worker.join(timeout=0.5)
    worker.join(timeout=30)
    assert outcome == [1]
    versions = [row["archive_version"] for row in shop.rows(archive_entries)]
    assert sorted(versions) == [1, 2]
