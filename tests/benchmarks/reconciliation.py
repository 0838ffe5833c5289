"""Reconciling a large batch in which one record in a hundred has each kind of anomaly.

`python -m tests.benchmarks.reconciliation --records 100000`. The lines are a real provider's, in
random order, read by the real adapter and checked by the reference workload. What was planted is
kept line by line and attempt by attempt, and compared with what was reported; beside the seconds
stands a plain left join of the same frames in the same run.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import polars as pl

from pipeline_assets.collect.observe import observe
from pipeline_assets.collect.reconcile import Reconciliation, reconcile
from pipeline_assets.workloads.equipment_manuals.columns import check_answer, echoed
from resources.garbage import without_garbage_collector
from resources.providers.openai.wire import OpenAIWire
from resources.record_ids import custom_id, reference

KEY, EARLIER_KEY, FOREIGN_KEY = "0123456789ab", "a0a0a0a0a0a0", "fedcba987654"
FIRST_ATTEMPT, EARLIER_ATTEMPT = 5_000_001, 1
SHARE = 100
"""One record in so many has a kind of anomaly; another one for each kind."""
RUNS = 5
SEED = 20
LIMIT_SECONDS = 5.0

_NAME, _ID = "REFERENCE", "CUSTOM-ID"
Lines = list[tuple[bytes, str | None]]


@dataclass(frozen=True)
class Planted:
    """A batch's lines, and what is wrong with them.

    Attributes:
        data: the result file.
        expected: attempt_no, record_no, reference, custom_id of the batch.
        earlier: custom_id, attempt_no, record_no, reference of the batch before it.
        anomalies: of each line, None for a plain one.
        outcomes: attempt_no, outcome: the failure class of each attempt, or `succeeded`.
        late: attempts of `earlier` whose result comes in, in order.
    """

    data: bytes
    expected: pl.DataFrame
    earlier: pl.DataFrame
    anomalies: list[str | None]
    outcomes: pl.DataFrame
    late: list[int]


@dataclass(frozen=True)
class Measured:
    """What a run came to.

    Attributes:
        lines: in the result file.
        observe_seconds: reading and checking them, once.
        reconcile_seconds: the best of several runs.
        join_seconds: of a plain left join of the same frames, the best of several runs.
        planted: kind → count, as planted.
        reported: kind → count, as reported.
        exact: every line, attempt and late result is reported as it was planted.
    """

    lines: int
    observe_seconds: float
    reconcile_seconds: float
    join_seconds: float
    planted: dict[str, int]
    reported: dict[str, int]
    exact: bool

    @property
    def ratio(self) -> float:
        """How many times the plain join's seconds reconciling takes."""
        return self.reconcile_seconds / self.join_seconds


class _Writer:
    """Writes result lines; only the id, the reference and a number differ between them."""

    def __init__(self) -> None:
        field = {
            "value": "Circulation Pump User Manual",
            "status": "found",
            "evidence": [{"page": 1, "quote": "Circulation Pump User Manual XT-1000"}],
        }
        answer = {
            "document": _NAME,
            "title": field,
            "product_identifiers": [field],
            "language": field,
            "description": field,
        }
        choice = {"message": {"content": json.dumps(answer)}, "finish_reason": "stop"}
        body = {
            "model": "model-2026",
            "choices": [choice],
            "usage": {"prompt_tokens": 900, "completion_tokens": 120},
        }
        response = {"status_code": 200, "request_id": "r", "body": body}
        line = json.dumps({"id": "b", "custom_id": _ID, "response": response, "error": None})
        before, rest = line.split(_ID)
        between, after = rest.split(_NAME)
        self._parts = (before, between, after)

    def line(self, name: str, echo: str) -> bytes:
        before, between, after = self._parts
        return f"{before}{name}{between}{echo}{after}".encode()


def plant(records: int, seed: int = SEED) -> Planted:
    """A batch of so many records, each kind of anomaly at one in a hundred of them."""
    rng = random.Random(seed)
    share = records // SHARE
    references = [reference(f"record-{index}") for index in range(records)]
    order = list(range(records))
    rng.shuffle(order)
    kinds = ("missing", "torn", "twice", "conflict", "misrouted", "late", "unknown")
    chosen = {kind: order[at * share : (at + 1) * share] for at, kind in enumerate(kinds)}
    lines = list(_lines(references, chosen))
    rng.shuffle(lines)
    data = b"\n".join(line for line, _ in lines) + b"\n"
    expected = _attempts(references, range(records), KEY, FIRST_ATTEMPT)
    # All that are tried again now, a few of which answer late.
    retried = order[5 * share : 8 * share]
    return Planted(
        data=data,
        expected=expected,
        earlier=_attempts(references, retried, EARLIER_KEY, EARLIER_ATTEMPT),
        anomalies=_anomalies(lines),
        outcomes=_outcomes(records, chosen),
        late=sorted(EARLIER_ATTEMPT + index for index in chosen["late"]),
    )


