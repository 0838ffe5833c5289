"""A provider with a memory of its own: what it was asked, what it ran, and what it answered.

Belongs here: jobs in memory behind the port of batch clients, the faults of the plan, and the
truth about every row. Does not belong here: any real provider's format.

What it remembers is never read by the code under test. It is what the oracles count with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import cast

from resources.providers.port import (
    Ambiguous,
    Counts,
    Download,
    Found,
    Intent,
    Job,
    JobMissing,
    MalformedLine,
    NewJob,
    Outcome,
    Refused,
    RemoteFile,
    ResultLine,
    Unavailable,
    Unreachable,
)
from tests.faults.simulation.gate import TICK, AnswerLost, Gate
from tests.faults.simulation.memory import MemoryStore
from tests.faults.simulation.plan import Plan, RowFault

NAME = "openai"
MODEL = "gpt-5-mini"
ENDPOINT = "/v1/responses"
ACCOUNT = "account-1"
RUNS = timedelta(seconds=40)
SLOW = timedelta(hours=30)
UNLISTED = timedelta(seconds=100)
"""How long a new job may be missing from the list: less than the product allows for."""


@dataclass(frozen=True)
class Row:
    """A row of a request file: the attempt's id, and what the request calls its document."""

    custom_id: str
    reference: str


@dataclass
class SimulatedJob:
    """A job as the provider has it.

    Attributes:
        run: custom ids that were run.
        good: custom id → the one answer that may be accepted for its document.
        lines: result lines by kind of file.
    """

    job_id: str
    batch_key: str
    intent_id: str
    rows: tuple[Row, ...]
    fault: str
    created_at: datetime
    ends_at: datetime
    outcome: Outcome = "completed"
    ended: bool = False
    run: list[str] = field(default_factory=list)
    good: dict[str, str] = field(default_factory=dict)
    lines: dict[str, list[bytes]] = field(default_factory=dict)
    downloads: int = 0


