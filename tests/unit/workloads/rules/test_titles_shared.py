"""One title over many documents."""

from __future__ import annotations

from dataclasses import replace

from pipeline_assets.workloads.rules.titles_shared import make_rule
from tests.unit.workloads.rules.batch import LIMITS, entry, view

RULE = make_rule(LIMITS)
LEAST = LIMITS["titles_shared"]["least"]


def test_boilerplate() -> None:
    entries = [entry(n) for n in range(20)]
    entries[:LEAST] = [replace(each, title="Owner’s Manual") for each in entries[:LEAST]]
    note = f"the title is that of {LEAST} different documents of the batch"
    found = RULE.check(view(entries)).found
    assert found.rows() == [(row, "title", note) for row in range(LEAST)]


def test_a_few_documents_may_share_a_title() -> None:
    entries = [entry(n) for n in range(20)]
    entries[: LEAST - 1] = [replace(each, title="Pump") for each in entries[: LEAST - 1]]
    assert RULE.check(view(entries)).found.is_empty()


def test_revisions_share_their_title() -> None:
    entries = [
        replace(entry(1), pages=(f"{entry(1).pages[0]} {n}", entry(1).pages[1])) for n in range(9)
    ]
    assert RULE.check(view(entries)).found.is_empty()
    assert RULE.check(view([])).found.is_empty()
