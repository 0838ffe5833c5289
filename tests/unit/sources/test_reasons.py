"""The closed list of exclusion reasons."""

from __future__ import annotations

import re

import pytest

from resources.sources.reasons import EXCLUSION_REASONS, UnknownExclusionReason, check_reason


@pytest.mark.parametrize("reason", sorted(EXCLUSION_REASONS))
def test_reason_is_a_name_with_one_line(reason: str) -> None:
    assert check_reason(reason) == reason
    assert re.fullmatch(r"[a-z][a-z_]*", reason)
    description = EXCLUSION_REASONS[reason]
    assert description
    assert "\n" not in description


def test_unknown_reason_is_refused_with_the_list() -> None:
    with pytest.raises(UnknownExclusionReason, match="duplicate_content, empty"):
        check_reason("bored")


def test_list_is_closed() -> None:
    assert not hasattr(EXCLUSION_REASONS, "__setitem__")
