"""A made-up archive on each kind of database, and a receiver of its changes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from pydantic import SecretStr

from pipeline_assets.outlets.deliver import SendReport, send_changes
from pipeline_assets.outlets.http import WebhookOutlet
from resources.context import Context, open_context
from resources.ledger import schema
from resources.settings import Settings
from tests.support.archive_shelf import Shelf, clear
from tests.support.clock import FrozenClock
from tests.support.outlet_receiver import OutletReceiver, outlet_receiver
from tests.support.postgres import fresh_database

SECRET = "open-sesame"
TABLES = (
    schema.outlet_deliveries,
    schema.archive_heads,
    schema.archive_entries,
    schema.archive_changes,
    schema.deliveries,
    schema.alerts,
    schema.leases,
    schema.refused_commits,
)


@dataclass
class World:
    """The archive, its receiver and a sender."""

    shelf: Shelf
    receiver: OutletReceiver
    context: Context

    @property
    def outlet(self) -> WebhookOutlet:
        return WebhookOutlet(SecretStr(self.receiver.url), SecretStr(SECRET), step_seconds=3)

    def send(self, *, at_once: bool = False) -> SendReport:
        return send_changes(self.context, outlet=self.outlet, at_once=at_once)

    def send_until_quiet(self, looks: int = 40) -> None:
        """Look again and again, with time between, until nothing is due."""
        for _ in range(looks):
            self.send()
            self.shelf.clock.advance(timedelta(hours=2))
            if all(state != "due" for _, _, _, state, _ in self.shelf.rows()):
                return
        raise AssertionError("something is still due")


@pytest.fixture(scope="module")
def module_context(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Context]:
    """Return an open context on the database that the module's tests ask for; SQLite if none."""
    folder = tmp_path_factory.mktemp("state")
    if getattr(request, "param", "sqlite") == "sqlite":
        with open_context(Settings(state=folder)) as context:
            yield context
        return
    with fresh_database(request.getfixturevalue("postgres")) as url:
        settings = Settings(state=folder, ledger_url=url.render_as_string(hide_password=False))
        with open_context(settings) as context:
            yield context


@pytest.fixture
def receiver() -> Iterator[OutletReceiver]:
    """Return a running receiver."""
    with outlet_receiver() as running:
        yield running


@pytest.fixture
def world(
    module_context: Context,
    receiver: OutletReceiver,
    frozen_clock: FrozenClock,
    rng: random.Random,
) -> World:
    """Return a world whose archive is empty."""
    clear(module_context, *TABLES)
    ledger = replace(module_context.ledger, clock=frozen_clock)
    context = replace(module_context, ledger=ledger, clock=frozen_clock, rng=rng)
    return World(Shelf(context, frozen_clock), receiver, context)
