"""The acceptance boundary: what passes it, by whom, and what is told when something slipped."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pipeline_assets.accept.boundary import leaks
from resources.ledger.schema import archive_entries, archive_heads, reviews
from tests.integration.ledger.support import AT
from tests.integration.quality.support import Judged

UNACCEPTED = "accepted without an accepting judgement"
UNLIKE = "published values that were not accepted"
REJECTED = "visible values that a reviewer rejected"
MODEL, CORRECTED, OTHER = f"{1:064}", "c" * 64, "e" * 64


@dataclass(frozen=True)
class Case:
    """One record with one answer, what a reviewer said of it, and what is published.

    Attributes:
        state: of the record.
        outcome: of the judgement.
        review: kind and decision; None where nobody looked.
        published: digest of the published values; None where nothing is.
        visible: is the entry the document's head?
        again: outcome of a newer judged answer of the record; None where there is none.
    """

    state: str
    outcome: str
    review: tuple[str, str | None] | None = None
    published: str | None = None
    visible: bool = True
    again: str | None = None


def store(judged: Judged, case: Case) -> None:
    numbers = judged.add(1, state=case.state, outcome=case.outcome)
    with judged.ledger.write() as connection:
        if case.review is not None:
            kind, decision = case.review
            connection.execute(
                reviews.insert().values(
                    review_no=1,
                    record_no=1,
                    attempt_no=1,
                    version_no=judged.version.version_no,
                    kind=kind,
                    sample_no=int(kind == "quality_sample"),
                    slice="",
                    priority=0,
                    opened_at=AT,
                    revision=1,
                    decision=decision,
                    values_digest=MODEL,
                    corrected_digest=CORRECTED if decision == "correct" else None,
                )
            )
        if case.published is not None:
            connection.execute(
                archive_entries.insert().values(
                    entry_no=1,
                    document_no=1,
                    record_no=1,
                    version_no=judged.version.version_no,
                    archive_version=1,
                    promotion=1,
                    content="{}",
                    content_digest=case.published,
                    thumbnail=OTHER,
                    valid_from=AT,
                    valid_to=None if case.visible else AT,
                )
            )
            if case.visible:
                connection.execute(archive_heads.insert().values(document_no=1, entry_no=1))
    if case.again is not None:
        judged.answer(numbers, outcome=case.again)


FINDINGS, SAMPLE = "findings", "quality_sample"


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        pytest.param(Case("accepted", "accepted"), [], id="by-rules"),
        pytest.param(Case("published", "accepted", None, MODEL), [], id="by-rules-published"),
        pytest.param(Case("awaiting_review", "awaiting_review"), [], id="waits"),
        pytest.param(
            Case("awaiting_review", "awaiting_review", (FINDINGS, None)), [], id="asked-for"
        ),
        pytest.param(
            Case("published", "awaiting_review", (FINDINGS, "accept"), MODEL),
            [],
            id="by-a-reviewer",
        ),
        pytest.param(
            Case("published", "awaiting_review", (FINDINGS, "correct"), CORRECTED),
            [],
            id="corrected-by-a-reviewer",
        ),
        pytest.param(
            Case("published", "accepted", (SAMPLE, "correct"), CORRECTED),
            [],
            id="corrected-in-a-sample",
        ),
        pytest.param(
            Case("published", "accepted", (SAMPLE, "correct"), MODEL),
            [],
            id="correction-not-published-yet",
        ),
        pytest.param(
            Case("rejected", "accepted", (SAMPLE, "reject"), MODEL, visible=False),
            [],
            id="rejected-and-hidden",
        ),
        pytest.param(
            Case("published", "accepted", (SAMPLE, "reject"), MODEL, again="accepted"),
            [],
            id="rejected-and-answered-again",
        ),
        pytest.param(Case("accepted", "awaiting_review"), [UNACCEPTED], id="accepted-by-nobody"),
        pytest.param(
            Case("accepted", "awaiting_review", (FINDINGS, None)),
            [UNACCEPTED],
            id="nobody-decided",
        ),
        pytest.param(
            Case("accepted", "accepted", again="awaiting_review"),
            [UNACCEPTED],
            id="an-older-answer-was-accepted",
        ),
        pytest.param(
            Case("accepted", "awaiting_review", (FINDINGS, "overtaken")),
            [UNACCEPTED],
            id="overtaken-is-no-decision",
        ),
        pytest.param(
            Case("published", "awaiting_review", (FINDINGS, "reject"), MODEL),
            [UNACCEPTED, UNLIKE],
            id="rejected-and-published",
        ),
        pytest.param(Case("published", "accepted", None, OTHER), [UNLIKE], id="other-values"),
        pytest.param(
            Case("published", "accepted", (SAMPLE, "accept"), CORRECTED),
            [UNLIKE],
            id="values-of-nobody",
        ),
        pytest.param(
            Case("published", "awaiting_review", (FINDINGS, "correct"), MODEL),
            [UNLIKE],
            id="corrected-and-published-uncorrected",
        ),
        pytest.param(
            Case("rejected", "accepted", (SAMPLE, "reject"), MODEL),
            [REJECTED],
            id="rejected-and-visible",
        ),
    ],
)
def test_boundary(judged: Judged, case: Case, expected: list[str]) -> None:
    store(judged, case)
    found = leaks(judged.ledger, judged.version.version_no)
    assert found["leak"].to_list() == expected
    assert set(found["record_id"]) <= {"w:d1@c:v"}
    assert leaks(judged.ledger, judged.version.version_no + 1).is_empty()
