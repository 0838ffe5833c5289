"""Whatever a provider returns, every record of the manifest has one outcome."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from sqlalchemy import update

from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.collect import evidence
from pipeline_assets.collect import settle as settling
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.collect.invariant import unbalanced_batches
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.provider_jobs.operate import OPERATOR_CANCELLED
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.submit import answer_embedded as submitting
from pipeline_assets.submit.submit_batches import submit_batches
from pipeline_assets.versions import OpenVersion
from resources.artifacts import ArtifactDamaged
from resources.contracts import MANIFEST, read_frame, store_frame
from resources.ledger.alerts import open_alerts
from resources.ledger.moves import move_batch
from resources.ledger.schema import (
    attempts,
    batches,
    dispositions,
    manifests,
    result_files,
    results,
)
from resources.providers.baseline import BaselineProvider
from tests.integration.stages.support import ON_ONE_DATABASE, Shop, manual

Change = Callable[[dict[str, Any]], list[dict[str, Any] | bytes]]


def same(line: dict[str, Any]) -> list[dict[str, Any] | bytes]:
    return [line]


def changed(line: dict[str, Any], **body: Any) -> dict[str, Any]:
    return line | {"body": line["body"] | body}


CHANGES: dict[str, Change] = {
    "whole": same,
    "missing": lambda _: [],
    "twice": lambda line: [line, line],
    "conflict": lambda line: [line, changed(line, text=line["body"]["text"] + " ")],
    "three": lambda line: [line, line, changed(line, model="other")],
    "not json": lambda line: [changed(line, text=line["body"]["text"][:-1])],
    "other shape": lambda line: [changed(line, text='{"document": 7}')],
    "alien": lambda line: [line | {"custom_id": "fedcba987654-0"}],
    "odd id": lambda line: [line | {"custom_id": "\u2028"}],
    "truncated": lambda line: [changed(line, finish_reason="truncated")],
    "garbage": lambda _: [b'{"custom_id": "', b"\xff\xfe\x00"],
    "refused": lambda line: [{"custom_id": line["custom_id"], "status_code": 400}],
    "busy": lambda line: [{"custom_id": line["custom_id"], "status_code": 529}],
    "expired": lambda line: [
        {"custom_id": line["custom_id"], "status_code": 0, "error_code": "expired"}
    ],
    "cancelled": lambda line: [
        {"custom_id": line["custom_id"], "status_code": 0, "error_code": "cancelled"}
    ],
}


class Scripted(BaselineProvider):
    """The built-in rules, whose answers are changed on the way back, one change a request."""

    def __init__(self, version: OpenVersion, changes: list[str]) -> None:
        super().__init__(version.spec.model, version.workload.baseline)
        self._changes = iter(changes)

    def answer_line(self, request: bytes) -> bytes:
        line = json.loads(super().answer_line(request))
        lines = CHANGES[next(self._changes)](line)
        return b"\n".join(
            entry if isinstance(entry, bytes) else json.dumps(entry).encode() for entry in lines
        )


@pytest.fixture
def answered(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], OpenVersion]:
    """Return a function that prepares one document a change and has it answered so."""

    def answer(changes: list[str]) -> OpenVersion:
        for number in range(len(changes)):
            shop.write(f"m{number:02d}.txt", manual("Bench Grinder", f"BG-{number}00"))
        version = shop.prepare()
        provider = Scripted(version, changes)
        monkeypatch.setattr(submitting, "embedded_provider", lambda _: provider)
        monkeypatch.setattr(evidence, "result_reader", lambda _: provider)
        assert submit_batches(shop.context, version).records == len(changes)
        return version

    return answer


OUTCOMES = {
    "whole": ("succeeded", None, "published"),
    "missing": ("retryable_failure", "missing_result", "retry_wait"),
    "twice": ("succeeded", None, "published"),
    "conflict": ("permanent_failure", "duplicate_conflict", "dead_letter"),
    "three": ("permanent_failure", "duplicate_conflict", "dead_letter"),
    "not json": ("permanent_failure", "malformed_json", "dead_letter"),
    "other shape": ("permanent_failure", "schema_violation", "dead_letter"),
    "alien": ("retryable_failure", "missing_result", "retry_wait"),
    "odd id": ("retryable_failure", "missing_result", "retry_wait"),
    "truncated": ("retryable_failure", "truncated", "dead_letter"),
    "garbage": ("retryable_failure", "missing_result", "retry_wait"),
    "refused": ("permanent_failure", "invalid_request", "dead_letter"),
    "busy": ("retryable_failure", "overloaded", "retry_wait"),
    "expired": ("expired", "expired", "retry_wait"),
    "cancelled": ("cancelled", "cancelled", "retry_wait"),
}


def test_every_outcome_at_once(shop: Shop, answered: Callable[[list[str]], OpenVersion]) -> None:
    shop.write("empty.txt", b"")
    version = answered(list(CHANGES))
    report = collect_batches(shop.context, version)
    wanted: dict[str, int] = {}
    for disposition, _, _ in OUTCOMES.values():
        wanted[disposition] = wanted.get(disposition, 0) + 1
    assert report.dispositions == wanted
    assert report.incidents == {}
    assert (report.not_collectable, report.not_deleted, report.canaries) == ({}, {}, {})
    assert report.anomalies == {
        "duplicate_conflict": 5,
        "duplicate_identical": 1,
        "malformed_line": 2,
        "missing_result": 4,
        "unknown_id": 2,
    }
    found = [(row["disposition"], row["failure_class"]) for row in shop.rows(dispositions)]
    assert found == [outcome[:2] for outcome in OUTCOMES.values()]
    assert unbalanced_batches(shop.context.ledger, version.version_no).is_empty()

    # Every line that came back is accounted for, at its place in the file.
    (file,) = shop.rows(result_files)
    data = shop.context.artifacts.path("result", file["artifact"]).read_bytes()
    lines = [line for line in data.split(b"\n") if line]
    kept = shop.rows(results)
    assert len(kept) == len(lines)
    assert [data[r["line_offset"] : r["line_offset"] + r["line_length"]] for r in kept] == lines

    assert judge_batches(shop.context, version).outcomes == {"accepted": 2}
    assert publish_accepted(shop.context, version).published == 2
    assert list(shop.states().values()) == [outcome[2] for outcome in OUTCOMES.values()]
    freeze = freeze_manifest(shop.context, version)
    assert (freeze.expected, freeze.already, freeze.excluded) == (0, len(CHANGES), {"empty": 1})

    before = shop.counts()
    assert collect_batches(shop.context, version).batches == 0
    assert judge_batches(shop.context, version).batches == 0
    assert publish_accepted(shop.context, version).published == 0
    assert shop.counts() == before


@ON_ONE_DATABASE
@pytest.mark.parametrize(
    ("changes", "state"),
    [
        pytest.param(["whole", "twice"], "completed", id="all-succeeded"),
        pytest.param(["whole", "refused"], "completed_with_errors", id="one-failed-for-good"),
        pytest.param(["whole", "cancelled"], "retry_required", id="one-cancelled"),
        pytest.param(["refused", "busy"], "retry_required", id="one-can-be-retried"),
        pytest.param(["expired"], "retry_required", id="all-expired"),
        pytest.param(["missing", "missing"], "retry_required", id="nothing-came-back"),
    ],
)
def test_the_state_of_the_batch(
    shop: Shop,
    answered: Callable[[list[str]], OpenVersion],
    changes: list[str],
    state: str,
) -> None:
    version = answered(changes)
    collect_batches(shop.context, version)
    (batch,) = shop.rows(batches)
    assert (batch["state"], batch["reconciled_records"]) == (state, len(changes))
    assert judge_batches(shop.context, version).batches == 1
    assert judge_batches(shop.context, version).batches == 0


@ON_ONE_DATABASE
@pytest.mark.parametrize(
    ("error_class", "changes", "state", "records"),
    [
        pytest.param(
            OPERATOR_CANCELLED,
            ["whole", "cancelled"],
            "completed_with_errors",
            ["collected", "cancelled"],
            id="by-an-operator",
        ),
        pytest.param(
            OPERATOR_CANCELLED,
            ["busy", "cancelled"],
            "retry_required",
            ["retry_wait", "cancelled"],
            id="by-an-operator-beside-one-to-retry",
        ),
        pytest.param(
            "server_error",
            ["whole", "cancelled"],
            "retry_required",
            ["collected", "retry_wait"],
            id="by-the-provider",
        ),
    ],
)
def test_only_what_an_operator_cancelled_is_not_tried_again(
    shop: Shop,
    answered: Callable[[list[str]], OpenVersion],
    error_class: str,
    changes: list[str],
    state: str,
    records: list[str],
) -> None:
    version = answered(changes)
    with shop.context.ledger.write() as connection:
        connection.execute(update(batches).values(error_class=error_class))
    collect_batches(shop.context, version)
    assert [row["disposition"] for row in shop.rows(dispositions)][1] == "cancelled"
    assert shop.rows(batches)[0]["state"] == state
    assert list(shop.states().values()) == records


@ON_ONE_DATABASE
def test_nothing_of_an_answer_is_in_the_ledger(
    shop: Shop, answered: Callable[[list[str]], OpenVersion], monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "Zebra Confidential"
    monkeypatch.setitem(
        CHANGES,
        "secret",
        lambda line: [changed(line, text=json.dumps({secret: 1}), model="m" * 999)],
    )
    version = answered(["secret"])
    collect_batches(shop.context, version)
    assert secret not in str(shop.rows(dispositions))


def test_dispositions_that_do_not_add_up_are_an_incident(
    shop: Shop, answered: Callable[[list[str]], OpenVersion], monkeypatch: pytest.MonkeyPatch
) -> None:
    version = answered(["whole", "whole"])
    with monkeypatch.context() as patch:
        patch.setattr(settling, "count_dispositions", lambda *_: 1)
        report = collect_batches(shop.context, version)
    (batch,) = shop.rows(batches)
    assert list(report.incidents) == [batch["batch_id"]]
    assert report.dispositions == {}
    assert batch["state"] == "incident"
    assert (shop.rows(dispositions), shop.rows(results)) == ([], [])
    assert set(shop.states().values()) == {"submitted"}
    assert unbalanced_batches(shop.context.ledger, version.version_no).height == 1
    assert collect_batches(shop.context, version).batches == 0, "only a person starts it again"
    assert judge_batches(shop.context, version).batches == 0
    with shop.context.ledger.write() as connection:
        move_batch(
            connection,
            shop.context.ledger.dialect,
            batch["batch_no"],
            "incident",
            "reconciling",
            shop.context.cause("looked at", "a test"),
        )
    assert collect_batches(shop.context, version).dispositions == {"succeeded": 2}


def damage(path_of: str) -> Callable[[Shop], None]:
    def act(shop: Shop) -> None:
        kind, table = {
            "manifest": ("manifest", manifests),
            "result": ("result", result_files),
        }[path_of]
        path = shop.context.artifacts.path(kind, shop.rows(table)[0]["artifact"])  # pyright: ignore
        path.write_bytes(path.read_bytes()[:-1] + b"x")

    return act


def set_attempt(**values: Any) -> Callable[[Shop], None]:
    def act(shop: Shop) -> None:
        first = shop.rows(attempts)[0]["attempt_no"]
        with shop.context.ledger.write() as connection:
            connection.execute(
                update(attempts).where(attempts.c.attempt_no == first).values(**values)
            )

    return act


def swap_records(shop: Shop) -> None:
    first, second = shop.rows(attempts)
    with shop.context.ledger.write() as connection:
        for row, other in ((first, second), (second, first)):
            connection.execute(
                update(attempts)
                .where(attempts.c.attempt_no == row["attempt_no"])
                .values(record_no=other["record_no"])
            )


def replace_manifest(shop: Shop) -> None:
    """A file that is whole, named by its own digest, and not the one that was frozen."""
    store = shop.context.artifacts
    rows = read_frame(MANIFEST, store.path("manifest", shop.rows(manifests)[0]["artifact"]))
    other = store_frame(
        store, "manifest", MANIFEST, [rows.with_columns(replay_reason=pl.lit("operator"))]
    )
    with shop.context.ledger.write() as connection:
        connection.execute(update(manifests).values(artifact=other.digest))


def set_batch_digest(shop: Shop) -> None:
    with shop.context.ledger.write() as connection:
        connection.execute(update(batches).values(manifest_digest="0" * 64))


@ON_ONE_DATABASE
@pytest.mark.parametrize(
    ("tamper", "says"),
    [
        pytest.param(damage("manifest"), "was changed", id="manifest-file"),
        pytest.param(damage("result"), "was changed", id="result-file"),
        pytest.param(replace_manifest, "never changes", id="another-manifest"),
        pytest.param(set_batch_digest, "never changes", id="digest-beside-the-batch"),
        pytest.param(set_attempt(request_digest="0" * 64), "never changes", id="request-digest"),
        pytest.param(set_attempt(request_offset=1), "never changes", id="request-offset"),
        pytest.param(set_attempt(record_no=999), "never changes", id="record-that-is-not-there"),
        pytest.param(swap_records, "never changes", id="records-swapped"),
    ],
)
def test_nothing_is_reconciled_against_changed_evidence(
    shop: Shop,
    answered: Callable[[list[str]], OpenVersion],
    tamper: Callable[[Shop], None],
    says: str,
) -> None:
    version = answered(["whole", "whole"])
    tamper(shop)
    report = collect_batches(shop.context, version)
    (told,) = report.incidents.values()
    assert says in told
    assert shop.rows(dispositions) == []
    assert shop.rows(batches)[0]["state"] == "incident"
    (alert,) = open_alerts(shop.context.ledger)
    assert (alert.kind, says in alert.message) == ("incident", True)


@ON_ONE_DATABASE
def test_requests_that_were_changed_are_not_answered(shop: Shop) -> None:
    version = shop.fill().prepare()
    path = shop.context.artifacts.path("request", shop.rows(batches)[0]["request_artifact"])
    path.write_bytes(path.read_bytes().replace(b"WP-100", b"WP-900"))
    with pytest.raises(ArtifactDamaged):
        submit_batches(shop.context, version)
    assert shop.rows(result_files) == []
