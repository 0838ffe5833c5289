"""How many tokens a text has, as an estimate made on this machine.

Belongs here: counting, and how far a count may be off for a provider. Does not belong here: what
the tokens cost (`prices.py`) and what a model can take (`capabilities.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

ENCODING = "o200k_base"
"""OpenAI's vocabulary since GPT-4o. Anthropic and Google publish none, so it stands in for all."""

SAFETY_FACTORS: Mapping[str, float] = {
    "openai": 1.0,
    # Anthropic's guide to token counting says of its newer tokenizer: about 30 percent more
    # tokens than the one before. How that one compares with o200k is not published; the rest of
    # the factor is an assumption.
    "anthropic": 1.5,
    # Google says "about four characters a token" and no more; assumed.
    "gemini": 1.2,
    # Bedrock hosts Anthropic's models and others: the largest of the factors.
    "bedrock": 1.5,
}
"""What a count is multiplied by before it is held against a provider's limit.

Every factor is on the side of too many: that costs a little room in a job, too
few costs a refused request. What was really used comes back with every result.
"""


class UnknownTokenizer(LookupError):
    """A provider for which nobody said how far an estimate may be off."""

    def __init__(self, provider: str) -> None:
        super().__init__(
            f"there is no token estimate for the provider {provider!r} (known: "
            f"{', '.join(SAFETY_FACTORS)}). Add its factor and the reason to SAFETY_FACTORS."
        )


def count_tokens(texts: Sequence[str]) -> list[int]:
    """The o200k tokens of each text, in order: exact for OpenAI, an estimate for everyone else.

    Text that looks like a special token counts as the ordinary text that it is. A lone surrogate
    cannot be sent as it is and counts as a question mark.
    """
    import toktok

    try:
        return toktok.batch_count(texts, ENCODING)
    except UnicodeEncodeError:
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        return toktok.batch_count(clean, ENCODING)


def at_most_tokens(provider: str, counted: int) -> int:
    """A count made larger by the provider's safety factor, rounded up; for limits, not for money.

    Raises:
        UnknownTokenizer: the provider has no factor.
    """
    if provider not in SAFETY_FACTORS:
        raise UnknownTokenizer(provider)
    return math.ceil(counted * SAFETY_FACTORS[provider])
