"""`tallybook show`: one published document with its evidence, or the text of one of its pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    VersionOption,
    make_settings,
    open_existing,
)

if TYPE_CHECKING:
    from datetime import datetime

    from pipeline_assets.workloads.fields import Fields
    from resources.settings import Settings


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
        str,
        typer.Option(
            metavar="REASON", help="Why the page or quotes are looked at, for the record."
        ),
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
    provenance: Annotated[
        bool,
        typer.Option("--provenance", help="Show where each value comes from, field by field."),
    ] = False,
    quotes: Annotated[
        bool,
        typer.Option("--quotes", help="With --provenance: the words too; it is recorded."),
    ] = False,
    archive_version: Annotated[
        int | None,
        typer.Option(
            "--archive-version",
            metavar="N",
            min=1,
            help="With --provenance: of this archive version, visible or not.",
            show_default=False,
        ),
    ] = None,
    version: VersionOption = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Show what is, or was, published of a document, where it comes from, or a page's text."""
    from pipeline_assets.account.moments import parse_moment
    from pipeline_assets.account.published import page_text, published_entry
    from pipeline_assets.cli import output
    from pipeline_assets.workloads.fields import members_of, readable_fields

    if page is not None and as_of is not None:
        raise typer.BadParameter("--page shows the present bytes; it does not go with --as-of")
    asked = _Asked(document, version, quotes=quotes, archive_version=archive_version, why=why)
    _require_together(asked, provenance=provenance, page=page, as_of=as_of)
    moment = None if as_of is None else parse_moment(as_of)
    settings = make_settings(state=state, version=version)
    if provenance:
        return _show_provenance(settings, asked, moment, json=json)
    fields: Fields = ()
    with open_existing(settings) as context:
        if page is None:
            entry = published_entry(context, document, version, moment)
            fields = readable_fields(settings, entry["workload"], members_of(entry))
        else:
            entry = page_text(context, document, page, settings.version, who=_user(), why=why)
    if json:
        output.emit_json(entry)
    elif page is None:
        _print(entry, fields)
    else:
        _print_page(entry)
    return 0


class _Asked(NamedTuple):
    """Whose provenance is asked for, and how much of it."""

    document: str
    version: str | None
    quotes: bool
    archive_version: int | None
    why: str


def _require_together(
    asked: _Asked, *, provenance: bool, page: int | None, as_of: str | None
) -> None:
    if provenance and page is not None:
        raise typer.BadParameter("--page shows a text; it does not go with --provenance")
    if not provenance and (asked.quotes or asked.archive_version is not None):
        raise typer.BadParameter("--quotes and --archive-version go with --provenance")
    if asked.archive_version is not None and as_of is not None:
        raise typer.BadParameter("give --archive-version or --as-of, not both")


def _show_provenance(
    settings: Settings, asked: _Asked, moment: datetime | None, *, json: bool
) -> int:
    from pipeline_assets.account.field_provenance import document_provenance
    from pipeline_assets.account.field_provenance_model import QuoteLook
    from pipeline_assets.cli import output
    from pipeline_assets.cli.show_provenance import print_provenance

    with open_existing(settings) as context:
        told = document_provenance(
            context,
            asked.document,
            key=asked.version,
            as_of=moment,
            archive_version=asked.archive_version,
            look=QuoteLook(_user(), asked.why) if asked.quotes else None,
        )
    if json:
        output.emit_json(told.as_json())
    else:
        print_provenance(told)
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


def _print(entry: dict[str, Any], fields: Fields) -> None:
    from pipeline_assets.cli import output
    from pipeline_assets.cli.headings import nothing_of
    from pipeline_assets.workloads.fields import ABSENT, heading_field, parts_of, text_of

    head = heading_field(fields)
    output.heading(text_of(entry, head) or nothing_of("" if head is None else head.label))
    output.facts(
        [
            ("document", entry["document_id"]),
            ("published", output.local(entry["published_at"])),
            ("archive version", entry["archive_version"]),
            *_until(entry),
        ]
    )
    for field in fields:
        for part in parts_of(entry, field) or [ABSENT]:
            output.heading(field.label)
            output.say(f"  {part['value'] or '-'}  ({part['status']})")
            for quote in part["evidence"]:
                words = " ".join(quote["quote"].split())
                output.say(f'    page {quote["page"]}: "{words}"')
    output.heading("provenance")
    output.facts([(name.replace("_", " "), v) for name, v in entry["provenance"].items()], 2)
    output.facts([("record", entry["record_id"]), ("thumbnail", entry["thumbnail"])], 2)
