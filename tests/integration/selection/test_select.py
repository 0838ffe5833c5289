"""Selecting records of a processed archive by what is recorded of them."""

from __future__ import annotations

import polars as pl
import pytest
from sqlalchemy import delete, select, update

from pipeline_assets.ingest.scan import scan_declared
from pipeline_assets.known_version import known_version
from pipeline_assets.selection import select as select_module
from pipeline_assets.selection.errors import FactMisused, UnknownFact, UnknownListedDocuments
from pipeline_assets.selection.facts import FACTS
from pipeline_assets.selection.parse import parse_where
from pipeline_assets.selection.select import (
    EVERY,
    LISTED,
    SELECTED_SCHEMA,
    select_records,
    selected_slices,
    slices,
)
from resources.artifacts import ArtifactMissing
from resources.ledger.schema import archive_entries, batches, dispositions, records, repairs
from tests.support.small_archive import FAN, KEY, PUMP, SAW, Archive
from tests.support.widened_archive import DOUBLE, TRIPLE

RECORDS = (FAN, DOUBLE, TRIPLE, PUMP, SAW)


def _selected(archive: Archive, text: str | None, documents: pl.Series | None = None) -> list[str]:
    where = None if text is None else parse_where(text)
    found = select_records(archive.context, known_version(archive.context, KEY), where, documents)
    assert found.schema == pl.Schema(SELECTED_SCHEMA)
    return sorted(name.removeprefix("manuals/") for name in found["document_id"])


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        pytest.param("state = published", [FAN, DOUBLE, PUMP, SAW], id="state"),
        pytest.param("state != published", [TRIPLE], id="not-a-state"),
        pytest.param("not state = published", [TRIPLE], id="not"),
        pytest.param("state in (awaiting_review, rejected)", [TRIPLE], id="states"),
        pytest.param("state = published and identifiers > 1", [DOUBLE], id="state-and-count"),
        pytest.param("state = withdrawn or identifiers = 3", [TRIPLE], id="or-is-not-pushed"),
        pytest.param("identifiers > 1", [DOUBLE, TRIPLE], id="several-identifiers"),
        pytest.param("product_identifiers = 1", [FAN, PUMP, SAW], id="one-identifier"),
        pytest.param("identifiers = 'WP-200'", [DOUBLE, TRIPLE], id="identifier"),
        pytest.param("identifiers like 'wp-3*'", [TRIPLE], id="identifier-like"),
        pytest.param("title like '*PUMP*'", [DOUBLE, TRIPLE, PUMP], id="title-like"),
        pytest.param("title = 'Band Saw'", [SAW], id="corrected-title"),
        pytest.param("title like 'chain*'", [], id="title-before-its-correction"),
        pytest.param("title is absent", [], id="absent"),
        pytest.param("field.language = en and language = en", [*RECORDS], id="both-languages"),
        pytest.param("finding has uncertain_field", [SAW, TRIPLE], id="finding"),
        pytest.param("finding = uncertain_field and corrected = no", [TRIPLE], id="uncorrected"),
        pytest.param("finding_field = title", [], id="finding-field"),
        pytest.param("decision = correct and reviewed_by = ines", [SAW], id="decision"),
        pytest.param("decision is not null", [SAW], id="decided"),
        pytest.param("corrected = true", [SAW], id="corrected"),
        pytest.param("published < 2030-01-02T03:05:00Z", [FAN, DOUBLE, PUMP], id="published-first"),
        pytest.param("published = 2030-01-02", [FAN, DOUBLE, PUMP, SAW], id="published-that-day"),
        pytest.param("published is null", [TRIPLE], id="unpublished"),
        pytest.param("visible = true and size < 100000", [FAN, DOUBLE, PUMP, SAW], id="visible"),
        pytest.param(f"document = manuals/{FAN}", [FAN], id="document"),
        pytest.param("document like 'manuals/pump*'", [DOUBLE, TRIPLE, PUMP], id="documents"),
        pytest.param("source = manuals", [*RECORDS], id="source"),
        pytest.param("source = elsewhere", [], id="other-source"),
        pytest.param('source = "x\' OR 1=1 --"', [], id="no-injection"),
        pytest.param(f"version = {KEY} and workload = equipment_manuals", [*RECORDS], id="version"),
        pytest.param("prompt = 1 and parser = 1 and schema = 1", [*RECORDS], id="spec"),
        pytest.param("acceptance = 2 and prompt_digest like '*'", [*RECORDS], id="acceptance"),
        pytest.param("model = rules-1 and provider = baseline", [*RECORDS], id="model"),
        pytest.param("model_revision = rules-1 and mode = embedded", [*RECORDS], id="revision"),
        pytest.param("disposition = succeeded and failure is null", [*RECORDS], id="disposition"),
        pytest.param(
            "reason = new_source and attempt_reason = new_source", [*RECORDS], id="reason"
        ),
        pytest.param("attempts = 1 and path = first", [*RECORDS], id="attempts"),
        pytest.param("attempts > 1 or replay is not null", [], id="replayed"),
        pytest.param("pages = 1 and media_type = 'text/plain'", [*RECORDS], id="parse"),
        pytest.param("removed = false and changed_source = false", [*RECORDS], id="present"),
        pytest.param("repaired is null and tokens_in is null", [*RECORDS], id="repaired"),
        pytest.param("frozen <= 2030-01-02 and collected > 2030-01-01", [*RECORDS], id="times"),
        pytest.param("submitted is not null and submitted < 2030-01-01", [], id="too-early"),
        pytest.param(None, [*RECORDS], id="all"),
    ],
)
def test_facts(text: str | None, documents: list[str], read_archive: Archive) -> None:
    assert _selected(read_archive, text) == sorted(documents)


