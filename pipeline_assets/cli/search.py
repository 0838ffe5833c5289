"""`tallybook search`: find published documents."""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    WorkloadOption,
    make_settings,
    open_existing,
)


def search_command(
    text: Annotated[list[str], typer.Argument(metavar="TEXT...", help="Words and part numbers.")],
    product: Annotated[
        str | None,
        typer.Option(
            metavar="P",
            help="Only this identifier; case, hyphens and spaces do not matter.",
            show_default=False,
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(metavar="L", help="Only this language (en, de, ...).", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="At most so many hits.")] = 20,
    workload: WorkloadOption = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Find published documents that hold every word, best first."""
    from pipeline_assets.account.search import search
    from pipeline_assets.cli import output
    from pipeline_assets.cli.headings import nothing_of

    with open_existing(make_settings(state=state)) as context:
        hits = search(context, " ".join(text), product, language, limit, workload=workload)
    if json:
        output.emit_json_lines(hits)
        return 0
    if not hits:
        output.say("Nothing published holds all of these words.")
        return 0
    for hit in hits:
        about = ", ".join(filter(None, [hit.language, *hit.identifiers]))
        output.heading(hit.title or nothing_of(hit.label))
        output.say(f"  {hit.document_id}  {about}")
        if hit.snippet:
            output.say_text(f"  {hit.snippet}")
    return 0
