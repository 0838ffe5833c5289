"""`tallybook migrate`: bring the ledger of an earlier release to this one's schema."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_assets.cli.options import JsonOption, NothingHere, StateOption, make_settings

if TYPE_CHECKING:
    from resources.ledger.upgrade import SchemaStanding

WAITS = 3


def migrate_command(
    check: Annotated[
        bool, typer.Option("--check", help="Say what would be done; change nothing.")
    ] = False,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Upgrade the ledger's schema to this release's, with whatever is under way in it.

    In an empty database that TALLYBOOK_LEDGER_URL names the schema is made.
    Open batches stay as they are and are finished afterwards. One transaction: it is done, or
    nothing is. Under profile dev every command does it by itself; under staging and prod this one
    alone. Exit status 3 of --check: an upgrade is to be made.
    """
    from pipeline_assets.cli import output
    from resources.ledger.upgrade import Step, look_at_schema, migrate

    settings = make_settings(state=state)
    file = settings.state_folder / "ledger.sqlite"
    if settings.ledger_url is None and not file.is_file():
        raise NothingHere(settings.state_folder)
    standing = look_at_schema(settings.ledger_place, settings.profile)
    if standing.found is None:
        # An empty database is made a ledger here, by whoever may make tables.
        standing = replace(standing, steps=(Step(standing.wanted, "makes the schema"),))
    if standing.steps and not check:
        migrate(settings.ledger_place, settings.profile, settings.clock)
    if json:
        output.emit_json(
            {
                "found": standing.found,
                "wanted": standing.wanted,
                "steps": [
                    {"revision": step.revision, "what": step.what} for step in standing.steps
                ],
                "open_batches": standing.open_batches,
                "newest_backup": standing.newest_backup,
                "upgraded": bool(standing.steps) and not check,
            }
        )
    else:
        _print(standing, check=check)
    return WAITS if standing.steps and check else 0


def _print(standing: SchemaStanding, *, check: bool) -> None:
    from pipeline_assets.cli import output

    batches = ", ".join(f"{count} {state}" for state, count in standing.open_batches.items())
    output.facts(
        [
            ("ledger", standing.place),
            (
                "schema",
                f"{standing.found or 'none'}, and this release works with {standing.wanted}",
            ),
            ("open batches", batches or "none"),
            ("last backup", output.local(standing.newest_backup) or "none on record"),
        ]
    )
    if not standing.steps:
        output.say("", "It is up to date.")
        return
    output.say("", "To be done, in one transaction:" if check else "Done, in one transaction:")
    output.say(*(f"  {step.revision}  {step.what}" for step in standing.steps))
    if check and standing.found is None:
        output.say("", "Then: tallybook migrate")
    elif check:
        output.say("", "Stop what works on it and make a backup; then: tallybook migrate")
