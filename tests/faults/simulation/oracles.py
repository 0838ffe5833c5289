"""What must hold, judged by counts that are kept outside the ledger.

Belongs here: one oracle an invariant of the design: they listen to the provider, to grants of
leases and to every commit, and compare the ledger with what they heard. Does not belong here: the
code under test, none of whose queries is used here but the journal's own proof (`verify_all`).

Looking only at the last state misses most of it: a commit under a lost lease leaves a state that
looks right nearly always.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, cast

from resources.clock import from_text
from resources.ledger.journal import verify_all
from resources.ledger.leases import Lease
from resources.ledger.transitions import MACHINES, START
from resources.providers.port import Intent
from tests.faults.simulation.gate import Gate, SimulatedClock
from tests.faults.simulation.memory import MemoryStore, SimulatedLedger
from tests.faults.simulation.plan import Plan
from tests.faults.simulation.provider import Provider, Row, SimulatedJob

COMPLETE = ("completed", "completed_with_errors", "retry_required")
SETTLED = (
    "published",
    "awaiting_review",
    "dead_letter",
    "cancelled",
    "retry_wait",
)
"""States in which a record may stay when nothing more happens by itself."""

_AT_REST: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "submitted": (("submitted",), ("submitted", "running", "results_available")),
    "ended": (("submitted", "prepared"), ("prepared", "results_available")),
    "collected": (("collected",), ()),
    "judged": (("accepted",), ()),
    "refrozen": (("collected", "prepared"), ("prepared",)),
    "published": ((), ()),
    "settled": (("collected",), ()),
    "archived": ((), ()),
}
"""Further states of records and batches in which they may stay when a part is over."""

GIVEN_BACK = "a shared limit is never given back"

_RECORDS = "SELECT record_no, state FROM record_state"
_BATCHES = "SELECT batch_no, state FROM batches"
_MOVES = (
    "SELECT move_no, machine, subject_no, from_state, to_state FROM moves WHERE move_no > ? "
    "ORDER BY move_no"
)
_MEMBERS = "SELECT move_no, record_no FROM move_members WHERE move_no > ?"
_COUNTS = (
    "SELECT (SELECT COUNT(*) FROM dispositions), (SELECT COUNT(*) FROM judgements), "
    "(SELECT COUNT(*) FROM result_files), (SELECT COUNT(*) FROM deliveries), "
    "(SELECT COUNT(*) FROM manifests)"
)
_SHOWN = (
    "SELECT h.document_no, h.entry_no, e.record_no, e.content, e.thumbnail, e.valid_to, "
    "e.document_no FROM archive_heads h LEFT JOIN archive_entries e ON e.entry_no = h.entry_no"
)
_SEARCHED = "SELECT id FROM archive_search_docsize"
_DELIVERED = (
    "SELECT record_no, operation, request_digest, accepted_digest, promotion, entry_no "
    "FROM deliveries"
)
_MANIFEST = (
    "SELECT r.record_id, d.document_id, r.operation, b.request_schema_version, r.checksum, "
    "a.request_digest, CASE WHEN m.replay_reason = 'by document' THEN r.replay_reason "
    "ELSE m.replay_reason END, b.batch_id, a.request_offset, a.request_length "
    "FROM batches b JOIN manifests m ON m.manifest_no = b.manifest_no "
    "JOIN attempts a ON a.batch_no = b.batch_no "
    "JOIN records r ON r.record_no = a.record_no JOIN documents d ON d.document_no = r.document_no "
    "WHERE b.manifest_no = ? ORDER BY r.record_id"
)


@dataclass
class Grant:
    """A lease as this side counts it."""

    owner: str
    token: int
    until: datetime


@dataclass
class Note:
    """What a lease's own transaction is about to do."""

    kind: Literal["acquire", "release"]
    name: str
    owner: str
    token: int
    until: datetime