@pytest.mark.parametrize("name", sorted(FACTS))
def test_every_fact_can_be_read_alone(name: str, read_archive: Archive) -> None:
    everything = _selected(read_archive, f"{name} is null or {name} is not null")
    assert everything == sorted(RECORDS)


def test_ids_of_batch_and_manifest(read_archive: Archive) -> None:
    with read_archive.context.ledger.read() as connection:
        batch = connection.execute(select(batches.c.batch_id)).scalars().first()
        checksum = connection.execute(select(records.c.checksum)).scalars().first()
    first = _selected(read_archive, f"batch = {batch} and manifest = {str(batch)[:-3]}")
    assert first
    assert set(first) <= set(RECORDS)
    assert len(_selected(read_archive, f"checksum = {checksum}")) == 1
    assert len(_selected(read_archive, f"checksum like '{str(checksum)[:12]}*'")) == 1


def test_slices_say_why(read_archive: Archive) -> None:
    version = known_version(read_archive.context, KEY)
    where = parse_where("identifiers > 0 and title like '*' and state != rejected")
    found = select_records(read_archive.context, version, where)
    assert slices(found).rows() == [
        ("identifiers=1; title present; state=published", 3),
        ("identifiers=2; title present; state=published", 1),
        ("identifiers=3; title present; state=awaiting_review", 1),
    ]
    every = select_records(read_archive.context, version, None)
    assert slices(every).rows() == [(EVERY, 5)]


def test_listed_documents(read_archive: Archive) -> None:
    listed = pl.Series([f"manuals/{name}" for name in (FAN, DOUBLE, FAN, "locked.txt")])
    assert _selected(read_archive, None, listed) == sorted([FAN, DOUBLE])
    assert _selected(read_archive, "identifiers > 1", listed) == [DOUBLE]
    version = known_version(read_archive.context, KEY)
    found = select_records(read_archive.context, version, None, listed)
    assert found["slice"].unique().to_list() == [LISTED]
    assert _selected(read_archive, None, pl.Series([], dtype=pl.String)) == []


