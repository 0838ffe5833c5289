"""One application and one loopback server for all emulated providers.

Belongs here: putting the modules together, and the socket. A provider's module is `<name>.py`
beside this file with `routes(world)`; it is imported when it is first asked, so that a server
starts in a moment and serves those that there are.
"""

from __future__ import annotations

import asyncio
import importlib
import socket
import sys
import traceback
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from tests.provider_emulator import control
from tests.provider_emulator.http import TRANSPORT, MarkedFaults, json_response
from tests.provider_emulator.world import World

HOST = "127.0.0.1"
PREFIXES = {
    "openai": "openai",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "bedrock": "bedrock",
    "s3": "bedrock",
}
"""First part of a path → the module that serves it."""


def build_app(world: World) -> ASGIApp:
    """Return the application of a world: control calls, and every provider by its prefix."""
    routers = {control.PREFIX.strip("/"): Router(control.routes(world))}

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        prefix = scope["path"].split("/", 2)[1]
        if prefix not in routers and prefix in PREFIXES:
            routers[prefix] = _provider_router(PREFIXES[prefix], world)
        serve: Any = routers.get(prefix) or _nowhere(prefix)
        await serve(scope, receive, send)

    app = Starlette(exception_handlers={500: _note_error(world)})
    app.mount("/", MarkedFaults(dispatch))
    return app


def _provider_router(module: str, world: World) -> Router:
    # No slash is added or taken away: the providers' own servers do not redirect.
    routes = importlib.import_module(f"tests.provider_emulator.{module}").routes(world)
    return Router(routes, redirect_slashes=False)


def _nowhere(prefix: str) -> Response:
    known = [f"/{one}" for one in (*PREFIXES, control.PREFIX.strip("/"))]
    return json_response({"error": f"nothing is served under /{prefix}: {known}"}, 404)


def _note_error(world: World) -> Any:
    """Return a handler that keeps an error of the emulator itself and answers 500.

    A plain 500 could pass for a planted fault, so the error is kept for the fixture to report.
    """

    async def note(request: Request, problem: Exception) -> Response:
        world.errors.append(problem)
        traceback.print_exception(problem, file=sys.stderr)
        return json_response({"error": f"emulator: {type(problem).__name__}: {problem}"}, 500)

    return note


class TransportProtocol(H11Protocol):
    """HTTP/1.1 that puts the connection's transport into each request's scope."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, and hand its transport on."""
        super().connection_made(transport)
        inner = self.app

        async def with_transport(scope: Any, receive: Any, send: Any) -> None:
            scope[TRANSPORT] = transport
            await inner(scope, receive, send)

        self.app = with_transport


class EmulatorServer(uvicorn.Server):
    """A server that stops at once when told to, instead of looking ten times a second."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=TransportProtocol,
                ws="none",
                loop="asyncio",
                lifespan="off",
                log_config=None,
                log_level="critical",
                access_log=False,
                timeout_keep_alive=600,
                timeout_graceful_shutdown=1,
            )
        )
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def main_loop(self) -> None:
        """Keep the date header right until `stop` or a signal."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        if self.should_exit:
            return
        await self.on_tick(0)
        counter = 0
        while not self.should_exit and not self._stop.is_set():
            try:
                await asyncio.wait_for(self._stop.wait(), timeout=0.5)
            except TimeoutError:
                counter += 10
                await self.on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close everything at once; uvicorn's own way waits a tenth of a second for nothing."""
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        for task in list(self.server_state.tasks):
            task.cancel()

    def stop(self) -> None:
        """End the server; may be called from another thread."""
        self.should_exit = True
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)


def listen(port: int = 0) -> socket.socket:
    """Return a listening loopback socket; port 0 takes a free one.

    The protocol is named, since asyncio switches Nagle's delay off only where it is: without it
    every answer on a kept connection waits for the client's delayed acknowledgement (40 ms).
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


def base_url(listener: socket.socket) -> str:
    """Return the address of a listening socket."""
    return f"http://{HOST}:{listener.getsockname()[1]}"
