"""`tallybook pilot`: try versions on a sample of the archive before paying for all of it."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline_assets.cli.options import JsonOption, StateOption, counted, make_settings

if TYPE_CHECKING:
    from pipeline_assets.pilot.plan import Plan
    from pipeline_assets.pilot.report import PilotReport, VersionReport
    from pipeline_assets.pilot.run import Outcome
    from pipeline_assets.pilot.truth import Truth
    from resources.settings import Settings

OK, ERROR, WAITS = 0, 1, 3
MOST_SAMPLE, LARGEST_SEED = 20_000, 2**62

pilot_app = typer.Typer(
    help="Try versions on a sample of the archive, and project what all of it would come to."
)
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The pilot's id.")]
WaitOption = Annotated[
    bool, typer.Option("--wait", help="Wait for providers, until nothing goes on by itself.")
]
HtmlOption = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write the report as a page.", show_default=False),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")]
TruthOption = Annotated[
    Path | None,
    typer.Option(
        "--truth",
        metavar="FILE",
        help="Known values (.jsonl or .csv: document_id and fields) to hold answers against.",
        show_default=False,
    ),
]
BudgetOption = Annotated[
    str | None,
    typer.Option(
        "--budget-usd",
        metavar="USD",
        help="What the pilot may cost in all, shared out among the versions that cost money.",
        show_default=False,
    ),
]
MinutesOption = Annotated[
    str | None,
    typer.Option(
        "--review-minutes",
        metavar="MINUTES",
        help="How long a reviewer takes for a document; without it, review time is not known.",
        show_default=False,
    ),
]


@pilot_app.callback(invoke_without_command=True)
def pilot_command(
    context: typer.Context,
    versions: Annotated[
        str | None,
        typer.Option(
            "--versions",
            metavar="A,B",
            help="Processing versions of one workload.",
            show_default=False,
        ),
    ] = None,
    sample: Annotated[
        int, typer.Option("--sample", min=1, max=MOST_SAMPLE, help="Documents to take.")
    ] = 200,
    seed: Annotated[
        int,
        typer.Option(
            "--seed",
            metavar="NUMBER",
            min=0,
            max=LARGEST_SEED,
            help="What the order of the documents is made of.",
        ),
    ] = 1,
    source: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of documents [default: the declared sources].",
            show_default=False,
        ),
    ] = None,
    budget_usd: BudgetOption = None,
    review_minutes: MinutesOption = None,
    truth: TruthOption = None,
    wait: WaitOption = False,
    html: HtmlOption = None,
    force: ForceOption = False,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Try versions on a stratified sample; the same arguments go on with the same pilot.

    Exit status: 0 all versions are through, 3 something waits, 1 error, 2 wrong usage.
    """
    if context.invoked_subcommand is not None:
        return OK
    if not versions:
        raise typer.BadParameter("name the versions to try", param_hint="--versions")
    from pipeline_assets.pilot.run import Wanted, make_plan

    budget = _amount(budget_usd, "--budget-usd")
    wanted = Wanted(_keys(versions), sample, seed)
    settings = make_settings(state=state, source=source)
    shown = _Shown(_amount(review_minutes, "--review-minutes"), truth, html, force, json)
    shown.check()
    with _main_archive(settings) as main:
        plan = make_plan(settings, main, wanted)
    return _go_on(settings, plan, budget, shown, wait=wait)


