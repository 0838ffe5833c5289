"""What a title's own words say against it: file names, stamps, section heads, sentences.

Belongs here: judging the words alone. Does not belong here: where they stand (`title_lines.py`),
and what a finding does (`title_plausible.py`). The sorts of line are those of the baseline
(`baseline/line_kinds.py`): a change there that lets this module judge otherwise is a new version of
the rule.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from pipeline_assets.workloads.equipment_manuals.baseline import line_kinds, vocabulary
from pipeline_assets.workloads.text_folding import fold

_FILE = re.compile(
    r"\.(?:pdf|docx?|od[tpsg]|html?|txt|rtf|indd|qxd|fm|dwg|cdr|p65|pm6|book|xml|pptx?|xlsx?|tiff?"
    r"|jpe?g|png|ps|eps|djvu|md|tex|wpd)(?:\W|$)"
    r"|^(?:microsoft|ms) (?:word|powerpoint|excel)(?:\W|$)"
    r"|^powerpoint presentation|^[^\s_]*_\S*$|^[\w-]+ ?\(\d{1,2}\)$",
    re.IGNORECASE,
)
# What programs call a document that nobody named.
_UNNAMED = re.compile(
    r"(?:untitled|unbenannt|sans titre|sin título|senza titolo|no title|без названия|без назви"
    r"|unknown|anonymous|document|dokument|new document|scan|scanned(?: (?:document|image))?|img"
    r"|image|dsc|doc|file|layout|slide|title|titel|cover|front cover|blank|page|book|print"
    r"|full page (?:fax )?print)[ _#-]*\d*",
    re.IGNORECASE,
)
_STAMP = re.compile(
    r"(?<!\w)(?:downloaded|download (?:from|at|free|this|more|your|manuals?)"
    r"|scanned (?:by|with|from)"
    r"|(?:hosted|distributed|provided|supplied|uploaded|digiti[sz]ed|printed) (?:by|from|free)"
    r"|courtesy of|free (?:\w+ )?(?:manuals|download)|manuals? ?lib\w*|all ?guides|more manuals"
    r"|manuals (?:archive|library|database|directory|collection|online|search)"
    r"|(?:manual|document|book) (?:archive|library) (?:of|at)|search engine|visit (?:us|our)"
    r"|this (?:pdf|file|document|manual) (?:was|is|has)|heruntergeladen|téléchargé|descargado"
    r"|scaricato|скачано|завантажено)(?!\w)",
    re.IGNORECASE,
)
_CHAPTER = re.compile(
    r"(?:chapter|section|part|appendix|annex|kapitel|abschnitt|anhang|chapitre|capítulo|capitolo"
    r"|hoofdstuk|глава|раздел|часть|приложение|розділ|додаток|skyrius|rozdział|kapitola)"
    r"\s+(?:\d+|[ivxlc]+|[a-z])(?:\W|$)|第[\d一二三四五六七八九十]+[章节部]",
    re.IGNORECASE,
)
_NEVER = {
    "page_number": "is a page number",
    "marks": "has no words",
    "contents_entry": "is an entry of a table of contents",
    "contents_heading": "is the heading of a table of contents",
    "section_heading": "is the heading of a section",
    "stamp": "is a stamp, not a title",
    "link": "is a web or mail address",
    "file_name": "is the name of a file",
    "copyright": "is a copyright line",
    "date": "is a date",
    "phone": "is a phone number",
    "prose": "is running text",
}
# Such lines may also be titles: "4 Channel Mixer", "Edition Nine User Guide".
_UNLESS_NAMED = {
    "item": "is an item of a list",
    "document_number": "is a number",
    "revision": "is a revision",
    "company": "is the name of a company",
    "address": "is an address",
    "byline": "is the name of an author",
    "language_name": "is the name of a language",
}
_DATED = re.compile(r"[\W\d]*")

# The plain case, for a whole column at once: a few capitalised words, one of which says what kind
# of document it is, and none of which is suspicious. Only the others are looked at one by one.
_PLAIN = r"^[\p{Lu}\p{N}][\p{L}\p{N} ,&/()+'’:-]{6,90}$"
_PLAIN_KIND = (
    r"(?i)(?:^|[ -])(?:manual|guide|handbook|handbuch|\w*anleitung|manuel|manuale|manual de \w+"
    r"|data ?sheet|руководство|инструкция|інструкція|посібник|instrukcija|instrukcja)(?:$|[ :])"
)
_PLAIN_MODEL = r"\p{L}[\p{L}/-]*\p{N}|\p{N}[\p{L}-]+"
_PLAIN_ODD = (
    r"(?i)download|scan|provided|supplied|courtesy|free |archive|library|lib\b|guides|manuals|this "
    r"|chapter|section|^part |appendix|^\p{N}+[ :)]|page|visit|copyright|microsoft|search"
    r"|street|strasse|straße|road|avenue|^by |edition|version|rev|^the .* team"
)
_PLAIN_LOWER = r"(?: \p{Ll}+){3,}|(?: \p{Ll}+.*){5,}"


def doubtful(titles: pl.Expr) -> pl.Expr:
    """Which titles have to be looked at one by one: all but the plain ones."""
    plain = (
        titles.str.contains(_PLAIN)
        & titles.str.contains(_PLAIN_KIND)
        & titles.str.contains(_PLAIN_MODEL)
        & ~titles.str.contains(_PLAIN_ODD)
        & ~titles.str.contains(_PLAIN_LOWER)
    )
    return ~plain


def against(title: str, identifiers: Sequence[str]) -> str | None:
    """What the words say against a title; None if nothing.

    Args:
        title: the title.
        identifiers: those of the same answer.
    """
    text = title.strip()
    return _nameless(text) or _sort(text, identifiers) or _sentence(text)


def names_product(title: str, identifiers: Sequence[str]) -> bool:
    """Does the title hold one of the answer's identifiers?"""
    squeezed = squeeze(title)
    return any(squeeze(name) in squeezed for name in identifiers if squeeze(name))


