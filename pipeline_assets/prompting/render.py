"""The text of a document as a model is given it: pages behind markers, within a token budget.

Belongs here: markers, redaction, the cut. Does not belong here: the prompt around it
(`template.py`), counting tokens, which is handed in, and what becomes of a refused document.

Every marker carries the document's reference, and no page may hold that reference: so no text
can end its page or its document, whatever it prints. The text between the markers is verbatim,
since quotes are checked against the parsed text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from pipeline_assets.workloads.workload import Redaction

Pages = Sequence[tuple[int, str]]
"""A document's pages in order: number from 1, text as parsed."""

TokensOf = Callable[[Sequence[str]], list[int]]
"""Texts → how many tokens each of them has, by estimate."""


class DocumentRefused(ValueError):
    """A document that cannot be sent as it is.

    Attributes:
        reason: one word for the record's account.
    """

    reason: str


class PageOverBudget(DocumentRefused):
    """Not even the first page with text fits the budget, and a page is never cut.

    Attributes:
        tokens: what the pages up to that one have, by estimate.
        budget: what they may have.
    """

    reason = "page_over_budget"

    def __init__(self, tokens: int, budget: int) -> None:
        self.tokens = tokens
        self.budget = budget
        super().__init__(
            f"the document's first page with text needs about {tokens} tokens, and at most "
            f"{budget} may be sent. Whole pages are sent or none: write a version with more "
            "document_tokens, or with a model that takes more."
        )


class ReferenceInText(DocumentRefused):
    """A page holds the document's own reference, so that its markers could be forged.

    An honest document cannot: the reference is a digest over the document's own checksum.

    Attributes:
        page: the number of the page.
    """

    reason = "reference_in_text"

    def __init__(self, page: int) -> None:
        self.page = page
        super().__init__(
            f"page {page} of the document holds the reference that marks its pages in a request, "
            "which no document can know by chance. It is not sent: look at where it came from."
        )


class NoPages(DocumentRefused):
    """A document without a page; one that was parsed has at least one."""

    reason = "no_pages"

    def __init__(self) -> None:
        super().__init__("the document has no page, expected at least one: parse it again")


@dataclass(frozen=True)
class RenderedDocument:
    """What is sent of a document.

    Attributes:
        text: the pages that are sent, each behind its marker.
        pages: pages of the document.
        pages_sent: how many of them, from the first on, are in the text.
        tokens: of the text, by estimate.
        redactions: places that were replaced on the pages sent.
    """

    text: str
    pages: int
    pages_sent: int
    tokens: int
    redactions: int


@dataclass(frozen=True)
class _Prepared:
    blocks: list[str]
    first_text: int
    redactions: list[int]


def page_marker(reference: str, number: int) -> str:
    """The line that a page begins with, without its line feed."""
    return f"=== {reference} page {number} ==="


def render_document(
    reference: str,
    pages: Pages,
    tokens_of: TokensOf,
    budget: int,
    redaction: Redaction | None,
) -> RenderedDocument:
    """One document; `render_documents` for many.

    Raises:
        PageOverBudget: nothing of it fits the budget.
        ReferenceInText: a page holds the reference.
        NoPages: it has none.
    """
    rendered = render_documents([(reference, pages)], tokens_of, budget, redaction)[0]
    if isinstance(rendered, DocumentRefused):
        raise rendered
    return rendered


def render_documents(
    documents: Sequence[tuple[str, Pages]],
    tokens_of: TokensOf,
    budget: int,
    redaction: Redaction | None,
) -> list[RenderedDocument | DocumentRefused]:
    """A slice of documents, tokens counted in one call; the answer is in the same order.

    A document that is longer than the budget loses whole pages from its end. One that cannot be
    sent is answered with the reason, not raised, so that it holds up no other.

    Args:
        documents: reference and pages of each.
        tokens_of: counts tokens; asked for each page with its marker.
        budget: at most so many tokens of each document, markers included.
        redaction: takes out what must not leave the house, page by page; none if None.
    """
    prepared = [_prepare(reference, pages, redaction) for reference, pages in documents]
    blocks = [block for part in prepared if isinstance(part, _Prepared) for block in part.blocks]
    counts = tokens_of(blocks) if blocks else []
    if len(counts) != len(blocks):
        raise ValueError(
            f"the token counter answered {len(counts)} numbers for {len(blocks)} texts; expected "
            "one for each. Nothing was rendered: correct the counter."
        )
    rendered: list[RenderedDocument | DocumentRefused] = []
    at = 0
    for part in prepared:
        if isinstance(part, DocumentRefused):
            rendered.append(part)
            continue
        end = at + len(part.blocks)
        rendered.append(_cut(part, counts[at:end], budget))
        at = end
    return rendered


def _prepare(
    reference: str, pages: Pages, redaction: Redaction | None
) -> _Prepared | DocumentRefused:
    if not pages:
        return NoPages()
    blocks, redactions, first_text = [], [], None
    for index, (number, page) in enumerate(pages):
        text, replaced = (page, 0) if redaction is None else redaction.redact(page)
        if reference in text:
            return ReferenceInText(number)
        if first_text is None and text.strip():
            first_text = index
        blocks.append(f"{page_marker(reference, number)}\n{text}\n")
        redactions.append(replaced)
    return _Prepared(blocks, first_text or 0, redactions)


def _cut(prepared: _Prepared, counts: list[int], budget: int) -> RenderedDocument | PageOverBudget:
    totals = list(accumulate(counts))
    sent = bisect_right(totals, budget)
    # Blank pages before a page that is too long would be a request about nothing.
    if sent <= prepared.first_text:
        return PageOverBudget(totals[prepared.first_text], budget)
    return RenderedDocument(
        text="".join(prepared.blocks[:sent]).removesuffix("\n"),
        pages=len(prepared.blocks),
        pages_sent=sent,
        tokens=totals[sent - 1],
        redactions=sum(prepared.redactions[:sent]),
    )
