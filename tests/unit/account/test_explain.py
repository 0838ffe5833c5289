"""The story of one document, whatever became of it."""

from __future__ import annotations

import msgspec
import pytest

from pipeline_assets.account.documents import AmbiguousDocument, UnknownDocument, find_document
from pipeline_assets.account.explain import explain
from pipeline_assets.account.published import (
    NoSuchPage,
    NoText,
    NotPublished,
    page_text,
    published_entry,
)
from tests.support.small_archive import COPY, FAN, KEY, LOCKED, PUMP, SAW, Archive, manual


def test_a_published_document_s_story_is_whole(read_archive: Archive) -> None:
    story = explain(read_archive.context, f"manuals/{PUMP}", KEY)
    assert (story.present, story.state, story.exclusion) == (True, "published", None)
    assert story.source["bytes_kept"]
    assert story.parse is not None
    assert (story.parse["pages"], story.parse["language"]) == (1, "en")
    (record,) = story.records
    (attempt,) = record["attempts"]
    assert attempt["manifest"]["expected"] == 3
    assert attempt["custom_id"].endswith(f"-{attempt['manifest']['row']}")
    assert attempt["disposition"]["disposition"] == "succeeded"
    assert attempt["judgement"]["outcome"] == "accepted"
    assert [move["to"] for move in record["moves"]] == [
        "queued",
        "prepared",
        "submitted",
        "collected",
        "accepted",
        "published",
    ]
    (publication,) = story.publications
    assert publication["visible"]
    assert publication["search_entry"]
    assert publication["thumbnail_kept"]
    delivered = publication["delivery"]["accepted_digest"]
    assert publication["shown_by"]["kind"] == "publish"
    assert publication["ended_by"] is None
    assert delivered == attempt["judgement"]["values_digest"]


def test_the_pointers_lead_to_the_bytes(read_archive: Archive) -> None:
    """Request and result line are where the story says, and are about this attempt."""
    store = read_archive.context.artifacts
    story = explain(read_archive.context, f"manuals/{PUMP}", KEY)
    attempt = story.records[0]["attempts"][0]
    request, (result,) = attempt["request"], attempt["results"]
    asked = store.path("request", request["artifact"]).read_bytes()[request["offset"] :]
    answered = store.path("result", result["artifact"]).read_bytes()[result["offset"] :]
    for line in (asked[: request["length"]], answered[: result["length"]]):
        assert msgspec.json.decode(line)["custom_id"] == attempt["custom_id"]
    assert story.records[0]["reference"].encode() in asked[: request["length"]]


def test_a_doubtful_document_tells_its_findings(read_archive: Archive) -> None:
    story = explain(read_archive.context, SAW, KEY)
    assert story.state == "awaiting_review"
    assert story.publications == []
    findings = story.records[0]["attempts"][0]["findings"]
    assert ("uncertain_field", "product_identifiers", "review") in [
        (finding["rule"], finding["field"], finding["severity"]) for finding in findings
    ]


@pytest.mark.parametrize(
    ("name", "reason", "detail", "parsed"),
    [
        pytest.param(LOCKED, "encrypted", "a password is needed", True, id="by-the-parser"),
        pytest.param(
            COPY, "duplicate_content", f"same bytes as manuals/{PUMP}", True, id="by-the-freeze"
        ),
        pytest.param("empty.txt", "empty", "", False, id="by-the-scan"),
    ],
)
def test_an_excluded_document_tells_why(
    name: str, reason: str, detail: str, parsed: bool, read_archive: Archive
) -> None:
    story = explain(read_archive.context, f"manuals/{name}", KEY)
    assert (story.state, story.records, story.publications) == ("excluded", [], [])
    assert story.exclusion is not None
    assert story.exclusion["reason"] == reason
    assert story.exclusion["meaning"]
    assert story.exclusion["detail"].startswith(detail)
    assert (story.parse is not None) is parsed


