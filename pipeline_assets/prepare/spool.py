"""Rendering the records of a manifest: every request body, kept in a file until it has a batch.

Belongs here: the walk over records and what is noted of each. Does not belong here: one body
(`pipeline_assets/prompting`), and which bodies share a batch (`plan.py`).

How many records fit into a batch is known only when all sizes are, and an archive's bodies do not
fit into memory: so they are spooled.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

import polars as pl

from pipeline_assets.prompting.render import DocumentRefused, Pages
from pipeline_assets.prompting.request_maker import RequestMaker
from resources.ledger.frames import frame_of
from resources.record_ids import reference

ASKED_SCHEMA = {
    "row": pl.Int64,
    "request_digest": pl.String,
    "body_offset": pl.Int64,
    "body_length": pl.Int64,
    "input_tokens": pl.Int64,
    "pages": pl.Int64,
    "pages_sent": pl.Int64,
    "tokens": pl.Int64,
    "redactions": pl.Int64,
}
"""One row a request: where its body is in the spool, and what of the document is in it.
`input_tokens` is the whole prompt, on the side of too many; `tokens` the document's text."""

REFUSED_SCHEMA = {"row": pl.Int64, "reason": pl.String, "detail": pl.String}


ROWS_KEPT_AT_ONCE = 25_000
"""So many rows about requests are put away together."""


def spool_bodies(
    maker: RequestMaker,
    slices: Iterator[list[tuple[str, Pages]]],
    spool: BinaryIO,
    keep: Callable[[pl.DataFrame], object],
    *,
    on_slice: Callable[[int], None],
) -> pl.DataFrame:
    """Render and ask about every record, a slice at a time.

    Args:
        maker: of the version.
        slices: record_id and pages of each record, in the order of the manifest.
        spool: where bodies are written, one after the other.
        keep: takes the requests (`ASKED_SCHEMA`), many at a time; `row` counts the records from 0.
        on_slice: called with the size of each finished slice.

    Returns:
        Records that cannot be sent (`REFUSED_SCHEMA`), with the same `row`.
    """
    rows: list[tuple[object, ...]] = []
    refused: list[tuple[int, str, str]] = []
    row, offset = 0, 0
    for part in slices:
        named = [(reference(name), pages) for name, pages in part]
        for (name, _), rendered in zip(named, maker.render(named), strict=True):
            if isinstance(rendered, DocumentRefused):
                refused.append((row, rendered.reason, str(rendered)))
            else:
                body = maker.body(name, rendered.text)
                spool.write(body)
                rows.append(
                    (
                        row,
                        hashlib.sha256(body).hexdigest(),
                        offset,
                        len(body),
                        maker.prompt_tokens(rendered),
                        rendered.pages,
                        rendered.pages_sent,
                        rendered.tokens,
                        rendered.redactions,
                    )
                )
                offset += len(body)
            row += 1
        if len(rows) >= ROWS_KEPT_AT_ONCE:
            keep(frame_of(rows, ASKED_SCHEMA))
            rows = []
        on_slice(len(part))
    if rows:
        keep(frame_of(rows, ASKED_SCHEMA))
    return frame_of(refused, REFUSED_SCHEMA)
