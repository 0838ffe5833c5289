"""Erasing a document: first nobody sees it any more, then file by file nothing of it is left.

Belongs here: the order of the steps, and what of each file goes. Does not belong here: the
decision (`plan.py`), edited copies (`edits.py`) and the ledger's rows
(`resources/ledger/erasures.py`).

One transaction withdraws the records, empties the archive and writes the tombstone. After it the
files are changed one at a time; whoever dies in between leaves an erasure without an end, which
`tallybook doctor` tells and the same command finishes. Erasing once more looks for what came back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
import polars as pl
from sqlalchemy import Connection

from pipeline_assets.erasure.edits import (
    blank_ranges,
    count_rows,
    marked_ranges,
    unblanked,
    without_rows,
)
from pipeline_assets.erasure.plan import ErasurePlan, ErasureRefused, plan_erasure
from resources.artifacts import GONE, Kind
from resources.context import Context
from resources.ledger.archive import lock_archive
from resources.ledger.erasures import (
    Begun,
    Purged,
    attempts_of_document,
    begin_erasure,
    custom_id_parts,
    erasure_of,
    frame_artifacts,
    kept_at_provider,
    look_through_again,
    note_purged,
    note_redaction,
    request_ranges,
    result_artifacts,
    result_ranges,
    standing_of_document,
    still_named,
    texts_in_use,
    versions_of_document,
)
from resources.ledger.leases import Heartbeat, Lease, fence, fenced, held, seal
from resources.ledger.moves import Cause
from resources.record_ids import custom_id, reference

LEASE = "maintenance"
"""Two erasures, or an erasure and a pruning, would change the same files; a backup copies them."""


@dataclass(frozen=True)
class EraseReport:
    """What an erasure took away, or would take away.

    Attributes:
        document_id: the document.
        erasure_no: its number; None for a trial.
        begun_before: it was begun earlier: this time it was finished, or looked through again.
        plan: what was decided; empty for one that was begun before.
        purged: what went, in all.
        at_provider: batches whose files are still at their provider.
        left: what whoever runs the database has to do; None for nothing.
    """

    document_id: str
    erasure_no: int | None
    begun_before: bool
    plan: ErasurePlan
    purged: Purged
    at_provider: tuple[str, ...]
    left: str | None


def trial(context: Context, document_no: int, document_id: str) -> EraseReport:
    """What erasing a document would do; reads only."""
    with context.ledger.read() as connection:
        plan = plan_erasure(standing_of_document(connection, context.ledger, document_no))
        begun = erasure_of(connection, document_no)
        remote = kept_at_provider(connection, context.ledger, document_no)
    return EraseReport(
        document_id,
        None if begun is None else begun.erasure_no,
        begun is not None,
        plan,
        Purged() if begun is None else begun.purged,
        tuple(remote),
        None,
    )


def erase(
    context: Context, document_no: int, document_id: str, reason: str, actor: str
) -> EraseReport:
    """Erase a document, or finish an erasure that was begun.

    Args:
        context: the open resources.
        document_no: the document.
        document_id: the same for messages.
        reason: why; it is kept.
        actor: who wants it.

    Raises:
        ErasureRefused: it is under way in a batch; nothing was changed.
        LeaseHeld: a manifest of its workload is being frozen, or another erasure, a pruning or a
            backup is under way.
        MoveRefused: a record of it moved in this moment; nothing was changed.
        ArtifactDamaged: a file is not what was stored; what was purged before stays so.
        ArtifactStoreFull, StorageFull: the disk is full; the same command goes on from there.
    """
    with held(context.ledger, LEASE, context.worker) as lease:
        begun, plan = _begin(context, document_no, document_id, reason, actor)
        purged = _purge_files(context, lease, begun)
        left = context.ledger.forget_deleted()
        with fenced(context.ledger, lease) as connection:
            ended = begun.finished_at or context.ledger.now()
            note_purged(connection, begun.erasure_no, purged, ended)
            remote = kept_at_provider(connection, context.ledger, document_no)
    return EraseReport(
        document_id,
        begun.erasure_no,
        plan is None,
        plan or ErasurePlan((), (), {}, {}),
        purged,
        tuple(remote),
        left,
    )


def _begin(
    context: Context, document_no: int, document_id: str, reason: str, actor: str
) -> tuple[Begun, ErasurePlan | None]:
    """The erasure to carry out, and its plan where it begins now."""
    ledger = context.ledger
    with ExitStack() as stack:
        with ledger.read() as connection:
            keys = versions_of_document(connection, ledger, document_no)
        # Whoever freezes a manifest now would make a request of the document after the fact.
        leases = [
            stack.enter_context(held(ledger, f"manifest:{key}", context.worker)) for key in keys
        ]
        with ledger.write() as connection:
            for lease in leases:
                fence(connection, ledger, lease)
            lock_archive(connection, ledger)
            begun = erasure_of(connection, document_no)
            standing = standing_of_document(connection, ledger, document_no)
            plan = plan_erasure(standing)
            if plan.obstacles:
                raise ErasureRefused(document_id, plan.obstacles)
            if begun is not None and not plan.withdrawn:
                return look_through_again(connection, ledger, begun, standing), None
            cause = Cause(reason, actor, ledger.now(), "erase")
            begun = begin_erasure(
                connection,
                ledger,
                document_no,
                standing,
                plan.checksums,
                tuple(plan.shared),
                cause,
            )
            for lease in leases:
                seal(connection, lease)
    return begun, plan


def _purge_files(context: Context, lease: Lease, begun: Begun) -> Purged:
    """Every file that holds something of the document; idempotent, one file at a time."""
    heart = Heartbeat(context.ledger, lease)
    counts = begun.purged
    sweep = _Sweep(context, begun)
    for step in sweep.steps():
        done = step()
        heart.beat()
        if done is None:
            continue
        counts = _counted(counts, done)
        with fenced(context.ledger, lease) as connection:
            note_purged(connection, begun.erasure_no, counts, begun.finished_at)
    return counts


@dataclass(frozen=True)
class _Done:
    """What a step did: files changed or deleted, bytes taken out, files that were not there."""

    artifacts: int = 0
    bytes: int = 0
    missing: int = 0


def _counted(purged: Purged, done: _Done) -> Purged:
    """The counts of an erasure after one more step."""
    return msgspec.structs.replace(
        purged,
        artifacts=purged.artifacts + done.artifacts,
        bytes=purged.bytes + done.bytes,
        missing=purged.missing + done.missing,
    )


@dataclass(frozen=True)
class _Sweep:
    """The steps of one erasure."""

    context: Context
    begun: Begun

    def steps(self) -> Iterator[Callable[[], _Done | None]]:
        """One a file; None of a step means that there was nothing to do."""
        ledger, number = self.context.ledger, self.begun.document_no
        with ledger.read() as connection:
            requests = request_ranges(connection, ledger, number)
            results = result_ranges(connection, ledger, number)
            files = result_artifacts(connection, ledger, number)
            frames = frame_artifacts(connection, ledger, number)
            attempts = attempts_of_document(connection, ledger, number).to_list()
            marks = self._marks(connection)
            images = [
                digest
                for digest in self.begun.purged.thumbnails
                if not still_named(connection, digest)
            ]
        for checksum in self.begun.purged.checksums:
            yield partial(self._delete, "source", checksum)
        for digest in images:
            yield partial(self._delete, "thumbnail", digest)
        for digest in self.begun.purged.text_packs:
            yield partial(self._drop_texts, digest)
        for (artifact,), part in requests.group_by("artifact", maintain_order=True):
            yield partial(self._blank, "request", str(artifact), _pairs(part), [])
        for artifact in files:
            own = results.filter(pl.col("artifact") == artifact)
            yield partial(self._blank, "result", artifact, _pairs(own), marks)
        for artifact in frames:
            yield partial(self._drop_rows, "frame", artifact, "attempt_no", attempts)

    def _marks(self, connection: Connection) -> list[bytes]:
        """What a line about the document holds, whatever id it came under."""
        ledger, number = self.context.ledger, self.begun.document_no
        records = standing_of_document(connection, ledger, number).records
        ids = custom_id_parts(connection, ledger, number)
        return [
            *(reference(record_id).encode() for record_id in records["record_id"]),
            # In quotes: the id of the first attempt begins that of the tenth.
            *(f'"{custom_id(key, index)}"'.encode() for key, index in ids.iter_rows()),
        ]

    def _delete(self, kind: Kind, digest: str) -> _Done | None:
        """A whole file; the ledger says before that it is gone."""
        store = self.context.artifacts
        if not store.has(kind, digest):
            return None
        self._announce(kind, digest)(GONE)
        return _Done(1, store.remove(kind, digest))

    def _drop_texts(self, digest: str) -> _Done | None:
        """The pages of the document; a pack with nothing else in it goes whole.

        A redacted pack without a row would stand in the way of the same pack of another document
        that has the same bytes one day.
        """
        store = self.context.artifacts
        if not store.has("text", digest):
            return None
        with self.context.ledger.read() as connection:
            in_use = texts_in_use(connection, self.context.ledger, digest)
        gone = [name for name in self.begun.purged.checksums if name not in in_use]
        found, total = count_rows(store.path("text", digest), "checksum", gone)
        if found == total and not in_use:
            return self._delete("text", digest)
        return self._drop_rows("text", digest, "checksum", gone)

    def _drop_rows(
        self, kind: Kind, digest: str, column: str, values: Sequence[str | int]
    ) -> _Done | None:
        store = self.context.artifacts
        if not store.has(kind, digest):
            return self._missing(kind, digest)
        path = store.path(kind, digest)
        found, _ = count_rows(path, column, values)
        if not found and not self._interrupted(kind, digest):
            return None
        before = path.stat().st_size
        self._redact(kind, digest, partial(without_rows, column=column, values=values))
        return _Done(1, max(0, before - path.stat().st_size))

    def _blank(
        self, kind: Kind, digest: str, ranges: list[tuple[int, int]], marks: list[bytes]
    ) -> _Done | None:
        """Its own lines, and lines under other ids that name it: an answer that went astray."""
        store = self.context.artifacts
        if not store.has(kind, digest):
            return self._missing(kind, digest)
        path = store.path(kind, digest)
        wanted = unblanked(path, sorted({*ranges, *marked_ranges(path, marks)}))
        if not wanted and not self._interrupted(kind, digest):
            return None
        self._redact(kind, digest, partial(blank_ranges, ranges=wanted))
        return _Done(1, sum(length for _, length in wanted))

    def _interrupted(self, kind: Kind, digest: str) -> bool:
        """Did an earlier try end between the file and its sidecar?"""
        beside = self.context.artifacts.sidecar(kind, digest)
        return beside is not None and beside.before is not None

    def _missing(self, kind: Kind, digest: str) -> _Done | None:
        """A file that was pruned is no loss; one that is lost is told with the rest."""
        pruned = self.context.artifacts.pruned_at(kind, digest)
        return None if pruned is not None else _Done(missing=1)

    def _redact(self, kind: Kind, digest: str, edit: Callable[[Path, Path], None]) -> None:
        self.context.artifacts.redact(
            kind, digest, edit, self.begun.erasure_no, self._announce(kind, digest)
        )

    def _announce(self, kind: Kind, digest: str) -> Callable[[str], None]:
        def announce(present: str) -> None:
            ledger = self.context.ledger
            with ledger.write() as connection:
                note_redaction(
                    connection, kind, digest, self.begun.erasure_no, present, ledger.now()
                )

        return announce


def _pairs(ranges: pl.DataFrame) -> list[tuple[int, int]]:
    return [(int(offset), int(length)) for offset, length in ranges[["offset", "length"]].rows()]
