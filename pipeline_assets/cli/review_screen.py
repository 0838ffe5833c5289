"""How a review looks on a terminal: its facts, values, findings, and the page with the evidence.

Belongs here: drawing what `review/desk.py` laid out. Does not belong here: keys
(`review_next.py`) and commands (`review.py`). Text of documents passes `plain_text` piece by
piece, after its marks were placed: escaping changes offsets.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipeline_assets.account.plain_text import one_line
from pipeline_assets.cli.output import local
from pipeline_assets.review.desk import Page, Sheet, Value, read_values
from pipeline_assets.review.excerpt import MOST_LINES, Line, excerpt

_KINDS = {"findings": "findings", "quality_sample": "quality sample"}
_DOUBT, _MARK, _OTHER_MARK = "bold yellow", "black on yellow", "black on cyan"
_WHOLE_PAGE = 1_000_000


def draw_sheet(sheet: Sheet, *, number: int | None = None, whole: bool = False) -> RenderableType:
    """A review as it is shown: everything, with one page.

    Args:
        sheet: the review.
        number: which page; by default the one with the evidence.
        whole: the whole page, not only the lines around the evidence.
    """
    parts = [
        draw_head(sheet),
        draw_findings(sheet),
        draw_values(sheet.values, sheet.doubted),
    ]
    if sheet.corrected is not None:
        parts.append(Text("corrected to", style="bold"))
        parts.append(
            draw_values(read_values(sheet.corrected, sheet.fields, sheet.pages), frozenset())
        )
    parts += [draw_page(sheet, sheet.first_page() if number is None else number, whole=whole)]
    return Group(*parts)


def draw_head(sheet: Sheet) -> RenderableType:
    """What the review is about, and how it stands."""
    review = sheet.review
    rows: list[tuple[str, object]] = [
        ("review", f"{sheet.number} (revision {review['revision']})"),
        ("document", review["document_id"]),
        ("version", review["version_key"]),
        ("sent by", _KINDS.get(review["kind"], review["kind"])),
        ("slice", review["slice"]),
        ("record", f"{review['state']}, opened {local(review['opened_at'])}"),
        ("assigned to", review["assigned_to"]),
        ("page image", sheet.image),
    ]
    if review["decision"] is not None:
        who = f" by {review['reviewer']}" if review["reviewer"] else ""
        rows.append(("decision", f"{review['decision']}{who} at {local(review['decided_at'])}"))
        rows.append(("because", review["reason"]))
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(overflow="fold")
    for name, value in rows:
        if value is not None and value != "":
            grid.add_row(Text(name), Text(one_line(str(value))))
    return grid


def draw_findings(sheet: Sheet) -> RenderableType:
    """What the rules found."""
    lines = [
        Text(one_line(f"{found.field}: {found.note} [{found.rule}, {found.severity}]"), _DOUBT)
        for found in sheet.findings
    ]
    if not lines:
        return Text("no rule found anything")
    return Group(Text("findings", style="bold"), *lines)


def draw_values(values: Iterable[Value], doubted: frozenset[str]) -> RenderableType:
    """Values with their evidence; a field that a finding is about stands out."""
    grid = Table.grid(padding=(0, 2))
    for _ in range(4):
        grid.add_column(overflow="fold")
    for value in values:
        style = _DOUBT if value.field in doubted else ""
        grid.add_row(
            Text("!" if value.field in doubted else " ", _DOUBT),
            Text(value.label, style),
            Text(one_line(value.value or "-"), style),
            Text(f"({value.status})"),
        )
        for quote in value.evidence:
            place = f"page {quote.page}" + ("" if quote.start is not None else ", not there")
            words = " ".join(quote.words.split())
            grid.add_row("", "", Text(one_line(f'  {place}: "{words}"'), "dim"), "")
    return grid


def draw_page(sheet: Sheet, number: int, *, whole: bool = False) -> RenderableType:
    """A page's text with the evidence marked."""
    page = sheet.page(number)
    count = len(sheet.pages)
    if page is None:
        return Text(f"page {number}: there is no text of it ({count} pages were read)", "bold")
    marks = sheet.marks(number)
    lines = excerpt(
        page.text,
        marks,
        around=_WHOLE_PAGE if whole and marks else 3,
        most=_WHOLE_PAGE if whole else MOST_LINES,
    )
    return Group(Text(_page_title(page, count), style="bold"), *_drawn(lines, sheet.doubted))


def _page_title(page: Page, count: int) -> str:
    origin = ", read from the picture" if page.origin == "ocr" else ""
    return f"page {page.number} of {count}{origin}"


def _drawn(lines: Iterable[Line | None], doubted: frozenset[str]) -> Iterable[Text]:
    for line in lines:
        drawn = Text("  ")
        if line is None:
            drawn.append("…", "dim")
        else:
            for piece in line:
                style = "" if piece.field is None else _OTHER_MARK
                drawn.append(one_line(piece.text), _MARK if piece.field in doubted else style)
        yield drawn
