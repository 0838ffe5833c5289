"""Merkle roots and proofs, against a recursive implementation written from RFC 6962 alone."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.merkle import (
    MerkleAccumulator,
    NoSuchLeaf,
    Proof,
    proof_of,
    root_by,
    root_of,
    verify,
)


def split_of(size: int) -> int:
    return 1 << ((size - 1).bit_length() - 1)


def plain_root(leaves: list[bytes]) -> bytes:
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\0" + leaves[0]).digest()
    at = split_of(len(leaves))
    return hashlib.sha256(b"\1" + plain_root(leaves[:at]) + plain_root(leaves[at:])).digest()


def plain_path(index: int, leaves: list[bytes]) -> list[bytes]:
    if len(leaves) == 1:
        return []
    at = split_of(len(leaves))
    if index < at:
        return [*plain_path(index, leaves[:at]), plain_root(leaves[at:])]
    return [*plain_path(index - at, leaves[at:]), plain_root(leaves[:at])]


some_leaves = st.lists(st.binary(max_size=6), max_size=70)
one_of_some = some_leaves.filter(bool).flatmap(
    lambda leaves: st.tuples(st.just(leaves), st.integers(0, len(leaves) - 1))
)


@pytest.mark.parametrize("size", range(40))
def test_root_and_every_path_are_those_of_the_standard(size: int) -> None:
    leaves = [b"row %d" % number for number in range(size)]
    assert root_of(leaves) == plain_root(leaves).hex()
    for index in range(size):
        proof = proof_of(leaves, index)
        assert proof.path == tuple(step.hex() for step in plain_path(index, leaves))
        assert verify(leaves[index], proof, root_of(leaves))


def test_the_published_vector_of_the_empty_tree() -> None:
    assert root_of([]) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@given(some_leaves)
def test_adding_one_by_one_gives_the_root_of_all(leaves: list[bytes]) -> None:
    tree = MerkleAccumulator()
    for leaf in leaves:
        tree.add(leaf)
    assert (tree.root(), tree.count) == (plain_root(leaves).hex(), len(leaves))


@given(one_of_some, st.data())
def test_any_change_breaks_a_proof(chosen: tuple[list[bytes], int], data: st.DataObject) -> None:
    leaves, index = chosen
    proof, root = proof_of(leaves, index), root_of(leaves)
    assert verify(leaves[index], proof, root)
    assert not verify(leaves[index] + b"!", proof, root)
    assert not verify(leaves[index], proof, hashlib.sha256(root.encode()).hexdigest())
    if proof.path:
        at = data.draw(st.integers(0, len(proof.path) - 1))
        wrong = hashlib.sha256(bytes.fromhex(proof.path[at])).hexdigest()
        path = (*proof.path[:at], wrong, *proof.path[at + 1 :])
        assert not verify(leaves[index], replace(proof, path=path), root)
        assert not verify(leaves[index], replace(proof, path=proof.path[1:]), root)


@pytest.mark.parametrize("index", [-1, 3, 4])
def test_a_leaf_that_is_not_there_has_no_proof(index: int) -> None:
    with pytest.raises(NoSuchLeaf, match="3 leaves"):
        proof_of([b"a", b"b", b"c"], index)


@pytest.mark.parametrize(
    "proof",
    [
        pytest.param(Proof(5, 3, ()), id="an index outside"),
        pytest.param(Proof(0, 1, ("zz",)), id="not hexadecimal"),
        pytest.param(Proof(0, 2, ("ab",)), id="a short hash"),
        pytest.param(Proof(0, 1, ("ab" * 32,)), id="a path too long"),
    ],
)
def test_a_proof_of_no_sense_proves_nothing(proof: Proof) -> None:
    assert not verify(b"a", proof, root_of([b"a"]))


@pytest.mark.parametrize("step", ["", "aa", "aa" * 31, "aa" * 33])
def test_a_step_that_is_no_hash_leads_nowhere(step: str) -> None:
    proof = proof_of([b"a", b"b"], 0)
    assert root_by(b"a", proof) is not None
    assert root_by(b"a", Proof(proof.index, proof.count, (step,))) is None
