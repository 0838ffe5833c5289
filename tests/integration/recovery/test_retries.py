"""Retry manifests of a real walk: what is in them, whom they follow, and how they end."""

from __future__ import annotations

import hashlib
import importlib
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from pipeline_assets.prepare.again import RequestChanged
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.provider_jobs.operate import OPERATOR_CANCELLED
from pipeline_assets.recovery.holds import hold_of, release
from pipeline_assets.submit.submit_batches import submit_batches
from resources.artifacts import ArtifactDamaged
from resources.clock import from_text
from resources.contracts import MANIFEST, read_frame
from resources.ledger.leases import LeaseHeld, acquire
from resources.ledger.manifests import verify_manifest
from resources.ledger.schema import (
    alerts,
    archive_entries,
    archive_heads,
    attempts,
    batch_parents,
    batches,
    dead_letters,
    deliveries,
    dispositions,
    judgements,
    late_answers,
    late_results,
    manifests,
    metadata,
    move_members,
    moves,
    record_state,
    records,
    results,
    retry_decisions,
)
from resources.providers.baseline import decode_request
from tests.integration.recovery.support import LONG, Retries
from tests.integration.stages.support import ON_ONE_DATABASE, Shop
from tests.support.clock import FrozenClock


@pytest.fixture
def retries(shop: Shop, frozen_clock: FrozenClock, monkeypatch: pytest.MonkeyPatch) -> Retries:
    return Retries(shop, frozen_clock, monkeypatch)


def hold_kind(retries: Retries) -> str | None:
    version = retries.shop.version()
    with retries.shop.context.ledger.read() as connection:
        found = hold_of(connection, version.version_no)
    return None if found is None else found.kind


def let_go(retries: Retries) -> None:
    assert release(retries.shop.context, retries.shop.version().version_no, None, "settled")


def bodies(retries: Retries) -> dict[int, bytes]:
    """attempt_no → the exact body in its request file, checked against its digest."""
    files = {row["batch_no"]: row["request_artifact"] for row in retries.shop.rows(batches)}
    found = {}
    for row in retries.shop.rows(attempts):
        data = retries.shop.context.artifacts.path("request", files[row["batch_no"]]).read_bytes()
        place = row["request_offset"]
        _, body = decode_request(data[place : place + row["request_length"]])
        assert hashlib.sha256(body).hexdigest() == row["request_digest"]
        found[row["attempt_no"]] = body
    return found


def test_a_retry_manifest_holds_what_is_due_and_nothing_else(retries: Retries) -> None:
    retries.start(["good"], ["busy"], ["refused"], ["missing"], ["conflict"], ["doubtful"])
    retries.step()
    assert retries.states() == [
        *("published", "retry_wait", "dead_letter", "retry_wait", "dead_letter"),
        "awaiting_review",
    ]
    assert retries.batch_states() == ["retry_required"]
    assert retries.freeze().manifest_id is None, "nothing is due yet"
    retries.clock.advance(LONG)
    report = retries.freeze()
    assert (report.records, report.batches, report.refused, report.waiting) == (2, 1, 0, None)
    assert (report.manifest_id, report.paths) == ("manuals-baseline-2-m2", {"repeat": 2})
    assert retries.states()[1::2] == ["prepared", "prepared", "awaiting_review"]

    first, second = retries.shop.rows(manifests)
    assert (second["replay_reason"], second["expected"]) == ("transient_retry", 2)
    path = retries.shop.context.artifacts.path("manifest", second["artifact"])
    verify_manifest(path, second["manifest_id"], second["digest"])
    frozen = read_frame(MANIFEST, path)
    assert frozen["replay_reason"].to_list() == ["transient_retry"] * 2
    before = read_frame(
        MANIFEST, retries.shop.context.artifacts.path("manifest", first["artifact"])
    )
    kept = before.filter(before["record_id"].is_in(frozen["record_id"].implode()))
    same = ["record_id", "business_key", "operation", "source_checksum", "request_digest"]
    assert frozen.select(same).equals(kept.select(same))

    tried = retries.shop.rows(attempts)
    again = tried[6:]
    assert [(row["ordinal"], row["recovery_path"]) for row in again] == [(2, "repeat")] * 2
    assert [row["parent_attempt_no"] for row in again] == [
        tried[1]["attempt_no"],
        tried[3]["attempt_no"],
    ]
    assert {row["attempt_no"] for row in again}.isdisjoint(row["attempt_no"] for row in tried[:6])
    assert [row["parent_attempt_no"] for row in tried[:6]] == [None] * 6
    assert retries.parents() == [(2, 1)]
    sent = bodies(retries)
    for row in again:
        assert sent[row["attempt_no"]] == sent[row["parent_attempt_no"]]

    retries.step()
    assert retries.states() == [
        *("published", "published", "dead_letter", "published", "dead_letter"),
        "awaiting_review",
    ]
    assert retries.batch_states() == ["completed_with_errors", "completed"]
    assert len(retries.shop.rows(records)) == 6, "a retry makes no record"
    retries.check()


