"""The costs of a version are read once for a report and the numbers that are plotted beside it."""

from __future__ import annotations

from pipeline_assets.account.machine_facts import Costs, costs_now
from pipeline_assets.account.plotted import plotted_numbers
from pipeline_assets.account.reconciliation.kept import keep_report
from pipeline_assets.account.remembered_costs import CostsReadOnce
from resources.context import Context
from tests.support.small_archive import KEY, Archive


def test_once_for_both(archive: Archive) -> None:
    read: list[str] = []

    def noted(context: Context, key: str) -> Costs:
        read.append(key)
        return costs_now(context, key)

    costs = CostsReadOnce(noted)
    kept = keep_report(archive.context, KEY, read_cost=costs.account)
    numbers = plotted_numbers(archive.context, KEY, costs)
    assert read == [KEY]
    assert kept.report.details.cost["accepted"] == numbers["accepted items"] > 0
    assert keep_report(archive.context, KEY).digest == kept.digest, "it says the same"
