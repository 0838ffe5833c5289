"""Which versions need their account anew."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pipeline_assets.automation.reports import ReportFact, decide_reports

THEN = datetime(2030, 1, 1, tzinfo=UTC)
LATER = THEN + timedelta(hours=1)


@pytest.mark.parametrize(
    ("fact", "reported", "busy", "wanted"),
    [
        pytest.param(ReportFact("v", 0, None), None, False, False, id="nothing-ever-happened"),
        pytest.param(ReportFact("v", 0, THEN), None, False, True, id="never-reported"),
        pytest.param(ReportFact("v", 0, THEN), LATER, False, False, id="up-to-date"),
        pytest.param(ReportFact("v", 0, LATER), THEN, False, True, id="moved-since"),
        pytest.param(ReportFact("v", 0, THEN), THEN, False, False, id="at-the-same-moment"),
        pytest.param(ReportFact("v", 2, THEN), LATER, False, True, id="open-work"),
        pytest.param(ReportFact("v", 2, LATER), THEN, True, False, id="a-run-is-at-it"),
    ],
)
def test_decision(fact: ReportFact, reported: datetime | None, busy: bool, wanted: bool) -> None:
    at = {} if reported is None else {"v": reported}
    assert decide_reports([fact], at, {"v"} if busy else set()) == (["v"] if wanted else [])
