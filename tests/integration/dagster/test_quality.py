"""What Dagster shows of quality: the sample, its error rate, and a number a family of rules."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg
import pytest
from sqlalchemy import text

from partitions.definition import register
from pipeline_assets.accept import family_findings
from pipeline_assets.accept.checks import check_name
from pipeline_assets.accept.family_findings import FAMILIES
from resources.context import open_context
from resources.settings import Settings
from tests.support.materialise import Finished, materialise
from tests.support.small_shop import KEY


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        register(instance, [KEY])
        yield instance


def metadata_of(result: dg.ExecuteInProcessResult, name: str) -> dict[str, object]:
    (event,) = result.asset_materializations_for_node(name)
    return {key: value.value for key, value in event.metadata.items()}


def evaluations(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetCheckEvaluation]:
    return {found.check_name: found for found in result.get_asset_check_evaluations()}


def test_the_first_run_draws_a_sample(finished: Finished) -> None:
    told = metadata_of(finished.result, "quality_sample")
    assert told["drawn"] == told["waiting"] == told["accepted by rules"] == 1
    assert told["decided"] == told["errors"] == 0
    assert told["dagster/partition_row_count"] == 1
    assert told["drawn by slice"] == {"en/short/text": 1}
    assert "error rate" not in told


@pytest.mark.parametrize(
    ("decision", "rate"),
    [pytest.param("accept", 0.0, id="right"), pytest.param("correct", 1.0, id="wrong")],
)
def test_what_was_decided_is_a_rate_that_people_plot(
    after_a_run: Settings, instance: dg.DagsterInstance, decision: str, rate: float
) -> None:
    with open_context(after_a_run) as context, context.ledger.write() as connection:
        connection.execute(
            text("UPDATE reviews SET decision = :word WHERE kind = 'quality_sample'"),
            {"word": decision},
        )
    result = materialise(after_a_run, instance, "quality_sample")
    assert result.success
    told = metadata_of(result, "quality_sample")
    assert (told["drawn"], told["waiting"], told["decided"]) == (0, 0, 1)
    # The slice has one record, which was seen: there is no doubt left.
    for name in ("error rate", "error rate, low", "error rate, high"):
        assert told[name] == rate
    assert told["by slice"] == {
        "en/short/text": {
            "population": 1,
            "drawn": 1,
            "decided": 1,
            "errors": int(rate),
            "error rate": rate,
        }
    }


def test_every_family_of_rules_is_a_check_with_numbers(finished: Finished) -> None:
    found = evaluations(finished.result)
    for family in FAMILIES:
        check = found[check_name(family)]
        assert check.passed
        assert not check.blocking
        assert check.severity == dg.AssetCheckSeverity.WARN
        assert check.partition == KEY
        assert check.asset_key == dg.AssetKey("validated_staging")
        numbers = {name: value.value for name, value in check.metadata.items()}
        assert numbers["judged"] == 2
        for name in ("findings", "records", "records doubted"):
            assert isinstance(numbers[name], int)
        for name in ("share of judged", "share doubted"):
            assert isinstance(numbers[name], float)
    shares = [found[check_name(family)].metadata["share doubted"].value for family in FAMILIES]
    assert 0.5 in shares


def test_a_family_that_doubts_too_much_warns_and_stops_nothing(
    after_a_run: Settings, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(family_findings, "DOUBTED_AT_MOST", 0.0)
    result = materialise(after_a_run, instance, "validated_staging", "published_archive")
    assert result.success
    warned = [found for found in evaluations(result).values() if not found.passed]
    assert warned
    for check in warned:
        assert check.severity == dg.AssetCheckSeverity.WARN
        assert "1 of 2 judged records" in str(check.description)
    assert len(result.asset_materializations_for_node("published_archive")) == 1
