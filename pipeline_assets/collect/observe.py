"""Reading result files into one frame of observed lines.

Belongs here: line by line decoding and classification; one bad line is one bad line. Does not
belong here: matching lines with the manifest (`reconcile.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import BinaryIO

import polars as pl

from pipeline_assets.failures import Verdict, classify
from pipeline_assets.workloads.workload import Repair
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
    "repairs": pl.List(
        pl.Struct(
            {
                "rule": pl.String,
                "rule_version": pl.Int64,
                "before_digest": pl.String,
                "after_digest": pl.String,
            }
        )
    ),
}
"""One row a line; `custom_id` is null for a malformed one; `reference` is what the answer of a
success calls its document, null where it does not say; `body` tells equal lines from others;
`repairs` is what was mended in the answer's form, in order, null for nearly all."""

_READ_SCHEMA = {name: dtype for name, dtype in OBSERVED_SCHEMA.items() if name != "reference"}

MODEL_REVISION_LENGTH = 128


def observe(
    provider: ResultReader,
    check_answer: Callable[[str], str],
    result_file_no: int,
    stream: BinaryIO,
    *,
    echoed: Callable[[pl.Expr], pl.Expr] | None = None,
    repairs: Sequence[Repair] = (),
) -> pl.DataFrame:
    """Every line of a result file (`OBSERVED_SCHEMA`), in file order.

    Args:
        provider: reads its lines.
        check_answer: the workload's (`Workload.check_answer`).
        result_file_no: the file's number.
        stream: its bytes.
        echoed: the workload's (`Workload.echoed`); without it every `reference` is null.
        repairs: of an answer's form, those of the version's acceptance.
    """
    rows = []
    for line in split_lines(stream):
        place = (result_file_no, line.number, line.offset, len(line.data))
        try:
            result = provider.read_line(line.data)
        except MalformedLine as error:
            rows.append((*place, None, None, None, str(error), None, _mark(line.data), *[None] * 5))
            continue
        verdict = classify(result, check_answer, repairs)
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
                _told_repairs(verdict) if verdict.repairs else None,
            )
        )
    frame = frame_of(rows, _READ_SCHEMA)
    # For the whole column at once: a second decoding of every line would cost far more.
    reference = pl.lit(None, pl.String) if echoed is None else echoed(pl.col("answer"))
    return frame.with_columns(reference=reference).select(list(OBSERVED_SCHEMA))


def _told_repairs(verdict: Verdict) -> list[dict[str, object]]:
    return [
        {
            "rule": made.rule,
            "rule_version": made.version,
            "before_digest": made.before,
            "after_digest": made.after,
        }
        for made in verdict.repairs
    ]


def _storable(name: str | None) -> str | None:
    """A provider's own text, cut to its column and without what no database takes."""
    return None if name is None else name.replace("\0", "")[:MODEL_REVISION_LENGTH]


def _mark(data: bytes) -> int:
    """A mark that equal lines share; only compared within one run."""
    return hash(data) & 0xFFFFFFFFFFFFFFFF
