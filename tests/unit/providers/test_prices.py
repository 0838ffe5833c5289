"""Prices: exact amounts, and the cases in which the price data says less than it seems to."""

from __future__ import annotations

import importlib.metadata
import socket
from datetime import UTC, datetime
from decimal import Decimal
from typing import Literal, NoReturn

import genai_prices
import pytest
from genai_prices import data_snapshot
from genai_prices.data import providers as price_data
from hypothesis import given
from hypothesis import strategies as st

from resources.providers.prices import (
    NaiveTime,
    TokenUsage,
    package_version,
    price_of,
    rates_of,
)

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
BEFORE_BATCH_PRICES = datetime(2026, 10, 13, 23, 59, tzinfo=UTC)
THOUSAND = TokenUsage(input_tokens=1000, output_tokens=100)
ESTIMATED = "half of standard (estimated)"

Mode = Literal["batch", "online"]


@pytest.mark.parametrize(
    ("provider", "model", "mode", "usage", "amount", "basis"),
    [
        pytest.param(
            "openai", "gpt-5-mini", "batch", THOUSAND, "0.000225", "batch", id="gpt-5-mini-batch"
        ),
        pytest.param(
            "openai", "gpt-5-mini", "online", THOUSAND, "0.00045", "standard", id="gpt-5-mini"
        ),
        pytest.param(
            "openai",
            "gpt-5-mini",
            "batch",
            TokenUsage(1000, 100, 100),
            "0.00021375",
            "batch",
            id="cached-tokens-are-a-part-of-the-input",
        ),
        pytest.param(
            "openai",
            "gpt-4.1-mini",
            "batch",
            TokenUsage(1000, 100, 100),
            "0.00027",
            "batch",
            id="no-batch-price-of-the-cache-so-the-standard-one",
        ),
        pytest.param(
            "openai", "gpt-5.4-nano", "batch", THOUSAND, "0.0001625", "batch", id="gpt-5.4-nano"
        ),
        pytest.param(
            "anthropic", "claude-haiku-4-5", "batch", THOUSAND, "0.00075", "batch", id="haiku-4-5"
        ),
        pytest.param(
            "anthropic",
            "claude-haiku-4-5-20251001",
            "batch",
            THOUSAND,
            "0.00075",
            "batch",
            id="a-dated-name-of-the-same-model",
        ),
        pytest.param(
            "anthropic", "claude-opus-5", "batch", THOUSAND, "0.00375", "batch", id="opus-5"
        ),
        pytest.param(
            "anthropic",
            "claude-sonnet-4-5",
            "batch",
            TokenUsage(200_000, 1000),
            "0.3075",
            "batch",
            id="a-prompt-at-the-step",
        ),
        pytest.param(
            "anthropic",
            "claude-sonnet-4-5",
            "batch",
            TokenUsage(200_001, 1000),
            "0.611253",
            "batch",
            id="a-prompt-above-the-step-pays-more-for-every-token",
        ),
        pytest.param(
            "anthropic",
            "claude-3-haiku",
            "batch",
            THOUSAND,
            "0.0001875",
            ESTIMATED,
            id="no-batch-price-is-halved-and-said-to-be-estimated",
        ),
        pytest.param(
            "anthropic", "claude-3-haiku", "online", THOUSAND, "0.000375", "standard", id="haiku-3"
        ),
        pytest.param(
            "openai",
            "gpt-3.5-turbo-1106",
            "batch",
            THOUSAND,
            "0.0012",
            "batch",
            id="a-batch-price-that-the-data-gives-as-the-full-one",
        ),
        pytest.param(
            "gemini", "gemini-2.5-flash", "batch", THOUSAND, "0.000275", "batch", id="gemini"
        ),
        pytest.param(
            "gemini", "gemini-2.5-flash", "online", THOUSAND, "0.00055", "standard", id="gemini-now"
        ),
        pytest.param(
            "bedrock",
            "amazon.nova-lite-v1:0",
            "batch",
            THOUSAND,
            "0.000042",
            ESTIMATED,
            id="bedrock-has-no-batch-prices-at-all",
        ),
        pytest.param(
            "bedrock",
            "anthropic.claude-haiku-4-5-20251001-v1:0",
            "online",
            THOUSAND,
            "0.00165",
            "standard",
            id="bedrock-in-a-region-costs-a-tenth-more",
        ),
        pytest.param(
            "bedrock",
            "us.anthropic.claude-haiku-4-5-20251001-v1:0",
            "batch",
            THOUSAND,
            "0.000825",
            ESTIMATED,
            id="bedrock-inference-profile",
        ),
        pytest.param(
            "bedrock",
            "global.anthropic.claude-haiku-4-5-20251001-v1:0",
            "online",
            THOUSAND,
            "0.0015",
            "standard",
            id="bedrock-global-profile",
        ),
        pytest.param(
            "openai", "gpt-5-mini", "batch", TokenUsage(0, 0), "0", "batch", id="nothing-used"
        ),
    ],
)
def test_amounts_are_exact(
    provider: str, model: str, mode: Mode, usage: TokenUsage, amount: str, basis: str
) -> None:
    price = price_of(provider, model, mode, usage, NOW)
    assert (price.amount, price.basis) == (Decimal(amount), basis)
    assert price.currency == "USD"
    assert bool(price.note) == (basis == ESTIMATED)


