"""A reviewer's desk after the real stages, and what decisions do to the archive."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import polars as pl
import pytest

from pipeline_assets.account.explain import explain
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.review.corrections import Wish, corrected_content
from pipeline_assets.review.decisions import asked_of, decide
from pipeline_assets.review.desk import Sheet, lay_out, review_of_document
from pipeline_assets.review.errors import (
    CorrectionImpossible,
    NotCorrected,
    NothingReviewed,
    UnknownReview,
    ValuesDiffer,
)
from pipeline_assets.review.queue import read_queue
from resources.context import Context
from resources.ledger import archive_visibility
from resources.ledger.review_queue import Wanted
from resources.ledger.reviews import OPENING_SCHEMA, QUALITY_SAMPLE, open_reviews
from resources.ledger.schema import accesses, archive_changes, reviews
from tests.integration.ledger.support import states
from tests.integration.review.support import rows
from tests.integration.stages.support import ON_ONE_DATABASE
from tests.support.small_archive import FAN, KEY, PUMP, SAW, Archive

SAW_ID = f"manuals/{SAW}"


def _waiting(context: Context, document_id: str) -> int:
    queue = read_queue(context, Wanted(), 50).reviews
    return int(
        queue.row(by_predicate=pl.col("document_id") == document_id, named=True)["review_no"]
    )


def _sheet(archive: Archive, document_id: str = SAW_ID) -> Sheet:
    return lay_out(archive.context, _waiting(archive.context, document_id), "Ada")


def _open_sample(context: Context) -> None:
    """A quality sample of everything that was published."""
    with context.ledger.write() as connection:
        drawn = context.ledger.dialect.fetch(
            connection,
            "SELECT j.record_no, j.attempt_no, r.version_no, j.values_digest, 'all' "
            "FROM judgements j JOIN record_state s ON s.record_no = j.record_no "
            "JOIN records r ON r.record_no = j.record_no WHERE s.state = 'published'",
            OPENING_SCHEMA,
        )
        at = context.ledger.now()
        open_reviews(connection, context.ledger, drawn, kind=QUALITY_SAMPLE, at=at, sample_no=1)


def _shown(context: Context) -> dict[str, dict[str, Any]]:
    """What the archive shows: document → content."""
    with context.ledger.read() as connection:
        found = context.ledger.dialect.fetch(
            connection,
            "SELECT d.document_id, e.content FROM archive_heads h "
            "JOIN archive_entries e ON e.entry_no = h.entry_no "
            "JOIN documents d ON d.document_no = h.document_no",
            {"document_id": pl.String, "content": pl.String},
        )
    return {name: json.loads(content) for name, content in found.iter_rows()}


def test_the_desk_shows_values_findings_and_evidence_in_place(archive: Archive) -> None:
    sheet = _sheet(archive)
    assert sheet.review["document_id"] == SAW_ID
    assert "product_identifiers" in sheet.doubted
    assert "title" not in sheet.doubted
    assert [(value.field, value.status) for value in sheet.values] == [
        ("title", "found"),
        ("product_identifiers", "uncertain"),
        ("language", "found"),
        ("description", "found"),
    ]
    (page,) = sheet.pages
    assert sheet.first_page() == 1
    for value in sheet.values:
        for quote in value.evidence:
            assert quote.page == 1
            assert page.text[quote.start : quote.end] == quote.words
    marks = sheet.marks(1)
    assert marks == sorted(marks, key=lambda mark: mark.start)
    assert {mark.field for mark in marks} == {value.field for value in sheet.values}
    assert sheet.marks(2) == []
    assert sheet.image is not None
    assert sheet.image.is_file()


@ON_ONE_DATABASE
def test_every_look_is_recorded(archive: Archive) -> None:
    before = len(rows(archive.context.ledger, accesses))
    sheet = _sheet(archive)
    looks = rows(archive.context.ledger, accesses)[before:]
    assert [(look["who"], look["why"], look["kind"]) for look in looks] == [
        ("Ada", f"review {sheet.number}", "text"),
        ("Ada", f"review {sheet.number}", "thumbnail"),
    ]


@ON_ONE_DATABASE
def test_a_missing_image_does_not_keep_the_reviewer_from_deciding(archive: Archive) -> None:
    image = _sheet(archive).image
    assert image is not None
    image.unlink()
    assert _sheet(archive).image is None


@ON_ONE_DATABASE
def test_values_that_are_not_those_that_were_judged_are_refused(archive: Archive) -> None:
    number = _waiting(archive.context, SAW_ID)
    with archive.context.ledger.write() as connection:
        connection.execute(reviews.update().values(values_digest="0" * 64))
    with pytest.raises(ValuesDiffer, match=f"review {number}"):
        lay_out(archive.context, number, "Ada")
    with pytest.raises(UnknownReview, match="no review 999"):
        lay_out(archive.context, 999, "Ada")


@ON_ONE_DATABASE
def test_a_document_leads_to_its_review(archive: Archive) -> None:
    number = _waiting(archive.context, SAW_ID)
    review = lay_out(archive.context, number, "Ada").review
    document_no = review["document_no"]
    assert review_of_document(archive.context, document_no, SAW_ID, None) == number
    with pytest.raises(NothingReviewed, match=SAW_ID):
        review_of_document(archive.context, document_no, SAW_ID, 99)


@ON_ONE_DATABASE
@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        pytest.param(
            Wish("product_identifiers", "KS-7, KS-9"),
            [("KS-7", "Chain Saw KS-7"), ("KS-9", "KS-9")],
            id="the-models-own-evidence-and-found-evidence",
        ),
        pytest.param(
            Wish("product_identifiers", "KS-77"), [("KS-77", None)], id="vouched-for-alone"
        ),
        pytest.param(
            Wish("product_identifiers", "KS-9", ((1, "The KS-9 is a chain saw"),)),
            [("KS-9", "The KS-9 is a chain saw")],
            id="named-evidence",
        ),
        pytest.param(Wish("product_identifiers", ""), [], id="none"),
    ],
)
def test_a_correction_looks_for_its_evidence(
    archive: Archive, wish: Wish, expected: list[tuple[str, str | None]]
) -> None:
    content = json.loads(corrected_content(archive.context, _sheet(archive), [wish]))
    assert [
        (given["value"], given["evidence"][0]["quote"] if given["evidence"] else None)
        for given in content["product_identifiers"]
    ] == expected
    assert all(given["status"] == "found" for given in content["product_identifiers"])


@ON_ONE_DATABASE
@pytest.mark.parametrize(
    ("wish", "said"),
    [
        pytest.param(Wish("colour", "red"), "no such field; there are title", id="field"),
        pytest.param(Wish("language", "xx1"), "two small letters", id="language"),
        pytest.param(Wish("title", "A", ()), "3 to 200 characters", id="short"),
        pytest.param(Wish("title", "A saw", ((2, "A saw"),)), "no page 2", id="page"),
        pytest.param(
            Wish("title", "A saw", ((1, "A saw"),)), "does not stand on page 1", id="quote"
        ),
        pytest.param(Wish("title", "", ((1, "Chain"),)), "absent field", id="evidence-of-nothing"),
    ],
)
def test_an_impossible_correction_is_refused(archive: Archive, wish: Wish, said: str) -> None:
    with pytest.raises(CorrectionImpossible, match=said):
        corrected_content(archive.context, _sheet(archive), [wish])


@ON_ONE_DATABASE
def test_a_correction_that_changes_nothing_is_refused(archive: Archive) -> None:
    sheet = _sheet(archive)
    title = next(value.value for value in sheet.values if value.field == "title")
    wish = Wish("title", str(title), ((1, "Chain Saw KS-7"), (1, "User Manual")))
    with pytest.raises(NotCorrected):
        corrected_content(archive.context, sheet, [wish])


def test_what_a_reviewer_accepts_is_published_as_the_model_gave_it(archive: Archive) -> None:
    context, sheet = archive.context, _sheet(archive)
    decide(context, asked_of([(sheet.number, 0)]), "accept", reviewer="Ada", reason="seen")
    publish_accepted(context, archive.version())
    assert _shown(context)[SAW_ID] == json.loads(sheet.content)
    assert states(context.ledger)[sheet.review["record_no"]] == "published"


def test_a_correction_is_published_and_the_models_values_are_kept(archive: Archive) -> None:
    context, sheet = archive.context, _sheet(archive)
    content = corrected_content(context, sheet, [Wish("product_identifiers", "KS-9")])
    decide(
        context,
        asked_of([(sheet.number, 0)]).with_columns(content=pl.lit(content)),
        "correct",
        reviewer="Ada",
        reason="the body names another",
    )
    publish_accepted(context, archive.version())
    assert _shown(context)[SAW_ID] == json.loads(content)
    (told,) = explain(context, SAW_ID, KEY).records[0]["attempts"][0]["reviews"]
    assert (told["decision"], told["reviewer"]) == ("correct", "Ada")
    assert [act["reason"] for act in told["acts"]] == ["the body names another"]
    assert "corrected_content" not in told
    again = lay_out(context, sheet.number, "Ada")
    assert (again.content, again.corrected) == (sheet.content, content)
    assert again.review["values_digest"] == sheet.review["values_digest"]
    assert again.review["corrected_digest"] == hashlib.sha256(content.encode()).hexdigest()


def test_what_a_sample_rejects_leaves_the_archive_at_once(archive: Archive) -> None:
    context = archive.context
    _open_sample(context)
    sheet = _sheet(archive, f"manuals/{PUMP}")
    assert f"manuals/{PUMP}" in _shown(context)
    searchable = _searchable(context)
    done = decide(
        context, asked_of([(sheet.number, 0)]), "reject", reviewer="Ada", reason="another pump"
    )
    assert done.hidden == 1
    assert set(_shown(context)) == {f"manuals/{FAN}"}
    assert len(_searchable(context)) == len(searchable) - 1
    assert states(context.ledger)[sheet.review["record_no"]] == "rejected"
    change = rows(context.ledger, archive_changes)[-1]
    assert (change["kind"], change["actor"], change["hidden"]) == ("removal", "Ada", 1)
    assert change["reason"] == "rejected by a reviewer: another pump"
    publish_accepted(context, archive.version())
    assert set(_shown(context)) == {f"manuals/{FAN}"}


def test_what_cannot_leave_the_archive_is_not_rejected_either(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = archive.context
    _open_sample(context)
    number = _waiting(context, f"manuals/{PUMP}")
    before = (rows(context.ledger, reviews), states(context.ledger), _shown(context))

    def fail(*_: object) -> int:
        raise OSError("the database went away")

    monkeypatch.setattr("pipeline_assets.review.decisions.hide_records", fail)
    assert archive_visibility.hide_records is not fail
    with pytest.raises(OSError, match="went away"):
        decide(context, asked_of([(number, 0)]), "reject", reviewer="Ada", reason="x")
    assert (rows(context.ledger, reviews), states(context.ledger), _shown(context)) == before


def _searchable(context: Context) -> set[int]:
    with context.ledger.read() as connection:
        return set(context.ledger.dialect.search_entries(connection)["entry_no"])
