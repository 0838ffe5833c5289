"""Right answers are accepted, wrong ones are not, and the rule that is meant stops them.

The table of tricks is played on the sample manuals here, and on the development corpus where it
is there; `python -m tests.acceptance.adversarial` tells about each trick.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.acceptance.adversarial import Played, accepted_cases, play, play_batch
from tests.acceptance.batch_tricks import BATCH_TRICKS, BatchTrick
from tests.acceptance.bench import Verdict
from tests.acceptance.corpus import load_corpus, load_samples, with_full_text
from tests.acceptance.gold import Case
from tests.acceptance.tricks import TRICKS

LEAST_SHARE = 0.95
"""Of right answers about documents with a full text layer."""
LEAST_TRICKS = 60

Archive = tuple[list[Case], list[Verdict]]


@pytest.fixture(scope="module")
def samples() -> Archive:
    return accepted_cases(load_samples())


@pytest.fixture(scope="module")
def corpus(dev_corpus: Path) -> Archive:
    return accepted_cases(load_corpus(dev_corpus))


def got_through(played: list[Played]) -> list[str]:
    return [verdict.ask.name for each in played for verdict in each.accepted]


def by_another_rule(played: list[Played]) -> list[tuple[str, list[str]]]:
    return [
        (verdict.ask.name, sorted(verdict.stopped_by))
        for each in played
        for verdict in each.wrong_rule
    ]


def refused(verdicts: list[Verdict]) -> dict[str, list[str]]:
    return {v.ask.name: sorted(v.stopped_by) for v in verdicts if not v.accepted}


def test_the_table_is_long_and_every_trick_has_its_rule() -> None:
    names = Counter(trick.id for trick in (*TRICKS, *BATCH_TRICKS))
    assert len(names) >= LEAST_TRICKS
    assert set(names.values()) == {1}
    assert all(trick.rules for trick in (*TRICKS, *BATCH_TRICKS))
    kinds = {trick.kind for trick in TRICKS}
    assert len(kinds) == 7


@pytest.mark.slow
def test_right_answers_about_the_samples_are_accepted(samples: Archive) -> None:
    assert refused(samples[1]) == {}


@pytest.mark.slow
def test_no_trick_gets_through_on_the_samples(samples: Archive) -> None:
    played = play(samples[0], TRICKS)
    assert (got_through(played), by_another_rule(played)) == ([], [])
    assert {v.ask.name for each in played for v in each.harmed} == set()


@pytest.mark.slow
def test_right_answers_about_the_corpus_are_accepted(corpus: Archive) -> None:
    full = {document.name for document in with_full_text(v.ask.document for v in corpus[1])}
    verdicts = [verdict for verdict in corpus[1] if verdict.ask.document.name in full]
    assert sum(verdict.accepted for verdict in verdicts) >= LEAST_SHARE * len(verdicts), refused(
        verdicts
    )


@pytest.mark.slow
def test_no_trick_gets_through_on_the_corpus(corpus: Archive) -> None:
    played = play(corpus[0], TRICKS)
    assert {each.id for each in played} == {trick.id for trick in TRICKS}
    assert all(len(each.wrong) >= 3 for each in played)
    assert (got_through(played), by_another_rule(played)) == ([], [])
    assert {v.ask.name for each in played for v in each.harmed} == set()


@pytest.mark.slow
@pytest.mark.parametrize("trick", BATCH_TRICKS, ids=lambda trick: trick.id)
def test_no_wrong_batch_gets_through_on_the_corpus(corpus: Archive, trick: BatchTrick) -> None:
    played = play_batch(corpus[0], trick)
    assert len(played.wrong) >= 3
    assert (got_through([played]), by_another_rule([played]), played.harmed) == ([], [], [])
