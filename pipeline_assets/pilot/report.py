"""What a pilot came to: figures a version, what they mean for the whole archive, and advice.

Belongs here: putting measured facts together. Does not belong here: reading them (`facts.py`,
`measure.py`), the estimators (`projection.py`), rules of thumb (`advice.py`) and showing it
(`page.py`, `cli/pilot.py`). What is not known stays None all the way, and is never counted as 0.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
from sqlalchemy import Connection

from partitions.processing_version import Spec, find_spec
from pipeline_assets.compare.compare import compare_versions
from pipeline_assets.costs.account import CostAccount, cost_account
from pipeline_assets.distribution import Distribution, distribution
from pipeline_assets.known_version import KnownVersion, VersionNeverUsed, known_version
from pipeline_assets.operating import Operating, operating
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.pilot.advice import (
    Advice,
    Machine,
    batch_records,
    online_calls,
    parser_workers,
)
from pipeline_assets.pilot.facts import (
    ACCEPTED_STATES,
    GONE,
    DocumentFact,
    ProviderFact,
    answers_of,
    document_facts,
    failure_classes,
    kind_bytes,
    mean_tokens,
    own_bytes,
    parser_peak,
    provider_facts,
    review_findings,
)
from pipeline_assets.pilot.measure import Effort, Measured, read_measured, stages_of, was_cut
from pipeline_assets.pilot.plan import Plan
from pipeline_assets.pilot.projection import (
    Range,
    count_of,
    exactly,
    share_of,
    total_of,
)
from pipeline_assets.pilot.run import Outcome, digest_of
from pipeline_assets.pilot.steps import MOVING, PARSE, PROCESS, PUBLISH
from pipeline_assets.pilot.truth import Score, Truth, score
from pipeline_assets.workloads.fields import fields_of
from resources.clock import to_text
from resources.context import Context
from resources.providers.capabilities import (
    Capability,
    Mode,
    UnsupportedCombination,
    find_capability,
)
from resources.providers.registry import endpoint_of

HOUR = 3600.0
PUSHED_BACK = frozenset({"rate_limited", "capacity", "overloaded"})
WITHOUT_RECORD = frozenset({"excluded", "pending", GONE})
"""States of documents that nobody was asked about."""
NOT_FROM_A_SAMPLE = (
    "how long a provider's queue is cannot be told from a small job; each job may take as long as "
    "its window"
)
_CGROUP = Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True)
class StratumLine:
    """What a version made of a stratum.

    Attributes:
        name: the stratum.
        documents: in the sources.
        sampled: taken.
        accepted: accepted by the rules.
        to_review: waiting for a person.
        excluded: without text, a copy, or else excluded.
        other: dead letters, documents that are gone, and what is still under way.
    """

    name: str
    documents: int
    sampled: int
    accepted: int
    to_review: int
    excluded: int
    other: int


@dataclass(frozen=True)
class Sizes:
    """Bytes of the sample: of the documents, of what was asked, and of what came back."""

    source: int
    requests: int
    results: int


@dataclass(frozen=True)
class Cost:
    """What the sample cost.

    Attributes:
        provider_usd: the known part, canaries included.
        unknown: reason → answers whose amount is not known; they are in no amount.
        per_accepted: provider's money for each accepted document; None where a part is not known
            or nothing was accepted.
        review_usd: what it would cost to review what waits; None where the minutes of a review or
            the price of a reviewer's hour were not given.
        per_accepted_reviewed: both together for each accepted document, as if every review ended in
            nothing; None where one of them is not known.
    """

    provider_usd: Decimal
    unknown: dict[str, int]
    per_accepted: Decimal | None
    review_usd: Decimal | None
    per_accepted_reviewed: Decimal | None


@dataclass(frozen=True)
class Projection:
    """The whole archive under a version, each with a 95 % interval; None is not known.

    Attributes:
        documents: documents of all strata, which are known.
        accepted: documents that the rules would accept.
        to_review: documents that a person would have to look at.
        review_hours: hours of that.
        usd: provider's money, canaries included.
        local_hours: hours of this machine, one run after the other.
        provider_hours: hours of waiting for the provider.
        provider_note: why these are not known, or what they rest on.
        disk_bytes: of ledger and artifacts.
    """

    documents: int
    accepted: Range | None
    to_review: Range | None
    review_hours: Range | None
    usd: Range | None
    local_hours: Range | None
    provider_hours: Range | None
    provider_note: str
    disk_bytes: Range | None


@dataclass(frozen=True)
class VersionReport:
    """What one version came to.

    Attributes:
        key: the version.
        provider: who answers.
        mode: embedded, batch or online.
        model: the model, or the version of the rules.
        moving: records that still go on by themselves: while there are any, all figures are of
            what was done so far.
        due_at: when there is something to do for it next, UTC text.
        waits: why it does not go on now.
        problem: why it could not be processed, where it could not.
        spec_changed: its files say something else by now: all figures are of what they said.
        outcomes: state → taken documents.
        excluded: reason → taken documents.
        failures: failure class → attempts that ended so, retries included.
        findings: rule → records that wait for a reviewer because of it.
        strata: by name.
        stages: stage → what it took, parsing included; whole batches, not one document.
        times_are_short: a step was killed, so the times lack what that had taken.
        parse_wall_s: seconds that documents took in parser processes, added up.
        parse_cpu_s: seconds of processor time of that.
        peak_rss_bytes: highest resident memory of a step's process.
        parser_peak_rss_bytes: the same of a parser process.
        local_s: seconds of this machine: all stages, without waiting for online calls.
        provider_s: from the first submission to the last result; None where nobody was asked.
        jobs: how long the provider's jobs took.
        sizes: bytes.
        acceptance: share of all documents that the rules would accept.
        review: share of all documents that a person would have to look at.
        accepted: taken documents that were accepted.
        accepted_per_hour: accepted documents for each hour of this machine.
        accepted_per_hour_with_provider: the same with the provider's time.
        cost: what it cost.
        score: how right accepted answers are, where known values were given.
        workers: recommended parser processes.
        calls: recommended online calls at once.
        batch: recommended records a batch.
        projection: the whole archive.
    """

    key: str
    provider: str
    mode: str
    model: str
    moving: int
    due_at: str | None
    waits: str | None
    problem: str | None
    spec_changed: bool = False
    outcomes: dict[str, int] = field(default_factory=dict)
    excluded: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    findings: dict[str, int] = field(default_factory=dict)
    strata: tuple[StratumLine, ...] = ()
    stages: dict[str, Effort] = field(default_factory=dict)
    times_are_short: bool = False
    parse_wall_s: float = 0.0
    parse_cpu_s: float = 0.0
    peak_rss_bytes: int = 0
    parser_peak_rss_bytes: int = 0
    local_s: float = 0.0
    provider_s: float | None = None
    jobs: Distribution | None = None
    sizes: Sizes | None = None
    acceptance: Range | None = None
    review: Range | None = None
    accepted: int = 0
    accepted_per_hour: float | None = None
    accepted_per_hour_with_provider: float | None = None
    cost: Cost | None = None
    score: Score | None = None
    workers: Advice | None = None
    calls: Advice | None = None
    batch: Advice | None = None
    projection: Projection | None = None


@dataclass(frozen=True)
class Agreement:
    """How two versions agree on the documents that both accepted.

    Attributes:
        first: key of the first.
        second: key of the other.
        both: documents with values of both.
        changed: of them, with a value that is another one.
        only_first: documents that the first alone accepted.
        only_second: likewise.
        fields: field → documents with another value.
    """

    first: str
    second: str
    both: int
    changed: int
    only_first: int
    only_second: int
    fields: dict[str, int]


@dataclass(frozen=True)
class PilotReport:
    """What a pilot came to.

    Attributes:
        pilot_id: its id.
        folder: its state folder, for other commands.
        workload: what the versions extract.
        made_at: when it was made, UTC text.
        reported_at: when this was put together, UTC text.
        sample: documents that were asked for.
        seed: what their order was made of.
        taken: documents that were taken.
        documents: documents of all strata of the sources.
        known: of them, with a stratum that is known from a parse; the others' is guessed.
        left_out: why → documents that are in no stratum.
        gone: ids of taken documents that the sources did not hold any more.
        changed: ids of taken documents with other bytes than the archive knew.
        done: all versions have settled.
        machine: what it ran on.
        review_minutes: of one review, as given; None: not given.
        versions: in the order in which they were named.
        agreements: the first version with each of the others.
    """

    pilot_id: str
    folder: str
    workload: str
    made_at: str
    reported_at: str
    sample: int
    seed: int
    taken: int
    documents: int
    known: int
    left_out: dict[str, int]
    gone: tuple[str, ...]
    changed: tuple[str, ...]
    done: bool
    machine: Machine
    review_minutes: Decimal | None
    versions: tuple[VersionReport, ...]
    agreements: tuple[Agreement, ...]

    def as_json(self) -> dict[str, Any]:
        """The report as plain JSON values, in this order."""
        return msgspec.to_builtins(self)


@dataclass(frozen=True)
class Asked:
    """What a report is made with besides the pilot.

    Attributes:
        truth: known values; None where none were given.
        review_minutes: minutes that one review takes; None: not known.
        machine: what it ran on.
    """

    truth: Truth | None
    review_minutes: Decimal | None
    machine: Machine


def this_machine() -> Machine:
    """Processors and memory that this process may use."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    memory: int | None = None
    with suppress(ValueError, OSError):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(ValueError, OSError):
        limit = int(_CGROUP.read_text(encoding="ascii"))
        memory = limit if memory is None else min(memory, limit)
    return Machine(cores, memory)


