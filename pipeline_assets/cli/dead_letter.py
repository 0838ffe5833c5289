"""`tallybook dead-letter`: records that were given up, and what their owner does with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    VersionOption,
    counted,
    make_settings,
    open_existing,
)

if TYPE_CHECKING:
    from datetime import datetime

    import polars as pl

    from pipeline_assets.known_version import KnownVersion
    from pipeline_assets.recovery.dead_letter_choice import Selection
    from pipeline_assets.recovery.dead_letters import Change
    from resources.context import Context

dead_letter_app = typer.Typer(
    help="Show records that were given up, make another attempt at them, or let them go.",
    no_args_is_help=True,
)
DocumentsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[DOCUMENT]...",
        help="Document ids, ends of them that are unique, or record ids.",
        show_default=False,
    ),
]
ClassOption = Annotated[
    str | None,
    typer.Option("--class", metavar="CLASS", help="Every one of a failure class."),
]
AllOption = Annotated[bool, typer.Option("--all", help="Every one of the version.")]
ReasonOption = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.")]


@dead_letter_app.command("list")
def list_command(
    group: Annotated[bool, typer.Option("--group", help="Count them by cause.")] = False,
    failure_class: ClassOption = None,
    version: VersionOption = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """List the dead letters of a version, or count them by cause."""
    import polars as pl

    from pipeline_assets.cli import output
    from pipeline_assets.recovery.dead_letter_choice import group_by_cause
    from pipeline_assets.recovery.dead_letters import dead_letters_of

    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        known = _version(context, settings.version)
        found = dead_letters_of(context, known.version_no).sort("opened_at", "document_id")
        elsewhere = _elsewhere(context, known)
        now = context.clock()
    if failure_class is not None:
        found = found.filter(pl.col("failure_class") == failure_class)
    if group:
        groups = group_by_cause(found)
        _print_groups(known.key, groups.with_columns(_hours(groups["oldest_at"], now)), json=json)
    else:
        _print_letters(known.key, found.with_columns(_hours(found["opened_at"], now)), json=json)
    if not json:
        for key, count in elsewhere.items():
            output.say(f"{counted(count, 'more dead letter')} under --version {key}")
    return 0


@dead_letter_app.command("show")
def show_command(
    document: Annotated[
        str,
        typer.Argument(metavar="DOCUMENT", help="A document id, a unique end of it, or a record."),
    ],
    version: VersionOption = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Show everything about a dead letter: episodes, attempts, and where its answers lie."""
    from pipeline_assets.cli import output
    from pipeline_assets.recovery.dead_letters import story

    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        known = _version(context, settings.version)
        stories = story(context, known.version_no, known.key, document)
    if json:
        output.emit_json_lines(stories)
        return 0
    for entry in stories:
        _print_story(entry)
    return 0


