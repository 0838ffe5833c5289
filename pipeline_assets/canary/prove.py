"""The acceptance of the whole pipeline at a provider: three facts, proven from stored evidence.

Belongs here: the order of a proof, its verdict, and what it is told from. Does not belong here: the
work at the provider (`live.py`), the checks of the evidence (`pipeline_assets/audit`), and asking
whether it is wanted (`cli/canary.py`).

A proof holds if, after failures that were forced in the middle of reconciliation and of delivery,
the audit finds nothing wrong, the three facts hold, something was published, and doing every step
again changed no row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec
from sqlalchemy import Connection, Table, func, select

from partitions.processing_version import find_spec
from pipeline_assets.audit.run import AuditReport, audit
from pipeline_assets.canary.live import Plan, collect, failures_of, plan, publish, replay, run_live
from pipeline_assets.canary.proof_errors import ProofStuck
from pipeline_assets.canary.proof_place import ProofPlace
from pipeline_assets.costs.account import cost_account
from pipeline_assets.versions import OpenVersion, open_version
from resources.clock import Clock
from resources.context import Context, Progress, open_context
from resources.ledger.schema import (
    archive_entries,
    archive_heads,
    attempts,
    batches,
    canaries,
    deliveries,
    dispositions,
    findings,
    intents,
    judgements,
    manifests,
    move_members,
    moves,
    record_state,
    records,
    result_files,
    results,
    reviews,
)
from resources.settings import Settings

BUSINESS: tuple[Table, ...] = (
    *(manifests, records, record_state, attempts, intents, result_files, results, dispositions),
    *(judgements, findings, reviews, moves, move_members, deliveries),
    *(archive_entries, archive_heads),
)
"""What may not change when every step is done again. Jobs are counted by their intents: looking at
one again may note that it was looked at."""


@dataclass(frozen=True)
class Replay:
    """Doing every step once more.

    Attributes:
        tables: table → rows, before and after.
        changed: tables that another row came to, or went from, or changed in.
        digest: SHA-256 over all rows, before.
    """

    tables: Mapping[str, int]
    changed: tuple[str, ...]
    digest: str


@dataclass(frozen=True)
class Proof:
    """What a proof came to, or how far it is.

    Attributes:
        name: of its folder.
        key: the version.
        waits: what is waited for; None where there is a verdict.
        due_at: when it can go on, UTC text.
        states: record state → records.
        published: business writes.
        forced: failures that were forced and mended.
        not_forced: those that could not be, since an interruption came before them.
        replay: of every step; None without a verdict.
        audit: of all the evidence; None without a verdict.
        usd: known cost, as text, the canary before the records included.
        usd_unknown: reason → how many of its parts have no known cost.
        canary: what became of the canary that has the broken request; None where none is sent.
    """

    name: str
    key: str
    waits: str | None = None
    due_at: str | None = None
    states: Mapping[str, int] | None = None
    published: int = 0
    forced: tuple[str, ...] = ()
    not_forced: tuple[str, ...] = ()
    replay: Replay | None = None
    audit: AuditReport | None = None
    usd: str | None = None
    usd_unknown: Mapping[str, int] | None = None
    canary: str | None = None

    @property
    def holds(self) -> bool:
        """Is everything proven?"""
        return (
            self.audit is not None
            and self.replay is not None
            and self.audit.clean
            and all(fact.holds and fact.checked for fact in self.audit.facts)
            and not self.replay.changed
            and self.published > 0
        )

    def as_json(self) -> dict[str, Any]:
        """Plain values, with every finding."""
        replayed = None if self.replay is None else vars(self.replay)
        audited = None
        if self.audit is not None:
            audited = self.audit.as_json() | {
                "evidence": [finding.as_json() for finding in self.audit.findings]
            }
        return vars(self) | {
            "holds": self.holds,
            "forced": list(self.forced),
            "not_forced": list(self.not_forced),
            "replay": replayed,
            "audit": audited,
        }


@contextmanager
def open_proof(
    settings: Settings,
    place: ProofPlace,
    progress: Progress | None = None,
    clock: Clock | None = None,
) -> Iterator[tuple[Context, OpenVersion]]:
    """The context and the version of a proof, for the length of a block.

    Raises:
        UnknownVersion, InvalidSpec: the version cannot be used.
        LedgerError: its ledger cannot be opened.
    """
    spec = find_spec(place.key, settings.spec_folders)
    inner = place.settings(settings, spec.workload)
    with open_context(inner, progress=progress, clock=clock) as context:
        yield context, open_version(context, place.key)


def plan_proof(
    context: Context, version: OpenVersion, place: ProofPlace, count: int | None
) -> Plan | None:
    """What would be sent; None where that was agreed to before and the proof only goes on."""
    return None if place.begun else plan(context, version, count)


def prove(
    context: Context,
    version: OpenVersion,
    place: ProofPlace,
    *,
    wait: timedelta,
    sleep: Callable[[float], None],
    tell: Callable[[str], None] = lambda _: None,
) -> Proof:
    """Go on with a proof whose documents are there, up to its verdict or as far as time allows.

    Args:
        context: of the proof, as `open_proof` gives it.
        version: to prove.
        place: its folder.
        wait: so long the provider is waited for, at the most.
        sleep: waits so many seconds.
        tell: says what is waited for.

    Raises:
        ProofStuck: nothing goes on by itself.
        what the stages raise.
    """
    until = context.clock() + wait
    reached = run_live(context, version, place, until=until, sleep=sleep, tell=tell)
    if not reached.settled:
        if reached.due_at is None:
            raise ProofStuck(place.folder, place.key, reached.why or "nothing is due")
        return Proof(
            place.name,
            place.key,
            reached.why,
            reached.due_at,
            _states(context, version),
            forced=tuple(place.forced()),
        )
    proof = conclude(context, version, place)
    place.note_verdict(proof.as_json())
    return proof


def conclude(context: Context, version: OpenVersion, place: ProofPlace) -> Proof:
    """The verdict over what is stored: every step is done again, then the evidence is audited."""
    # What closes by itself once its last retry is over may do so now.
    collect(context, version, place)
    publish(context, version, place)
    before = _content(context)
    replay(context, version)
    after = _content(context)
    replayed = Replay(
        tables={name: rows for name, (rows, _) in before.items()},
        changed=tuple(name for name in before if before[name] != after[name]),
        digest=hashlib.sha256(msgspec.json.encode(before)).hexdigest(),
    )
    audited = audit(context, place.key)
    costs = cost_account(context, place.key)
    with context.ledger.read() as connection:
        written = connection.execute(select(func.count()).select_from(deliveries)).scalar_one()
        gate = connection.execute(
            select(canaries.c.state).order_by(canaries.c.canary_no.desc()).limit(1)
        ).scalar_one_or_none()
    return Proof(
        name=place.name,
        key=place.key,
        states=_states(context, version),
        published=int(written),
        forced=tuple(place.forced()),
        not_forced=tuple(
            one.name for one in failures_of(version) if one.name not in place.forced()
        ),
        replay=replayed,
        audit=audited,
        usd=format(costs.provider_usd, "f"),
        usd_unknown=costs.unknown,
        canary=gate,
    )


def _states(context: Context, version: OpenVersion) -> dict[str, int]:
    with context.ledger.read() as connection:
        rows = connection.execute(
            select(record_state.c.state, func.count())
            .join(records, records.c.record_no == record_state.c.record_no)
            .where(records.c.version_no == version.version_no)
            .group_by(record_state.c.state)
        )
        return {row[0]: int(row[1]) for row in sorted(rows)}


def _content(context: Context) -> dict[str, tuple[int, str]]:
    """Rows and digest of every table of the business, of one moment; a proof has few rows."""
    with context.ledger.read() as connection:
        found = {table.name: _digest(connection, table) for table in BUSINESS}
        states = connection.execute(
            select(batches.c.batch_no, batches.c.state).order_by(batches.c.batch_no)
        )
        rows = [list(row) for row in states]
    found["batches"] = (len(rows), hashlib.sha256(msgspec.json.encode(rows)).hexdigest())
    return found


def _digest(connection: Connection, table: Table) -> tuple[int, str]:
    digest, count = hashlib.sha256(), 0
    for row in connection.execute(select(table).order_by(*table.primary_key.columns)):
        digest.update(msgspec.json.encode(list(row)) + b"\n")
        count += 1
    return count, digest.hexdigest()
