"""`tallybook report`: the account of every expected record, and whether it adds up."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    VersionOption,
    make_settings,
    open_existing,
)

if TYPE_CHECKING:
    from pipeline_assets.account.reasons import ReasonReport


class By(StrEnum):
    """What the records may be counted by."""

    REASON = "reason"


def report_command(
    version: VersionOption = None,
    by: Annotated[
        By | None,
        typer.Option(help="Count records and attempts by why they exist.", show_default=False),
    ] = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Account for every document of a processing version."""
    if by is By.REASON:
        return _by_reason(version, state, json=json)
    from pipeline_assets.account.report import build_report
    from pipeline_assets.account.status import status
    from pipeline_assets.cli import output
    from pipeline_assets.cli.account import (
        exit_status,
        print_outcomes,
        print_sample,
        print_waiting,
    )

    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        account = build_report(context, settings.version)
        now = status(context, settings.version)
    if json:
        output.emit_json(account.as_json())
        return exit_status(account, now)
    output.table(
        "Manifests",
        (
            "manifest",
            "digest",
            "expected",
            *(account.manifests[0].dispositions if account.manifests else ()),
        ),
        (
            (entry.manifest_id, entry.digest[:12], entry.expected, *entry.dispositions.values())
            for entry in account.manifests
        ),
    )
    print_outcomes(account)
    if account.former:
        output.table(
            "Records of documents that were removed or changed",
            ("state", "records"),
            list(account.former.items()),
        )
    print_sample(account.sample)
    print_waiting(now)
    return exit_status(account, now)


def _by_reason(version: str | None, state: Path | None, *, json: bool) -> int:
    from pipeline_assets.account.reasons import account_by_reason
    from pipeline_assets.cli import output
    from pipeline_assets.cli.account import BROKEN, DONE

    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        account = account_by_reason(context, settings.version)
    if json:
        output.emit_json(account.as_json())
    else:
        _print_reasons(account)
    return DONE if account.adds_up else BROKEN


def _print_reasons(account: ReasonReport) -> None:
    from pipeline_assets.cli import output
    from pipeline_assets.cli.options import counted
    from pipeline_assets.replay.reasons import REPLAY_REASONS

    output.table(
        f"Why records of {account.processing_version} exist",
        ("reason", "meaning", "records", "where they are", "attempts"),
        [
            *(
                (
                    each.reason,
                    REPLAY_REASONS.get(each.reason, ""),
                    each.records,
                    ", ".join(f"{count} {name}" for name, count in each.states.items()),
                    each.attempts,
                )
                for each in account.reasons
            ),
            ("all", "", account.records, "", account.attempts),
        ],
    )
    if account.replays:
        output.table(
            "Replays",
            ("replay", "from", "reason", "selected", "attempts", "by", "why"),
            [
                (
                    each.replay_id,
                    each.from_version,
                    each.reason,
                    each.selected,
                    each.attempts,
                    each.actor,
                    each.note,
                )
                for each in account.replays
            ],
        )
    output.say(
        f"{counted(account.records, 'record')} and {counted(account.attempts, 'attempt')}: "
        + ("every one has its reason." if account.adds_up else "the reasons do not add up to them.")
    )