@dataclass
class Provider:
    """All jobs of all accounts.

    Attributes:
        on_create: told of every create that reached the provider, before the job is made.
        creates: create calls that reached it.
    """

    gate: Gate
    store: MemoryStore
    clock: Callable[[], datetime]
    on_create: Callable[[Intent, tuple[Row, ...]], None] = lambda intent, rows: None
    plan: Plan | None = None
    jobs: dict[str, SimulatedJob] = field(default_factory=dict)
    creates: int = 0
    finds: int = 0
    run_counts: dict[str, int] = field(default_factory=dict)

    def start(self, plan: Plan) -> None:
        """Forget everything."""
        self.plan = plan
        self.jobs = {}
        self.creates = 0
        self.finds = 0
        self.run_counts = {}

    def go_on(self, jobs: dict[str, SimulatedJob], run_counts: dict[str, int]) -> None:
        """Remember what was before; what is not over yet goes on as the plan says."""
        assert self.plan is not None
        self.jobs, self.run_counts = jobs, run_counts
        for number, job in enumerate(jobs.values()):
            if not job.ended and number < len(self.plan.jobs):
                job.fault = self.plan.jobs[number]
                job.ends_at = job.created_at + (SLOW if job.fault == "slow" else RUNS)

    def jobs_of(self, batch_key: str) -> list[SimulatedJob]:
        """The jobs that were made for a batch."""
        return [job for job in self.jobs.values() if job.batch_key == batch_key]

    def make(self, new: NewJob) -> SimulatedJob:
        """Take a job."""
        assert self.plan is not None
        request = self.store.files[("request", cast(str, new.request_file))]
        rows = tuple(parse_request(line) for line in request.splitlines())
        self.on_create(new.intent, rows)
        number = len(self.jobs)
        fault = self.plan.jobs[number] if number < len(self.plan.jobs) else "none"
        job = SimulatedJob(
            job_id=f"job-{number + 1}",
            batch_key=new.intent.batch_key,
            intent_id=new.intent.intent_id,
            rows=rows,
            fault=fault,
            created_at=self.clock(),
            ends_at=self.clock() + (SLOW if fault == "slow" else RUNS),
        )
        self.jobs[job.job_id] = job
        return job

    def look(self, job: SimulatedJob) -> None:
        """A job whose time has come is over."""
        if not job.ended and self.clock() >= job.ends_at:
            self._end(job, {"expired": "expired", "cancelled": "cancelled"}.get(job.fault, ""))

    def cancel(self, job: SimulatedJob) -> None:
        """End it now, half way."""
        if not job.ended:
            self._end(job, "cancelled")

    def _end(self, job: SimulatedJob, early: str) -> None:
        job.ended = True
        if job.fault == "failed" and not early:
            job.outcome = "provider_failed"
            return
        job.outcome = cast(Outcome, early or "completed")
        done = len(job.rows) // 2 if early else len(job.rows)
        number = int(job.job_id.removeprefix("job-")) - 1
        assert self.plan is not None
        faults: dict[int, RowFault] = {
            row: fault for at, row, fault in self.plan.rows if at == number
        }
        for index, row in enumerate(job.rows):
            fault = faults.get(index, "good")
            if index < done:
                self._run(job, index, row, fault)
            elif fault != "missing":
                _add(job, "error", _line(row.custom_id, 0, early, ""))
        for lines in job.lines.values():
            lines.reverse()  # no order is promised

    def _run(self, job: SimulatedJob, index: int, row: Row, fault: RowFault) -> None:
        job.run.append(row.custom_id)
        self.run_counts[row.custom_id] = self.run_counts.get(row.custom_id, 0) + 1
        other = job.rows[(index + 1) % len(job.rows)]
        text = answer_text(row.reference, row.custom_id, sure=fault != "uncertain")
        useless = _useless(row, other, fault)
        if useless is not None:
            kind, line = useless
            if line:
                _add(job, kind, line)
            return
        good = _line(row.custom_id, 200, "", text)
        _add(job, "output", good)
        if fault == "two_bodies":
            changed = answer_text(row.reference, f"{row.custom_id}-again", sure=True)
            _add(job, "output", _line(row.custom_id, 200, "", changed))
            return
        if fault == "same_twice":
            _add(job, "output", good)
        elif fault == "alien":
            _add(job, "output", _line("0123456789ab-0", 200, "", text))
        elif fault == "late":
            self._add_late(job, row)
        if fault != "uncertain":
            job.good[row.custom_id] = text

    def _add_late(self, job: SimulatedJob, row: Row) -> None:
        """The line of an earlier attempt at the same document comes back with this job."""
        for earlier in self.jobs.values():
            for before in earlier.rows:
                if earlier is not job and before.reference == row.reference:
                    text = answer_text(row.reference, before.custom_id, sure=True)
                    _add(job, "output", _line(before.custom_id, 200, "", text))
                    job.good[before.custom_id] = text
                    return


def answer_text(reference: str, custom_id: str, *, sure: bool) -> str:
    """What the model answers; no two attempts answer in the same words."""
    return f'{{"reference":"{reference}","sure":{int(sure)},"value":"from {custom_id}"}}'


def request_line(custom_id: str, reference: str) -> bytes:
    """A line of a request file."""
    return f"{custom_id}\t{reference}".encode()


def parse_request(line: bytes) -> Row:
    """A line of a request file, read again."""
    custom_id, reference = line.decode().split("\t")
    return Row(custom_id, reference)


def _useless(row: Row, other: Row, fault: RowFault) -> tuple[str, bytes] | None:
    """The kind of file and the line of a row that has no usable answer; None for all others."""
    name = row.custom_id
    wrong = answer_text(other.reference, name, sure=True)
    lines: dict[str, tuple[str, bytes]] = {
        "overloaded": ("error", _line(name, 503, "", "")),
        "invalid": ("error", _line(name, 400, "", "")),
        "missing": ("output", b""),
        "not_json": ("output", _line(name, 200, "", "no form at all")),
        "malformed_line": ("output", b'{"cut": '),
        "misrouted": ("output", _line(name, 200, "", wrong)),
    }
    return None if fault == "misrouted" and other is row else lines.get(fault)


def _line(custom_id: str, status: int, code: str, text: str) -> bytes:
    return f"{custom_id}\t{status}\t{code}\t{text}".encode()


def _add(job: SimulatedJob, kind: str, line: bytes) -> None:
    job.lines.setdefault(kind, []).append(line)


