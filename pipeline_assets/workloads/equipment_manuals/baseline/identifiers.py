"""Decide which printed tokens identify the product that the document is about.

The subject's model stands in the title, or behind a label such as "Model:", and the document keeps
naming it. A device that is only used with the product, a part or a standard is no subject.
"""

from __future__ import annotations

import re

from pipeline_assets.workloads.equipment_manuals.answer import Evidence, Field
from pipeline_assets.workloads.equipment_manuals.baseline import vocabulary
from pipeline_assets.workloads.equipment_manuals.baseline.identifier_tokens import (
    Token,
    find_tokens,
)
from pipeline_assets.workloads.equipment_manuals.baseline.pages import Line, Pages
from pipeline_assets.workloads.equipment_manuals.baseline.title import TitleFinding
from pipeline_assets.workloads.equipment_manuals.baseline.usage import Usage
from pipeline_assets.workloads.text_folding import fold

MAX_IDENTIFIERS = 8  # more in a title or on a label is a family: which are meant, a person says
_LABEL_PAGES = 2
_MAX_NAME_WORDS = 5
_SHARED_STEM = re.compile(r"[^\W_]/\d+[^\W\d_]{0,2}$")
# A name may go on behind its first token ("TD-5 Mark 2"): what is printed there belongs to it.
_GOES_ON = re.compile(
    r"\s+(?:model|mod\.?|mark|mk|series|serie|type|typ|version|gen)\s?\w*\d", re.I
)
# A lone number behind a capitalised name may be a model ("Model 4") or not ("Chapter 2").
_NAME_AND_NUMBER = re.compile(r"(?<!\w)[^\W\d_]{2,} ?\d{1,5}(?![\w.,:/-])")


def find_identifiers(title: TitleFinding, pages: Pages, usage: Usage) -> list[Field]:
    """Find the identifiers of the document's subject; an empty list means that none is printed."""
    from_title = _from_title(title, usage)
    if from_title:
        return from_title
    return _from_labels(title, pages, usage)


def _from_title(title: TitleFinding, usage: Usage) -> list[Field]:
    certain = title.field.status == "found"
    fields: list[Field] = []
    seen: set[str] = set()
    before = ""
    hosts: list[Field] = []
    for line in title.lines:
        for value, start, sure in _names_in(line, usage):
            key = fold(value)
            if key in seen:
                continue
            seen.add(key)
            field = _field(value, line, sure=sure and certain)
            if vocabulary.follows_for(f"{before} {line.text[:start]}".strip()):
                hosts.append(field)
            else:
                fields.append(field)
        before = f"{before} {line.text}".strip()
    if not fields:
        # Only "for X" is printed: X may be the subject, or all that is named is a host.
        fields = [_as_uncertain(field) for field in hosts]
    if len(fields) > MAX_IDENTIFIERS:
        fields = [_as_uncertain(field) for field in fields]
    return fields


def _names_in(line: Line, usage: Usage) -> list[tuple[str, int, bool]]:
    """Names in one title line: text, offset, and whether the document keeps naming it."""
    tokens = find_tokens(line.text)
    strong = [token for token in tokens if not token.weak]
    if tokens and not strong:
        return [_weak_name(line, tokens[0], usage)]
    names = []
    for token in strong:
        cut = _SHARED_STEM.search(token.text) or _GOES_ON.match(
            line.text, token.start + len(token.text)
        )
        sure = usage.of(token.text).recurs and not cut
        names.append((token.text, token.start, sure))
    if not names:
        match = _NAME_AND_NUMBER.search(line.text)
        if match and usage.of(match.group()).recurs:
            names.append((match.group(), match.start(), False))
    return names


def _weak_name(line: Line, token: Token, usage: Usage) -> tuple[str, int, bool]:
    """A token too short to stand alone is a name together with its line, if that recurs."""
    words = line.text.split()
    capital = all(word[0].isupper() or word[0].isdigit() for word in words)
    is_name = capital and len(words) <= _MAX_NAME_WORDS and not vocabulary.names_kind(line.text)
    if is_name and len(words) > 1:
        return line.text, 0, usage.of(line.text).recurs
    return token.text, token.start, False


def _from_labels(title: TitleFinding, pages: Pages, usage: Usage) -> list[Field]:
    """Models behind a label on the first pages, where the title has none."""
    certain = title.field.status == "found"
    fields: list[Field] = []
    seen: set[str] = set()
    for lines in pages.front[:_LABEL_PAGES]:
        for line in lines:
            rest = vocabulary.after_model_label(line.text)
            if rest is None or line.kind == "prose":
                continue
            for token in find_tokens(rest):
                key = fold(token.text)
                if key in seen:
                    continue
                seen.add(key)
                sure = certain and not token.weak and usage.of(token.text).recurs
                fields.append(_field(token.text, line, sure=sure))
    if len(fields) > MAX_IDENTIFIERS:
        fields = [_as_uncertain(field) for field in fields]
    return fields


def _field(value: str, line: Line, *, sure: bool) -> Field:
    return Field(
        value=value,
        status="found" if sure else "uncertain",
        evidence=[Evidence(page=line.page, quote=line.printed)],
    )


def _as_uncertain(field: Field) -> Field:
    return Field(value=field.value, status="uncertain", evidence=field.evidence)
