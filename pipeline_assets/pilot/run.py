"""Making a pilot and carrying it out, step by step, as far as it goes now.

Belongs here: the order of the steps, waiting, and what a version takes over from the archive. Does
not belong here: the steps (`steps.py`), and what came of them (`report.py`).

The order: one scan, one parse for each way of parsing, then every version until nothing of it
moves by itself, and publishing last, in the order of the versions. Published earlier, a fast
version would overtake a slow one, whose answers would then count as superseded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import ROUND_DOWN, Decimal

from partitions.processing_version import Spec, digest, find_spec
from pipeline_assets.account.integrity import release_dead_leases
from pipeline_assets.operating import check_operating
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.pilot.errors import NoVersions, OtherWorkloads, StepFailed
from pipeline_assets.pilot.measure import ended, read_measured
from pipeline_assets.pilot.plan import (
    Plan,
    find_plan,
    has_plan,
    pilot_id_of,
    pilot_settings,
    store_plan,
)
from pipeline_assets.pilot.population import look_at_population
from pipeline_assets.pilot.process import run_step
from pipeline_assets.pilot.steps import (
    BUDGET,
    PARSE,
    PROCESS,
    PUBLISH,
    SCAN,
    Standing,
    Work,
    standing,
)
from pipeline_assets.versions import digested_parts
from pipeline_assets.workloads.registry import load_workload
from resources.clock import from_text, to_text
from resources.context import Context, Progress, SilentProgress, open_context
from resources.ledger.versions import all_operating, find
from resources.settings import Settings

LONGEST_PAUSE_S, SHORTEST_PAUSE_S = 60.0, 2.0
"""Between two looks while waiting: nobody is told in between that something is due earlier."""
LEDGER = "ledger.sqlite"
_NOBODY = 0
"""A version number that none has: its settings are those for all versions."""
_LEAST = Decimal("0.000001")
"""The smallest budget that an operating setting takes."""

RunStep = Callable[[Settings, Work, str, str], Standing | None]


@dataclass(frozen=True)
class Wanted:
    """What a pilot is asked for.

    Attributes:
        versions: keys, in the order of the report.
        sample: documents.
        seed: what their order is made of.
    """

    versions: tuple[str, ...]
    sample: int
    seed: int


@dataclass(frozen=True)
class Outcome:
    """How far a pilot came.

    Attributes:
        plan: the pilot.
        standings: where each version stands.
        problems: version → why it cannot go on, where its step failed.
        published: all versions have settled, and what was accepted is published in the pilot.
    """

    plan: Plan
    standings: tuple[Standing, ...]
    problems: dict[str, str]
    published: bool

    @property
    def under_way(self) -> bool:
        """Does a version go on by itself, later?"""
        return any(one.moving and one.due_at is not None for one in self.standings)

    @property
    def next_at(self) -> str | None:
        """When there is something to do next, UTC text."""
        return min(
            (one.due_at for one in self.standings if one.moving and one.due_at), default=None
        )


def make_plan(settings: Settings, main: Context | None, wanted: Wanted) -> Plan:
    """The pilot that is wanted: the one that was made before, else a new one.

    Args:
        settings: of the main state folder.
        main: the archive, open, which is only read; None where nothing was ever processed.
        wanted: versions, sample and seed.

    Raises:
        NoVersions, OtherWorkloads: the versions cannot be tried together.
        NothingToSample, SampleTooSmall: the documents cannot be chosen.
        UnknownVersion, InvalidSpec, MalformedVersionKey: there is no such version.
        SourceError, InvalidSources: the sources cannot be listed.
    """
    specs = specs_of(settings, wanted.versions)
    workload = specs[0].workload
    if settings.source_given:
        settings = settings.model_copy(update={"source_workload": workload})
    population = look_at_population(
        settings,
        main,
        workload,
        sample=wanted.sample,
        seed=wanted.seed,
        parser_keys=[parser_settings(spec).key for spec in specs],
    )
    folder = str(settings.source_folder.resolve()) if settings.source_given else None
    pilot_id = pilot_id_of(
        {spec.key: digest_of(settings, spec) for spec in specs},
        wanted.sample,
        wanted.seed,
        folder,
        [taken.document_id for taken in population.taken],
    )
    if has_plan(settings, pilot_id):
        return find_plan(settings, pilot_id)
    plan = Plan(
        pilot_id=pilot_id,
        versions=wanted.versions,
        workload=workload,
        sample=wanted.sample,
        seed=wanted.seed,
        made_at=to_text(settings.clock()),
        source=folder,
        source_name=settings.source_name if settings.source_given else None,
        strata=population.strata,
        taken=population.taken,
        left_out=population.left_out,
        known=population.known,
    )
    store_plan(settings, plan)
    return plan


def specs_of(settings: Settings, versions: Sequence[str]) -> list[Spec]:
    """The specs of versions that are tried together.

    Raises:
        NoVersions: none is named, or one twice.
        OtherWorkloads: they are of several workloads.
        UnknownVersion, InvalidSpec, MalformedVersionKey: there is no such version.
    """
    if not versions or len(set(versions)) != len(versions):
        raise NoVersions(versions)
    specs = [find_spec(key, settings.spec_folders) for key in versions]
    if len({spec.workload for spec in specs}) > 1:
        raise OtherWorkloads({spec.key: spec.workload for spec in specs})
    return specs


def digest_of(settings: Settings, spec: Spec) -> str:
    """The digest of a version as its files are now.

    Raises:
        UnknownWorkload, InvalidWorkload, UnknownPrompt, UnknownAcceptance, SpecDisagrees: its
            workload, or what it names of it, cannot be used.
    """
    return digest(
        spec, digested_parts(spec, load_workload(spec.workload, settings.workload_folder))
    )


def taken_over(main: Context | None, specs: Sequence[Spec]) -> dict[str, dict[str, str]]:
    """The operating settings that every version begins with in the pilot.

    Those of the archive, but every document of the sample is processed whatever the scope is, and
    what is accepted is published in the pilot whatever the policy is.
    """
    found: dict[str, dict[str, str]] = {}
    for spec in specs:
        known: Mapping[str, str] = {}
        if main is not None:
            frozen = find(main.ledger, spec.key)
            known = all_operating(main.ledger, _NOBODY if frozen is None else frozen.version_no)
        found[spec.key] = {**known, "scope": "all", "promote": "auto"}
    return found


def shares_of(budget_usd: Decimal | None, specs: Sequence[Spec]) -> dict[str, str]:
    """A budget, shared out equally among the versions that cost money: version → its share.

    Raises:
        OperatingValueRefused: it is no budget that a version can have.
    """
    paying = [spec.key for spec in specs if spec.mode != "embedded"]
    if budget_usd is None or not paying:
        return {}
    # Nought would mean no limit.
    share = max(_LEAST, (budget_usd / len(paying)).quantize(_LEAST, rounding=ROUND_DOWN))
    check_operating(BUDGET, f"{share:f}")
    return dict.fromkeys(paying, f"{share:f}")


def carry_out(
    settings: Settings,
    plan: Plan,
    operating: Mapping[str, Mapping[str, str]],
    budgets: Mapping[str, str] | None = None,
    *,
    wait: bool = False,
    progress: Progress | None = None,
    step: RunStep = run_step,
    sleep: Callable[[float], None] = time.sleep,
) -> Outcome:
    """Bring a pilot as far as it goes; what was done before is not done, or paid, again.

    Args:
        settings: of the main state folder.
        plan: the pilot.
        operating: of every version, the settings that it takes over where it begins now.
        budgets: version → what it may cost; that of earlier calls stays where there is none.
        wait: wait for providers and for retries, until no version goes on by itself.
        progress: where it is told which step is at work.
        step: runs a step in a process of its own.
        sleep: waits for so many seconds.

    Raises:
        StepFailed: the sources cannot be scanned, or no version could be processed.
        StepDied, StepBroke: a step ended without an answer, or met a mistake in the code.
    """
    own = pilot_settings(settings, plan)
    work = Work(plan, operating, budgets or {})
    shown = progress or SilentProgress()

    def run(name: str, key: str) -> Standing | None:
        shown.start(f"{name} {key}".strip(), None)
        found = step(own, work, name, key)
        shown.advance()
        shown.finish()
        return found

    if (own.state_folder / LEDGER).is_file():
        with open_context(own) as context:
            # A step that was killed holds what it was at until somebody sees that it is dead.
            release_dead_leases(context)
            known = look_at_outcome(context, plan)
        if known.published:
            # Another pass would find nothing, and be measured as if it belonged to the work.
            return known
    if not ended(read_measured(own.state_folder), SCAN, ""):
        run(SCAN, "")
    _parse(own, plan, run)
    while True:
        standings, problems = _process(plan, run)
        outcome = Outcome(plan, standings, problems, published=False)
        if not (wait and outcome.under_way):
            break
        sleep(_pause(own, outcome))
    if problems and len(problems) == len(plan.versions):
        first = plan.versions[0]
        raise StepFailed(f"{PROCESS} {first}", problems[first])
    if not problems and all(one.settled for one in standings):
        for key in plan.versions:
            run(PUBLISH, key)
        return Outcome(plan, standings, problems, published=True)
    return outcome


def look_at_outcome(context: Context, plan: Plan) -> Outcome:
    """How far a pilot has come, without doing anything.

    Args:
        context: the pilot, open.
        plan: the pilot.
    """
    lines = read_measured(context.settings.state_folder)
    standings = []
    for key in plan.versions:
        version = find(context.ledger, key)
        if version is not None:
            standings.append(standing(context, key, version.version_no))
    done = len(standings) == len(plan.versions) and all(one.settled for one in standings)
    published = done and all(ended(lines, PUBLISH, key) for key in plan.versions)
    return Outcome(plan, tuple(standings), {}, published)


def _parse(own: Settings, plan: Plan, run: Callable[[str, str], Standing | None]) -> None:
    """Parse once for each way of parsing: a version is measured by the parses it would need."""
    done: set[str] = set()
    for key in plan.versions:
        parser_key = parser_settings(find_spec(key, own.spec_folders)).key
        lines = read_measured(own.state_folder)
        if parser_key not in done and not ended(lines, PARSE, parser_key):
            run(PARSE, key)
        done.add(parser_key)


def _process(
    plan: Plan, run: Callable[[str, str], Standing | None]
) -> tuple[tuple[Standing, ...], dict[str, str]]:
    standings, problems = [], {}
    for key in plan.versions:
        try:
            found = run(PROCESS, key)
        except StepFailed as error:
            # The others are tried all the same: each is told with its own outcome.
            problems[key] = error.message
            continue
        if found is not None:
            standings.append(found)
    return tuple(standings), problems


def _pause(own: Settings, outcome: Outcome) -> float:
    if outcome.next_at is None:
        return LONGEST_PAUSE_S
    left = from_text(outcome.next_at) - own.clock()
    return min(LONGEST_PAUSE_S, max(SHORTEST_PAUSE_S, left / timedelta(seconds=1)))
