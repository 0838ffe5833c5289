"""A comparison as one page of HTML: self-contained, readable on a phone and in print.

Belongs here: the page. Does not belong here: any counting.

The page loads nothing and runs nothing; every text of a document is escaped, and a policy in the
page forbids what an escape might have missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from pipeline_assets.compare.compare import Comparison, ListedDocument
from pipeline_assets.compare.fields import OUTCOMES

_MEANINGS = {
    "same": "Same",
    "form": "Same but for form",
    "changed": "Changed",
    "gained": "Gained",
    "lost": "Lost",
    "absent": "In neither",
}
_STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8881; --lost: #b3261e; --new: #146c2e;
  --changed: #8a5300; }
@media (prefers-color-scheme: dark) {
  :root { --lost: #ff9d94; --new: #7ed99a; --changed: #ffc46b; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; padding: 1rem; max-width: 64rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .35rem .6rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
td.n { white-space: nowrap; }
thead th { border-bottom-width: 2px; }
article { border: 1px solid var(--line); border-radius: .5rem; margin: 0 0 1rem; padding: .75rem; }
article h3 { font-size: 1rem; margin: 0; overflow-wrap: anywhere; }
article dl { margin: .5rem 0 0; }
dt { font-weight: 600; margin-top: .5rem; }
dd { margin: 0; overflow-wrap: anywhere; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: .25rem 1rem; }
.pair > div { background: var(--soft); border-radius: .25rem; padding: .25rem .5rem; }
.side { font-size: .8rem; opacity: .75; display: block; overflow-wrap: anywhere; }
.changed { color: var(--changed); } .gained { color: var(--new); } .lost { color: var(--lost); }
.mark { font-weight: 400; font-size: .85rem; }
.none { opacity: .6; font-style: italic; }
p { margin: .5rem 0; }
ul { padding-left: 1.25rem; } li { overflow-wrap: anywhere; }
@media (max-width: 40rem) { .pair { grid-template-columns: 1fr; } body { padding: .75rem; } }
@page { margin: 15mm; }
@media print { body { max-width: none; font-size: 10pt; padding: 0; }
  article { break-inside: avoid; } .scroll { overflow: visible; } }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page_of(found: Comparison, made_at: str) -> Iterator[str]:
    """The page, in pieces.

    Args:
        found: the comparison.
        made_at: when it was made, as it is shown.
    """
    title = f"{found.first} compared with {found.second}"
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
    )
    yield f"<header><h1>{escape(title)}</h1>\n"
    for line in summary(found):
        yield f"<p>{escape(line)}</p>\n"
    yield f"<p>Made on {escape(made_at)}.</p></header>\n<main>\n"
    yield "<h2>By field</h2>\n"
    yield _table(
        ("Field", *(_MEANINGS[outcome] for outcome in OUTCOMES)),
        [
            (label, *(str(found.fields[name][outcome]) for outcome in OUTCOMES))
            for name, label in found.labels.items()
        ],
    )
    yield (
        "<p>Same: equal character by character; a list is compared as a set. Same but for "
        "form: the same words with other letter case, dashes, spaces or Unicode forms.</p>\n"
    )
    yield "<h2>By slice: documents with another value</h2>\n"
    yield _table(
        ("Slice", "Documents", "Changed", *found.labels.values()),
        [
            (
                name,
                str(counts["documents"]),
                _share(counts["changed"], counts["documents"]),
                *(str(different(counts["fields"][field])) for field in found.labels),
            )
            for name, counts in found.slices.items()
        ],
    )
    yield from _ids(f"Only in {found.first}", found.only_first, found.only_first_ids)
    yield from _ids(f"Only in {found.second}", found.only_second, found.only_second_ids)
    yield f"<h2>Documents ({len(found.listed)} of {found.matching})</h2>\n"
    if not found.listed:
        yield '<p class="none">None.</p>\n'
    for document in found.listed:
        yield _document(document, found)
    yield "</main>\n</body>\n</html>\n"


def summary(found: Comparison) -> list[str]:
    """The comparison in a few sentences."""
    lines = [
        f"Documents with values of both: {found.both}; of these, "
        f"{_share(found.changed, found.both)} have another value in at least one field.",
        f"Documents with values of {found.first} alone: {found.only_first}; of {found.second} "
        f"alone: {found.only_second}.",
    ]
    for key, count in zip((found.first, found.second), found.unpublished, strict=True):
        if count:
            lines.append(f"Accepted and not published under {key}: {count}.")
    if found.other_bytes:
        lines.append(f"Documents whose bytes changed between the two: {found.other_bytes}.")
    return lines


def different(counts: dict[str, int]) -> int:
    """Documents whose value of a field is another one."""
    return counts["changed"] + counts["gained"] + counts["lost"]


def _share(part: int, whole: int) -> str:
    return f"{part} ({part / whole:.1%})" if whole else str(part)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(
        f'<th scope="col"{_right(index)}>{escape(name)}</th>' for index, name in enumerate(columns)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{_right(index)}>{escape(cell)}</td>" for index, cell in enumerate(row))
        + "</tr>\n"
        for row in rows
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>'
        "</table></div>\n"
    )


def _right(index: int) -> str:
    return ' class="n"' if index else ""


def _ids(title: str, count: int, ids: Sequence[str]) -> Iterator[str]:
    if not count:
        return
    yield f"<h2>{escape(title)} ({count})</h2>\n<ul>\n"
    for name in ids:
        yield f"<li>{escape(name)}</li>\n"
    yield "</ul>\n"
    if len(ids) < count:
        yield f"<p>{count - len(ids)} more are not shown.</p>\n"


def _document(document: ListedDocument, found: Comparison) -> str:
    fields = "".join(
        f'<dt>{escape(label)} <span class="mark {document.outcomes[name]}">'
        f"{_MEANINGS[document.outcomes[name]].lower()}</span></dt>\n<dd>"
        + _pair(document, name, found)
        + "</dd>\n"
        for name, label in found.labels.items()
        if document.outcomes[name] != "absent"
    )
    return (
        f"<article><h3>{escape(document.document_id)}</h3>\n"
        f'<span class="side">{escape(document.slice)}</span>\n<dl>{fields}</dl></article>\n'
    )


def _pair(document: ListedDocument, name: str, found: Comparison) -> str:
    if document.outcomes[name] == "same":
        return _values(document.second[name])
    sides = ((found.first, document.first[name]), (found.second, document.second[name]))
    cells = "".join(
        f'<div><span class="side">{escape(key)}</span>{_values(values)}</div>'
        for key, values in sides
    )
    return f'<div class="pair">{cells}</div>'


def _values(values: Sequence[str]) -> str:
    if not values:
        return '<span class="none">no value</span>'
    # Each in its own direction: a manual may be in Arabic or Hebrew.
    return "<br>".join(f'<bdi dir="auto">{escape(value)}</bdi>' for value in values)
