"""`tallybook status`: where a version stands and what waits.

Whether the account adds up takes longer to tell; that is `tallybook report`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    VersionOption,
    make_settings,
    open_existing,
)

if TYPE_CHECKING:
    from pipeline_assets.account.status import Status


def status_command(
    version: VersionOption = None, state: StateOption = None, json: JsonOption = False
) -> int:
    """Show how far every stage is, what is open, and what waits for a person."""
    from pipeline_assets.account.status import status
    from pipeline_assets.cli import output
    from pipeline_assets.cli.account import DONE, WAITS, print_waiting

    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        now = status(context, settings.version)
    if json:
        output.emit_json(now.as_json())
    else:
        _print(now)
        print_waiting(now)
        if now.done:
            output.say("Nothing waits.")
    return DONE if now.done else WAITS


def _print(now: Status) -> None:
    from pipeline_assets.cli import output

    output.facts(
        [
            ("processing version", f"{now.processing_version} ({now.state})"),
            ("documents", f"{now.documents}, {now.excluded} of them excluded"),
            ("open records", now.open_records),
            ("oldest of them moved", output.local(now.oldest_open_at)),
        ]
    )
    output.table(
        "Documents that have passed a stage", tuple(now.stages), [tuple(now.stages.values())]
    )
    output.table("Records by state", ("state", "records"), list(now.states.items()))
    output.table("Batches by state", ("state", "batches"), list(now.batches.items()))
