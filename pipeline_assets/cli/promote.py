"""`tallybook promote`: let people see what is accepted of a version."""

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
    import polars as pl

    from pipeline_assets.publish.promote import PromoteReport
    from resources.context import Context


def promote_command(
    version: Annotated[
        str, typer.Argument(metavar="VERSION", help="The processing version whose values to show.")
    ],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.")],
    document: Annotated[
        list[str] | None,
        typer.Option(
            "--document",
            metavar="DOCUMENT",
            help="Only this document (its id, or an end of it that is unique); may be repeated.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would happen, and change nothing.")
    ] = False,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Publish what is accepted of a version, and show again what a rollback took away.

    It happens in one transaction: readers see all of it or nothing.
    """
    from dataclasses import asdict

    from pipeline_assets.cli import output
    from pipeline_assets.publish.promote import promote
    from pipeline_assets.recovery.dead_letters import require_reason
    from pipeline_assets.versions import open_version

    why = require_reason(reason, "promoted")
    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        _require_used(context, version)
        chosen = _documents(context, document)
        report = promote(context, open_version(context, version), why, chosen, trial=dry_run)
    if json:
        output.emit_json({"version": version, "dry_run": dry_run, **asdict(report)})
    else:
        _print(version, report, dry_run=dry_run)
    return 0


def _require_used(context: Context, key: str) -> None:
    """Opening a version for work would freeze one that nothing was processed under."""
    from pipeline_assets.known_version import known_version

    known_version(context, key)


def _documents(context: Context, given: list[str] | None) -> pl.Series | None:
    import polars as pl

    from pipeline_assets.account.documents import find_document

    if not given:
        return None
    numbers = [find_document(context, name).document_no for name in given]
    return pl.Series(numbers, dtype=pl.Int64).unique()


def _print(version: str, report: PromoteReport, *, dry_run: bool) -> None:
    from pipeline_assets.cli import output

    if dry_run:
        output.say("Nothing is changed: this is what would happen.")
    told = (
        (report.published, "record", "published"),
        (report.shown_again, "document", f"shown with the values of {version} again"),
        (report.corrected, "document", "shown with a reviewer's correction"),
        (report.replaced, "earlier entry", "replaced"),
        (report.already, "record", "delivered before"),
        (report.superseded, "record", "superseded by a newer published record"),
        (report.older, "document", "kept as it is: what it shows is of newer bytes"),
    )
    for count, what, done in told:
        if count:
            many = "earlier entries" if what == "earlier entry" else None
            output.say(f"{counted(count, what, many)} {done}.")
    if not report.changed:
        output.say(
            f"Nothing to do: no accepted record of {version} is unpublished, and everything of it "
            "that can be shown is."
        )
    if report.manual:
        setting = output.command("settings", "set", "promote", "auto", "--version", version)
        output.say(
            f"{version} publishes by command only: what is accepted later waits for the next "
            f"promote. To let runs publish it: {setting} --reason TEXT"
        )