@ON_ONE_DATABASE
def test_every_custom_id_is_another(retries: Retries) -> None:
    retries.walk(["busy"] * 2, ["missing", "busy"], ["good"])
    provider = retries.provider
    assert provider is not None
    ids = [name for names in provider.asked.values() for name in names]
    assert len(ids) == len(set(ids)) == 7


@ON_ONE_DATABASE
def test_the_parent_is_complete_when_its_retries_are(retries: Retries) -> None:
    retries.start(["busy"], ["busy", "busy"], ["good"])
    retries.step()
    assert retries.batch_states() == ["retry_required"]
    retries.again()
    assert retries.batch_states() == ["retry_required", "retry_required"], "one is still tried"
    assert retries.collected[-1].retried == []
    retries.again()
    assert retries.batch_states() == ["completed"] * 3
    assert len(retries.collected[-1].retried) == 2
    assert retries.parents() == [(2, 1), (3, 2)]
    retries.check()


def test_a_record_that_fails_until_its_limit_is_a_dead_letter(retries: Retries) -> None:
    retries.walk(["missing"] * 9, ["good"])
    assert retries.states() == ["dead_letter", "published"]
    assert retries.paths()[0::1][0][:3] == (1, 1, "first")
    assert [path[1] for path in retries.paths() if path[0] == 1] == [1, 2, 3]
    assert retries.letters() == [
        ("missing_result", "missing_result came 3 times, at most 2 retries", None)
    ]
    (letter,) = retries.shop.rows(dead_letters)
    assert (letter["attempt_no"], letter["owner"]) == (
        retries.shop.rows(attempts)[-1]["attempt_no"],
        "operators",
    )
    assert retries.batch_states() == ["completed_with_errors"] * 3
    assert hold_kind(retries) is None
    retries.check()


@ON_ONE_DATABASE
def test_the_limit_of_attempts_is_over_all_classes(retries: Retries) -> None:
    retries.walk(["busy", "broken", "missing", "limited", "lost"])
    assert [path[1] for path in retries.paths()] == [1, 2, 3, 4]
    assert retries.letters() == [("rate_limited", "all 4 attempts are used up", None)]
    retries.check()


@ON_ONE_DATABASE
def test_an_operator_may_change_the_limit(retries: Retries) -> None:
    retries.start(["busy"] * 9)
    retries.set_operating("attempts_a_record", "2")
    retries.set_operating("dead_letter_owner", "archive team")
    retries.step()
    retries.again()
    retries.again()
    assert retries.letters() == [("overloaded", "all 2 attempts are used up", None)]
    assert retries.shop.rows(dead_letters)[0]["owner"] == "archive team"


@ON_ONE_DATABASE
def test_free_failures_use_no_attempt(retries: Retries) -> None:
    retries.walk(["expired", "busy", "cancelled", "busy", "expired", "busy", "good"])
    assert retries.states() == ["published"]
    assert len(retries.paths()) == 7
    counted = [row["counted"] for row in retries.shop.rows(retry_decisions)]
    assert counted == [0, 1, 0, 1, 0, 1]
    retries.check()


def test_expiry_again_and_again_holds_the_version_and_buries_nothing(retries: Retries) -> None:
    retries.walk(["expired"] * 5, ["good"])
    assert len(retries.paths()) == 2 + 3, "three free retries"
    assert retries.states() == ["retry_wait", "published"]
    assert hold_kind(retries) == "free_retries"
    assert retries.decisions()[-1] == ("expired", "hold", "repeat")
    assert retries.letters() == []
    retries.clock.advance(LONG)
    report = retries.freeze()
    assert (report.manifest_id, report.records) == (None, 0)
    assert "held" in str(report.waiting)
    let_go(retries)
    assert retries.again().records == 1
    assert hold_kind(retries) == "free_retries", "it expired once more"
    let_go(retries)
    retries.again()
    assert retries.states() == ["published", "published"]
    assert set(retries.batch_states()) == {"completed"}
    retries.check()


