"""What can go wrong at a review, one class per situation.

Belongs here: exceptions whose message says what was found, what was expected and the remedy; none
of them quotes a document or an answer.
"""

from __future__ import annotations

_NAMED = 3
"""A message names so many of a longer list."""


class ReviewError(Exception):
    """Something about reviews that the reviewer is told in one line; nothing was changed."""


class UnknownReview(ReviewError):
    """A number that no review has."""

    def __init__(self, numbers: list[int]) -> None:
        super().__init__(
            f"there is no review {_listed(numbers)}. `tallybook review list` shows those that "
            "wait; nothing was changed."
        )


class NothingReviewed(ReviewError):
    """A document that no review is about."""

    def __init__(self, document_id: str) -> None:
        super().__init__(
            f"{document_id} was never sent to review. `tallybook explain {document_id!r}` says "
            "what became of it."
        )


class ReviewChanged(ReviewError):
    """Someone else acted on a review since it was looked at."""

    _how = "is no longer as it was seen"

    def __init__(self, review_no: int, act: str, who: str, at: str, others: int = 0) -> None:
        more = f" ({_more(others)} too)" if others else ""
        super().__init__(
            f"review {review_no} {self._how}: {act} by {who} at {at}{more}. Nothing was changed. "
            f"Look at it again: tallybook review show {review_no}"
        )


class ReviewDecided(ReviewChanged):
    """A review that was decided already; a decision is never overwritten."""

    _how = "was decided already"


class RevisionUnknown(ReviewError):
    """A revision that the review has not come to yet: nobody can have seen it."""

    def __init__(self, review_no: int, asked: int, revision: int) -> None:
        super().__init__(
            f"review {review_no} has no revision {asked}; it is at revision {revision}. Nothing "
            f"was changed. Look at it: tallybook review show {review_no}"
        )


class ReviewOvertaken(ReviewError):
    """The record moved on: what would be decided is no longer what counts."""

    def __init__(self, review_no: int, document_id: str, why: str, others: int = 0) -> None:
        more = f" ({_more(others)} too)" if others else ""
        super().__init__(
            f"review {review_no} of {document_id} was overtaken: {why}{more}. Nothing was changed; "
            f"`tallybook explain {document_id!r}` says what happened."
        )


class ReasonMissing(ReviewError):
    """A reviewer decides and does not say why."""

    def __init__(self, act: str) -> None:
        super().__init__(
            f"found an empty reason for {act}; expected why, in a few words: --reason TEXT"
        )


class ReviewerUnnamed(ReviewError):
    """A reviewer without a name, or with one that is too long."""

    def __init__(self, length: int, longest: int) -> None:
        super().__init__(
            f"found a reviewer's name of {length} characters; expected 1 to {longest}: --by NAME"
        )


class ReviewNotNamed(ReviewError):
    """It is not said, or said twice, which reviews are meant."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"found {found} to choose by; expected either review numbers, or --where-... options"
        )


class RevisionMalformed(ReviewError):
    """A review is named in another form than NUMBER or NUMBER@REVISION."""

    def __init__(self, given: str) -> None:
        super().__init__(
            f"found {given!r}; expected a review's number as `tallybook review list` shows it, or "
            "NUMBER@REVISION to decide on exactly what was seen"
        )


class NothingSelected(ReviewError):
    """No waiting review fits what was asked for."""

    def __init__(self) -> None:
        super().__init__("no review that waits fits the selection; nothing was changed.")


class SelectionChanged(ReviewError):
    """A selection is no longer the one that was looked at."""

    def __init__(self, confirmed: str, found: str, count: int) -> None:
        super().__init__(
            f"the selection changed since it was looked at: confirmed {confirmed}, found {found} "
            f"({count} review{'' if count == 1 else 's'}). Nothing was changed. Look at it again, "
            f"then confirm it with --confirm {found}"
        )


class NotCorrected(ReviewError):
    """A correction that leaves everything as the model gave it."""

    def __init__(self, review_no: int) -> None:
        super().__init__(
            f"the correction of review {review_no} changes nothing. Accept it instead, or give "
            "other values with --set."
        )


class CorrectionImpossible(ReviewError):
    """A corrected value that could not be published."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"the correction of {field} is refused: {why}. Nothing was changed.")


class CorrectionMalformed(ReviewError):
    """A correction that cannot be read."""

    def __init__(self, option: str, expected: str) -> None:
        super().__init__(f"{option} cannot be read; expected {expected}. Nothing was changed.")


class ValuesDiffer(ReviewError):
    """The staged values are not those that the review is about."""

    def __init__(self, review_no: int) -> None:
        super().__init__(
            f"the staged values of review {review_no} are not there, or do not have the digest "
            "that was judged. Restore the state folder from a backup."
        )


class ReviewErased(ReviewError):
    """What the review was about is gone for good."""

    def __init__(self, review_no: int, document_id: str) -> None:
        super().__init__(
            f"the document of review {review_no} was erased: there is nothing to look at any more. "
            f"`tallybook explain {document_id!r}` says why."
        )


def _more(others: int) -> str:
    return "and one more" if others == 1 else f"and {others} more"


def _listed(numbers: list[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[:_NAMED])
    return f"{shown} and {len(numbers) - _NAMED} more" if len(numbers) > _NAMED else shown
