"""Whether a document can be erased, case by case."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline_assets.erasure.plan import ErasureRefused, plan_erasure
from resources.ledger.erasures import BATCH_SCHEMA, FACT_SCHEMA, NEEDED_SCHEMA, Standing
from resources.ledger.transitions import BATCH, RECORD

A, B = "a" * 64, "b" * 64


def standing(
    *states: str,
    batches: tuple[tuple[str, str], ...] = (),
    needed: tuple[tuple[str, str], ...] = (),
) -> Standing:
    rows = [(number, f"w:d@{number}:v", 1, state, A) for number, state in enumerate(states)]
    return Standing(
        pl.DataFrame(rows, schema=FACT_SCHEMA, orient="row"),
        pl.DataFrame(list(batches), schema=BATCH_SCHEMA, orient="row"),
        pl.DataFrame(list(needed), schema=NEEDED_SCHEMA, orient="row"),
        (A, B),
    )


@pytest.mark.parametrize("state", [state for state in RECORD if state])
def test_every_state_that_is_not_under_way_can_be_withdrawn(state: str) -> None:
    plan = plan_erasure(standing(state))
    if state in ("prepared", "submitted", "collected"):
        assert len(plan.obstacles) == 1
        return
    assert plan.obstacles == ()
    assert state == "withdrawn" or "withdrawn" in RECORD[state]
    assert dict(plan.withdrawn) == ({} if state == "withdrawn" else {state: 1})


@pytest.mark.parametrize(
    "state", [state for state in BATCH if state not in ("", "cancelled") and "comp" not in state]
)
def test_an_open_batch_is_named_with_what_helps(state: str) -> None:
    if state == "retry_required":
        return
    plan = plan_erasure(standing("published", batches=(("v-m1-b1", state),)))
    (obstacle,) = plan.obstacles
    assert obstacle.what == f"batch v-m1-b1 is {state}"
    assert obstacle.helps != "wait until it is complete", "each state has its own remedy"
    told = str(ErasureRefused("shop/a.txt", plan.obstacles))
    assert "shop/a.txt cannot be erased" in told
    assert "nothing was changed" in told


def test_a_record_is_not_told_beside_its_batch() -> None:
    plan = plan_erasure(standing("submitted", batches=(("v-m1-b1", "running"),)))
    assert [obstacle.what for obstacle in plan.obstacles] == ["batch v-m1-b1 is running"]


def test_many_obstacles_are_counted() -> None:
    batches = tuple((f"v-m1-b{number}", "running") for number in range(5))
    told = str(ErasureRefused("shop/a.txt", plan_erasure(standing(batches=batches)).obstacles))
    assert "v-m1-b2 is running" in told
    assert "v-m1-b3" not in told
    assert "and 2 more" in told


def test_bytes_that_others_have_stay() -> None:
    plan = plan_erasure(standing("published", needed=((A, "shop/x"), (A, "shop/y"))))
    assert plan.checksums == (B,)
    assert dict(plan.shared) == {A: ("shop/x", "shop/y")}


def test_a_document_without_a_record_can_be_erased() -> None:
    plan = plan_erasure(standing())
    assert (plan.obstacles, plan.checksums, dict(plan.withdrawn)) == ((), (A, B), {})
