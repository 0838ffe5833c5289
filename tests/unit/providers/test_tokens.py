"""Token counts, and how far they may be off."""

from __future__ import annotations

import subprocess
import sys

import pytest

from resources.providers.tokens import (
    SAFETY_FACTORS,
    UnknownTokenizer,
    at_most_tokens,
    count_tokens,
)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        pytest.param("", 0, id="empty"),
        pytest.param("hello world", 2, id="two-words"),
        pytest.param("日本語", 2, id="japanese"),
        pytest.param("<|endoftext|>", 7, id="a-special-token-is-ordinary-text"),
        pytest.param("\ud800", 1, id="a-lone-surrogate-counts-as-a-question-mark"),
    ],
)
def test_counts(text: str, tokens: int) -> None:
    assert count_tokens([text]) == [tokens]


def test_one_count_for_each_text_in_order() -> None:
    assert count_tokens(["hello world", "", "hello", "\ud800"]) == [2, 0, 1, 1]
    assert count_tokens([]) == []


@pytest.mark.parametrize(
    ("provider", "limit"),
    [("openai", 1001), ("anthropic", 1502), ("gemini", 1202), ("bedrock", 1502)],
)
def test_estimates_are_made_larger_and_rounded_up(provider: str, limit: int) -> None:
    assert at_most_tokens(provider, 1001) == limit


def test_every_factor_is_on_the_side_of_too_many() -> None:
    assert all(factor >= 1 for factor in SAFETY_FACTORS.values())


def test_an_unknown_provider_has_no_estimate() -> None:
    with pytest.raises(UnknownTokenizer) as raised:
        at_most_tokens("nobody", 1)
    assert str(raised.value) == (
        "there is no token estimate for the provider 'nobody' (known: openai, anthropic, gemini, "
        "bedrock). Add its factor and the reason to SAFETY_FACTORS."
    )


def test_importing_the_module_loads_no_vocabulary() -> None:
    code = "import sys, resources.providers.tokens; sys.exit('toktok' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
