"""A provider inside the run that answers each attempt at a document as a script says.

Belongs here: the provider, the walk over its attempts, and what can be asked afterwards. Does not
belong here: what must come of it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec
import polars as pl
import pytest
from sqlalchemy import select, update

from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.collect import evidence
from pipeline_assets.collect.collect_batches import CollectReport, collect_batches
from pipeline_assets.collect.invariant import unbalanced_batches
from pipeline_assets.prepare.retries import RetryReport, freeze_retries
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.submit import answer_embedded as submitting
from pipeline_assets.submit.submit_batches import submit_batches
from pipeline_assets.versions import OpenVersion
from resources.ledger.alerts import open_alerts
from resources.ledger.journal import verify_all
from resources.ledger.schema import (
    attempts,
    batch_parents,
    batches,
    dead_letters,
    dispositions,
    late_results,
    manifests,
    retry_decisions,
)
from resources.ledger.versions import set_operating
from resources.providers.baseline import BaselineProvider
from resources.providers.port import ResultLine
from tests.integration.stages.support import Shop, manual
from tests.support.clock import FrozenClock

Line = dict[str, Any]
LONG = timedelta(hours=3)
"""Longer than any delay between two attempts."""
TOKENS = {"input_tokens": 900, "output_tokens": 90, "cached_tokens": 9}


def failed(line: Line, status: int, code: str | None = None) -> Line:
    return {"custom_id": line["custom_id"], "status_code": status, "error_code": code}


def answer_as(kind: str, line: Line, earlier: Sequence[str]) -> list[Line]:
    """The lines that come back for a request.

    Args:
        kind: how the request is answered; with ` + late` a good answer to each earlier attempt
            follows, with ` + late failure` a failed one.
        line: the good answer.
        earlier: custom ids of earlier requests about the same document.
    """
    own, _, late = kind.partition(" + ")
    lines = _own(own, line)
    for custom_id in earlier if late else ():
        good = line | {"custom_id": custom_id}
        lines.append(failed(good, 529) if late == "late failure" else good)
    return lines


def _own(kind: str, line: Line) -> list[Line]:
    match kind:
        case "good":
            return [line]
        case "doubtful":
            answer = json.loads(line["body"]["text"])
            answer["title"] = answer["title"] | {"status": "uncertain"}
            return [line | {"body": line["body"] | {"text": json.dumps(answer)}}]
        case "missing":
            return []
        case "conflict":
            return [line, line | {"body": line["body"] | {"text": line["body"]["text"] + " "}}]
        case "prose":
            return [line | {"body": line["body"] | {"text": "Gladly!"}}]
        case "expired" | "cancelled":
            return [failed(line, 0, kind)]
        case "capacity":
            return [failed(line, 400, "token_limit_exceeded")]
        case "quota":
            return [failed(line, 429, "insufficient_quota")]
        case _:
            return [failed(line, _STATUS[kind])]


_STATUS = {"busy": 529, "limited": 429, "broken": 500, "lost": 0, "refused": 400, "auth": 401}


class ScriptedAttempts(BaselineProvider):
    """The built-in rules; each document has a script of its own, an entry an attempt.

    Attributes:
        asked: document number → custom ids that it was asked about with.
    """

    def __init__(self, version: OpenVersion, script: dict[int, list[str]]) -> None:
        super().__init__(version.spec.model, version.workload.baseline)
        self.script = script
        self.asked: dict[int, list[str]] = {}

    def answer_line(self, request: bytes) -> bytes:
        """Lines for one request, as the script says; nothing more in the script means good."""
        line = json.loads(super().answer_line(request))
        found = re.search(rb"BG-(\d+)00", request)
        assert found is not None
        number = int(found[1])
        earlier = self.asked.setdefault(number, [])
        script = self.script.get(number, [])
        # A killed run is answered again: the same request gets the same answer.
        if line["custom_id"] in earlier:
            place = earlier.index(line["custom_id"])
        else:
            place = len(earlier)
            earlier.append(line["custom_id"])
        kind = script[place] if place < len(script) else "good"
        lines = answer_as(kind, line, earlier[:place])
        return b"\n".join(json.dumps(entry).encode() for entry in lines)

    def read_line(self, line: bytes) -> ResultLine:
        """A success reports tokens, as a model's does."""
        result = super().read_line(line)
        return msgspec.structs.replace(result, **TOKENS) if result.text is not None else result


