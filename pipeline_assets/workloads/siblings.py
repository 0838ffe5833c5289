"""Models of one family: names with the same letters and another number.

Belongs here: telling whether a text names a sibling of a product in the product's place. Does not
belong here: what follows from it (the rules).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from resources.identifiers import fold_identifier

_MODEL = re.compile(r"[^\W\d_]+[-‐‑–]?\d[\w-]*")
_LETTERS = re.compile(r"[^\W\d_]+(?=\d)")


def names_a_sibling(text: str, products: Sequence[str]) -> bool:
    """Does a text name a sibling of the products, and none of the products?

    A part of a product's name, or a name that goes on behind it, stands for the product.

    Args:
        text: any text.
        products: identifiers as printed; those without letters before a digit have no siblings.
    """
    own = [fold_identifier(name) for name in products]
    heads = {match[0] for name in own if (match := _LETTERS.match(name))}
    models = [fold_identifier(model) for model in _MODEL.findall(text)]
    if not any((match := _LETTERS.match(model)) and match[0] in heads for model in models):
        return False
    if any(name.startswith(model) for model in models for name in own):
        return False
    folded = fold_identifier(text)
    return not any(name in folded for name in own)