def test_a_changed_document_keeps_its_earlier_story(archive: Archive) -> None:
    archive.write(PUMP, manual("Water Pump", "WP-200"))
    archive.process()
    story = explain(archive.context, f"manuals/{PUMP}", KEY)
    assert [record["replay_reason"] for record in story.records] == [
        "corrected_source",
        "new_source",
    ]
    assert [entry["visible"] for entry in story.publications] == [True, False]
    assert [entry["search_entry"] for entry in story.publications] == [True, False]
    assert len(story.source["versions"]) == 2


def test_a_removed_document_is_still_explained(archive: Archive) -> None:
    (archive.folder / FAN).unlink()
    archive.process()
    story = explain(archive.context, f"manuals/{FAN}", KEY)
    assert (story.present, story.state) == (False, "removed")
    assert story.source["gone_at"] is not None


def test_a_missing_manifest_file_is_told_as_such(archive: Archive) -> None:
    store = archive.context.artifacts
    for file in (store.root / "manifest").rglob("*"):
        if file.is_file():
            file.unlink()
    story = explain(archive.context, PUMP, KEY)
    assert story.records[0]["attempts"][0]["manifest"]["row"] is None


@pytest.mark.parametrize(
    ("given", "found"),
    [
        pytest.param(f"manuals/{PUMP}", f"manuals/{PUMP}", id="whole-id"),
        pytest.param(PUMP, f"manuals/{PUMP}", id="file-name"),
        pytest.param("wp-100.txt", f"manuals/{PUMP}", id="ending"),
        pytest.param(f"/{PUMP}", f"manuals/{PUMP}", id="leading-slash"),
        pytest.param("pump copy.txt", f"manuals/{COPY}", id="blank"),
    ],
)
def test_documents_are_found_by_their_end(given: str, found: str, read_archive: Archive) -> None:
    assert find_document(read_archive.context, given).document_id == found


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        pytest.param(".txt", AmbiguousDocument, "6 documents end with", id="ambiguous"),
        pytest.param("wp-100", UnknownDocument, f"closest are: manuals/{PUMP}", id="inside"),
        pytest.param("pomp-wp-100.txt", UnknownDocument, f"manuals/{PUMP}", id="misspelt"),
        pytest.param("%", UnknownDocument, "no id is like it", id="no-pattern"),
    ],
)
def test_unknown_documents_are_refused(
    given: str, error: type[Exception], said: str, read_archive: Archive
) -> None:
    with pytest.raises(error, match=said):
        find_document(read_archive.context, given)


def test_a_published_entry_is_an_exported_row(read_archive: Archive) -> None:
    entry = published_entry(read_archive.context, PUMP, KEY)
    assert entry["title"]["value"] == "Water Pump WP-100 User Manual"
    with pytest.raises(NotPublished, match=r"is not published[.] .*explain"):
        published_entry(read_archive.context, SAW)
    with pytest.raises(NotPublished, match=f"not published with the values of {KEY}"):
        published_entry(read_archive.context, SAW, KEY)


def test_looking_at_a_page_is_recorded(archive: Archive) -> None:
    page = page_text(archive.context, PUMP, 1, KEY, who="someone", why="a doubt")
    assert page["text"].startswith("Water Pump WP-100\nUser Manual")
    with archive.context.ledger.read() as connection:
        rows = connection.exec_driver_sql("SELECT who, why, kind FROM accesses").all()
    assert [tuple(row) for row in rows] == [("someone", "a doubt", "text")]


@pytest.mark.parametrize(
    ("name", "page", "error", "said"),
    [(PUMP, 2, NoSuchPage, "1 to 1"), (LOCKED, 1, NoText, "there is no text")],
)
def test_a_page_that_is_not_there(
    name: str, page: int, error: type[Exception], said: str, read_archive: Archive
) -> None:
    with pytest.raises(error, match=said):
        page_text(read_archive.context, name, page, KEY, who="someone", why="a test")
