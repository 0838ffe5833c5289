"""The figures of a state folder as OpenMetrics text.

Belongs here: which figure is which metric, and the text. Does not belong here: reading them
(`machine_facts.py`), and what each metric means (`metric_table.py`).

What is not known has no sample: a 0 would be a claim. Every other figure is told even where it is
0, so that a rule can tell nothing from no news; but of failure classes, retry paths, purposes and
things that wait, only those that occurred.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

from pipeline_assets.account.machine_facts import (
    CostReader,
    Costs,
    Reading,
    VersionReading,
    costs_now,
    read_facts,
)
from pipeline_assets.account.metric_table import METRICS, Declared
from pipeline_assets.account.status import Status
from pipeline_assets.costs.charges import MEANINGS
from pipeline_assets.distribution import EDGES, Distribution
from pipeline_assets.recovery.holds import KINDS as HOLD_KINDS
from resources.clock import from_text
from resources.context import Context
from resources.ledger.transitions import BATCH, RECORD, START

if TYPE_CHECKING:
    from prometheus_client import Metric

Form = Literal["openmetrics", "prometheus"]
CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
"""Of the form `openmetrics`."""

_DECLARED = {metric.name: metric for metric in METRICS}
_BOUNDS = (*(str(float(edge)) for edge in EDGES), "+Inf")


@dataclass(frozen=True)
class Measure:
    """One figure of a metric.

    Attributes:
        name: as in the table.
        labels: values, in the table's order.
        value: a number, or how things are spread.
    """

    name: str
    labels: tuple[str, ...]
    value: float | Distribution


def exposition(
    context: Context,
    keys: Sequence[str] | None = None,
    form: Form = "openmetrics",
    read_costs: CostReader = costs_now,
) -> bytes:
    """The figures of these versions, or of all, and of the house that they stand in.

    Args:
        context: the open resources.
        keys: the versions; every version that was ever used by default.
        form: `openmetrics`, or the older text form, which is the only one that the textfile
            collector of node_exporter reads.
        read_costs: what reads the costs of a version.

    Raises:
        MalformedVersionKey, VersionNeverUsed: one of the keys is of no version here.
        LedgerError: the ledger cannot be read.
    """
    return as_text(measures(read_facts(context, keys, read_costs)), form)


def as_text(found: Iterable[Measure], form: Form = "openmetrics") -> bytes:
    """Figures as text, in the order of the table."""
    from prometheus_client import CollectorRegistry
    from prometheus_client.exposition import generate_latest as older_text
    from prometheus_client.openmetrics.exposition import generate_latest as text

    # A registry of its own: the process-wide one would add figures of this process.
    registry = CollectorRegistry()
    registry.register(_Collected(list(found), form))
    return text(registry) if form == "openmetrics" else older_text(registry)


def measures(reading: Reading) -> Iterator[Measure]:
    """Every figure that is known."""
    yield Measure("read_timestamp", (), reading.at.timestamp())
    for version in reading.versions:
        yield from _standing(version.status)
        yield from _waiting(version.status)
        yield from _ages(version.status)
        yield from _jobs(version)
        yield from _costs(version.costs)
        yield from _looks(version)
    for (kind, severity), count in reading.alerts.items():
        yield Measure("alerts_open", (kind, severity), count)
    yield from _disk(reading)
    yield from _moment("last_backup_timestamp", (), reading.backed_up_at)


def _standing(now: Status) -> Iterator[Measure]:
    key = (now.processing_version,)
    yield Measure("documents", key, now.documents)
    yield Measure("excluded_documents", key, now.excluded)
    yield from _by("stage_documents", key, now.stages)
    yield Measure("shown_documents", key, now.shown)
    yield from _by("records", key, dict.fromkeys(_states(RECORD), 0) | now.states)
    yield Measure("open_records", key, now.open_records)
    yield from _by("batches", key, dict.fromkeys(_states(BATCH), 0) | now.batches)
    yield Measure("active_attempts", key, now.active_attempts)
    yield from _known("publication", key, now.publication.share)
    yield Measure("done", key, int(now.done))
    yield Measure("closed", key, int(now.ready is not None and now.ready.ready))
    held_for = None if now.held is None else now.held.kind
    yield from _by("held", key, {kind: int(kind == held_for) for kind in HOLD_KINDS})


def _waiting(now: Status) -> Iterator[Measure]:
    key = (now.processing_version,)
    for item in now.waiting:
        yield Measure("waiting", (*key, item.what, _needs(item.by_person)), item.count)
    for queue in now.backlog:
        yield Measure("queue_records", (*key, queue.queue), queue.records)
        yield from _known("queue_limit_records", (*key, queue.queue), queue.limit)
    yield Measure("reviews_open", (*key, "findings"), now.review_backlog)
    yield Measure("reviews_open", (*key, "quality_sample"), now.sample_backlog)
    yield Measure("dead_letters_open", key, now.dead_letters)
    yield Measure("retries_due", key, now.retries_due)
    yield from _moment("next_retry_timestamp", key, now.retries_due_at)
    yield from _moment("next_poll_timestamp", key, now.next_poll and now.next_poll.at)
    yield from _known("sampled_error", key, now.sample and now.sample.rate)


def _needs(by_person: bool) -> str:
    return "person" if by_person else "run"


def _ages(now: Status) -> Iterator[Measure]:
    key = (now.processing_version,)
    yield from _spread("open_record_age", key, now.ages.open_records)
    yield from _spread("batch_out_age", key, now.ages.batches_out)
    yield from _spread("open_batch_age", key, now.ages.batches_open)
    yield from _spread("review_age", key, now.ages.reviews)
    yield from _spread("sample_age", key, now.ages.quality_samples)


def _jobs(version: VersionReading) -> Iterator[Measure]:
    facts = version.jobs
    key = (facts.processing_version, facts.provider, facts.mode)
    yield from _spread("queue_age", key, facts.queue_now)
    yield from _spread("queue_time", key, facts.queue_ended)
    yield from _spread("running_age", key, facts.running_now)
    yield from _spread("running_time", key, facts.running_ended)
    yield from _spread("reconciliation_age", key, facts.reconciling_now)
    yield from _spread("reconciliation_lag", key, facts.reconciling_ended)
    yield Measure("jobs", key, facts.jobs)
    yield Measure("polls", key, facts.polls)
    yield from _known("polls_per_job", key, facts.polls_per_job)
    yield Measure("most_polls", key, facts.most_polls)
    for outcome in ("total", "succeeded", "failed", "pending"):
        said: int | None = getattr(facts.provider_counts, outcome)
        yield from _known("provider_rows", (*key, outcome), said)
    yield Measure("silent_jobs", key, facts.provider_counts.silent)
    yield Measure("attempts", key, facts.attempts)
    yield from _by("retries", key, facts.retries)
    yield from _known("retry", key, facts.retry_rate)
    yield from _by("dispositions", key, facts.dispositions)
    yield from _by("failures", key, facts.failures)
    yield Measure("result_files", key, facts.result_files)
    yield Measure("result_lines", key, facts.result_lines)
    yield Measure("download", key, facts.download_bytes)
    yield from _by("unreconciled_records", key, facts.unreconciled)
    yield Measure("incidents", key, facts.incidents_ever)
    yield Measure("quarantines", key, facts.quarantined_ever)


def _costs(costs: Costs) -> Iterator[Measure]:
    account = costs.account
    key, tokens = (account.key,), account.tokens
    yield Measure("cost_read_timestamp", key, costs.at.timestamp())
    yield Measure("accepted_items", key, account.accepted)
    kinds = {"input": tokens.input, "cached": tokens.cached, "output": tokens.output}
    yield from _by("tokens", key, kinds)
    yield from _known_part("cost_known", key, account.usd, account.complete)
    yield from _known_part("provider_cost_known", key, account.provider_usd, not account.unknown)
    for part in account.by_purpose:
        spent = (*key, part.name), part.usd, not part.unknown
        yield from _known_part("cost_known_by_purpose", *spent)
    yield from _by("cost_unknown", key, dict.fromkeys(MEANINGS, 0) | account.unknown)
    yield from _amount("cost_per_accepted", key, account.cost_per_accepted)
    yield from _amount("cost_per_accepted_at_least", key, account.at_least)
    yield from _amount("provider_cost_per_accepted", key, account.provider_per_accepted)
    review = account.review
    if review.minutes or not review.untimed:
        yield Measure("review_time", key, float(review.minutes * 60))
    yield Measure("reviews_untimed", key, review.untimed)
    for name, spread in (("whole", account.time.whole), *account.time.parts.items()):
        yield from _spread("item_time", (*key, name), spread)


def _looks(version: VersionReading) -> Iterator[Measure]:
    key, looks = (version.status.processing_version,), version.looks
    yield from _moment("last_report_timestamp", key, looks.reported_at)
    yield from _moment("last_closing_timestamp", key, looks.closed_at)
    yield from _moment("last_audit_timestamp", key, looks.audited_at)
    yield from _known("last_audit_findings", key, looks.audit_findings)


def _disk(reading: Reading) -> Iterator[Measure]:
    for version in reading.versions:
        key = (version.status.processing_version,)
        yield from _known("disk_forecast", key, version.disk.forecast)
        yield from _known("disk_enough", key, version.disk.enough)
    # The same folder and ledger whichever version asks.
    for disk in (version.disk for version in reading.versions[:1]):
        yield from _by("artifact", (), disk.artifacts)
        yield from _by("artifact_files", (), disk.artifact_files)
        yield Measure("ledger", (), disk.ledger_bytes)
        for place in disk.places:
            for held in place.holds:
                yield from _known("disk_free", (held,), place.free)
                yield from _known("disk_size", (held,), place.total)
        yield Measure("disk_reserve", (), disk.reserve)


def _states(machine: Iterable[str]) -> list[str]:
    return sorted(state for state in machine if state != START)


def _by(name: str, key: tuple[str, ...], counts: dict[str, int]) -> Iterator[Measure]:
    """A figure for each word of a closed list."""
    for word, count in counts.items():
        yield Measure(name, (*key, word), count)


def _known(name: str, key: tuple[str, ...], value: float | None) -> Iterator[Measure]:
    if value is not None:
        yield Measure(name, key, float(value))


def _amount(name: str, key: tuple[str, ...], usd: Decimal | None) -> Iterator[Measure]:
    if usd is not None:
        yield Measure(name, key, float(usd))


def _known_part(name: str, key: tuple[str, ...], usd: Decimal, is_all: bool) -> Iterator[Measure]:
    """What is known of an amount; nothing where that is nothing and the rest is not known."""
    yield from _amount(name, key, usd if usd or is_all else None)


def _moment(name: str, key: tuple[str, ...], moment: str | None) -> Iterator[Measure]:
    if moment is not None:
        yield Measure(name, key, from_text(moment).timestamp())


def _spread(name: str, key: tuple[str, ...], spread: Distribution) -> Iterator[Measure]:
    yield Measure(name, key, spread)
    for quantile, value in (("0.5", spread.p50), ("0.9", spread.p90), ("1", spread.max)):
        yield from _known(f"{name}_quantile", (*key, quantile), value)


class _Collected:
    """Figures as the library wants to be given them: a collector."""

    def __init__(self, found: Sequence[Measure], form: Form) -> None:
        self._form: Form = form
        self._found: dict[str, list[Measure]] = {}
        for measure in found:
            self._found.setdefault(measure.name, []).append(measure)

    def collect(self) -> Iterator[Metric]:
        """The families that have a sample, in the order of the table."""
        for name, declared in _DECLARED.items():
            if name in self._found:
                yield _family(declared, self._found[name], self._form)


def _family(declared: Declared, found: Iterable[Measure], form: Form) -> Metric:
    from prometheus_client import Metric

    kind = declared.kind
    if kind == "gaugehistogram" and form == "prometheus":
        kind = "histogram"  # the older form has no other
    family = Metric(declared.family, declared.meaning, kind, declared.unit)
    for measure in found:
        labels = dict(zip(declared.labels, measure.labels, strict=True))
        if isinstance(measure.value, Distribution):
            _add_spread(family, labels, measure.value)
        else:
            family.add_sample(declared.sample, labels, measure.value)
    return family


def _add_spread(family: Metric, labels: dict[str, str], spread: Distribution) -> None:
    """Cumulative buckets, then how many and how long together."""
    for bound, count in zip(_BOUNDS, accumulate(spread.histogram), strict=True):
        family.add_sample(f"{family.name}_bucket", {**labels, "le": bound}, count)
    prefix = "g" if family.type == "gaugehistogram" else ""
    family.add_sample(f"{family.name}_{prefix}count", labels, spread.count)
    family.add_sample(f"{family.name}_{prefix}sum", labels, spread.total)
