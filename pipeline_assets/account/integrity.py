"""What is broken in a state folder, and mending what can be mended without losing anything.

Belongs here: leases of dead workers, leftover temporary files, artifacts that the ledger names
and the store has not, search entries, the journal's digests. Does not belong here: whether a
version's account adds up (`violations.py`), work that does not go on (`health.py`), the parser's
self-test and Dagster's runs, which the command line adds.

Nothing that the ledger names is ever deleted.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import msgspec
import polars as pl
from sqlalchemy import Connection, select, update

from pipeline_assets.account import representations
from pipeline_assets.account.violations import some
from resources import kept_bytes
from resources.artifacts import GONE, ArtifactDamaged, ArtifactStore, Kind
from resources.clock import from_text
from resources.context import Context
from resources.ledger.engine import Ledger
from resources.ledger.erasures import redactions_now
from resources.ledger.journal import verify_all
from resources.ledger.prunes import pruned_names
from resources.ledger.representations import (
    name_entries,
    stray_search_entries,
    unsearchable_entries,
)
from resources.ledger.schema import leases
from resources.processes import ProcessIdentity, is_alive

UNTOUCHED_SECONDS = 24 * 3600
"""A temporary file older than this is left over, whoever may have made it."""
GRACE_SECONDS = 600
"""A younger one is left over too once no process has it open."""
_CLOCK_SLACK_SECONDS = 2.0
_BOOTED = re.compile(r"^btime (\d+)$", re.MULTILINE)
_OWNER = re.compile(r".*@(?P<host>[^@]+):(?P<pid>[0-9]+)")

# Every column that names an artifact, and the kind that it names.
_NAMED: tuple[tuple[Kind, str], ...] = (
    ("text", "SELECT DISTINCT text_pack FROM parses WHERE text_pack IS NOT NULL"),
    ("thumbnail", "SELECT DISTINCT thumbnail FROM parses WHERE thumbnail IS NOT NULL"),
    # Of what is visible: an earlier entry may name one that was lost and replaced.
    (
        "thumbnail",
        "SELECT DISTINCT thumbnail FROM archive_entries WHERE thumbnail <> '' AND valid_to IS NULL",
    ),
    # Of an erased document nothing is kept, unless another one has the same bytes.
    (
        "source",
        "SELECT DISTINCT checksum FROM records "
        "WHERE document_no NOT IN (SELECT document_no FROM erasures)",
    ),
    ("manifest", "SELECT artifact FROM manifests"),
    ("request", "SELECT request_artifact FROM batches"),
    ("request", "SELECT request_artifact FROM canaries"),
    ("result", "SELECT artifact FROM result_files"),
    ("frame", "SELECT collected_artifact FROM batches WHERE collected_artifact IS NOT NULL"),
    ("frame", "SELECT staging_artifact FROM batches WHERE staging_artifact IS NOT NULL"),
    ("frame", "SELECT places_artifact FROM batches WHERE places_artifact IS NOT NULL"),
    ("frame", "SELECT collected_artifact FROM late_answers"),
    ("frame", "SELECT staging_artifact FROM late_answers WHERE staging_artifact IS NOT NULL"),
    ("frame", "SELECT places_artifact FROM late_answers WHERE places_artifact IS NOT NULL"),
    ("report", "SELECT artifact FROM reports"),
    ("report", "SELECT page FROM reports WHERE page IS NOT NULL"),
    ("report", "SELECT outcomes FROM reports WHERE outcomes IS NOT NULL"),
)


@dataclass(frozen=True)
class Problem:
    """Something that is broken.

    Attributes:
        kind: a short name for machines.
        what: what was found.
        remedy: what helps.
        fixable: `fix` mends it.
        subjects: what `fix` needs: lease names with tokens, or paths.
        broken: False for what needs attention and goes on by itself, by the next run or by
            whoever it belongs to.
    """

    kind: str
    what: str
    remedy: str
    fixable: bool
    subjects: tuple[tuple[str, int] | Path, ...] = field(default=(), repr=False)
    broken: bool = True


def diagnose(context: Context) -> list[Problem]:
    """Everything that is broken, worst last; reads only."""
    found = [*_dead_leases(context), *_leftover_files(context)]
    with context.ledger.read() as connection:
        found += _search(connection, context.ledger)
        found += _missing_artifacts(connection, context)
        found += _redactions(connection, context)
        found += _journal(connection, context.ledger)
    return found


def fix(context: Context, problems: Iterable[Problem]) -> list[Problem]:
    """Mend what can be mended; returns what was."""
    mended = []
    for problem in problems:
        if not problem.fixable:
            continue
        if problem.kind == "dead_lease":
            _expire(context, problem)
        elif problem.kind == "leftover_file":
            for path in problem.subjects:
                if isinstance(path, Path):
                    path.unlink(missing_ok=True)
        elif problem.kind == "search_entries":
            representations.rebuild_search_entries(context)
        else:
            continue
        mended.append(problem)
    return mended


def release_dead_leases(context: Context) -> int:
    """Let leases expire whose owner was a process of this machine and is gone."""
    return len(fix(context, _dead_leases(context)))


def _dead_leases(context: Context) -> list[Problem]:
    with context.ledger.read() as connection:
        rows = connection.execute(
            select(leases.c.name, leases.c.owner, leases.c.token, leases.c.acquired_at)
            .where(leases.c.expires_at > context.ledger.now())
            .order_by(leases.c.name)
        ).all()
    return [
        Problem(
            kind="dead_lease",
            what=f"{row.name} is held by {row.owner}, a process that is gone",
            remedy="tallybook doctor --fix lets the lease expire now",
            fixable=True,
            subjects=((row.name, row.token),),
        )
        for row in rows
        if _is_dead(row.owner, from_text(row.acquired_at).timestamp())
    ]


def _is_dead(owner: str, acquired_at: float) -> bool:
    """Was the owner a process of this machine that is no more? Nobody can say of another's."""
    match = _OWNER.fullmatch(owner)
    if match is None or match["host"] != socket.gethostname():
        return False
    pid = int(match["pid"])
    if is_alive(ProcessIdentity(pid, match["host"], "")) is False:
        return True
    # The system gives numbers away again: a holder that is younger than its lease is another.
    started = _started_at(pid)
    return started is not None and started > acquired_at + _CLOCK_SLACK_SECONDS