def test_unknown_documents(read_archive: Archive) -> None:
    listed = pl.Series([f"manuals/{FAN}", FAN, "x", "y\0", "z"])
    with pytest.raises(UnknownListedDocuments) as caught:
        _selected(read_archive, None, listed)
    assert f"4 of the listed documents are unknown ({FAN!r}, 'x', 'y\\x00', ...)" in str(
        caught.value
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("titel = x", UnknownFact, id="unknown"),
        pytest.param("checksum > 3", FactMisused, id="misused"),
    ],
)
def test_what_does_not_fit(text: str, error: type[Exception], read_archive: Archive) -> None:
    with pytest.raises(error):
        _selected(read_archive, text)


def test_slices_of_records(read_archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _selected(read_archive, "identifiers > 0 and finding is not null")
    monkeypatch.setattr(select_module, "SLICE_RECORDS", 2)
    monkeypatch.setattr("resources.ledger.numbers.MOST_NUMBERS", 1)
    monkeypatch.setattr(select_module, "MOST_NUMBERS", 1)
    assert _selected(read_archive, "identifiers > 0 and finding is not null") == whole
    version = known_version(read_archive.context, KEY)
    parts = list(selected_slices(read_archive.context, version, parse_where("attempts = 1")))
    assert [part.height for part in parts] == [2, 2, 1]
    listed = pl.Series([f"manuals/{name}" for name in (SAW, PUMP)])
    assert _selected(read_archive, None, listed) == [PUMP, SAW]


def test_documents_that_went_or_changed(archive: Archive) -> None:
    (archive.folder / FAN).unlink()
    archive.write(PUMP, "Another text\n")
    archive.clock.advance(60)
    scan_declared(archive.context, moved=True)
    assert _selected(archive, "removed = true") == [FAN]
    assert _selected(archive, "changed_source = true") == [PUMP]


def test_what_is_not_the_usual(archive: Archive) -> None:
    numbers = {
        name.removeprefix("manuals/"): number
        for name, number in select_records(
            archive.context, known_version(archive.context, KEY), None
        )
        .select("document_id", "record_no")
        .iter_rows()
    }
    with archive.context.ledger.write() as connection:
        attempt = connection.exec_driver_sql(
            f"SELECT attempt_no FROM attempts WHERE record_no = {numbers[FAN]}"
        ).scalar_one()
        connection.execute(
            update(dispositions)
            .where(dispositions.c.attempt_no == attempt)
            .values(failure_class="expired", disposition="expired", input_tokens=1_234)
        )
        for ordinal, rule in enumerate(("quotes", "commas")):
            connection.execute(
                repairs.insert().values(
                    attempt_no=attempt,
                    ordinal=ordinal,
                    rule=rule,
                    rule_version=1,
                    before_digest="",
                    after_digest="",
                )
            )
        # An erased document has no values any more.
        connection.execute(
            update(archive_entries)
            .where(archive_entries.c.record_no == numbers[PUMP])
            .values(content="{}")
        )
    assert _selected(archive, "failure = expired and disposition != succeeded") == [FAN]
    assert _selected(archive, "repaired has commas and repaired = 2 and tokens_in > 1000") == [FAN]
    assert _selected(archive, "title is null and identifiers is absent") == [PUMP]
    assert _selected(archive, "identifiers = 0") == []


def test_staged_values_that_cannot_be_read(archive: Archive) -> None:
    with archive.context.ledger.write() as connection:
        connection.execute(update(batches).values(staging_artifact="0" * 64))
    # What is published needs none of them.
    assert _selected(archive, "state = published and identifiers > 1") == [DOUBLE]
    with pytest.raises(ArtifactMissing):
        _selected(archive, "identifiers > 1")


def test_a_record_without_an_answer(archive: Archive) -> None:
    with archive.context.ledger.write() as connection:
        for table in ("judgements", "dispositions", "findings"):
            connection.exec_driver_sql(f"DELETE FROM {table}")
        connection.execute(delete(archive_entries))
    assert _selected(archive, "finding is null and title is null") == sorted(RECORDS)
    assert _selected(archive, "identifiers >= 0 or not disposition is null") == []
