"""`tallybook review`: what waits for a person, looking at it, and deciding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    counted,
    make_settings,
    open_existing,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from pipeline_assets.review.bulk import Selection
    from pipeline_assets.review.decisions import Decision, Done
    from pipeline_assets.review.desk import Sheet, Value
    from pipeline_assets.review.queue import Queue
    from resources.context import Context
    from resources.ledger.review_queue import Wanted
    from resources.settings import Settings

review_app = typer.Typer(
    help="Show what waits for a reviewer, and accept, correct or reject it.",
    no_args_is_help=True,
)
Kind = Literal["findings", "quality_sample"]
UNCONFIRMED = 3
"""Exit status of a selection that was shown and waits to be confirmed."""

_Conditions = tuple[str | None, str | None, str | None, str | None, str | None]
"""Version, rule, field, slice and kind."""
OfVersion = Annotated[
    str | None,
    typer.Option(
        "--version", metavar="KEY", help="Of this processing version.", show_default=False
    ),
]
OfRule = Annotated[str | None, typer.Option("--rule", metavar="RULE", help="Stopped by this rule.")]
OfField = Annotated[
    str | None, typer.Option("--field", metavar="FIELD", help="Stopped at this field.")
]
OfSlice = Annotated[
    str | None, typer.Option("--slice", metavar="SLICE", help="Of documents of this slice.")
]
OfKind = Annotated[
    Kind | None, typer.Option("--kind", help="Sent by findings, or drawn as a quality sample.")
]
Assigned = Annotated[
    str | None, typer.Option("--assigned", metavar="NAME", help="Assigned to this reviewer.")
]
Unassigned = Annotated[bool, typer.Option("--unassigned", help="Assigned to nobody.")]
By = Annotated[
    str | None,
    typer.Option(
        "--by", metavar="NAME", help="The reviewer [default: your login].", show_default=False
    ),
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.")]
Reviews = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[REVIEW]...",
        help="Review numbers; NUMBER@REVISION decides on exactly what was seen.",
        show_default=False,
    ),
]
WhereRule = Annotated[
    str | None, typer.Option("--where-rule", metavar="RULE", help="All that a rule stopped.")
]
WhereField = Annotated[
    str | None,
    typer.Option("--where-field", metavar="FIELD", help="All that were stopped at a field."),
]
WhereSlice = Annotated[
    str | None, typer.Option("--where-slice", metavar="SLICE", help="All of a slice.")
]
WhereKind = Annotated[Kind | None, typer.Option("--where-kind", help="All of a kind.")]
Confirm = Annotated[
    str | None,
    typer.Option(
        "--confirm",
        metavar="DIGEST",
        help="The selection that was shown before.",
        show_default=False,
    ),
]


@review_app.command("list")
def list_command(
    version: OfVersion = None,
    rule: OfRule = None,
    field: OfField = None,
    slice_: OfSlice = None,
    kind: OfKind = None,
    assigned: Assigned = None,
    unassigned: Unassigned = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")] = 50,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """List what waits for a reviewer, the most urgent and then the oldest first."""
    from pipeline_assets.review.queue import read_queue

    settings = make_settings(state=state)
    with open_existing(settings) as context:
        wanted = _wanted(context, version, rule, field, slice_, kind, assigned, unassigned)
        queue = read_queue(context, wanted, limit)
        now = context.clock()
    if json:
        from pipeline_assets.cli import output

        output.emit_json_lines(_for_machines(queue, now))
    else:
        _print_queue(queue, now, settings)
    return 0


@review_app.command("show")
def show_command(
    review: Annotated[
        str,
        typer.Argument(metavar="REVIEW|DOCUMENT", help="A review's number, or a document's id."),
    ],
    page: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Show this page.", show_default=False)
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Show the whole page.")] = False,
    by: By = None,
    version: OfVersion = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Show a review: values, findings, and the page with the evidence. The look is recorded."""
    from pipeline_assets.cli import output
    from pipeline_assets.review.desk import lay_out

    settings = make_settings(state=state)
    with open_existing(settings) as context:
        sheet = lay_out(context, _number(context, review, version), _reviewer(by))
    if json:
        output.emit_json(_sheet_for_machines(sheet, page))
        return 0
    from pipeline_assets.cli.review_screen import draw_sheet

    output.console().print(draw_sheet(sheet, number=page, whole=whole))
    _print_acts(sheet)
    if sheet.review["waits"]:
        name = f"{sheet.number}@{sheet.review['revision']}"
        told = _command(settings, "review", "accept", name, "--reason", "TEXT")
        output.say("", f"Decide on what you see here: {told} (or correct, or reject)")
    return 0


