"""Pilots over small archives, with every step in this process: the same functions, no start-up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from pipeline_assets.pilot.advice import Machine
from pipeline_assets.pilot.errors import StepFailed
from pipeline_assets.pilot.plan import Plan, pilot_settings
from pipeline_assets.pilot.process import STEPS
from pipeline_assets.pilot.report import Asked, PilotReport, build_report
from pipeline_assets.pilot.run import (
    Outcome,
    Wanted,
    carry_out,
    make_plan,
    shares_of,
    specs_of,
    taken_over,
)
from pipeline_assets.pilot.steps import Standing, Work
from pipeline_assets.pilot.truth import Truth
from resources.clock import Clock
from resources.context import Context, open_context
from resources.providers.port import ProviderError
from resources.settings import Settings

MACHINE = Machine(2, 8 * 2**30)


@dataclass
class InProcess:
    """Runs steps here, and keeps their names.

    Attributes:
        clock: what the steps are told as the time.
        ran: step and key, in order.
        before: called before each step, to let something happen.
    """

    clock: Clock
    ran: list[tuple[str, str]] = field(default_factory=list)
    before: Callable[[str, str], None] = lambda _step, _key: None

    def __call__(self, settings: Settings, work: Work, step: str, key: str) -> Standing | None:
        """Run one step."""
        self.before(step, key)
        self.ran.append((step, key))
        try:
            with open_context(settings, clock=self.clock) as context:
                return STEPS[step](context, work, key)
        except ProviderError as error:
            raise StepFailed(f"{step} {key}", str(error)) from error


@dataclass
class PilotPlace:
    """A state folder that pilots are made in.

    Attributes:
        settings: of the archive.
        step: runs steps.
    """

    settings: Settings
    step: InProcess

    def plan(
        self, *versions: str, sample: int = 50, seed: int = 1, main: Context | None = None
    ) -> Plan:
        """Make a plan, or find it."""
        return make_plan(self.settings, main, Wanted(versions, sample, seed))

    def go_on(
        self,
        plan: Plan,
        *,
        main: Context | None = None,
        budget: Decimal | None = None,
        wait: bool = False,
        sleep: Callable[[float], None] = lambda _seconds: None,
    ) -> Outcome:
        """Bring a pilot as far as it goes."""
        specs = specs_of(self.settings, plan.versions)
        return carry_out(
            self.settings,
            plan,
            taken_over(main, specs),
            shares_of(budget, specs),
            wait=wait,
            step=self.step,
            sleep=sleep,
        )

    def folder(self, plan: Plan) -> Path:
        """The pilot's own state folder."""
        return pilot_settings(self.settings, plan).state_folder

    def report(
        self, outcome: Outcome, truth: Truth | None = None, minutes: Decimal | None = None
    ) -> PilotReport:
        """Put the report together."""
        own = pilot_settings(self.settings, outcome.plan)
        with open_context(own, clock=self.step.clock) as context:
            return build_report(context, outcome, Asked(truth, minutes, MACHINE))
