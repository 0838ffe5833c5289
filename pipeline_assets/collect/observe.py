"""Reading result files into one frame of observed lines.

Belongs here: line by line decoding and classification; one bad line is one bad line. Does not
belong here: matching lines with the manifest (`reconcile.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

import polars as pl

from pipeline_assets.failures import classify
from resources.ledger.frames import frame_of
from resources.providers.port import MalformedLine, ResultReader, split_lines

OBSERVED_SCHEMA = {
    "result_file_no": pl.Int64,
    "line": pl.Int64,
    "line_offset": pl.Int64,
    "line_length": pl.Int64,
    "custom_id": pl.String,
    "disposition": pl.String,
    "failure_class": pl.String,
    "diagnostics": pl.String,
    "answer": pl.String,
    "reference": pl.String,
    "body": pl.UInt64,
    "model_revision": pl.String,
    "input_tokens": pl.Int64,
    "output_tokens": pl.Int64,
    "cached_tokens": pl.Int64,
}
"""One row a line; `custom_id` is null for a malformed one; `reference` is what the answer of a
success calls its document, null where it does not say; `body` tells equal lines from others."""

_READ_SCHEMA = {name: dtype for name, dtype in OBSERVED_SCHEMA.items() if name != "reference"}

MODEL_REVISION_LENGTH = 128


def observe(
    provider: ResultReader,
    check_answer: Callable[[str], str],
    result_file_no: int,
    stream: BinaryIO,
    *,
    echoed: Callable[[pl.Expr], pl.Expr] | None = None,
) -> pl.DataFrame:
    """Every line of a result file (`OBSERVED_SCHEMA`), in file order.

    Args:
        provider: reads its lines.
        check_answer: the workload's (`Workload.check_answer`).
        result_file_no: the file's number.
        stream: its bytes.
        echoed: the workload's (`Workload.echoed`); without it every `reference` is null.
    """
    rows = []
    for line in split_lines(stream):
        place = (result_file_no, line.number, line.offset, len(line.data))
        try:
            result = provider.read_line(line.data)
        except MalformedLine as error:
            rows.append((*place, None, None, None, str(error), None, _mark(line.data), *[None] * 4))
            continue
        verdict = classify(result, check_answer)
        rows.append(
            (
                *place,
                result.custom_id,
                verdict.disposition,
                verdict.failure_class,
                verdict.diagnostics,
                verdict.answer,
                _mark(line.data),
                _storable(result.model_revision),
                result.input_tokens,
                result.output_tokens,
                result.cached_tokens,
            )
        )
    frame = frame_of(rows, _READ_SCHEMA)
    # For the whole column at once: a second decoding of every line would cost far more.
    reference = pl.lit(None, pl.String) if echoed is None else echoed(pl.col("answer"))
    return frame.with_columns(reference=reference).select(list(OBSERVED_SCHEMA))


def _storable(name: str | None) -> str | None:
    """A provider's own text, cut to its column and without what no database takes."""
    return None if name is None else name.replace("\0", "")[:MODEL_REVISION_LENGTH]


def _mark(data: bytes) -> int:
    """A mark that equal lines share; only compared within one run."""
    return hash(data) & 0xFFFFFFFFFFFFFFFF
