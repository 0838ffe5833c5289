"""The table of tricks: every way to be wrong that was thought of, and the rules for it.

Belongs here: the table as a whole. Does not belong here: the tricks of a field (`*_tricks.py`),
and those of a batch as a whole (`batch_tricks.py`).
"""

from __future__ import annotations

from tests.acceptance.description_tricks import DESCRIPTION_TRICKS
from tests.acceptance.evidence_tricks import EVIDENCE_TRICKS
from tests.acceptance.form_tricks import FORM_TRICKS
from tests.acceptance.identifier_tricks import IDENTIFIER_TRICKS
from tests.acceptance.language_tricks import LANGUAGE_TRICKS
from tests.acceptance.title_tricks import TITLE_TRICKS

TRICKS = (
    *TITLE_TRICKS,
    *IDENTIFIER_TRICKS,
    *LANGUAGE_TRICKS,
    *DESCRIPTION_TRICKS,
    *EVIDENCE_TRICKS,
    *FORM_TRICKS,
)
"""Played on one answer each."""
