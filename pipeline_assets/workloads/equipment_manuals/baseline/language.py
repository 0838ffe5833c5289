"""Say which language the body is written in, with a printed line as evidence."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline_assets.workloads.equipment_manuals.answer import ABSENT, Evidence, Field
from pipeline_assets.workloads.equipment_manuals.baseline import line_kinds
from pipeline_assets.workloads.equipment_manuals.baseline.pages import PageText, collapse
from resources import language as detector

_PAGES = 10  # spread over the whole document: a manual in several languages shows them
_CHARACTERS = 10_000  # of all sampled pages together; detection takes about a millisecond for 1,000
_ENOUGH = 400  # letters of running text; with less, headings and labels are read too
_TOO_LITTLE = 30  # letters; a label or two has no language
_QUOTE = (30, 220)  # letters: long enough to tell, short enough to read
_QUOTES_TRIED = 20


def find_language(pages: Sequence[PageText]) -> Field:
    """Detect the language of the document; no clear language, or several, is uncertain."""
    lines = _sampled_lines(pages)
    body = [line for line in lines if line_kinds.may_be_prose(line.quote) or _is_dense(line.quote)]
    enough = sum(detector.weight(line.quote) for line in body) >= _ENOUGH
    chosen = body if enough else lines
    text = "\n".join(line.quote for line in chosen)
    if detector.weight(text) < _TOO_LITTLE:
        return ABSENT
    detected = detector.detect(text)
    if detected.language is None:
        candidate = detected.languages[0] if detected.languages else None
        return Field(value=candidate, status="uncertain", evidence=[])
    evidence = _evidence(chosen, detected.language)
    clear = len(detected.languages) == 1 and evidence is not None
    return Field(
        value=detected.language,
        status="found" if clear else "uncertain",
        evidence=[] if evidence is None else [evidence],
    )


def _sampled_lines(pages: Sequence[PageText]) -> list[Evidence]:
    """Lines of up to 10 pages, evenly spread; each is a quote that may become the evidence."""
    texts = [page for page in pages if page.text.strip()]
    step = max(1.0, len(texts) / _PAGES)
    sampled = [texts[int(at * step)] for at in range(min(_PAGES, len(texts)))]
    each = _CHARACTERS // max(1, len(sampled))
    return [
        Evidence(page=page.number, quote=quote)
        for page in sampled
        for raw in page.text[:each].splitlines()
        if (quote := collapse(raw))
    ]


def _is_dense(text: str) -> bool:
    """Whether a line is in a script that sets no spaces, where words cannot be counted."""
    return detector.weight(text) >= 2 * len(text)


def _evidence(lines: Sequence[Evidence], language: str) -> Evidence | None:
    """The first line that is by itself recognised as this language."""
    least, most = _QUOTE
    fitting = [line for line in lines if least <= detector.weight(line.quote) <= most]
    for line in fitting[:_QUOTES_TRIED]:
        if detector.detect_piece(line.quote) == language:
            return line
    return None