@dead_letter_app.command("requeue")
def requeue_command(
    reason: ReasonOption,
    documents: DocumentsArgument = None,
    failure_class: ClassOption = None,
    everything: AllOption = False,
    version: VersionOption = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Make another attempt at dead letters; their limits start anew, and it may cost money."""
    from pipeline_assets.cli import output
    from pipeline_assets.prepare.retries import requeue
    from pipeline_assets.recovery.dead_letter_alerts import look_at_dead_letters
    from pipeline_assets.recovery.dead_letters import require_reason, take_up
    from pipeline_assets.versions import open_version

    why = require_reason(reason, "requeued")
    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        known = _version(context, settings.version)
        chosen = take_up(
            context, known.version_no, known.key, _selection(documents, failure_class, everything)
        )
        opened = open_version(context, known.key)
        report = requeue(context, opened, chosen["record_no"], why, context.settings.owner)
        look_at_dead_letters(context, known.version_no, known.key)
    if json:
        output.emit_json(
            {
                "requeued": report.records,
                "manifest_id": report.manifest_id,
                "batches": report.batches,
                "refused": report.refused,
            }
        )
        return 0
    if report.records:
        output.say(
            f"{counted(report.records, 'dead letter')} requeued in "
            f"{counted(report.batches, 'batch', 'batches')} of manifest {report.manifest_id}.",
            f"Send them with: {output.command('run', '--version', known.key)}",
        )
    if report.refused:
        output.say(
            f"{counted(report.refused, 'dead letter')} could not be asked again: no request can be "
            "made of them now; dead-letter show says why."
        )
    return 0


@dead_letter_app.command("discard")
def discard_command(
    reason: ReasonOption,
    documents: DocumentsArgument = None,
    failure_class: ClassOption = None,
    everything: AllOption = False,
    version: VersionOption = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Let dead letters go for good."""
    from pipeline_assets.recovery.dead_letters import discard

    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        known = _version(context, settings.version)
        selection = _selection(documents, failure_class, everything)
        change = discard(context, known.version_no, known.key, selection, reason)
    _print_change("discarded", change, json=json)
    return 0


@dead_letter_app.command("assign")
def assign_command(
    owner: Annotated[str, typer.Option("--owner", metavar="NAME", help="Whom they belong to.")],
    documents: DocumentsArgument = None,
    failure_class: ClassOption = None,
    everything: AllOption = False,
    version: VersionOption = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Give dead letters to an owner."""
    from pipeline_assets.recovery.dead_letters import assign

    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        known = _version(context, settings.version)
        selection = _selection(documents, failure_class, everything)
        change = assign(context, known.version_no, known.key, selection, owner)
    _print_change("assigned", change, json=json)
    return 0


def _version(context: Context, key: str) -> KnownVersion:
    from pipeline_assets.known_version import known_version

    return known_version(context, key)


def _selection(
    documents: list[str] | None,
    failure_class: str | None,
    everything: bool,
) -> Selection:
    from pipeline_assets.recovery.dead_letter_choice import Selection

    return Selection(tuple(documents or ()), failure_class, everything)


def _elsewhere(context: Context, known: KnownVersion) -> dict[str, int]:
    """Dead letters of other versions: key → how many."""
    import polars as pl

    from resources.ledger.dead_letters import count_dead_letters

    with context.ledger.read() as connection:
        counts = count_dead_letters(connection, context.ledger, None, context.ledger.now())
    others = counts.filter(pl.col("version_no") != known.version_no)
    return dict(
        others.group_by("version_key", maintain_order=True).agg(pl.col("letters").sum()).iter_rows()
    )


def _hours(moments: pl.Series, now: datetime) -> pl.Series:
    """How long ago each of the ledger's times was, in hours."""
    import polars as pl

    from resources.clock import from_text

    ages = [
        None if at is None else round((now - from_text(at)).total_seconds() / 3600, 1)
        for at in moments
    ]
    return pl.Series("age_hours", ages, dtype=pl.Float64)


def _for_machines(row: dict[str, Any]) -> dict[str, Any]:
    names = (
        "document_id",
        "record_id",
        "version_key",
        "failure_class",
        "diagnostics",
        "reason",
        "owner",
        "opened_at",
        "age_hours",
        "attempts",
        "batch_id",
        "disposition",
        "result_artifact",
        "line",
        "line_offset",
        "line_length",
    )
    return {name: row[name] for name in names}


def _print_letters(key: str, rows: pl.DataFrame, *, json: bool) -> None:
    from pipeline_assets.cli import output

    if json:
        output.emit_json_lines(_for_machines(row) for row in rows.iter_rows(named=True))
        return
    if rows.is_empty():
        output.say(f"{key} has no such dead letter.")
        return
    columns = (
        "document_id",
        "failure_class",
        "diagnostics",
        "reason",
        "owner",
        "age_hours",
        "attempts",
    )
    output.table(
        f"{counted(rows.height, 'dead letter')} of {key}",
        ("document", "class", "diagnostics", "given up because", "owner", "age", "attempts"),
        (
            (*facts, _age(hours), attempts)
            for *facts, hours, attempts in rows.select(columns).iter_rows()
        ),
    )
    shown = output.command("dead-letter", "show", rows["document_id"][0])
    output.say(f"One of them in full: {shown}")


def _print_groups(key: str, groups: pl.DataFrame, *, json: bool) -> None:
    from pipeline_assets.cli import output

    if json:
        output.emit_json_lines(groups.iter_rows(named=True))
        return
    if groups.is_empty():
        output.say(f"{key} has no such dead letter.")
        return
    output.table(
        f"Dead letters of {key} by cause",
        ("letters", "class", "diagnostics", "given up because", "oldest", "owners", "examples"),
        (
            (
                row["letters"],
                row["failure_class"],
                row["diagnostics"],
                row["reason"],
                _age(row["age_hours"]),
                ", ".join(row["owners"]),
                ", ".join(row["examples"]),
            )
            for row in groups.iter_rows(named=True)
        ),
    )


def _print_story(story: dict[str, Any]) -> None:
    from pipeline_assets.cli import output

    output.heading(story["document_id"])
    output.facts(
        [
            ("record", story["record_id"]),
            ("processing version", story["version_key"]),
            ("state", story["state"]),
        ]
    )
    for episode in story["episodes"]:
        output.heading("Given up" if episode["closed_at"] is None else "Given up, and settled")
        output.facts(_episode(episode), 2)
    for attempt in story["attempts"]:
        output.heading(f"Attempt {attempt['ordinal']}")
        output.facts(_attempt(attempt), 2)
        lines = [line for line in story["lines"] if line["attempt_no"] == attempt["attempt_no"]]
        output.say(*(f"  {_line(line)}" for line in lines))
        if not lines:
            output.say("  no line came back")
    output.say("", f"What it was made of: {output.command('explain', story['document_id'])}")


def _episode(episode: dict[str, Any]) -> list[tuple[str, object]]:
    from pipeline_assets.cli import output

    return [
        ("class", episode["failure_class"]),
        ("reason", episode["reason"]),
        ("owner", episode["owner"]),
        ("since", output.local(episode["opened_at"])),
        ("batch", episode["batch_id"]),
        ("answer", None if episode["line"] is None else _line(episode)),
        ("settled", output.local(episode["closed_at"])),
        ("how", episode["closing"]),
        ("why", episode["closing_reason"]),
        ("by", episode["closed_by"]),
    ]


def _attempt(attempt: dict[str, Any]) -> list[tuple[str, object]]:
    from pipeline_assets.cli import output

    decided = attempt["decision"]
    if decided == "retry":
        decided = f"retry ({attempt['next_path']})"
    return [
        ("path", attempt["recovery_path"]),
        ("batch", attempt["batch_id"]),
        ("model", attempt["model_revision"] or attempt["model"]),
        ("sent", output.local(attempt["submitted_at"])),
        ("disposition", attempt["disposition"]),
        ("class", attempt["failure_class"]),
        ("diagnostics", attempt["diagnostics"]),
        ("tokens in", attempt["input_tokens"]),
        ("tokens out", attempt["output_tokens"]),
        ("decided", decided),
        ("because", attempt["decision_reason"]),
        ("not before", output.local(attempt["not_before"])),
    ]


def _line(line: dict[str, Any]) -> str:
    """Where a line lies, and what is odd about it."""
    said = line.get("anomaly")
    notes = [said] if said else []
    if line.get("used") is not None:
        notes.append("its answer is used" if line["used"] else "its answer is not used")
    return (
        f"line {line['line']} of result {line['result_artifact']}: {line['line_length']} bytes "
        f"from {line['line_offset']}" + (f" ({', '.join(notes)})" if notes else "")
    )


def _age(hours: float | None) -> str | None:
    if hours is None:
        return None
    return f"{hours / 24:.1f} d" if hours >= 48 else f"{hours:.1f} h"


def _print_change(done: str, change: Change, *, json: bool) -> None:
    from pipeline_assets.cli import output

    if json:
        output.emit_json({done: change.records, "documents": list(change.documents)})
        return
    more = change.records - len(change.documents)
    output.say(
        f"{counted(change.records, 'dead letter')} {done}: {', '.join(change.documents)}"
        + (f" and {more} more" if more > 0 else "")
    )