@ON_ONE_DATABASE
@pytest.mark.parametrize("kind", ["auth", "quota"])
def test_what_the_account_must_settle_holds_and_then_goes_on(retries: Retries, kind: str) -> None:
    retries.start([kind], ["good"], ["busy"])
    retries.step()
    assert hold_kind(retries) == kind
    assert retries.states() == ["retry_wait", "published", "retry_wait"]
    assert "held" in str(retries.again().waiting)
    assert retries.states() == ["retry_wait", "published", "retry_wait"]
    let_go(retries)
    assert retries.again().records == 2
    assert retries.states() == ["published"] * 3
    retries.check()


def test_the_budget_of_attempts(retries: Retries) -> None:
    retries.start(["busy", "busy"], ["busy"], ["good"])
    retries.set_operating("budget_attempts", "2")
    retries.step()
    assert retries.again().records == 2, "the budget is just enough"
    assert retries.states() == ["retry_wait", "published", "published"]
    assert hold_kind(retries) == "budget"
    assert "budget" in retries.alerts()
    assert retries.letters() == []
    retries.set_operating("budget_attempts", "3")
    let_go(retries)
    retries.again()
    assert retries.states() == ["published"] * 3
    assert "budget" not in retries.alerts()
    retries.check()


def test_retries_that_wait_are_of_the_budget_too(retries: Retries) -> None:
    """Two batches that fail one after the other have one budget between them."""
    retries.start(["busy"], ["busy"])
    retries.set_operating("budget_attempts", "2")
    retries.step()
    provider = retries.provider
    assert provider is not None
    provider.script |= {2: ["busy"], 3: ["busy"]}
    retries.shop.write(
        "m02.txt", retries.shop.folder.joinpath("m00.txt").read_text().replace("BG-000", "BG-200")
    )
    retries.shop.prepare()
    retries.step()
    assert hold_kind(retries) == "budget"
    assert [decision for _, decision, _ in retries.decisions()] == ["retry", "retry", "hold"]


@ON_ONE_DATABASE
def test_the_budget_of_time(retries: Retries) -> None:
    retries.start(["busy"] * 9)
    retries.set_operating("retry_hours", "1")
    retries.step()
    retries.clock.advance(timedelta(minutes=30))
    retries.freeze()
    retries.step()
    assert retries.states() == ["retry_wait"]
    retries.again()
    assert retries.letters() == [("overloaded", "its first attempt is more than 1 hours ago", None)]
    retries.check()


@ON_ONE_DATABASE
def test_what_an_operator_cancelled_is_not_tried_again(retries: Retries) -> None:
    retries.start(["cancelled"], ["busy"])
    submit_batches(retries.shop.context, retries.shop.version())
    retries.patch(batches, error_class=OPERATOR_CANCELLED)
    retries.step()
    assert retries.states() == ["cancelled", "retry_wait"]
    assert retries.again().records == 1
    assert retries.states() == ["cancelled", "published"]
    assert [path[0] for path in retries.paths()] == [1, 2, 2]
    retries.check()


@ON_ONE_DATABASE
def test_one_that_was_cancelled_is_an_error_of_its_batch(retries: Retries) -> None:
    """Also where the batch is complete only after the others were tried again."""
    retries.start(["cancelled"], ["busy"])
    submit_batches(retries.shop.context, retries.shop.version())
    retries.patch(batches, error_class=OPERATOR_CANCELLED)
    retries.step()
    retries.again()
    assert retries.states() == ["cancelled", "published"]
    assert retries.batch_states() == ["completed_with_errors", "completed"]


@ON_ONE_DATABASE
def test_when_a_retry_is_due_and_not_a_moment_earlier(retries: Retries) -> None:
    retries.start(["busy"], ["busy"])
    retries.step()
    states = retries.shop.rows(record_state)
    (due,) = {row["not_before"] for row in states}
    decided = {row["not_before"] for row in retries.shop.rows(retry_decisions)}
    assert decided == {due}, "equal histories share a manifest"
    delay = from_text(due) - retries.clock()
    assert timedelta(0) <= delay <= timedelta(minutes=2)
    retries.clock.advance(delay - timedelta(microseconds=1))
    assert retries.freeze().manifest_id is None
    retries.clock.advance(timedelta(microseconds=1))
    assert retries.freeze().records == 2


@ON_ONE_DATABASE
def test_a_retry_beside_new_documents(retries: Retries) -> None:
    retries.start(["busy"])
    retries.step()
    retries.shop.write(
        "z.txt", retries.shop.folder.joinpath("m00.txt").read_text().replace("BG-000", "BG-900")
    )
    retries.clock.advance(LONG)
    version = retries.shop.ingest()
    assert freeze_manifest(retries.shop.context, version).expected == 1
    assert retries.freeze().records == 1
    retries.step()
    assert retries.states() == ["published", "published"]
    assert [row["manifest_id"][-2:] for row in retries.shop.rows(manifests)] == ["m1", "m2", "m3"]
    retries.check()


