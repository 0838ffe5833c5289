"""A proof's page: whoever has it checks it with SHA-256 alone, and any change of it shows."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from pipeline_assets.account.reconciliation.outcomes import OUTCOMES
from pipeline_assets.audit.proof import FORMAT, NoProof, verify_page
from resources.merkle import proof_of, root_of


def row(number: int) -> list[Any]:
    """A row of outcomes with something of each type in it."""
    values: list[Any] = [OUTCOMES.tag]
    for name in OUTCOMES.schema:
        values.append({"attempts": number, "present": True}.get(name, f"{name} {number}"))
    return values


def page_of(count: int, index: int) -> dict[str, Any]:
    leaves = [json.dumps(row(number), separators=(",", ":")) for number in range(count)]
    encoded = [leaf.encode() for leaf in leaves]
    proof = proof_of(encoded, index)
    return {
        "format": FORMAT,
        "leaf": leaves[index],
        "outcome": dict(zip(OUTCOMES.schema, row(index)[1:], strict=True)),
        "index": index,
        "count": count,
        "path": list(proof.path),
        "root": root_of(encoded),
        "report": {"report_no": 1},
        "closing": None,
    }


def outsider_says(page: dict[str, Any], root: str) -> bool:
    """The algorithm as docs/audit.md tells it, and nothing of ours."""

    def sha(data: bytes) -> bytes:
        return hashlib.sha256(data).digest()

    value = sha(b"\x00" + page["leaf"].encode())
    path = [bytes.fromhex(step) for step in page["path"]]
    i, last = page["index"], page["count"] - 1
    while last:
        if i % 2:
            value = sha(b"\x01" + path.pop(0) + value)
        elif i < last:
            value = sha(b"\x01" + value + path.pop(0))
        i, last = i // 2, last // 2
    return not path and value.hex() == root


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13])
def test_an_outsider_and_the_command_say_the_same(count: int) -> None:
    for index in range(count):
        page = page_of(count, index)
        assert outsider_says(page, page["root"])
        assert verify_page(json.dumps(page).encode(), page["root"]).holds
        assert verify_page(json.dumps(page).encode()).holds


def changed(**changes: Any) -> dict[str, Any]:
    return page_of(5, 2) | changes


@pytest.mark.parametrize(
    ("page", "why"),
    [
        pytest.param(changed(leaf=page_of(5, 3)["leaf"]), "outcome", id="another leaf"),
        pytest.param(changed(outcome=page_of(5, 3)["outcome"]), "outcome", id="another outcome"),
        pytest.param(
            changed(leaf=page_of(5, 3)["leaf"], outcome=page_of(5, 3)["outcome"]),
            "does not lead",
            id="another leaf with its outcome",
        ),
        pytest.param(changed(index=3), "does not lead", id="another place"),
        pytest.param(changed(index=5), "path does not fit", id="a place outside"),
        pytest.param(page_of(5, 4) | {"count": 6}, "path does not fit", id="another size"),
        pytest.param(changed(path=[]), "path does not fit", id="no path"),
        pytest.param(changed(path=["zz"] * 3), "path does not fit", id="a path of no hashes"),
        pytest.param(changed(root="a" * 64), "does not lead", id="another root"),
    ],
)
def test_a_changed_proof_proves_nothing(page: dict[str, Any], why: str) -> None:
    verdict = verify_page(json.dumps(page).encode())
    assert not verdict.holds
    assert why in verdict.why


def test_another_root_than_the_trusted_one() -> None:
    page = json.dumps(page_of(5, 2)).encode()
    verdict = verify_page(page, "b" * 64)
    assert (verdict.holds, "another root" in verdict.why) == (False, True)
    assert verify_page(page, f" {page_of(5, 2)['root'].upper()}\n").holds


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\xff\xfe", id="not text"),
        pytest.param(b"{}", id="no members"),
        pytest.param(json.dumps(changed(format="other/1")).encode(), id="another format"),
        pytest.param(json.dumps(changed(index="2")).encode(), id="a number as text"),
        pytest.param(b" " * (1 << 21), id="too large"),
        pytest.param(b"[" * 100_000, id="deeply nested"),
    ],
)
def test_what_is_no_proof_is_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(NoProof, match="this is no proof"):
        verify_page(data)
