"""Up to which move the spans of a version were given to an exporter.

Belongs here: reading and setting the marks, and how far one may be set. Does not belong here: which
records are told (`pipeline_assets/tracing`).
"""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl
from sqlalchemy import Connection, insert, select, update

from resources.clock import to_text
from resources.ledger.dialect import Dialect
from resources.ledger.schema import trace_marks

NOTHING_YET = 0
"""Below every move number: no span was given yet."""
GAP_PATIENCE = timedelta(minutes=15)
"""A number that is missing between two moves is of a transaction that was undone, or of one that is
still open. None is open for so long."""


def read_mark(connection: Connection, exporter: str, version_no: int) -> int:
    """The newest move that an exporter was told of; `NOTHING_YET` before the first time."""
    found = connection.execute(
        select(trace_marks.c.move_no).where(
            trace_marks.c.exporter == exporter, trace_marks.c.version_no == version_no
        )
    ).scalar_one_or_none()
    return NOTHING_YET if found is None else int(found)


def set_mark(
    connection: Connection, exporter: str, version_no: int, move_no: int, exported_at: str
) -> None:
    """Remember that an exporter was told of every move up to this one."""
    values = {"move_no": move_no, "exported_at": exported_at}
    changed = connection.execute(
        update(trace_marks)
        .where(trace_marks.c.exporter == exporter, trace_marks.c.version_no == version_no)
        .values(values)
    ).rowcount
    if not changed:
        connection.execute(
            insert(trace_marks).values(exporter=exporter, version_no=version_no, **values)
        )


def settled_up_to(connection: Connection, dialect: Dialect, mark: int, now: datetime) -> int:
    """The newest move below which no other can appear any more; the mark itself if none is new.

    Numbers are drawn before transactions end, so on PostgreSQL a smaller one may appear after a
    larger one; a mark that had passed it would leave its records out for good.
    """
    found = dialect.fetch(
        connection,
        "SELECT move_no, moved_at FROM moves WHERE move_no > ? ORDER BY move_no",
        {"move_no": pl.Int64, "moved_at": pl.String},
        (mark,),
    )
    if found.is_empty():
        return mark
    patient_until = to_text(now - GAP_PATIENCE)
    # At the very start numbers need not begin at 1: only gaps between moves count.
    first = found["move_no"][0] - 1 if mark == NOTHING_YET else mark
    open_gaps = found.filter(
        (pl.col("move_no") - pl.col("move_no").shift(1, fill_value=first) > 1)
        & (pl.col("moved_at") > patient_until)
    )
    last = int(found["move_no"][-1])
    if open_gaps.is_empty():
        return last
    before = found.filter(pl.col("move_no") < open_gaps["move_no"][0])
    return mark if before.is_empty() else int(before["move_no"][-1])
