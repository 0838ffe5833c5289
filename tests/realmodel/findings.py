"""What came of a walk: counts by outcome and rule, the share of right fields, single answers.

Belongs here: reading the ledger of the walk and the figures made of it. Does not belong here: the
walk (`walk.py`), what the labels mean (`tests/benchmarks/score_baseline.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from pipeline_assets.account.export import export_entries
from pipeline_assets.account.outcomes import outcomes
from pipeline_assets.providers import wire_of
from pipeline_assets.versions import OpenVersion
from resources.context import Context
from tests.benchmarks.score_baseline import ACCEPTED_STATES, Score, outcomes_by_file, score

LEAST_RIGHT = 0.99
"""Of the fields of accepted records, so many have to be as the label says."""
_REVIEW = "awaiting_review"


@dataclass(frozen=True)
class Findings:
    """The figures of a walk.

    Attributes:
        documents: files of the source.
        accepted: records that were accepted, published ones included.
        reviewed: records that wait for a person.
        stopped: why the others went no further → documents.
        rules: `rule (severity)` → records of any state that it spoke of.
        score: the accepted ones against their labels.
    """

    documents: int
    accepted: int
    reviewed: int
    stopped: dict[str, int]
    rules: dict[str, int]
    score: Score

    @property
    def fields(self) -> tuple[int, int]:
        """Right fields and all fields of accepted records that have a label."""
        parts = (self.score.titles, self.score.identifiers, self.score.languages)
        return sum(right for right, _ in parts), sum(every for _, every in parts)

    @property
    def good(self) -> bool:
        """Were enough of the accepted fields right? True where nothing was accepted."""
        right, every = self.fields
        return right >= LEAST_RIGHT * every


def find(context: Context, key: str, labels: Sequence[Mapping[str, Any]], prefix: str) -> Findings:
    """The figures of a version.

    Args:
        context: of the walk.
        key: the version.
        labels: of the documents.
        prefix: what their ids start with.
    """
    rows = list(outcomes(context, key))
    judged = outcomes_by_file([*rows, *export_entries(context, key)], labels, prefix)
    rules: Counter[str] = Counter()
    stopped: Counter[str] = Counter()
    states: Counter[str] = Counter()
    for row in rows:
        states[row["state"]] += 1
        rules.update({f"{found['rule']} ({found['severity']})" for found in row["findings"]})
        if row["state"] not in (*ACCEPTED_STATES, _REVIEW):
            stopped[f"{row['state']}: {row['reason']}"] += 1
    return Findings(
        documents=len(rows),
        accepted=sum(states[state] for state in ACCEPTED_STATES),
        reviewed=states[_REVIEW],
        stopped=dict(stopped),
        rules=dict(rules),
        score=score(labels, judged),
    )


def as_lines(found: Findings, labels: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The figures as lines of text; a document is named by its number among the labels alone."""
    yield f"documents {found.documents}"
    yield f"accepted {found.accepted}"
    yield f"waiting for a reviewer {found.reviewed}"
    yield f"stopped {sum(found.stopped.values())}"
    yield from _counted(found.stopped)
    yield "records by rule"
    yield from _counted(found.rules)
    right, every = found.fields
    share = f"{right / every:.1%}" if every else "nothing was accepted that has a label"
    yield f"fields of accepted records that are right: {right} of {every} ({share})"
    numbers = {label["file"]: number for number, label in enumerate(labels, start=1)}
    for miss in found.score.misses:
        yield f"  wrong {miss.field} in document {numbers[miss.file]}"


def _counted(counts: Mapping[str, int]) -> Iterable[str]:
    for name, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
        yield f"  {count:>4} {name}"


def answers(context: Context, version: OpenVersion) -> Iterator[dict[str, Any]]:
    """One row a document of a version: document_id, state, reason, findings, finish, answer.

    The rows hold text of the documents: they are for the person who runs this, and are kept
    nowhere unless that person says where.
    """
    said = _said(context, version)
    for row in outcomes(context, version.spec.key):
        finish, text = said.get(row["document_id"], (None, None))
        wanted = ("document_id", "state", "reason", "findings")
        yield {name: row[name] for name in wanted} | {"finish": finish, "answer": text}


def _said(context: Context, version: OpenVersion) -> dict[str, tuple[str | None, str | None]]:
    """Document → how its answer ended, and its text, of its newest attempt."""
    with context.ledger.read() as connection:
        rows = context.ledger.dialect.fetch(
            connection,
            "SELECT d.document_id, f.artifact, r.line_offset, r.line_length FROM results r "
            "JOIN result_files f ON f.result_file_no = r.result_file_no "
            "JOIN attempts a ON a.attempt_no = r.attempt_no "
            "JOIN records c ON c.record_no = a.record_no "
            "JOIN documents d ON d.document_no = c.document_no "
            "WHERE c.version_no = ? ORDER BY a.attempt_no",
            {
                "document_id": pl.String,
                "artifact": pl.String,
                "line_offset": pl.Int64,
                "line_length": pl.Int64,
            },
            (version.version_no,),
        )
    wire = wire_of(version)
    found: dict[str, tuple[str | None, str | None]] = {}
    for document, artifact, offset, length in rows.iter_rows():
        with context.artifacts.open("result", artifact) as stream:
            stream.seek(offset)
            line = wire.read_line(stream.read(length).rstrip(b"\n"))
        found[document] = (line.finish_reason, line.text)
    return found
