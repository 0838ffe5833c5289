"""Is there room for a manifest: asked before anything of it is written.

Belongs here: what a manifest's records will need, and the refusal. Does not belong here: measuring
records and disks (`pipeline_assets/disk_room.py`), and telling of them (`account/disk.py`).

A manifest that runs out of disk halfway leaves a provider's paid results without a place. So the
records are counted with all that they will cost up to the archive, not with their requests alone.
"""

from __future__ import annotations

from pipeline_assets.disk_room import (
    ARTIFACTS,
    LEDGER,
    LEDGER_BYTES,
    MEGABYTE,
    RecordBytes,
    measure_records,
    volumes,
)
from resources.context import Context

TYPICAL = RecordBytes(request=2074.1, result=823.9, frame=121.9, ledger=LEDGER_BYTES)
"""Bytes a record where a version has none of its own yet: measured on 50,000 documents of the
benchmark's synthetic archive (two pages, 270 words; `tests/benchmarks/synthetic.py`) on SQLite,
from the scan to the archive. Longer documents have longer requests, which their first manifest
then shows."""
MANIFEST_BYTES = 88.3
"""Bytes a record of the manifest's own file, measured on the same."""


class NotEnoughRoom(Exception):
    """A disk has no room for a manifest and all that follows from it."""

    def __init__(self, records: int, place: str, shortage: str) -> None:
        super().__init__(
            f"the disk of {place} has no room for {records} more "
            f"{'record' if records == 1 else 'records'}: {shortage}. Free some space, give "
            "another folder with --state, or lower TALLYBOOK_DISK_RESERVE_MB; then run the same "
            "command again. Nothing was written."
        )


def require_room(context: Context, version_no: int, records: int, *, spooled: bool) -> None:
    """Refuse a manifest that a disk has no room for. A database server's disk is not known.

    Args:
        context: the open resources.
        version_no: the version.
        records: in the manifest.
        spooled: request bodies are written twice, the first time for as long as they are split.

    Raises:
        NotEnoughRoom: less than the reserve would stay free.
    """
    with context.ledger.read() as connection:
        measured = measure_records(connection, context.ledger, context.artifacts, version_no)
    needed = needed_for(records, or_typical(measured), spooled=spooled)
    reserve = context.settings.disk_reserve_mb * MEGABYTE
    for volume in volumes(context):
        if volume.free is None:
            continue
        shortage = decide_room(sum(needed[held] for held in volume.holds), volume.free, reserve)
        if shortage is not None:
            raise NotEnoughRoom(records, " and ".join(volume.holds), shortage)


def or_typical(measured: RecordBytes) -> RecordBytes:
    """What a version's own records cost; part by part what is typical, where none did yet."""
    return RecordBytes(
        request=TYPICAL.request if measured.request is None else measured.request,
        result=TYPICAL.result if measured.result is None else measured.result,
        frame=TYPICAL.frame if measured.frame is None else measured.frame,
        ledger=measured.ledger,
    )


def needed_for(records: int, sizes: RecordBytes, *, spooled: bool) -> dict[str, int]:
    """Bytes that records need at their peak, for `artifacts` and `ledger`.

    A part that `sizes` does not know counts as nothing.
    """
    request, later = sizes.request or 0, (sizes.result or 0) + (sizes.frame or 0)
    # The spool is gone before the first result comes.
    beside = max(request, later) if spooled else later
    return {
        ARTIFACTS: round(records * (MANIFEST_BYTES + request + beside)),
        LEDGER: round(records * sizes.ledger),
    }


def decide_room(needed: int, free: int, reserve: int) -> str | None:
    """What is missing, as a sentence; None where the reserve stays free."""
    if free - needed >= reserve:
        return None
    return (
        f"about {_told(needed)} are needed and {_told(free)} are free, of which {_told(reserve)} "
        "are to stay free"
    )


def _told(size: int) -> str:
    return f"{size / MEGABYTE:,.0f} MB" if size >= MEGABYTE else f"{size / 1000:,.0f} kB"
