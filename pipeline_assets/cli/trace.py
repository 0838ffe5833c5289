"""`tallybook trace`: what one record went through, as a waterfall."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    VersionOption,
    make_settings,
    open_existing,
)

if TYPE_CHECKING:
    from pipeline_assets.tracing.one_record import Trace

_PLAIN_WIDTH, _WIDEST = 80, 140


def trace_command(
    record: Annotated[
        str,
        typer.Argument(
            metavar="RECORD",
            help="A record's id, a document's, or an end of a document's id that is unique.",
        ),
    ],
    file: Annotated[
        bool, typer.Option("--file", help="As it was written to the state folder's file of spans.")
    ] = False,
    version: VersionOption = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Show where the time of one record went, stage by stage and attempt by attempt."""
    from pipeline_assets.cli import output
    from pipeline_assets.tracing.one_record import trace_in_file, trace_of

    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        found = (trace_in_file if file else trace_of)(context, record, settings.version)
    if json:
        output.emit_json(_as_json(found))
    else:
        _print(found)
    return 0


def _as_json(trace: Trace) -> dict[str, Any]:
    from pipeline_assets.tracing.life import moment

    return {
        "record_id": trace.record_id,
        "trace_id": trace.trace_id,
        "spans": [
            {
                "span_id": span.span_id,
                "parent_id": span.parent_id,
                "name": span.name,
                "start": moment(span.start),
                "end": moment(span.end),
                "seconds": (span.end - span.start) / 1_000_000,
                "error": span.error,
                "attributes": dict(span.attributes),
                "events": [
                    {
                        "name": event.name,
                        "at": moment(event.at),
                        "attributes": dict(event.attributes),
                    }
                    for event in span.events
                ],
            }
            for span in trace.spans
        ],
    }


def _print(trace: Trace) -> None:
    import shutil
    import sys

    from rich.text import Text

    from pipeline_assets.account.plain_text import one_line
    from pipeline_assets.cli import output
    from pipeline_assets.tracing.life import moment
    from pipeline_assets.tracing.waterfall import waterfall

    wide = shutil.get_terminal_size().columns if sys.stdout.isatty() else _PLAIN_WIDTH
    width = min(wide, _WIDEST)
    output.facts(
        [
            ("record", trace.record_id),
            ("trace", trace.trace_id),
            ("begins", output.local(moment(trace.spans[0].start)) if trace.spans else None),
        ]
    )
    output.say("")
    console = output.console()
    for line in waterfall(trace.spans, width):
        style = "red" if line.error else "cyan"
        text = Text.assemble(line.name, " ", (line.bar, style), " ", (line.took, "bold"))
        console.print(text, soft_wrap=True)
        if line.detail:
            detail = Text(f"{'':{len(line.name) - len(line.name.lstrip()) + 2}}", style="dim")
            detail.append(one_line(line.detail))
            console.print(detail, soft_wrap=True, style="dim")
