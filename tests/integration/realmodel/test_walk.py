"""The whole trial with a scripted model: through the proxy, the SDK, the stages and the figures."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pipeline_assets.versions import open_version
from resources.context import open_context
from resources.settings import load_settings
from tests.integration.stages.support import manual
from tests.provider_emulator.server import EmulatorServer, base_url, listen
from tests.realmodel.findings import answers, find
from tests.realmodel.model_server import MODEL
from tests.realmodel.proxy import bounding_proxy
from tests.realmodel.walk import KEY, canary_verdict, walk, write_spec


def field(value: str | None, quote: str) -> dict[str, Any]:
    return {"value": value, "status": "found", "evidence": [{"page": 1, "quote": quote}]}


def say(prompt: str) -> str:
    """Right about pumps but for the title; everything else gets an answer that breaks off."""
    if "Circulation Pump" not in prompt:
        return '{"document": "'
    found = re.search(r"doc-[0-9a-f]{16}", prompt)
    assert found is not None
    sentence = "The WP-100 is a circulation pump for small workshops and gardens."
    answer = {
        "document": found[0],
        "title": field("Boiler WP-100", "Circulation Pump WP-100"),
        "product_identifiers": [field("WP-100", "Circulation Pump WP-100")],
        "language": field("en", sentence),
        "description": field(sentence, sentence),
    }
    return json.dumps(answer)


@pytest.fixture
def asked() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def server(asked: list[dict[str, Any]]) -> Iterator[str]:
    """A compatible server that has a list of models, and no address for one."""

    async def models(_: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": MODEL}]})

    async def complete(request: Request) -> Response:
        body = await request.json()
        asked.append(body)
        if not body["messages"]:
            return JSONResponse({"error": {"message": "no messages", "code": 400}}, 400)
        text = say(body["messages"][-1]["content"])
        choice = {
            "index": 0,
            "finish_reason": "stop" if text.endswith("}") else "length",
            "message": {"role": "assistant", "content": text},
        }
        return JSONResponse(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "model": MODEL,
                "choices": [choice],
                "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
            }
        )

    routes = [
        Route("/v1/models", models),
        Route("/v1/chat/completions", complete, methods=["POST"]),
    ]
    listener = listen()
    running = EmulatorServer(Starlette(routes=routes))
    thread = threading.Thread(target=lambda: asyncio.run(running.serve(sockets=[listener])))
    thread.start()
    with bounding_proxy(base_url(listener)) as url:
        yield url
    running.stop()
    thread.join()
    listener.close()


@pytest.mark.slow
def test_the_trial_tells_what_became_of_every_document(
    server: str, asked: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    source = tmp_path / "documents"
    source.mkdir()
    (source / "pump.txt").write_text(manual("Circulation Pump", "WP-100"))
    (source / "fan.txt").write_text(manual("Ventilator", "VF-20"))
    write_spec(tmp_path / "specs")
    settings = load_settings(
        state=tmp_path / "state",
        source=source,
        source_name="dev",
        specs=tmp_path / "specs",
        parser_workers=1,
    )
    with open_context(settings) as context:
        walk(context, canary=True)
        verdict = canary_verdict(context)
        found = find(context, KEY, [], "dev/")
        rows = {row["document_id"]: row for row in answers(context, open_version(context, KEY))}
    assert verdict is not None
    assert verdict.state == "failed"
    assert (found.documents, found.accepted, found.reviewed) == (2, 0, 1)
    assert sum(found.stopped.values()) == 1
    assert any("truncated" in why for why in found.stopped)
    assert "title_present (review)" in found.rules
    said = json.loads(rows["dev/pump.txt"]["answer"])
    assert said["title"]["value"] == "Boiler WP-100"
    assert rows["dev/fan.txt"]["state"] == "dead_letter"
    # The canary's broken request has no message, and passes as it is.
    forms = [body["response_format"]["json_schema"]["schema"] for body in asked if body["messages"]]
    assert forms
    assert not any("$defs" in form for form in forms)
