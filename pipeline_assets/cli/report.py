"""`tallybook report`: the account of every expected record, and whether it adds up.

Belongs here: the account in a terminal and as JSON, and the list of kept reports. Does not belong
here: files (`report_files.py`) and closing (`report_close.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    VersionOption,
    make_settings,
    open_existing,
)
from pipeline_assets.cli.report_close import close_command

if TYPE_CHECKING:
    from pipeline_assets.account.readiness import Readiness
    from pipeline_assets.account.reasons import ReasonReport
    from pipeline_assets.account.reconciliation.facts import FullReport
    from pipeline_assets.account.report import Report
    from pipeline_assets.account.status import Status
    from pipeline_assets.cli.report_files import Files
    from resources.ledger.kept_reports import KeptReport
    from resources.settings import Settings

report_app = typer.Typer(
    help="Account for every document of a processing version; list, show and close kept accounts.",
    invoke_without_command=True,
)
report_app.command("close")(close_command)


class By(StrEnum):
    """What the records may be counted by."""

    REASON = "reason"


@report_app.callback()
def report_command(
    context: typer.Context,
    version: VersionOption = None,
    batch: Annotated[
        str | None,
        typer.Option(
            "--batch",
            metavar="BATCH",
            help="Only this batch and what became of its records.",
            show_default=False,
        ),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option(
            "--number",
            metavar="N",
            min=1,
            help="A kept report, as it was kept [default: the account as it is now].",
            show_default=False,
        ),
    ] = None,
    against: Annotated[
        int | None,
        typer.Option(
            "--against",
            metavar="N",
            min=1,
            help="The kept report to tell the differences to [default: the newest other one].",
            show_default=False,
        ),
    ] = None,
    by: Annotated[
        By | None,
        typer.Option(help="Count records and attempts by why they exist.", show_default=False),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a page.", show_default=False),
    ] = None,
    outcomes: Annotated[
        Path | None,
        typer.Option(
            "--outcomes",
            metavar="FILE",
            help="Write the outcome of every record as Parquet.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Keep it, as a baseline for later ones; a run does so too."),
    ] = False,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Account for every document of a processing version."""
    from pipeline_assets.cli.report_files import Files

    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return 0
    files = Files(html, outcomes, force)
    if by is By.REASON:
        _refuse("--by", batch, number, against, html, outcomes, keep or None)
        return _by_reason(version, state, json=json)
    if number is not None:
        _refuse("--number", batch, against, version, keep or None)
        return _kept(number, files, state, json=json)
    settings = make_settings(state=state, version=version)
    if json or batch is not None or against is not None or files or keep:
        return _in_full(settings, _Asked(batch, against, keep), files, json=json)
    return _in_short(settings)


