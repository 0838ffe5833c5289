"""Whether a model can be used: what OpenAI answers, and what compatible servers answer."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import httpx2
import pytest
from openai import OpenAI

from resources.providers.openai.connection import ask_for_model
from resources.providers.port import ModelUnavailable, ProviderError, Refused, Unavailable

MODEL = "small-1"
NO_PATH = httpx2.Response(
    404, json={"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}}
)
NO_MODEL = httpx2.Response(
    404,
    json={
        "error": {
            "code": "model_not_found",
            "message": f"The model '{MODEL}' does not exist",
            "type": "invalid_request_error",
        }
    },
)
BARE = httpx2.Response(404, text="404 page not found")
LISTED = httpx2.Response(200, json={"object": "list", "data": [{"id": "x"}, {"id": MODEL}]})
OTHERS = httpx2.Response(200, json={"object": "list", "data": [{"id": "x"}]})


@pytest.fixture(scope="module", autouse=True)
def no_certificates_read() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)
        yield


def ask(one: httpx2.Response, listing: httpx2.Response) -> list[str]:
    """Ask a server that answers so to one model and to the list; the paths that were asked for."""
    asked: list[str] = []

    def serve(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.path)
        return listing if request.url.path == "/v1/models" else one

    transport = httpx2.Client(transport=httpx2.MockTransport(serve))
    with OpenAI(
        api_key="k", base_url="http://sdk.test/v1", max_retries=0, http_client=transport
    ) as client:
        ask_for_model(client, MODEL)
    return asked


def test_the_model_itself_is_enough() -> None:
    assert ask(httpx2.Response(200, json={"id": MODEL}), OTHERS) == [f"/v1/models/{MODEL}"]


@pytest.mark.parametrize("one", [NO_PATH, BARE], ids=["with an error body", "bare"])
def test_a_server_that_has_only_the_list_is_asked_for_it(one: httpx2.Response) -> None:
    assert ask(one, LISTED) == [f"/v1/models/{MODEL}", "/v1/models"]


@pytest.mark.parametrize(
    ("one", "listing", "expected"),
    [
        pytest.param(NO_MODEL, LISTED, ModelUnavailable, id="the provider's own word counts"),
        pytest.param(NO_PATH, OTHERS, ModelUnavailable, id="not on the list"),
        pytest.param(
            NO_PATH, httpx2.Response(200, text="<html>"), ModelUnavailable, id="no list of models"
        ),
        pytest.param(NO_PATH, NO_PATH, ModelUnavailable, id="no list"),
        pytest.param(BARE, BARE, Refused, id="a wrong base URL"),
        pytest.param(NO_PATH, httpx2.Response(503), Unavailable, id="a list that is not given"),
        pytest.param(NO_PATH, httpx2.Response(401), Refused, id="a list that is refused"),
        pytest.param(httpx2.Response(503), LISTED, Unavailable, id="no 404"),
    ],
)
def test_otherwise_the_model_is_not_taken(
    one: httpx2.Response, listing: httpx2.Response, expected: type[ProviderError]
) -> None:
    with pytest.raises(ProviderError) as caught:
        ask(one, listing)
    assert type(caught.value) is expected
