"""The digest of a manifest: fixed bytes that anyone can compute again."""

from __future__ import annotations

import hashlib
from typing import Any

import polars as pl
import pytest

from resources.contracts import MANIFEST, ContractRefused
from resources.ledger.manifests import ManifestDigest

ROW: dict[str, Any] = {
    "record_id": "w:m/ü\u2028𝒳.pdf@aaaaaaaaaaaa:v-1",
    "business_key": "m/ü\u2028𝒳.pdf",
    "operation": "extract",
    "schema_version": 1,
    "source_checksum": "a" * 64,
    "request_digest": "b" * 64,
    "replay_reason": "new_source",
    "batch": 0,
    "offset": 0,
    "length": 17,
}
CANONICAL = (
    '["w:m/ü\u2028𝒳.pdf@aaaaaaaaaaaa:v-1","m/ü\u2028𝒳.pdf","extract",1,'
    f'"{"a" * 64}","{"b" * 64}","new_source",0,0,17]\n'
)
"""Written out by hand: JSON of strings and integers, UTF-8, no blanks, one row a line."""
GOLDEN = "ed2270003abdeb45158115a686f34fd958b8e424f80766fd903baabf80230703"


def frame(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=dict(MANIFEST.schema))


def digest(*shards: pl.DataFrame) -> str:
    made = ManifestDigest()
    for shard in shards:
        made.add(shard)
    return made.hexdigest()


def test_the_digest_of_a_known_row() -> None:
    assert digest(frame(ROW)) == hashlib.sha256(CANONICAL.encode()).hexdigest() == GOLDEN


def test_no_rows() -> None:
    assert digest() == digest(frame()) == hashlib.sha256(b"").hexdigest()


def test_shards_do_not_change_it() -> None:
    other = ROW | {"record_id": "x"}
    assert digest(frame(ROW), frame(other)) == digest(frame(ROW, other))
    assert digest(frame(other, ROW)) != digest(frame(ROW, other))


def test_the_order_of_columns_does_not_change_it() -> None:
    assert digest(frame(ROW).select(sorted(ROW))) == digest(frame(ROW))


@pytest.mark.parametrize("name", list(ROW))
def test_every_value_changes_it(name: str) -> None:
    value = ROW[name]
    other = value + 1 if isinstance(value, int) else value + "x"
    assert digest(frame(ROW | {name: other})) != digest(frame(ROW))


def test_a_frame_of_another_shape_is_refused() -> None:
    with pytest.raises(ContractRefused):
        digest(frame(ROW).drop("offset"))