@report_app.command("list")
def list_command(
    version: Annotated[
        str | None,
        typer.Option(
            "--version", metavar="KEY", help="Of this processing version.", show_default=False
        ),
    ] = None,
    batches: Annotated[
        bool, typer.Option("--batches", help="Also those of single batches.")
    ] = False,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """List kept reports, the newest last, and who closed which."""
    from pipeline_assets.cli import output
    from pipeline_assets.cli.options import counted
    from pipeline_assets.known_version import known_version
    from resources.ledger.kept_reports import list_reports

    with open_existing(make_settings(state=state)) as context:
        number = None if version is None else known_version(context, version).version_no
        with context.ledger.read() as connection:
            every = list_reports(connection, number)
    found = [row for row in every if batches or row.batch_no is None]
    if json:
        output.emit_json_lines(_listed(row) for row in found)
        return 0
    if not every:
        output.say("No report is kept yet: a run keeps one.")
        return 0
    output.table(
        "Kept reports",
        ("report", "of", "made", "adds up", "outcomes", "digest", "closed"),
        [
            (
                row.report_no,
                row.key if row.batch_id is None else f"{row.key}, batch {row.batch_id}",
                output.local(row.made_at),
                "yes" if row.invariant_holds else "NO",
                row.leaves,
                row.digest[:12],
                f"{output.local(row.closed_at)} by {row.closed_by}" if row.closed else "",
            )
            for row in found
        ],
    )
    if len(every) > len(found):
        output.say(f"{counted(len(every) - len(found), 'report')} of single batches: --batches.")
    return 0


def _listed(row: KeptReport) -> dict[str, object]:
    from msgspec import to_builtins

    return {**to_builtins(row), "closed": row.closed}


def _refuse_options(context: typer.Context) -> None:
    """Options before a subcommand would be dropped without a word."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(
                f"give its options behind it: report {context.invoked_subcommand} ..."
            )


def _refuse(option: str, *others: object) -> None:
    if any(other is not None for other in others):
        raise typer.BadParameter(f"{option} goes with none of the other options that choose")


def _in_short(settings: Settings) -> int:
    from pipeline_assets.account.report import build_report
    from pipeline_assets.account.status import status
    from pipeline_assets.cli.account import exit_status

    with open_existing(settings) as context:
        account = build_report(context, settings.version)
        now = status(context, settings.version)
    _print(account, now)
    return exit_status(account, now)


@dataclass(frozen=True)
class _Asked:
    """Which report is made, what it is held against, and whether it is kept."""

    batch: str | None
    against: int | None
    keep: bool


def _in_full(settings: Settings, asked: _Asked, files: Files, *, json: bool) -> int:
    from pipeline_assets.account.reconciliation.kept import keep_made, made_report
    from pipeline_assets.account.status import status
    from pipeline_assets.cli import output
    from pipeline_assets.cli.account import exit_status

    kept = None
    with open_existing(settings) as context:
        # A batch has an account of its own: what waits elsewhere is nothing to it.
        now = status(context, settings.version) if asked.batch is None else None
        with made_report(context, settings.version, asked.batch, asked.against) as made:
            files.write(made.report, made.outcomes, made.digest)
            if asked.keep:
                kept = keep_made(context, made)
    report = made.report
    ended = _batch_status(report) if now is None else exit_status(report.account, now)
    if json:
        told = {} if kept is None else {"report_no": kept.report_no, "new": kept.is_new}
        output.emit_json({**report.as_json(), "content_digest": made.digest, **told})
        return ended
    if now is None:
        _print_batch(report)
    else:
        _print(report.account, now)
    _print_difference(report)
    files.say()
    if kept is not None:
        same = "" if kept.is_new else ", which says the same"
        output.say(f"Kept as report {kept.report_no}{same}.")
    return ended


def _batch_status(report: FullReport) -> int:
    """The exit status for a batch: does it add up, and are its records done with?"""
    from pipeline_assets.account.status import OPEN_STATES, PERSON_STATES
    from pipeline_assets.cli.account import BROKEN, DONE, WAITS
    from resources.ledger.batches import COMPLETE

    if not report.account.invariant_holds:
        return BROKEN
    waits = {*OPEN_STATES, *PERSON_STATES} & set(report.details.outcomes.states)
    return WAITS if waits or report.details.batches[0].state not in COMPLETE else DONE


def _kept(number: int, files: Files, state: Path | None, *, json: bool) -> int:
    from pipeline_assets.account.reconciliation.kept import open_kept
    from pipeline_assets.cli import output
    from pipeline_assets.cli.account import print_outcomes

    with open_existing(make_settings(state=state)) as context:
        kept = open_kept(context, number)
        files.write_kept(kept)
    account = kept.report.account
    if json:
        output.emit_json({**kept.report.as_json(), "content_digest": kept.row.digest})
    else:
        output.say(f"Report {number}, made on {output.local(kept.row.made_at)}.")
        if kept.report.details.scope is None:
            print_outcomes(account)
        else:
            _print_batch(kept.report)
        if kept.row.closed:
            output.say(
                f"Closed on {output.local(kept.row.closed_at)} by {kept.row.closed_by}: "
                f"{kept.row.closing_reason}"
            )
        files.say()
    return _kept_status(account)


def _kept_status(account: Report) -> int:
    """The exit status of a kept report: nothing of then waits now, but it may be unfinished."""
    from pipeline_assets.account.violations import pending_sentence
    from pipeline_assets.cli.account import BROKEN, DONE, WAITS

    if account.invariant_holds:
        return DONE
    return WAITS if account.violations == (pending_sentence(account.pending),) else BROKEN


def _print(account: Report, now: Status) -> None:
    from pipeline_assets.cli import output
    from pipeline_assets.cli.account import print_outcomes, print_sample, print_waiting

    output.table(
        "Manifests",
        (
            "manifest",
            "digest",
            "expected",
            *(account.manifests[0].dispositions if account.manifests else ()),
        ),
        (
            (entry.manifest_id, entry.digest[:12], entry.expected, *entry.dispositions.values())
            for entry in account.manifests
        ),
    )
    print_outcomes(account)
    if account.former:
        output.table(
            "Records of documents that were removed or changed",
            ("state", "records"),
            list(account.former.items()),
        )
    print_sample(account.sample)
    print_waiting(now)
    output.say(_readiness(now.ready))


def _readiness(ready: Readiness | None) -> str:
    from pipeline_assets.cli import output
    from pipeline_assets.cli.status_page import since_closed

    if ready is None:
        return "Not closed: nobody vouches for this collection yet (tallybook report close)."
    told = (
        f"Closed on {output.local(ready.closed_at)} by {ready.closed_by} (report {ready.report_no})"
    )
    if ready.ready:
        return f"{told}; nothing moved since."
    return f"{told}; since then {since_closed(ready)}."


def _print_batch(report: FullReport) -> None:
    from pipeline_assets.cli import output

    (batch,) = report.details.batches
    output.facts(
        [
            ("batch", batch.batch_id),
            ("state", batch.state),
            ("asked", f"{batch.provider} {batch.model}, {batch.mode}"),
            ("expected", batch.expected),
        ]
    )
    output.table(
        "Dispositions",
        (*batch.dispositions, "none yet"),
        [(*batch.dispositions.values(), batch.unknown)],
    )
    output.table(
        "From the manifest to the archive",
        ("step", "records", "fewer by", "where those are"),
        [
            (
                step.name,
                step.records,
                step.lost,
                ", ".join(f"{count} {state}" for state, count in step.where.items()),
            )
            for step in report.details.steps
        ],
    )
    for violation in report.account.violations:
        output.say(f"Does not add up: {violation}")


def _print_difference(report: FullReport) -> None:
    from pipeline_assets.cli import output

    found = report.details.baseline
    if found is None:
        return
    output.table(
        f"Against report {found.report_no} of {output.local(found.made_at)}",
        ("then", "now", "subjects"),
        [
            ("the same", "", found.same),
            *(
                (each.before or "not there", each.after or "not there", each.subjects)
                for each in found.moved
            ),
            ("other values", "", found.values_changed),
        ],
    )
    for each in found.settings:
        then, now = each.before or "not set", each.after or "not set"
        output.say(f"Configuration: {each.name} was {then}, is {now}")


def _by_reason(version: str | None, state: Path | None, *, json: bool) -> int:
    from pipeline_assets.account.reasons import account_by_reason
    from pipeline_assets.cli import output
    from pipeline_assets.cli.account import BROKEN, DONE

    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        account = account_by_reason(context, settings.version)
    if json:
        output.emit_json(account.as_json())
    else:
        _print_reasons(account)
    return DONE if account.adds_up else BROKEN


def _print_reasons(account: ReasonReport) -> None:
    from pipeline_assets.cli import output
    from pipeline_assets.cli.options import counted
    from pipeline_assets.replay.reasons import REPLAY_REASONS

    output.table(
        f"Why records of {account.processing_version} exist",
        ("reason", "meaning", "records", "where they are", "attempts"),
        [
            *(
                (
                    each.reason,
                    REPLAY_REASONS.get(each.reason, ""),
                    each.records,
                    ", ".join(f"{count} {name}" for name, count in each.states.items()),
                    each.attempts,
                )
                for each in account.reasons
            ),
            ("all", "", account.records, "", account.attempts),
        ],
    )
    if account.replays:
        output.table(
            "Replays",
            ("replay", "from", "reason", "selected", "attempts", "by", "why"),
            [
                (
                    each.replay_id,
                    each.from_version,
                    each.reason,
                    each.selected,
                    each.attempts,
                    each.actor,
                    each.note,
                )
                for each in account.replays
            ],
        )
    output.say(
        f"{counted(account.records, 'record')} and {counted(account.attempts, 'attempt')}: "
        + ("every one has its reason." if account.adds_up else "the reasons do not add up to them.")
    )
