"""Documents that come, change, go and return at random: the archive shows what the policy says."""

from __future__ import annotations

import hashlib
import random

import polars as pl
import pytest

from tests.integration.publish.market import Market
from tests.integration.stages.support import manual

NAMES = {"pump.txt": "Pump", "fan.txt": "Fan", "saw.txt": "Saw"}
TEXTS = 2
"""So many different texts a document has."""


def _text(name: str, number: int) -> str:
    return manual(NAMES[name], f"{NAMES[name][:1]}X-{number}00")


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class World:
    """The folder as it should be told, step by step."""

    def __init__(self, market: Market, rng: random.Random) -> None:
        self.market, self.rng = market, rng
        self.held: dict[str, str] = {}
        self.shown: dict[str, str] = {}
        self.asked: set[str] = set()
        self.removed = "withdraw"
        for name in NAMES:
            (market.folder / name).unlink(missing_ok=True)

    def change(self) -> None:
        """Put, change or remove a document; now and then, change the policy."""
        name = self.rng.choice(sorted(NAMES))
        if name in self.held and self.rng.random() < 0.5:
            self.market.remove(name)
            del self.held[name]
        else:
            self.held[name] = _text(name, self.rng.randrange(TEXTS))
            self.market.write(name, self.held[name])
        if self.rng.random() < 0.15:
            self.removed = "keep" if self.removed == "withdraw" else "withdraw"
            self.market.declare(self.removed)

    def settle(self) -> None:
        """Run the version, and say what the archive has to show then."""
        self.market.settle()
        self.asked |= {_checksum(text) for text in self.held.values()}
        for name in NAMES:
            if name in self.held:
                self.shown[f"shop/{name}"] = _checksum(self.held[name])
            elif self.removed == "withdraw":
                self.shown.pop(f"shop/{name}", None)

    def require(self) -> None:
        """Fail where the archive shows anything else, or a model was asked twice."""
        found = self.market.query(
            "SELECT d.document_id, r.checksum FROM archive_heads h "
            "JOIN archive_entries e ON e.entry_no = h.entry_no "
            "JOIN records r ON r.record_no = e.record_no "
            "JOIN documents d ON d.document_no = h.document_no",
            {"document_id": pl.String, "checksum": pl.String},
        )
        assert dict(found.iter_rows()) == self.shown
        assert self.market.attempts() == len(self.asked)
        self.market.require_sound()


@pytest.mark.parametrize(
    ("seed", "steps"),
    [
        pytest.param(0, 5, id="a short one"),
        *(pytest.param(seed, 25, id=f"seed {seed}", marks=pytest.mark.slow) for seed in range(6)),
    ],
)
def test_the_archive_shows_what_the_policy_says(market: Market, seed: int, steps: int) -> None:
    rng = random.Random(seed)
    world = World(market, rng)
    for _ in range(steps):
        for _ in range(rng.randint(1, 3)):
            world.change()
            if rng.random() < 0.3:
                market.scan()
        world.settle()
        world.require()