def _started_at(pid: int) -> float | None:
    """When a process started, seconds since 1970; None where the system does not say."""
    try:
        booted = _BOOTED.search(Path("/proc/stat").read_text())
        # proc(5): the start is field 22; the name before it may hold spaces and brackets.
        ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return None
    if booted is None:
        return None
    return int(booted[1]) + int(ticks) / os.sysconf("SC_CLK_TCK")


def _expire(context: Context, problem: Problem) -> None:
    with context.ledger.write() as connection:
        for subject in problem.subjects:
            if isinstance(subject, tuple):
                name, token = subject
                # A lease that changed hands in between carries another token and stays.
                connection.execute(
                    update(leases)
                    .where(leases.c.name == name, leases.c.token == token)
                    .values(expires_at=context.ledger.now())
                )


def _leftover_files(context: Context) -> list[Problem]:
    folder = context.artifacts.root / "incoming"
    if not folder.is_dir():
        return []
    now = time.time()
    in_use = _open_files()
    leftover = []
    for path in sorted(folder.iterdir()):
        try:
            found = path.lstat()
        except FileNotFoundError:
            continue
        age = now - found.st_mtime
        idle = in_use is not None and (found.st_dev, found.st_ino) not in in_use
        if age > UNTOUCHED_SECONDS or (idle and age > GRACE_SECONDS):
            leftover.append(path)
    if not leftover:
        return []
    return [
        Problem(
            kind="leftover_file",
            what=f"{len(leftover)} temporary files of interrupted runs in {folder.name}",
            remedy="tallybook doctor --fix deletes them; the ledger names none of them",
            fixable=True,
            subjects=tuple(leftover),
        )
    ]


def _open_files() -> set[tuple[int, int]] | None:
    """(device, inode) of every file that a process has open; None where that cannot be told."""
    processes = Path("/proc")
    if os.geteuid() != 0 or not (processes / "self" / "fd").is_dir():
        return None
    found = set()
    for entry in processes.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            descriptors = list((entry / "fd").iterdir())
        except OSError:
            continue  # it ended in this moment
        for descriptor in descriptors:
            try:
                opened = descriptor.stat()
            except OSError:
                continue
            found.add((opened.st_dev, opened.st_ino))
    return found


