"""A report as one page of HTML: self-contained, readable on a phone and in print.

Belongs here: what the page is told, in the order of the template. Does not belong here: any
counting, and drawing (`plots.py`).

The page loads nothing and runs nothing. Every text is escaped by the template, and a policy in the
page forbids what an escape might have missed. The same report gives the same bytes: times are
shown in UTC, and nothing says when the page was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline_assets.account.reconciliation import plots
from pipeline_assets.account.reconciliation.facts import FullReport
from pipeline_assets.account.reconciliation.tally import NAMED, Kind, named_losses
from pipeline_assets.account.report import DISPOSITIONS
from pipeline_assets.account.violations import pending_sentence
from pipeline_assets.costs.charges import MEANINGS
from resources.clock import from_text
from resources.ledger.batches import COMPLETE

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = Path(__file__).with_name("templates")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_LEAST = Decimal("0.000001")
"""US dollars; what is less is said to be less, never written as 0."""
STEP_NAMES = {
    "expected": "In a manifest",
    "answered": "Answered",
    "accepted": "Accepted",
    "published": "Published",
    "shown": "Shown by the archive",
}
_AGES = {
    "open_records": "Open records, since they last moved",
    "batches_out": "Batches at the provider",
    "batches_open": "Batches that are not complete",
    "reviews": "Open reviews",
    "quality_samples": "Sampled records that nobody decided on",
}


@dataclass(frozen=True)
class Closing:
    """Who vouches for the collection, since when (UTC) and why."""

    by: str
    at: str
    reason: str


def page_of(
    report: FullReport,
    outcomes: Iterable[pl.DataFrame],
    digest: str,
    closing: Closing | None = None,
) -> Iterator[str]:
    """The page, in pieces.

    Args:
        report: the report.
        outcomes: the shards of its table of outcomes.
        digest: of the report's content.
        closing: who closed it; None where nobody did.
    """
    account, details = report.account, report.details
    template = _environment().get_template("report.html.jinja")
    yield from template.generate(
        policy=_POLICY,
        account=account,
        details=details,
        digest=digest,
        closing=closing,
        losses=named_losses(outcomes),
        named=NAMED,
        step_names=STEP_NAMES,
        dispositions=DISPOSITIONS,
        ages=_ages(details.ages),
        drawn=plots.MOST_BARS,
        meanings=MEANINGS,
        cards=_cards(report),
        unfinished=_unfinished(report),
        steps_plot=_steps_plot(report),
        kinds_plot=_kinds_plot(report),
        batches_plot=_batches_plot(report),
        quality_plot=_quality_plot(report),
    )


def _cards(report: FullReport) -> list[tuple[str, int]]:
    """The counts at the top; of a batch those of its records, wherever their documents are now."""
    account, details = report.account, report.details
    if details.scope is not None:
        heads, states = [("Records", details.outcomes.records)], details.outcomes.states
    else:
        heads, states = (
            [
                ("Documents", account.documents),
                ("Excluded", sum(account.excluded.values())),
                ("Not processed yet", account.pending),
            ],
            account.states,
        )
    return heads + [(_words(state).capitalize(), count) for state, count in states.items()]


def _unfinished(report: FullReport) -> str | None:
    """What is only unfinished, where nothing is wrong; None for what is complete or wrong."""
    account, details = report.account, report.details
    if details.scope is not None:
        (batch,) = details.batches
        if not account.invariant_holds or batch.state in COMPLETE:
            return None
        return (
            f"The batch is {_words(batch.state)}; {batch.unknown} of its {batch.expected} attempts "
            "have no disposition yet"
        )
    # Documents that wait for a run are nothing wrong.
    waits = pending_sentence(account.pending)
    return waits if account.violations == (waits,) else None


def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=_number, percent=_percent, utc=_utc, duration=_duration, words=_words, money=_money
    )
    return environment


def _steps_plot(report: FullReport) -> str:
    steps = report.details.steps
    first = steps[0].records
    rows = [
        plots.Bar(
            STEP_NAMES[step.name],
            (step.records, step.lost),
            _number(step.records) + (f", {_number(step.lost)} fewer" if step.lost else ""),
        )
        for step in steps
    ]
    described = f"Of {first} records in manifests: " + ", ".join(
        f"{STEP_NAMES[step.name].lower()} {step.records}" for step in steps[1:]
    )
    return plots.bars("steps", described, rows, ("came so far", "fewer than the step before"))


def _kinds_plot(report: FullReport) -> str:
    kinds = report.details.kinds
    rows = [
        plots.Bar(_kind_name(kind), (kind.subjects,), _number(kind.subjects))
        for kind in sorted(kinds, key=lambda kind: -kind.subjects)
    ]
    described = "Outcomes: " + ", ".join(f"{_kind_name(kind)} {kind.subjects}" for kind in kinds)
    return plots.bars("kinds", described, rows)


def _batches_plot(report: FullReport) -> str:
    batches = report.details.batches
    rows = [
        plots.Bar(
            batch.batch_id,
            (*(batch.dispositions[name] for name in DISPOSITIONS), batch.unknown),
            f"{_number(sum(batch.dispositions.values()))} of {_number(batch.expected)}",
        )
        for batch in batches
    ]
    described = (
        f"Dispositions of {len(batches)} batches; the table beside it has every number. "
        + f"Succeeded in all: {sum(batch.dispositions['succeeded'] for batch in batches)}"
    )
    series = (*(_words(name) for name in DISPOSITIONS), "none yet")
    return plots.bars("batches", described, rows, series)


def _quality_plot(report: FullReport) -> str:
    quality = report.details.quality
    if quality is None:
        return ""
    rows = [
        plots.Interval(
            entry.slice,
            entry.rate,
            entry.low,
            entry.high,
            f"{_percent(entry.rate)} ({_percent(entry.low)} to {_percent(entry.high)})",
        )
        for entry in quality.by_slice
        if entry.rate is not None and entry.low is not None and entry.high is not None
    ]
    described = "Error rate and its interval by slice; the table beside it has every number"
    return plots.intervals("quality", described, rows)


def _kind_name(kind: Kind) -> str:
    return _words(kind.what) + ("" if kind.why is None else f": {_words(kind.why)}")


def _ages(ages: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(said, ages[name]) for name, said in _AGES.items() if ages.get(name, {}).get("count")]


def _number(value: int | float | None) -> str:
    return "unknown" if value is None else _number_text(f"{value:,}")


def _number_text(text: str) -> str:
    """Thousands apart, in a way that no country takes for a decimal point."""
    return text.replace(",", "\u202f")


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1%}"


def _utc(moment: str | None) -> str:
    return "–" if moment is None else f"{from_text(moment):%Y-%m-%d %H:%M:%S} UTC"


def _duration(seconds: float | None) -> str:
    """Seconds in the unit that says it in few digits."""
    if seconds is None:
        return "–"
    for limit, unit, size in ((120, "s", 1), (7200, "min", 60), (172_800, "h", 3600)):
        if seconds < limit:
            return f"{seconds / size:.3g} {unit}"
    days = seconds / 86_400
    return f"{days:.3g} days" if days < 100 else f"{_number(round(days))} days"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _money(amount: Any) -> str:
    """An amount of US dollars as decimal text; one that is not known is never 0."""
    if amount is None:
        return "unknown"
    value = Decimal(amount)
    if value and abs(value) < _LEAST:
        return f"less than {_LEAST:f} US$"
    if value >= 1 or not value:
        return f"{_number_text(f'{value:,.2f}')} US$"
    return f"{value:.6f} US$"
