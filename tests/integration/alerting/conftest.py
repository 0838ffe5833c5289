"""An open context on each database, empty of alerts, and receivers on loopback."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from resources.context import Context, open_context
from resources.ledger.alert_deliveries import Told, deliveries_of
from resources.ledger.alerts import clear_alerts, raise_alert, recent_alerts
from resources.ledger.schema import alert_deliveries, alerts, leases
from resources.settings import Settings
from tests.support.alert_receivers import (
    MailReceiver,
    WebhookReceiver,
    mail_receiver,
    webhook_receiver,
)
from tests.support.clock import FrozenClock
from tests.support.postgres import fresh_database

BACKENDS = [
    pytest.param("sqlite", id="sqlite"),
    pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgres),
]


@dataclass(frozen=True)
class World:
    """A ledger, its clock, and short ways to raise, clear and look."""

    context: Context
    clock: FrozenClock

    def raise_one(self, kind: str = "unreachable", subject: str = "job-1") -> None:
        with self.context.ledger.write() as connection:
            raise_alert(connection, kind, subject, f"{kind} it is", self.context.ledger.now())

    def clear(self, subject: str = "job-1") -> None:
        with self.context.ledger.write() as connection:
            clear_alerts(connection, subject, self.context.ledger.now())

    def told(self) -> list[Told]:
        """What every channel was told of every alert."""
        numbers = [alert.no for alert in recent_alerts(self.context.ledger, 500)]
        return deliveries_of(self.context.ledger, numbers)

    def as_worker(self, name: str, **settings: object) -> Context:
        """The same ledger through the eyes of another process."""
        seen = self.context.settings.model_copy(update=settings)
        return replace(self.context, worker=name, settings=seen)


@pytest.fixture(scope="module", params=BACKENDS)
def module_context(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Context]:
    """Return the open context that the tests of a module share, once for each database."""
    folder = tmp_path_factory.mktemp("state")
    if request.param == "sqlite":
        with open_context(Settings(state=folder)) as context:
            yield context
        return
    with fresh_database(request.getfixturevalue("postgres")) as url:
        settings = Settings(state=folder, ledger_url=url.render_as_string(hide_password=False))
        with open_context(settings) as context:
            yield context


@pytest.fixture
def world(module_context: Context, frozen_clock: FrozenClock, rng: random.Random) -> World:
    """Return a world without alerts."""
    with module_context.ledger.write() as connection:
        for table in (alert_deliveries, alerts, leases):
            connection.execute(table.delete())
    ledger = replace(module_context.ledger, clock=frozen_clock)
    context = replace(module_context, ledger=ledger, clock=frozen_clock, rng=rng)
    return World(context, frozen_clock)


@pytest.fixture
def webhook() -> Iterator[WebhookReceiver]:
    """Return a running webhook."""
    with webhook_receiver() as receiver:
        yield receiver


@pytest.fixture
def mailbox() -> Iterator[MailReceiver]:
    """Return a running mail server without TLS."""
    with mail_receiver() as receiver:
        yield receiver


@pytest.fixture
def channel_settings(
    webhook: WebhookReceiver, mailbox: MailReceiver
) -> Callable[[], dict[str, str]]:
    """Return the settings that name both receivers, as the environment would spell them."""
    return lambda: {
        "TALLYBOOK_ALERT_WEBHOOK_URL": webhook.url,
        "TALLYBOOK_ALERT_SMTP_URL": f"smtp://127.0.0.1:{mailbox.port}",
        "TALLYBOOK_ALERT_MAIL_FROM": "tallybook@example.com",
        "TALLYBOOK_ALERT_MAIL_TO": "ops@example.com,night@example.com",
    }