@ON_ONE_DATABASE
def test_large_retries_are_split_into_batches_of_the_version(retries: Retries) -> None:
    version = retries.start(*[["busy"]] * 5)
    retries.step()
    retries.clock.advance(LONG)
    small = version.spec.model_copy(update={"batch_records": 2})
    home = importlib.import_module("pipeline_assets.prepare.retries")
    report = home.freeze_retries(retries.shop.context, replace(version, spec=small))
    assert (report.records, report.batches) == (5, 3)
    retries.step()
    assert retries.states() == ["published"] * 5
    assert retries.parents() == [(2, 1), (3, 1), (4, 1)]
    retries.check()


@ON_ONE_DATABASE
def test_one_worker_freezes_at_a_time(retries: Retries) -> None:
    retries.start(["busy"])
    retries.step()
    retries.clock.advance(LONG)
    acquire(retries.shop.context.ledger, "manifest:manuals-baseline-2", "someone@elsewhere:1")
    before = retries.shop.counts()
    with pytest.raises(LeaseHeld):
        retries.freeze()
    assert retries.shop.counts() == before


@ON_ONE_DATABASE
def test_nothing_is_retried_from_a_damaged_request(retries: Retries) -> None:
    retries.start(["busy"])
    retries.step()
    retries.clock.advance(LONG)
    row = retries.shop.rows(batches)[0]
    path = retries.shop.context.artifacts.path("request", row["request_artifact"])
    path.write_bytes(path.read_bytes().replace(b"BG-000", b"BG-900"))
    before = retries.shop.counts()
    with pytest.raises(ArtifactDamaged):
        retries.freeze()
    assert (retries.shop.counts(), retries.states()) == (before, ["retry_wait"])


@ON_ONE_DATABASE
def test_nothing_is_retried_from_another_request(retries: Retries) -> None:
    retries.start(["busy"], ["busy"])
    retries.step()
    retries.clock.advance(LONG)
    first, second = retries.shop.rows(attempts)
    with retries.shop.context.ledger.write() as connection:
        connection.execute(
            update(attempts)
            .where(attempts.c.attempt_no == first["attempt_no"])
            .values(
                request_offset=second["request_offset"], request_length=second["request_length"]
            )
        )
    before = retries.shop.counts()
    with pytest.raises(RequestChanged, match="digest that was frozen"):
        retries.freeze()
    assert retries.shop.counts() == before


FREEZING = [
    ("pipeline_assets.prepare.retries", name)
    for name in (
        "due_retries",
        "next_manifest_id",
        "parses_of",
        "frozen_bodies",
        "store_frame",
        "store_manifest",
    )
] + [
    ("resources.ledger.manifests", "_store_batch"),
    ("resources.ledger.manifests", "move_batch"),
    ("resources.ledger.manifests", "move_records"),
    ("resources.ledger.manifests", "_prepare_again"),
]
SETTLING = [
    ("pipeline_assets.collect.settle", name)
    for name in (
        "_look",
        "store_frame",
        "store_results",
        "count_dispositions",
        "update_batch",
        "tried_before",
        "decide_retries",
        "_move",
        "write_late",
        "store_late_results",
        "store_late_answers",
        "store_decisions",
        "_bury",
        "open_dead_letters",
        "_hold",
        "_alert",
        "move_batch",
    )
]
CLOSING = [("pipeline_assets.collect.collect_batches", "move_batch")]


class Crash(BaseException):
    """The process is gone."""


def dying_after(real: Callable[..., Any]) -> Callable[..., Any]:
    def step(*given: Any, **named: Any) -> Any:
        real(*given, **named)
        raise Crash

    return step


def die_in_turn(retries: Retries, points: list[tuple[str, str]], act: Callable[[], Any]) -> int:
    """Do the step until it dies at each of the points; how often it got there."""
    died = 0
    for module, name in points:
        home = importlib.import_module(module)
        before = (retries.shop.counts(), retries.states(), retries.batch_states())
        with retries.monkeypatch.context() as patch:
            patch.setattr(home, name, dying_after(getattr(home, name)))
            try:
                act()
            except Crash:
                died += 1
                after = (retries.shop.counts(), retries.states(), retries.batch_states())
                assert {k: v for k, v in after[0].items() if k != "leases"} == {
                    k: v for k, v in before[0].items() if k != "leases"
                }, name
                assert after[1:] == before[1:], name
                continue
            raise AssertionError(f"{name} is not on the way")
    return died


