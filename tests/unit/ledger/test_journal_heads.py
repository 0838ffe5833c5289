"""Where a chain stood after so many moves, by its links alone."""

from __future__ import annotations

import pytest

from resources.ledger.audits import heads_digest
from resources.ledger.journal import head_after
from resources.ledger.moves import GENESIS

CHAIN = [
    {"previous_digest": "b", "digest": "c"},
    {"previous_digest": GENESIS, "digest": "a"},
    {"previous_digest": "a", "digest": "b"},
]


@pytest.mark.parametrize(
    ("count", "head"),
    [(0, GENESIS), (1, "a"), (2, "b"), (3, "c"), (4, None), (9, None)],
)
def test_the_head_after_so_many_moves(count: int, head: str | None) -> None:
    assert head_after(CHAIN, count) == head


def test_a_chain_without_its_start_has_no_heads() -> None:
    assert head_after(CHAIN[:1], 1) is None


def test_the_digest_over_heads_knows_names_and_heads_and_no_order() -> None:
    one = heads_digest({"batch:1": "a", "batch:2": "b"})
    assert one == heads_digest({"batch:2": "b", "batch:1": "a"})
    assert one != heads_digest({"batch:1": "b", "batch:2": "a"})
    assert one != heads_digest({"batch:1": "a"})