def build_report(context: Context, outcome: Outcome, asked: Asked) -> PilotReport:
    """Put the report of a pilot together.

    Args:
        context: the pilot, open.
        outcome: how far it came.
        asked: known values, and what else is given.

    Raises:
        UnknownVersion, InvalidSpec: a version's spec is not there any more.
        ArtifactMissing, ContractRefused: judged answers cannot be read.
    """
    plan = outcome.plan
    lines = read_measured(context.settings.state_folder)
    reports, facts = [], []
    for key in plan.versions:
        report, own = _version(context, outcome, key, lines, asked)
        reports.append(report)
        facts.append(own)
    first = next((own for own in facts if own), [])
    return PilotReport(
        pilot_id=plan.pilot_id,
        folder=str(context.settings.state_folder),
        workload=plan.workload,
        made_at=plan.made_at,
        reported_at=to_text(context.clock()),
        sample=plan.sample,
        seed=plan.seed,
        taken=len(plan.taken),
        documents=sum(stratum.documents for stratum in plan.strata),
        known=plan.known,
        left_out=plan.left_out,
        gone=tuple(fact.document_id for fact in first if fact.state == GONE),
        changed=tuple(fact.document_id for fact in first if fact.changed),
        done=outcome.published,
        machine=asked.machine,
        review_minutes=asked.review_minutes,
        versions=tuple(reports),
        agreements=tuple(_agreements(context, plan.versions)),
    )


