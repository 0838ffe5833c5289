"""`tallybook outlets`: what other systems were told of the archive, and telling them now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

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

    from pipeline_assets.outlets.deliver import SendReport
    from resources.context import Context

outlets_app = typer.Typer(
    help="Show what outlets were told of the archive, tell them now, and try again.",
    no_args_is_help=True,
)
MOST_SHOWN = 200
WAITS = 3
_STATES = ("due", "delivered", "overtaken", "refused", "given_up")


class NothingToRetry(ValueError):
    """No delivery was chosen, or in two ways."""

    def __init__(self) -> None:
        super().__init__(
            "say which deliveries: name documents, or give --all (not both). "
            "`tallybook outlets list` shows them."
        )


@outlets_app.command("list")
def list_command(state: StateOption = None, json: JsonOption = False) -> int:
    """Count the deliveries of each outlet, and list those that it did not take."""
    from pipeline_assets.cli import output
    from pipeline_assets.outlets.http import configured_outlet
    from resources.ledger.outlets import counts, unwelcome

    settings = make_settings(state=state)
    way = configured_outlet(settings)
    with open_existing(settings) as context, context.ledger.read() as connection:
        rows = _outlets(counts(connection, context.ledger), None if way is None else way.name)
        for row in rows:
            found = unwelcome(connection, context.ledger, row["outlet"], MOST_SHOWN)
            row["not_taken"] = [_delivery(entry) for entry in found.iter_rows(named=True)]
    if json:
        output.emit_json_lines(rows)
        return 0
    if not rows:
        output.say("No outlet is configured, and none was told anything.")
        return 0
    _print_outlets(rows)
    return 0


@outlets_app.command("send")
def send_command(state: StateOption = None, json: JsonOption = False) -> int:
    """Tell the outlet now what it does not know, also what waits after a failure.

    Exit status 3 when something was not taken.
    """
    from pipeline_assets.cli import output
    from pipeline_assets.outlets.deliver import send_changes
    from pipeline_assets.outlets.http import NoOutlet

    with open_existing(make_settings(state=state)) as context:
        report = send_changes(context, at_once=True)
    if report.outlet is None:
        raise NoOutlet
    if json:
        output.emit_json(report)
    else:
        _print_report(report)
    return WAITS if report.troubled or report.busy else 0


@outlets_app.command("show")
def show_command(
    document: Annotated[
        str,
        typer.Argument(metavar="DOCUMENT", help="A document id, or an end of one that is unique."),
    ],
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Show everything that outlets had to hear of a document, oldest first."""
    from pipeline_assets.account.documents import find_document
    from pipeline_assets.cli import output
    from resources.ledger.outlets import deliveries_of_document

    with open_existing(make_settings(state=state)) as context:
        found = find_document(context, document)
        with context.ledger.read() as connection:
            stories = deliveries_of_document(connection, context.ledger, found.document_no)
    rows = [_delivery(entry) for entry in stories.iter_rows(named=True)]
    if json:
        output.emit_json_lines(rows)
        return 0
    if not rows:
        output.say(f"No outlet had to hear of {found.document_id} yet.")
        return 0
    _print_deliveries(f"Deliveries of {found.document_id}", rows)
    return 0


@outlets_app.command("retry")
def retry_command(
    documents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DOCUMENT]...",
            help="Document ids, or ends of them that are unique.",
            show_default=False,
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every delivery that was refused or given up.")
    ] = False,
    outlet: Annotated[
        str | None,
        typer.Option("--outlet", metavar="NAME", help="Another outlet than the configured one."),
    ] = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Make deliveries due again that were refused or given up; `send` then tries them.

    Those that the archive has moved past stay as they are. No model is asked again.
    """
    from pipeline_assets.cli import output
    from pipeline_assets.outlets.deliver import retry_deliveries

    if bool(documents) == everything:
        raise NothingToRetry
    settings = make_settings(state=state)
    name = outlet or settings.outlet_webhook_name
    with open_existing(settings) as context:
        numbers = None if everything else _numbers(context, documents or [])
        due = retry_deliveries(context, name, numbers)
    if json:
        output.emit_json({"outlet": name, "due_again": due})
    elif due:
        output.say(
            f"{counted(due, 'delivery', 'deliveries')} to {name} due again.",
            f"Send them with: {output.command('outlets', 'send')}",
        )
    else:
        output.say(f"Nothing to try again at {name}: nothing of that was refused or given up.")
    return 0


def _numbers(context: Context, documents: list[str]) -> list[int]:
    from pipeline_assets.account.documents import find_document

    return [find_document(context, document).document_no for document in documents]


def _outlets(found: pl.DataFrame, configured: str | None) -> list[dict[str, Any]]:
    """One object an outlet: its counts by state, and what waits."""
    names = list(found["outlet"].unique(maintain_order=True))
    if configured is not None and configured not in names:
        names.append(configured)
    rows = []
    for name in names:
        states = {row["state"]: row for row in found.iter_rows(named=True) if row["outlet"] == name}
        due = states.get("due", {})
        rows.append(
            {
                "outlet": name,
                "configured": name == configured,
                **{state: states.get(state, {}).get("rows", 0) for state in _STATES},
                "failing": due.get("failing", 0),
                "oldest_due_at": due.get("oldest_at"),
                "next_try_at": due.get("next_try_at"),
            }
        )
    return rows


def _delivery(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"current": row["current"] == 1}


def _print_outlets(rows: list[dict[str, Any]]) -> None:
    from pipeline_assets.cli import output

    columns = ("outlet", "configured", *_STATES, "failing", "oldest due", "next try")
    output.table(
        "Outlets",
        [column.replace("_", " ") for column in columns],
        (
            (
                row["outlet"],
                "yes" if row["configured"] else "no",
                *(row[state] for state in _STATES),
                row["failing"],
                output.local(row["oldest_due_at"]),
                output.local(row["next_try_at"]),
            )
            for row in rows
        ),
    )
    for row in rows:
        if row["not_taken"]:
            _print_deliveries(f"Not taken by {row['outlet']}", row["not_taken"])
            if len(row["not_taken"]) == MOST_SHOWN:
                output.say(f"Only the first {MOST_SHOWN} are shown.")
            output.say(f"Next: {output.command('outlets', 'retry', '--all')}")


def _print_deliveries(title: str, rows: list[dict[str, Any]]) -> None:
    from pipeline_assets.cli import output

    output.table(
        title,
        ("outlet", "document", "version", "effect", "change", "state", "tries", "ended", "problem"),
        (
            (
                row["outlet"],
                row["document_id"],
                row["archive_version"],
                row["effect"],
                row["change"],
                row["state"].replace("_", " "),
                row["tries"],
                output.local(row["ended_at"]),
                row["problem"],
            )
            for row in rows
        ),
    )


def _print_report(report: SendReport) -> None:
    from pipeline_assets.cli import output

    if report.busy:
        output.say("Nothing was sent: another sender is at it.")
        return
    output.say(f"{report.outlet}: {counted(report.delivered, 'change')} delivered")
    for count, what in (
        (report.refused, "refused; `tallybook outlets list` shows them"),
        (report.given_up, "given up after failing for days; `outlets retry` tries them again"),
        (report.failed, "failed and tried again later"),
    ):
        if count:
            output.say(f"{counted(count, 'change')} {what} ({report.problem})")
    if report.broken_off:
        output.say("It was broken off: the outlet is taken to be down. The rest is still due.")