def test_before_batch_prices_begin_the_full_price_is_halved_not_taken() -> None:
    price = price_of("openai", "gpt-5-mini", "batch", THOUSAND, BEFORE_BATCH_PRICES)
    assert (price.amount, price.basis) == (Decimal("0.000225"), ESTIMATED)
    assert price.note == (
        "no batch price of 'gpt-5-mini' on that date; half of the standard price is taken"
    )


@pytest.mark.parametrize(
    ("provider", "model", "usage", "note"),
    [
        pytest.param(
            "openai",
            "gpt-9",
            THOUSAND,
            "no price of 'gpt-9' from 'openai'",
            id="unknown-model",
        ),
        pytest.param(
            "nobody",
            "gpt-5-mini",
            THOUSAND,
            "no price of 'gpt-5-mini' from 'nobody'",
            id="unknown-provider",
        ),
        pytest.param(
            "gemini",
            "gpt-5-mini",
            THOUSAND,
            "no price of 'gpt-5-mini' from 'gemini'",
            id="another-vendors-model",
        ),
        pytest.param(
            "bedrock",
            "amazon.nova-9-v1:0",
            THOUSAND,
            "no price of 'amazon.nova-9-v1:0' from 'bedrock'",
            id="bedrock-model-without-a-row",
        ),
        pytest.param(
            "openai",
            "text-embedding-3-small",
            THOUSAND,
            "no price of text tokens for 'text-embedding-3-small'",
            id="no-price-of-output",
        ),
        pytest.param(
            "openai",
            "gpt-5-mini",
            TokenUsage(None, 100),
            "the result does not say its tokens",
            id="input-not-said",
        ),
        pytest.param(
            "openai",
            "gpt-5-mini",
            TokenUsage(1000, None),
            "the result does not say its tokens",
            id="output-not-said",
        ),
        pytest.param(
            "openai",
            "gpt-5-mini",
            TokenUsage(10, 1, 11),
            "the result's token counts are impossible",
            id="more-cached-than-read",
        ),
        pytest.param(
            "openai",
            "gpt-5-mini",
            TokenUsage(10, -1),
            "the result's token counts are impossible",
            id="negative",
        ),
    ],
)
@pytest.mark.parametrize("mode", ["batch", "online"])
def test_what_is_not_known_is_never_nought(
    provider: str, model: str, usage: TokenUsage, note: str, mode: Mode
) -> None:
    price = price_of(provider, model, mode, usage, NOW)
    assert (price.amount, price.basis, price.note) == (None, "unknown", note)


def test_the_package_is_named_with_its_version() -> None:
    named = f"genai-prices {importlib.metadata.version('genai-prices')}"
    assert package_version() == named
    assert price_of("openai", "gpt-5-mini", "batch", THOUSAND, NOW).package == named


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(NaiveTime) as raised:
        price_of("openai", "gpt-5-mini", "batch", THOUSAND, datetime(2026, 11, 20))
    assert str(raised.value) == (
        "2026-11-20T00:00:00 has no time zone; give the time of the call in UTC"
    )


def test_rates_can_be_kept_as_text() -> None:
    rates = rates_of("openai", "gpt-5-mini", "batch", NOW)
    assert rates.as_text() == (
        "input 0.125, cached input 0.0125, output 1 USD a million tokens "
        f"(batch; {package_version()})"
    )
    stepped = rates_of("anthropic", "claude-sonnet-4-5", "online", NOW).as_text()
    assert stepped.startswith("input 3, 6 above 200000 tokens")
    unknown = rates_of("openai", "gpt-9", "batch", NOW)
    assert unknown.as_text() == f"unknown ({package_version()}: {unknown.note})"


def test_nothing_is_fetched_and_nothing_fetched_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise AssertionError("a price was asked of the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    # Another part of the process may have set newer prices: here, none at all.
    fetched = data_snapshot.DataSnapshot(providers=[], from_auto_update=True)
    monkeypatch.setattr(data_snapshot, "_custom_snapshot", fetched)
    assert price_of("openai", "gpt-5-mini", "batch", THOUSAND, NOW).amount == Decimal("0.000225")


VENDORS = {"openai": "openai", "anthropic": "anthropic", "gemini": "google", "bedrock": "aws"}
PRICED = [
    (provider, model.id)
    for provider, vendor in VENDORS.items()
    for known in price_data
    if known.id == vendor
    for model in known.models
]


@given(
    st.sampled_from(PRICED),
    st.sampled_from(["batch", "online"]),
    st.integers(0, 400_000),
    st.floats(0, 1),
    st.integers(0, 20_000),
)
def test_amounts_are_those_of_the_package(
    named: tuple[str, str], mode: Mode, read: int, share: float, written: int
) -> None:
    provider, model = named
    cached = int(read * share)
    ours = price_of(provider, model, mode, TokenUsage(read, written, cached), NOW)
    if ours.amount is None:
        return
    theirs = genai_prices.calc_price(
        genai_prices.Usage(input_tokens=read, output_tokens=written, cache_read_tokens=cached),
        model,
        provider_id=VENDORS[provider],
        genai_request_timestamp=NOW,
        price_context={"processing": "batch"} if mode == "batch" else None,
    )
    share_paid = Decimal("0.5") if ours.basis == ESTIMATED else Decimal(1)
    assert ours.amount == theirs.total_price * share_paid
