"""Answers that are right, but not where they are: whole batches gone wrong, and what repeats.

Belongs here: tricks that take a batch to be played. Does not belong here: tricks on one answer.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline_assets.workloads.text_folding import fold
from tests.acceptance.gold import Answer, Case, found
from tests.acceptance.trick import Told, quotes, rules, with_line

SHARED_TITLE = "Installation and Operating Handbook"
SHARED_DESCRIPTION = (
    "This manual describes the device and its parts, how it is installed and connected, and how "
    "it is operated and maintained."
)
EVERY = 6
"""One in so many answers is the one before's, where a part of a batch is wrong."""


@dataclass(frozen=True)
class BatchTrick:
    """A batch of answers, some of them wrong.

    Attributes:
        id: names it in reports.
        told: what it does, in a few words.
        rules: any of these should stop each wrong answer.
        make: documents with right answers, all different → what is told of each; None: the right
            answer.
        catalogue: the same → lines of a catalogue of known products.
    """

    id: str
    told: str
    rules: frozenset[str]
    make: Callable[[Sequence[Case]], list[Told | None]]
    catalogue: Callable[[Sequence[Case]], list[str]] | None = None


def different(cases: Sequence[Case]) -> list[Case]:
    """One of each title: revisions of a document may have each other's answer and be right."""
    titles: dict[str, Case] = {}
    for case in cases:
        title = case.answer["title"]["value"]
        if title is not None:
            titles.setdefault(fold(title), case)
    return list(titles.values())


def _taken(cases: Sequence[Case], order: Sequence[int | None]) -> list[Told | None]:
    """Each document gets the answer of the place that the order names."""
    return [
        None if at is None else Told(case.document, cases[at].answer)
        for case, at in zip(cases, order, strict=True)
    ]


def _shifted(offset: int) -> Callable[[Sequence[Case]], list[Told | None]]:
    def make(cases: Sequence[Case]) -> list[Told | None]:
        return _taken(cases, [(at + offset) % len(cases) for at in range(len(cases))])

    return make


def _pairs(cases: Sequence[Case]) -> list[Told | None]:
    whole = len(cases) - len(cases) % 2
    return _taken(cases, [at ^ 1 if at < whole else None for at in range(len(cases))])


def _permuted(cases: Sequence[Case]) -> list[Told | None]:
    round_trip = list(range(len(cases)))
    random.Random(11).shuffle(round_trip)
    nexts = [*round_trip[1:], round_trip[0]]
    return _taken(cases, [at for _, at in sorted(zip(round_trip, nexts, strict=True))])


def _some_shifted(cases: Sequence[Case]) -> list[Told | None]:
    return _taken(cases, [at - 1 if at and at % EVERY == 0 else None for at in range(len(cases))])


def _few_swapped(cases: Sequence[Case]) -> list[Told | None]:
    order: list[int | None] = [None] * len(cases)
    order[1], order[5], order[3], order[7] = 5, 1, 7, 3
    return _taken(cases, order)


def _one_answer(cases: Sequence[Case]) -> list[Told | None]:
    return _taken(cases, [0 if at else None for at in range(len(cases))])


def _one_description(cases: Sequence[Case]) -> list[Told | None]:
    return [
        _with(case, description=found(SHARED_DESCRIPTION, *quotes(case.answer["description"])))
        if case.document.gold.language == "en" and case.answer["description"]["evidence"]
        else None
        for case in cases
    ]


def _one_title(cases: Sequence[Case]) -> list[Told | None]:
    return [
        Told(
            with_line(case.document, SHARED_TITLE),
            case.answer | {"title": found(SHARED_TITLE, (1, SHARED_TITLE))},
        )
        for case in cases
    ]


def _echoed_too(cases: Sequence[Case]) -> list[Told | None]:
    """The whole answers of others, their references among it."""
    count = len(cases)
    return [
        Told(case.document, cases[(at + 1) % count].answer, (at + 1) % count)
        for at, case in enumerate(cases)
    ]


def _with(case: Case, **fields: Answer) -> Told:
    return Told(case.document, case.answer | fields)


def _known(cases: Sequence[Case]) -> list[Told | None]:
    """The right answers; what is wrong is that the catalogue knows the number as another thing."""
    return [Told(case.document, case.answer) if _numbered(case) else None for case in cases]


def _numbered(case: Case) -> list[str]:
    return [
        item["value"]
        for item in case.answer["product_identifiers"]
        if any(map(str.isdigit, item["value"])) and '"' not in item["value"]
    ]


def _contradicting(cases: Sequence[Case]) -> list[str]:
    return [
        f'"{value}",Zyxomat Apparatebau,Marshmallow Toaster'
        for value in dict.fromkeys(value for case in cases for value in _numbered(case))
    ]


_SHIFTED = ("answers_shifted",)

BATCH_TRICKS = (
    BatchTrick(
        "batch_shifted",
        "every answer fits the document one place later",
        rules(*_SHIFTED),
        _shifted(1),
    ),
    BatchTrick(
        "batch_shifted_back",
        "every answer fits the document two places before",
        rules(*_SHIFTED),
        _shifted(-2),
    ),
    BatchTrick("batch_pairs", "neighbours have each other's answer", rules(*_SHIFTED), _pairs),
    BatchTrick("batch_permuted", "answers in any order", rules(*_SHIFTED), _permuted),
    BatchTrick(
        "batch_some_shifted",
        "one answer in six is the one before's",
        # Of a document that has half its text in common, too few quotes are astray to say whose.
        rules(*_SHIFTED, "evidence_stands"),
        _some_shifted,
    ),
    BatchTrick(
        "batch_few_swapped",
        "two pairs of documents far apart have each other's answer",
        rules(*_SHIFTED),
        _few_swapped,
    ),
    BatchTrick(
        "batch_one_answer",
        "one document's answer for all",
        rules(*_SHIFTED, "answers_repeated"),
        _one_answer,
    ),
    BatchTrick(
        "batch_one_description",
        "one description for all that fits most manuals",
        rules("answers_repeated", "description_supported"),
        _one_description,
    ),
    BatchTrick(
        "batch_one_title",
        "one printed line is the title of all",
        rules("titles_shared", "title_plausible"),
        _one_title,
    ),
    BatchTrick(
        "batch_echoed_too",
        "shifted by one, each with the other record's reference",
        rules("misrouted", "document_reference"),
        _echoed_too,
    ),
    BatchTrick(
        "catalogue_contradicts",
        "the catalogue knows the number as another thing",
        rules("catalogue_agrees"),
        _known,
        _contradicting,
    ),
)
"""Played on a batch of different documents each."""
