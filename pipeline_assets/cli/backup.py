"""`tallybook backup`: copy ledger and artifacts as of one moment, and check such copies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_assets.cli.options import (
    ByOption,
    JsonOption,
    StateOption,
    counted,
    make_settings,
    open_existing,
)

if TYPE_CHECKING:
    from pipeline_assets.backup.contents import Contents
    from pipeline_assets.backup.make import BackupReport

WAITS = 3
backup_app = typer.Typer(
    help="Back up ledger and artifacts, check a backup, or list those that were made.",
    invoke_without_command=True,
)
FolderArgument = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="Where a backup was written to.")
]


@backup_app.callback()
def backup_command(
    context: typer.Context,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="Where to: new, empty, or with an earlier backup of the same ledger.",
            show_default=False,
        ),
    ] = None,
    by: ByOption = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Back up ledger and artifacts as they are at one moment, while everything goes on.

    A second backup into the same folder copies only what is new and replaces the first. What is
    not in it: Dagster's history, the sources themselves, keys, your own specs and workloads.
    Exit status 3 where an artifact that the ledger names could not be had.
    """
    if context.invoked_subcommand is not None:
        return 0
    if out is None:
        raise typer.BadParameter("say where to: --out FOLDER")
    from dataclasses import replace

    from pipeline_assets.backup.make import make_backup
    from pipeline_assets.cli import output
    from pipeline_assets.cli.progress import shown_progress

    with (
        open_existing(make_settings(state=state)) as opened,
        shown_progress(quiet=json) as progress,
    ):
        actor = (by or "").strip() or opened.settings.owner
        watched = replace(opened, progress=progress)
        report = make_backup(watched, out.expanduser().absolute(), actor)
    if json:
        output.emit_json(
            {
                "folder": str(report.folder),
                "digest": report.digest,
                "new_artifacts": report.new,
                "swept": report.swept,
                **_facts(report.contents),
            }
        )
    else:
        _print(report)
    return WAITS if report.contents.lost_count else 0


@backup_app.command("verify")
def verify_command(folder: FolderArgument, json: JsonOption = False) -> int:
    """Read every file of a backup and compare it with its list of contents.

    Exit status 1 where a file is missing or is not what was written.
    """
    from pipeline_assets.backup.verify import verify_backup
    from pipeline_assets.cli import output
    from pipeline_assets.cli.progress import shown_progress

    with shown_progress(quiet=json) as progress:
        verdict = verify_backup(folder.expanduser().absolute(), progress)
    if json:
        output.emit_json(
            {
                "whole": not verdict.faults,
                "digest": verdict.digest,
                "files": verdict.files,
                "faults": list(verdict.faults),
                **_facts(verdict.contents),
            }
        )
    else:
        for fault in verdict.faults:
            output.say(fault)
        if not verdict.faults:
            output.say(
                f"The backup {verdict.contents.backup_id} of "
                f"{output.local(verdict.contents.made_at)} is whole: "
                f"{counted(verdict.files, 'file')} are what was written."
            )
            _print_lost(verdict.contents)
    return 1 if verdict.faults else 0


@backup_app.command("list")
def list_command(state: StateOption = None, json: JsonOption = False) -> int:
    """List the backups that were finished, the newest first."""
    from dataclasses import asdict

    from pipeline_assets.cli import output
    from resources.ledger.backups import list_backups

    with (
        open_existing(make_settings(state=state)) as opened,
        opened.ledger.read() as connection,
    ):
        rows = list_backups(connection)
    if json:
        output.emit_json_lines(asdict(row) for row in rows)
        return 0
    output.table(
        "Backups",
        ("backup", "made", "by", "rows", "artifacts", "bytes", "digest of its contents"),
        [
            (
                row.backup_id,
                output.local(row.made_at),
                row.actor,
                row.ledger_rows,
                row.artifacts,
                row.bytes,
                row.digest[:16],
            )
            for row in rows
        ],
    )
    return 0


def _facts(contents: Contents) -> dict[str, object]:
    return {
        "backup_id": contents.backup_id,
        "made_at": contents.made_at,
        "ledger_id": contents.ledger_id,
        "profile": contents.profile,
        "revision": contents.revision,
        "database": contents.database,
        "last_move": contents.last_move[0],
        "ledger_rows": contents.ledger_rows,
        "artifacts": contents.artifacts.rows,
        "bytes": contents.bytes,
        "lost": [
            {"kind": lost.kind, "digest": lost.digest, "why": lost.why} for lost in contents.lost
        ],
        "lost_count": contents.lost_count,
        "pruned": contents.pruned,
        "not_included": contents.not_included,
    }


def _print(report: BackupReport) -> None:
    from pipeline_assets.cli import output

    contents = report.contents
    output.facts(
        [
            ("backup", contents.backup_id),
            ("folder", report.folder),
            ("moment", output.local(contents.made_at)),
            ("ledger", f"{counted(contents.ledger_rows, 'row')}, schema {contents.revision}"),
            (
                "artifacts",
                f"{contents.artifacts.rows}, of them {report.new} copied now"
                + (f"; {contents.pruned} more were pruned" if contents.pruned else ""),
            ),
            ("bytes", contents.bytes),
            ("digest", report.digest),
        ]
    )
    _print_lost(contents)
    output.say("", "Not in it:", *(f"  {what}" for what in contents.not_included))
    output.say("", "Check it now and then, best by restoring it into an empty place:")
    output.say(f"  {output.command('backup', 'verify', report.folder)}")


def _print_lost(contents: Contents) -> None:
    from pipeline_assets.cli import output

    if not contents.lost_count:
        return
    output.say(
        "",
        f"{counted(contents.lost_count, 'artifact')} that the ledger names could not be copied; "
        "tallybook doctor says what is missing:",
        *(f"  {lost.kind} {lost.digest[:12]} is {lost.why}" for lost in contents.lost[:20]),
    )
