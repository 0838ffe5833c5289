"""`tallybook compare`: two processing versions on the documents that both have values for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    counted,
    make_settings,
    open_existing,
)

if TYPE_CHECKING:
    from pipeline_assets.compare.compare import Comparison

SHOWN = 20
LISTED = 200


def compare_command(
    first: Annotated[str, typer.Argument(metavar="A", help="The version to compare with.")],
    second: Annotated[str, typer.Argument(metavar="B", help="The version that is new.")],
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="FIELD=OUTCOME",
            help="List documents with this outcome, e.g. title=changed, or of a slice=NAME; "
            "several conditions all hold. Without one, every changed document.",
            show_default=False,
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write a page with the values of both.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
    limit: Annotated[
        int, typer.Option("--limit", min=0, help="At most so many documents are listed.")
    ] = LISTED,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Compare two processing versions, field by field and slice by slice.

    Compared are published values, and accepted ones that are not published yet. "Same" is equal
    character by character, "form" the same words written otherwise.
    """
    from pipeline_assets.cli import output
    from pipeline_assets.compare.compare import compare_versions

    settings = make_settings(state=state)
    with open_existing(settings) as context:
        found = compare_versions(context, first, second, where=where or (), limit=limit)
        now = context.clock()
    if html is not None:
        _write(html.expanduser(), found, output.local_datetime(now), force=force)
    if json:
        output.emit_json(found)
        return 0
    _print(found)
    if html is not None:
        output.say(f"{counted(len(found.listed), 'document')} with both values written to {html}")
    return 0


def _write(file: Path, found: Comparison, made_at: str, *, force: bool) -> None:
    from pipeline_assets.account.whole_file import whole_file
    from pipeline_assets.compare.html import page_of

    with (
        whole_file(file, force=force) as fresh,
        fresh.open("w", encoding="utf-8", errors="replace") as stream,
    ):
        stream.writelines(page_of(found, made_at))


def _print(found: Comparison) -> None:
    from pipeline_assets.cli import output
    from pipeline_assets.compare.fields import OUTCOMES
    from pipeline_assets.compare.html import different, summary

    output.say(*summary(found))
    if not found.both:
        return
    names = list(found.labels)
    output.table(
        "By field",
        ("field", *OUTCOMES),
        ((name, *(found.fields[name][outcome] for outcome in OUTCOMES)) for name in names),
    )
    output.table(
        "By slice: documents with another value",
        ("slice", "documents", "changed", *names),
        (
            (
                name,
                counts["documents"],
                counts["changed"],
                *(different(counts["fields"][field]) for field in names),
            )
            for name, counts in found.slices.items()
        ),
    )
    shown = found.listed[:SHOWN]
    if shown:
        output.table(
            "Documents",
            ("document", *names),
            ((entry.document_id, *(entry.outcomes[name] for name in names)) for entry in shown),
        )
    if found.matching > len(shown):
        output.say(
            f"{counted(found.matching - len(shown), 'more document')} not shown; --html FILE or "
            "--json gives both values, --limit how many."
        )
