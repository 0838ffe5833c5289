"""`tallybook canary`: what vouches for a provider, model, SDK, schema and prompt together."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pipeline_assets.cli.options import JsonOption, StateOption, make_settings, open_existing

canary_app = typer.Typer(
    help="Show the canaries that must pass before records are sent.", no_args_is_help=True
)
CanaryArgument = Annotated[str, typer.Argument(metavar="CANARY", help="As `canary list` names it.")]


@canary_app.command("list")
def list_command(state: StateOption = None, json: JsonOption = False) -> int:
    """List canaries, newest first."""
    from pipeline_assets.account.canary_facts import canary_rows
    from pipeline_assets.cli import output

    with open_existing(make_settings(state=state)) as context:
        rows = canary_rows(context)
    if json:
        output.emit_json_lines(rows)
        return 0
    output.table(
        "Canaries",
        ("canary", "state", "provider", "mode", "model", "sdk", "judged", "vouches until"),
        (
            (
                row["canary_id"],
                row["state"],
                row["provider"],
                row["mode"],
                row["model"],
                row["sdk_version"],
                output.local(row["judged_at"]),
                output.local(row["expires_at"]),
            )
            for row in rows
        ),
    )
    return 0


@canary_app.command("show")
def show_command(name: CanaryArgument, state: StateOption = None, json: JsonOption = False) -> int:
    """Show one canary and everything that was wrong with its answers."""
    from pipeline_assets.account.canary_facts import canary_facts
    from pipeline_assets.cli import output

    with open_existing(make_settings(state=state)) as context:
        facts = canary_facts(context, name)
    if json:
        output.emit_json(facts)
        return 0
    findings: list[dict[str, Any]] = facts.pop("findings")
    output.facts([(label.replace("_", " "), value) for label, value in facts.items()])
    if findings:
        output.table(
            "Findings",
            ("document", "check", "note"),
            ((entry["document"], entry["check"], entry["note"]) for entry in findings),
        )
    return 0


@canary_app.command("drop")
def drop_command(
    name: CanaryArgument,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.")],
    state: StateOption = None,
) -> int:
    """Drop a verdict, so that the next run sends another canary."""
    from pipeline_assets.canary.drop import drop_canary
    from pipeline_assets.cli import output

    with open_existing(make_settings(state=state)) as context:
        drop_canary(context, name, reason)
    output.say(f"{name} does not count any more; the next run sends another one.")
    return 0
