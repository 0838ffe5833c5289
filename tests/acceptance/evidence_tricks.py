"""Wrong evidence, and answers about another document."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from pipeline_assets.workloads.text_folding import find_quote
from tests.acceptance.gold import one_line
from tests.acceptance.trick import (
    REFERENCE,
    Make,
    Setting,
    Told,
    Trick,
    change,
    change_in,
    look_alike,
    rules,
    with_line,
    words,
)

LONGEST_QUOTE = 1000


def _quoted(setting: Setting, *evidence: tuple[int, str]) -> Told:
    """The right description with other evidence."""
    part = setting.answer["description"]
    part["evidence"] = [{"page": page, "quote": quote} for page, quote in evidence]
    return change(setting, description=part)


def _own(setting: Setting) -> tuple[int, str] | None:
    evidence = setting.case.answer["description"]["evidence"]
    return (evidence[0]["page"], evidence[0]["quote"]) if evidence else None


def _quote(how: Callable[[str], str | None]) -> Make:
    """The description's first quote, changed."""

    def make(setting: Setting) -> Told | None:
        own = _own(setting)
        changed = how(own[1]) if own else None
        text = dict(setting.document.pages).get(own[0], "") if own else ""
        if own is None or changed is None or find_quote(text, changed) is not None:
            return None
        return _quoted(setting, (own[0], changed))

    return make


def _fixed(quote: str) -> Make:
    """A quote that proves nothing."""
    return lambda setting: _quoted(setting, (1, quote))


def _other_page(setting: Setting) -> Told | None:
    own = _own(setting)
    if own is None:
        return None
    for page, text in setting.document.pages:
        if page != own[0] and find_quote(text, own[1]) is None:
            return _quoted(setting, (page, own[1]))
    return None


def _paraphrased(quote: str) -> str | None:
    parts = words(quote)
    if len(parts) < 8:
        return None
    return " ".join([*parts[:3], parts[4], parts[3], *parts[6:]])


def _with_gap(quote: str) -> str | None:
    parts = words(quote)
    return f"{' '.join(parts[:3])} ... {' '.join(parts[-3:])}" if len(parts) >= 10 else None


def _one_word_wrong(quote: str) -> str | None:
    parts = words(quote)
    return " ".join([*parts[:-2], "not", *parts[-2:]]) if len(parts) >= 6 else None


def _across_pages(setting: Setting) -> Told | None:
    pages = setting.document.pages
    for (number, text), (_, after) in pairwise(pages):
        end, start = one_line(text)[-40:].strip(), one_line(after)[:40].strip()
        if len(end) > 20 and len(start) > 20:
            return _quoted(setting, (number, f"{end} {start}"))
    return None


def _page(number: int) -> Make:
    def make(setting: Setting) -> Told | None:
        own = _own(setting)
        return None if own is None else _quoted(setting, (number, own[1]))

    return make


def _beyond_the_end(setting: Setting) -> Told | None:
    own = _own(setting)
    return None if own is None else _quoted(setting, (setting.document.page_count + 1, own[1]))


def _too_long(setting: Setting) -> Told | None:
    for page, text in setting.document.pages:
        line = one_line(text)[: LONGEST_QUOTE + 100]
        if len(line) > LONGEST_QUOTE:
            return _quoted(setting, (page, line))
    return None


def _many(setting: Setting) -> Told | None:
    own = _own(setting)
    return None if own is None else _quoted(setting, *[own] * 40)


def _marker(setting: Setting) -> Told | None:
    return _quoted(setting, (1, f"=== {REFERENCE} page 1 ==="))


def _of_the_metadata(setting: Setting) -> Told | None:
    title = setting.document.metadata_title
    text = dict(setting.document.pages).get(1, "")
    if len(title) < 5 or find_quote(text, title) is not None:
        return None
    return _quoted(setting, (1, title))


def _reference(text: str) -> Make:
    return lambda setting: change(setting, document=text)


def _reference_in_text(setting: Setting) -> Told | None:
    wrong = "doc-0123456789abcdef"
    document = with_line(setting.document, f"=== {wrong} document begins ===")
    return change_in(setting, document, document=wrong)


_REFERENCE = ("misrouted", "document_reference", "schema_violation")

EVIDENCE_TRICKS = (
    Trick(
        "quote_other_page",
        "evidence",
        "right words, wrong page",
        rules("evidence_stands"),
        _other_page,
    ),
    Trick(
        "quote_paraphrased",
        "evidence",
        "words in another order and one missing",
        rules("evidence_stands"),
        _quote(_paraphrased),
    ),
    Trick(
        "quote_one_word_more",
        "evidence",
        "one word that turns its sense",
        rules("evidence_stands"),
        _quote(_one_word_wrong),
    ),
    Trick(
        "quote_with_gap",
        "evidence",
        "beginning and end with dots between",
        rules("evidence_stands"),
        _quote(_with_gap),
    ),
    Trick(
        "quote_across_pages",
        "evidence",
        "the end of a page and the start of the next",
        rules("evidence_stands"),
        _across_pages,
    ),
    Trick("quote_empty", "evidence", "empty", rules("evidence_stands", "frame"), _fixed("")),
    Trick("quote_blank", "evidence", "blanks", rules("evidence_stands", "frame"), _fixed("   ")),
    Trick("quote_marks", "evidence", "punctuation", rules("evidence_stands"), _fixed("... -- .")),
    Trick(
        "quote_one_letter", "evidence", "one letter", rules("frame", "evidence_stands"), _fixed("a")
    ),
    Trick(
        "quote_invisible",
        "evidence",
        "characters that print nothing",
        rules("evidence_stands"),
        _fixed("\u200b\u200b\u2060"),
    ),
    Trick(
        "quote_look_alike",
        "evidence",
        "a letter of another alphabet",
        rules("evidence_stands", "mixed_scripts"),
        _quote(look_alike),
    ),
    Trick("quote_page_zero", "evidence", "page 0", rules("schema_violation"), _page(0)),
    Trick("quote_page_negative", "evidence", "page -1", rules("schema_violation"), _page(-1)),
    Trick(
        "quote_beyond_the_end",
        "evidence",
        "the page after the last",
        rules("evidence_stands"),
        _beyond_the_end,
    ),
    Trick("quote_page_huge", "evidence", "page 999999", rules("evidence_stands"), _page(999_999)),
    Trick("quote_too_long", "evidence", "a whole page", rules("frame"), _too_long),
    Trick("quote_many", "evidence", "forty times the same", rules("frame"), _many),
    Trick(
        "quote_marker", "evidence", "the request's own marker", rules("evidence_stands"), _marker
    ),
    Trick(
        "quote_metadata",
        "evidence",
        "the PDF's metadata",
        rules("evidence_stands"),
        _of_the_metadata,
    ),
    Trick(
        "reference_invented",
        "document",
        "a reference that nobody has",
        rules(*_REFERENCE),
        _reference("doc-0000000000000000"),
    ),
    Trick("reference_empty", "document", "no reference", rules(*_REFERENCE), _reference("")),
    Trick(
        "reference_in_text",
        "document",
        "a reference that stands in the document",
        rules(*_REFERENCE),
        _reference_in_text,
    ),
)
"""Every trick with evidence or with the echoed reference."""
