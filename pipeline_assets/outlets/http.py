"""The webhook outlet: one POST of JSON a change, a bounded number at a time.

Belongs here: the requests, their limits, and when a round is broken off. Does not belong here:
which addresses are allowed (`resources/settings.py`) and what an answer means (`queue.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from pydantic import SecretStr

from pipeline_assets.alerting.webhook import SIGNATURE_HEADER, signature
from pipeline_assets.outlets.payload import KEY_HEADER, Message
from pipeline_assets.outlets.queue import Answer
from resources.clock import is_loopback
from resources.settings import Settings

if TYPE_CHECKING:
    import httpx2

STEP_SECONDS = 10.0
WHOLE_SECONDS = 20.0
"""Of one conversation, however slowly it drips."""
ROUND_SECONDS = 240.0
"""No conversation of a round is begun later, so that a slow outlet stays far below the lease."""
FAILURES_IN_A_ROW = 5
"""After so many without an answer between them that settles one, the outlet is taken to be down:
the rest of the round is not tried, and no try of it is counted."""


class Outlet(Protocol):
    """A system that is told of changes."""

    @property
    def name(self) -> str:
        """How deliveries name it; at most 32 characters."""
        ...

    def send(self, messages: Sequence[Message]) -> list[Answer | None]:
        """Tell of changes, and give an answer for each; None for one that was not begun."""
        ...


class NoOutlet(Exception):
    """Changes were to be sent, and no outlet is configured."""

    def __init__(self) -> None:
        super().__init__(
            "no outlet is configured. Set TALLYBOOK_OUTLET_WEBHOOK_URL, and "
            "TALLYBOOK_OUTLET_WEBHOOK_SECRET if the receiver checks signatures."
        )


def configured_outlet(settings: Settings) -> Outlet | None:
    """The outlet that the settings name; nothing is imported or opened for it here."""
    if settings.outlet_webhook_url is None:
        return None
    return WebhookOutlet(
        settings.outlet_webhook_url,
        settings.outlet_webhook_secret,
        settings.outlet_webhook_name,
        settings.outlet_concurrency,
    )


@dataclass(frozen=True)
class WebhookOutlet:
    """Posts to one address.

    Attributes:
        url: the address; often a secret itself, so it is never shown.
        secret: the key of the signature; None for no signature.
        name: how deliveries name it.
        concurrency: requests under way at a time.
        step_seconds: limit of each step of a conversation.
        whole_seconds: limit of a whole conversation.
    """

    url: SecretStr
    secret: SecretStr | None = None
    name: str = "webhook"
    concurrency: int = 4
    step_seconds: float = STEP_SECONDS
    whole_seconds: float = WHOLE_SECONDS

    def send(self, messages: Sequence[Message]) -> list[Answer | None]:
        """Post messages until all are answered or the outlet is taken to be down."""
        return asyncio.run(self._send(messages))

    async def _send(self, messages: Sequence[Message]) -> list[Answer | None]:
        import httpx2

        answers: list[Answer | None] = [None] * len(messages)
        left = iter(range(len(messages)))
        health = _Health()
        loop = asyncio.get_running_loop()
        until = loop.time() + ROUND_SECONDS

        async def work(client: httpx2.AsyncClient) -> None:
            # One iterator for all workers: whoever is free takes the next message.
            for index in left:
                if health.down or loop.time() >= until:
                    return
                answer = await self._post(client, messages[index])
                health.note(answer)
                answers[index] = answer

        async with httpx2.AsyncClient(
            timeout=self.step_seconds,
            follow_redirects=False,
            # A proxy of the environment cannot reach this machine's own loopback.
            trust_env=not is_loopback(self.url.get_secret_value()),
        ) as client:
            await asyncio.gather(*(work(client) for _ in range(self.concurrency)))
        return answers

    async def _post(self, client: httpx2.AsyncClient, message: Message) -> Answer:
        import httpx2

        try:
            async with (
                asyncio.timeout(self.whole_seconds),
                # Streamed, so that an answer's body is never read: its head says enough.
                client.stream(
                    "POST",
                    self.url.get_secret_value(),
                    content=message.body,
                    headers=self._headers(message),
                ) as response,
            ):
                return Answer(
                    response.status_code,
                    retry_after=_seconds(response.headers.get("Retry-After")),
                )
        except (httpx2.TimeoutException, TimeoutError):
            return Answer(None, "it did not answer in time")
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            return Answer(None, f"it could not be reached ({type(error).__name__})")

    def _headers(self, message: Message) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "tallybook",
            KEY_HEADER: message.key,
        }
        if self.secret is not None:
            headers[SIGNATURE_HEADER] = signature(self.secret, message.body)
        return headers


class _Health:
    """Whether the outlet is worth another request in this round."""

    def __init__(self) -> None:
        self._in_a_row = 0
        self.down = False

    def note(self, answer: Answer) -> None:
        """Take an answer into account."""
        settled = answer.accepted or answer.refused
        self._in_a_row = 0 if settled else self._in_a_row + 1
        if answer.of_the_outlet or self._in_a_row >= FAILURES_IN_A_ROW:
            self.down = True


def _seconds(retry_after: str | None) -> timedelta | None:
    """A `Retry-After` in seconds; its other form, a date, is read as none (RFC 9110, 10.2.3)."""
    if retry_after is None or not retry_after.isascii() or not retry_after.isdigit():
        return None
    # Longer than any wait that is granted; more digits would not fit a timedelta.
    return timedelta(seconds=int(retry_after[:9]))
