"""What messages of a queue say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.sources.document_id import parse_document_id
from resources.sources.event_queue.events import (
    NO_DOCUMENT,
    NOT_JSON,
    OTHER_BUCKET,
    OUTSIDE,
    TOO_LONG,
    Event,
    Naming,
    events_of,
)

FOLDER = Naming("q")
BUCKET = Naming("q", "box", b"in/")


def told(content: Any, naming: Naming = FOLDER, key: str = "m1") -> list[Event]:
    return events_of(key, json.dumps(content).encode(), naming)


def notification(key: str, **more: Any) -> dict[str, Any]:
    record = {
        "eventName": "ObjectRemoved:Delete",
        "eventTime": "2026-11-30T01:02:03.000Z",
        "s3": {"bucket": {"name": "box"}, "object": {"key": key, "sequencer": "0A"}},
    }
    return {"Records": [{**record, **more}]}


@pytest.mark.parametrize(
    ("content", "naming", "documents"),
    [
        pytest.param({"document": "a/b.pdf"}, FOLDER, ["q/a/b.pdf"], id="path"),
        pytest.param({"document": "a@b"}, FOLDER, ["q/a%40b"], id="escaped"),
        pytest.param({"document": "u\u0308"}, FOLDER, ["q/ü"], id="folded"),
        pytest.param({"document": "a", "x": [1], "id": 7}, FOLDER, ["q/a"], id="more-is-ignored"),
        pytest.param([{"document": "a"}, {"document": "b"}], FOLDER, ["q/a", "q/b"], id="list"),
        pytest.param({"document": "/lead"}, BUCKET, ["q//lead"], id="a-key-is-opaque"),
        pytest.param({"document": "a/../b"}, BUCKET, ["q/a/../b"], id="dots-in-a-key"),
        pytest.param(notification("in/a+b%2Bc.pdf"), BUCKET, ["q/a b+c.pdf"], id="notification"),
        pytest.param(notification("sub/a"), FOLDER, ["q/sub/a"], id="notification-for-a-folder"),
        pytest.param(notification("in/folder/"), BUCKET, [None], id="a-buckets-folder"),
        pytest.param({"Service": "S3", "Event": "s3:TestEvent"}, BUCKET, [None], id="test-event"),
        pytest.param([], FOLDER, [None], id="empty-list"),
        pytest.param({"Records": []}, FOLDER, [None], id="no-records"),
    ],
)
def test_documents(content: Any, naming: Naming, documents: list[str | None]) -> None:
    events = told(content, naming)
    assert [event.document_id for event in events] == documents
    assert [event.problem for event in events] == [None] * len(documents)


@pytest.mark.parametrize(
    ("body", "naming", "problem"),
    [
        pytest.param(b"{", FOLDER, NOT_JSON, id="broken"),
        pytest.param(b"\xff", FOLDER, NOT_JSON, id="not-utf8"),
        pytest.param(b"", FOLDER, NOT_JSON, id="empty"),
        pytest.param(b"[" * 100_000, FOLDER, NOT_JSON, id="deep"),
        pytest.param(b"7", FOLDER, NO_DOCUMENT, id="number"),
        pytest.param(b"{}", FOLDER, NO_DOCUMENT, id="nothing-named"),
        pytest.param(b'{"document": ""}', FOLDER, NO_DOCUMENT, id="empty-name"),
        pytest.param(b'{"document": 7}', FOLDER, NO_DOCUMENT, id="no-text"),
        pytest.param(b'{"document": "\\ud800"}', FOLDER, NO_DOCUMENT, id="half-a-pair"),
        pytest.param(b'{"Records": [7]}', FOLDER, NO_DOCUMENT, id="bad-record"),
        pytest.param(b'{"Records": [{"s3": {"object": {}}}]}', FOLDER, NO_DOCUMENT, id="no-key"),
        pytest.param(b'{"document": "/etc/passwd"}', FOLDER, OUTSIDE, id="absolute"),
        pytest.param(b'{"document": "a/../../b"}', FOLDER, OUTSIDE, id="above"),
        pytest.param(b'{"document": "a//b"}', FOLDER, OUTSIDE, id="empty-part"),
        pytest.param(b'{"document": "a\\u0000b"}', FOLDER, OUTSIDE, id="nul"),
        pytest.param(
            json.dumps(notification("out/a")).encode(), BUCKET, OUTSIDE, id="other-prefix"
        ),
        pytest.param(json.dumps(notification("in/")).encode(), BUCKET, OUTSIDE, id="the-prefix"),
        pytest.param(
            json.dumps(notification("in/a")).encode(),
            Naming("q", "other"),
            OTHER_BUCKET,
            id="other-bucket",
        ),
        pytest.param(
            json.dumps({"document": "@" * 1_000}).encode(), FOLDER, TOO_LONG, id="long-name"
        ),
    ],
)
def test_what_can_never_be_acted_on(body: bytes, naming: Naming, problem: str) -> None:
    (event,) = events_of("m1", body, naming)
    assert (event.document_id, event.problem) == (None, problem)


def test_the_senders_id_names_an_event_for_one_document() -> None:
    first, again = told({"id": "7", "document": "a"}), told({"id": "7", "document": "a"}, key="m2")
    other = told({"id": "7", "document": "b"})
    assert first == again
    assert first[0].key != other[0].key
    assert first[0].key.startswith("7 ")


def test_without_an_id_the_message_names_its_events() -> None:
    assert [event.key for event in told({"document": "a"})] == ["m1"]
    assert [event.key for event in told([{"document": "a"}] * 2)] == ["m1#0", "m1#1"]


@pytest.mark.parametrize("odd", ["x" * 500, "ü", "a\nb", "a\0b", "\ud800"])
def test_keys_always_fit_the_ledger(odd: str) -> None:
    (event,) = told({"id": odd, "document": "a"}, key=odd)
    assert len(event.key) <= 128
    assert event.key.isascii()
    assert event.key.isprintable()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(["id", "document", "Records", "s3", "object", "key", "Event"]), inner
        )
    ),
    max_leaves=12,
)


@given(content=JSON, naming=st.sampled_from([FOLDER, BUCKET]))
def test_any_message_gives_usable_events_or_problems(content: Any, naming: Naming) -> None:
    events = told(content, naming)
    assert events
    assert len({event.key for event in events}) == len(events) or any(
        event.document_id for event in events
    )
    for event in events:
        assert len(event.key) <= 128
        assert event.document_id is None or event.problem is None
        if event.document_id is not None:
            parse_document_id(event.document_id)


@given(body=st.binary(max_size=50))
def test_any_bytes(body: bytes) -> None:
    assert events_of("m1", body, FOLDER)