@pilot_app.command("resume")
def resume_command(
    pilot_id: IdArgument,
    budget_usd: BudgetOption = None,
    review_minutes: MinutesOption = None,
    truth: TruthOption = None,
    wait: WaitOption = False,
    html: HtmlOption = None,
    force: ForceOption = False,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Go on with a pilot, also where the archive has other documents by now."""
    from pipeline_assets.pilot.plan import find_plan

    settings = make_settings(state=state)
    shown = _Shown(_amount(review_minutes, "--review-minutes"), truth, html, force, json)
    shown.check()
    plan = find_plan(settings, pilot_id)
    return _go_on(settings, plan, _amount(budget_usd, "--budget-usd"), shown, wait=wait)


@pilot_app.command("list")
def list_command(state: StateOption = None, json: JsonOption = False) -> int:
    """List the pilots of a state folder."""
    from pipeline_assets.cli import output
    from pipeline_assets.pilot.plan import bytes_below, find_plan, pilot_folder, pilot_ids

    settings = make_settings(state=state)
    rows = []
    for pilot_id in pilot_ids(settings):
        plan = find_plan(settings, pilot_id)
        rows.append(
            {
                "pilot_id": pilot_id,
                "versions": list(plan.versions),
                "workload": plan.workload,
                "sample": plan.sample,
                "seed": plan.seed,
                "taken": len(plan.taken),
                "made_at": plan.made_at,
                "bytes": bytes_below(pilot_folder(settings, pilot_id)),
            }
        )
    if json:
        output.emit_json_lines(rows)
        return OK
    if not rows:
        output.say("No pilot was made here. Make one: tallybook pilot --versions A,B")
        return OK
    output.table(
        "Pilots",
        ("pilot", "versions", "workload", "documents", "seed", "made", "bytes"),
        [
            (
                row["pilot_id"],
                ", ".join(row["versions"]),
                row["workload"],
                row["taken"],
                row["seed"],
                output.local(row["made_at"]),
                row["bytes"],
            )
            for row in rows
        ],
    )
    return OK


@pilot_app.command("show")
def show_command(
    pilot_id: IdArgument,
    review_minutes: MinutesOption = None,
    truth: TruthOption = None,
    html: HtmlOption = None,
    force: ForceOption = False,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Show what a pilot came to so far; nothing is started."""
    from pipeline_assets.pilot.plan import find_plan, pilot_settings
    from pipeline_assets.pilot.run import look_at_outcome
    from resources.context import open_context

    settings = make_settings(state=state)
    shown = _Shown(_amount(review_minutes, "--review-minutes"), truth, html, force, json)
    shown.check()
    plan = find_plan(settings, pilot_id)
    with open_context(pilot_settings(settings, plan)) as context:
        outcome = look_at_outcome(context, plan)
    return _tell(settings, outcome, shown, _truth(settings, plan, shown))


@pilot_app.command("drop")
def drop_command(
    pilot_id: IdArgument,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.")],
    force: Annotated[
        bool, typer.Option("--force", help="Although jobs are at a provider.")
    ] = False,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Remove a pilot with its ledger and artifacts; the archive is not touched."""
    from pipeline_assets.cli import output
    from pipeline_assets.cli.run_lock import run_lock
    from pipeline_assets.pilot.plan import drop_pilot, inside, require_pilot
    from resources.context import open_context

    settings = make_settings(state=state)
    require_pilot(settings, pilot_id)
    own = inside(settings, pilot_id)
    with run_lock(own.state_folder):
        if (own.state_folder / "ledger.sqlite").is_file():
            with open_context(own) as context:
                size = drop_pilot(settings, context, pilot_id, reason, force=force)
        else:
            size = drop_pilot(settings, None, pilot_id, reason, force=force)
    if json:
        output.emit_json({"pilot_id": pilot_id, "bytes": size, "reason": reason})
    else:
        output.say(f"Pilot {pilot_id} was dropped: {counted(size, 'byte')} went.")
    return OK


class _Shown:
    """How a report is put together and shown."""

    def __init__(
        self,
        review_minutes: Decimal | None,
        truth: Path | None,
        html: Path | None,
        force: bool,
        json: bool,
    ) -> None:
        self.review_minutes = review_minutes
        self.truth = None if truth is None else truth.expanduser()
        self.html = None if html is None else html.expanduser()
        self.force, self.json = force, json

    def check(self) -> None:
        """What would fail at the end is told before anything is paid.

        Raises:
            FileRefused: the page could not be written.
            OSError: the file of known values cannot be read.
        """
        from pipeline_assets.account.whole_file import FileExists, NoSuchFolder

        if self.truth is not None:
            with self.truth.open("rb"):
                pass
        if self.html is not None:
            if self.html.exists() and not self.force:
                raise FileExists(self.html)
            if not self.html.resolve().parent.is_dir():
                raise NoSuchFolder(self.html)


def _keys(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _amount(text: str | None, option: str) -> Decimal | None:
    if text is None:
        return None
    try:
        found = Decimal(text)
    except InvalidOperation:
        found = Decimal(-1)
    if not found.is_finite() or not 0 < found < 10**9:
        raise typer.BadParameter(
            f"found {text!a}; expected a number above 0, such as 12.50", param_hint=option
        )
    return found


def _main_archive(settings: Settings) -> Any:
    """The archive that the pilot is for, open; nothing where nothing was ever processed."""
    from contextlib import nullcontext

    from resources.context import open_context

    ledger = settings.state_folder / "ledger.sqlite"
    if settings.ledger_url is None and not ledger.is_file():
        return nullcontext()
    return open_context(settings)


def _go_on(
    settings: Settings, plan: Plan, budget: Decimal | None, shown: _Shown, *, wait: bool
) -> int:
    from pipeline_assets.cli.progress import shown_progress
    from pipeline_assets.cli.run_lock import run_lock
    from pipeline_assets.pilot.plan import pilot_folder
    from pipeline_assets.pilot.run import carry_out, shares_of, specs_of, taken_over

    # What would be wrong with it is told before anything is paid.
    truth = _truth(settings, plan, shown)
    specs = specs_of(settings, plan.versions)
    budgets = shares_of(budget, specs)
    with _main_archive(settings) as main:
        operating = taken_over(main, specs)
    with (
        run_lock(pilot_folder(settings, plan.pilot_id)),
        shown_progress(quiet=shown.json) as progress,
    ):
        outcome = carry_out(settings, plan, operating, budgets, wait=wait, progress=progress)
    return _tell(settings, outcome, shown, truth)


def _truth(settings: Settings, plan: Plan, shown: _Shown) -> Truth | None:
    from pipeline_assets.pilot.truth import read_truth
    from pipeline_assets.workloads.fields import fields_of

    if shown.truth is None:
        return None
    return read_truth(shown.truth, fields_of(settings, plan.workload))


def _tell(settings: Settings, outcome: Outcome, shown: _Shown, truth: Truth | None) -> int:
    from pipeline_assets.cli import output
    from pipeline_assets.pilot.plan import pilot_settings
    from pipeline_assets.pilot.report import Asked, build_report, this_machine
    from resources.context import open_context

    asked = Asked(truth, shown.review_minutes, this_machine())
    with open_context(pilot_settings(settings, outcome.plan)) as context:
        report = build_report(context, outcome, asked)
        now = context.clock()
    if shown.html is not None:
        _write(shown.html, report, output.local_datetime(now), force=shown.force)
    if shown.json:
        output.emit_json(report.as_json())
    else:
        _print(report)
        if shown.html is not None:
            output.say(f"The report was written to {shown.html}")
    if outcome.problems:
        return ERROR
    return OK if outcome.published else WAITS


def _write(file: Path, report: PilotReport, made_at: str, *, force: bool) -> None:
    from pipeline_assets.account.whole_file import whole_file
    from pipeline_assets.pilot.page import page_of

    with whole_file(file, force=force) as fresh:
        fresh.write_text(page_of(report, made_at), encoding="utf-8", errors="replace")


def _print(report: PilotReport) -> None:
    from pipeline_assets.cli import output

    output.say(
        f"Pilot {report.pilot_id}: {report.taken} of {counted(report.documents, 'document')} of "
        f"{report.workload}, seed {report.seed}."
    )
    _print_caveats(report)
    keys = [version.key for version in report.versions]
    output.table("Side by side", ("figure", *keys), _side_by_side(report))
    output.table("The whole archive, projected (95 %)", ("figure", *keys), _projected(report))
    for version in report.versions:
        _print_version(version)
    for found in report.agreements:
        output.say(
            f"{found.first} and {found.second}: {found.both} accepted by both, {found.changed} of "
            f"them with another value; {found.only_first} by the first alone, {found.only_second} "
            "by the second alone."
        )
    _print_next(report)


def _print_caveats(report: PilotReport) -> None:
    from pipeline_assets.cli import output

    if report.known < report.documents:
        output.say(
            f"{counted(report.documents - report.known, 'document')} never parsed: their strata "
            "are guessed from size and name."
        )
    if report.changed:
        output.say(f"{counted(len(report.changed), 'document')} changed since the archive read it.")
    if report.gone:
        output.say(f"{counted(len(report.gone), 'document')} gone when the pilot read it.")
    if report.left_out:
        told = ", ".join(f"{count} {why}" for why, count in report.left_out.items())
        output.say(f"In no stratum: {told}.")


def _side_by_side(report: PilotReport) -> list[tuple[str, ...]]:
    from pipeline_assets.pilot.page import UNKNOWN, rate, seconds, share, size, usd

    def line(label: str, of: Any) -> tuple[str, ...]:
        return (label, *(str(of(version)) for version in report.versions))

    def money(name: str) -> Any:
        return lambda one: UNKNOWN if one.cost is None else usd(getattr(one.cost, name))

    return [
        line("accepted", lambda one: share(one.acceptance)),
        line("for a reviewer", lambda one: share(one.review)),
        line("provider's cost of the sample", money("provider_usd")),
        line("cost for each accepted", money("per_accepted")),
        line("with reviews", money("per_accepted_reviewed")),
        line("accepted an hour of this machine", lambda one: rate(one.accepted_per_hour)),
        line("with the provider's time", lambda one: rate(one.accepted_per_hour_with_provider)),
        line("time of this machine", lambda one: seconds(one.local_s)),
        line(
            "time at the provider",
            lambda one: "none" if one.provider_s is None else seconds(one.provider_s),
        ),
        line("peak memory", lambda one: size(one.peak_rss_bytes)),
        line("peak memory of a parser", lambda one: size(one.parser_peak_rss_bytes)),
        line("bytes asked", lambda one: size(one.sizes.requests if one.sizes else None)),
        line("bytes answered", lambda one: size(one.sizes.results if one.sizes else None)),
    ]


def _projected(report: PilotReport) -> list[tuple[str, ...]]:
    from pipeline_assets.pilot.page import UNKNOWN, hours, number, size, usd

    figures: list[tuple[str, str, Any]] = [
        ("accepted documents", "accepted", number),
        ("documents for a reviewer", "to_review", number),
        ("hours of reviewers", "review_hours", hours),
        ("provider's cost", "usd", usd),
        ("hours of this machine", "local_hours", hours),
        ("hours at the provider", "provider_hours", hours),
        ("disk", "disk_bytes", size),
    ]
    return [
        (
            label,
            *(
                UNKNOWN if one.projection is None else form(getattr(one.projection, name))
                for one in report.versions
            ),
        )
        for label, name, form in figures
    ]


def _print_version(version: VersionReport) -> None:
    from pipeline_assets.cli import output
    from pipeline_assets.pilot.page import seconds, size

    output.heading(f"{version.key} ({version.provider}, {version.mode}, {version.model})")
    if version.problem is not None:
        output.say(f"Not processed: {version.problem}")
        return
    if version.spec_changed:
        output.say("Its files were changed since: these are the figures of what they said.")
    if version.moving:
        waits = "" if version.waits is None else f" It waits: {version.waits}."
        due = "" if version.due_at is None else f" Next at {output.local(version.due_at)}."
        output.say(f"{counted(version.moving, 'record')} under way.{due}{waits}")
    if version.times_are_short:
        output.say("A step was interrupted: its time is not in the figures.")
    told: list[tuple[str, object]] = [
        (label, ", ".join(f"{count} {name}" for name, count in counts.items()))
        for label, counts in (
            ("outcomes", version.outcomes),
            ("excluded", version.excluded),
            ("failed attempts", version.failures),
            ("doubts", version.findings),
        )
    ]
    for label, advice in (
        ("parser processes", version.workers),
        ("online calls at once", version.calls),
        ("records a batch", version.batch),
    ):
        if advice is not None and advice.value is not None:
            told.append((label, f"{advice.value} ({advice.why})"))
    output.facts(told)
    output.table(
        "Stages",
        ("stage", "time", "processor", "peak memory"),
        [
            (name, seconds(one.wall_s), seconds(one.cpu_s), size(one.peak_rss_bytes))
            for name, one in version.stages.items()
        ],
    )
    _print_score(version)


def _print_score(version: VersionReport) -> None:
    from pipeline_assets.cli import output

    if version.score is None:
        return
    output.table(
        f"Known values: {version.score.documents} accepted documents, "
        f"{version.score.unanswered} not accepted",
        ("field", "known", "exact", "but for form", "wrong", "missing", "invented"),
        [
            (one.field, one.known, one.exact, one.form, one.wrong, one.missing, one.invented)
            for one in version.score.fields
            if one.known
        ],
    )


def _print_next(report: PilotReport) -> None:
    from pipeline_assets.cli import output

    if not report.done:
        output.say(f"Go on with: {output.command('pilot', 'resume', report.pilot_id)}")
    if report.agreements:
        first = report.agreements[0]
        words = ("compare", first.first, first.second, "--state", report.folder)
        output.say(f"See both values with: {output.command(*words)}")