class Reader:
    """Reads the provider's result lines in the common shape."""

    name = NAME

    def read_line(self, line: bytes) -> ResultLine:
        """A result line.

        Raises:
            MalformedLine: it is none.
        """
        parts = line.decode().split("\t")
        if len(parts) != 4:
            raise MalformedLine("found other than four parts")
        custom_id, status, code, text = parts
        return ResultLine(
            custom_id=custom_id,
            status_code=int(status),
            text=text or None,
            finish_reason="stop" if text else None,
            error_code=code or None,
            input_tokens=10,
            output_tokens=5,
        )


class Client:
    """The port's batch client; every call passes the gate before it is heard and after it acted."""

    name = NAME

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._gate = provider.gate

    def _heard(self, call: str) -> None:
        self._gate.clock.go_on(TICK)
        self._gate.pass_by("call", call)

    def _acted(self, call: str) -> None:
        try:
            self._gate.pass_by("answered", call)
        except AnswerLost:
            raise Unavailable(NAME, "the answer was lost") from None

    def account(self) -> str:
        """One account for all."""
        return ACCOUNT

    def check_model(self, model: str) -> None:
        """Every model is there."""

    def create(self, job: NewJob) -> Job:
        """Take a job, or do what the plan says of this call."""
        provider = self._provider
        assert provider.plan is not None
        self._heard("create")
        number = provider.creates
        provider.creates += 1
        creates = provider.plan.creates
        fault = creates[number] if number < len(creates) else "none"
        if fault == "unreachable":
            raise Unreachable(NAME, "planned")
        if fault == "unavailable":
            raise Unavailable(NAME, "planned")
        if fault == "busy":
            raise Refused(NAME, "rate_limited", "busy", "planned", 30.0)
        if provider.plan.uploads and job.intent.input_ref is None:
            job.on_uploaded(f"file-{number}")
        elif fault == "input_gone" and job.intent.input_ref is not None:
            raise Refused(NAME, "transport", "input_not_found", "planned")
        if fault == "lost_before" or self._gate.timed_out():
            raise Ambiguous(NAME, "planned")
        made = provider.make(job)
        if fault == "accepted_then_lost":
            raise Ambiguous(NAME, "planned")
        try:
            self._gate.pass_by("answered", "create")
        except AnswerLost:
            raise Ambiguous(NAME, "the answer was lost") from None
        return self._as_job(made)

    def find(self, intent: Intent) -> Found:
        """Jobs of the batch that are listed by now."""
        provider = self._provider
        self._heard("find")
        provider.finds += 1
        mine = provider.jobs_of(intent.batch_key)
        if any(job.fault == "no_job_seen" for job in mine) and provider.finds <= 2:
            self._acted("find")
            return Found((), (), complete=False)
        listed = [job for job in mine if provider.clock() >= job.created_at + UNLISTED]
        self._acted("find")
        return Found(tuple(self._as_job(job) for job in listed), (), complete=True)

    def retrieve(self, job_id: str) -> Job:
        """The job as it is now."""
        self._heard("retrieve")
        job = self._provider.jobs.get(job_id)
        if job is None:
            raise JobMissing(NAME, job_id)
        found = self._as_job(job)
        self._acted("retrieve")
        return found

    def cancel(self, job_id: str) -> None:
        """End it."""
        self._heard("cancel")
        self._provider.cancel(self._provider.jobs[job_id])
        self._acted("cancel")

    @contextmanager
    def open_file(self, job_id: str, file: RemoteFile, offset: int) -> Iterator[Download]:
        """A result file, at first a short one where the plan says so."""
        self._heard("download")
        job = self._provider.jobs[job_id]
        data = b"".join(line + b"\n" for line in job.lines[file.kind])
        job.downloads += 1
        sent = data[: len(data) // 2] if job.fault == "short_file" and job.downloads < 3 else data
        yield Download(iter([sent[offset:]]), offset, len(data) - offset)
        self._acted("download")

    def delete(self, job_id: str, refs: tuple[str, ...]) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is open."""

    def _as_job(self, job: SimulatedJob) -> Job:
        self._provider.look(job)
        return Job(
            job_id=job.job_id,
            raw_status=job.outcome if job.ended else "in_progress",
            phase="ended" if job.ended else "running",
            outcome=job.outcome if job.ended else None,
            counts=Counts(total=len(job.rows)),
            created_at=job.created_at,
            files=tuple(RemoteFile(kind, f"{job.job_id}-{kind}") for kind in sorted(job.lines))  # pyright: ignore[reportArgumentType]
            if job.ended
            else (),
            error_class="server_error" if job.outcome == "provider_failed" else None,
        )