class Oracles:
    """Listens, counts and accuses."""

    def __init__(
        self, clock: SimulatedClock, gate: Gate, provider: Provider, store: MemoryStore
    ) -> None:
        self._clock = clock
        self._gate = gate
        self._provider = provider
        self._store = store
        self.violations: list[str] = []

    def watch(self, ledger: SimulatedLedger) -> None:
        """The ledger that is judged."""
        self._ledger = ledger
        self._driver = ledger.driver
        self.start(None)

    def start(self, plan: Plan | None) -> None:
        """Begin a schedule: forget, and take in what is there before it."""
        self._plan = plan
        self.violations = []
        self._grants: dict[str, Grant] = {
            name: Grant(owner, token, from_text(until))
            for name, owner, token, until in self._driver.execute(
                "SELECT name, owner, token, expires_at FROM leases"
            )
        }
        self._notes: dict[str, Note] = {}
        self._note: Note | None = None
        self._sealed: Lease | None = None
        self._pushed: tuple[Lease, datetime] | None = None
        self._allowed: set[str] = set()
        self.changes = 0
        self._failed_locally = 0
        self._records: dict[int, str] = dict(self._driver.execute(_RECORDS))
        self._batches: dict[int, str] = dict(self._driver.execute(_BATCHES))
        self._last_move = self._driver.execute("SELECT MAX(move_no) FROM moves").fetchone()[0] or 0
        self._counts = self._driver.execute(_COUNTS).fetchone()
        self._decided: set[int] = set()
        self._stored: set[int] = set()
        self._take_stored()
        self._manifests: dict[int, tuple[Any, ...]] = {}
        self._take_manifests()
        self._shown = self._driver.execute(_SHOWN).fetchall()
        self._searched = set(self._driver.execute(_SEARCHED).fetchall())

    def accuse(self, sentence: str) -> None:
        """Something must not be."""
        if sentence not in self.violations:
            self.violations.append(sentence)
            self._gate.log(f"VIOLATION {sentence}")

    # ---- what the provider hears -------------------------------------------------------------

    def local_failure(self, place: str) -> None:
        """A database or disk failed."""
        if place in ("read", "begin", "commit", "committed", "artifact"):
            self._failed_locally += 1

    def operator_said(self, batch_key: str) -> None:
        """An operator gave the batch up: another job for its documents is wanted."""
        self._allowed.add(batch_key)

    def create_heard(self, intent: Intent, rows: tuple[Row, ...]) -> None:
        """A create call has reached the provider and will make a job."""
        why = " after a local failure" if self._failed_locally else ""
        if self._provider.jobs_of(intent.batch_key) and intent.batch_key not in self._allowed:
            self.accuse(f"a second job for batch {intent.batch_key}{why}")
        row = self._driver.execute(
            "SELECT outcome FROM intents WHERE intent_id = ?", (intent.intent_id,)
        ).fetchone()
        if row is None or row[0] != "open":
            self.accuse(f"a create call without an open intent {intent.intent_id}")
        for each in rows:
            self._look_at_row(each, why)

    def _look_at_row(self, row: Row, why: str) -> None:
        for job in self._provider.jobs.values():
            mine = [other.custom_id for other in job.rows if other.reference == row.reference]
            if job.batch_key in self._allowed:
                continue
            if row.custom_id in mine:
                self.accuse(f"attempt {row.custom_id} is sent twice{why}")
            elif any(name in job.good and usable(job, name) for name in mine):
                self.accuse(f"a document that was answered is asked again{why}")
            elif not job.ended and mine:
                self.accuse(f"a document is asked again while a job is at it{why}")

    # ---- leases ------------------------------------------------------------------------------

    def spy(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        """A function of `leases` that also tells this side what it is about to do."""

        def acquire(ledger: Any, lease: str, owner: str, seconds: int = 300) -> Lease:
            until = self._clock() + timedelta(seconds=seconds)
            return self._noted(
                Note("acquire", lease, owner, 0, until), real, ledger, lease, owner, seconds
            )

        def push_expiry(connection: Any, ledger: Any, lease: Lease, seconds: int = 300) -> datetime:
            promised = real(connection, ledger, lease, seconds)
            self._pushed = (lease, self._clock() + timedelta(seconds=seconds))
            return promised

        def release(ledger: Any, lease: Lease) -> None:
            note = Note("release", lease.name, lease.owner, lease.token, self._clock())
            self._noted(note, real, ledger, lease)

        def seal(connection: Any, lease: Lease) -> None:
            self._sealed = lease
            real(connection, lease)

        known = {"acquire": acquire, "push_expiry": push_expiry, "release": release, "seal": seal}
        return known[name]

    def _noted(self, note: Note, real: Callable[..., Any], *arguments: Any) -> Any:
        worker = self._gate.current
        name = "" if worker is None else worker.name
        self._notes[name] = note
        try:
            return real(*arguments)
        finally:
            self._notes.pop(name, None)

    def _granted(self, note: Note) -> None:
        now = self._clock()
        known = self._grants.get(note.name)
        if note.kind == "acquire":
            if known is not None and known.owner != note.owner and known.until > now:
                self.accuse(f"the lease {note.name} was granted twice at once")
            token = 1 if known is None else known.token + 1
            self._grants[note.name] = Grant(note.owner, token, note.until)
        elif known is not None and known.token == note.token:
            known.until = now

    def _renewed(self, lease: Lease, until: datetime) -> None:
        """A renewal was committed."""
        known = self._grants.get(lease.name)
        if known is not None and known.token == lease.token:
            known.until = until
        worker = self._gate.current
        if worker is not None:
            worker.renewed_at = self._clock()

    def _judge_seal(self, lease: Lease) -> None:
        known = self._grants.get(lease.name)
        if known is None or known.token != lease.token:
            self.accuse(f"a commit under a lost lease of {lease.name}")
        elif known.until <= self._clock():
            self.accuse(f"a commit under an expired lease of {lease.name}")

    # ---- commits -----------------------------------------------------------------------------

    def begin(self) -> None:
        """A write transaction begins; nobody else runs before it ends."""
        worker = self._gate.current
        self._note = self._notes.pop("" if worker is None else worker.name, None)
        self._sealed = None
        self._pushed = None
        if worker is not None and self._note is not None:
            # What was renewed under an earlier lease says nothing about this one.
            worker.renewed_at = None

    def committed(self) -> None:
        """A write transaction was committed."""
        if self._plan is None:
            return
        if self._note is not None:
            self._granted(self._note)
            return
        if self._sealed is not None:
            self._judge_seal(self._sealed)
        if self._pushed is not None:
            self._renewed(*self._pushed)
        changed = self._judge_states()
        counts = self._driver.execute(_COUNTS).fetchone()
        if counts != self._counts:
            self._judge_order(counts)
            self._counts = counts
            changed = True
        changed = self._judge_archive() or changed
        self.changes += changed
        if changed and self._sealed is None:
            self.accuse("a change of states or publications was committed without a lease")

    def _judge_states(self) -> bool:
        records = dict(self._driver.execute(_RECORDS))
        batches = dict(self._driver.execute(_BATCHES))
        moved = self._driver.execute(_MOVES, (self._last_move,)).fetchall()
        if not moved and records == self._records and batches == self._batches:
            return False
        members: dict[int, list[int]] = {}
        for move_no, record_no in self._driver.execute(_MEMBERS, (self._last_move,)):
            members.setdefault(move_no, []).append(record_no)
        walked = {"record": dict(self._records), "batch": dict(self._batches)}
        for move_no, machine, subject, from_state, to_state in moved:
            self._last_move = move_no
            if to_state not in MACHINES[machine].get(from_state, {}):
                self.accuse(f"a {machine} went from {from_state!r} to {to_state!r}")
            if machine not in walked:
                continue
            states = walked[machine]
            for number in [subject] if subject is not None else members.get(move_no, []):
                if states.get(number, START) != from_state:
                    self.accuse(f"the journal moves a {machine} from a state that it was not in")
                states[number] = to_state
        for machine, found in (("record", records), ("batch", batches)):
            if found != walked[machine]:
                self.accuse(f"the state of a {machine} is not what the journal says")
        self._records, self._batches = records, batches
        return any(machine != "version" for _, machine, *_ in moved)

    def _judge_order(self, counts: tuple[int, ...]) -> None:
        """Raw results before dispositions before judgements, each durable before the next."""
        old = self._counts
        if counts[0] != old[0]:
            for attempt, file_no in self._driver.execute(
                "SELECT attempt_no, result_file_no FROM dispositions"
            ):
                fresh = attempt not in self._decided and file_no is not None
                if fresh and file_no not in self._stored:
                    self.accuse("a result was classified before it was durable")
        if counts[1] != old[1]:
            judged = {row[0] for row in self._driver.execute("SELECT attempt_no FROM judgements")}
            if judged - self._decided:
                self.accuse("an answer was judged before its disposition was durable")
        if counts[4] != old[4]:
            self._take_manifests()
        self._take_stored()

    def _take_stored(self) -> None:
        self._decided = {
            row[0] for row in self._driver.execute("SELECT attempt_no FROM dispositions")
        }
        for file_no, artifact in self._driver.execute(
            "SELECT result_file_no, artifact FROM result_files"
        ):
            if file_no not in self._stored and ("result", artifact) not in self._store.files:
                self.accuse("a result file is on record and not in the store")
            self._stored.add(file_no)

    def _judge_archive(self) -> bool:
        shown = self._driver.execute(_SHOWN).fetchall()
        searched = set(self._driver.execute(_SEARCHED).fetchall())
        if shown == self._shown and searched == self._searched:
            return False
        delivered = self._driver.execute(_DELIVERED).fetchall()
        by_entry = {row[5]: row[:5] for row in delivered}
        before = {row[0]: row for row in self._shown}
        if before.keys() - {row[0] for row in shown}:
            self.accuse("a published document is not visible any more")
        for row in shown:
            self._judge_shown(row, searched)
            if row != before.get(row[0]):
                self._judge_new(row, by_entry)
        if {(row[1],) for row in shown} != searched:
            self.accuse("the search holds other entries than the visible ones")
        self._judge_deliveries(delivered, len(by_entry))
        self._shown, self._searched = shown, searched
        return True

    def _judge_shown(self, row: tuple[Any, ...], searched: set[tuple[int]]) -> None:
        document, entry, record, _, thumbnail, valid_to, owner = row
        if record is None or valid_to is not None or owner != document:
            self.accuse("a published document has no visible entry")
        elif ("thumbnail", thumbnail) not in self._store.files or (entry,) not in searched:
            self.accuse("a published document lacks its search entry or thumbnail")

    def _judge_new(self, row: tuple[Any, ...], by_entry: dict[int, tuple[Any, ...]]) -> None:
        _, entry, record, content, *_ = row
        if record is None:
            return
        if entry not in by_entry or by_entry[entry][0] != record:
            self.accuse("an entry became visible without a delivery")
        if content not in self._acceptable(record):
            self.accuse("something was published that must not be accepted")

    def _judge_deliveries(self, delivered: list[tuple[Any, ...]], entries: int) -> None:
        # Nothing is promoted a second time in a schedule, so the number of a promotion is no key.
        once = Counter(row[:4] for row in delivered)
        if any(count > 1 for count in once.values()):
            self.accuse("one accepted value had two business effects")
        kept = self._driver.execute("SELECT COUNT(*) FROM archive_entries").fetchone()[0]
        if kept != len(delivered) or entries != len(delivered):
            self.accuse("deliveries and archive entries are not one to one")

    # ---- the truth about answers ---------------------------------------------------------------

    def _reference(self, record_no: int) -> str:
        row = self._driver.execute(
            "SELECT record_id FROM records WHERE record_no = ?", (record_no,)
        ).fetchone()
        return "doc-" + hashlib.sha256(str(row[0]).encode()).hexdigest()[:16]

    def _acceptable(self, record_no: int) -> set[str]:
        """Answers that may be accepted for a record, as the provider knows."""
        reference = self._reference(record_no)
        found: set[str] = set()
        for job in self._provider.jobs.values():
            named = f'"reference":"{reference}"'
            found |= {text for text in job.good.values() if named in text}
        return found

    # ---- manifests -----------------------------------------------------------------------------

    def _take_manifests(self) -> None:
        rows = self._driver.execute(
            "SELECT manifest_no, digest, artifact, expected FROM manifests"
        ).fetchall()
        for row in rows:
            if row[0] not in self._manifests:
                if self._digest(row[0]) != row[1]:
                    self.accuse("a manifest was frozen with another digest than its rows have")
                self._manifests[row[0]] = row

    def _digest(self, manifest_no: int) -> str:
        digest = hashlib.sha256()
        for row in self._driver.execute(_MANIFEST, (manifest_no,)):
            values = [*row[:7], int(row[7].rsplit("-b", 1)[1]) - 1, *row[8:]]
            digest.update(json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode())
            digest.update(b"\n")
        return digest.hexdigest()

    # ---- the end -------------------------------------------------------------------------------

    def judge_end(self) -> None:
        """Nothing is left to do: does everything add up?"""
        self._judge_manifests()
        self._judge_outcomes()
        self._judge_dispositions()
        self._judge_rest()
        with self._ledger.read() as connection:
            verdict = verify_all(connection, self._ledger.dialect)
        if not verdict.holds:
            self.accuse("the journal's chains are not whole")

    def _judge_manifests(self) -> None:
        rows = self._driver.execute(
            "SELECT manifest_no, digest, artifact, expected FROM manifests"
        ).fetchall()
        if {row[0]: row for row in rows} != self._manifests:
            self.accuse("a frozen manifest is not what it was")
        for row in rows:
            if self._digest(row[0]) != row[1]:
                self.accuse("the rows of a manifest have another digest than it was frozen with")
        wrong = self._driver.execute(
            "SELECT 1 FROM batches b JOIN manifests m ON m.manifest_no = b.manifest_no "
            "WHERE b.manifest_digest <> m.digest"
        ).fetchone()
        if wrong is not None:
            self.accuse("a batch names another digest than its manifest has")

    def _judge_outcomes(self) -> None:
        assert self._plan is not None
        found = self._driver.execute(
            "SELECT r.document_no, s.state FROM records r JOIN record_state s "
            "ON s.record_no = r.record_no WHERE r.version_no = 1"
        ).fetchall()
        if sorted(row[0] for row in found) != list(range(1, self._plan.documents + 1)):
            self.accuse("not every document has exactly one record")
        records, batches = _AT_REST[self._plan.until]
        settled = (*SETTLED, *records)
        complete = (*COMPLETE, "cancelled", *batches)
        for _, state in found:
            if state not in settled:
                self.accuse(f"a record is left {state}")
        for state in self._batches.values():
            if state not in complete:
                self.accuse(f"a batch is left {state}")

    def _judge_dispositions(self) -> None:
        found = self._driver.execute(
            "SELECT b.batch_key, b.state, b.provider_job_id, b.provider_outcome, b.batch_no, "
            "a.attempt_no - b.first_attempt_no, p.disposition, p.failure_class FROM batches b "
            "JOIN attempts a ON a.batch_no = b.batch_no "
            "LEFT JOIN dispositions p ON p.attempt_no = a.attempt_no"
        ).fetchall()
        for key, state, job_id, outcome, _, index, disposition, failure in found:
            job = self._provider.jobs.get(job_id)
            # One that an operator gave up may still run.
            if state == "results_available" and outcome != "lost" and job and not job.ended:
                self.accuse("a job is taken to be over that is not")
            if state not in COMPLETE:
                if disposition is not None:
                    self.accuse("an attempt of a batch that is not complete has a disposition")
                continue
            if disposition is None:
                self.accuse("an attempt of a complete batch has no disposition")
                continue
            name = f"{key}-{index}"
            allowed = truth(job, name, lost=outcome == "lost")
            if (disposition, failure) not in allowed:
                self.accuse(f"an attempt is {disposition} ({failure}) and should be {allowed}")

    def _judge_rest(self) -> None:
        checks: Iterable[tuple[str, str]] = (
            (
                GIVEN_BACK,
                "SELECT 1 FROM reservations WHERE released_at IS NULL",
            ),
            ("an intent is left open", "SELECT 1 FROM intents WHERE outcome = 'open'"),
            (
                "two records are of one document",
                "SELECT 1 FROM records WHERE version_no = 1 GROUP BY document_no "
                "HAVING COUNT(*) > 1",
            ),
            (
                "an accepted record was never judged so",
                "SELECT 1 FROM record_state s WHERE s.state = 'published' AND s.record_no IN "
                "(SELECT record_no FROM records WHERE version_no = 1) AND NOT EXISTS "
                "(SELECT 1 FROM judgements j WHERE j.record_no = s.record_no "
                "AND j.outcome = 'accepted')",
            ),
            (
                "a complete batch counts other records than it has",
                "SELECT 1 FROM batches WHERE state IN "
                "('completed','completed_with_errors','retry_required') "
                "AND reconciled_records <> expected_records",
            ),
        )
        assert self._plan is not None
        for sentence, sql in checks:
            if sentence == GIVEN_BACK and self._plan.until == "submitted":
                continue
            if self._driver.execute(sql).fetchone() is not None:
                self.accuse(sentence)
        for name, count in self._provider.run_counts.items():
            if count > 1 and name.split("-")[0] not in self._allowed:
                self.accuse(f"attempt {name} was run {count} times")


def usable(job: SimulatedJob, name: str) -> bool:
    """Did the one good answer for an attempt come back, alone?"""
    return len(lines_of(job, name)) == 1


def lines_of(job: SimulatedJob, name: str) -> set[bytes]:
    """The different lines that a job returned for an attempt."""
    start = f"{name}\t".encode()
    return {line for lines in job.lines.values() for line in lines if line.startswith(start)}


def truth(job: SimulatedJob | None, name: str, *, lost: bool) -> tuple[tuple[str, str | None], ...]:
    """What an attempt's disposition may be, from the lines that the provider returned."""
    lines = lines_of(job, name) if job is not None and not lost else set()
    if len(lines) > 1:
        return (("permanent_failure", "duplicate_conflict"),)
    if not lines:
        outcome = None if job is None or lost else job.outcome
        return {
            "expired": (("expired", "expired"),),
            "cancelled": (("cancelled", "cancelled"),),
            "provider_failed": (("retryable_failure", "server_error"),),
        }.get(cast(str, outcome), (("retryable_failure", "missing_result"),))
    _, status, code, text = lines.pop().decode().split("\t")
    if code in ("expired", "cancelled"):
        return ((code, code),)
    if status == "503":
        return (("retryable_failure", "overloaded"),)
    if status != "200":
        return (("permanent_failure", "invalid_request"),)
    if not text.startswith("{"):
        return (("permanent_failure", "schema_violation"),)
    return (("succeeded", None), ("retryable_failure", "misrouted"))
