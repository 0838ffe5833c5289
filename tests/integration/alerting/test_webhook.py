"""The webhook against a real receiver: what is posted, what counts as told, what never happens."""

from __future__ import annotations

import hashlib
import hmac
import socket
import threading

import pytest
from pydantic import SecretStr

from pipeline_assets.alerting.channels import ChannelFailed
from pipeline_assets.alerting.message import trial_digest
from pipeline_assets.alerting.webhook import WebhookChannel
from tests.support.alert_receivers import WebhookReceiver, webhook_receiver

SECRET = "open-sesame"
DIGEST = trial_digest("2030-01-02T03:04:05.000000Z")


def channel(url: str, secret: str | None = None, timeout: float = 5) -> WebhookChannel:
    return WebhookChannel(
        SecretStr(url), None if secret is None else SecretStr(secret), timeout=timeout
    )


@pytest.mark.parametrize("status", [200, 202, 204])
def test_the_digest_is_posted_as_json(webhook: WebhookReceiver, status: int) -> None:
    webhook.answer = lambda: status
    assert channel(webhook.url).send(DIGEST) is None
    (request,) = webhook.requests
    assert request.path == "/hook"
    assert request.headers["Content-Type"] == "application/json"
    assert "X-Tallybook-Signature" not in request.headers
    assert [alert["kind"] for alert in request.alerts] == ["test"]


def test_the_signature_is_over_the_exact_body(webhook: WebhookReceiver) -> None:
    channel(webhook.url, SECRET).send(DIGEST)
    (request,) = webhook.requests
    wanted = hmac.new(SECRET.encode(), request.body, hashlib.sha256).hexdigest()
    assert request.headers["X-Tallybook-Signature"] == f"sha256={wanted}"
    assert SECRET not in str(request)


@pytest.mark.parametrize("status", [400, 401, 404, 410, 429, 500, 503])
def test_any_other_answer_is_a_failure(webhook: WebhookReceiver, status: int) -> None:
    webhook.answer = lambda: status
    with pytest.raises(ChannelFailed, match=f"^it answered {status}$"):
        channel(webhook.url).send(DIGEST)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(webhook: WebhookReceiver, status: int) -> None:
    """It could lead to another host, or out of TLS, with the alert and its signature."""
    with webhook_receiver() as elsewhere:
        webhook.answer, webhook.location = lambda: status, elsewhere.url
        with pytest.raises(ChannelFailed, match="a redirect, which is not followed"):
            channel(webhook.url, SECRET).send(DIGEST)
        assert len(webhook.requests) == 1
        assert elsewhere.requests == []


def test_a_receiver_that_says_nothing_is_given_up(webhook: WebhookReceiver) -> None:
    released = threading.Event()
    webhook.before = lambda: assert_waited(released)
    with pytest.raises(ChannelFailed, match="did not answer in time"):
        channel(webhook.url, timeout=0.2).send(DIGEST)
    released.set()


def assert_waited(event: threading.Event) -> None:
    assert event.wait(10)


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/{SECRET}"
        with pytest.raises(ChannelFailed, match=r"could not be reached \(ConnectError\)") as failed:
            channel(url).send(DIGEST)
    assert SECRET not in str(failed.value)
    assert failed.value.__suppress_context__


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    webhook: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert channel(webhook.url).send(DIGEST) is None


def test_the_answers_body_is_never_read(webhook: WebhookReceiver) -> None:
    """However long it is; what it says is not ours to keep."""
    webhook.answer, webhook.answer_body = lambda: 500, b"x" * 50_000_000
    with pytest.raises(ChannelFailed, match=r"^it answered 500$"):
        channel(webhook.url).send(DIGEST)
