"""What tokens cost in US dollars, from the price data of the package genai-prices, offline.

Belongs here: finding a model's dated prices, telling a batch price from a full one, the
arithmetic. Does not belong here: budgets, totals and who pays (the ledger and `account`), and
counting tokens (`tokens.py`).

The package's own call gives a model without a batch price the full price and says nothing. Here
such a price is halved, since every provider of the table sells batches at half, and is marked as
estimated. The package can also fetch newer prices while it runs; that is never started, and a
snapshot that another part of the process may have fetched is not looked at, so the same version
of the package always gives the same price.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, TieredPrices

Basis = Literal["batch", "half of standard (estimated)", "standard", "unknown"]
"""Where a price comes from. Only `batch` and `standard` are the provider's own, as published."""

CURRENCY = "USD"
BATCH_SHARE = Decimal("0.5")
"""OpenAI, Anthropic, Google and Amazon all sell batches at half of the standard price."""

_VENDORS: Mapping[str, str] = {
    "openai": "openai",
    "anthropic": "anthropic",
    "gemini": "google",
    "bedrock": "aws",
}
_MILLION = 6


class NaiveTime(ValueError):
    """A time without a zone; prices change on UTC dates."""

    def __init__(self, at: datetime) -> None:
        super().__init__(f"{at.isoformat()} has no time zone; give the time of the call in UTC")


@dataclass(frozen=True)
class TokenUsage:
    """Tokens of one request, as `port.ResultLine` gives them.

    Attributes:
        input_tokens: all tokens read, cached ones included; None where unknown.
        output_tokens: all tokens written, reasoning included; None where unknown.
        cached_tokens: the part of the input that was read from a cache. None where unknown: it is
            then paid as if nothing was, which is never too little.
    """

    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None = None


@dataclass(frozen=True)
class Price:
    """What one request cost.

    Attributes:
        amount: in US dollars, exact; None where it is not known, which is never nought.
        basis: where the price comes from.
        package: the price data and its version.
        note: why the amount is unknown or estimated; empty otherwise.
        currency: always `USD`.
    """

    amount: Decimal | None
    basis: Basis
    package: str
    note: str = ""
    currency: str = CURRENCY


@dataclass(frozen=True)
class Rate:
    """US dollars a million tokens.

    Attributes:
        base: the price up to the first step.
        steps: (tokens, price): the price of all tokens of a request that reads more than so many.
    """

    base: Decimal
    steps: tuple[tuple[int, Decimal], ...] = ()

    def at(self, input_tokens: int) -> Decimal:
        """The price for a request that reads so many tokens."""
        price = self.base
        for start, above in self.steps:
            if input_tokens > start:
                price = above
        return price

    def __str__(self) -> str:
        steps = "".join(f", {price} above {start} tokens" for start, price in self.steps)
        return f"{self.base}{steps}"


@dataclass(frozen=True)
class Rates:
    """A model's prices in one mode on one date; finding them is slow, using them is not.

    Attributes:
        basis: where they come from.
        package: the price data and its version.
        note: why they are unknown or estimated; empty otherwise.
        read: for tokens read; None where unknown.
        cached: for tokens read from a cache; None where the model has no such price.
        written: for tokens written; None where unknown.
    """

    basis: Basis
    package: str
    note: str = ""
    read: Rate | None = None
    cached: Rate | None = None
    written: Rate | None = None

    def price(self, usage: TokenUsage) -> Price:
        """What one request cost.

        Per request, never for a sum: long requests may have a price of their own. Tokens written
        to a cache are paid as plain input, since results do not tell them apart; such writes are
        only made by requests that ask for them.
        """
        if self.read is None or self.written is None:
            return Price(None, "unknown", self.package, self.note)
        read, written, cached = usage.input_tokens, usage.output_tokens, usage.cached_tokens or 0
        if read is None or written is None:
            return Price(None, "unknown", self.package, "the result does not say its tokens")
        if not 0 <= cached <= read or written < 0:
            return Price(None, "unknown", self.package, "the result's token counts are impossible")
        cache_rate = self.cached or self.read
        total = (
            (read - cached) * self.read.at(read)
            + cached * cache_rate.at(read)
            + written * self.written.at(read)
        )
        return Price(total.scaleb(-_MILLION), self.basis, self.package, self.note)

    def as_text(self) -> str:
        """The rates on one line, to be kept with a job."""
        if self.read is None or self.written is None:
            return f"unknown ({self.package}: {self.note})"
        cached = "" if self.cached is None else f", cached input {self.cached}"
        return (
            f"input {self.read}{cached}, output {self.written} {CURRENCY} a million tokens "
            f"({self.basis}; {self.package})"
        )


def price_of(
    provider: str,
    model: str,
    mode: Literal["batch", "online"],
    usage: TokenUsage,
    at: datetime,
) -> Price:
    """What one request cost. For many requests of one model, keep `rates_of`.

    Raises:
        NaiveTime: `at` has no time zone.
    """
    return rates_of(provider, model, mode, at).price(usage)


def rates_of(provider: str, model: str, mode: Literal["batch", "online"], at: datetime) -> Rates:
    """A model's prices as they were at a time.

    Args:
        provider: as in a spec.
        model: the provider's name of the model; on Bedrock also that of an inference profile.
        mode: how it was asked.
        at: when it was asked.

    Raises:
        NaiveTime: `at` has no time zone.
    """
    if at.tzinfo is None:
        raise NaiveTime(at)
    package = package_version()
    found = _find_model(provider, model)
    if found is None:
        return Rates("unknown", package, f"no price of {model!r} from {provider!r}")
    prices = found.get_prices(at, {"processing": "batch"} if mode == "batch" else None)
    read, written = _rate(prices.input_mtok), _rate(prices.output_mtok)
    if read is None or written is None:
        return Rates("unknown", package, f"no price of text tokens for {model!r}")
    cached = _rate(prices.cache_read_mtok)
    if mode == "online":
        return Rates("standard", package, "", read, cached, written)
    if _has_batch_price(found, at):
        return Rates("batch", package, "", read, cached, written)
    return Rates(
        "half of standard (estimated)",
        package,
        f"no batch price of {model!r} on that date; half of the standard price is taken",
        _halved(read),
        None if cached is None else _halved(cached),
        _halved(written),
    )


@cache
def package_version() -> str:
    """The price data in use, to be kept with every amount."""
    return f"genai-prices {version('genai-prices')}"


def _find_model(provider: str, model: str) -> ModelInfo | None:
    """The model's prices at this vendor itself, never another vendor's for the same model."""
    from genai_prices.data import providers

    vendor = next((known for known in providers if known.id == _VENDORS.get(provider)), None)
    return None if vendor is None else vendor.find_model(model)


def _has_batch_price(model: ModelInfo, at: datetime) -> bool:
    """Does the data say what a batch costs then? One that names no figure means the full price."""
    return any(
        variant.when == {"processing": "batch"}
        and (variant.constraint is None or variant.constraint.active(at))
        for variant in model.price_variants or ()
    )


def _rate(price: Decimal | TieredPrices | None) -> Rate | None:
    if price is None or isinstance(price, Decimal):
        return None if price is None else Rate(price)
    return Rate(price.base, tuple((tier.start, tier.price) for tier in price.tiers))


def _halved(rate: Rate) -> Rate:
    return Rate(
        rate.base * BATCH_SHARE,
        tuple((start, price * BATCH_SHARE) for start, price in rate.steps),
    )
