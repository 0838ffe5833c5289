"""`tallybook blame`: which published records came from a flawed configuration."""

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
    from pipeline_assets.selection.blame import Blame
    from pipeline_assets.selection.expression import Where
    from resources.settings import Settings

NONE, SOME = 0, 3
NEW_VERSION = "NEW_VERSION"
"""What stands for the version of a replay, which only its operator knows."""


def blame_command(
    where: Annotated[
        str,
        typer.Option(
            "--where",
            metavar="EXPR",
            help="What was wrong, e.g. 'model_revision like \"*-0301\"'; docs/selection.md.",
        ),
    ],
    documents: Annotated[
        bool,
        typer.Option(
            "--documents", help="Print the ids alone, one a line, as `replay --documents` reads."
        ),
    ] = False,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Find the published records that came from a flawed configuration, of any version.

    Exit status 0: no visible record did. 3: some did.
    """
    from pipeline_assets.cli import output
    from pipeline_assets.selection.blame import blame
    from pipeline_assets.selection.parse import parse_where

    settings = make_settings(state=state)
    expression = parse_where(where)
    with open_existing(settings) as context:
        found = blame(context, expression, documents=documents)
    if json:
        output.emit_json(_as_json(found, expression, settings, documents=documents))
    elif documents:
        output.say(*(document for _, document in found.documents))
    else:
        _print(found, expression, settings)
    return SOME if found.records else NONE


def _as_json(found: Blame, where: Where, settings: Settings, *, documents: bool) -> dict[str, Any]:
    from pipeline_assets.selection.blame import listed

    return {
        "where": where.text,
        "records": found.records,
        "visible": found.visible,
        "groups": [dict(vars(group)) for group in found.groups],
        "skipped": found.skipped,
        "replay": _commands(found, where, settings),
        **({"documents": list(listed(found))} if documents else {}),
    }


def _print(found: Blame, where: Where, settings: Settings) -> None:
    from pipeline_assets.cli import output

    for version, problem in found.skipped.items():
        output.say(f"{version} was not looked at: {problem}")
    of_all = f"of {counted(found.visible, 'visible record')}"
    if not found.records:
        output.say(f"None {of_all} came from it.")
        return
    output.table(
        "Visible records by where they came from",
        ("version", "batch", "model revision", "replay", "records", "first shown", "last shown"),
        (
            (
                group.version,
                group.batch,
                group.model_revision,
                group.replay,
                group.records,
                output.local(group.first_published),
                output.local(group.last_published),
            )
            for group in found.groups
        ),
    )
    output.say(
        f"{found.records} {of_all} came from it. Replay them with:",
        *(f"  {command}" for command in _commands(found, where, settings)),
    )


def _commands(found: Blame, where: Where, settings: Settings) -> list[str]:
    """A replay for each version; to which version is the operator's to say."""
    from pipeline_assets.cli import output
    from pipeline_assets.cli.account import options_of
    from pipeline_assets.selection.blame import replay_filter

    return [
        output.command(
            "replay",
            "--from",
            version,
            "--to",
            NEW_VERSION,
            "--where",
            replay_filter(where),
            "--reason",
            "TEXT",
            *options_of(settings, version=False),
        )
        for version in found.versions
    ]
