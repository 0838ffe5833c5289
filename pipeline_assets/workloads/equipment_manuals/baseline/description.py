"""Find a printed sentence that says what the product or the document is.

Extractive only: the value is a sentence of the document, never a summary. A description is
optional, so a sentence is taken only when it defines something; otherwise the field is absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline_assets.workloads.equipment_manuals.answer import ABSENT, Evidence, Field
from pipeline_assets.workloads.equipment_manuals.baseline import (
    identifier_tokens,
    line_kinds,
    vocabulary,
)
from pipeline_assets.workloads.equipment_manuals.baseline.pages import Line, Pages, collapse
from pipeline_assets.workloads.equipment_manuals.baseline.title import TitleFinding
from pipeline_assets.workloads.text_folding import fold

_PAGES = 6
LENGTH = (40, 300)
_LEAST_SCORE = 3
_MAX_LINES = 6

_SENTENCE_END = re.compile(r"(?<=[.!?])(?:\s+(?=[^\Wa-zа-я_])|$)|(?<=[。！？])")
# "X is a ...", "is designed for", "this manual describes", by language.
_DEFINES = re.compile(
    r"(?<!\w)(?:is an?|is the|is designed|is intended|is used (?:for|to|as)|serves? (?:as|to)"
    r"|provides?|allows? you|describes?|explains?|contains? (?:information|instructions)"
    r"|purpose of this \w+(?:-\w+)? is|offers?|converts?|combines?|is one of"
    r"|ist (?:ein|eine|für|zum?|das|der|die)|dient|beschreibt|ermöglicht|wurde (?:für|entwickelt)"
    r"|est (?:un|une|conçue?|destinée?|le|la)|permet|décrit|sert à|donne"
    r"|es (?:un|una|el|la)|está (?:diseñad[oa]|destinad[oa]|prevista?)|permite|describe|sirve"
    r"|é (?:un|uma?)|è (?:un[oa]?|il|la|progettat[oa]|destinat[oa])|serve|consente|descrive"
    r"|fornisce"
    r"|is een|beschrijft|är (?:en|ett)|er (?:en|et)|beskriver|on tarkoitettu|kuvaa"
    r"|jest|służy|opisuje|umożliwia|przeznaczon[yae]|je (?:určen[ao]?|to)|slouží|popisuje|umožňuje"
    r"|egy|szolgál|este (?:un|o)|descrie|je namijenjen[ao]?|je namenjen[ao]?|opisuje"
    r"|yra|skirt(?:as|a|i|os)|naudojam(?:as|a|i|os)|aprašo(?:ma|mas)?|užtikrina|tai"
    r"|ir paredzēt[sa]|apraksta|on mõeldud|on ette nähtud|kirjeldab"
    r"|предназначен[аоы]?|представляет собой|является|служит|описывает|позволяет|содержит"
    r"|обеспечивает|призначен[аоий]+|є|являє собою|дозволяє|описує|містить|забезпечує"
    r"|is bedoeld|tasarlanmıştır|bir|için)(?!\w)"
    r"|です。|である。|ための|用于|是.{0,30}一[款种個个台]|用來|本手册|本説明書は|本製品は|するもの|입니다|위한",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    r"^(?:the|this|these|our|der|die|das|dieses?r?|le|la|les|cet?t?e?|el|los|est[ea]|il|lo"
    r"|quest[oa]"
    r"|l['’]|o|a|este|esta|de|het|deze|dit|denna|detta|den|det|ten|to|tato|tento|ši[ss]?|šis"
    r"|данн\w+"
    r"|эт\w+|настоящ\w+|ц[еяй]\w?|дан\w+)(?!\w)|^(?:本|この|该|此)",
    re.IGNORECASE,
)
_DOCUMENT_WORDS = re.compile(
    r"(?<!\w)(?:purpose of this|(?:this|the|dieses?|diese|ce|cette|este|esta|questo|questa"
    r"|данн\w+|настоящ\w+|цей|ця|šis|ši)"
    r" (?:\w+ )?(?:manual|document|guide|handbook|booklet|handbuch|anleitung|dokument|manuel|guide"
    r"|notice|guía|manuale|guida|руководств\w+|инструкци\w+|документ\w*|посібник\w*|інструкці\w+"
    r"|vadovas|instrukcija))(?!\w)",
    re.IGNORECASE,
)
# Warnings, legal matter, orders to the reader and talk about faults describe nothing.
_NOT_DESCRIPTIVE = re.compile(
    r"(?<!\w)(?:warning|caution|danger|warranty|guarantee|liab\w+|copyright|trademarks?|rights"
    r"|reserved|fcc|complies|please|thank|congratulat\w+|must|should|do not|don['’]t|never|if|when"
    r"|note|refer|see|figure|table|page|chapter|shown|hazard\w*|injur\w+|shock|risk|damage\w*|i"
    r"|my|we"
    r"|warnung|vorsicht|gefahr|garantie|haftung|bitte|müssen|nicht|wenn|siehe|abbildung"
    r"|avertissement|attention|danger|garantía|garantie|veuillez|doit|ne pas|si|voir|figure"
    r"|advertencia|atención|peligro|debe|por favor|véase|figura|avvertenza|attenzione|pericolo"
    r"|garanzia|deve|vedi|внимание|осторожно|гарант\w+|запрещ\w+|необходимо|следует|если|см|рис"
    r"|рисун\w+|увага|обережно|гарант\w+|заборон\w+|необхідно|якщо|мал|garantij\w*|dėmesio"
    r"|draudžiama"
    r"|jei|žr|gwaranc\w+|uwaga|ostrzeżenie|jeśli|nie|patrz|záruka|pozor|varování|pokud|nesmí)(?!\w)"
    r"|警告|注意|危険|危险|保証|保证|してください|请",
    re.IGNORECASE,
)
_INTRODUCTION = re.compile(
    r"introduction|overview|general(?: description| information)?|description|about(?: this.*)?"
    r"|purpose|product (?:introduction|overview|description)|features|foreword|preface|scope"
    r"|einleitung|einführung|überblick|allgemeines|beschreibung|introducción|descripción"
    r"|generalidades"
    r"|présentation|généralités|introduzione|descrizione|generalità|назначение.*|введение"
    r"|общие сведения|описание.*|призначення.*|вступ|загальні відомості|опис.*|paskirtis|įvadas"
    r"|aprašymas|veikimo aprašymas.*|wstęp|wprowadzenie|opis|úvod|popis|概要|はじめに|機能概要"
    r"|.{0,6}(?:简介|介绍)|概述",
    re.IGNORECASE,
)
_MARK_LENGTH = 24
_ITEM_MARK = re.compile(r"^(?:\W|[\dIVX]+(?:[.)]\d*)+\s|\s)+")
_WORD = re.compile(r"[^\W\d_]{3,}(?:/[^\W\d_]+)?")
_HEAD_NUMBER = re.compile(r"^[\d.\s)、IVX]+|^[一二三四五六七八九十]+、")


@dataclass(frozen=True)
class _Sentence:
    text: str
    page: int
    quote: str
    introduced: bool  # the paragraph stands under a heading such as "Introduction"
    order: int


def find_description(title: TitleFinding, pages: Pages) -> Field:
    """The best defining sentence of the first pages, or absent."""
    models = [
        fold(token.text)
        for line in title.lines
        for token in identifier_tokens.find_tokens(line.text)
    ]
    names = {
        word
        for line in title.lines
        for word in _WORD.findall(fold(vocabulary.without_kind(line.text)))
    }
    best: tuple[int, int, _Sentence] | None = None
    for sentence in _sentences(pages):
        score = _score(sentence, models, names)
        ranked = (score, -sentence.order, sentence)
        if score >= _LEAST_SCORE and (best is None or ranked[:2] > best[:2]):
            best = ranked
    if best is None:
        return ABSENT
    chosen = best[2]
    return Field(
        value=chosen.text,
        status="found",
        evidence=[Evidence(page=chosen.page, quote=chosen.quote)],
    )


def _score(sentence: _Sentence, models: list[str], names: set[str]) -> int:
    text = sentence.text
    defines = _DEFINES.search(text)
    if defines is None or _NOT_DESCRIPTIVE.search(text):
        return 0
    folded = fold(text)
    head = folded[:50]
    score = 0
    if any(model in head for model in models):
        score += 2
    elif any(name in head for name in names):
        score += 2 if any(folded.startswith(name) for name in names) else 1
    if _SUBJECT.match(text):
        score += 1
    if _DOCUMENT_WORDS.search(text[:60]):
        score += 2
    if sentence.introduced:
        score += 1
    if defines.start() <= 60:
        score += 1
    return score


def _sentences(pages: Pages) -> Iterator[_Sentence]:
    """Whole sentences of the paragraphs on the first pages, in order."""
    order = 0
    for lines in pages.front[:_PAGES]:
        introduced = False
        paragraph: list[Line] = []
        for line in (*lines, None):
            if line is not None and paragraph and _goes_on(line):
                paragraph.append(line)
                continue
            for text, quote in _cut(paragraph):
                yield _Sentence(text, paragraph[0].page, quote, introduced, order)
                order += 1
            # A numbered heading may have its text on the same line.
            starts = line is not None and (
                _is_prose(line) or (line.kind == "item" and line_kinds.is_prose(line.text))
            )
            paragraph = [line] if line is not None and starts else []
            if line is not None and line.kind in ("heading", "item", "section_heading"):
                introduced = _is_introduction(line.text)


def _is_prose(line: Line) -> bool:
    return line.kind == "prose" and not line.running


def _goes_on(line: Line) -> bool:
    """Whether a line goes on with a paragraph, or is the short last line of its last sentence."""
    tail = line.kind == "heading" and line.text[-1] in ".。" and line.text[0].islower()
    return not line.running and (tail or line.kind == "prose")


def _is_introduction(text: str) -> bool:
    return _INTRODUCTION.fullmatch(_HEAD_NUMBER.sub("", text).strip(" :.")) is not None


def _cut(paragraph: list[Line]) -> Iterator[tuple[str, str]]:
    """Cut a paragraph into whole sentences: (the sentence on one line, as it is printed)."""
    if not paragraph:
        return
    printed = "\n".join(line.printed for line in paragraph)
    mark = _ITEM_MARK.match(printed, 0, _MARK_LENGTH)
    printed = printed[mark.end() :] if mark else printed
    least, most = LENGTH
    start = 0
    for match in _SENTENCE_END.finditer(printed):
        quote = printed[start : match.start()].strip()
        start = match.end()
        text = _one_line(quote)
        whole = bool(text) and not text[0].islower() and text[0] not in ")]},.;"
        if whole and least <= len(text) <= most and quote.count("\n") < _MAX_LINES:
            yield text, quote


def _one_line(quote: str) -> str:
    """A quote on one line; a word that is divided at a line's end is put together again."""
    joined = re.sub(r"(?<=[^\W\d_])[\u00ad\u0002\ufffe](?:\n)?", "", quote)
    joined = re.sub(r"(?<=[a-zа-яё])[-‐]\n(?=[a-zа-яё])", "", joined)
    joined = re.sub(
        r"(?<=[\u3040-\u30ff\u3400-\u9fff])\n(?=[\u3040-\u30ff\u3400-\u9fff])", "", joined
    )
    return collapse(joined)
