"""Where every published value comes from, on each database, for every way that one takes."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from sqlalchemy import func, select, update

from pipeline_assets.account.explain import explain
from pipeline_assets.account.field_provenance import document_provenance, field_provenance
from pipeline_assets.account.field_provenance_model import (
    AnswerUnknown,
    DocumentProvenance,
    NoSuchEntry,
    QuoteLook,
)
from pipeline_assets.account.published import (
    DocumentErased,
    NotPublished,
    NotPublishedThen,
)
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.review.corrections import Wish, corrected_content
from pipeline_assets.review.decisions import asked_of, decide
from pipeline_assets.review.desk import lay_out
from resources.clock import from_text
from resources.ledger.repairs import REPAIR_SCHEMA, store_repairs
from resources.ledger.schema import (
    accesses,
    archive_entries,
    batches,
    manifests,
    processing_versions,
    results,
    reviews,
)
from tests.integration.erasure.support import Erasable
from tests.integration.recovery.support import Retries
from tests.integration.replay.support import ONE, TWO, Works
from tests.integration.replay.support import PUMP as WORKS_PUMP
from tests.integration.stages.support import ON_ONE_DATABASE, Shop
from tests.support.clock import FrozenClock
from tests.support.small_archive import KEY, LOCKED, PUMP, SAW, Archive

WHO = QuoteLook("ada", "to see")
QUICK_ON_BOTH = pytest.mark.parametrize(
    "shared_url",
    ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)],
    indirect=True,
)
"""For the two tests that use every statement."""


def accept_saw(archive: Archive, *wishes: Wish) -> int:
    """Decide the review that waits: accept it, or correct it as wished; then publish."""
    with archive.context.ledger.read() as connection:
        number = connection.execute(select(reviews.c.review_no)).scalar_one()
    sheet = lay_out(archive.context, number, "ada")
    asked = asked_of([(number, sheet.review["revision"])])
    if wishes:
        content = corrected_content(archive.context, sheet, wishes)
        asked = asked.with_columns(content=pl.lit(content))
    decide(
        archive.context,
        asked,
        "correct" if wishes else "accept",
        reviewer="ada",
        reason="read the cover",
    )
    archive.clock.advance(60)
    publish_accepted(archive.context, archive.version())
    archive.clock.advance(60)
    return number


def told(archive: Archive, name: str, **how: Any) -> DocumentProvenance:
    return document_provenance(archive.context, name, **how)


def scalar(archive: Archive, statement: Any) -> Any:
    with archive.context.ledger.read() as connection:
        return connection.execute(statement).scalar_one()


def test_a_value_of_the_built_in_rules(read_archive: Archive) -> None:
    found = field_provenance(read_archive.context, PUMP)
    assert [(one.field, one.item) for one in found] == [
        ("title", None),
        ("product_identifiers", 0),
        ("language", None),
        ("description", None),
    ]
    assert {one.origin for one in found} == {"built-in rules"}
    assert {one.review for one in found} == {None}
    title = found[0]
    assert title.value == "Water Pump WP-100 User Manual"
    assert (title.label, title.status) == ("Title", "found")
    assert [(one.page, one.standing, one.quote) for one in title.evidence] == [
        (1, "stands there", None)
    ] * len(title.evidence)
    text = (read_archive.folder / PUMP).read_text(encoding="utf-8")
    (number,) = [one for one in found if one.field == "product_identifiers"]
    place = number.evidence[0]
    assert "WP-100" in text[place.start : place.end]


def test_the_answer_names_everything_that_it_was_made_with(read_archive: Archive) -> None:
    answer = told(read_archive, PUMP).answer
    story = explain(read_archive.context, PUMP, KEY).records[0]
    (attempt,) = story["attempts"]
    assert answer.record_id == story["record_id"]
    assert (answer.record_reason, answer.recovery_path) == ("new_source", "first")
    assert answer.spec_digest == scalar(read_archive, select(processing_versions.c.digest))
    assert (answer.processing_version, answer.workload) == (KEY, "equipment_manuals")
    assert (
        answer.source_checksum
        == hashlib.sha256((read_archive.folder / PUMP).read_bytes()).hexdigest()
    )
    assert answer.schema_version == read_archive.version().spec.schema_version
    assert (answer.prompt, answer.prompt_digest, answer.replay, answer.repairs) == (
        None,
        None,
        None,
        (),
    )
    assert answer.custom_id == attempt["custom_id"]
    assert answer.request_digest == attempt["request"]["digest"]
    assert (answer.manifest_id, answer.manifest_digest) == (
        attempt["manifest"]["manifest_id"],
        attempt["manifest"]["digest"],
    )
    assert (answer.batch_id, answer.provider, answer.mode, answer.model) == tuple(
        attempt["batch"][name] for name in ("batch_id", "provider", "mode", "model")
    )
    assert answer.model_revision == attempt["disposition"]["model_revision"]
    (line,) = attempt["results"]
    assert answer.raw is not None
    assert (answer.raw.artifact, answer.raw.line) == (line["artifact"], line["line"])
    assert (answer.raw.offset, answer.raw.length) == (line["offset"], line["length"])
    assert (answer.raw.late, answer.raw.pruned_at) == (False, None)


def test_the_publication_names_the_change(read_archive: Archive) -> None:
    published = told(read_archive, PUMP).publication
    entry = explain(read_archive.context, PUMP, KEY).publications[0]
    assert (published.archive_version, published.shown_until) == (1, None)
    assert published.content_digest == entry["content_digest"]
    assert published.shown_from == entry["valid_from"]
    assert {"kind": published.kind, "reason": published.reason, "actor": published.actor} == entry[
        "shown_by"
    ]


@QUICK_ON_BOTH
def test_a_corrected_field_is_the_reviewers_and_the_others_are_not(archive: Archive) -> None:
    number = accept_saw(archive, Wish("product_identifiers", "KS-9"))
    found = {(one.field, one.item): one for one in field_provenance(archive.context, SAW)}
    corrected, title = found["product_identifiers", 0], found["title", None]
    assert (corrected.origin, corrected.value) == ("reviewer", "KS-9")
    assert {one.origin for one in found.values() if one is not corrected} == {"built-in rules"}
    assert corrected.review is not None
    assert title.review is not None
    assert (corrected.review.review, corrected.review.reviewer) == (number, "ada")
    assert (corrected.review.reason, corrected.review.decision) == ("read the cover", "correct")
    assert (corrected.review.changed, title.review.changed) == (True, False)
    # The reviewer's evidence was found in the text, and its place is not among the answer's.
    assert {one.standing for one in corrected.evidence} == {"not kept"}
    assert {one.standing for one in title.evidence} == {"stands there"}
    assert corrected.findings
    assert all(one.rule for one in corrected.findings)
    assert corrected.answer.values_digest != corrected.publication.content_digest


def test_a_list_that_a_reviewer_emptied_is_told(archive: Archive) -> None:
    accept_saw(archive, Wish("product_identifiers", ""))
    found = [one for one in field_provenance(archive.context, SAW) if one.field != "title"]
    emptied = next(one for one in found if one.field == "product_identifiers")
    assert (emptied.item, emptied.value, emptied.status) == (None, None, "absent")
    assert (emptied.origin, emptied.evidence) == ("reviewer", ())


def test_what_a_reviewer_left_as_it_was_names_the_review(archive: Archive) -> None:
    number = accept_saw(archive)
    for one in field_provenance(archive.context, SAW):
        assert one.origin == "built-in rules"
        assert one.review is not None
        assert (one.review.review, one.review.decision, one.review.changed) == (
            number,
            "accept",
            False,
        )


@ON_ONE_DATABASE
def test_without_the_staged_answer_a_correction_is_not_told_apart(archive: Archive) -> None:
    accept_saw(archive, Wish("product_identifiers", "KS-9"))
    staged = scalar(archive, select(batches.c.staging_artifact))
    archive.context.artifacts.path("frame", staged).unlink()
    found = field_provenance(archive.context, SAW)
    assert {one.origin for one in found} == {"not told apart"}
    assert {one.review.changed for one in found if one.review is not None} == {None}
    assert {one.origin for one in field_provenance(archive.context, PUMP)} == {"built-in rules"}


def test_a_repaired_answer_names_its_repairs(archive: Archive) -> None:
    number = scalar(archive, select(func.min(results.c.attempt_no)))
    row = (number, 0, "fences", 1, "0" * 64, "1" * 64)
    with archive.context.ledger.write() as connection:
        store_repairs(
            connection,
            archive.context.ledger,
            pl.DataFrame([row], schema=REPAIR_SCHEMA, orient="row"),
        )
    repaired = [name for name in (PUMP, "fan-vf-20.txt") if told(archive, name).answer.repairs]
    assert len(repaired) == 1
    assert told(archive, repaired[0]).answer.repairs == (
        {
            "rule": "fences",
            "rule_version": 1,
            "before_digest": "0" * 64,
            "after_digest": "1" * 64,
        },
    )


def test_a_late_result_that_is_used_is_the_raw_result(
    shop: Shop, frozen_clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    Retries(shop, frozen_clock, monkeypatch).walk(["missing", "busy + late"])
    found = document_provenance(shop.context, "m00.txt")
    assert found.answer.raw is not None
    assert found.answer.raw.late
    assert found.answer.attempt == 1
    data = shop.context.artifacts.path("result", found.answer.raw.artifact).read_bytes()
    line = data[found.answer.raw.offset : found.answer.raw.offset + found.answer.raw.length]
    assert found.answer.custom_id.encode() in line
    assert {one.origin for one in found.fields} == {"built-in rules"}


@pytest.fixture
def replayed(works: Works) -> Works:
    """Three documents under ONE, the pump of them replayed under TWO, and ONE shown again."""
    works.fill().run(ONE)
    works.replay(where='title like "*Pump*"', note="titles were cut")
    works.go_on(TWO)
    return works


@QUICK_ON_BOTH
def test_a_replay_is_named_by_answer_and_story(replayed: Works) -> None:
    context = replayed.context
    answer = document_provenance(context, WORKS_PUMP).answer
    assert (answer.processing_version, answer.record_reason) == (TWO, "new_model")
    assert answer.replay is not None
    assert vars(answer.replay) == {
        "replay_id": "r-1",
        "reason": "new_model",
        "note": "titles were cut",
        "actor": "ada",
        "expression": 'title like "*Pump*"',
    }
    (record,) = explain(context, WORKS_PUMP, TWO).records
    named = {
        "id": "r-1",
        "reason": "new_model",
        "note": "titles were cut",
        "actor": "ada",
        "expression": 'title like "*Pump*"',
    }
    assert record["replay"] == named
    assert [attempt["replay"] for attempt in record["attempts"]] == [named]
    assert not [name for name in record if name.startswith("of_replay")]
    (before,) = explain(context, WORKS_PUMP, ONE).records
    assert (before["replay"], before["attempts"][0]["replay"]) == (None, None)


def test_another_attempt_of_a_record_names_its_replay_and_the_record_does_not(
    works: Works,
) -> None:
    works.fill().run(ONE)
    works.replay(ONE, ONE, documents=(f"shop/{WORKS_PUMP}",), note="again", name="r-2")
    works.go_on(ONE)
    (record,) = explain(works.context, WORKS_PUMP, ONE).records
    assert record["replay"] is None
    assert [one["replay"] and one["replay"]["id"] for one in record["attempts"]] == [None, "r-2"]
    # It says the same as before and so published nothing.
    answer = document_provenance(works.context, WORKS_PUMP).answer
    assert (answer.attempt, answer.replay) == (1, None)


def test_the_past_is_told_as_it_was(replayed: Works) -> None:
    context = replayed.context
    promoted = from_text(document_provenance(context, WORKS_PUMP).publication.shown_from)
    replayed.rollback(TWO)
    now = document_provenance(context, WORKS_PUMP)
    assert now.answer.processing_version == ONE
    assert (now.publication.kind, now.publication.archive_version) == ("rollback", 3)
    assert now.answer.replay is None
    then = document_provenance(context, WORKS_PUMP, as_of=promoted)
    assert (then.answer.processing_version, then.publication.archive_version) == (TWO, 2)
    assert then.publication.shown_until == now.publication.shown_from
    named = document_provenance(context, WORKS_PUMP, archive_version=2)
    assert named == then
    first = document_provenance(context, WORKS_PUMP, archive_version=1)
    assert first.answer == now.answer
    assert first.publication.kind == "publish"
    with pytest.raises(NoSuchEntry, match="has no archive version 4; it has 1, 2, 3"):
        document_provenance(context, WORKS_PUMP, archive_version=4)
    with pytest.raises(NotPublishedThen):
        document_provenance(context, WORKS_PUMP, as_of=promoted - timedelta(days=400))
    with pytest.raises(NotPublished):
        document_provenance(context, WORKS_PUMP, key=TWO)


def test_quotes_are_told_on_request_and_the_access_is_recorded(read_archive: Archive) -> None:
    before = scalar(read_archive, select(func.count()).select_from(accesses))
    silent = told(read_archive, PUMP)
    assert scalar(read_archive, select(func.count()).select_from(accesses)) == before
    assert not [e for one in silent.fields for e in one.evidence if e.quote is not None]
    spoken = told(read_archive, PUMP, look=WHO)
    assert all(e.quote for one in spoken.fields for e in one.evidence)
    with read_archive.context.ledger.read() as connection:
        row = connection.execute(select(accesses).order_by(accesses.c.access_no.desc())).first()
    assert row is not None
    assert (row.who, row.why, row.digest) == ("ada", "to see", spoken.answer.source_checksum)
    assert silent.answer == spoken.answer


@ON_ONE_DATABASE
def test_places_that_were_not_kept_are_found_with_the_quotes(archive: Archive) -> None:
    kept = told(archive, PUMP, look=WHO)
    with archive.context.ledger.write() as connection:
        connection.execute(update(batches).values(places_artifact=None))
    assert {e.standing for one in told(archive, PUMP).fields for e in one.evidence} == {"not kept"}
    assert told(archive, PUMP, look=WHO).fields == kept.fields


@ON_ONE_DATABASE
def test_a_version_whose_spec_and_workload_are_gone_is_told_as_well(
    archive: Archive,
) -> None:
    before = told(archive, PUMP)
    with archive.context.ledger.write() as connection:
        connection.execute(
            update(processing_versions).values(key="forgotten-1", workload="forgotten")
        )
    after = told(archive, PUMP)
    assert [(one.field, one.value, one.origin) for one in after.fields] == [
        (one.field, one.value, one.origin) for one in before.fields
    ]
    assert after.answer == replace(
        before.answer, workload="forgotten", processing_version="forgotten-1"
    )


def test_an_erased_document_has_a_tombstone(archive: Archive) -> None:
    before = told(archive, PUMP)
    Erasable(archive).erase(PUMP)
    found = told(archive, PUMP)
    assert found.erased is not None
    assert (found.erased.reason, found.erased.actor) == ("asked by its owner", "Ada")
    assert found.fields == ()
    # Ids and digests stay.
    assert found.answer == before.answer
    assert found.publication.content_digest == before.publication.content_digest
    assert told(archive, PUMP, look=WHO) == found
    with pytest.raises(DocumentErased, match="was erased at"):
        field_provenance(archive.context, PUMP)


@pytest.mark.parametrize("name", [LOCKED, SAW])
def test_what_is_not_published_has_no_provenance(read_archive: Archive, name: str) -> None:
    with pytest.raises(NotPublished, match="explain"):
        field_provenance(read_archive.context, name)


@ON_ONE_DATABASE
def test_a_model_is_told_from_the_rules_and_was_asked_with_a_prompt(archive: Archive) -> None:
    with archive.context.ledger.write() as connection:
        connection.execute(update(batches).values(provider="openai", provider_job_id="batch_1"))
    found = told(archive, PUMP)
    assert {one.origin for one in found.fields} == {"model"}
    assert (found.answer.provider, found.answer.provider_job_id) == ("openai", "batch_1")
    prompt = archive.version().workload.prompt
    assert (found.answer.prompt, found.answer.prompt_digest) == (
        "1",
        hashlib.sha256(prompt).hexdigest(),
    )


@ON_ONE_DATABASE
def test_a_clock_that_went_back_hides_no_answer(archive: Archive) -> None:
    before = told(archive, PUMP)
    with archive.context.ledger.write() as connection:
        connection.execute(update(manifests).values(frozen_at="2999-01-01T00:00:00.000000Z"))
    assert told(archive, PUMP) == before


@ON_ONE_DATABASE
def test_values_that_nobody_answered_are_told_as_such(archive: Archive) -> None:
    with archive.context.ledger.write() as connection:
        connection.execute(update(archive_entries).values(content_digest="0" * 64))
    with pytest.raises(AnswerUnknown, match=r"no judged answer of .* audit"):
        field_provenance(archive.context, PUMP)


def test_a_time_before_everything_shows_nothing(read_archive: Archive) -> None:
    with pytest.raises(NotPublishedThen):
        field_provenance(read_archive.context, PUMP, as_of=datetime(1999, 1, 1, tzinfo=UTC))
