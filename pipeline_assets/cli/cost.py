"""`tallybook cost`: what a version cost, by accepted item and by whatever one asks for."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    VersionOption,
    counted,
    make_settings,
    open_existing,
)

if TYPE_CHECKING:
    from decimal import Decimal

    from pipeline_assets.costs.account import CostAccount, Part
    from pipeline_assets.costs.times import TimeAccount
    from resources.context import Context

DEAREST = 20
"""Records that `--by record` shows without `--json`."""
_COLUMNS = ("attempts", "input", "cached", "output", "US dollars", "not known")


class By(StrEnum):
    """What a cost is told by."""

    SLICE = "slice"
    CLASS = "class"
    BATCH = "batch"
    RECORD = "record"


def cost_command(
    by: Annotated[
        By | None,
        typer.Option(
            "--by",
            help="One part a line: slices of documents, failure classes, batches or records.",
            show_default=False,
        ),
    ] = None,
    attempts: Annotated[
        bool,
        typer.Option("--attempts", help="Every attempt as a line of JSON; they add up to the sum."),
    ] = False,
    version: VersionOption = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Show what a version cost, what an accepted item did, and what nobody knows of it."""
    from pipeline_assets.cli import output
    from pipeline_assets.costs.account import cost_account
    from pipeline_assets.costs.listing import attempt_costs

    if attempts and by is not None:
        raise typer.BadParameter("--attempts lists every attempt; leave --by out")
    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        if attempts:
            output.emit_json_lines(
                row.as_json() for row in attempt_costs(context, settings.version)
            )
        elif by is By.RECORD:
            _by_record(context, settings.version, json=json)
        elif by is By.BATCH:
            _by_batch(context, settings.version, json=json)
        else:
            account = cost_account(context, settings.version)
            if by is None and json:
                output.emit_json(account.as_json())
            elif by is None:
                _print(account)
            else:
                parts = account.by_slice if by is By.SLICE else account.by_class
                _by_part(str(by), parts, json=json)
    return 0


def _by_record(context: Context, key: str, *, json: bool) -> None:
    import heapq

    from pipeline_assets.cli import output
    from pipeline_assets.costs.listing import record_costs

    rows = record_costs(context, key)
    if json:
        output.emit_json_lines(row.as_json() for row in rows)
        return
    dearest = heapq.nlargest(DEAREST, rows, key=lambda row: (row.usd, row.attempts))
    output.table(
        f"The {DEAREST} dearest records (all of them: --by record --json)",
        ("record", *_COLUMNS),
        (
            (
                row.record,
                row.attempts,
                row.input,
                row.cached,
                row.output,
                _dollars(row.usd),
                ", ".join(row.unknown),
            )
            for row in dearest
        ),
    )


def _by_batch(context: Context, key: str, *, json: bool) -> None:
    from pipeline_assets.cli import output
    from pipeline_assets.costs.listing import batch_costs

    rows = batch_costs(context, key)
    if json:
        output.emit_json_lines(
            {
                "batch": job.id,
                "state": job.state,
                "attempts": found.rows,
                "input": found.input,
                "cached": found.cached,
                "output": found.output,
                "usd": format(found.usd, "f"),
                "unknown": dict(found.unknown),
                "basis": rates.price.basis,
                "rates": rates.as_text(),
                "price_of": rates.price.priced_at,
                "package": rates.price.package,
                "frozen": rates.frozen,
            }
            for job, rates, found in rows
        )
        return
    output.table(
        "By batch",
        ("batch", "state", *_COLUMNS, "price"),
        (
            (
                job.id,
                job.state,
                found.rows,
                found.input,
                found.cached,
                found.output,
                _dollars(found.usd),
                _unknown(found.unknown),
                rates.price.basis,
            )
            for job, rates, found in rows
        ),
    )


def _by_part(by: str, parts: Iterable[Part], *, json: bool) -> None:
    from pipeline_assets.cli import output

    if json:
        output.emit_json_lines({by: part.name, **_without_name(part)} for part in parts)
        return
    _table(f"By {by}", parts)


def _without_name(part: Part) -> dict[str, object]:
    return {name: value for name, value in part.as_json().items() if name != "name"}


def _print(account: CostAccount) -> None:
    from pipeline_assets.cli import output
    from pipeline_assets.costs.charges import MEANINGS

    review = account.review
    output.facts(
        [
            ("processing version", account.key),
            ("accepted items", account.accepted),
            ("cost of an accepted item", _each(account)),
            ("known in all", f"{_dollars(account.usd)} US dollars"),
            ("  the provider's part", f"{_dollars(account.provider_usd)} US dollars"),
            ("  the reviewers' part", _reviewers(account)),
            (
                "tokens",
                f"{account.tokens.input} read ({account.tokens.cached} from a cache), "
                f"{account.tokens.output} written",
            ),
            ("reviews", f"{review.decided} decided, {review.timed} timed: {review.minutes} min"),
        ]
    )
    if account.unknown:
        output.table(
            "Not known, and in no sum",
            ("how many", "what"),
            ((count, MEANINGS.get(reason, reason)) for reason, count in account.unknown.items()),
        )
    _table("What it was for", account.by_purpose)
    _table("What became of it", account.by_outcome)
    output.table(
        "Prices",
        ("model", "mode", "jobs", "day", "US dollars a million tokens", "from", "price list"),
        (
            (
                price.model,
                price.mode,
                price.jobs,
                price.day,
                price.rates,
                price.basis if price.frozen else f"{price.basis}, looked up now",
                price.package,
            )
            for price in account.prices
        ),
    )
    _print_time(account.time)


def _print_time(time: TimeAccount) -> None:
    from pipeline_assets.cli import output

    if not time.records:
        return
    output.table(
        f"Time of {counted(time.records, 'accepted item')}, in hours",
        ("part", "half within", "nine of ten within", "longest", "mean"),
        (
            (
                name,
                _hours(part.p50),
                _hours(part.p90),
                _hours(part.max),
                _hours(part.total / part.count),
            )
            for name, part in (*time.parts.items(), ("whole", time.whole))
        ),
    )


def _table(title: str, parts: Iterable[Part]) -> None:
    from pipeline_assets.cli import output

    shown = list(parts)
    divided = any(part.accepted is not None for part in shown)
    extra = ("accepted", "of each") if divided else ()
    output.table(
        title,
        ("", *_COLUMNS, *extra),
        (
            (
                part.name,
                part.attempts,
                part.tokens.input,
                part.tokens.cached,
                part.tokens.output,
                _dollars(part.usd),
                _unknown(part.unknown),
                *((part.accepted, _amount(part.per_accepted)) if divided else ()),
            )
            for part in shown
        ),
    )


def _each(account: CostAccount) -> str:
    if account.cost_per_accepted is not None:
        return f"{_dollars(account.cost_per_accepted)} US dollars"
    if account.at_least is None:
        return "nothing is accepted"
    return f"not known; at least {_dollars(account.at_least)} US dollars"


def _reviewers(account: CostAccount) -> str:
    review = account.review
    if review.usd is None:
        return "not known: set reviewer_usd_hour (tallybook settings set)"
    untimed = f", {counted(review.untimed, 'review')} without a time" if review.untimed else ""
    return f"{_dollars(review.usd)} US dollars{untimed}"


def _unknown(unknown: dict[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in unknown.items())


def _amount(amount: Decimal | None) -> str:
    return "" if amount is None else _dollars(amount)


def _dollars(amount: Decimal) -> str:
    from pipeline_assets.recovery.budget import dollars

    return dollars(amount)


def _hours(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds / 3600:.2f}"
