"""Tickets, answers about them, and the shard that the rules see of both."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import polars as pl
import yaml

from pipeline_assets.ingest.parsing.language import detect
from pipeline_assets.workloads.evidence_places import find_places
from pipeline_assets.workloads.support_tickets.workload import load
from pipeline_assets.workloads.workload import Rule, Shard, run_rules
from resources.providers.baseline import RequestPage
from scripts.make_sample_tickets import REPOSITORY, SEVERAL

WORKLOAD = load()
FIELDS = ("category", "priority", "product", "language")
TEXT = (
    "subject: Kettle KT-15 does not heat\n\n"
    "body: My KT-15 stopped working yesterday. The lamp goes on, but the water stays cold."
)
SUBJECT = "Kettle KT-15 does not heat"
BODY = "My KT-15 stopped working yesterday."


class Ticket(NamedTuple):
    """A ticket's text and what is right about it: for each field the values of which any is."""

    name: str
    text: str
    right: dict[str, tuple[str, ...]]
    about: str
    person: str


class Judged(NamedTuple):
    """A ticket, what the baseline told of it, and what the rules found."""

    ticket: Ticket
    told: dict[str, Any]
    findings: list[tuple[str, str, str]]

    @property
    def wrong(self) -> list[str]:
        """Fields that are not right."""
        names = [name for name in FIELDS if (self.told[name] or "") not in self.ticket.right[name]]
        said = (self.told["summary"] or "").casefold()
        return names if self.ticket.about.casefold() in said else [*names, "summary"]


@cache
def sample_tickets() -> tuple[Ticket, ...]:
    """The tickets of `data/tickets.csv` that have any text."""
    labels = {row["ticket_id"]: row for row in _rows("tickets-labels.csv")}
    return tuple(
        Ticket(
            row["ticket_id"],
            text,
            {name: tuple(labels[row["ticket_id"]][name].split(SEVERAL)) for name in FIELDS},
            labels[row["ticket_id"]]["about"],
            labels[row["ticket_id"]]["person"],
        )
        for row in _rows("tickets.csv")
        if (text := row_text(row))
    )


def held_out_tickets() -> tuple[Ticket, ...]:
    """The tickets of `held_out.yaml`."""
    file = REPOSITORY / "tests/unit/workloads/support_tickets/held_out.yaml"
    return tuple(
        Ticket(
            f"H-{place}",
            given["text"],
            {
                name: tuple(right) if isinstance(right := given[name], list) else (right or "",)
                for name in FIELDS
            },
            "",
            given.get("person", ""),
        )
        for place, given in enumerate(yaml.safe_load(file.read_text(encoding="utf-8")))
    )


def row_text(row: dict[str, str]) -> str:
    """A row as the table source makes a document of it."""
    return "\n\n".join(f"{name}: {row[name]}" for name in ("subject", "body") if row[name])


def _rows(name: str) -> list[dict[str, str]]:
    with (REPOSITORY / "data" / name).open(encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened))


def judge(tickets: Sequence[Ticket]) -> list[Judged]:
    """What the baseline tells of tickets, and what the rules find in that."""
    answers = [answered(f"doc-{row}", ticket.text) for row, ticket in enumerate(tickets)]
    seen = shard(answers, [ticket.text for ticket in tickets], languages=None)
    found = run_rules(WORKLOAD.acceptances["1"].rules, seen).filter(pl.col("severity") != "note")
    return [
        Judged(
            ticket,
            seen.values.row(row, named=True),
            found.filter(pl.col("row") == row).select("rule", "field", "note").rows(),
        )
        for row, ticket in enumerate(tickets)
    ]


def answered(reference: str, text: str) -> str:
    """The baseline's answer about a ticket."""
    return WORKLOAD.check_answer(WORKLOAD.baseline(reference, [RequestPage(1, text)]).decode())


def field(value: str | None, *quotes: str, status: str = "found") -> dict[str, Any]:
    """A field whose quotes stand on page 1."""
    return {
        "value": value,
        "status": status,
        "evidence": [{"page": 1, "quote": quote} for quote in quotes],
    }


ABSENT = field(None, status="absent")


def answer(**changes: Any) -> dict[str, Any]:
    """An answer about `TEXT` without fault, with some members changed."""
    return {
        "document": "doc-0",
        "category": field("defect", BODY),
        "priority": field("normal", BODY),
        "product": field("KT-15", BODY),
        "language": field("en", BODY),
        "summary": field(SUBJECT, SUBJECT),
    } | changes


def shard(
    answers: Sequence[str], texts: Sequence[str], languages: Sequence[str] | None = ("en",)
) -> Shard:
    """What the rules see of answers, the n-th about the n-th text.

    Without languages, they are those that the parser would tell.
    """
    decoded = WORKLOAD.decode(answers)
    told = [detect([text]) for text in texts] if languages is None else [(languages[0], ())]
    count = len(answers)
    records = pl.DataFrame(
        {
            "row": range(count),
            "record_no": range(count),
            "reference": [f"doc-{row}" for row in range(count)],
            "language": [main for main, _ in told],
            "languages": [" ".join(others) for _, others in told],
        },
        schema={
            "row": pl.Int64,
            "record_no": pl.Int64,
            "reference": pl.String,
            "language": pl.String,
            "languages": pl.String,
        },
    )
    pages = pl.DataFrame(
        {"row": range(count), "page": [1] * count, "text": texts},
        schema={"row": pl.Int64, "page": pl.Int64, "text": pl.String},
    )
    return Shard(
        records=records,
        values=decoded.values,
        items=decoded.items,
        evidence=decoded.evidence,
        uncertain=decoded.uncertain,
        page_texts=lambda wanted: pages.join(wanted, on=["row", "page"], how="semi"),
        document_texts=lambda rows: iter([pages.filter(pl.col("row").is_in(rows.implode()))]),
        places=find_places(decoded.evidence, pages),
    )


def notes(rule: Rule, given: dict[str, Any], text: str = TEXT) -> list[tuple[str, str]]:
    """What a rule finds in one answer about a text: field and note."""
    seen = shard([WORKLOAD.check_answer(json.dumps(given))], [text])
    return sorted(rule.check(seen).select("field", "note").rows())


def rule_named(name: str) -> Rule:
    """A rule of the first acceptance."""
    return next(rule for rule in WORKLOAD.acceptances["1"].rules if rule.id == name)
