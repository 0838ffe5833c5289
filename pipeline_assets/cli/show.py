"""`tallybook show`: one published document with its evidence, or the text of one of its pages."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    VersionOption,
    make_settings,
    open_existing,
)


def show_command(
    document: Annotated[
        str, typer.Argument(metavar="DOCUMENT", help="Its id, or an end of it that is unique.")
    ],
    page: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Show the text of this page; it is recorded.",
            show_default=False,
        ),
    ] = None,
    why: Annotated[
        str, typer.Option(metavar="REASON", help="Why the page is looked at, for the record.")
    ] = "tallybook show",
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            metavar="TIME",
            help="Show what was published at this time (ISO 8601; local unless it has a zone).",
            show_default=False,
        ),
    ] = None,
    version: VersionOption = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Show what is, or was, published of a document, or the text of a page."""
    from pipeline_assets.account.moments import parse_moment
    from pipeline_assets.account.published import page_text, published_entry
    from pipeline_assets.cli import output

    if page is not None and as_of is not None:
        raise typer.BadParameter("--page shows the present bytes; it does not go with --as-of")
    moment = None if as_of is None else parse_moment(as_of)
    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        if page is None:
            entry = published_entry(context, document, version, moment)
        else:
            entry = page_text(context, document, page, settings.version, who=_user(), why=why)
    if json:
        output.emit_json(entry)
    elif page is None:
        _print(entry)
    else:
        _print_page(entry)
    return 0


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown user"


def _print_page(entry: dict[str, Any]) -> None:
    from pipeline_assets.account.plain_text import lines
    from pipeline_assets.cli import output

    origin = {"ocr": "read from the picture", "none": "no text"}.get(entry["origin"], "")
    suffix = f" ({origin})" if origin else ""
    output.heading(f"{entry['document_id']}, page {entry['page']}{suffix}")
    output.say_text(lines(entry["text"]))


def _until(entry: dict[str, Any]) -> list[tuple[str, object]]:
    """Of a look into the past: when that ended."""
    from pipeline_assets.cli import output

    if "visible_until" not in entry:
        return []
    return [("visible until", output.local(entry["visible_until"]) or "now")]


def _print(entry: dict[str, Any]) -> None:
    from pipeline_assets.cli import output

    output.heading(entry["title"]["value"] or "(no title)")
    output.facts(
        [
            ("document", entry["document_id"]),
            ("published", output.local(entry["published_at"])),
            ("archive version", entry["archive_version"]),
            *_until(entry),
        ]
    )
    for name in ("title", "product_identifiers", "language", "description"):
        fields = entry[name] if isinstance(entry[name], list) else [entry[name]]
        for field in fields or [{"value": None, "status": "absent", "evidence": []}]:
            output.heading(name.replace("_", " "))
            output.say(f"  {field['value'] or '-'}  ({field['status']})")
            for quote in field["evidence"]:
                words = " ".join(quote["quote"].split())
                output.say(f'    page {quote["page"]}: "{words}"')
    output.heading("provenance")
    output.facts([(name.replace("_", " "), v) for name, v in entry["provenance"].items()], 2)
    output.facts([("record", entry["record_id"]), ("thumbnail", entry["thumbnail"])], 2)
