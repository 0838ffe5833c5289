"""The text form of a time, which sorts as text and reads back; and the clock that tests move."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources import clock
from resources.clock import (
    ClockUnreachable,
    from_text,
    is_loopback,
    system_clock,
    to_text,
    virtual_clock,
)
from resources.ledger.schema import Time

ZONES = [UTC, timezone(timedelta(hours=-9.5)), timezone(timedelta(hours=14))]
MOMENTS = st.datetimes(
    min_value=datetime(1970, 1, 2),
    max_value=datetime(2200, 1, 1),
    timezones=st.sampled_from(
        [UTC, timezone(timedelta(hours=-9.5)), timezone(timedelta(hours=14))]
    ),
)


@given(MOMENTS)
def test_a_time_reads_back_as_the_same_moment(moment: datetime) -> None:
    assert from_text(to_text(moment)) == moment
    assert len(to_text(moment)) == Time.length


@given(MOMENTS, MOMENTS)
def test_texts_sort_as_their_moments(one: datetime, other: datetime) -> None:
    assert (to_text(one) < to_text(other)) == (one < other)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="without a zone"):
        to_text(datetime(2030, 1, 2))


@pytest.mark.parametrize("text", ["", "2030-01-02", "2030-01-02T03:04:05Z", "2030-01-02 03:04:05"])
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="does not match"):
        from_text(text)


def test_the_system_clock_is_aware() -> None:
    assert system_clock().utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8099/clock", True),
        ("http://127.9.8.7/", True),
        ("http://[::1]:8099/", True),
        ("http://localhost:1/x", True),
        ("http://LOCALHOST/", True),
        ("http://user@127.0.0.1/", True),
        ("http://127.0.0.1@example.com/", False),
        ("http://127.0.0.1.example.com/", False),
        ("http://localhost.example.com/", False),
        ("http://0.0.0.0/", False),
        ("http://192.168.0.1/", False),
        ("http://[::2]/", False),
        ("http://example.com/?at=127.0.0.1", False),
        ("127.0.0.1:8099", False),
        ("localhost", False),
        ("", False),
    ],
)
def test_is_loopback(url: str, here: bool) -> None:
    assert is_loopback(url) is here


class Told:
    """What the little server answers, and how often it was asked."""

    status = 200
    body = b'{"offset_seconds": 0}'
    asked = 0


@contextmanager
def serving(told: Told) -> Iterator[str]:
    """Serve `told` on this machine; the URL is given."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told.asked += 1
            self.send_response(told.status)
            self.send_header("Content-Length", str(len(told.body)))
            self.end_headers()
            self.wfile.write(told.body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is printed."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/clock"
        finally:
            server.shutdown()
            thread.join()


def ahead(look: clock.Clock) -> float:
    """How many seconds a clock is ahead of this machine's, to the second."""
    return round((look() - datetime.now(UTC)).total_seconds())


@pytest.mark.parametrize("offset", [0, 86_400, -3_600, 12.0])
def test_virtual_clock_is_ahead_by_what_it_is_told(offset: float) -> None:
    told = Told()
    told.body = f'{{"offset_seconds": {offset}}}'.encode()
    with serving(told) as url:
        look = virtual_clock(url)
        assert ahead(look) == offset
        assert look().utcoffset() == timedelta(0)


def test_virtual_clock_asks_again_only_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    told, now = Told(), [100.0]
    monkeypatch.setattr(clock.time, "monotonic", lambda: now[0])
    with serving(told) as url:
        look = virtual_clock(url, refresh_seconds=5)
        assert told.asked == 0, "nothing is asked before the first look"
        assert ahead(look) == 0
        told.body = b'{"offset_seconds": 60}'
        now[0] = 104.9
        assert (ahead(look), told.asked) == (0, 1)
        now[0] = 105.0
        assert (ahead(look), told.asked) == (60, 2)


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        pytest.param(200, b"not json", "JSONDecodeError", id="no-json"),
        pytest.param(200, b"\xff", "UnicodeDecodeError", id="no-text"),
        pytest.param(200, b"{}", "KeyError", id="no-offset"),
        pytest.param(200, b"[]", "TypeError", id="a-list"),
        pytest.param(200, b'{"offset_seconds": null}', "TypeError", id="null"),
        pytest.param(200, b'{"offset_seconds": "soon"}', "ValueError", id="words"),
        pytest.param(200, b'{"offset_seconds": NaN}', "ValueError", id="not-a-number"),
        pytest.param(200, b'{"offset_seconds": 1e30}', "OverflowError", id="too-far"),
        pytest.param(404, b"", "status 404", id="not-found"),
        pytest.param(500, b'{"offset_seconds": 5}', "status 500", id="broken"),
    ],
)
def test_another_answer_is_no_time(status: int, body: bytes, problem: str) -> None:
    told = Told()
    told.status, told.body = status, body
    with serving(told) as url, pytest.raises(ClockUnreachable, match=problem) as refused:
        virtual_clock(url)()
    assert url in str(refused.value)
    assert "TALLYBOOK_CLOCK_URL" in str(refused.value)


def test_nobody_answers() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/clock"
    with pytest.raises(ClockUnreachable, match="URLError"):
        virtual_clock(url)()