@review_app.command("next")
def next_command(
    version: OfVersion = None,
    rule: OfRule = None,
    field: OfField = None,
    slice_: OfSlice = None,
    kind: OfKind = None,
    assigned: Assigned = None,
    unassigned: Unassigned = False,
    by: By = None,
    state: StateOption = None,
) -> int:
    """Work through what waits, one after the other, with single keys. Needs a terminal."""
    from pipeline_assets.cli import output
    from pipeline_assets.cli.review_next import Session
    from pipeline_assets.cli.review_terminal import open_terminal

    terminal = open_terminal()
    reviewer = _reviewer(by)
    with open_existing(make_settings(state=state)) as context:
        wanted = _wanted(context, version, rule, field, slice_, kind, assigned, unassigned)
        session = Session(context, terminal, reviewer)
        session.work(wanted)
    told = ", ".join(f"{count} {what}" for what, count in sorted(session.done.items()))
    output.say(f"{reviewer}: {told or 'nothing was decided'}.")
    return 0


@review_app.command("accept")
def accept_command(
    reason: Reason,
    reviews: Reviews = None,
    where_rule: WhereRule = None,
    where_field: WhereField = None,
    where_slice: WhereSlice = None,
    where_kind: WhereKind = None,
    version: OfVersion = None,
    confirm: Confirm = None,
    by: By = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Accept reviews: their values are right, and may be published."""
    conditions = (version, where_rule, where_field, where_slice, where_kind)
    return _decide("accept", reviews, conditions, confirm, reason, by, state, json=json)


@review_app.command("reject")
def reject_command(
    reason: Reason,
    reviews: Reviews = None,
    where_rule: WhereRule = None,
    where_field: WhereField = None,
    where_slice: WhereSlice = None,
    where_kind: WhereKind = None,
    version: OfVersion = None,
    confirm: Confirm = None,
    by: By = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Reject reviews: their values are not published; published ones leave the archive at once."""
    conditions = (version, where_rule, where_field, where_slice, where_kind)
    return _decide("reject", reviews, conditions, confirm, reason, by, state, json=json)


@review_app.command("assign")
def assign_command(
    to: Annotated[str, typer.Option("--to", metavar="NAME", help="Who is to review them.")],
    reviews: Reviews = None,
    where_rule: WhereRule = None,
    where_field: WhereField = None,
    where_slice: WhereSlice = None,
    where_kind: WhereKind = None,
    version: OfVersion = None,
    confirm: Confirm = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why.")] = "",
    by: By = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Give reviews to a reviewer."""
    from pipeline_assets.review.bulk import assign_selection
    from pipeline_assets.review.decisions import assign
    from pipeline_assets.review.queue import read_names

    actor = _reviewer(by)
    conditions = (version, where_rule, where_field, where_slice, where_kind)
    _require_one_way(reviews, conditions)
    settings = make_settings(state=state)
    with open_existing(settings) as context:
        if reviews:
            done = assign(context, read_names(context, reviews), to, by=actor, reason=reason)
        else:
            wanted = _wanted(context, *conditions)
            digest = _confirmed(context, wanted, confirm, "assign", json=json)
            if digest is None:
                return UNCONFIRMED
            done = assign_selection(context, wanted, digest, to, by=actor, reason=reason)
    _print_done(done, settings, json=json)
    return 0


@review_app.command("correct")
def correct_command(
    review: Annotated[str, typer.Argument(metavar="REVIEW", help="A review's number.")],
    sets: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="FIELD=VALUE",
            help="The right value; several with commas where a field has several; none: absent.",
        ),
    ],
    reason: Reason,
    cites: Annotated[
        list[str] | None,
        typer.Option(
            "--evidence",
            metavar="FIELD=PAGE:QUOTE",
            help="Where it stands; looked for in the document where it is not given.",
        ),
    ] = None,
    by: By = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Correct a review: other values are published; those that the model gave are kept too."""
    import polars as pl

    from pipeline_assets.review.corrections import corrected_content, read_wishes
    from pipeline_assets.review.decisions import decide, require_reason
    from pipeline_assets.review.desk import lay_out
    from pipeline_assets.review.queue import read_names

    reviewer = _reviewer(by)
    why = require_reason(reason, "correct")
    wishes = read_wishes(sets, cites or [])
    settings = make_settings(state=state)
    with open_existing(settings) as context:
        asked = read_names(context, [review])
        sheet = lay_out(context, int(asked["review_no"][0]), reviewer)
        content = corrected_content(context, sheet, wishes)
        done = decide(
            context,
            asked.with_columns(content=pl.lit(content)),
            "correct",
            reviewer=reviewer,
            reason=why,
        )
    _print_done(done, settings, json=json)
    return 0


def _decide(
    decision: Decision,
    reviews: list[str] | None,
    conditions: _Conditions,
    confirm: str | None,
    reason: str,
    by: str | None,
    state: Any,
    *,
    json: bool,
) -> int:
    from pipeline_assets.review.bulk import decide_selection
    from pipeline_assets.review.decisions import decide, require_reason
    from pipeline_assets.review.queue import read_names

    reviewer = _reviewer(by)
    why = require_reason(reason, decision)
    _require_one_way(reviews, conditions)
    settings = make_settings(state=state)
    with open_existing(settings) as context:
        if reviews:
            asked = read_names(context, reviews)
            done = decide(context, asked, decision, reviewer=reviewer, reason=why)
        else:
            wanted = _wanted(context, *conditions)
            digest = _confirmed(context, wanted, confirm, decision, json=json)
            if digest is None:
                return UNCONFIRMED
            done = decide_selection(
                context, wanted, digest, decision, reviewer=reviewer, reason=why
            )
    _print_done(done, settings, json=json)
    return 0


def _wanted(
    context: Context,
    version: str | None = None,
    rule: str | None = None,
    field: str | None = None,
    slice_: str | None = None,
    kind: str | None = None,
    assigned: str | None = None,
    unassigned: bool = False,
) -> Wanted:
    from pipeline_assets.known_version import known_version
    from resources.ledger.review_queue import Wanted

    number = None if version is None else known_version(context, version).version_no
    return Wanted(
        version_no=number,
        rule=rule,
        field=field,
        slice=slice_,
        kind=kind,
        assigned_to=assigned,
        unassigned=unassigned,
    )


def _reviewer(by: str | None) -> str:
    import getpass

    from pipeline_assets.review.decisions import require_reviewer

    if by is not None:
        return require_reviewer(by)
    try:
        return require_reviewer(getpass.getuser())
    except (KeyError, OSError):
        # A login without a name: somebody has to sign.
        return require_reviewer("")


def _number(context: Context, name: str, version: str | None) -> int:
    """The review that a number or a document's id means."""
    from pipeline_assets.account.documents import find_document
    from pipeline_assets.known_version import known_version
    from pipeline_assets.review.desk import review_of_document
    from pipeline_assets.review.queue import read_names

    if name.partition("@")[0].isdecimal():
        return int(read_names(context, [name])["review_no"][0])
    number = None if version is None else known_version(context, version).version_no
    found = find_document(context, name)
    return review_of_document(context, found.document_no, found.document_id, number)


def _require_one_way(reviews: list[str] | None, conditions: _Conditions) -> None:
    from pipeline_assets.review.errors import ReviewNotNamed

    chosen = any(condition is not None for condition in conditions[1:])
    if reviews and (chosen or conditions[0] is not None):
        raise ReviewNotNamed("both review numbers and conditions")
    if not reviews and not chosen:
        raise ReviewNotNamed("neither review numbers nor a --where-... option")


def _confirmed(
    context: Context, wanted: Wanted, confirm: str | None, act: str, *, json: bool
) -> str | None:
    """The digest of a selection that the reviewer has confirmed; None after it was only shown."""
    import sys

    from pipeline_assets.cli import output
    from pipeline_assets.review.bulk import select_reviews

    if confirm is not None:
        return confirm
    selection = select_reviews(context, wanted)
    count = selection.members.height
    if json:
        output.emit_json(
            {
                "selection": selection.digest,
                "reviews": count,
                "selected": [f"{no}@{revision}" for no, revision in selection.members.iter_rows()],
                "rules": selection.rules,
                "confirmed": False,
            }
        )
        return None
    _print_selection(selection, act)
    if sys.stdin.isatty() and sys.stdout.isatty():
        if typer.confirm(f"{act.capitalize()} {counted(count, 'review')}?"):
            return selection.digest
        output.say("Nothing was changed.")
        return None
    output.say(
        f"Nothing was changed. To {act} exactly these, run the same command with "
        f"--confirm {selection.digest}"
    )
    return None


def _print_selection(selection: Selection, act: str) -> None:
    from pipeline_assets.cli import output

    count = selection.members.height
    output.table(
        f"{counted(count, 'review')} to {act}, selection {selection.digest}",
        ("review", "document", "version", "kind", "slice"),
        (
            (
                row["review_no"],
                row["document_id"],
                row["version_key"],
                row["kind"].replace("_", " "),
                row["slice"],
            )
            for row in selection.examples.iter_rows(named=True)
        ),
    )
    more = count - selection.examples.height
    if more > 0:
        output.say(f"and {more} more")
    told = ", ".join(f"{rule} {reviews}" for rule, reviews in selection.rules.items())
    output.say(f"Stopped by: {told or 'no rule'}")


def _age(opened_at: str, now: datetime) -> float:
    """Hours that a review waits."""
    from resources.clock import from_text

    return round((now - from_text(opened_at)).total_seconds() / 3600, 1)


def _for_machines(queue: Queue, now: datetime) -> Iterator[dict[str, Any]]:
    hidden = ("record_no", "document_no", "attempt_no", "batch_no", "version_no", "waits")
    for row in queue.reviews.drop(hidden).iter_rows(named=True):
        yield {**row, "age_hours": _age(row["opened_at"], now)}


def _command(settings: Settings, *words: object) -> str:
    """A command line for the same state folder."""
    from pipeline_assets.cli import output
    from pipeline_assets.cli.account import options_of

    return output.command(*words, *options_of(settings, version=False))


def _print_queue(queue: Queue, now: datetime, settings: Settings) -> None:
    from pipeline_assets.cli import output

    if queue.reviews.is_empty():
        output.say("Nothing that was asked for waits for a reviewer.")
        return
    output.table(
        f"{counted(queue.waiting, 'review')} waiting",
        ("review", "document", "version", "kind", "rules", "fields", "slice", "age", "assigned"),
        (
            (
                row["review_no"],
                row["document_id"],
                row["version_key"],
                row["kind"].replace("_", " "),
                ", ".join(row["rules"]),
                ", ".join(row["fields"]),
                row["slice"],
                f"{_age(row['opened_at'], now)} h",
                row["assigned_to"],
            )
            for row in queue.reviews.iter_rows(named=True)
        ),
    )
    more = queue.waiting - queue.reviews.height
    if more > 0:
        output.say(f"{counted(more, 'more review')} not shown: --limit shows more.")
    first = queue.reviews["review_no"][0]
    output.say(
        f"One of them in full: {_command(settings, 'review', 'show', first)}",
        f"One after the other: {_command(settings, 'review', 'next')}",
    )


def _sheet_for_machines(sheet: Sheet, page: int | None) -> dict[str, Any]:
    """A review with everything but page texts; of those the one that was asked for."""
    from pipeline_assets.review.desk import read_values

    shown = None if page is None else sheet.page(page)
    corrected = (
        None if sheet.corrected is None else read_values(sheet.corrected, sheet.fields, sheet.pages)
    )
    return {
        **sheet.review,
        "waits": bool(sheet.review["waits"]),
        "values": [_value(value) for value in sheet.values],
        "corrected": None if corrected is None else [_value(value) for value in corrected],
        "findings": [vars(finding) for finding in sheet.findings],
        "acts": list(sheet.acts),
        "pages": len(sheet.pages),
        "page": None if shown is None else vars(shown),
        "image": None if sheet.image is None else str(sheet.image),
    }


def _value(value: Value) -> dict[str, Any]:
    return {**vars(value), "evidence": [vars(quote) for quote in value.evidence]}


def _print_acts(sheet: Sheet) -> None:
    from pipeline_assets.cli import output

    if sheet.acts:
        output.heading("What was done")
        output.say(
            *(
                f"  {output.local(act['acted_at'])}  {act['act']} by {act['who']}: {act['reason']}"
                for act in sheet.acts
            )
        )


def _print_done(done: Done, settings: Settings, *, json: bool) -> None:
    from pipeline_assets.cli import output
    from pipeline_assets.review.decisions import DONE

    verb = DONE[done.act]
    if json:
        output.emit_json(
            {verb: done.reviews, "documents": list(done.documents), "hidden": done.hidden}
        )
        return
    more = done.reviews - len(done.documents)
    output.say(
        f"{counted(done.reviews, 'review')} {verb}: {', '.join(done.documents)}"
        + (f" and {more} more" if more > 0 else "")
    )
    if done.hidden:
        output.say(f"The published entry of {counted(done.hidden, 'document')} left the archive.")
    if done.to_publish:
        verb = "is" if done.to_publish == 1 else "are"
        output.say(
            f"{counted(done.to_publish, 'document')} {verb} published by the next run of the "
            f"version: {_command(settings, 'run', '--version', 'KEY')} (where its setting promote "
            f"is manual, by {_command(settings, 'promote', 'KEY')})"
        )
