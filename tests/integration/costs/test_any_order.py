"""Whatever is answered, collected and repeated, in any order: each attempt is charged once.

The sum over attempts is what the ledger says, and repeating a step charges nothing. What must have
been charged is worked out from the lines that the provider wrote, not from the ledger.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import update

from pipeline_assets.collect import evidence
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.collect.reconcile_again import reconcile_again
from pipeline_assets.costs.account import CostAccount, cost_account
from pipeline_assets.costs.listing import attempt_costs
from pipeline_assets.costs.totals import so_far
from pipeline_assets.ingest import parse_documents
from pipeline_assets.provider_jobs.clients import job_client
from pipeline_assets.submit import answer_embedded as submitting
from pipeline_assets.versions import open_version
from resources.context import open_context
from resources.ledger.batches import COMPLETE
from resources.ledger.jobs import find_jobs
from resources.ledger.schema import batches, job_prices
from resources.settings import load_settings
from tests.integration.recovery.support import TOKENS, Retries, ScriptedAttempts
from tests.integration.stages.support import KEY, InProcessPool, Shop, manual
from tests.support.clock import FrozenClock
from tests.support.emulator import RunningEmulator
from tests.support.provider_walk import provider_walk

ANSWER = (Decimal(891) * Decimal("0.125") + 9 * Decimal("0.0125") + 90) / 1_000_000
"""US dollars for 900 tokens read, 9 of them from a cache, and 90 written."""
KINDS = (
    *("good", "doubtful", "missing", "conflict", "broken", "busy", "expired"),
    *("good + late", "busy + late", "missing + late", "good + late failure"),
)
SCRIPTS = st.lists(st.lists(st.sampled_from(KINDS), max_size=3), min_size=1, max_size=4)
STEPS = st.lists(
    st.sampled_from(("step", "collect", "collect thrice", "look again", "wait")), max_size=8
)


@dataclass
class Written:
    """What the provider wrote: the lines of each request.

    Attributes:
        good: custom id → different answers.
        conflicting: custom ids that had two in one file.
    """

    good: dict[str, set[bytes]] = field(default_factory=dict)
    conflicting: set[str] = field(default_factory=set)

    def note(self, lines: list[bytes]) -> None:
        """Lines of one request's answer."""
        own: Counter[str] = Counter()
        for data in set(lines):
            line = json.loads(data)
            if line.get("status_code", 200) != 200 or "body" not in line:
                continue
            own[line["custom_id"]] += 1
            self.good.setdefault(line["custom_id"], set()).add(data)
        self.conflicting |= {name for name, count in own.items() if count > 1}

    @property
    def paid(self) -> int:
        """Answers whose charge is known."""
        return sum(len(lines) for name, lines in self.good.items() if name not in self.conflicting)


class Noted(ScriptedAttempts):
    """Notes what it wrote, and writes one line into each answer that nobody can read."""

    written = Written()

    def answer_line(self, request: bytes) -> bytes:
        answer = super().answer_line(request)
        self.written.note([line for line in answer.split(b"\n") if line])
        return answer + (b"\n" if answer else b"") + b"{this is no line"


@contextmanager
def made(scripts: list[list[str]]) -> Iterator[Retries]:
    """A shop of its own; each document is answered by a script."""
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patched:
        folder = Path(name)
        (folder / "documents").mkdir()
        patched.setattr(parse_documents, "ParserPool", InProcessPool)
        clock = FrozenClock()
        options = load_settings(
            state=folder / "state",
            source=folder / "documents",
            source_name="shop",
            parser_workers=1,
        )
        with open_context(options, clock=clock, rng=random.Random(1)) as context:
            retries = Retries(Shop(options.source_folder, context), clock, patched)
            for number in range(len(scripts)):
                text = manual("Bench Grinder", f"BG-{number}00")
                retries.shop.write(f"m{number:02d}.txt", text)
            version = retries.shop.prepare()
            provider = Noted(version, dict(enumerate(scripts)))
            provider.written = Written()
            patched.setattr(submitting, "embedded_provider", lambda _: provider)
            patched.setattr(evidence, "result_reader", lambda _: provider)
            retries.provider = provider
            yield retries


def do(retries: Retries, step: str) -> None:
    """One step, whatever there is to do."""
    context, version = retries.shop.context, retries.shop.version()
    match step:
        case "step":
            retries.step()
        case "wait":
            retries.again()
        case "collect":
            collect_batches(context, version)
        case "collect thrice":
            for _ in range(3):
                collect_batches(context, version)
        case _:
            look_again(retries)


def look_again(retries: Retries) -> None:
    """Reconcile every complete batch once more."""
    context, version = retries.shop.context, retries.shop.version()
    for job in find_jobs(context.ledger, COMPLETE, machine="batch"):
        with job_client(context, version) as client:
            reconcile_again(context, version, job, client, "once more", "Ada")


def as_if_paid(retries: Retries) -> CostAccount:
    """The account on a copy of the ledger whose batches are a paid provider's."""
    state = retries.shop.context.settings.state_folder
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "state"
        shutil.copytree(state, copy)
        with open_context(load_settings(state=copy)) as context:
            with context.ledger.write() as connection:
                connection.execute(job_prices.delete())
                connection.execute(
                    update(batches).values(provider="openai", mode="batch", model="gpt-5-mini")
                )
            account = cost_account(context, KEY)
            listed = list(attempt_costs(context, KEY))
            assert sum((row.usd for row in listed), Decimal(0)) == account.provider_usd
            keys = [(row.batch, row.record, row.attempt) for row in listed]
            assert len(set(keys)) == len(keys), "one line an attempt"
            with context.ledger.read() as connection:
                assert so_far(connection, context, 1).usd == account.provider_usd
            return account


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scripts=SCRIPTS, steps=STEPS)
def test_any_order(scripts: list[list[str]], steps: list[str]) -> None:
    assert TOKENS == {"input_tokens": 900, "output_tokens": 90, "cached_tokens": 9}
    with made(scripts) as retries:
        for step in ("step", *steps):
            do(retries, step)
        account = as_if_paid(retries)
        provider = retries.provider
        assert isinstance(provider, Noted)
        assert account.provider_usd == provider.written.paid * ANSWER
        assert account.tokens.input == 900 * provider.written.paid
        do(retries, "collect thrice")
        look_again(retries)
        assert as_if_paid(retries) == account, "repeating a step changes nothing"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_polls(
    emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """At a provider: whatever is done when, each row that it ran is charged once."""
    rng = random.Random(seed)
    with provider_walk(emulator, "openai", tmp_path, monkeypatch, 6) as walk:
        walk.pass_canary()
        canary = cost_account(walk.context, walk.key).provider_usd
        walk.plant("lines", "missing", index=1)
        walk.plant("row", "status_zero")
        for _ in range(12):
            match rng.choice(("step", "wait", "collect")):
                case "step":
                    walk.step()
                case "wait":
                    walk.advance(rng.choice((60, 900, 7_000)))
                case _:
                    collect_batches(walk.context, open_version(walk.context, walk.key))
        walk.settle()
        account = cost_account(walk.context, walk.key)
        listed = list(attempt_costs(walk.context, walk.key))
        assert sum((row.usd for row in listed), Decimal(0)) == account.provider_usd > canary > 0
        assert all(price.frozen for price in account.prices)
        for _ in range(3):
            collect_batches(walk.context, open_version(walk.context, walk.key))
        walk.step()
        assert cost_account(walk.context, walk.key).by_purpose == account.by_purpose
