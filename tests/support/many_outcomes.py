"""Make a report over many records in a process of its own, and tell its time and memory.

`python -m tests.support.many_outcomes FOLDER RECORDS` prints one JSON object. The ledger is filled
by a few set-based statements: records that were asked about once and accepted, in one batch.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from pipeline_assets.account.reconciliation.kept import made_report
from resources.context import Context, open_context
from resources.settings import Settings
from tests.support.clock import FrozenClock
from tests.support.small_archive import KEY, Archive, fill_folder

_NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {records}) "
_AT = "'2026-11-30T01:02:03.000004Z'"
_HEX = "printf('%064x', 1000000 + i)"
_FILL = (
    "INSERT INTO documents SELECT 1000000 + i, printf('manuals/many/%07d.pdf', i), 1, {at} FROM n",
    "INSERT INTO source_versions SELECT 1000000 + i, 1000000 + i, {hex}, 100, {at} FROM n",
    "INSERT INTO source_entries (entry_no, document_no, from_snapshot, source_version_no, size, "
    "mtime_ns, device, inode, scanned_at_ns, detail) "
    "SELECT 1000000 + i, 1000000 + i, 1, 1000000 + i, 100, 0, '', '', 0, '' FROM n",
    "INSERT INTO records SELECT 1000000 + i, "
    "printf('equipment_manuals:manuals/many/%07d.pdf@%012x:{key}', i, i), 1, 1000000 + i, "
    "1000000 + i, {hex}, 'extract', 'by document', 1 FROM n",
    "INSERT INTO record_state SELECT 1000000 + i, CASE WHEN i % 10 THEN 'accepted' ELSE "
    "'dead_letter' END, 1, 0, NULL FROM n",
    "INSERT INTO attempts SELECT 1000000 + i, 1, 1000000 + i, 1, 'first', {hex}, 0, 0, NULL FROM n",
    "INSERT INTO dispositions (attempt_no, disposition, diagnostics) "
    "SELECT 1000000 + i, 'succeeded', '' FROM n",
    "INSERT INTO judgements SELECT 1000000 + i, 1000000 + i, 'accepted', {hex} FROM n",
    "INSERT INTO move_members SELECT 1, 1000000 + i FROM n",
)


def fill(context: Context, records: int) -> None:
    """Add so many records to the ledger of a small archive."""
    with context.ledger.write() as connection:
        for statement in _FILL:
            table, rest = statement.split("SELECT", 1)
            made = f"{table}{_NUMBERS.format(records=records)}SELECT{rest}"
            connection.exec_driver_sql(made.format(at=_AT, hex=_HEX, key=KEY).replace("{", ""))
        connection.exec_driver_sql(
            f"UPDATE batches SET first_attempt_no = 1, last_attempt_no = {1_000_000 + records}"
        )


def main(folder: Path, records: int) -> None:
    """Fill a ledger, make a report and print what it took."""
    place, clock = folder / "documents", FrozenClock()
    with open_context(Settings(state=folder / "state", source=place), clock=clock) as context:
        archive = Archive(place, context.settings, context, clock)
        fill_folder(archive)
        archive.process()
        fill(context, records)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started, used = time.monotonic(), time.process_time()
        with made_report(context, KEY) as made:
            rows = made.report.details.outcomes.rows
            size = made.outcomes.stat().st_size
    found = {
        "rows": rows,
        "seconds": round(time.monotonic() - started, 1),
        "cpu_seconds": round(time.process_time() - used, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "before_mb": before // 1024,
        "table_mb": round(size / 1e6, 1),
    }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
