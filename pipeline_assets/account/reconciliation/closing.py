"""Closing a report: somebody vouches for a collection, and everything that stands against it.

Belongs here: what keeps a report from being closed, and the one transaction that closes it. Does
not belong here: what a report says (`facts.py`).

A closed report stands for good: nothing changes or deletes it. What happens later makes a new
report, and `status` says that the collection moved on.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline_assets.account.reconciliation.errors import (
    CloserUnnamed,
    Obstacle,
    ReportNotClosable,
    ReportOvertaken,
)
from pipeline_assets.account.reconciliation.facts import FullReport
from pipeline_assets.account.reconciliation.kept import MadeReport, made_report, store_files
from pipeline_assets.account.reconciliation.outcomes import OUTCOMES
from pipeline_assets.account.reconciliation.page import Closing, page_of
from pipeline_assets.account.reconciliation.sample_lack import sample_lack
from pipeline_assets.account.report import journal_account
from pipeline_assets.account.status import (
    AWAITING_APPROVAL,
    OPEN_STATES,
    PERSON_STATES,
    Status,
    status,
)
from pipeline_assets.account.violations import pending_sentence
from pipeline_assets.account.waits import Wait
from pipeline_assets.known_version import KnownVersion
from resources.context import Context
from resources.contracts import read_shards
from resources.ledger.journal import verify_all
from resources.ledger.kept_reports import (
    KeptReport,
    add_closing,
    add_report,
    lock_reports,
    newest_closing,
)
from resources.ledger.moves import Cause
from resources.one_moment import at_one_moment

CAUSE = "close_report"
"""The first word of the cause of the journal's move; the report's digest follows."""
_SAMPLE = "quality_sample"
_OF_VERSION = ("dead-letter", "quality", "release", "review", "run", "settings")
"""Commands that take a version."""


@dataclass(frozen=True)
class Closed:
    """What closing came to.

    Attributes:
        row: the closed report.
        is_new: False where it was closed before, and nothing changed since.
    """

    row: KeptReport
    is_new: bool


def close_report(context: Context, key: str, by: str, reason: str = "") -> Closed:
    """Make a version's report anew and close it.

    Args:
        context: the open resources.
        key: the version.
        by: who vouches for the collection.
        reason: why; it is kept.

    Raises:
        MalformedVersionKey, VersionNeverUsed: there is no such version here.
        CloserUnnamed: `by` is no name.
        ReportNotClosable: something is open, or does not add up.
        ReportOvertaken: something moved while the report was made.
        ArtifactStoreFull: the disk is full.
    """
    name = by.strip()
    if not (0 < len(name) <= 128 and name.isprintable()):
        raise CloserUnnamed
    with made_report(context, key) as made:
        with context.ledger.read() as connection:
            before = newest_closing(connection, made.version.version_no)
        if before is not None and before.digest == made.digest:
            return Closed(before, is_new=False)
        obstacles = find_obstacles(context, made.version, made.report)
        if obstacles:
            raise ReportNotClosable(key, obstacles)
        cause = Cause(
            _plain(reason) or "every record has its outcome and the quality sample is reviewed",
            name,
            context.ledger.now(),
            f"{CAUSE} {made.digest}",
        )
        return _close(context, made, cause)


def find_obstacles(context: Context, version: KnownVersion, report: FullReport) -> list[Obstacle]:
    """Everything that keeps a report from being closed, at once."""
    with at_one_moment(context) as moment:
        now = status(moment, version.key)
        return [
            *_of_account(report),
            *_of_open_work(now, report),
            *_of_approvals(report),
            *_of_sample(moment, version, report),
            *_of_journal(moment),
        ]


def _close(context: Context, made: MadeReport, cause: Cause) -> Closed:
    closing = Closing(cause.actor, cause.at, cause.reason)
    page = context.artifacts.put_stream(
        "report",
        (
            piece.encode()
            for piece in page_of(
                made.report, read_shards(OUTCOMES, made.outcomes), made.digest, closing
            )
        ),
    )
    new = store_files(context.artifacts, made, page.digest)
    with context.ledger.write() as connection:
        lock_reports(connection, context.ledger, made.version.version_no)
        before = newest_closing(connection, made.version.version_no)
        # Of two who close at once, one did it.
        if before is not None and before.digest == made.digest:
            return Closed(before, is_new=False)
        # Nobody may vouch for a collection that moved on while its report was made.
        journal = journal_account(connection, context.ledger, made.version)
        if journal.digest != made.report.account.journal.digest:
            raise ReportOvertaken(made.version.key)
        number = add_report(connection, new)
        add_closing(connection, context.ledger, number, made.digest, cause)
        row = newest_closing(connection, made.version.version_no)
    assert row is not None  # noqa: S101 - added above
    return Closed(row, is_new=True)


def _of_account(report: FullReport) -> Iterator[Obstacle]:
    account = report.account
    if account.pending:
        yield Obstacle(
            "pending",
            f"{_counted(account.pending, 'document')} scanned and not processed",
            _command(("run",), account.processing_version),
        )
    for sentence in account.violations:
        # Told above in fewer words.
        if not (account.pending and sentence == pending_sentence(account.pending)):
            yield Obstacle(
                "violation",
                f"the account does not add up: {sentence}",
                "tallybook audit, tallybook doctor",
            )


def _of_open_work(now: Status, report: FullReport) -> Iterator[Obstacle]:
    told, key = set(), report.account.processing_version
    for wait in now.waits:
        if wait.what in (_SAMPLE, "pending", AWAITING_APPROVAL):
            continue  # told by themselves
        told.add(wait.what)
        helps = "only waiting helps"
        if wait.command is not None:
            helps = _command(wait.command, key)
        yield Obstacle(wait.what.replace(" ", "_"), _said(wait), helps)
    for state in (*OPEN_STATES, *PERSON_STATES):
        count = report.details.outcomes.states.get(state, 0)
        if count and state not in told:
            yield Obstacle(
                state,
                f"{_counted(count, 'record')} of documents that changed since: "
                f"{state.replace('_', ' ')}",
                _command(("run",), key) + ", or " + _command(("review", "list"), key),
            )


def _of_approvals(report: FullReport) -> Iterator[Obstacle]:
    count = report.account.excluded.get(AWAITING_APPROVAL)
    if count:
        yield Obstacle(
            AWAITING_APPROVAL,
            f"{_counted(count, 'document')} waiting for approval",
            "tallybook sources waiting",
        )


def _of_sample(context: Context, version: KnownVersion, report: FullReport) -> Iterator[Obstacle]:
    with context.ledger.read() as connection:
        lack = sample_lack(connection, context.ledger, version)
    draw = _command(("quality", "draw", "--reason", "TEXT"), version.key)
    quality = report.details.quality
    if quality is None:
        if lack.candidates:
            # Where so few are asked for that a draw takes none, drawing is no remedy.
            more = _command(
                ("settings", "set", "sample_least", "5", "--reason", "TEXT"), version.key
            )
            remedy = draw if lack.wanted else f"{more}, then {draw}"
            yield Obstacle("sample_not_drawn", "no quality sample was drawn", remedy)
        return
    if lack.wanted:
        what = (
            f"the quality sample lacks {_counted(lack.wanted, 'record')} that were accepted since"
        )
        yield Obstacle("sample_too_small", what, draw)
    if quality.waiting:
        yield Obstacle(
            "sample_not_reviewed",
            f"{quality.waiting} of {_counted(quality.drawn, 'sampled record')} wait for a reviewer",
            _command(("review", "next", "--kind", _SAMPLE), version.key),
        )


def _of_journal(context: Context) -> Iterator[Obstacle]:
    with context.ledger.read() as connection:
        verdict = verify_all(connection, context.ledger.dialect)
    broken = [chain.chain for chain in verdict.chains if not chain.holds]
    if broken or verdict.orphans:
        named = ", ".join(broken[:3]) or "members without a move"
        yield Obstacle(
            "journal",
            f"the journal does not verify ({named})",
            "tallybook audit names the rows; restore a backup",
        )


def _plain(text: str) -> str:
    """On one line, without what no database takes: bytes that are no UTF-8, and NUL."""
    return " ".join(text.replace("\0", " ").encode("utf-8", "ignore").decode().split())


def _counted(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _said(wait: Wait) -> str:
    """What is open and who has to do something, as a sentence."""
    if wait.what == "held":
        return f"the version is held and waits for {wait.who}"
    thing, _, state = wait.what.rpartition(" ")
    many = {"batch": "batches", "canary": "canaries"}.get(thing)
    verb = "waits" if wait.count == 1 else "wait"
    things = _counted(wait.count, thing or "record", many)
    return f"{things} {verb} for {wait.who} ({state.replace('_', ' ')})"


def _command(words: Sequence[str], key: str) -> str:
    """A command to type; for the version where it would else be of another one, or of all."""
    of_version = ("--version", key) if words[0] in _OF_VERSION else ()
    return shlex.join(["tallybook", *words, *of_version])
