"""A thin loopback proxy in front of the compatible server: it bounds what is written.

Belongs here: passing calls on. Does not belong here: the bounds (`bounds.py`), the server.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.provider_emulator.server import EmulatorServer, base_url, listen
from tests.realmodel.bounds import bounded

ANSWER_SECONDS = 280.0
"""Less than what Tallybook waits for an answer, so that it hears why there is none."""

_FIRST_MARKER = re.compile(
    r"^=== (?P<reference>doc-[0-9a-f]{16}) document begins ===", re.MULTILINE
)


@contextmanager
def bounding_proxy(upstream: str) -> Iterator[str]:
    """Serve a proxy of `upstream` for the length of a block; its address."""
    listener = listen()
    server = EmulatorServer(_app(upstream))
    thread = threading.Thread(
        target=lambda: asyncio.run(server.serve(sockets=[listener])), name="proxy", daemon=True
    )
    thread.start()
    try:
        yield base_url(listener)
    finally:
        server.stop()
        thread.join(timeout=10)
        listener.close()


def _app(upstream: str) -> Starlette:
    async def pass_on(request: Request) -> Response:
        body = with_bounds(await request.body())
        headers = {
            name: request.headers[name]
            for name in ("authorization", "content-type")
            if name in request.headers
        }
        async with httpx2.AsyncClient(timeout=ANSWER_SECONDS) as client:
            try:
                answer = await client.request(
                    request.method, upstream + request.url.path, content=body, headers=headers
                )
            except httpx2.TransportError as error:
                return Response(f"the model's server is not there: {type(error).__name__}", 502)
        kind = answer.headers.get("content-type", "application/json")
        return Response(answer.content, answer.status_code, media_type=kind)

    return Starlette(routes=[Route("/{path:path}", pass_on, methods=["GET", "POST"])])


def with_bounds(body: bytes) -> bytes:
    """A request's body with bounds in its output schema; any other body as it is.

    Line ends between values are taken away too: each is a token, and they have no meaning.
    """
    try:
        asked = msgspec.json.decode(body)
        form = asked["response_format"]["json_schema"]
        marker = _FIRST_MARKER.search(asked["messages"][-1]["content"])
        form["schema"] = bounded(form["schema"], marker["reference"] if marker else "")
    except (msgspec.DecodeError, LookupError, TypeError):
        return body
    asked["logit_bias"] = [[line_ends, False] for line_ends in ("\n", "\n\n")]
    return msgspec.json.encode(asked)
