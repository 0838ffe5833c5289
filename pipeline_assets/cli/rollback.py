"""`tallybook rollback`: let a version, or one document, go back to what was shown before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    counted,
    make_settings,
    open_existing,
)

if TYPE_CHECKING:
    from pipeline_assets.publish.rollback import RollbackReport
    from resources.context import Context


def rollback_command(
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.")],
    version: Annotated[
        str | None,
        typer.Argument(
            metavar="[VERSION]",
            help="The processing version whose values are taken back.",
            show_default=False,
        ),
    ] = None,
    document: Annotated[
        str | None,
        typer.Option(
            "--document",
            metavar="DOCUMENT",
            help="Only this document, whatever version it shows.",
            show_default=False,
        ),
    ] = None,
    to: Annotated[
        int | None,
        typer.Option(
            "--to",
            metavar="N",
            min=1,
            help="With --document: the archive version to show again.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would happen, and change nothing.")
    ] = False,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Show again what was shown before a version, or before the present entry of a document.

    It happens in one transaction: readers see all of it or nothing. A document that showed
    nothing before leaves the archive. Nothing is deleted, and promote undoes it. A version that
    was rolled back publishes by command only from then on.
    """
    from dataclasses import asdict

    from pipeline_assets.cli import output
    from pipeline_assets.recovery.dead_letters import require_reason

    if (version is None) == (document is None):
        raise typer.BadParameter("give either a VERSION or --document DOCUMENT")
    if to is not None and document is None:
        raise typer.BadParameter("--to goes with --document")
    why = require_reason(reason, "rolled back")
    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        if document is None:
            subject = settings.version
            report = _version(context, subject, why, dry_run=dry_run)
        else:
            subject, report = _document(context, document, why, to, dry_run=dry_run)
    if json:
        name = "version" if document is None else "document_id"
        output.emit_json({name: subject, "dry_run": dry_run, **asdict(report)})
    else:
        _print(subject, report, of_version=document is None, dry_run=dry_run)
    return 0


def _version(context: Context, key: str, reason: str, *, dry_run: bool) -> RollbackReport:
    from pipeline_assets.known_version import known_version
    from pipeline_assets.publish.rollback import rollback_version

    number = known_version(context, key).version_no
    return rollback_version(context, number, reason, trial=dry_run)


def _document(
    context: Context, given: str, reason: str, to: int | None, *, dry_run: bool
) -> tuple[str, RollbackReport]:
    from pipeline_assets.account.documents import find_document
    from pipeline_assets.publish.rollback import rollback_document

    found = find_document(context, given)
    report = rollback_document(
        context, found.document_no, found.document_id, reason, to, trial=dry_run
    )
    return found.document_id, report


def _print(subject: str, report: RollbackReport, *, of_version: bool, dry_run: bool) -> None:
    from pipeline_assets.cli import output

    if dry_run:
        output.say("Nothing is changed: this is what would happen.")
    if report.put_back:
        output.say(f"{counted(report.put_back, 'document')} shown with earlier values again.")
    if report.removed:
        output.say(
            f"{counted(report.removed, 'document')} taken out of the archive: nothing was shown "
            "before."
        )
    if not report.changed:
        output.say(
            f"Nothing to do: no document shows values of {subject}."
            if of_version
            else f"Nothing to do: {subject} shows nothing, or these values already."
        )
    if report.made_manual:
        setting = output.command("settings", "set", "promote", "auto", "--version", subject)
        again = output.command("promote", subject)
        output.say(
            f"{subject} publishes by command only from now on, so that the next run does not show "
            f"it again (operating setting promote: manual). To show it again: {again} --reason "
            f"TEXT. To let runs publish what they accept: {setting} --reason TEXT"
        )
