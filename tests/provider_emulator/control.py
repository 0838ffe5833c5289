"""The emulator's own calls under `/_control`: clock, faults, timing, limits, and what happened.

Belongs here: reading and moving the `World` over HTTP, for a process that does not hold it.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import fields
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tests.provider_emulator.http import json_response
from tests.provider_emulator.world import Timing, World

PREFIX = "/_control"


class BadControl(ValueError):
    """A control call whose body is not what it takes."""


def routes(world: World) -> list[BaseRoute]:
    """Return the control calls of a world."""
    return [
        _route("GET", "/clock", lambda _: _clock(world)),
        _route("POST", "/advance", lambda body: _advance(world, body)),
        _route("GET", "/faults", lambda _: [_as_data(one) for one in world.faults.pending()]),
        _route("POST", "/faults", lambda body: _plant(world, body)),
        _route("DELETE", "/faults", lambda _: _clear(world)),
        _route("GET", "/calls", lambda _: [_call_data(one) for one in list(world.calls)]),
        _route("GET", "/executed", lambda _: {p: dict(n) for p, n in world.executed.items()}),
        _route("GET", "/jobs", lambda _: dict(world.jobs_created)),
        _route("GET", "/timing", lambda _: _as_data(world.timing)),
        _route("POST", "/timing", lambda body: _set_timing(world, body)),
        _route("GET", "/settings", lambda _: world.settings),
        _route("POST", "/settings", lambda body: _set_settings(world, body)),
    ]


def _route(method: str, path: str, act: Callable[[Any], Any]) -> Route:
    return Route(PREFIX + path, _endpoint(act), methods=[method])


def _endpoint(act: Callable[[Any], Any]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            body = await request.json() if await request.body() else None
            return json_response(act(body))
        except ValueError as problem:  # bad JSON, InvalidFault and BadControl are all of this kind
            return json_response({"error": str(problem)}, 400)

    return endpoint


def _as_data(value: Any) -> dict[str, Any]:
    return {one.name: getattr(value, one.name) for one in fields(value)}


def _call_data(call: Any) -> dict[str, Any]:
    return _as_data(call) | {"at": call.at.isoformat()}


def _clock(world: World) -> dict[str, Any]:
    return {"now": world.clock.now().isoformat(), "offset_seconds": world.clock.offset_seconds}


def _advance(world: World, body: Any) -> dict[str, Any]:
    world.clock.advance(_number(body, "seconds"))
    return _clock(world)


def _plant(world: World, body: Any) -> dict[str, Any]:
    if not isinstance(body, list):
        raise BadControl("the body is a list of faults")
    world.faults.load(body)
    return {"pending": len(world.faults.pending())}


def _clear(world: World) -> dict[str, Any]:
    world.faults.clear()
    return {"pending": 0}


def set_timing(timing: Timing, changes: dict[str, Any]) -> None:
    """Change some durations of a timing.

    Raises:
        BadControl: an unknown duration, or one that is not a number of seconds from 0.
    """
    known = {one.name for one in fields(timing)}
    if unknown := sorted(set(changes) - known):
        raise BadControl(f"no duration is called {unknown[0]!r}: {sorted(known)}")
    for name in changes:
        _number(changes, name)
    for name, seconds in changes.items():
        setattr(timing, name, float(seconds))


def _set_timing(world: World, body: Any) -> dict[str, Any]:
    set_timing(world.timing, _mapping(body))
    return _as_data(world.timing)


def _set_settings(world: World, body: Any) -> dict[str, Any]:
    world.settings.update(_mapping(body))
    return world.settings


def _mapping(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise BadControl("the body is a JSON object")
    return body


def _number(body: Any, name: str) -> float:
    value = _mapping(body).get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise BadControl(f"{name!r} is a number of seconds, 0 or more")
    if not 0 <= value < math.inf:  # false for NaN too, which JSON of Python may hold
        raise BadControl(f"{name!r} is a number of seconds, 0 or more")
    return float(value)
