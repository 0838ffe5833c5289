"""What people say with a decision: on one line, never empty, fit for every database.

Belongs here: only that.
"""

from __future__ import annotations

import unicodedata

from pipeline_assets.approval.errors import Unsaid

NAME_LENGTH = 128


def require_reason(said: str) -> str:
    """A reason on one line.

    Raises:
        Unsaid: nothing is left.
    """
    why = _plain(said)
    if not why:
        raise Unsaid("the reason", "--reason TEXT")
    return why


def require_actor(name: str) -> str:
    """The name of whoever decides, on one line.

    Raises:
        Unsaid: nothing is left, or too much.
    """
    who = _plain(name)
    if not 1 <= len(who) <= NAME_LENGTH:
        raise Unsaid(f"the name of whoever decides (1 to {NAME_LENGTH} characters)", "--by NAME")
    return who


def _plain(said: str) -> str:
    # A byte of the command line that is no UTF-8 comes in as a lone surrogate.
    kept = (character for character in said if unicodedata.category(character) != "Cs")
    return " ".join("".join(kept).replace("\0", " ").split())
