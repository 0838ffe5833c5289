"""`tallybook erase`: take a document out of everything that holds something of it, for good."""

from __future__ import annotations

import sys
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
    from pipeline_assets.erasure.purge import EraseReport

_MIB = 2**20


def erase_command(
    document: Annotated[
        str, typer.Argument(metavar="DOCUMENT", help="Its id, or an end of it that is unique.")
    ],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.")],
    by: ByOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would happen, and change nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Erase a document: its bytes, text, requests, results, published values. It cannot be undone.

    Its id, digests, states, times and usage stay, so that the account still adds up. It leaves the
    archive, outlets are told to remove it, and it is never processed again, whatever its source
    holds. Other documents in the same files are not touched. The same command finishes an erasure
    that was interrupted. Exit status 3 where something is left for somebody else to do.
    """
    from pipeline_assets.account.documents import find_document
    from pipeline_assets.cli import output
    from pipeline_assets.erasure.plan import ErasureRefused, NotConfirmed
    from pipeline_assets.erasure.purge import erase, trial
    from pipeline_assets.recovery.dead_letters import require_reason

    why = require_reason(reason, "erased")
    settings = make_settings(state=state)
    with open_existing(settings) as context:
        found = find_document(context, document)
        actor = (by or "").strip() or context.settings.owner
        looked = trial(context, found.document_no, found.document_id)
        if dry_run:
            _print_trial(looked, json=json)
            return 0
        if looked.plan.obstacles:
            raise ErasureRefused(found.document_id, looked.plan.obstacles)
        if not yes:
            if not (sys.stdin.isatty() and sys.stdout.isatty()) or json:
                raise NotConfirmed(found.document_id)
            _print_trial(looked, json=False)
            if not typer.confirm(f"Erase {found.document_id} for good?"):
                output.say("Nothing was changed.")
                return 0
        report = erase(context, found.document_no, found.document_id, why, actor)
    if json:
        output.emit_json(_as_json(report, dry_run=False))
    else:
        _print(report)
    return 3 if report.left or report.at_provider or report.purged.missing else 0


def _as_json(report: EraseReport, *, dry_run: bool) -> dict[str, Any]:
    plan, purged = report.plan, report.purged
    return {
        "document_id": report.document_id,
        "dry_run": dry_run,
        "erasure": report.erasure_no,
        "begun_before": report.begun_before,
        "obstacles": [
            {"what": obstacle.what, "helps": obstacle.helps} for obstacle in plan.obstacles
        ],
        "withdrawn": dict(plan.withdrawn),
        "checksums": list(plan.checksums if dry_run else purged.checksums),
        "shared": {checksum: list(others) for checksum, others in plan.shared.items()},
        "records": purged.records,
        "entries": purged.entries,
        "artifacts": purged.artifacts,
        "bytes": purged.bytes,
        "missing": purged.missing,
        "at_provider": list(report.at_provider),
        "left": report.left,
    }


def _print_trial(report: EraseReport, *, json: bool) -> None:
    from pipeline_assets.cli import output

    if json:
        output.emit_json(_as_json(report, dry_run=True))
        return
    plan = report.plan
    if report.begun_before:
        output.say(
            f"{report.document_id} was erased before (erasure {report.erasure_no}); erasing it "
            "again finishes that, and looks for what came back."
        )
    for obstacle in plan.obstacles:
        output.say(f"In the way: {obstacle.what}. {obstacle.helps}")
    if plan.withdrawn:
        output.table(
            f"Records of {report.document_id} that would be withdrawn",
            ("state now", "records"),
            list(plan.withdrawn.items()),
        )
    output.say(f"{counted(len(plan.checksums), 'version')} of its bytes would be purged.")
    _print_shared(report)
    _print_provider(report)
    output.say("Nothing was changed.")


def _print(report: EraseReport) -> None:
    from pipeline_assets.cli import output

    purged = report.purged
    if report.begun_before:
        output.say(
            f"{report.document_id} was erased before (erasure {report.erasure_no}): it was "
            "finished now, or looked through again."
        )
    output.say(
        f"{report.document_id} is erased: {counted(purged.records, 'record')} withdrawn, "
        f"{counted(purged.entries, 'archive entry', 'archive entries')} emptied, "
        f"{counted(purged.artifacts, 'file')} purged of {purged.bytes / _MIB:.1f} MiB."
    )
    _print_shared(report)
    if purged.missing:
        output.say(
            f"{counted(purged.missing, 'file')} that the ledger names could not be looked "
            "through, since the store does not have them (tallybook doctor). If they are "
            "restored, erase the document again."
        )
    _print_provider(report)
    if report.left:
        output.say(f"Left to do: {report.left}.")
    output.say(
        "Not in reach: backups of the state folder, files that were exported, the source itself, "
        "and words of it that people wrote into reasons. Temporary files of killed runs: "
        "tallybook doctor --fix, tallybook prune --what leftovers."
    )


def _print_shared(report: EraseReport) -> None:
    from pipeline_assets.cli import output

    for checksum, others in report.plan.shared.items():
        output.say(
            f"The bytes {checksum[:12]} and their text stay: {', '.join(others[:3])}"
            f"{' and others' if len(others) > 3 else ''} has the same ones. Its own requests, "
            "results and values go."
        )


def _print_provider(report: EraseReport) -> None:
    from pipeline_assets.cli import output

    if report.at_provider:
        output.say(
            f"Its provider may still hold what was sent with {', '.join(report.at_provider)}: "
            "the files there were not deleted yet. The next tallybook run deletes those it can; "
            "see the provider's own terms for the rest."
        )
