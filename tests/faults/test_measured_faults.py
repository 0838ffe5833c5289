"""Seven faults that were measured on other batch libraries, on every provider: `docs/faults.md`.

Ten documents, one fault each; a hundred on Bedrock, which takes no smaller batch. Whatever the
fault, every usable answer is kept, nothing is run twice, nothing wrong is taken for right, and what
is not settled is said to be so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pipeline_assets.provider_jobs.adoption import GRACE
from pipeline_assets.provider_jobs.clients import LazyClient
from resources.providers.port import BatchClient
from tests.support.emulator import RunningEmulator
from tests.support.provider_walk import ProviderWalk, another_worker, provider_walk

pytestmark = pytest.mark.slow

PROVIDERS = ("openai", "anthropic", "gemini", "bedrock")
DOCUMENTS = {"openai": 10, "anthropic": 10, "gemini": 10, "bedrock": 100}
HALF = -1
"""So many documents are half of them."""


@dataclass(frozen=True)
class Cell:
    """What must come of a fault.

    Attributes:
        plant: plants it.
        classes: failure class → documents that do not end published.
        anomalies: kind → lines or attempts.
        not_run: rows that the provider never runs, and never bills.
    """

    plant: Callable[[ProviderWalk], None]
    classes: dict[str, int] = field(default_factory=dict)
    anomalies: dict[str, int] = field(default_factory=dict)
    not_run: int = 0


CELLS: dict[str, Cell] = {
    "u2028": Cell(lambda walk: walk.plant("row", "raw_u2028", match={"index": 2})),
    "missing-row": Cell(
        lambda walk: walk.plant("lines", "missing", index=3),
        {"missing_result": 1},
        {"missing_result": 1},
    ),
    "duplicate-differs": Cell(
        lambda walk: walk.plant("lines", "duplicate_differs", index=4),
        {"duplicate_conflict": 1},
        {"duplicate_conflict": 2},
    ),
    "one-400": Cell(
        lambda walk: walk.plant("row", "error", match={"index": 5}, status=400),
        {"invalid_request": 1},
        not_run=1,
    ),
    "expired-half-way": Cell(
        lambda walk: walk.plant("job", "expired", done=0.5), {"expired": HALF}, not_run=HALF
    ),
    "alien-id": Cell(lambda walk: walk.plant("lines", "alien"), {}, {"unknown_id": 1}),
}


@contextmanager
def ready(
    provider: str, folder: Path, monkeypatch: pytest.MonkeyPatch, emulator: RunningEmulator
) -> Iterator[ProviderWalk]:
    with provider_walk(emulator, provider, folder, monkeypatch, DOCUMENTS[provider]) as walk:
        walk.pass_canary()
        yield walk


def check(walk: ProviderWalk, cell: Cell) -> None:
    whole = DOCUMENTS[walk.provider]
    classes = {name: _share(count, whole) for name, count in cell.classes.items()}
    not_run = _share(cell.not_run, whole)
    if walk.provider == "gemini" and HALF in cell.classes.values():
        # A job of Gemini that expires gives nothing back, not even what was run.
        classes = dict.fromkeys(classes, whole)
        not_run = whole
    walk.check_sound()
    assert Counter(walk.classes().values()) == classes
    assert len(walk.published()) == whole - sum(classes.values())
    assert walk.status().done == (not classes)
    assert len(walk.executed()) == whole - not_run


def _share(count: int, whole: int) -> int:
    return whole // 2 if count == HALF else count


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("fault", CELLS)
def test_measured_fault(
    provider: str,
    fault: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    emulator: RunningEmulator,
) -> None:
    cell = CELLS[fault]
    with ready(provider, tmp_path, monkeypatch, emulator) as walk:
        cell.plant(walk)
        walk.settle()
        print(provider, fault, walk.report().states, walk.classes(), walk.anomalies())
        assert walk.world.faults.pending() == []
        check(walk, cell)
        # Whether an expired job leaves a line for a row that was not run differs.
        if fault != "expired-half-way":
            assert walk.anomalies() == cell.anomalies


class Died(BaseException):
    """The process is gone: nothing in the code under test may catch this."""


def die_after_create(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next real create happen, and the process die before it can write that down."""
    real_get = LazyClient.get

    def get(self: LazyClient) -> BatchClient:
        client = real_get(self)
        real_create: Callable[[Any], Any] = client.create

        def create(new: Any) -> None:
            real_create(new)
            raise Died

        monkeypatch.setattr(client, "create", create)
        return client

    monkeypatch.setattr(LazyClient, "get", get)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_dead_right_after_the_provider_took_it(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator: RunningEmulator
) -> None:
    with ready(provider, tmp_path, monkeypatch, emulator) as walk:
        before = len(walk.world.jobs_created[provider])
        with monkeypatch.context() as patch, pytest.raises(Died):
            die_after_create(patch)
            walk.step()
        assert len(walk.world.jobs_created[provider]) == before + 1
        assert [job.state for job in walk.jobs()] == ["submitting"]
        walk.advance(GRACE.total_seconds() + 60)
        with another_worker(walk) as later:
            later.settle()
            print(provider, "dead", later.report().states)
            check(later, CELLS["u2028"])
        assert len(walk.world.jobs_created[provider]) == before + 1
