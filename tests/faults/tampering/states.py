"""Real small states to tamper with, or to leave as they are.

Belongs here: making them with the stages' own code, and copying them. Does not belong here: what is
planted (`plants.py`) and judging the audit (`series.py`).
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import polars as pl
from psycopg import connect, sql
from sqlalchemy import URL, make_url, text

from pipeline_assets.account.documents import find_document
from pipeline_assets.account.reconciliation.closing import close_report
from pipeline_assets.account.reconciliation.kept import keep_report
from pipeline_assets.audit.run import audit
from pipeline_assets.erasure.purge import erase
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.quality.draw import draw_sample
from pipeline_assets.retention.policy import RetentionPolicy
from pipeline_assets.retention.prune import prune
from pipeline_assets.review.decisions import asked_of, decide
from resources.context import Context, open_context
from resources.contracts import STAGING, read_frame
from resources.settings import Settings
from tests.support.clock import FrozenClock
from tests.support.emulator import running_emulator
from tests.support.messy_run import messy_run
from tests.support.small_archive import KEY, PUMP, Archive, fill_folder, manual


@dataclass(frozen=True)
class State:
    """A state folder, its ledger and its documents.

    Attributes:
        name: which one.
        folder: holds `state`, and `specs` where it has own ones.
        ledger_url: None for the SQLite file in the state folder.
    """

    name: str
    folder: Path
    ledger_url: str | None = None

    def settings(self) -> Settings:
        """Settings to audit it by."""
        specs = self.folder / "specs"
        return Settings(
            state=self.folder / "state",
            ledger_url=self.ledger_url,
            source=self.folder / "documents",
            specs=specs if specs.is_dir() else None,
        )

    @contextmanager
    def opened(self) -> Iterator[Context]:
        """Its resources."""
        with open_context(self.settings(), rng=random.Random(5)) as context:
            yield context

    @property
    def url(self) -> str:
        """The ledger's URL."""
        return self.settings().ledger_place


@contextmanager
def _archive(name: str, folder: Path, ledger_url: str | None) -> Iterator[tuple[State, Archive]]:
    documents = folder / "documents"
    documents.mkdir(parents=True)
    state = State(name, folder, ledger_url)
    clock = FrozenClock()
    with open_context(state.settings(), clock=clock, rng=random.Random(7)) as context:
        archive = Archive(documents, context.settings, context, clock)
        fill_folder(archive)
        archive.process()
        yield state, archive


def make_reviewed(folder: Path, ledger_url: str | None = None) -> State:
    """Published, corrected and replaced entries, a sample, a closed report and an audit."""
    with _archive("reviewed", folder, ledger_url) as (state, archive):
        context = archive.context
        _correct_what_waits(context)
        archive.clock.advance(timedelta(minutes=5))
        publish_accepted(context, archive.version())
        archive.write(PUMP, manual("Water Pump", "WP-200"))
        archive.clock.advance(timedelta(minutes=5))
        archive.process()
        draw_sample(context, archive.version(), "a look at all", "ada", seed=3)
        for number in _numbers(context, "SELECT review_no FROM reviews WHERE decision IS NULL"):
            decide(context, asked_of([(number, 0)]), "accept", reviewer="grace", reason="right")
        keep_report(context, KEY)
        close_report(context, KEY, "ada", "the collection is whole")
        audit(context)
    return state


def make_erased(folder: Path, ledger_url: str | None = None) -> State:
    """One document erased, one removed and come back, results and requests pruned."""
    with _archive("erased", folder, ledger_url) as (state, archive):
        context = archive.context
        erased = find_document(context, PUMP)
        erase(context, erased.document_no, erased.document_id, "asked by its owner", "ada")
        keep_report(context, KEY)
        archive.clock.advance(timedelta(days=400))
        prune(context, RetentionPolicy(), reason="old", actor="ada")
    return state


def make_messy(folder: Path, ledger_url: str | None = None) -> State:
    """Two versions, retries, dead letters, open batches, decided and open reviews."""
    with (
        running_emulator() as emulator,
        patch.dict(os.environ, emulator.environment()),
        messy_run(emulator, folder, ledger_url) as run,
    ):
        keep_report(run.context, run.settings.version)
    return State("messy", folder, ledger_url)


def _numbers(context: Context, statement: str) -> list[int]:
    with context.ledger.read() as connection:
        return sorted(connection.execute(text(statement)).scalars())


def _correct_what_waits(context: Context) -> None:
    """Somebody puts another value in the place of the model's, for each record in review."""
    with context.ledger.read() as connection:
        waiting = connection.execute(
            text(
                "SELECT w.review_no, w.attempt_no, b.staging_artifact FROM reviews w "
                "JOIN attempts a ON a.attempt_no = w.attempt_no "
                "JOIN batches b ON b.batch_no = a.batch_no WHERE w.decision IS NULL"
            )
        ).all()
    for review_no, attempt_no, artifact in waiting:
        staged = read_frame(STAGING, context.artifacts.require("frame", artifact))
        content = staged.filter(pl.col("attempt_no") == attempt_no)["content"][0]
        corrected = content.replace("KS-7", "KS-8")
        asked = asked_of([(review_no, 0)]).with_columns(content=pl.lit(corrected))
        decide(context, asked, "correct", reviewer="grace", reason="looked at the machine")


@contextmanager
def copied(state: State, folder: Path) -> Iterator[State]:
    """A copy of a state that may be broken; a database of its own is dropped afterwards."""
    shutil.copytree(state.folder, folder)
    if state.ledger_url is None:
        yield State(state.name, folder)
    else:
        with _copied_database(make_url(state.ledger_url)) as url:
            yield State(state.name, folder, url.render_as_string(hide_password=False))
    shutil.rmtree(folder)


@contextmanager
def _copied_database(url: URL) -> Iterator[URL]:
    name = f"{url.database}_copy_{hashlib.sha256(os.urandom(8)).hexdigest()[:8]}"
    server = url.set(database="postgres", drivername="postgresql")
    with connect(server.render_as_string(hide_password=False), autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                sql.Identifier(name), sql.Identifier(str(url.database))
            )
        )
        try:
            yield url.set(database=name)
        finally:
            connection.execute(
                sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
            )
