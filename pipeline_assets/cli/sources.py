"""`tallybook sources`: what is declared, scanning it, deciding on what waits, and events."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    NothingHere,
    StateOption,
    counted,
    make_settings,
    open_existing,
)
from pipeline_assets.cli.source_events import events_app, login

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from pipeline_assets.approval.decide import Decided, Selection
    from pipeline_assets.cli.sources_overview import SourceRow
    from pipeline_assets.ingest.scan import ScanReport
    from resources.context import Context
    from resources.ledger.approvals import Decision

sources_app = typer.Typer(
    help="Show the declared sources, scan them, and approve or refuse documents that wait.",
    no_args_is_help=True,
)
sources_app.add_typer(events_app, name="events")
UNCONFIRMED = 3
"""Exit status of a selection that was shown and waits to be confirmed."""

Documents = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[DOCUMENT]...",
        help="Document ids, or ends of them that are unique; DOCUMENT@CHECKSUM decides on exactly "
        "what was seen.",
        show_default=False,
    ),
]
OfSource = Annotated[
    str | None, typer.Option("--source", metavar="NAME", help="Of this source.", show_default=False)
]
All = Annotated[bool, typer.Option("--all", help="Everything of the source that waits.")]
ListFile = Annotated[
    Path | None,
    typer.Option(
        "--documents",
        metavar="FILE",
        help="A file of document ids, one a line.",
        show_default=False,
    ),
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.")]
By = Annotated[
    str | None,
    typer.Option(
        "--by", metavar="NAME", help="Who decides [default: your login].", show_default=False
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Confirm = Annotated[
    str | None,
    typer.Option(
        "--confirm",
        metavar="DIGEST",
        help="The selection that was shown before.",
        show_default=False,
    ),
]


@sources_app.command("list")
def list_command(state: StateOption = None, json: JsonOption = False) -> int:
    """List the declared sources: place, workload, policies, what each holds, and what is wrong."""
    from pipeline_assets.cli import output
    from pipeline_assets.cli.sources_overview import overview

    settings = make_settings(state=state)
    try:
        opened = open_existing(settings)
    except NothingHere:
        # What is declared can be looked at before anything was ever scanned.
        opened = nullcontext()
    with opened as context:
        rows = overview(settings, context)
    if json:
        output.emit_json_lines(vars(row) for row in rows)
        return 0
    _print_sources(rows)
    return 0


@sources_app.command("scan")
def scan_command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="One source [default: every one.]", show_default=False
        ),
    ] = None,
    moved: Annotated[
        bool, typer.Option("--source-moved", help="The place of this source was moved.")
    ] = False,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Look what the sources hold now and store it; nothing is processed."""
    from pipeline_assets.cli import output
    from pipeline_assets.cli.progress import shown_progress
    from pipeline_assets.ingest.scan import scan_declared
    from resources.context import open_context

    settings = make_settings(state=state)
    with (
        shown_progress(quiet=json) as progress,
        open_context(settings, progress=progress) as context,
    ):
        reports = scan_declared(context, only=name, moved=moved)
    if json:
        output.emit_json_lines(_scan_for_machines(report) for report in reports)
        return 0
    _print_scans(reports)
    return 0


