"""`tallybook prune`: delete what a policy lets go after a while, never what the audit needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

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
    from collections.abc import Sequence

    from pipeline_assets.retention.policy import RetentionPolicy
    from pipeline_assets.retention.prune import Part
    from resources.context import Context

_NAMES = {
    "results": "raw results",
    "requests": "request files",
    "parses": "texts of unused parsers",
    "leftovers": "files that nothing names",
    "runs": "runs of Dagster",
}


def prune_command(
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.")],
    older_than: Annotated[
        int | None,
        typer.Option(
            "--older-than",
            metavar="DAYS",
            min=0,
            help="One age for everything [default: results and requests 90, others 30].",
            show_default=False,
        ),
    ] = None,
    what: Annotated[
        str | None,
        typer.Option(
            "--what",
            metavar="LIST",
            help="Of results, requests, parses, leftovers, runs [default: all].",
            show_default=False,
        ),
    ] = None,
    by: ByOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would go and what stays; change nothing.")
    ] = False,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Delete raw results, requests, unused texts, leftovers and Dagster's runs by their age.

    Never what the audit needs: requests and results of a batch with a record that is published or
    not settled, manifests, reports, judged values. What goes is written down first, so that
    doctor and explain say "pruned" and not "lost". Look with --dry-run first.
    """
    from dataclasses import replace

    from pipeline_assets.cli import output
    from pipeline_assets.recovery.dead_letters import require_reason
    from pipeline_assets.retention.policy import RetentionPolicy, parse_what
    from pipeline_assets.retention.prune import plan_prune, prune

    why = require_reason(reason, "pruned")
    policy = replace(RetentionPolicy(), what=parse_what(what))
    if older_than is not None:
        policy = policy.older_than(older_than)
    settings = make_settings(state=state)
    with open_existing(settings) as context:
        actor = (by or "").strip() or context.settings.owner
        number, finished = None, 0
        if dry_run:
            parts = list(plan_prune(context, policy).parts)
        else:
            report = prune(context, policy, why, actor)
            parts, number, finished = list(report.parts), report.prune_no, report.finished
        if "runs" in policy.what:
            parts.append(_runs(context, policy, trial=dry_run))
    if json:
        output.emit_json(
            {
                "dry_run": dry_run,
                "prune": number,
                "finished_earlier": finished,
                "parts": [_row(part) for part in parts],
            }
        )
        return 0
    _print(parts, dry_run=dry_run)
    if finished:
        output.say(f"{counted(finished, 'file')} of an interrupted pruning deleted as well.")
    return 0


def _runs(context: Context, policy: RetentionPolicy, *, trial: bool) -> Part:
    from pipeline_assets.cli.old_runs import prune_runs
    from pipeline_assets.retention.prune import Part
    from resources.clock import to_text
    from resources.ledger.prunes import open_versions

    with context.ledger.read() as connection:
        open_ones = open_versions(connection, context.ledger)
    going, kept = prune_runs(context.settings, policy, open_ones, context.clock(), trial=trial)
    ends = [run.ended_at for run in going if run.ended_at is not None]
    return Part("runs", len(going), 0, to_text(min(ends)) if ends else None, kept)


def _row(part: Part) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(part)


def _print(parts: Sequence[Part], *, dry_run: bool) -> None:
    from pipeline_assets.cli import output

    output.table(
        "What would go; nothing is changed" if dry_run else "What went",
        ("kind", "how many", "bytes", "oldest", "stays", "because"),
        [row for part in parts for row in _lines(part)],
    )


def _lines(part: Part) -> list[tuple[object, ...]]:
    from pipeline_assets.cli import output

    kept = list(part.kept.items()) or [("", "")]
    (why, count), *others = kept
    name = _NAMES.get(part.what, part.what)
    first = (name, part.files, part.bytes, output.local(part.oldest), str(count), why)
    return [first, *(("", "", "", None, str(more), reason) for reason, more in others)]