@dataclass
class Retries:
    """A shop whose documents are answered by a script, attempt after attempt."""

    shop: Shop
    clock: FrozenClock
    monkeypatch: pytest.MonkeyPatch
    provider: ScriptedAttempts | None = None
    collected: list[CollectReport] = field(default_factory=list)

    def start(self, *scripts: list[str]) -> OpenVersion:
        """Prepare one document (`m00.txt`, ...) a script."""
        for number in range(len(scripts)):
            self.shop.write(f"m{number:02d}.txt", manual("Bench Grinder", f"BG-{number}00"))
        version = self.shop.prepare()
        provider = ScriptedAttempts(version, dict(enumerate(scripts)))
        self.monkeypatch.setattr(submitting, "embedded_provider", lambda _: provider)
        self.monkeypatch.setattr(evidence, "result_reader", lambda _: provider)
        self.provider = provider
        return version

    def set_operating(self, name: str, value: str) -> None:
        """Change an operating setting of the version."""
        version = self.shop.version()
        cause = self.shop.context.cause("the test says so", "test")
        set_operating(self.shop.context.ledger, version.version_no, name, value, cause)

    def step(self) -> CollectReport:
        """Answer, collect, judge and publish what there is."""
        submit_batches(self.shop.context, self.shop.version())
        report = collect_batches(self.shop.context, self.shop.version())
        judge_batches(self.shop.context, self.shop.version())
        publish_accepted(self.shop.context, self.shop.version())
        self.collected.append(report)
        return report

    def freeze(self) -> RetryReport:
        """Freeze what is due."""
        return freeze_retries(self.shop.context, self.shop.version())

    def again(self) -> RetryReport:
        """Wait until everything is due, freeze it and take the step."""
        self.clock.advance(LONG)
        report = self.freeze()
        self.step()
        return report

    def walk(self, *scripts: list[str]) -> OpenVersion:
        """Every attempt until nothing waits any more, or the version is held."""
        version = self.start(*scripts)
        self.step()
        for _ in range(30):
            if self.again().manifest_id is None:
                return version
        raise AssertionError("thirty rounds are too many for any limit")

    def states(self) -> list[str]:
        """The documents' states, in their order."""
        return [state for _, state in sorted(self.shop.states().items())]

    def batch_states(self) -> list[str]:
        """The batches' states, oldest first."""
        return [row["state"] for row in self.shop.rows(batches)]

    def paths(self) -> list[tuple[int, int, str, int | None]]:
        """record_no, ordinal, recovery path and parent of every attempt."""
        return [
            (row["record_no"], row["ordinal"], row["recovery_path"], row["parent_attempt_no"])
            for row in self.shop.rows(attempts)
        ]

    def decisions(self) -> list[tuple[str, str, str]]:
        """(failure class, decision, path) of every failed attempt."""
        return [
            (row["failure_class"], row["decision"], row["recovery_path"])
            for row in self.shop.rows(retry_decisions)
        ]

    def letters(self) -> list[tuple[str, str, str | None]]:
        """(failure class, reason, closing) of every dead letter."""
        return [
            (row["failure_class"], row["reason"], row["closing"])
            for row in self.shop.rows(dead_letters)
        ]

    def late(self) -> list[tuple[int, str, int]]:
        """(attempt, disposition, used) of every late result."""
        return [
            (row["attempt_no"], row["disposition"], row["used"])
            for row in self.shop.rows(late_results)
        ]

    def batch_nos(self) -> list[int]:
        """The batches' numbers, oldest first; a database may leave some out."""
        return [row["batch_no"] for row in self.shop.rows(batches)]

    def parents(self) -> list[tuple[int, int]]:
        """(batch, parent batch), each by its place from 1."""
        place = {number: at for at, number in enumerate(self.batch_nos(), start=1)}
        return [
            (place[row["batch_no"]], place[row["parent_batch_no"]])
            for row in self.shop.rows(batch_parents)
        ]

    def alerts(self) -> set[str]:
        """Kinds of open alerts."""
        return {alert.kind for alert in open_alerts(self.shop.context.ledger)}

    def published_from(self) -> dict[int, int]:
        """record_no → the attempt whose answer is published."""
        found = self.shop.query(
            "SELECT e.record_no, j.attempt_no FROM archive_entries e "
            "JOIN judgements j ON j.record_no = e.record_no AND j.values_digest = "
            "(SELECT d.accepted_digest FROM deliveries d WHERE d.entry_no = e.entry_no) "
            "WHERE j.outcome = 'accepted'",
            {"record_no": pl.Int64, "attempt_no": pl.Int64},
        )
        return dict(found.iter_rows())

    def check(self) -> None:
        """What holds whatever happened."""
        context, version = self.shop.context, self.shop.version()
        with context.ledger.read() as connection:
            assert verify_all(connection, context.ledger.dialect).holds
        assert unbalanced_batches(context.ledger, version.version_no).is_empty()
        tried = self.shop.rows(attempts)
        decided = {row["attempt_no"] for row in self.shop.rows(dispositions)}
        done = {
            row["batch_no"]
            for row in self.shop.rows(batches)
            if row["state"] in ("completed", "completed_with_errors", "retry_required")
        }
        assert {row["attempt_no"] for row in tried if row["batch_no"] in done} == decided
        places = Counter((row["record_no"], row["ordinal"]) for row in tried)
        assert set(places.values()) == {1}
        episodes = Counter(
            row["record_no"] for row in self.shop.rows(dead_letters) if row["closed_at"] is None
        )
        assert set(episodes.values()) <= {1}
        assert sum(episodes.values()) == self.states().count("dead_letter")
        assert sum(row["expected"] for row in self.shop.rows(manifests)) == len(tried)

    def patch(self, table: Any, **values: Any) -> None:
        """Change every row of a table behind everybody's back."""
        with self.shop.context.ledger.write() as connection:
            connection.execute(update(table).values(**values))

    def one(self, column: Any) -> Any:
        """The only value of a column."""
        with self.shop.context.ledger.read() as connection:
            return connection.execute(select(column)).scalar_one()
