"""The baseline on the sample and on tickets it was not made from: nothing wrong is accepted."""

from __future__ import annotations

import json

import pytest

from pipeline_assets.workloads.support_tickets.baseline import LONGEST_QUOTE
from tests.unit.workloads.support_tickets.support import (
    Judged,
    Ticket,
    answered,
    held_out_tickets,
    judge,
    sample_tickets,
)


def wrong_ones(judged: list[Judged]) -> list[tuple[str, list[str]]]:
    return [
        (one.ticket.name, one.wrong or [one.ticket.person])
        for one in judged
        if not one.findings and (one.wrong or one.ticket.person)
    ]


@pytest.mark.parametrize(
    ("tickets", "least"),
    [
        pytest.param(sample_tickets(), 0.7, id="sample"),
        pytest.param(held_out_tickets(), 0.1, id="held-out"),
    ],
)
def test_no_wrong_answer_is_accepted(tickets: tuple[Ticket, ...], least: float) -> None:
    judged = judge(tickets)
    accepted = [one for one in judged if not one.findings]
    print(f"accepted {len(accepted)} of {len(judged)}, {len(accepted) / len(judged):.0%}")
    assert wrong_ones(judged) == []
    assert len(accepted) >= least * len(judged), "a baseline that accepts nothing is never wrong"


def test_a_wrong_label_would_be_noticed() -> None:
    right = next(one for one in judge(sample_tickets()[:5]) if not one.findings)
    turned = right.ticket._replace(right=right.ticket.right | {"category": ("other",)})
    assert wrong_ones([right._replace(ticket=turned)]) == [(right.ticket.name, ["category"])]


def test_what_needs_a_person_goes_to_one() -> None:
    doubtful = [one for one in judge(sample_tickets()) if one.ticket.person]
    assert len(doubtful) >= 10
    assert [one.ticket.name for one in doubtful if not one.findings] == []


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("subject: Help", id="one-word"),
        pytest.param("body: ?", id="a-mark"),
        pytest.param(" \n\n ", id="blanks"),
        pytest.param("> all of it\n> is quoted", id="quoted-only"),
        pytest.param("subject: \n\nbody: \U0001f600", id="a-smile"),
    ],
)
def test_next_to_nothing_is_uncertain(text: str) -> None:
    told = json.loads(answered("doc-1", text))
    assert told["document"] == "doc-1"
    assert told["category"] == {"value": None, "status": "uncertain", "evidence": []}
    assert {told[name]["status"] for name in ("language", "summary")} == {"uncertain"}


def test_no_page_is_uncertain() -> None:
    told = json.loads(answered("doc-1", ""))
    assert told["category"]["status"] == "uncertain"


def test_it_is_deterministic() -> None:
    for ticket in sample_tickets()[:10]:
        assert answered("doc-1", ticket.text) == answered("doc-1", ticket.text)


def test_a_long_sentence_is_quoted_by_its_beginning() -> None:
    text = "body: The parcel " + "was never delivered and nobody knows where it is " * 20
    quote = json.loads(answered("doc-1", text))["category"]["evidence"][0]["quote"]
    assert len(quote) <= LONGEST_QUOTE
    assert quote in text
