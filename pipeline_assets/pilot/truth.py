"""Answers held against values that are known: reading the file, and scoring.

Belongs here: what counts as right, field by field. Does not belong here: where answers come from
(`facts.py`).

A value is right exactly where it is equal character by character, and right in form where it is the
same words written otherwise (letter case, dashes, white space: `text_folding.fold`). A list is
compared as a set, and as a whole. What the file does not say of a document is not scored.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from pipeline_assets.pilot.errors import TruthUnreadable
from pipeline_assets.workloads.fields import value_columns
from pipeline_assets.workloads.text_folding import fold
from pipeline_assets.workloads.workload import PublishedField

DOCUMENT = "document_id"
BETWEEN = "|"
"""Between the values of a list in a cell of a table."""

Values = tuple[str, ...]
Truth = Mapping[str, Mapping[str, Values]]
"""document_id → field → its values; none where the field is known to be absent."""


@dataclass(frozen=True)
class FieldScore:
    """How right the answers of one field are.

    Attributes:
        field: its name.
        known: answered documents of which the file says something for this field.
        exact: right character by character.
        form: right, but for form.
        wrong: another value.
        missing: no value, where there is one.
        invented: a value, where there is none.
    """

    field: str
    known: int = 0
    exact: int = 0
    form: int = 0
    wrong: int = 0
    missing: int = 0
    invented: int = 0

    @property
    def right(self) -> int:
        """Right, exactly or but for form."""
        return self.exact + self.form


@dataclass(frozen=True)
class Score:
    """How right a version's answers are.

    Attributes:
        documents: accepted documents that the file says something of.
        unanswered: documents of the file that were taken and are not accepted.
        fields: scores over accepted documents, in the order of the workload.
    """

    documents: int
    unanswered: int
    fields: tuple[FieldScore, ...]


def read_truth(file: Path, fields: Sequence[PublishedField]) -> Truth:
    """Known values from JSON lines or a CSV table.

    In JSON a missing member is not known, and null or an empty list is known to be absent. In a
    table an empty cell is not known; values of a list stand in one cell with `|` between them.

    Raises:
        TruthUnreadable: it cannot be read, names a document twice, or says nothing of any field.
        OSError: it cannot be opened.
    """
    rows = _csv_rows(file) if file.suffix.lower() == ".csv" else _json_rows(file)
    names = [field.name for field in fields]
    found: dict[str, dict[str, Values]] = {}
    for number, row in enumerate(rows, start=1):
        document = row.get(DOCUMENT)
        if not isinstance(document, str) or not document:
            raise TruthUnreadable(file, f"row {number} has no {DOCUMENT}")
        if document in found:
            raise TruthUnreadable(file, f"row {number} names a document a second time")
        found[document] = {
            name: _values(file, number, name, row[name]) for name in names if name in row
        }
    if not any(found.values()):
        raise TruthUnreadable(file, f"it has none of the fields {', '.join(names)}")
    return found


def _csv_rows(file: Path) -> list[dict[str, Any]]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            return [
                {
                    name: cell if name == DOCUMENT else cell.split(BETWEEN)
                    for name, cell in row.items()
                    if name is not None and isinstance(cell, str) and cell != ""
                }
                for row in csv.DictReader(stream, strict=True)
            ]
    except (csv.Error, UnicodeDecodeError) as error:
        raise TruthUnreadable(file, f"it is no UTF-8 table ({type(error).__name__})") from error


def _json_rows(file: Path) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(file.read_bytes().split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            row = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise TruthUnreadable(file, f"line {number} is no JSON") from error
        if not isinstance(row, dict):
            raise TruthUnreadable(file, f"line {number} is no JSON object")
        rows.append(row)
    return rows


def _values(file: Path, number: int, name: str, given: object) -> Values:
    values = given if isinstance(given, list) else [] if given is None else [given]
    if not all(isinstance(value, str) for value in values):
        raise TruthUnreadable(file, f"row {number}: {name} is no text and no list of texts")
    return tuple(str(value) for value in values if value != "")


def score(
    truth: Truth, answers: pl.DataFrame, taken: Sequence[str], fields: Sequence[PublishedField]
) -> Score:
    """Hold accepted answers against known values.

    Args:
        truth: what is known.
        answers: document_id and content (JSON) of accepted documents.
        taken: ids of the documents of the pilot.
        fields: of the workload.
    """
    known = answers.filter(pl.col(DOCUMENT).is_in(list(truth)))
    values = value_columns(known["content"], fields)
    documents = known[DOCUMENT].to_list()
    scores = tuple(
        _score_field(
            field.name,
            [truth[document].get(field.name) for document in documents],
            [_as_values(value) for value in values[field.name]],
        )
        for field in fields
    )
    sampled = len(set(taken) & set(truth))
    return Score(len(documents), sampled - len(documents), scores)


def _as_values(value: Any) -> Values:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def _score_field(
    name: str, expected: Sequence[Values | None], found: Sequence[Values]
) -> FieldScore:
    judged = Counter(
        judge(wanted, got)
        for wanted, got in zip(expected, found, strict=True)
        if wanted is not None
    )
    return FieldScore(
        name,
        judged.total(),
        exact=judged["exact"],
        form=judged["form"],
        wrong=judged["wrong"],
        missing=judged["missing"],
        invented=judged["invented"],
    )


def judge(wanted: Values, got: Values) -> str:
    """`exact`, `form`, `wrong`, `missing` or `invented`; both empty is `exact`."""
    if set(wanted) == set(got):
        return "exact"
    if not got:
        return "missing"
    if not wanted:
        return "invented"
    return (
        "form" if {fold(value) for value in wanted} == {fold(value) for value in got} else "wrong"
    )
