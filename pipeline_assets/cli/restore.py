"""`tallybook restore`: make a working place of a backup, in an empty folder and database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_assets.cli.options import JsonOption, counted, make_settings

if TYPE_CHECKING:
    from pipeline_assets.backup.restore import Restored


def restore_command(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where the backup was written to.")
    ],
    state: Annotated[
        Path,
        typer.Option(
            "--state", metavar="DIR", help="The new state folder, empty.", show_default=False
        ),
    ],
    ledger_url: Annotated[
        str | None,
        typer.Option(
            "--ledger-url",
            metavar="URL",
            help="An empty database for the ledger [default: a file in the state folder, or "
            "TALLYBOOK_LEDGER_URL].",
            show_default=False,
        ),
    ] = None,
    go_on: Annotated[
        bool,
        typer.Option(
            "--go-on",
            help="Hold no version: the ledger that the backup is of is known to work no more.",
        ),
    ] = False,
    json: JsonOption = False,
) -> int:
    """Restore a backup into an empty place, on SQLite or PostgreSQL.

    Every file is compared with what was written. Versions are held until you release them, since
    two ledgers with one identity would both submit; jobs that may have been submitted since the
    backup are looked for at their provider before anything is sent.
    """
    import random

    from pipeline_assets.backup.restore import restore
    from pipeline_assets.cli import output
    from pipeline_assets.cli.progress import shown_progress

    settings = make_settings(state=state)
    if ledger_url is not None:
        settings = settings.model_copy(update={"ledger_url": ledger_url})
    with shown_progress(quiet=json) as progress:
        restored = restore(
            settings,
            folder.expanduser().absolute(),
            clock=settings.clock,
            rng=random.Random(),  # noqa: S311 - jitter, never secrets
            progress=progress,
            go_on=go_on,
        )
    if json:
        output.emit_json(
            {
                "backup_id": restored.contents.backup_id,
                "made_at": restored.contents.made_at,
                "ledger_id": restored.contents.ledger_id,
                "state": str(restored.state),
                "ledger": restored.place,
                "ledger_rows": restored.contents.ledger_rows,
                "artifacts": restored.contents.artifacts.rows,
                "search_entries": restored.search_entries,
                "held": list(restored.held),
                "looked_for": list(restored.doubts.looked_for),
                "unlooked": list(restored.doubts.unlooked),
                "online": list(restored.doubts.online),
                "expired_leases": restored.leases,
                "changed_files": list(restored.changed),
                "lost_count": restored.contents.lost_count,
            }
        )
    else:
        _print(restored)
    return 0


def _print(restored: Restored) -> None:
    from pipeline_assets.cli import output

    contents = restored.contents
    output.facts(
        [
            ("backup", contents.backup_id),
            ("moment", output.local(contents.made_at)),
            ("state", restored.state),
            ("ledger", f"{restored.place}, {counted(contents.ledger_rows, 'row')}"),
            ("artifacts", contents.artifacts.rows),
            ("search entries", f"{restored.search_entries} made again"),
        ]
    )
    doubts = restored.doubts
    if contents.lost_count:
        output.say("", f"{counted(contents.lost_count, 'artifact')} lost before the backup.")
    if restored.changed:
        output.say("", "Your own files that are not those that were in use:")
        output.say(*(f"  {name}" for name in restored.changed))
    if doubts.looked_for:
        output.say(
            "",
            f"{counted(len(doubts.looked_for), 'job')} may have been submitted since, and will be "
            "looked for at their provider before anything is sent: tallybook batch poll",
        )
    if doubts.unlooked:
        output.say(
            "",
            "Nothing tells in which account these may have been submitted since; look yourself "
            "before you release their versions:",
            *(f"  {name}" for name in doubts.unlooked),
        )
    if doubts.online:
        output.say(
            "",
            "Answered call by call: what was answered since the backup is asked and paid again:",
            *(f"  {name}" for name in doubts.online),
        )
    if restored.held:
        output.say("", "Held, so that nothing is submitted twice. Once the earlier ledger is off:")
        for key in restored.held:
            words = ("release", "--state", restored.state, "--version", key, "--reason", "TEXT")
            output.say(f"  {output.command(*words)}")
