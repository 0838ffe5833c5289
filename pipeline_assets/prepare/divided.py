"""The present documents of a workload with their parses, in divisions that are decided one by one.

Belongs here: dividing by checksum, so that memory does not grow with the archive. Does not belong
here: the decision (`candidates.py`).

Documents with the same bytes are in one division, which is all that the decision about one document
has to know of others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import polars as pl

from resources.artifacts import ArtifactStore
from resources.context import Context
from resources.ledger.parses import load_parses, stream_parses
from resources.ledger.source_snapshots import count_present, present_documents, stream_present
from resources.spilled import SpilledFrames, spilled_frames

UNDIVIDED = 100_000
"""So many documents are decided at once: about 100 MB with what is known of them."""
_FIRST_DIGITS = "0123456789abcdef"
_OTHERS = ""
"""The division of documents without a checksum, which are the same as no other one."""
_PARSE_COLUMNS = ("checksum", "excluded", "detail", "text_pack")

Division = tuple[pl.DataFrame, pl.DataFrame]
"""Documents (`source_snapshots.PRESENT_SCHEMA`), and checksum, excluded, detail and text_pack of
their parses."""


def divisions(context: Context, workload: str, parser_key: str) -> Iterator[Division]:
    """Every present document of a workload in exactly one division, with its parse if it has one.

    Args:
        context: with a ledger that stands still (`resources/one_moment.py`): a document that
            changes meanwhile would be in two divisions, or in none.
        workload: whose documents.
        parser_key: whose parses.
    """
    ledger = context.ledger
    if count_present(ledger, workload) <= UNDIVIDED:
        yield present_documents(ledger, workload), load_parses(ledger, parser_key, _PARSE_COLUMNS)
        return
    with ExitStack() as files:
        present = _divided(files, context.artifacts, stream_present(ledger, workload))
        parses = _divided(
            files, context.artifacts, stream_parses(ledger, parser_key, _PARSE_COLUMNS)
        )
        for digit, documents in present.items():
            yield _whole(documents).sort("document_id"), _whole(parses[digit])


def _divided(
    files: ExitStack, store: ArtifactStore, frames: Iterator[pl.DataFrame]
) -> dict[str, SpilledFrames]:
    found = {
        digit: files.enter_context(spilled_frames(store)) for digit in (*_FIRST_DIGITS, _OTHERS)
    }
    for frame in frames:
        digits = pl.col("checksum").str.slice(0, 1).fill_null(_OTHERS)
        for digit, part in found.items():
            part.add(frame.filter(digits == digit))
    return found


def _whole(frames: SpilledFrames) -> pl.DataFrame:
    return pl.concat(frames.each())