SCRIPTS = (
    ["busy", "missing + late", "busy"],
    ["missing", "good + late"],
    ["expired"],
    ["refused"],
    ["busy", "refused"],
    ["good"],
)


COMPARED = (
    *(records, record_state, manifests, batches, batch_parents, attempts, dispositions, results),
    *(retry_decisions, dead_letters, late_results, late_answers, judgements, moves, move_members),
    *(archive_entries, archive_heads, deliveries, alerts),
)
DRAWN = {
    # Times of retries depend on the number of draws, and tokens on that of leases.
    *("not_before", "valid_from", "valid_to", "fencing_token"),
    # A database counts on after a transaction that came to nothing.
    *(
        "batch_no",
        "parent_batch_no",
        "manifest_no",
        "move_no",
        "result_file_no",
        "late_no",
        "change_no",
    ),
    *("alert_no", "version_no", "document_no", "source_version_no", "subject_no"),
    # These are made of the above.
    *("chain", "digest", "previous_digest", "members_digest"),
}


def all_that_matters(retries: Retries) -> dict[str, Any]:
    """Every row of what a life of attempts leaves, without what is no part of its meaning."""
    return {
        table.name: [
            {
                name: value
                for name, value in row.items()
                if not name.endswith("_at") and name not in DRAWN
            }
            for row in retries.shop.rows(table)
        ]
        for table in COMPARED
    }


def live(retries: Retries, *, dying: bool) -> dict[str, Any]:
    """From documents to the last retry; dying at each step of both transactions, or never."""
    collect = importlib.import_module("pipeline_assets.collect.collect_batches")

    def act() -> None:
        collect.collect_batches(retries.shop.context, retries.shop.version())

    def die_settling(points: list[tuple[str, str]]) -> None:
        # Results are stored first, in a transaction of their own, which is no step of this.
        with retries.monkeypatch.context() as patch:
            patch.setattr(collect, "settle", dying_after(lambda *_: None))
            with pytest.raises(Crash):
                act()
        die_in_turn(retries, points, act)

    retries.start(*[list(script) for script in SCRIPTS])
    submit_batches(retries.shop.context, retries.shop.version())
    if dying:
        no_late = ("store_late_results", "store_late_answers")
        die_settling([point for point in SETTLING if point[1] not in no_late])
    retries.step()
    retries.clock.advance(LONG)
    if dying:
        die_in_turn(retries, FREEZING, retries.freeze)
    retries.freeze()
    submit_batches(retries.shop.context, retries.shop.version())
    if dying:
        die_settling(SETTLING)
    retries.step()
    for _ in range(3):
        retries.again()
    retries.check()
    return all_that_matters(retries)


def test_a_killed_worker_at_every_step_ends_as_if_nothing_had_happened(
    retries: Retries,
) -> None:
    died = live(retries, dying=True)
    with retries.shop.context.ledger.write() as connection:
        for table in reversed(metadata.sorted_tables):
            if table.name not in ("ledger_info", "leases"):
                connection.execute(table.delete())
        connection.exec_driver_sql("DELETE FROM archive_search")
    retries.clock.advance(timedelta(days=1))
    whole = live(retries, dying=False)
    assert [row["used"] for row in whole["late_results"]] == [1, 0], "there was something to lose"
    for name, rows in whole.items():
        assert died[name] == rows, name


KINDS = (
    *("good", "busy", "limited", "broken", "missing", "expired", "cancelled", "refused"),
    *("missing + late", "busy + late", "good + late", "missing + late failure"),
    *("conflict", "prose", "doubtful", "capacity"),
)


@ON_ONE_DATABASE
@pytest.mark.parametrize("seed", range(4))
def test_any_script_ends_with_an_outcome_for_every_record(retries: Retries, seed: int) -> None:
    drawn = random.Random(seed)
    scripts = [drawn.choices(KINDS, k=drawn.randint(0, 6)) for _ in range(12)]
    retries.walk(*scripts)
    retries.check()
    states = Counter(retries.states())
    assert set(states) <= {"published", "dead_letter", "awaiting_review", "retry_wait"}
    assert (states["retry_wait"] > 0) <= (hold_kind(retries) is not None)
    counted = Counter(
        row["record_no"] for row in retries.shop.rows(retry_decisions) if row["counted"]
    )
    free = Counter(
        row["record_no"] for row in retries.shop.rows(retry_decisions) if not row["counted"]
    )
    assert max(counted.values(), default=0) <= 4
    assert max(free.values(), default=0) <= 4
    for record_no, (script, state) in enumerate(
        zip(scripts, retries.states(), strict=True), start=1
    ):
        if not script:
            assert state == "published", record_no