@sources_app.command("waiting")
def waiting_command(
    source: OfSource = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most so many.")] = 50,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """List documents that wait for approval, the longest waiting first."""
    from pipeline_assets.approval.decide import waiting_documents, waiting_for_approval
    from pipeline_assets.cli import output

    with open_existing(make_settings(state=state)) as context:
        found = waiting_documents(context, source, limit)
        counts = waiting_for_approval(context.ledger, context.settings)
        now = context.clock()
    count = sum(counts.values()) if source is None else counts.get(source, 0)
    rows = list(found.iter_rows(named=True))
    if json:
        output.emit_json_lines(_waiting_for_machines(row, now) for row in rows)
        return 0
    if not rows:
        output.say("No document waits for approval.")
        return 0
    output.table(
        f"{counted(count, 'document')} waiting for approval",
        ("document", "checksum", "bytes", "since", "records"),
        (
            (
                row["document_id"],
                row["checksum"][:12],
                row["bytes"],
                output.local(row["since"]),
                row["records"],
            )
            for row in rows
        ),
    )
    if count > len(rows):
        output.say(f"{counted(count - len(rows), 'more document')} not shown: --limit shows more.")
    first = f"{rows[0]['document_id']}@{rows[0]['checksum'][:12]}"
    output.say(
        "Approve one: " + output.command("sources", "approve", first, "--reason", "TEXT"),
        "Approve all: "
        + output.command(
            "sources", "approve", "--source", rows[0]["source"], "--all", "--reason", "TEXT"
        ),
    )
    return 0


@sources_app.command("approve")
def approve_command(
    reason: Reason,
    documents: Documents = None,
    source: OfSource = None,
    everything: All = False,
    file: ListFile = None,
    yes: Yes = False,
    confirm: Confirm = None,
    by: By = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Approve documents: their present bytes may be processed."""
    wish = (documents or [], source, everything, file)
    return _decide("approved", wish, reason, by, state, yes=yes, confirm=confirm, json=json)


@sources_app.command("refuse")
def refuse_command(
    reason: Reason,
    documents: Documents = None,
    source: OfSource = None,
    everything: All = False,
    file: ListFile = None,
    yes: Yes = False,
    confirm: Confirm = None,
    by: By = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Refuse documents: their present bytes are not processed."""
    wish = (documents or [], source, everything, file)
    return _decide("refused", wish, reason, by, state, yes=yes, confirm=confirm, json=json)


_Wish = tuple[list[str], str | None, bool, Path | None]
"""Documents, a source, everything of it, a file of ids."""
_VERB: dict[str, str] = {"approved": "approve", "refused": "refuse"}


def _decide(
    decision: Decision,
    wish: _Wish,
    reason: str,
    by: str | None,
    state: Path | None,
    *,
    yes: bool,
    confirm: str | None,
    json: bool,
) -> int:
    from pipeline_assets.approval.decide import decide

    _require_one_way(wish)
    actor = login(by)
    with open_existing(make_settings(state=state)) as context:
        selection = _select(context, wish)
        if confirm is None and not yes and not _confirmed(selection, decision, json=json):
            return UNCONFIRMED
        done = decide(context, selection, decision, reason=reason, actor=actor, confirmed=confirm)
    _print_decided(done, json=json)
    return 0


def _require_one_way(wish: _Wish) -> None:
    from pipeline_assets.approval.errors import SelectionUnclear

    documents, source, everything, file = wish
    ways = [bool(documents), file is not None, source is not None]
    if sum(ways) > 1:
        raise SelectionUnclear("several ways of naming documents at once")
    if sum(ways) == 0:
        raise SelectionUnclear("no document")
    if everything != (source is not None):
        raise SelectionUnclear("--all without --source" if everything else "--source without --all")


def _select(context: Context, wish: _Wish) -> Selection:
    from pipeline_assets.approval.decide import read_list, select_all, select_documents

    documents, source, _, file = wish
    if source is not None:
        return select_all(context, source)
    if file is not None:
        return select_documents(context, read_list(file.expanduser()))
    return select_documents(context, [_full_name(context, name) for name in documents])


def _full_name(context: Context, given: str) -> str:
    from pipeline_assets.account.documents import find_document
    from pipeline_assets.approval.decide import split_name

    name, checksum = split_name(given)
    found = find_document(context, name).document_id
    return f"{found}@{checksum}" if checksum else found


def _confirmed(selection: Selection, decision: Decision, *, json: bool) -> bool:
    """Show a selection; True once whoever decides says yes to it."""
    import sys

    from pipeline_assets.approval.decide import EXAMPLES
    from pipeline_assets.cli import output

    verb, count = _VERB[decision], selection.documents.height
    if json:
        output.emit_json(
            {
                "selection": selection.digest,
                "documents": [
                    f"{name}@{checksum[:12]}"
                    for name, checksum in selection.documents.select(
                        "document_id", "checksum"
                    ).iter_rows()
                ],
                "confirmed": False,
            }
        )
        return False
    output.table(
        f"{counted(count, 'document')} to {verb}, selection {selection.digest}",
        ("document", "checksum", "bytes", "since", "decided", "records"),
        (
            (
                row["document_id"],
                row["checksum"][:12],
                row["bytes"],
                output.local(row["since"]),
                row["decision"] or "not yet",
                row["records"],
            )
            for row in selection.documents.head(EXAMPLES).iter_rows(named=True)
        ),
    )
    if count > EXAMPLES:
        output.say(f"and {count - EXAMPLES} more")
    if sys.stdin.isatty() and sys.stdout.isatty():
        if typer.confirm(f"{verb.capitalize()} {counted(count, 'document')}?"):
            return True
        output.say("Nothing was changed.")
        return False
    output.say(
        f"Nothing was changed. To {verb} exactly these, run the same command with "
        f"--confirm {selection.digest} (or --yes for whatever it selects then)."
    )
    return False


def _print_decided(done: Decided, *, json: bool) -> None:
    from pipeline_assets.cli import output

    if json:
        output.emit_json(
            {
                done.decision: done.documents,
                "documents": list(done.examples),
                "with_records": done.with_records,
            }
        )
        return
    more = done.documents - len(done.examples)
    output.say(
        f"{counted(done.documents, 'document')} {done.decision}: {', '.join(done.examples)}"
        + (f" and {more} more" if more > 0 else "")
    )
    if done.decision == "refused" and done.with_records:
        output.say(
            f"{counted(done.with_records, 'document')} of them were processed before and keep "
            "their records: a refusal only stops what is to come. To take them out of the archive, "
            "erase them (tallybook erase DOCUMENT --reason TEXT), or remove them from a source "
            "that is declared with `removed: withdraw`."
        )


def _print_sources(rows: list[SourceRow]) -> None:
    from pipeline_assets.cli import output

    output.table(
        counted(len(rows), "source"),
        (
            "name",
            "kind",
            "place",
            "workload",
            "version",
            "removed",
            "approval",
            "documents",
            "excluded",
            "waiting",
            "changed",
        ),
        (
            (
                row.name,
                row.kind if row.declared else f"{row.kind} (not declared)",
                row.place,
                row.workload,
                row.version,
                row.removed,
                "asked" if row.approval else "",
                row.documents,
                row.excluded,
                row.waiting,
                output.local(row.snapshot_at) or "never scanned",
            )
            for row in rows
        ),
    )
    output.say(*(f"{row.name}: {problem}" for row in rows for problem in row.problems))


def _print_scans(reports: Iterable[ScanReport]) -> None:
    from pipeline_assets.cli import output

    output.table(
        "Scanned",
        ("source", "documents", "excluded", "new", "changed", "removed", "unchanged", "read"),
        (
            (
                report.source,
                report.snapshot.documents,
                report.snapshot.excluded,
                report.snapshot.added,
                report.snapshot.changed,
                report.snapshot.removed,
                report.snapshot.unchanged,
                report.read,
            )
            for report in reports
        ),
    )
    output.say(
        *(
            f"{report.source}: not every part of it could be listed; what was not seen stays as "
            "it was."
            for report in reports
            if not report.complete
        )
    )


def _scan_for_machines(report: ScanReport) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(report)


def _waiting_for_machines(row: dict[str, Any], now: datetime) -> dict[str, Any]:
    from resources.clock import from_text

    names = ("document_id", "source", "checksum", "bytes", "since", "records")
    hours = round((now - from_text(row["since"])).total_seconds() / 3600, 1)
    return {name: row[name] for name in names} | {"age_hours": hours}
