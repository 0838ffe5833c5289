"""Connections and bodies as a client sees them: cut, ranged, dropped, late."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.provider_emulator import http as emulated
from tests.provider_emulator.faults import Fault
from tests.support.emulator import serving

LINES = b"".join(b"line %04d\n" % n for n in range(100))  # 10 bytes each
BIG = LINES * 2_000  # several blocks


class Site:
    """A small application around the functions under test."""

    def __init__(self, folder: Path) -> None:
        self.fault: Fault | None = None
        self.done = 0
        self.big = folder / "big.jsonl"
        self.big.write_bytes(BIG)
        self.allow_range = True
        routes = [
            Route("/bytes", self.bytes_, methods=["GET"]),
            Route("/file", self.file, methods=["GET"]),
            Route("/act", self.act, methods=["POST"]),
        ]
        self.app = emulated.MarkedFaults(Starlette(routes=routes))

    async def bytes_(self, request: Request) -> Response:
        return await emulated.stream_bytes(
            request, LINES, fault=self.fault, allow_range=self.allow_range
        )

    async def file(self, request: Request) -> Response:
        return await emulated.stream_bytes(
            request, self.big, fault=self.fault, allow_range=self.allow_range
        )

    async def act(self, request: Request) -> Response:
        fault, self.fault = self.fault, None
        if (failed := emulated.failed_transport(request, fault)) is not None:
            return failed
        await request.body()
        self.done += 1
        return Response("done")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
def client(site: Site) -> Iterator[httpx2.Client]:
    with serving(site.app) as url, httpx2.Client(base_url=url, timeout=10) as client:
        yield client


def received(client: httpx2.Client, path: str) -> tuple[httpx2.Response, bytes, bool]:
    """Return the response, the bytes that came, and whether the body broke off."""
    body = b""
    with client.stream("GET", path) as response:
        try:
            for block in response.iter_raw():
                body += block
        except httpx2.TransportError:
            return response, body, True
    return response, body, False


@pytest.mark.parametrize("path", ["/bytes", "/file"])
def test_whole(client: httpx2.Client, path: str) -> None:
    whole = LINES if path == "/bytes" else BIG
    response, body, broken = received(client, path)
    assert (body, broken) == (whole, False)
    assert response.headers["content-length"] == str(len(whole))
    assert client.head(path).headers["content-length"] == str(len(whole))


@pytest.mark.parametrize(
    ("wanted", "status", "first", "end"),
    [
        pytest.param("bytes=400-", 206, 400, 1_000, id="from"),
        pytest.param("bytes=0-9", 206, 0, 10, id="both-ends"),
        pytest.param("bytes=990-5000", 206, 990, 1_000, id="past-the-end"),
        pytest.param("bytes=1000-", 416, 0, 0, id="nothing-left"),
        pytest.param("bytes=-5", 200, 0, 1_000, id="form-not-known"),
        pytest.param("lines=1-2", 200, 0, 1_000, id="unit-not-known"),
    ],
)
def test_range(client: httpx2.Client, wanted: str, status: int, first: int, end: int) -> None:
    response = client.get("/bytes", headers={"Range": wanted})
    assert (response.status_code, response.content) == (status, LINES[first:end])
    if status == 206:
        assert response.headers["content-range"] == f"bytes {first}-{end - 1}/1000"
    if status == 416:
        assert response.headers["content-range"] == "bytes */1000"


def test_range_is_not_honoured_where_it_is_not_allowed(site: Site, client: httpx2.Client) -> None:
    site.allow_range = False
    response = client.get("/bytes", headers={"Range": "bytes=400-"})
    assert (response.status_code, response.content) == (200, LINES)
    assert "accept-ranges" not in response.headers


def test_range_of_a_file(client: httpx2.Client) -> None:
    response = client.get("/file", headers={"Range": "bytes=1500000-"})
    assert response.content == BIG[1_500_000:]


@pytest.mark.parametrize("path", ["/bytes", "/file"])
@pytest.mark.parametrize(
    ("kind", "args", "kept"),
    [
        pytest.param("cut", {"bytes": 405}, 405, id="cut"),
        pytest.param("cut", {"bytes": 0}, 0, id="cut-at-once"),
        pytest.param("truncate_at_newline", {"bytes": 405}, 400, id="newline"),
        pytest.param("truncate_at_newline", {"bytes": 5}, 0, id="newline-none-before"),
    ],
)
def test_cut(
    site: Site, client: httpx2.Client, path: str, kind: str, args: dict[str, int], kept: int
) -> None:
    site.fault = Fault("openai", "download", kind, args=args)
    response, body, broken = received(client, path)
    whole = LINES if path == "/bytes" else BIG
    assert response.status_code == 200
    assert response.headers["content-length"] == str(len(whole))
    assert (body, broken) == (whole[:kept], True)


def test_cut_by_default_is_half(site: Site, client: httpx2.Client) -> None:
    site.fault = Fault("openai", "download", "cut")
    assert received(client, "/bytes")[1:] == (LINES[:500], True)


def test_cut_of_a_range_counts_from_its_start(site: Site, client: httpx2.Client) -> None:
    site.fault = Fault("openai", "download", "cut", args={"bytes": 100})
    with client.stream("GET", "/bytes", headers={"Range": "bytes=400-"}) as response:
        blocks = response.iter_raw()
        assert next(blocks) == LINES[400:500]
        with pytest.raises(httpx2.TransportError):
            next(blocks)


@pytest.mark.parametrize(("announce", "length"), [("none", None), ("short", "400")])
def test_truncation_that_no_client_sees(
    site: Site, client: httpx2.Client, announce: str, length: str | None
) -> None:
    args = {"bytes": 405, "announce": announce}
    site.fault = Fault("openai", "download", "truncate_at_newline", args=args)
    response, body, broken = received(client, "/bytes")
    assert response.headers.get("content-length") == length
    assert (body, broken) == (LINES[:400], False)


@pytest.mark.parametrize(
    ("kind", "done"), [("drop_before", 0), ("drop_after", 1)], ids=["before", "after"]
)
def test_dropped_connection(site: Site, client: httpx2.Client, kind: str, done: int) -> None:
    site.fault = Fault("openai", "create", kind)
    with pytest.raises(httpx2.TransportError):
        client.post("/act", content=b"x" * 200_000)
    assert site.done == done
    assert client.post("/act").text == "done"
    assert site.done == done + 1


def test_delay_is_real_time_and_does_not_hold_others(site: Site, client: httpx2.Client) -> None:
    site.fault = Fault("openai", "create", "delay", args={"seconds": 5})
    started = time.monotonic()
    with pytest.raises(httpx2.ReadTimeout):
        client.post("/act", timeout=0.3)
    assert client.post("/act").text == "done"
    assert time.monotonic() - started < 4


def test_other_kinds_are_left_to_the_provider(site: Site, client: httpx2.Client) -> None:
    site.fault = Fault("openai", "create", "status")
    assert client.post("/act").text == "done"


def test_json_is_written_raw() -> None:
    assert emulated.json_bytes({"a": "é\u2028"}) == '{"a":"é\u2028"}'.encode()
