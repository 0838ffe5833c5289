"""`tallybook run`: process what is new in a source, through Dagster, and tell what came of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline_assets.cli.options import JsonOption, StateOption, VersionOption, make_settings

if TYPE_CHECKING:
    from pipeline_assets.account.report import Report
    from pipeline_assets.account.status import Status
    from resources.context import Context
    from resources.settings import Settings

SMALL_RUN = 40
"""Up to so many documents are listed one by one."""


@dataclass(frozen=True)
class _Result:
    """What a finished run is told from."""

    run_id: str
    anything_new: bool
    report: Report
    status: Status
    rows: list[dict[str, Any]]
    titles: dict[str, str | None]
    named_by: str


def run_command(
    source: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder of documents [default: data/manuals].", show_default=False
        ),
    ] = None,
    source_name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What its document ids start with [default: made of the folder's name].",
            show_default=False,
        ),
    ] = None,
    source_moved: Annotated[
        bool, typer.Option("--source-moved", help="The folder of this name was moved to DIR.")
    ] = False,
    version: VersionOption = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Process every new or changed document of a folder, and account for all of them."""
    _check_source_name(source_name)
    settings = make_settings(state=state, version=version, source=source, source_name=source_name)
    result = _run(settings, source_moved=source_moved, quiet=json)
    return _tell(result, settings, json)


def _check_source_name(name: str | None) -> None:
    if name is None:
        return
    from resources.sources.document_id import DocumentIdError, check_source_name

    try:
        check_source_name(name)
    except DocumentIdError as error:
        raise typer.BadParameter(str(error), param_hint="--source-name") from error


def _run(settings: Settings, *, source_moved: bool, quiet: bool) -> _Result:
    from partitions.processing_version import find_spec
    from pipeline_assets.account.integrity import release_dead_leases
    from pipeline_assets.account.status import work_mark
    from pipeline_assets.cli.progress import shown_progress
    from pipeline_assets.cli.run_lock import run_lock
    from pipeline_assets.provider_jobs.monitor import look_at_due_jobs
    from pipeline_assets.recovery.dead_letter_alerts import look_at_all_dead_letters
    from pipeline_assets.recovery.releases import look_at_holds
    from resources.context import open_context

    # What cannot succeed is told before anything is made or started.
    spec = find_spec(settings.version, settings.spec_folders)
    settings = _for_workload(settings, spec.workload)
    _look_at_sources(settings, spec.workload)
    with run_lock(settings.state_folder):
        with open_context(settings) as context:
            release_dead_leases(context)
            before = work_mark(context)
            # What the sensor does where a daemon runs: whoever has none has only this command.
            look_at_due_jobs(context)
            look_at_holds(context)
            look_at_all_dead_letters(context)
        # Dagster takes a second to import.
        from pipeline_assets.cli.dagster_run import run_version

        with shown_progress(quiet=quiet) as progress:
            outcome = run_version(
                settings, settings.version, source_moved=source_moved, progress=progress
            )
        with open_context(settings) as context:
            _tell_channels(context)
            if not outcome.success:
                raise RunFailed(outcome.error_line or "the run failed")
            return _result(context, outcome.run_id, before != work_mark(context))


def _tell_channels(context: Context) -> None:
    """What the alert sensor does where a daemon runs; a channel that fails fails no run."""
    from pipeline_assets.alerting.deliver import deliver_alerts

    deliver_alerts(context)


def _for_workload(settings: Settings, workload: str) -> Settings:
    """A folder that is named for this run holds what its version reads."""
    if not settings.source_given:
        return settings
    return settings.model_copy(update={"source_workload": workload})


def _look_at_sources(settings: Settings, workload: str) -> None:
    """Take the first documents of every source that the run would scan.

    Raises:
        InvalidSources: the declarations cannot be used.
        SourceError: a source is missing, empty or unreadable.
    """
    from resources.sources.declared import QueueSource, declared_sources
    from resources.sources.opening import open_place

    for declared in declared_sources(settings):
        # Looking into a queue would take something from it.
        if declared.workload == workload and not isinstance(declared, QueueSource):
            next(open_place(declared).listing(), None)


def _result(context: Context, run_id: str, anything_new: bool) -> _Result:
    from pipeline_assets.account.export import export_entries
    from pipeline_assets.account.outcomes import outcomes
    from pipeline_assets.account.report import build_report
    from pipeline_assets.account.status import status
    from pipeline_assets.known_version import known_version
    from pipeline_assets.workloads.fields import fields_of, heading_field, heading_of

    key = context.settings.version
    report = build_report(context, key)
    workload = known_version(context, key).workload
    head = heading_field(fields_of(context.settings, workload))
    named_by = "" if head is None else head.label.lower()
    rows, titles = [], {}
    if report.documents <= SMALL_RUN:
        rows = list(outcomes(context, key))
        titles = {
            entry["document_id"]: heading_of(context.settings, entry)
            for entry in export_entries(context, workload=workload)
        }
    else:
        rows = list(islice(outcomes(context, key), SMALL_RUN))
    return _Result(run_id, anything_new, report, status(context, key), rows, titles, named_by)


def _tell(result: _Result, settings: Settings, json: bool) -> int:
    from pipeline_assets.cli import output
    from pipeline_assets.cli.account import (
        exit_status,
        next_steps,
        print_next_steps,
        print_outcomes,
        print_waiting,
    )

    report = result.report
    if json:
        waiting = result.status.as_json()["waiting"]
        output.emit_json(
            {
                "run_id": result.run_id,
                "anything_new": result.anything_new,
                "waiting": waiting,
                **report.as_json(),
            }
        )
        return exit_status(report, result.status)
    if report.documents <= SMALL_RUN:
        _print_documents(result)
    print_outcomes(report)
    if not result.anything_new:
        output.say(
            "Nothing went on in this run: what is open waits."
            if result.status.open_records
            else "Nothing new to process: every document already had its outcome."
        )
    print_waiting(result.status)
    examples = {row["state"]: row["document_id"] for row in reversed(result.rows)}
    print_next_steps(
        next_steps(result.status, settings, examples, _searchable(result.titles.values()))
    )
    return exit_status(report, result.status)


def _print_documents(result: _Result) -> None:
    from pipeline_assets.cli import output
    from pipeline_assets.cli.outcomes import reason_of

    output.table(
        f"Documents of run {result.run_id[:8]}",
        ("document", "outcome", f"{result.named_by}, or why not"),
        (
            (
                row["document_id"],
                row["state"],
                result.titles.get(row["document_id"])
                if row["state"] == "published"
                else reason_of(row),
            )
            for row in result.rows
        ),
    )


def _searchable(titles: Iterable[str | None]) -> str:
    """A word of a title, which a search finds."""
    words = (word for title in titles for word in re.findall(r"[^\W\d_]{4,}", title or ""))
    return next(words, "WORD")


class RunFailed(Exception):
    """A step of the run failed; the message is the step's own."""
