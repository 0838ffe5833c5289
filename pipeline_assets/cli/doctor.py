"""`tallybook doctor`: find what is broken, and mend what can be mended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline_assets.cli.options import JsonOption, StateOption, make_settings, open_existing

if TYPE_CHECKING:
    from pipeline_assets.account.integrity import Problem
    from resources.context import Context
    from resources.settings import Settings

NOTE = "note"


def doctor_command(
    fix: Annotated[bool, typer.Option("--fix", help="Mend what can be mended.")] = False,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Check ledger, artifacts, jobs, leases, archive, journal, parser and Dagster's runs.

    Nothing that the ledger names is ever deleted. Exit status 1 as long as something is broken:
    nothing mends it but --fix or a person. What the next run, a sensor or its owner deals with
    (holds, overdue jobs and retries, dead letters) is listed too, and the exit status stays 0.
    """
    from pipeline_assets.account import health, integrity
    from pipeline_assets.cli import output

    settings = make_settings(state=state)
    with open_existing(settings) as context:
        problems = [
            *integrity.diagnose(context),
            *health.look(context),
            *_parser(),
            *_leftover_runs(settings),
        ]
        # Leases of dead workers first: what they hold cannot be mended.
        mended = integrity.fix(context, problems) + health.mend(context, problems) if fix else []
        if fix:
            mended += _render(context, problems)
    if fix and any(problem.kind == "leftover_run" for problem in problems):
        mended += _close_runs(settings, problems)
    left = [problem for problem in problems if problem not in mended]
    if json:
        output.emit_json_lines(_row(problem, problem in mended) for problem in problems)
    else:
        for problem in mended:
            output.say(f"mended: {problem.what}")
        _print(left)
    return 1 if any(problem.broken for problem in left) else 0


def _render(context: Context, problems: list[Problem]) -> list[Problem]:
    """Render lost thumbnails again; returns the problems that are gone by that."""
    from pipeline_assets.account import health, integrity
    from pipeline_assets.account.archive_repairs import mend_thumbnails
    from pipeline_assets.ingest.thumbnails import render_lost

    if any(problem.kind == "parser" for problem in problems):
        return []
    report = render_lost(context)
    if not report.rendered:
        return []
    if report.other:
        mend_thumbnails(context)
    still = [*integrity.diagnose(context), *health.look(context)]
    return [
        problem
        for problem in problems
        if problem.kind in ("lost_thumbnail", "missing_artifact") and problem not in still
    ]


def _print(left: list[Problem]) -> None:
    from pipeline_assets.cli import output

    broken = [problem for problem in left if problem.broken]
    watched = [problem for problem in left if not problem.broken]
    for problem in broken:
        output.say(f"{problem.kind}: {problem.what}", f"  {problem.remedy}")
    if not broken:
        output.say("Nothing is broken.")
    if watched:
        output.say("", "Not broken, and to be looked at:")
    for problem in watched:
        output.say(f"{problem.kind}: {problem.what}", f"  {problem.remedy}")


def _row(problem: Problem, mended: bool) -> dict[str, Any]:
    return {
        "kind": problem.kind,
        "what": problem.what,
        "remedy": problem.remedy,
        "broken": problem.broken,
        "fixable": problem.fixable,
        "mended": mended,
    }


def _parser() -> list[Problem]:
    """The parser's own self-test, in a worker as a run would start it."""
    from pipeline_assets.account.integrity import Problem
    from pipeline_assets.ingest.parsing.model import ParseLimits
    from pipeline_assets.ingest.parsing.pool import ParserPool, ParserUnavailable

    with ParserPool(1, ParseLimits()) as pool:
        try:
            pool.check()
        except ParserUnavailable as error:
            return [
                Problem(
                    kind="parser",
                    what=f"documents cannot be read here: {error}",
                    remedy="install Tallybook again (make install)",
                    fixable=False,
                )
            ]
        if pool.ocr_available:
            return []
    return [
        Problem(
            kind=NOTE,
            what="text recognition is not installed: scanned documents end as no_text",
            remedy='install the extra "ocr"; make install has it',
            fixable=False,
            broken=False,
        )
    ]


def _leftover_runs(settings: Settings) -> list[Problem]:
    from pipeline_assets.account.integrity import Problem
    from pipeline_assets.cli.dagster_run import leftover_runs

    return [
        Problem(
            kind="leftover_run",
            what=f"Dagster shows run {run.run_id[:8]} of {run.version or run.job} as going on: "
            f"{run.why}",
            remedy="tallybook doctor --fix closes it"
            if run.dead
            else "close it in Dagster's user interface once that machine is known to be gone",
            fixable=run.dead,
        )
        for run in leftover_runs(settings)
    ]


def _close_runs(settings: Settings, problems: list[Problem]) -> list[Problem]:
    from pipeline_assets.cli.dagster_run import close_leftover_runs

    closed = [run.run_id[:8] for run in close_leftover_runs(settings)]
    return [
        problem
        for problem in problems
        if problem.kind == "leftover_run" and any(f"run {run} " in problem.what for run in closed)
    ]