def _lines(
    references: list[str], chosen: dict[str, list[int]]
) -> Iterator[tuple[bytes, str | None]]:
    """Every line with its anomaly; of a pair of twins both are `duplicate_identical`."""
    writer = _Writer()
    kind_of = {index: kind for kind, members in chosen.items() for index in members}
    astray = chosen["misrouted"]
    # Each answers for the next one.
    routes = dict(zip(astray, astray[1:] + astray[:1], strict=True))
    for index, own in enumerate(references):
        kind = kind_of.get(index)
        name = custom_id(KEY, index)
        line = writer.line(name, own)
        if kind == "missing":
            continue
        if kind == "misrouted":
            yield writer.line(name, references[routes[index]]), "misrouted"
        elif kind == "twice":
            yield line, "duplicate_identical"
            yield line, "duplicate_identical"
        elif kind == "conflict":
            yield line, "duplicate_conflict"
            yield writer.line(name, f"{own}-2"), "duplicate_conflict"
        else:
            yield line, None
        if kind == "torn":
            yield line[: len(line) // 2], "malformed_line"
        elif kind == "late":
            yield writer.line(custom_id(EARLIER_KEY, index), own), "late_result"
        elif kind == "unknown":
            yield writer.line(custom_id(FOREIGN_KEY, index), own), "unknown_id"


def _attempts(
    references: list[str], indexes: range | list[int], key: str, first: int
) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "attempt_no": [first + index for index in indexes],
            "record_no": [index + 1 for index in indexes],
            "reference": [references[index] for index in indexes],
            "custom_id": [custom_id(key, index) for index in indexes],
        },
        schema={
            "attempt_no": pl.Int64,
            "record_no": pl.Int64,
            "reference": pl.String,
            "custom_id": pl.String,
        },
    )


def _anomalies(lines: Lines) -> list[str | None]:
    """The anomaly of each line in the file's order: the first of two twins has none."""
    seen: set[bytes] = set()
    found: list[str | None] = []
    for line, anomaly in lines:
        first = anomaly == "duplicate_identical" and line not in seen
        if first:
            seen.add(line)
        found.append(None if first else anomaly)
    return found


def _outcomes(records: int, chosen: dict[str, list[int]]) -> pl.DataFrame:
    outcomes = ["succeeded"] * records
    for kind, name in (
        ("missing", "missing_result"),
        ("conflict", "duplicate_conflict"),
        ("misrouted", "misrouted"),
    ):
        for index in chosen[kind]:
            outcomes[index] = name
    return pl.DataFrame(
        {"attempt_no": range(FIRST_ATTEMPT, FIRST_ATTEMPT + records), "outcome": outcomes},
        schema={"attempt_no": pl.Int64, "outcome": pl.String},
    )


def measure(records: int) -> Measured:
    """Plant, read, reconcile, and compare with what was planted."""
    planted = plant(records)
    reader = OpenAIWire("/v1/chat/completions")
    with without_garbage_collector():
        started = time.perf_counter()
        observed = observe(reader, check_answer, 1, io.BytesIO(planted.data), echoed=echoed)
        observe_seconds = time.perf_counter() - started

        def run() -> Reconciliation:
            return reconcile(
                planted.expected, observed, KEY, FIRST_ATTEMPT, earlier=planted.earlier
            )

        found = run()
        reconcile_seconds = _best(run)
        join_seconds = _best(lambda: planted.expected.join(observed, on="custom_id", how="left"))
    counts = Counter(kind for kind in planted.anomalies if kind is not None)
    counts["missing_result"] = planted.outcomes.filter(outcome="missing_result").height
    return Measured(
        lines=observed.height,
        observe_seconds=observe_seconds,
        reconcile_seconds=reconcile_seconds,
        join_seconds=join_seconds,
        planted=dict(sorted(counts.items())),
        reported=found.anomalies,
        exact=found.anomalies == dict(counts) and is_exact(planted, found),
    )


def is_exact(planted: Planted, found: Reconciliation) -> bool:
    """Is every line, every attempt and every late result what was planted?"""
    outcomes = found.dispositions.select(
        "attempt_no", outcome=pl.coalesce("failure_class", "disposition")
    )
    return (
        found.lines["line"].to_list() == list(range(len(planted.anomalies)))
        and found.lines["anomaly"].to_list() == planted.anomalies
        and outcomes.equals(planted.outcomes)
        and found.late["attempt_no"].sort().to_list() == planted.late
    )


def _best(run: Callable[[], object]) -> float:
    seconds = []
    for _ in range(RUNS):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def main() -> int:
    """Measure and print; 1 if anything is not as planted, or it took too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    records = parser.parse_args().records
    found = measure(records)
    total = found.observe_seconds + found.reconcile_seconds
    for kind in sorted({*found.planted, *found.reported}):
        print(
            f"anomaly={kind} planted={found.planted.get(kind, 0)} "
            f"reported={found.reported.get(kind, 0)}"
        )
    print(
        f"records={records} lines={found.lines} reconcile_seconds={found.reconcile_seconds:.3f} "
        f"observe_and_reconcile_seconds={total:.3f} join_seconds={found.join_seconds:.3f} "
        f"reconcile_to_join={found.ratio:.1f} exact={'yes' if found.exact else 'no'}"
    )
    return 0 if found.exact and total < LIMIT_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