def is_bare_kind(title: str) -> bool:
    """Does the title say no more than what kind of document it is ("User Manual")?"""
    return not vocabulary.says_more_than_kind(title)


def is_composed(title: str, quotes: Sequence[str]) -> bool:
    """Is the title made of runs of words of its quotes, no more runs than quotes?

    Words in another order than they are printed in, or printed once and given twice, are more.
    """
    printed = [squeeze(quote) for quote in quotes]
    words = [squeezed for word in title.split() if (squeezed := squeeze(word))]
    runs, at = 0, 0
    while at < len(words):
        end = at
        joined = ""
        while end < len(words) and any(joined + words[end] in quote for quote in printed):
            joined += words[end]
            end += 1
        if end == at:
            return True  # a word that is not printed: for `title_present`
        runs, at = runs + 1, end
    return runs <= len(quotes)


def squeeze(text: str) -> str:
    """Letters and digits alone, folded: what is left of a text in any spelling or spacing."""
    return "".join(filter(str.isalnum, fold(text)))


def _nameless(text: str) -> str | None:
    if _FILE.search(text):
        return _NEVER["file_name"]
    if _UNNAMED.fullmatch(text):
        return "is what a program calls a document without a name"
    if _STAMP.search(text):
        return _NEVER["stamp"]
    if _CHAPTER.match(text):
        return _NEVER["section_heading"]
    return None


def _sort(text: str, identifiers: Sequence[str]) -> str | None:
    kind = line_kinds.kind_of(text)
    if kind in _NEVER:
        return _NEVER[kind]
    if kind in _UNLESS_NAMED and not (
        vocabulary.names_kind(text) or names_product(text, identifiers)
    ):
        return _UNLESS_NAMED[kind]
    return "is a number" if _DATED.fullmatch(text) else None


def _sentence(text: str) -> str | None:
    words = text.split()
    if text[-1] in ".!?。！？" and len(words) >= 6 and not text.endswith(("etc.", "...")):
        return _NEVER["prose"]
    if len(words) >= 4 and words[0].isalpha() and words[0].islower():
        return "begins like the rest of a sentence"
    if len(words) == 1 and text.isalpha() and text.islower():
        return "is a word as sentences have it"
    return None
