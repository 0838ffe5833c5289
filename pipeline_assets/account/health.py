"""What does not go on as it should: work that is stuck, held or overdue, and rows that do not fit.

Belongs here: one question a kind of trouble, each set-based and read only, with what helps; and
mending the few that can be mended. Does not belong here: files, leases of dead processes, the
journal (`integrity.py`) and whether a version's account adds up (`violations.py`).

A problem is `broken` where nothing mends it by itself: a person, or `--fix`, has to. What the
next run, a sensor or its owner deals with is told too, and is not broken.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from datetime import timedelta

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.account import archive_repairs, representations
from pipeline_assets.account.integrity import Problem
from pipeline_assets.account.violations import some
from pipeline_assets.operating import operating
from pipeline_assets.recovery.dead_letters import mend_episodes
from resources import kept_bytes
from resources.clock import to_text
from resources.context import Context
from resources.ledger.dead_letters import count_dead_letters, find_dead_letters, stale_episodes
from resources.ledger.engine import Ledger
from resources.ledger.erasures import (
    came_back,
    kept_though_erased,
    shown_though_erased,
    unfinished_erasures,
)
from resources.ledger.frames import PolarsType
from resources.ledger.leases import LeaseHeld
from resources.ledger.versions import FrozenVersion, list_versions

OVERDUE = timedelta(hours=1)
"""So long after it was due, nobody seems to look; jobs are polled every few minutes."""
RECENT = timedelta(hours=24)
"""Refused commits of so long are told."""
RUN = "tallybook run --version {key}, or start the sensors in Dagster's user interface"

_NAMED: dict[str, PolarsType] = {"name": pl.String, "detail": pl.String}
_BY_VERSION: dict[str, PolarsType] = {"key": pl.String, "count": pl.Int64}
_ORPHANS = (
    (
        "attempts of no record",
        "SELECT COUNT(*) FROM attempts a LEFT JOIN records p ON p.record_no = a.record_no "
        "WHERE p.record_no IS NULL",
    ),
    (
        "attempts of no batch",
        "SELECT COUNT(*) FROM attempts a LEFT JOIN batches p ON p.batch_no = a.batch_no "
        "WHERE p.batch_no IS NULL",
    ),
    (
        "dispositions of no attempt",
        "SELECT COUNT(*) FROM dispositions a LEFT JOIN attempts p ON p.attempt_no = a.attempt_no "
        "WHERE p.attempt_no IS NULL",
    ),
    (
        "retry decisions of no disposition",
        "SELECT COUNT(*) FROM retry_decisions a "
        "LEFT JOIN dispositions p ON p.attempt_no = a.attempt_no WHERE p.attempt_no IS NULL",
    ),
    (
        "dead letters of no attempt",
        "SELECT COUNT(*) FROM dead_letters a LEFT JOIN attempts p ON p.attempt_no = a.attempt_no "
        "WHERE p.attempt_no IS NULL",
    ),
    (
        "judgements of no attempt",
        "SELECT COUNT(*) FROM judgements a LEFT JOIN attempts p ON p.attempt_no = a.attempt_no "
        "WHERE p.attempt_no IS NULL",
    ),
    (
        "late results of no attempt",
        "SELECT COUNT(*) FROM late_results a LEFT JOIN attempts p ON p.attempt_no = a.attempt_no "
        "WHERE p.attempt_no IS NULL",
    ),
    (
        "memberships of no record",
        "SELECT COUNT(*) FROM move_members a JOIN moves m ON m.move_no = a.move_no "
        "AND m.machine = 'record' LEFT JOIN record_state p ON p.record_no = a.record_no "
        "WHERE p.record_no IS NULL",
    ),
    (
        "records without a state",
        "SELECT COUNT(*) FROM records a LEFT JOIN record_state p ON p.record_no = a.record_no "
        "WHERE p.record_no IS NULL",
    ),
    (
        "states of no record",
        "SELECT COUNT(*) FROM record_state a LEFT JOIN records p ON p.record_no = a.record_no "
        "WHERE p.record_no IS NULL",
    ),
)


def look(context: Context) -> list[Problem]:
    """Everything that does not go on as it should; reads only, from one snapshot."""
    versions = list_versions(context.ledger)
    with context.ledger.read() as connection:
        return look_within(connection, context, versions)


def look_within(
    connection: Connection, context: Context, versions: Iterable[FrozenVersion]
) -> list[Problem]:
    """The same inside a transaction, for the holds and dead letters of some versions."""
    found = [problem for ask in _QUESTIONS for problem in ask(connection, context)]
    for version in versions:
        found += _held(version)
        found += _dead_letters(connection, context, version)
    return found


def mend(context: Context, problems: Iterable[Problem]) -> list[Problem]:
    """Mend what can be mended; returns what was."""
    mended = []
    for problem in problems:
        if problem.kind == "archive_head":
            archive_repairs.mend_heads(context.ledger)
            # What was not shown had no search entry, or one that seemed to be of nothing.
            representations.rebuild_search_entries(context)
        elif problem.kind == "thumbnail":
            archive_repairs.mend_thumbnails(context)
        elif problem.kind != "dead_letter_rows" or not _mend_episodes(context):
            continue
        mended.append(problem)
    return mended


def _mend_episodes(context: Context) -> bool:
    """False where a worker is at them: it may be writing what is missing."""
    try:
        for version in list_versions(context.ledger):
            mend_episodes(context, version.version_no, version.key)
    except LeaseHeld:
        return False
    return True


def _quarantined(connection: Connection, context: Context) -> list[Problem]:
    names = _names(connection, context.ledger, _QUARANTINED)
    return [
        Problem(
            kind="quarantined",
            what=f"it is not known whether the provider has {name}; it may have been paid",
            remedy=f"look for the job at the provider, then tallybook batch attach {_word(name)} "
            f"PROVIDER_JOB or tallybook batch discard {_word(name)}, with --reason",
            fixable=False,
        )
        for name, _ in names
    ]


def _incidents(connection: Connection, context: Context) -> list[Problem]:
    names = _names(
        connection,
        context.ledger,
        "SELECT b.batch_id, COALESCE((SELECT m.reason FROM moves m WHERE m.move_no = "
        "(SELECT MAX(n.move_no) FROM moves n WHERE n.chain = 'batch:' || b.batch_no "
        "AND n.to_state = 'incident')), 'the reason is not in the journal') "
        "FROM batches b WHERE b.state = 'incident' ORDER BY b.batch_no",
    )
    return [
        Problem(
            kind="incident",
            what=f"the account of batch {name} does not hold: {reason}",
            remedy=f"tallybook batch show {_word(name)}; once the cause is gone, tallybook batch "
            f"reconcile {_word(name)} --reason TEXT",
            fixable=False,
        )
        for name, reason in names
    ]


def _not_collectable(connection: Connection, context: Context) -> list[Problem]:
    names = _names(
        connection,
        context.ledger,
        "SELECT b.batch_id, a.message FROM alerts a JOIN batches b ON b.batch_id = a.subject "
        "AND b.state = 'results_available' "
        "WHERE a.kind = 'not_collectable' AND a.cleared_at IS NULL ORDER BY b.batch_no",
    )
    return [
        Problem(
            kind="not_collectable",
            what=f"the results of {name} cannot be fetched: {detail}",
            remedy="tallybook run tries again; tallybook batch discard "
            f"{_word(name)} --reason TEXT gives them up",
            fixable=False,
        )
        for name, detail in names
    ]


def _overdue_jobs(connection: Connection, context: Context) -> list[Problem]:
    before = to_text(context.clock() - OVERDUE)
    names = _names(connection, context.ledger, _OVERDUE_JOBS, (before, before))
    if not names:
        return []
    return [
        Problem(
            kind="overdue_job",
            what=f"{len(names)} jobs should have been looked at by {names[0][1]} and were not: "
            + some([name for name, _ in names]),
            remedy="nobody looks: tallybook batch poll, tallybook run, or start the sensor "
            "provider_batch_monitor in Dagster's user interface",
            fixable=False,
            broken=False,
        )
    ]


def _interrupted(connection: Connection, context: Context) -> list[Problem]:
    """Steps that a worker began and nobody is at: its lease is over and the state is halfway."""
    names = _names(
        connection,
        context.ledger,
        "SELECT b.batch_id, b.state FROM batches b LEFT JOIN leases l "
        "ON l.name = 'batch:' || b.batch_id AND l.expires_at > ? "
        "WHERE l.name IS NULL AND (b.state = 'reconciling' OR (b.state = 'submitting' "
        "AND (b.next_poll_at IS NULL OR b.next_poll_at <= ?))) ORDER BY b.batch_no",
        (context.ledger.now(), context.ledger.now()),
    )
    return [
        Problem(
            kind="interrupted",
            what=f"batch {name} is {state} and no worker is at it",
            remedy="tallybook run goes on from there; nothing is sent twice",
            fixable=False,
            broken=False,
        )
        for name, state in names
    ]


def _overdue_retries(connection: Connection, context: Context) -> list[Problem]:
    rows = _counts(
        connection,
        context.ledger,
        "SELECT v.key, COUNT(*) FROM record_state s JOIN records r ON r.record_no = s.record_no "
        "JOIN processing_versions v ON v.version_no = r.version_no AND v.state = 'active' "
        "WHERE s.state = 'retry_wait' AND (s.not_before IS NULL OR s.not_before < ?) "
        "GROUP BY v.key ORDER BY v.key",
        (to_text(context.clock() - OVERDUE),),
    )
    return [
        Problem(
            kind="overdue_retry",
            what=f"{count} records of {key} should have been tried again by now",
            remedy=RUN.format(key=key),
            fixable=False,
            broken=False,
        )
        for key, count in rows
    ]


def _unsettled_batches(connection: Connection, context: Context) -> list[Problem]:
    names = _names(
        connection,
        context.ledger,
        "SELECT b.batch_id, b.state FROM batches b WHERE b.state = 'retry_required' "
        "AND NOT EXISTS (SELECT 1 FROM attempts a JOIN record_state s "
        "ON s.record_no = a.record_no AND s.state IN "
        "('queued', 'prepared', 'submitted', 'collected', 'accepted', 'retry_wait') "
        "WHERE a.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no) "
        "ORDER BY b.batch_no",
    )
    if not names:
        return []
    return [
        Problem(
            kind="unsettled_batch",
            what=f"{len(names)} batches wait for retries and have no open record left: "
            + some([name for name, _ in names]),
            remedy="tallybook run settles them",
            fixable=False,
            broken=False,
        )
    ]


def _refused_commits(connection: Connection, context: Context) -> list[Problem]:
    rows = _counts(
        connection,
        context.ledger,
        "SELECT lease, COUNT(*) FROM refused_commits WHERE refused_at >= ? "
        "GROUP BY lease ORDER BY lease",
        (to_text(context.clock() - RECENT),),
    )
    if not rows:
        return []
    return [
        Problem(
            kind="refused_commit",
            what=f"{sum(count for _, count in rows)} commits of the last day came too late and "
            f"were refused: {some([name for name, _ in rows])}",
            remedy="nothing of them was written; if it recurs, a worker is suspended or its step "
            "is too long for its lease",
            fixable=False,
            broken=False,
        )
    ]


def _untold_alerts(connection: Connection, context: Context) -> list[Problem]:
    rows = context.ledger.dialect.fetch(
        connection,
        "SELECT d.channel, d.problem, COUNT(*) FROM alert_deliveries d "
        "JOIN alerts a ON a.alert_no = d.alert_no "
        "WHERE d.failures > 0 AND d.problem IS NOT NULL AND (a.cleared_at IS NULL "
        "OR (d.told_at IS NOT NULL AND d.told_cleared_at IS NULL)) "
        "GROUP BY d.channel, d.problem ORDER BY d.channel, d.problem",
        {"channel": pl.String, "problem": pl.String, "count": pl.Int64},
    )
    return [
        Problem(
            kind="untold_alert",
            what=f"{count} alerts could not be told to the channel {channel}: {problem}",
            remedy="correct the channel's settings, then tallybook alerts send; tallybook alerts "
            "list shows what it was not told",
            fixable=False,
        )
        for channel, problem, count in rows.iter_rows()
    ]


def _heads(connection: Connection, context: Context) -> list[Problem]:
    names = archive_repairs.wrong_heads(connection, context.ledger)["document_id"].to_list()
    if not names:
        return []
    return [
        Problem(
            kind="archive_head",
            what=f"{len(names)} published documents do not show their newest entry: {some(names)}",
            remedy="tallybook doctor --fix points them at it again",
            fixable=True,
        )
    ]


def _thumbnails(connection: Connection, context: Context) -> list[Problem]:
    lost = archive_repairs.lost_thumbnails(connection, context)
    known = lost.drop_nulls("thumbnail")["document_id"].to_list()
    gone = lost.filter(pl.col("thumbnail").is_null())
    kept = kept_bytes.kept(connection, context.ledger, context.artifacts, gone["checksum"])
    found = []
    if known:
        found.append(
            Problem(
                kind="thumbnail",
                what=f"{len(known)} published documents do not name their thumbnail: {some(known)}",
                remedy="tallybook doctor --fix names the one that is in the store",
                fixable=True,
            )
        )
    for fixable, remedy in (
        (True, "tallybook doctor --fix renders them again from the kept bytes"),
        (False, "restore the artifacts folder from a backup of the state folder"),
    ):
        names = gone.filter(kept == fixable)["document_id"].to_list()
        if names:
            found.append(
                Problem(
                    kind="lost_thumbnail",
                    what=f"the thumbnails of {len(names)} published documents are gone: "
                    f"{some(names)}",
                    remedy=remedy,
                    fixable=fixable,
                )
            )
    return found


def _orphans(connection: Connection, context: Context) -> list[Problem]:
    found = []
    for what, sql in _ORPHANS:
        count = context.ledger.dialect.fetch(connection, sql, {"count": pl.Int64}).item()
        if count:
            found.append(f"{count} {what}")
    if not found:
        return []
    return [
        Problem(
            kind="orphans",
            what=f"the ledger has rows that belong to nothing: {', '.join(found)}",
            remedy="it was changed outside Tallybook: restore the ledger from a backup",
            fixable=False,
        )
    ]


def _held(version: FrozenVersion) -> list[Problem]:
    if version.state != "held":
        return []
    return [
        Problem(
            kind="held",
            what=f"{version.key} is held: {version.state_reason}",
            remedy=f"tallybook status --version {version.key} says how it ends; by hand: "
            f"tallybook release --version {version.key} --reason TEXT",
            fixable=False,
            broken=False,
        )
    ]


def _dead_letters(
    connection: Connection, context: Context, version: FrozenVersion
) -> list[Problem]:
    limit = operating(context.ledger, version.version_no).dead_letter_age
    counts = count_dead_letters(
        connection, context.ledger, version.version_no, to_text(context.clock() - limit)
    )
    return [
        *_open_dead_letters(version, counts, int(limit.total_seconds() // 3600)),
        *_unfit_episodes(connection, context, version),
    ]


def _open_dead_letters(version: FrozenVersion, counts: pl.DataFrame, hours: int) -> list[Problem]:
    letters, aged = int(counts["letters"].sum()), int(counts["aged"].sum())
    if not letters:
        return []
    return [
        Problem(
            kind="dead_letters",
            what=f"{letters} dead letters of {version.key} wait for their owner"
            + (f", {aged} of them for more than {hours} hours" if aged else ""),
            remedy=f"tallybook dead-letter list --group --version {version.key}, then requeue or "
            "discard them",
            fixable=False,
            broken=False,
        )
    ]


def _unfit_episodes(
    connection: Connection, context: Context, version: FrozenVersion
) -> list[Problem]:
    ledger = context.ledger
    found = find_dead_letters(connection, ledger, version.version_no)
    missing = found.filter(pl.col("recorded") == 0).height
    stale = stale_episodes(connection, ledger, version.version_no).height
    what = []
    if missing:
        what.append(f"{missing} dead letters have no entry of their own")
    if stale:
        what.append(f"{stale} entries are open though their record went on")
    if not what:
        return []
    return [
        Problem(
            kind="dead_letter_rows",
            what=f"{version.key}: {'; '.join(what)}",
            remedy="tallybook doctor --fix writes and closes them",
            fixable=True,
        )
    ]


def _erasures(connection: Connection, context: Context) -> list[Problem]:
    """Erasures that were interrupted, and what of erased documents is there again."""
    ledger, store = context.ledger, context.artifacts
    found = []
    for name in unfinished_erasures(connection, ledger):
        found.append(
            Problem(
                kind="unfinished_erasure",
                what=f"the erasure of {name} was interrupted: files may still hold it",
                remedy=f"tallybook erase {_word(name)} --reason TEXT --yes goes on from there",
                fixable=False,
            )
        )
    again = {
        document
        for document, checksum, pack in kept_though_erased(connection, ledger).iter_rows()
        if store.has("source", checksum) or (pack is not None and store.has("text", pack))
    }
    again |= set(came_back(connection, ledger)["document_id"])
    again |= set(shown_though_erased(connection, ledger))
    if again:
        found.append(
            Problem(
                kind="erased_came_back",
                what=f"something of {len(again)} erased documents is there again: "
                + some(sorted(again)),
                remedy="tallybook erase DOCUMENT --reason TEXT --yes purges it again",
                fixable=False,
            )
        )
    return found


_QUESTIONS: tuple[Callable[[Connection, Context], list[Problem]], ...] = (
    _quarantined,
    _incidents,
    _not_collectable,
    _heads,
    _thumbnails,
    _orphans,
    _erasures,
    _untold_alerts,
    _interrupted,
    _overdue_jobs,
    _overdue_retries,
    _unsettled_batches,
    _refused_commits,
)
_QUARANTINED = (
    "SELECT batch_id, state FROM batches WHERE state = 'quarantined' "
    "UNION ALL SELECT canary_id, state FROM canaries WHERE state = 'quarantined' ORDER BY 1"
)
# A job in doubt is told as quarantined already.
_OVERDUE_JOBS = (
    "SELECT batch_id, next_poll_at FROM batches WHERE mode = 'batch' "
    "AND state IN ('submitting', 'submitted', 'running') AND next_poll_at < ? "
    "UNION ALL SELECT canary_id, next_poll_at FROM canaries WHERE mode = 'batch' "
    "AND state IN ('submitting', 'submitted', 'running') AND next_poll_at < ? ORDER BY 2, 1"
)


def _names(
    connection: Connection, ledger: Ledger, sql: str, parameters: tuple[str, ...] = ()
) -> list[tuple[str, str]]:
    return ledger.dialect.fetch(connection, sql, _NAMED, parameters).rows()


def _counts(
    connection: Connection, ledger: Ledger, sql: str, parameters: tuple[str, ...]
) -> list[tuple[str, int]]:
    return ledger.dialect.fetch(connection, sql, _BY_VERSION, parameters).rows()


def _word(name: str) -> str:
    """A name as one word of a shell."""
    return shlex.quote(name)
