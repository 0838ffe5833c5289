"""What a document keeps naming: counts of tokens and words over its pages, made once each.

Counting only; what a count means for a field is decided where the field is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipeline_assets.workloads.equipment_manuals.baseline.identifier_tokens import (
    Occurrences,
    find_tokens,
    occurrences,
)
from pipeline_assets.workloads.equipment_manuals.baseline.pages import PageText

# Words before a noun; in German they tell a common noun, which has a capital there, from a name.
_DETERMINER = (
    r"(?:der|die|das|dem|den|des|ein|eine|einer|einem|einen|eines|ihr|ihre|ihrer|ihrem|ihren"
    r"|dieser|diese|dieses|diesem|diesen)"
)
_LITTLE = frozenset(
    ("the", "and", "for", "und", "der", "die", "das", "les", "des", "los", "las", "del")
)
_WORD = re.compile(r"[^\W\d_]{3,}")


class Usage:
    """Counts over one document's pages.

    Args:
        pages: the pages that are counted, running heads that only number the paper taken out.
    """

    def __init__(self, pages: Sequence[PageText]) -> None:
        self._pages = pages
        self._counts: dict[str, Occurrences] = {}

    def of(self, token: str) -> Occurrences:
        """Where the document prints `token`."""
        if token not in self._counts:
            self._counts[token] = occurrences(token, self._pages)
        return self._counts[token]

    def names_recurring_model(self, text: str) -> bool:
        """Whether `text` has a model that the document keeps naming."""
        return any(self.of(token.text).recurs for token in find_tokens(text) if not token.weak)

    def has_common_noun(self, name: str) -> bool:
        """Whether the document uses a word of `name` as a common noun, as for a kind of product.

        A common noun is printed in lower case somewhere, in German behind a determiner; the name
        of a maker is not.
        """
        words = [word for word in _WORD.findall(name) if word.casefold() not in _LITTLE]
        if not words:
            return False
        lower = "|".join(re.escape(word.casefold()) for word in words)
        title = "|".join(re.escape(word.capitalize()) for word in words)
        used = re.compile(
            rf"(?<!\w)(?:(?:{lower})|(?:{_DETERMINER}|{_DETERMINER.title()}) (?:{title}))(?!\w)"
        )
        return any(used.search(page.text) for page in self._pages)
