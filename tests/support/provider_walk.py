"""The stages of a provider version over an emulator, on the emulator's clock, without waiting.

Belongs here: the documents, one pass over the stages, passes until nothing moves, and what can be
asked afterwards. Does not belong here: which fault is planted and what must come of it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.account.explain import explain
from pipeline_assets.account.export import export_entries
from pipeline_assets.account.outcomes import outcomes
from pipeline_assets.account.report import Report, build_report
from pipeline_assets.account.status import Status, status
from pipeline_assets.canary.run import gate_of
from pipeline_assets.collect.collect_batches import CollectReport, collect_batches
from pipeline_assets.ingest import parse_documents as parsing
from pipeline_assets.ingest.parse_documents import parse_documents
from pipeline_assets.ingest.scan import scan_declared
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.provider_jobs.monitor import TickReport, look_at_due_jobs
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.submit.submit_batches import SubmitReport, submit_batches
from pipeline_assets.versions import open_version
from resources.context import Context, open_context
from resources.ledger.alerts import open_alerts
from resources.ledger.jobs import JobRow, find_jobs
from resources.ledger.versions import set_operating
from resources.settings import load_settings
from tests.integration.stages.support import InProcessPool, manual
from tests.provider_emulator.faults import Fault
from tests.provider_emulator.world import World
from tests.support.emulator import RunningEmulator

VERSIONS = {
    "openai": "manuals-openai-batch-1",
    "anthropic": "manuals-anthropic-batch-1",
    "gemini": "manuals-gemini-batch-1",
    "bedrock": "manuals-bedrock-batch-1",
}
MOVING = ("prepared", "submitting", "submitted", "running", "results_available")
ENDED = (
    *("quarantined", "reconciling", "incident", "retry_required"),
    *("completed", "completed_with_errors", "cancelled"),
)
FIRST_STEP_S, LONGEST_STEP_S = 700.0, 6 * 3600.0
"""Longer than a job's phases and than any pause between two looks; then ever longer."""
STEPS = 18
"""Together more than every provider's window."""


@dataclass(frozen=True)
class Pass:
    """What one pass over the stages reported."""

    tick: TickReport
    submit: SubmitReport
    collect: CollectReport


