"""A thousand answers of which many are another document's: nothing of them gets through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.bench import Ask, Judged, Verdict, judge_answers
from tests.acceptance.corpus import FULL, Document, Gold
from tests.acceptance.gold import found
from tests.acceptance.trick import tell
from tests.benchmarks.synthetic import Document as Manual

RECORDS = 1_000
SEED = 7
EVERY = 10

pytestmark = pytest.mark.slow


def document(manual: Manual) -> Document:
    gold = Gold(manual.title, 1, ((manual.model, (1,)),), "en", (), manual.sentence, FULL)
    return Document(
        name=manual.document_id,
        checksum=manual.checksum,
        media_type="application/pdf",
        pages=tuple(enumerate(manual.pages(), start=1)),
        page_count=2,
        language="en",
        languages=(),
        metadata_title="",
        gold=gold,
    )


def asks(place: Callable[[int], int]) -> list[Ask]:
    """Document n gets the answer of document `place(n)`, with its own reference."""
    manuals = [Manual(number, SEED) for number in range(RECORDS)]
    return [
        Ask(manual.document_id, document(manual), tell(answer(manuals[place(number)])))
        for number, manual in enumerate(manuals)
    ]


def answer(manual: Manual) -> dict[str, object]:
    return {
        "title": found(manual.title, (1, manual.title)),
        "product_identifiers": [found(manual.model, (1, manual.title))],
        "language": found("en", (1, manual.sentence)),
        "description": found(manual.sentence, (1, manual.sentence)),
    }


def judged(tmp_path: Path, place: Callable[[int], int]) -> Judged:
    return judge_answers(tmp_path / "bench", [asks(place)])


def accepted(verdicts: list[Verdict]) -> int:
    return sum(verdict.accepted for verdict in verdicts)


def test_the_right_answers_are_accepted(tmp_path: Path) -> None:
    result = judged(tmp_path, lambda number: number)
    refused = Counter(rule for verdict in result.verdicts[0] for rule in verdict.stopped_by)
    assert (accepted(result.verdicts[0]), refused) == (RECORDS, Counter())
    assert result.alerts == []


@pytest.mark.parametrize(
    ("place", "told"),
    [
        pytest.param(lambda number: (number + 1) % RECORDS, "one place later", id="shifted-by-one"),
        pytest.param(lambda number: (number - 1) % RECORDS, "one place earlier", id="shifted-back"),
        pytest.param(lambda number: number ^ 1, "", id="pairs-swapped"),
        pytest.param(lambda number: RECORDS - 1 - number, "", id="turned-round"),
    ],
)
def test_a_batch_that_is_wrong_as_a_whole_is_not_accepted(
    tmp_path: Path, place: Callable[[int], int], told: str
) -> None:
    result = judged(tmp_path, place)
    assert accepted(result.verdicts[0]) == 0
    stopped = Counter(rule for verdict in result.verdicts[0] for rule in verdict.stopped_by)
    assert stopped["answers_shifted"] == RECORDS
    [(kind, message)] = result.alerts
    assert kind == "answers_astray"
    assert told in message


def test_what_is_right_beside_wrong_answers_is_accepted(tmp_path: Path) -> None:
    """One answer in ten is the one before's."""
    result = judged(tmp_path, lambda number: number - 1 if number % EVERY == EVERY - 1 else number)
    wrong = [v for at, v in enumerate(result.verdicts[0]) if at % EVERY == EVERY - 1]
    right = [v for at, v in enumerate(result.verdicts[0]) if at % EVERY != EVERY - 1]
    assert (accepted(wrong), accepted(right)) == (0, RECORDS - RECORDS // EVERY)
    assert all("answers_shifted" in verdict.stopped_by for verdict in wrong)
