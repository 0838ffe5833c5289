"""`tallybook report close`: somebody vouches for a collection.

Belongs here: the command. Does not belong here: what keeps a report from being closed
(`pipeline_assets/account/reconciliation/closing.py`).
"""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    VersionOption,
    make_settings,
    open_existing,
)


def close_command(
    by: Annotated[
        str,
        typer.Option("--by", metavar="NAME", help="Who vouches for the collection; it is kept."),
    ],
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.", show_default=False)
    ] = "",
    version: VersionOption = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Make a report of a version that is done, and close it for good.

    Refused as long as a record, a batch or a review is open, something does not add up, or the
    quality sample is not drawn and wholly reviewed. Everything in the way is named at once.
    """
    from msgspec import to_builtins

    from pipeline_assets.account.reconciliation.closing import close_report
    from pipeline_assets.account.reconciliation.errors import ReportNotClosable
    from pipeline_assets.cli import output
    from pipeline_assets.cli.account import BROKEN, DONE
    from pipeline_assets.cli.errors import print_error

    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        try:
            closed = close_report(context, settings.version, by, reason)
        except ReportNotClosable as refused:
            if json:
                obstacles = [to_builtins(each) for each in refused.obstacles]
                output.emit_json({"closed": False, "obstacles": obstacles})
                return BROKEN
            print_error(
                f"the report of {settings.version} cannot be closed, and nothing was kept. In the "
                "way:"
            )
            for each in refused.obstacles:
                print_error(f"- {each.what}: {each.remedy}")
            return BROKEN
    row = closed.row
    if json:
        output.emit_json({"closed": True, "new": closed.is_new, "report": to_builtins(row)})
        return DONE
    told = "is closed" if closed.is_new else "was closed before, and nothing changed since"
    output.say(
        f"Report {row.report_no} of {row.key} {told}: by {row.closed_by} on "
        f"{output.local(row.closed_at)}.",
        f"Its digest is {row.digest}, the Merkle root of its {row.leaves} outcomes "
        f"{row.merkle_root}.",
        "Show it: " + output.command("report", "--number", row.report_no, "--html", "report.html"),
    )
    return DONE