@dataclass
class ProviderWalk:
    """A version at a provider, with its documents and its ledger.

    Attributes:
        world: the emulator's; tests plant faults in it.
        provider: whose.
        key: the processing version.
        context: open, on the emulator's clock.
        titles: document id → the title that it must be published with.
        passes: what every pass reported.
        canary_rows: rows that canaries ran, which are not records.
    """

    world: World
    provider: str
    key: str
    context: Context
    titles: dict[str, str]
    passes: list[Pass] = field(default_factory=list)
    canary_rows: set[str] = field(default_factory=set)

    def plant(
        self, op: str, kind: str, *, times: int | None = 1, after: int = 0, **args: Any
    ) -> None:
        """Plant a fault of this provider."""
        fault = Fault(self.provider, op, kind, times=times, after=after, args=args)
        self.world.faults.add(fault)

    def set_operating(self, name: str, value: str) -> None:
        """Change an operating setting of the version."""
        version = open_version(self.context, self.key)
        cause = self.context.cause("the test says so", "test")
        set_operating(self.context.ledger, version.version_no, name, value, cause)

    def prepare(self) -> None:
        """Scan, parse and freeze."""
        scan_declared(self.context)
        version = open_version(self.context, self.key)
        parse_documents(self.context, parser_settings(version.spec), version.spec.workload)
        freeze_manifest(self.context, version)

    def step(self) -> Pass:
        """Look at jobs, then every stage behind the manifest once."""
        tick = look_at_due_jobs(self.context)
        version = open_version(self.context, self.key)
        submitted = submit_batches(self.context, version)
        collected = collect_batches(self.context, version)
        judge_batches(self.context, version)
        publish_accepted(self.context, version)
        self.passes.append(Pass(tick, submitted, collected))
        return self.passes[-1]

    def advance(self, seconds: float) -> None:
        """Move the emulator's clock, which is the context's too."""
        self.world.clock.advance(seconds)

    def pass_canary(self) -> None:
        """Until records may be sent; faults are planted afterwards."""
        version = open_version(self.context, self.key)
        pause = FIRST_STEP_S
        for _ in range(STEPS):
            look_at_due_jobs(self.context)
            collect_batches(self.context, version)
            if gate_of(self.context, version).gate == "open":
                self.canary_rows = set(self.world.executed[self.provider])
                return
            # Records would follow a canary at once; while it is open they never do.
            submit_batches(self.context, version)
            self.advance(pause)
            pause = min(pause * 2, LONGEST_STEP_S)
        raise AssertionError(f"the canary never passed: {gate_of(self.context, version)}")

    def settle(self, steps: int = STEPS) -> None:
        """Passes, ever further apart, until no job of a record moves by itself."""
        pause = FIRST_STEP_S
        for _ in range(steps):
            self.step()
            if not self.jobs(*MOVING, "quarantined"):
                return
            self.advance(pause)
            pause = min(pause * 2, LONGEST_STEP_S)

    def jobs(self, *states: str) -> list[JobRow]:
        """Batches of records in these states; in any state by default."""
        return find_jobs(self.context.ledger, states or (*MOVING, *ENDED), machine="batch")

    def executed(self) -> dict[str, int]:
        """Row → how often the provider ran it, canaries left out."""
        ran = self.world.executed[self.provider]
        return {name: count for name, count in ran.items() if name not in self.canary_rows}

    def alerts(self) -> set[str]:
        """Kinds of alerts that are open."""
        return {alert.kind for alert in open_alerts(self.context.ledger)}

    def report(self) -> Report:
        """The account."""
        return build_report(self.context, self.key)

    def status(self) -> Status:
        """Where the version stands."""
        return status(self.context, self.key)

    def states(self) -> dict[str, str]:
        """Document id → state."""
        return {row["document_id"]: row["state"] for row in outcomes(self.context, self.key)}

    def published(self) -> dict[str, str | None]:
        """Document id → published title."""
        return {
            entry["document_id"]: entry["title"]["value"] for entry in export_entries(self.context)
        }

    def classes(self) -> dict[str, str]:
        """Failure class (`none` before any disposition) of each document that is not published."""
        found: dict[str, str] = {}
        for document, state in self.states().items():
            if state != "published":
                (record,) = explain(self.context, document, self.key).records
                last = record["attempts"][-1]["disposition"] or {}
                found[document] = last.get("failure_class") or "none"
        return found

    def anomalies(self) -> dict[str, int]:
        """Kind → lines or attempts, over all passes."""
        found: dict[str, int] = {}
        for one in self.passes:
            for kind, count in one.collect.anomalies.items():
                found[kind] = found.get(kind, 0) + count
        return found

    def check_sound(self) -> None:
        """What holds whatever happened: nothing wrong, nothing paid twice, the account adds up."""
        for document, title in self.published().items():
            assert title == self.titles[document]
        assert set(self.executed().values()) <= {1}
        report = self.report()
        assert report.violations == ()
        assert sum(report.states.values()) == len(self.titles)
        if report.states != {"published": len(self.titles)}:
            assert not self.status().done


@contextmanager
def provider_walk(
    emulator: RunningEmulator,
    provider: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    documents: int = 10,
    *,
    specs: Path | None = None,
    key: str | None = None,
) -> Iterator[ProviderWalk]:
    """Open a walk with so many documents, frozen, the canary not sent yet.

    `key` names another version than the provider's packaged one, `specs` the folder it is in.
    """
    emulator.use(monkeypatch)
    monkeypatch.setattr(parsing, "ParserPool", InProcessPool)
    source = folder / "documents"
    source.mkdir(parents=True)
    titles = {}
    for number in range(documents):
        identifier = f"WP-{100 + number}"
        (source / f"d{number}.txt").write_text(manual("Circulation Pump", identifier))
        titles[f"shop/d{number}.txt"] = f"Circulation Pump {identifier} User Manual"
    world = emulator.world
    key = key or VERSIONS[provider]
    settings = load_settings(
        state=folder / "state",
        source=source,
        source_name="shop",
        parser_workers=1,
        version=key,
        specs=specs,
    )
    with open_context(settings, clock=world.clock.now, rng=random.Random(1)) as context:
        walk = ProviderWalk(world, provider, key, context, titles)
        walk.prepare()
        yield walk


@contextmanager
def another_worker(walk: ProviderWalk) -> Iterator[ProviderWalk]:
    """Open the same ledger as a process would that comes after the first one died."""
    settings = walk.context.settings
    with open_context(settings, clock=walk.world.clock.now, rng=random.Random(2)) as context:
        yield ProviderWalk(
            walk.world,
            walk.provider,
            walk.key,
            context,
            walk.titles,
            canary_rows=walk.canary_rows,
        )
