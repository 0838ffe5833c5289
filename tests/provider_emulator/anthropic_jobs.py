"""Emulated message batches: their life by the virtual clock, and their result files.

Belongs here: the state of jobs. Does not belong here: HTTP (`anthropic.py`) and what a model
does with a row (`anthropic_messages.py`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from tests.provider_emulator import anthropic_messages as messages
from tests.provider_emulator.anthropic_api import (
    NAME,
    Problem,
    planted_problem,
    setting,
    stamp,
)
from tests.provider_emulator.faults import Fault
from tests.provider_emulator.http import json_bytes
from tests.provider_emulator.rows import mangle_lines
from tests.provider_emulator.world import World

OUTCOMES = ("succeeded", "errored", "canceled", "expired")


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One request of a batch; its params are looked at when it is run, not before."""

    custom_id: str
    params: msgspec.Raw


@dataclass
class Job:
    """One message batch."""

    id: str
    account: str
    version: str
    betas: str
    rows: list[Row]
    created: datetime
    fault: Fault | None
    number: int
    not_found_left: int = 0
    cancelled: datetime | None = None
    ended: datetime | None = None
    results: Path | None = None
    counts: dict[str, int] = field(default_factory=dict)

    def has(self, kind: str) -> bool:
        """Is this the job's planted fault?"""
        return self.fault is not None and self.fault.kind == kind


@dataclass(frozen=True)
class _End:
    """When a job ends, how much of it is run by then, and what becomes of the other rows."""

    at: datetime
    done: float = 1.0
    rest: str = "expired"


def refresh(world: World, job: Job) -> None:
    """Bring a job up to the present moment; a job whose time has come is run."""
    if job.ended is not None:
        return
    end = _end(world, job)
    if end is not None and world.clock.now() >= end.at:
        _run(world, job, end)


def is_archived(world: World, job: Job) -> bool:
    """Has the time gone by for which results are kept, counted from the creation?"""
    return world.clock.now() >= _archived_at(world, job)


def show(world: World, job: Job) -> dict[str, Any]:
    """Return a job as the API shows it."""
    refresh(world, job)
    status = "in_progress" if job.cancelled is None else "canceling"
    if job.ended is not None:
        status = "ended"
    if job.fault is not None and job.has("unknown_status"):
        status = str(job.fault.args.get("status", "hibernating"))
    archived = is_archived(world, job)
    shown: dict[str, Any] = {
        "id": job.id,
        "type": "message_batch",
        "processing_status": status,
        "request_counts": _counts(job),
        "created_at": stamp(job.created),
        "expires_at": stamp(job.created + _window(world)),
        "ended_at": None if job.ended is None else stamp(job.ended),
        "cancel_initiated_at": None if job.cancelled is None else stamp(job.cancelled),
        "archived_at": stamp(_archived_at(world, job)) if archived else None,
        "results_url": None
        if job.ended is None or archived
        else f"{world.base_url}/anthropic/v1/messages/batches/{job.id}/results",
    }
    if job.has("no_counts"):
        del shown["request_counts"]
    return shown


def is_listed(world: World, job: Job) -> bool:
    """Is a job in the list yet? A fresh one may not be."""
    if job.fault is None or not job.has("unlisted"):
        return True
    hidden = timedelta(seconds=float(job.fault.args.get("seconds", 60)))
    return world.clock.now() >= job.created + hidden


def queued_rows(world: World, jobs: list[Job]) -> int:
    """Return the rows that wait in jobs which have not ended."""
    for job in jobs:
        refresh(world, job)
    return sum(len(job.rows) for job in jobs if job.ended is None)


def _window(world: World) -> timedelta:
    return timedelta(hours=float(setting(world, "anthropic.window_hours")))


def _archived_at(world: World, job: Job) -> datetime:
    return job.created + timedelta(days=float(setting(world, "anthropic.retention_days")))


def _counts(job: Job) -> dict[str, int]:
    if job.ended is None:
        return {"processing": len(job.rows), **dict.fromkeys(OUTCOMES, 0)}
    return {"processing": 0, **job.counts}


def _end(world: World, job: Job) -> _End | None:
    """Return how a job ends as things stand, None where it never does."""
    running = timedelta(seconds=world.timing.running_seconds)
    expiry = job.created + _window(world)
    natural = job.created + running
    if job.cancelled is not None:
        done = min(1.0, (job.cancelled - job.created) / running) if running else 1.0
        at = job.cancelled + timedelta(seconds=world.timing.cancelling_seconds)
        return _End(min(at, expiry), done, "canceled")
    if job.has("stuck") or job.has("unknown_status"):
        return None
    share = float(job.fault.args.get("done", 0.5)) if job.fault is not None else 1.0
    if job.has("expired"):
        return _End(expiry, share)
    if job.has("cancelled"):
        return _End(natural, share, "canceled")
    if natural > expiry:
        return _End(expiry, (expiry - job.created) / running)
    return _End(natural)


def _run(world: World, job: Job, end: _End) -> None:
    """Run the rows of a job and write its result file."""
    done = int(len(job.rows) * end.done)
    counts: dict[str, int] = dict.fromkeys(OUTCOMES, 0)
    lines: list[tuple[str, bytes]] = []
    for index, row in enumerate(job.rows):
        result = _result(world, job, index, row) if index < done else {"type": end.rest}
        counts[result["type"]] += 1
        lines.append((row.custom_id, _line(row.custom_id, result)))
    if end.rest == "canceled" and job.cancelled is None:
        job.cancelled = end.at
    job.counts = counts
    job.results = world.folder / f"{job.id}.jsonl"
    mangled = mangle_lines(world, NAME, job.id, lines, _alien_renderer(world))
    job.results.write_bytes(b"".join(line + b"\n" for line in mangled))
    job.ended = end.at


def _result(world: World, job: Job, index: int, row: Row) -> dict[str, Any]:
    try:
        if job.fault is not None and (job.has("failed") or job.has("all_failed")):
            raise planted_problem(job.fault, 500 if job.has("failed") else 400)
        params = messages.check_body(
            world,
            json.loads(bytes(row.params)),
            version=job.version,
            batch=True,
            betas=job.betas,
        )
        fault = world.faults.take(NAME, "row", index=index, custom_id=row.custom_id, job_id=job.id)
        if fault is not None and fault.kind == "not_executed":
            return {"type": "expired"}
        if fault is not None and fault.kind in ("error", "status_zero"):
            raise planted_problem(fault)
    except Problem as problem:
        return {"type": "errored", "error": problem.body(world.new_id("req_"))}
    world.executed[NAME][row.custom_id] += 1
    return {"type": "succeeded", "message": messages.run(world, params, "batch", fault)}


def _line(custom_id: str, result: dict[str, Any]) -> bytes:
    return json_bytes({"custom_id": custom_id, "result": result})


def _alien_renderer(world: World) -> Any:
    params = {
        "model": "claude-haiku-4-5",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "A question that nobody asked."}],
    }

    def alien(custom_id: str) -> bytes:
        message = messages.run(world, params, "batch", None)
        return _line(custom_id, {"type": "succeeded", "message": message})

    return alien
