"""A document that goes back to earlier bytes shows the earlier values again."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline_assets.publish.publish_accepted import PublishReport, publish_accepted
from resources.ledger.journal import verify_all
from resources.ledger.moves import batch_chain, move_records
from resources.ledger.schema import archive_entries, batches, deliveries, record_state
from tests.integration.stages.support import PUMP, Shop, manual

OLD, NEW = manual("Circulation Pump", "WP-100"), manual("Circulation Pump", "WP-200")


def _shown(shop: Shop) -> str:
    (visible,) = [row for row in shop.rows(archive_entries) if row["valid_to"] is None]
    assert shop.searchable() == {visible["entry_no"]}
    return "WP-100" if '"WP-100"' in visible["content"] else "WP-200"


def test_back_and_forth(shop: Shop) -> None:
    for number, text in enumerate((OLD, NEW, OLD, NEW, OLD), start=1):
        shop.write(PUMP, text)
        walk = shop.walk()
        assert _shown(shop) == ("WP-100" if text is OLD else "WP-200")
        assert walk.publish.restored == (1 if number > 2 else 0)
    entries = sorted(shop.rows(archive_entries), key=lambda row: row["archive_version"])
    assert [row["archive_version"] for row in entries] == [1, 2, 3, 4, 5]
    assert [row["promotion"] for row in entries] == [1, 1, 2, 2, 3]
    assert entries[0]["content"] == entries[2]["content"] == entries[4]["content"]
    assert shop.search("WP-100") == [entries[4]["entry_no"]]
    assert shop.search("WP-200") == []
    assert len(shop.rows(deliveries)) == 5, "each promotion is a delivery of its own"
    assert len(shop.rows(record_state)) == 2, "and no record is made again"
    with shop.context.ledger.read() as connection:
        assert verify_all(connection, shop.context.ledger.dialect).holds


def test_once_restored_it_stays(shop: Shop) -> None:
    for text in (OLD, NEW, OLD):
        shop.write(PUMP, text)
        shop.walk()
    before = shop.counts()
    assert shop.walk().publish == PublishReport(0, 0, 0)
    assert shop.counts() == before


def test_accepted_after_the_document_went_back(shop: Shop) -> None:
    """The old bytes are those of now, so their late acceptance replaces the newer record."""
    shop.write(PUMP, OLD)
    version = shop.accept()
    (old,) = shop.rows(record_state)
    _move(shop, old["record_no"], "accepted", "awaiting_review")
    for text in (NEW, OLD):
        shop.write(PUMP, text)
        shop.walk()
    assert _shown(shop) == "WP-200"
    _move(shop, old["record_no"], "awaiting_review", "accepted")
    report = publish_accepted(shop.context, version)
    assert (report.published, report.replaced, report.superseded) == (1, 1, 0)
    assert _shown(shop) == "WP-100"


@pytest.mark.parametrize("text", [OLD], ids=["removed"])
def test_a_removed_document_is_not_restored(shop: Shop, text: str) -> None:
    shop.write(PUMP, text)
    shop.write("other.txt", manual("Ceiling Fan", "CF-300"))
    shop.walk()
    shop.write(PUMP, NEW)
    shop.walk()
    (shop.folder / PUMP).unlink()
    assert shop.walk().publish.restored == 0


def _move(shop: Shop, record_no: int, from_state: str, to_state: str) -> None:
    with shop.context.ledger.write() as connection:
        move_records(
            connection,
            shop.context.ledger.dialect,
            pl.Series([record_no]),
            from_state,
            to_state,
            shop.context.cause("for the test", "test"),
            batch_chain(shop.rows(batches)[0]["batch_no"]),
        )