def _agreements(context: Context, versions: Sequence[str]) -> list[Agreement]:
    found = []
    for other in versions[1:]:
        try:
            compared = compare_versions(context, versions[0], other, limit=0)
        except VersionNeverUsed:
            # Told with the version itself, by its problem.
            continue
        different = {
            name: counts["changed"] + counts["gained"] + counts["lost"]
            for name, counts in compared.fields.items()
        }
        found.append(
            Agreement(
                versions[0],
                other,
                compared.both,
                compared.changed,
                compared.only_first,
                compared.only_second,
                different,
            )
        )
    return found


def _version(
    context: Context, outcome: Outcome, key: str, lines: Sequence[Measured], asked: Asked
) -> tuple[VersionReport, list[DocumentFact]]:
    spec = find_spec(key, context.settings.spec_folders)
    problem = outcome.problems.get(key)
    try:
        version = known_version(context, key)
    except VersionNeverUsed:
        return VersionReport(key, spec.provider, spec.mode, spec.model, 0, None, None, problem), []
    paid = cost_account(context, key)
    with context.ledger.read() as connection:
        gathered = _Gathered.of(connection, context, outcome.plan, spec, version, lines, paid)
    return gathered.report(context, outcome, asked), gathered.facts


@dataclass
class _Gathered:
    """Everything that was read of one version, at one moment."""

    plan: Plan
    spec: Spec
    version: KnownVersion
    facts: list[DocumentFact]
    provider: ProviderFact
    failures: dict[str, int]
    findings: dict[str, int]
    answers: pl.DataFrame
    tokens: float | None
    parser_peak: int
    own_bytes: int
    ledger_bytes: int
    paid: CostAccount
    operating: Operating
    lines: Sequence[Measured]

    @staticmethod
    def of(
        connection: Connection,
        context: Context,
        plan: Plan,
        spec: Spec,
        version: KnownVersion,
        lines: Sequence[Measured],
        paid: CostAccount,
    ) -> _Gathered:
        number = version.version_no
        settings = operating(context.ledger, number)
        return _Gathered(
            plan=plan,
            spec=spec,
            version=version,
            facts=document_facts(connection, context, version, plan.taken),
            provider=provider_facts(connection, context, number, settings.online_concurrency),
            failures=failure_classes(connection, context, number),
            findings=review_findings(connection, context, number),
            answers=answers_of(connection, context, version),
            tokens=mean_tokens(connection, context, number),
            parser_peak=parser_peak(connection, context, version.parser_key),
            own_bytes=own_bytes(connection, context, number),
            ledger_bytes=context.ledger.dialect.bytes_used(connection),
            paid=paid,
            operating=settings,
            lines=lines,
        )

    @property
    def populations(self) -> dict[str, int]:
        return {stratum.name: stratum.documents for stratum in self.plan.strata}

    @property
    def accepted(self) -> int:
        return sum(fact.accepted for fact in self.facts)

    @property
    def records(self) -> int:
        return sum(fact.state not in WITHOUT_RECORD for fact in self.facts)

    @property
    def peak(self) -> int:
        own = [
            line.peak_rss_bytes
            for line in self.lines
            if (line.step, line.subject)
            in ((PROCESS, self.version.key), (PUBLISH, self.version.key))
        ]
        return max(own, default=0)

    def by_stratum(self, of: Callable[[DocumentFact], Any]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for fact in self.facts:
            found.setdefault(fact.stratum, []).append(of(fact))
        return found

    def stages(self) -> dict[str, Effort]:
        key = parser_settings(self.spec).key
        return {
            **stages_of(self.lines, PARSE, key),
            **stages_of(self.lines, PROCESS, self.version.key),
            **stages_of(self.lines, PUBLISH, self.version.key),
        }

    def waited_s(self) -> float:
        """Seconds inside the stages that were spent waiting for online calls."""
        return (self.provider.elapsed_s or 0.0) if self.spec.mode == "online" else 0.0

    def report(self, context: Context, outcome: Outcome, asked: Asked) -> VersionReport:
        key = self.version.key
        standing = next((one for one in outcome.standings if one.key == key), None)
        stages = self.stages()
        local = max(0.0, sum(stage.wall_s for stage in stages.values()) - self.waited_s())
        waited = self.provider.elapsed_s
        moving = sum(fact.state in MOVING for fact in self.facts)
        short = was_cut(self.lines, PROCESS, key) or was_cut(
            self.lines, PARSE, parser_settings(self.spec).key
        )
        return VersionReport(
            key=key,
            provider=self.spec.provider,
            mode=self.spec.mode,
            model=self.spec.model,
            moving=moving,
            due_at=None if standing is None else standing.due_at,
            waits=None if standing is None else standing.waits,
            problem=outcome.problems.get(key),
            spec_changed=self.version.digest != digest_of(context.settings, self.spec),
            outcomes=_sorted(Counter(fact.state for fact in self.facts)),
            excluded=_sorted(Counter(fact.reason for fact in self.facts if fact.reason)),
            failures=self.failures,
            findings=self.findings,
            strata=tuple(_strata(self.plan, self.facts)),
            stages=stages,
            times_are_short=short,
            parse_wall_s=sum(fact.parse_wall_s for fact in self.facts),
            parse_cpu_s=sum(fact.parse_cpu_s for fact in self.facts),
            peak_rss_bytes=self.peak,
            parser_peak_rss_bytes=self.parser_peak,
            local_s=local,
            provider_s=waited,
            jobs=_jobs(self.provider),
            sizes=Sizes(
                sum(fact.bytes for fact in self.facts),
                sum(fact.request_bytes for fact in self.facts),
                sum(fact.result_bytes for fact in self.facts),
            ),
            acceptance=share_of(self.populations, self.by_stratum(lambda fact: fact.accepted)),
            review=share_of(self.populations, self.by_stratum(lambda fact: fact.to_review)),
            accepted=self.accepted,
            accepted_per_hour=_rate(self.accepted, local),
            accepted_per_hour_with_provider=_rate(self.accepted, local + (waited or 0.0)),
            cost=self.cost(asked, moving),
            score=self.score(context, asked),
            workers=parser_workers(
                asked.machine,
                sum(fact.parse_wall_s for fact in self.facts),
                sum(fact.parse_cpu_s for fact in self.facts),
                self.parser_peak,
                self.peak,
            ),
            calls=self.calls(local),
            batch=self.batch(),
            projection=self.projection(context, asked, stages, moving),
        )

    def cost(self, asked: Asked, moving: int) -> Cost:
        # While something is under way its share of the money is known and its outcome is not.
        each = None if moving else self.paid.provider_per_accepted
        review = self.review_usd(asked)
        both = None
        if each is not None and review is not None and self.paid.accepted:
            both = each + review / self.paid.accepted
        return Cost(self.paid.provider_usd, dict(self.paid.unknown), each, review, both)

    def review_usd(self, asked: Asked) -> Decimal | None:
        hour = self.operating.reviewer_usd_hour
        if hour is None or asked.review_minutes is None:
            return None
        return hour * asked.review_minutes / 60 * sum(fact.to_review for fact in self.facts)

    def score(self, context: Context, asked: Asked) -> Score | None:
        if asked.truth is None:
            return None
        accepted = self.answers.filter(pl.col("state").is_in(sorted(ACCEPTED_STATES)))
        taken = [fact.document_id for fact in self.facts]
        fields = fields_of(context.settings, self.plan.workload)
        return score(asked.truth, accepted, taken, fields)

    def calls(self, local: float) -> Advice:
        calls = self.provider.calls
        return online_calls(
            self.operating.online_concurrency,
            self.provider.call_seconds,
            sum(self.failures.get(name, 0) for name in PUSHED_BACK),
            calls,
            local / calls if calls else 0.0,
        )

    def batch(self) -> Advice:
        size = sum(fact.request_bytes for fact in self.facts)
        return batch_records(
            _capability(self.spec),
            self.spec.batch_records,
            size / self.records if self.records else None,
            self.tokens,
        )

    def projection(
        self, context: Context, asked: Asked, stages: Mapping[str, Effort], moving: int
    ) -> Projection | None:
        """None while records are under way: what they come to is not known."""
        if moving:
            return None
        documents = self.populations
        review = count_of(documents, self.by_stratum(lambda fact: fact.to_review))
        records = count_of(
            documents, self.by_stratum(lambda fact: fact.state not in WITHOUT_RECORD)
        )
        hours, note = self.provider_hours(records)
        minutes = asked.review_minutes
        return Projection(
            documents=sum(documents.values()),
            accepted=count_of(documents, self.by_stratum(lambda fact: fact.accepted)),
            to_review=review,
            review_hours=None if None in (review, minutes) else review.times(float(minutes) / 60),  # pyright: ignore
            usd=self.usd_of_all(),
            local_hours=self.local_hours(stages, records),
            provider_hours=hours,
            provider_note=note,
            disk_bytes=self.disk(context),
        )

    def usd_of_all(self) -> Range | None:
        if self.paid.unknown:
            return None
        known = self.by_stratum(lambda fact: None if fact.usd is None else float(fact.usd))
        asked = total_of(self.populations, known)
        if asked is None:
            return None
        # What records did not cost went to the canary, which is sent once.
        rest = self.paid.provider_usd - sum(
            (fact.usd or Decimal(0) for fact in self.facts), Decimal(0)
        )
        return asked.plus(exactly(float(rest)))

    def local_hours(self, stages: Mapping[str, Effort], records: Range | None) -> Range | None:
        if records is None or not self.records:
            return None
        in_workers = sum(fact.parse_wall_s for fact in self.facts)
        parsing = stages.get(PARSE, Effort()).wall_s
        total = total_of(self.populations, self.by_stratum(lambda fact: fact.parse_wall_s))
        if total is None:
            return None
        parsed = (
            total.times(parsing / in_workers)
            if in_workers
            else exactly(parsing / len(self.facts) * sum(self.populations.values()))
        )
        rest = sum(stage.wall_s for name, stage in stages.items() if name != PARSE)
        each = max(0.0, rest - self.waited_s()) / self.records
        return parsed.plus(records.times(each)).times(1 / HOUR)

    def provider_hours(self, records: Range | None) -> tuple[Range | None, str]:
        if self.spec.mode == "embedded":
            return exactly(0.0), "nobody is asked"
        if self.spec.mode == "batch":
            return None, NOT_FROM_A_SAMPLE
        seconds = self.provider.call_seconds
        if seconds is None or records is None or not self.records:
            return None, "no online call was made"
        at_once = self.operating.online_concurrency
        each = seconds * self.provider.calls / self.records / at_once
        return records.times(each / HOUR), f"{at_once} calls at once, as the pilot made them"

    def disk(self, context: Context) -> Range | None:
        """Kept documents by their sizes; all else shared out over the documents."""
        if not self.facts:
            return None
        source = sum(fact.bytes for fact in self.facts)
        kept = kind_bytes(context, "source")
        rest = (
            kind_bytes(context, "text", "thumbnail")
            + self.own_bytes
            + self.ledger_bytes / len(self.plan.versions)
        )
        each, share = rest / len(self.facts), kept / source if source else 0.0
        return total_of(self.populations, self.by_stratum(lambda fact: fact.bytes * share + each))


def _strata(plan: Plan, facts: Sequence[DocumentFact]) -> list[StratumLine]:
    lines = []
    for stratum in plan.strata:
        own = [fact for fact in facts if fact.stratum == stratum.name]
        accepted = sum(fact.accepted for fact in own)
        review = sum(fact.to_review for fact in own)
        excluded = sum(fact.state == "excluded" for fact in own)
        lines.append(
            StratumLine(
                stratum.name,
                stratum.documents,
                len(own),
                accepted,
                review,
                excluded,
                len(own) - accepted - review - excluded,
            )
        )
    return lines


def _jobs(provider: ProviderFact) -> Distribution | None:
    if not provider.job_seconds:
        return None
    return distribution(pl.Series(provider.job_seconds, dtype=pl.Float64))


def _rate(accepted: int, seconds: float) -> float | None:
    return accepted / (seconds / HOUR) if seconds > 0 else None


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items()))


def _capability(spec: Spec) -> Capability | None:
    if spec.mode == "embedded":
        return None
    mode: Mode = "online" if spec.mode == "online" else "batch"
    try:
        return find_capability(
            spec.provider, spec.model, endpoint_of(spec.provider, spec.endpoint), mode
        )
    except UnsupportedCombination:
        return None
