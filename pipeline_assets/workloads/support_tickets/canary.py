"""The canary tickets of this workload: short ones with known answers, and a long one.

All texts are invented. Every field is plain, so an answer that misses one says something about the
provider, the model or the transport, not about the ticket. Each tries what one of these may break:
other languages, line separators that are no line feed, characters outside the first Unicode plane,
sheer length.

Belongs here: the texts and what is right. Does not belong here: sending and judging them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

import msgspec

from pipeline_assets.workloads.text_folding import fold
from pipeline_assets.workloads.workload import CanaryDocument

from .answer import Answer

LEAST_BUDGET = 400
"""Tokens. Below it, 5 % of the budget are less than a sentence of the long ticket."""
# As a request marks a page, with digits that hardly share a token: what is counted is the most.
_AROUND_PAGE = "=== doc-a1b2c3d4e5f6a7b8 page 1 ===\n{}\n"


class CanaryTooSmall(ValueError):
    """A token budget that the long canary ticket cannot fill as closely as it promises."""

    def __init__(self, budget: int, least: int) -> None:
        super().__init__(
            f"a long canary ticket needs a budget of {least} tokens or more, found {budget}: "
            "raise document_tokens in the version's spec"
        )


def _expect(category: str, priority: str, product: str | None) -> dict[str, tuple[str, ...]]:
    return {
        "category": (category,),
        "priority": (priority,),
        "product": () if product is None else (product,),
    }


CANARY_TICKETS: tuple[CanaryDocument, ...] = (
    CanaryDocument(
        name="english",
        pages=(
            "subject: Toaster TS-204 stopped working\n\n"
            "body: Hello,\n\n"
            "my TS-204 stopped working on its second day. The lever stays down, but the bread\n"
            "remains cold and white. I think that the toaster is defective.\n\n"
            "Kind regards\n"
            "Ottilie Farnham\n",
        ),
        language="en",
        expect=_expect("defect", "normal", "TS-204"),
    ),
    CanaryDocument(
        name="german",
        pages=(
            "subject: Rechnung vom Februar fehlt uns\n\n"
            "body: Guten Tag,\n\n"
            "für die Buchhaltung brauchen wir die Rechnung vom Februar und einen Beleg über\n"
            "unsere Zahlung. Die Rechnung wurde uns nie geschickt. Es hat keine Eile.\n\n"
            "Mit freundlichen Grüßen\n"
            "Wenzel Aschoff\n",
        ),
        language="de",
        expect=_expect("billing", "low", None),
    ),
    CanaryDocument(
        name="french",
        pages=(
            "subject: Mot de passe refusé depuis lundi\n\n"
            "body: Bonjour,\n\n"
            "mon mot de passe est refusé depuis lundi et je ne peux plus me connecter à mon\n"
            "compte. Nous en avons besoin pour nos commandes, aidez-nous au plus vite.\n\n"
            "Cordialement\n"
            "Aurore Delvaux\n",
        ),
        language="fr",
        expect=_expect("account", "urgent", None),
    ),
    CanaryDocument(
        name="line separators",
        pages=(
            "subject: My parcel was never delivered\n\n"
            "body: The tracking page says that the parcel was handed over last week.\u2028"
            "It was never delivered to our house or to a neighbour.\u0085"
            "Please ask the courier where the shipment is now.\u2029",
        ),
        language="en",
        expect=_expect("delivery", "normal", None),
    ),
    CanaryDocument(
        name="astral characters",
        pages=(
            "subject: Which bags fit the vacuum VC-118?\n\n"
            "body: I would like to know which bags fit my VC-118 \U0001f9f9, and how often they\n"
            "have to be changed \U0001f600. How can I tell that a bag is full \U00020bb7?\n",
        ),
        language="en",
        expect=_expect("question", "normal", "VC-118"),
    ),
)
"""Every short canary ticket, always in this order."""

_HEAD = (
    "subject: The iron DB-77 stopped working\n\n"
    "body: My DB-77 stopped working after a year, and I think that it is defective. So that you\n"
    "can find the reason, here is what was done with it from the first day on."
)
_PROSE = (
    "We filled it with clean water in the morning and let it stand upright until it was warm.",
    "The shirts were still a little damp, because they had dried in the shade of the garden.",
    "My sister took the cotton cloths first and left the woollen ones for the afternoon.",
    "It stood on the wooden board near the window, where the floor is level and dry.",
    "After an hour we emptied the tank over the sink and put it back onto the shelf.",
    "The curtains of the living room came next, and they took the whole of the evening.",
    "Nobody let it fall, and the children were never near it while it was hot.",
    "Once a month we wiped the sole with a soft cloth and a drop of vinegar.",
    "In the summer we hardly used it, since linen looks well with a few folds.",
    "The tablecloth of my grandmother went under it twice, folded into four layers.",
    "When it was cool again, the cord was laid around it in loose and even rings.",
)
_STEP = 7  # shares no factor with the number of sentences


def largest(budget_tokens: int, tokens_of: Callable[[Sequence[str]], list[int]]) -> CanaryDocument:
    """A ticket that fills 95 to 100 % of a token budget, its page's marker included.

    Args:
        budget_tokens: at most so many tokens.
        tokens_of: texts → how many tokens each has, as the requests are counted.

    Raises:
        CanaryTooSmall: the budget is below `LEAST_BUDGET`, or the first words alone exceed it.
    """
    first = tokens_of([_AROUND_PAGE.format(f"{_HEAD}\n")])[0]
    if budget_tokens < max(LEAST_BUDGET, first):
        raise CanaryTooSmall(budget_tokens, max(LEAST_BUDGET, first))
    # Doubled until it is too long, then cut where it just fits.
    count = 16
    while _tokens(count, tokens_of) <= budget_tokens:
        count *= 2
    fitting = bisect_right(range(count), budget_tokens, key=lambda lines: _tokens(lines, tokens_of))
    return CanaryDocument(
        name="largest",
        pages=(_ticket(fitting - 1),),
        language="en",
        expect=_expect("defect", "normal", "DB-77"),
    )


def _tokens(lines: int, tokens_of: Callable[[Sequence[str]], list[int]]) -> int:
    return tokens_of([_AROUND_PAGE.format(_ticket(lines))])[0]


def _ticket(lines: int) -> str:
    return "\n".join([_HEAD, *_prose(lines)]) + "\n"


def _prose(lines: int) -> Iterator[str]:
    return (_PROSE[line * _STEP % len(_PROSE)] for line in range(lines))


def wrong_fields(document: CanaryDocument, answer: str) -> list[str]:
    """Fields of an answer that are not what a canary ticket says.

    A product may be told with the kind of thing that it is ("Toaster TS-204").

    Args:
        document: with what is expected.
        answer: the answer in its normal form.
    """
    given = msgspec.json.decode(answer, type=Answer)
    wrong = [
        name
        for name, value in (("category", given.category.value), ("priority", given.priority.value))
        if value not in document.expect[name]
    ]
    product = fold(given.product.value or "")
    names = document.expect["product"]
    if bool(product) != bool(names) or any(fold(name) not in product for name in names):
        wrong.append("product")
    if given.language.value != document.language:
        wrong.append("language")
    if not fold(given.summary.value or "").strip():
        wrong.append("summary")
    return wrong
