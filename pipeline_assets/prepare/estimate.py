"""What a replay would cost and how long it would take, before anything is frozen.

Belongs here: rendering a share of the documents, and adding up. Does not belong here: prices
(`resources/providers/prices.py`), what was spent already (`pipeline_assets/costs.py`).

What is not known is told as unknown, never as nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import polars as pl

from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.prepare.plan import smallest_batch
from pipeline_assets.prepare.requests import RECORDS_AT_ONCE, with_pages
from pipeline_assets.prepare.spool import ASKED_SCHEMA, spool_bodies
from pipeline_assets.prompting.request_maker import make_request_maker
from pipeline_assets.replay.model import ReplayPlan
from pipeline_assets.versions import OpenVersion
from resources.batched import batched
from resources.clock import from_text
from resources.context import Context
from resources.ledger.parses import parses_of
from resources.providers.capabilities import UnsupportedCombination
from resources.providers.prices import TokenUsage, price_of
from resources.record_ids import record_id

RENDERED_AT_MOST = 1_000
"""So many documents are rendered to count their tokens; of more, an even share is."""


@dataclass(frozen=True)
class Estimate:
    """What is to be expected.

    Attributes:
        records: that would be processed.
        not_parsed: of them, documents whose text is not there yet; they are counted like the mean.
        refused: documents, of those looked at, that could not be sent.
        looked_at: documents that were rendered for it.
        sendable: of the records, those that could be sent if all are like those looked at; only
            these are counted and priced.
        blocked: why the provider would not take them; empty where it would.
        input_tokens: of all requests; None where nobody is asked.
        output_tokens: of all answers; None where nobody is asked.
        output_basis: where the answers' length comes from.
        amount: US dollars; None where the price is not known or nobody is paid.
        basis: where the price comes from, or why there is none.
        hours: (half of the batches, nine of ten) were done within so many hours; None where none
            was seen yet.
        time_basis: what the time is told from.
    """

    records: int
    not_parsed: int = 0
    refused: int = 0
    looked_at: int = 0
    sendable: int = 0
    blocked: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    output_basis: str = ""
    amount: Decimal | None = None
    basis: str = ""
    hours: tuple[float, float] | None = None
    time_basis: str = ""

    def as_json(self) -> dict[str, Any]:
        """The estimate as plain JSON values."""
        return vars(self) | {"amount": None if self.amount is None else str(self.amount)}


def estimate(context: Context, version: OpenVersion, plan: ReplayPlan) -> Estimate:
    """What carrying the plan out would cost.

    Raises:
        InvalidPrompt, SchemaUnsupported: the version's requests cannot be made.
    """
    spec = version.spec
    records = plan.members.height
    if spec.mode == "embedded":
        return Estimate(
            records,
            sendable=records,
            basis="the built-in rules cost nothing",
            time_basis="answered inside the run",
        )
    measured = _measure(context, version, plan)
    output, basis = _output_tokens(context, version, plan)
    hours, time_basis = _hours(context, version)
    found = replace(
        measured,
        output_tokens=output * measured.sendable,
        output_basis=basis,
        hours=hours,
        time_basis=time_basis,
    )
    if found.input_tokens is None or not found.sendable:
        return replace(found, basis="no document could be rendered")
    mode, blocked = _way(version, found.sendable)
    each = price_of(
        spec.provider,
        spec.model,
        mode,
        TokenUsage(found.input_tokens // found.sendable, output),
        context.clock(),
    )
    return replace(
        found,
        blocked=blocked,
        amount=None if each.amount is None else each.amount * found.sendable,
        basis=each.basis,
    )


def _way(version: OpenVersion, records: int) -> tuple[Literal["batch", "online"], str]:
    """How so many are asked, and why the provider would not take them."""
    if version.spec.mode == "online":
        return "online", ""
    try:
        least = smallest_batch(version)
    except UnsupportedCombination as error:
        return "batch", str(error)
    if records >= least:
        return "batch", ""
    request = version.spec.request
    if request is not None and request.tail == "online":
        return "online", ""
    return "batch", f"the provider takes no batch below {least} records"


def _measure(context: Context, version: OpenVersion, plan: ReplayPlan) -> Estimate:
    """Render a share of the documents, and scale it up."""
    parses = parses_of(
        context.ledger,
        parser_settings(version.spec).key,
        plan.members["checksum"],
        ["checksum", "text_pack"],
    )
    members = plan.members.join(parses, on="checksum", how="left", maintain_order="left")
    usable = members.filter(pl.col("text_pack").is_not_null())
    every = max(1, -(-usable.height // RENDERED_AT_MOST))
    share = (
        usable.gather_every(every)
        .with_columns(
            record_id=record_id(
                version.spec.workload, pl.col("document_id"), pl.col("checksum"), version.key
            )
        )
        .sort("record_id")
    )
    found = Estimate(
        plan.members.height,
        not_parsed=members.height - usable.height,
        sendable=plan.members.height,
    )
    if share.is_empty():
        return found
    documents = with_pages(
        context.artifacts, share.select("record_id", "checksum", "text_pack"), lambda: None
    )
    parts = [pl.DataFrame(schema=ASKED_SCHEMA)]
    with Path(os.devnull).open("wb") as nowhere:
        refused = spool_bodies(
            make_request_maker(version),
            batched(documents, RECORDS_AT_ONCE),
            nowhere,
            parts.append,
            on_slice=lambda _: None,
        )
    asked = pl.concat(parts)
    sendable = round(plan.members.height * asked.height / share.height)
    found = replace(found, looked_at=share.height, refused=refused.height, sendable=sendable)
    if asked.is_empty():
        return found
    mean = Decimal(int(asked["input_tokens"].sum())) / asked.height
    return replace(found, input_tokens=int(mean * sendable))


def _output_tokens(context: Context, version: OpenVersion, plan: ReplayPlan) -> tuple[int, str]:
    """Tokens of one answer, and where that figure comes from."""
    for number, told in (
        (version.version_no, "the mean of this version's answers"),
        (plan.replay.from_version_no, "the mean of the answers of the version it replays"),
    ):
        with context.ledger.read() as connection:
            mean = context.ledger.dialect.fetch(
                connection,
                "SELECT CAST(AVG(p.output_tokens) AS DOUBLE PRECISION) FROM batches b "
                "JOIN dispositions p "
                "ON p.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no "
                "WHERE b.version_no = ? AND p.output_tokens > 0",
                {"mean": pl.Float64},
                (number,),
            ).item()
        if mean is not None:
            return round(mean), told
    request = version.spec.request
    assert request is not None  # noqa: S101 - the spec's own check
    return request.output_tokens, "the most that an answer may have; none was seen yet"


def _hours(context: Context, version: OpenVersion) -> tuple[tuple[float, float] | None, str]:
    """How long this provider's batches of this model took, half and nine tenths of them."""
    spec = version.spec
    with context.ledger.read() as connection:
        seen = context.ledger.dialect.fetch(
            connection,
            "SELECT b.submitted_at, MIN(m.moved_at) FROM batches b "
            "JOIN moves m ON m.machine = 'batch' AND m.subject_no = b.batch_no "
            "AND m.to_state = 'results_available' "
            "WHERE b.provider = ? AND b.model = ? AND b.mode = ? AND b.submitted_at IS NOT NULL "
            "GROUP BY b.batch_no, b.submitted_at",
            {"submitted_at": pl.String, "done_at": pl.String},
            (spec.provider, spec.model, spec.mode),
        )
    if seen.is_empty():
        if spec.mode == "online":
            return None, "no batch was answered yet, so it is not known"
        window = 24 if spec.request is None else spec.request.window_hours
        return None, f"no batch was seen yet; the provider may take up to {window} hours"
    hours = pl.Series(
        [
            (from_text(done) - from_text(sent)).total_seconds() / 3600
            for sent, done in seen.iter_rows()
        ]
    )
    half, most = hours.quantile(0.5, "nearest"), hours.quantile(0.9, "nearest")
    return (
        (round(float(half or 0), 3), round(float(most or 0), 3)),
        f"{seen.height} batches of this provider and model",
    )
