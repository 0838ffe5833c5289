"""Fixtures for every test: databases, the corpus, a clock, randomness, a browser.

The work is done in `tests.support`; here are only names, scopes and reasons to skip.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.support.browser import PATH_VARIABLE as CHROMIUM_VARIABLE
from tests.support.browser import find_chromium, open_page
from tests.support.clock import FrozenClock
from tests.support.emulator import RunningEmulator, running_emulator
from tests.support.postgres import URL_VARIABLE, PostgresServer, fresh_database, postgres_server

if TYPE_CHECKING:
    from playwright.sync_api import Page

REPOSITORY = Path(__file__).resolve().parent.parent
CORPUS_VARIABLE = "TALLYBOOK_DEV_CORPUS"
DEFAULT_CORPUS = REPOSITORY.parent / "shared" / "corpus" / "dev"
# Settings of the test run itself; every other setting of the developer's shell is taken away.
KEPT_VARIABLES = frozenset({URL_VARIABLE, CORPUS_VARIABLE, CHROMIUM_VARIABLE})
SCRUBBED_PREFIXES = (
    "TALLYBOOK_",
    "DAGSTER_",
    "OPENAI_",
    "ANTHROPIC_",
    "GEMINI_",
    "GOOGLE_",
    "AWS_",
)

# Each test of these runs on both databases, the one on PostgreSQL with the slow tests: there it
# takes two or three times as long, and what differs is shown where the SQL is made. Where new SQL
# is made in these places, one test of it is fast on both.
SLOW_ON_POSTGRES = (
    "integration/accept",
    "integration/costs",
    "integration/erasure",
    "integration/ledger/test_upgrade.py",
    "integration/provider_jobs",
    "integration/quality",
    "integration/recovery",
    "integration/retention",
    "integration/review",
    "integration/stages/test_crashes.py",
    "integration/tracing",
    "unit/account",
)
FAST_ON_BOTH = frozenset(
    {
        "test_no_word_of_an_erased_document_is_left",
        "test_bytes_that_another_document_has_stay",
        "test_results_and_requests_of_settled_batches_go_after_their_age",
        "test_texts_of_a_parser_that_nobody_declares_go",
    }
)

# No time limit for one example: on a busy machine it fails tests that are right. All else stays
# as Hypothesis chose it, which makes examples repeatable where it sees a CI machine.
settings.register_profile(
    "tallybook", settings.get_profile(settings.get_current_profile_name()), deadline=None
)
settings.load_profile("tallybook")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to the slow tests what `SLOW_ON_POSTGRES` names."""
    tests = REPOSITORY / "tests"
    places = tuple(tests / place for place in SLOW_ON_POSTGRES)
    for item in items:
        if "postgresql" not in item.name or item.name.partition("[")[0] in FAST_ON_BOTH:
            continue
        if any(item.path.is_relative_to(place) for place in places):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def scrubbed_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away settings and keys, so that no test depends on, or bills, the one who runs it."""
    for name in list(os.environ):
        if name.startswith(SCRUBBED_PREFIXES) and name not in KEPT_VARIABLES:
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the root of the repository."""
    return REPOSITORY


@pytest.fixture(scope="session")
def dev_corpus() -> Path:
    """Return the folder of the development corpus (`files/`, `labels.jsonl`), or skip."""
    folder = Path(os.environ.get(CORPUS_VARIABLE, DEFAULT_CORPUS))
    if not (folder / "labels.jsonl").is_file():
        pytest.skip(f"no development corpus at {folder}; {CORPUS_VARIABLE} names another place")
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Return a running PostgreSQL on which databases may be created. Fails where none works."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """Return the URL (`postgresql+psycopg://`) of a fresh, empty PostgreSQL database."""
    with fresh_database(postgres) as url:
        yield url.render_as_string(hide_password=False)


@pytest.fixture(
    params=[
        pytest.param("sqlite", id="sqlite"),
        pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgres),
    ]
)
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a fresh, empty database; the test runs once on each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.sqlite3'}"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def frozen_clock() -> FrozenClock:
    """Return a clock that moves only by `advance`."""
    return FrozenClock()


@pytest.fixture
def emulator() -> Iterator[RunningEmulator]:
    """Return emulated providers on loopback; no variable is set until the test says so."""
    with running_emulator() as running:
        yield running


@pytest.fixture
def rng() -> random.Random:
    """Return a random generator with the same seed in every run."""
    return random.Random(20_300_102)


@pytest.fixture(scope="session")
def chromium() -> Path:
    """Return a Chromium of this machine, or skip."""
    path = find_chromium()
    if path is None:
        pytest.skip(f"no Chromium on this machine; install one or name it in {CHROMIUM_VARIABLE}")
    return path


@pytest.fixture
def browser_page(chromium: Path) -> Iterator[Page]:
    """Return a blank page of a fresh headless browser."""
    with open_page(chromium) as page:
        yield page
