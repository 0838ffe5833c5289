"""What a replay under a model would cost, told before anything is frozen."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pytest

from partitions.processing_version import PACKAGED_SPECS
from pipeline_assets.prepare import estimate as estimating
from pipeline_assets.prepare.estimate import Estimate, estimate
from pipeline_assets.replay.plan import plan_replay
from pipeline_assets.versions import look_at_version
from resources.providers.prices import TokenUsage, price_of
from tests.integration.replay.support import ONE, Works, request
from tests.integration.stages.support import ON_ONE_DATABASE

pytestmark = [ON_ONE_DATABASE]
MODEL = "manuals-model-1"
SEED = "manuals-openai-batch-4"
OUTPUT_TOKENS = 4_000
"""What the spec leaves room for: no answer was seen yet."""


def write_model(works: Works, model: str = "gpt-5-mini", tail: str = "merge") -> None:
    text = (PACKAGED_SPECS / f"{SEED}.yaml").read_text(encoding="utf-8")
    specs = works.context.settings.specs
    assert isinstance(specs, Path)
    spec = text.replace(f"key: {SEED}", f"key: {MODEL}").replace("gpt-5-mini", model)
    spec = spec.replace("  recovery:\n", f"  tail: {tail}\n  recovery:\n")
    (specs / f"{MODEL}.yaml").write_text(spec, encoding="utf-8")


def estimated(works: Works) -> Estimate:
    version = look_at_version(works.context, MODEL)
    plan = plan_replay(works.context, version, request(ONE))
    return estimate(works.context, version, plan)


def test_tokens_are_counted_and_priced(works: Works) -> None:
    works.fill().run(ONE)
    write_model(works)
    found = estimated(works)
    assert (found.records, found.looked_at, found.not_parsed, found.refused) == (3, 3, 0, 0)
    assert found.input_tokens is not None
    assert found.input_tokens > 3 * 500, "the prompt alone has more"
    assert found.output_tokens == 3 * OUTPUT_TOKENS
    assert "the most that an answer may have" in found.output_basis
    each = price_of(
        "openai",
        "gpt-5-mini",
        "batch",
        TokenUsage(found.input_tokens // 3, OUTPUT_TOKENS),
        works.context.clock(),
    )
    assert each.amount is not None
    assert found.amount == each.amount * 3 > Decimal(0)
    assert found.hours is None
    assert found.time_basis == "no batch was seen yet; the provider may take up to 24 hours"
    assert found.as_json()["amount"] == str(found.amount)


def test_a_price_that_is_not_known_is_not_nothing(works: Works) -> None:
    works.fill().run(ONE)
    write_model(works, "a-model-of-tomorrow")
    found = estimated(works)
    assert found.amount is None
    assert found.input_tokens is not None


def test_of_many_documents_an_even_share_is_rendered(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    works.fill().run(ONE)
    write_model(works)
    whole = estimated(works)
    monkeypatch.setattr(estimating, "RENDERED_AT_MOST", 2)
    share = estimated(works)
    assert (share.records, share.looked_at) == (3, 2)
    assert whole.input_tokens is not None
    assert share.input_tokens is not None
    assert abs(share.input_tokens - whole.input_tokens) < whole.input_tokens / 10


def test_what_is_not_parsed_yet_counts_like_the_mean(works: Works) -> None:
    works.fill().run(ONE)
    write_model(works)
    whole = estimated(works)
    first = works.query("SELECT MIN(checksum) FROM records", {"checksum": pl.String}).item()
    with works.context.ledger.write() as connection:
        connection.exec_driver_sql(f"DELETE FROM parses WHERE checksum = '{first}'")
    found = estimated(works)
    assert (found.records, found.looked_at, found.not_parsed) == (3, 2, 1)
    assert whole.input_tokens is not None
    assert found.input_tokens is not None
    assert abs(found.input_tokens - whole.input_tokens) < whole.input_tokens / 10


def test_what_cannot_be_sent_is_neither_counted_nor_priced(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    works.fill().run(ONE)
    write_model(works)
    whole = estimated(works)
    assert (whole.refused, whole.sendable, whole.blocked) == (0, 3, "")
    assert whole.input_tokens is not None
    spool = estimating.spool_bodies

    def refuse_one(
        maker: Any, slices: Any, file: Any, keep: Callable[[pl.DataFrame], Any], **named: Any
    ) -> pl.DataFrame:
        parts: list[pl.DataFrame] = []
        spool(maker, slices, file, parts.append, **named)
        asked = pl.concat(parts)
        keep(asked.head(-1))
        return asked.tail(1).select("row", reason=pl.lit("x"), detail=pl.lit("y"))

    monkeypatch.setattr(estimating, "spool_bodies", refuse_one)
    found = estimated(works)
    assert (found.records, found.looked_at, found.refused, found.sendable) == (3, 3, 1, 2)
    assert found.output_tokens == 2 * OUTPUT_TOKENS
    assert found.input_tokens is not None
    assert abs(found.input_tokens - whole.input_tokens * 2 / 3) < whole.input_tokens / 10
    assert found.amount is not None
    assert whole.amount is not None
    assert found.amount < whole.amount


@pytest.mark.parametrize(
    ("tail", "mode", "blocked"),
    [
        pytest.param("merge", "batch", "the provider takes no batch below 100 records", id="few"),
        pytest.param("online", "online", "", id="few, asked online"),
    ],
)
def test_too_few_for_the_smallest_batch(
    works: Works,
    monkeypatch: pytest.MonkeyPatch,
    tail: str,
    mode: Literal["batch", "online"],
    blocked: str,
) -> None:
    works.fill().run(ONE)
    write_model(works, tail=tail)
    monkeypatch.setattr(estimating, "smallest_batch", lambda _: 100)
    found = estimated(works)
    assert found.blocked == blocked
    assert found.input_tokens is not None
    usage = TokenUsage(found.input_tokens // 3, OUTPUT_TOKENS)
    each = price_of("openai", "gpt-5-mini", mode, usage, works.context.clock())
    assert each.amount is not None
    assert found.amount == each.amount * 3
