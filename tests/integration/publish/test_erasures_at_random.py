"""Documents come, go, are erased, processed again and rolled back: what is erased stays so."""

from __future__ import annotations

import random

import polars as pl
import pytest

from pipeline_assets.account import health, integrity
from pipeline_assets.account.explain import explain
from pipeline_assets.account.export import export_entries
from pipeline_assets.account.report import build_report
from pipeline_assets.compare.compare import compare_versions
from pipeline_assets.erasure.plan import ErasureRefused
from pipeline_assets.erasure.purge import erase
from pipeline_assets.prepare.replays import freeze_replay
from pipeline_assets.replay.model import ReplayRequest
from pipeline_assets.retention.policy import RetentionPolicy
from pipeline_assets.retention.prune import prune
from tests.integration.erasure.support import words_in
from tests.integration.publish.market import Market
from tests.integration.publish.support import ONE, TWO
from tests.integration.stages.support import manual

NAMES = ("pump.txt", "copy.txt", "fan.txt", "saw.txt")
TEXTS = {"pump.txt": "PQX", "copy.txt": "PQX", "fan.txt": "FQX", "saw.txt": "SQX"}
"""What a document's model begins with: the copy has the bytes of the pump."""
DAY = 24 * 3600


class World:
    """Whatever an operator and the folder's owner may do, one thing at a time."""

    def __init__(self, market: Market, rng: random.Random) -> None:
        self.market, self.rng = market, rng
        self.erased: set[str] = set()
        self.replays = 0
        for path in market.folder.iterdir():
            path.unlink()

    def step(self) -> str:
        """Do something; says what."""
        act = self.rng.choice(
            (
                *(self.put, self.put, self.remove, self.run, self.run, self.erase, self.replay),
                *(self.roll_back, self.roll_back_one, self.promote, self.prune),
                self.change_policy,
            )
        )
        name = self.rng.choice(NAMES)
        act(name)
        return f"{act.__name__} {name}"

    def put(self, name: str) -> None:
        model = f"{TEXTS[name]}-{self.rng.randrange(2)}00"
        self.market.write(name, manual("Machine", model))

    def remove(self, name: str) -> None:
        (self.market.folder / name).unlink(missing_ok=True)

    def run(self, _: str) -> None:
        self.market.settle(self.rng.choice((ONE, TWO)))

    def erase(self, name: str) -> None:
        known = self.known()
        document = f"shop/{name}"
        if document in known:
            try:
                erase(self.market.context, known[document], document, "asked", "Ada")
            except ErasureRefused:  # a replay of it is under way
                return
            self.erased.add(document)

    def roll_back(self, _: str) -> None:
        if self.known():
            self.market.rollback(self.rng.choice((ONE, TWO)))

    def roll_back_one(self, name: str) -> None:
        if f"shop/{name}" in self.known():
            self.market.rollback_document(f"shop/{name}")

    def replay(self, name: str) -> None:
        """Process a document again, or under the other version; half of the time, do not end it."""
        pair = [self.rng.choice((ONE, TWO)), self.rng.choice((ONE, TWO))]
        states = [self.market.states(key) for key in pair]
        if not all(states) or f"shop/{name}" not in states[0]:
            return
        self.replays += 1
        asked = ReplayRequest(
            f"r-{self.replays}", pair[0], None, (f"shop/{name}",), None, "for the test", "ada"
        )
        freeze_replay(self.market.context, self.market.version(pair[1]), asked)
        if self.rng.random() < 0.5:
            self.market.settle(pair[1])

    def promote(self, _: str) -> None:
        self.market.promote(self.rng.choice((ONE, TWO)))

    def prune(self, _: str) -> None:
        self.market.clock.advance(DAY)
        policy = RetentionPolicy(what=("results", "requests", "parses")).older_than(0)
        prune(self.market.context, policy, "full", "Ada")

    def change_policy(self, _: str) -> None:
        self.market.declare(self.rng.choice(("keep", "withdraw")))

    def known(self) -> dict[str, int]:
        return dict(
            self.market.query(
                "SELECT document_id, document_no FROM documents",
                {"document_id": pl.String, "document_no": pl.Int64},
            ).iter_rows()
        )

    def require(self) -> None:
        """Fail where something erased is there, or something else is not whole."""
        market, context = self.market, self.market.context
        market.require_whole()
        shown = market.shown()
        assert not set(shown) & self.erased
        for key in (ONE, TWO):
            if market.states(key):
                told = build_report(context, key).violations
                # A version that did not run since the folder changed does not know it yet.
                assert [each for each in told if "neither a record" not in each] == []
                for name in self.known():
                    explain(context, name, key)
        found = [*health.look(context), *integrity.diagnose(context)]
        assert [(problem.kind, problem.what) for problem in found if problem.broken] == []
        contents = market.query(
            "SELECT d.document_id, e.content, e.valid_to IS NULL AS shown FROM archive_entries e "
            "JOIN documents d ON d.document_no = e.document_no",
            {"document_id": pl.String, "content": pl.String, "shown": pl.Int64},
        )
        for document, content, _ in contents.iter_rows():
            assert (content == "{}") == (document in self.erased)
        alone = [name for name in ("fan.txt", "saw.txt") if f"shop/{name}" in self.erased]
        words = tuple(TEXTS[name] for name in alone)
        assert words_in(context.settings.state_folder, words) == {}
        assert {row["document_id"] for row in export_entries(context)} == set(shown)
        if market.states(ONE) and market.states(TWO):
            compare_versions(context, ONE, TWO)


@pytest.mark.parametrize(
    ("seed", "steps"),
    [
        pytest.param(1, 12, id="a short one"),
        *(pytest.param(seed, 60, id=f"seed {seed}", marks=pytest.mark.slow) for seed in range(8)),
    ],
)
def test_what_was_erased_stays_so(market: Market, seed: int, steps: int) -> None:
    world = World(market, random.Random(seed))
    done: list[str] = []
    for _ in range(steps):
        done.append(world.step())
        try:
            world.require()
        except Exception as error:
            error.add_note(" → ".join(done))
            raise
