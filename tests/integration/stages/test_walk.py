"""The whole way from a folder to the archive, and what a second pass finds."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from itertools import pairwise

import pytest

from pipeline_assets.ingest import parse_documents as parsing
from pipeline_assets.ingest.parsing.pool import ParserPool
from pipeline_assets.publish.publish_accepted import PublishReport, publish_accepted
from resources.ledger.schema import (
    archive_entries,
    batches,
    exclusions,
    leases,
    metadata,
    records,
    source_entries,
)
from resources.ledger.source_snapshots import present_documents
from tests.integration.stages.support import (
    COPY,
    EMPTY,
    FAN,
    GARBAGE,
    PUMP,
    Shop,
    manual,
)


def ids(*names: str) -> set[str]:
    return {f"shop/{name}" for name in names}


def excluded(shop: Shop) -> dict[str, str]:
    present = present_documents(shop.context.ledger, "equipment_manuals")
    names = dict(present.select("document_no", "document_id").iter_rows())
    return {names[row["document_no"]]: row["reason"] for row in shop.rows(exclusions)}


def test_from_folder_to_archive(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the real parser; and a second pass writes nothing anywhere."""
    monkeypatch.setattr(parsing, "ParserPool", ParserPool)
    shop.fill()
    for path in shop.folder.rglob("*.*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))  # just written files are read again
    walk = shop.walk()
    assert (walk.scan.snapshot.documents, walk.scan.snapshot.added) == (5, 5)
    assert walk.scan.complete
    assert walk.parse.parsed == 2
    assert walk.freeze.expected == 2
    assert sum(walk.freeze.excluded.values()) == 3
    assert walk.freeze.excluded["duplicate_content"] == 1
    assert (walk.submit.batches, walk.submit.records) == (1, 2)
    assert walk.collect.dispositions == {"succeeded": 2}
    assert walk.judge.outcomes == {"accepted": 2}
    assert walk.publish == PublishReport(published=2, already=0, replaced=0)
    assert set(excluded(shop)) == ids(COPY, EMPTY, GARBAGE)
    assert shop.states() == dict.fromkeys(ids(PUMP, FAN), "published")
    titles = {row[0]: json.loads(str(row[2]))["title"]["value"] for row in shop.archive()}
    assert titles == {
        f"shop/{PUMP}": "Circulation Pump WP-100 User Manual",
        f"shop/{FAN}": "Ventilator VF-20 User Manual",
    }

    before = {
        table.name: shop.rows(table) for table in metadata.sorted_tables if table is not leases
    }
    searchable = shop.searchable()
    again = shop.walk()
    after = {
        table.name: shop.rows(table) for table in metadata.sorted_tables if table is not leases
    }
    assert after == before
    assert shop.searchable() == searchable
    assert not again.scan.snapshot.written
    assert (again.parse.parsed, again.parse.failed) == (0, {})
    assert (again.freeze.manifest_id, again.freeze.expected, again.freeze.already) == (None, 0, 2)
    assert again.freeze.excluded == walk.freeze.excluded
    assert (again.submit.batches, again.collect.batches, again.judge.batches) == (0, 0, 0)
    assert again.publish == PublishReport(0, 0, 0)


def test_an_empty_archive_goes_through(shop: Shop) -> None:
    shop.write(EMPTY, b"")
    walk = shop.walk()
    assert walk.freeze.manifest_id is None
    assert walk.freeze.excluded == {"empty": 1}
    assert walk.publish == PublishReport(0, 0, 0)


def test_a_corrected_document_replaces_its_entry(shop: Shop) -> None:
    shop.fill().walk()
    first = {row["document_no"]: row for row in shop.rows(archive_entries)}
    shop.write(PUMP, manual("Circulation Pump", "WP-200"))
    walk = shop.walk()
    assert (walk.scan.snapshot.changed, walk.scan.snapshot.added) == (1, 0)
    # Its copy is no duplicate any more.
    assert (walk.freeze.expected, walk.freeze.already) == (2, 1)
    assert walk.freeze.excluded.get("duplicate_content") is None
    assert walk.publish == PublishReport(published=2, already=0, replaced=1)
    reasons = [row["replay_reason"] for row in shop.rows(records)]
    assert sorted(reasons) == ["corrected_source", "new_source", "new_source", "new_source"]
    entries = shop.rows(archive_entries)
    (new,) = [row for row in entries if row["archive_version"] == 2]
    old = next(row for row in entries if row["entry_no"] == first[new["document_no"]]["entry_no"])
    assert old["valid_to"] == new["valid_from"]
    assert new["valid_to"] is None
    assert old["content"] == first[new["document_no"]]["content"], "the old entry stays"
    assert shop.search("WP-200") == [new["entry_no"]]
    copy = [row["entry_no"] for row in entries if row["archive_version"] == 1 and row is not old]
    assert set(shop.search("WP-100")) <= set(copy), "search finds the visible entry alone"
    assert old["entry_no"] not in shop.searchable()


def test_a_removed_document_is_noticed(shop: Shop) -> None:
    shop.fill().walk()
    (shop.folder / FAN).unlink()
    (shop.folder / GARBAGE).unlink()
    walk = shop.walk()
    assert walk.scan.snapshot.removed == 2
    assert walk.scan.snapshot.documents == 3
    assert (walk.freeze.expected, walk.freeze.already) == (0, 1)
    assert set(present_documents(shop.context.ledger, "equipment_manuals")["document_id"]) == ids(
        PUMP, COPY, EMPTY
    )
    assert set(excluded(shop)) == ids(COPY, EMPTY)
    closed = [row for row in shop.rows(source_entries) if row["to_snapshot"] is not None]
    assert len(closed) == 2, "what was there is still known"


def test_a_document_that_comes_back_is_the_same_document(shop: Shop) -> None:
    shop.fill().walk()
    text = (shop.folder / FAN).read_bytes()
    (shop.folder / FAN).unlink()
    shop.walk()
    shop.write(FAN, text)
    walk = shop.walk()
    assert walk.scan.snapshot.added == 1
    assert (walk.freeze.expected, walk.freeze.already) == (0, 2)
    assert len(shop.rows(records)) == 2


def test_the_duplicate_of_a_removed_document_takes_its_place(shop: Shop) -> None:
    shop.fill().walk()
    (shop.folder / PUMP).unlink()
    walk = shop.walk()
    assert (walk.freeze.expected, walk.publish.published) == (1, 1)
    assert shop.states()[f"shop/{COPY}"] == "published"


def test_publishing_before_acceptance_publishes_nothing(shop: Shop) -> None:
    version = shop.fill().prepare()
    before = shop.counts()
    assert publish_accepted(shop.context, version) == PublishReport(0, 0, 0)
    assert shop.counts() == before
    assert shop.archive() == []


def test_several_batches(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(7):
        shop.write(f"m{number}.txt", manual("Bench Grinder", f"BG-{number}00"))
    version = shop.ingest()
    small = replace(version, spec=version.spec.model_copy(update={"batch_records": 3}))
    monkeypatch.setattr(Shop, "version", lambda _: small)
    walk = shop.walk()
    assert (walk.freeze.batches, walk.submit.batches, walk.collect.batches) == (3, 3, 3)
    assert walk.publish.published == 7
    rows = shop.rows(batches)
    assert [row["expected_records"] for row in rows] == [3, 3, 1]
    assert [row["batch_id"][-3:] for row in rows] == ["-b1", "-b2", "-b3"]
    spans = [(row["first_attempt_no"], row["last_attempt_no"]) for row in rows]
    assert all(last + 1 == first for (_, last), (first, _) in pairwise(spans))


def test_documents_are_expected_or_excluded(shop: Shop) -> None:
    shop.fill()
    for step in (
        lambda: None,
        lambda: shop.write("new.txt", manual("Band Saw", "BS-5")),
        lambda: shop.write(PUMP, b""),
        (shop.folder / FAN).unlink,
        lambda: shop.write(GARBAGE, manual("Band Saw", "BS-5")),
    ):
        step()
        walk = shop.walk()
        present = present_documents(shop.context.ledger, "equipment_manuals")
        assert present.height == walk.scan.snapshot.documents
        expected = walk.freeze.expected + walk.freeze.already
        assert present.height == expected + len(excluded(shop))
        assert len(excluded(shop)) == sum(walk.freeze.excluded.values())
