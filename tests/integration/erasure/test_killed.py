"""Dying anywhere in an erasure: others are never harmed, and the same command finishes it."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pipeline_assets.account import health, integrity
from pipeline_assets.account.search import search
from pipeline_assets.collect.evidence import Verified, reconcile_batch
from pipeline_assets.publish.publish_accepted import staged_of
from resources.context import open_context
from resources.ledger.batches import COMPLETE, find_batches
from resources.settings import Settings
from tests.integration.erasure.support import RARE, RARE_TEXT, Erasable, words_in
from tests.integration.publish.killing import Executioner, Killed, watched
from tests.support.clock import FrozenClock
from tests.support.small_archive import Archive, fill_folder

pytestmark = pytest.mark.slow


@contextmanager
def opened(place: Path) -> Iterator[Archive]:
    clock = FrozenClock()
    settings = Settings(state=place / "state", source=place / "documents")
    with open_context(settings, clock=clock, rng=random.Random(7)) as context:
        yield Archive(place / "documents", settings, context, clock)


@pytest.fixture(scope="module")
def processed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("processed")
    with opened(place) as archive:
        fill_folder(archive)
        archive.write(RARE, RARE_TEXT)
        archive.process()
    return place


@contextmanager
def files_counted(executioner: Executioner, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every change of a file's name or of a file that is made durable."""

    def counted(was: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            executioner.look()
            return was(*arguments, **named)

        return call

    with monkeypatch.context() as patched:
        for owner, name in ((Path, "replace"), (Path, "unlink"), (os, "fsync")):
            patched.setattr(owner, name, counted(getattr(owner, name)))
        yield


def count_steps(
    processed: Path, place: Path, monkeypatch: pytest.MonkeyPatch, *, files: bool
) -> int:
    executioner = Executioner(None)
    run(processed, place, executioner, monkeypatch, files=files)
    return executioner.sent


def run(
    processed: Path,
    place: Path,
    executioner: Executioner,
    monkeypatch: pytest.MonkeyPatch,
    *,
    files: bool,
) -> None:
    shutil.copytree(processed, place)
    with opened(place) as archive:
        chosen = (
            files_counted(executioner, monkeypatch)
            if files
            else watched(archive.context, executioner)
        )
        with chosen:
            Erasable(archive).erase(RARE)


def check_after_death(archive: Archive) -> None:
    """Whatever was reached: the others are as they were, and doctor tells what is unfinished."""
    context = archive.context
    begun = Erasable(archive).column("SELECT COUNT(*) FROM erasures")[0]
    assert len(search(context, "pump")) == 1
    assert bool(search(context, "quarzblitz")) != bool(begun)
    version = archive.version()
    (batch,) = find_batches(context.ledger, version.version_no, COMPLETE)
    again = reconcile_batch(context, version, batch, Verified())
    assert again.dispositions.height == 4
    for staged in staged_of(context, version):
        context.artifacts.verify("frame", staged.artifact)
    context.artifacts.verify("request", batch.request_artifact)
    kinds = [problem.kind for problem in health.look(context) if problem.broken]
    kinds += [problem.kind for problem in integrity.diagnose(context)]
    assert set(kinds) <= {"unfinished_erasure", "dead_lease"}
    unfinished = Erasable(archive).column("SELECT finished_at FROM erasures")
    assert ("unfinished_erasure" in kinds) == (unfinished == [None])


@pytest.mark.parametrize("files", [True, False], ids=["files", "ledger"])
def test_killed_anywhere(
    files: bool, processed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = count_steps(processed, tmp_path / "counted", monkeypatch, files=files)
    assert steps > 10
    # The statements of one transaction are all alike: some of them stand for the rest.
    for step in range(1, steps + 1, 1 if files else 7):
        place = tmp_path / f"killed-{step}"
        with pytest.raises(Killed):
            run(processed, place, Executioner(step), monkeypatch, files=files)
        with opened(place) as archive:
            check_after_death(archive)
            integrity.release_dead_leases(archive.context)
            archive.clock.advance(3600)
            Erasable(archive).erase(RARE)
            assert words_in(place / "state") == {}
            found = [*integrity.diagnose(archive.context), *health.look(archive.context)]
            assert [problem.kind for problem in found if problem.broken] == []
        shutil.rmtree(place)