def _search(connection: Connection, ledger: Ledger) -> list[Problem]:
    missing = name_entries(connection, ledger, unsearchable_entries(connection, ledger))[
        "document_id"
    ].to_list()
    stray = stray_search_entries(connection, ledger).height
    if not missing and not stray:
        return []
    what = []
    if missing:
        what.append(
            f"{len(missing)} published documents cannot be found by search: {some(missing)}"
        )
    if stray:
        what.append(f"{stray} search entries show nothing visible")
    return [
        Problem(
            kind="search_entries",
            what="; ".join(what),
            remedy="tallybook doctor --fix makes the search entries again from the archive",
            fixable=True,
        )
    ]


def _canary_results(connection: Connection, ledger: Ledger) -> set[str]:
    """The answers of canaries, which one row names in a list."""
    lists = ledger.dialect.fetch(
        connection,
        "SELECT results FROM canaries WHERE results IS NOT NULL",
        {"results": pl.String},
    )["results"]
    return {digest for text in lists for digest in msgspec.json.decode(text, type=list[str])}


def _missing_artifacts(connection: Connection, context: Context) -> list[Problem]:
    missing: dict[Kind, set[str]] = {}
    for digest in _canary_results(connection, context.ledger):
        if not context.artifacts.has("result", digest):
            missing.setdefault("result", set()).add(digest)
    for kind, sql in _NAMED:
        digests = context.ledger.dialect.fetch(connection, sql, {"digest": pl.String})["digest"]
        for digest in digests.filter(~_in_store(connection, context, kind, digests)):
            missing.setdefault(kind, set()).add(digest)
    for kind, digest in pruned_names(connection, context.ledger).select("kind", "digest").rows():
        missing.get(kind, set()).discard(digest)
    return [
        Problem(
            kind="missing_artifact",
            what=f"{len(digests)} {kind} artifacts that the ledger names are not in the store: "
            + some(sorted(digest[:12] for digest in digests)),
            remedy="restore the artifacts folder from a backup of the state folder",
            fixable=False,
        )
        for kind, digests in sorted(missing.items())
        if digests
    ]


def _in_store(
    connection: Connection, context: Context, kind: Kind, digests: pl.Series
) -> pl.Series:
    if kind == "source":
        return kept_bytes.kept(connection, context.ledger, context.artifacts, digests)
    return pl.Series([context.artifacts.has(kind, one) for one in digests], dtype=pl.Boolean)


def _redactions(connection: Connection, context: Context) -> list[Problem]:
    """Files that are not what their erasures left of them, by the ledger and by their sidecar.

    A file that was changed, with a sidecar made to fit it, is seen here: the ledger knows better.
    """
    store = context.artifacts
    left = {
        (cast("Kind", kind), digest): present
        for kind, digest, present in redactions_now(connection, context.ledger).iter_rows()
    }
    touched = {*store.redacted(), *(name for name, present in left.items() if present != GONE)}
    wrong = [
        digest[:12]
        for kind, digest in touched
        if store.has(kind, digest) and not _as_left(store, kind, digest, left.get((kind, digest)))
    ]
    if not wrong:
        return []
    return [
        Problem(
            kind="redaction",
            what=f"{len(wrong)} artifacts are not what an erasure left of them: "
            + some(sorted(wrong)),
            remedy="if they were restored from a backup, erase the documents again (tallybook "
            "erase); else they were changed outside Tallybook: restore them from a backup first",
            fixable=False,
        )
    ]


def _as_left(store: ArtifactStore, kind: Kind, digest: str, present: str | None) -> bool:
    """Is a file what the ledger says that an erasure left of it?"""
    try:
        beside = store.sidecar(kind, digest)
        if beside is not None and beside.before is not None:
            # An erasure was interrupted here, which is told by itself: it may be either.
            store.verify(kind, digest)
            return True
    except ArtifactDamaged:
        return False
    named = None if beside is None else beside.present
    return present is not None and named == present == store.present_digest(kind, digest)


def _journal(connection: Connection, ledger: Ledger) -> list[Problem]:
    verdict = verify_all(connection, ledger.dialect)
    faults = [
        f"{chain.chain}, move {fault.move_no}: {fault.problem}"
        for chain in verdict.chains
        for fault in chain.faults
    ]
    if verdict.orphans:
        faults.append(f"{verdict.orphans} memberships of moves that are not in the journal")
    if not faults:
        return []
    return [
        Problem(
            kind="journal",
            what=f"the journal does not prove itself: {some(faults)}",
            remedy="it was changed outside Tallybook: restore the ledger from a backup",
            fixable=False,
        )
    ]
