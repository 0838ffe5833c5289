"""Frames, and what an untrusted worker may not claim."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.ingest.parsing import protocol
from pipeline_assets.ingest.parsing.model import PDF, ParsedDocument, ParseFailure, place_pages

DOCUMENT = ParsedDocument(
    PDF, 2, place_pages([("one", "text"), ("", "none")]), "en", (), b"\x89PNG", False, ("ocr",)
)


def reply(document: ParsedDocument | None, failure: ParseFailure | None = None) -> protocol.Reply:
    return protocol.Reply(7, document, failure, "ab" * 32, 0.5, 1000, retire=False)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(protocol.Hello("1", True, 0.4), id="hello"),
        pytest.param(protocol.SelfTestFailed("reinstall"), id="self-test"),
        pytest.param(protocol.Rendering(3), id="rendering"),
        pytest.param(reply(DOCUMENT), id="document"),
        pytest.param(reply(None, ParseFailure("empty", "x")), id="failure"),
    ],
)
def test_messages_survive_the_wire(message: protocol.FromWorker) -> None:
    (body,) = protocol.FrameBuffer().feed(protocol.encode(message))
    assert protocol.decode_reply(body) == message


def test_requests_survive_the_wire() -> None:
    request = protocol.Request(9, PDF, bare_name=False, render=True)
    (body,) = protocol.FrameBuffer().feed(protocol.encode(request))
    assert protocol.decode_request(body) == request


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\xff\x00", id="noise"),
        pytest.param(b"{}", id="no type"),
        pytest.param(b'{"type":"other"}', id="unknown type"),
        pytest.param(b'{"type":"hello"}', id="missing parts"),
        pytest.param(protocol.encode(reply(None))[4:], id="neither document nor failure"),
        pytest.param(
            protocol.encode(reply(DOCUMENT, ParseFailure("empty", "x")))[4:], id="both of them"
        ),
        pytest.param(
            protocol.encode(reply(replace(DOCUMENT, media_type="text/x")))[4:], id="media type"
        ),
        pytest.param(
            protocol.encode(reply(replace(DOCUMENT, pages=DOCUMENT.pages[1:])))[4:], id="page gap"
        ),
        pytest.param(
            protocol.encode(reply(DOCUMENT))[4:].replace(b'"ocr"', b'"free words"'), id="note"
        ),
        pytest.param(b"[" * 100_000, id="deep nesting"),
    ],
)
def test_what_a_worker_may_not_say(body: bytes) -> None:
    with pytest.raises(protocol.ProtocolError):
        protocol.decode_reply(body)


@given(st.lists(st.binary(max_size=50)), st.integers(1, 17))
def test_frames_are_cut_wherever_the_stream_is(bodies: list[bytes], step: int) -> None:
    stream = b"".join(protocol.PREFIX.pack(len(body)) + body for body in bodies)
    buffer = protocol.FrameBuffer()
    cut = [
        body for at in range(0, len(stream), step) for body in buffer.feed(stream[at : at + step])
    ]
    assert cut == bodies


def test_an_absurd_frame_is_refused_before_it_arrives() -> None:
    with pytest.raises(protocol.ProtocolError, match="4294967295"):
        protocol.FrameBuffer().feed(b"\xff\xff\xff\xff")
