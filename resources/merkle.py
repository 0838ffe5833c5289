"""Merkle trees as RFC 6962 defines them: a root over rows, and the proof that one row is in it.

Belongs here: hashing of leaves and nodes, roots, inclusion proofs and their verification. Does not
belong here: what a leaf says (`account`), and the page that holds a proof (`audit`).

Source: RFC 6962, section 2.1. A leaf is SHA-256(0x00 || data), a node SHA-256(0x01 || left ||
right), a list splits at the largest power of two below its length, and the root of nothing is
SHA-256 of nothing. The two first bytes keep a node from passing as a leaf.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Side = Literal["left", "right"]


class NoSuchLeaf(Exception):
    """A proof was asked for a leaf that the tree does not have."""

    def __init__(self, index: int, count: int) -> None:
        super().__init__(
            f"the tree has {count} leaves, numbered from 0: there is no leaf {index}. "
            "Ask for a number that the tree has."
        )


@dataclass(frozen=True)
class Proof:
    """That a leaf stands at an index of a tree.

    Attributes:
        index: number of the leaf, from 0.
        count: leaves of the tree.
        path: the hashes to combine with, in hexadecimal, from the leaf to the root.
    """

    index: int
    count: int
    path: tuple[str, ...]


def leaf_hash(leaf: bytes) -> bytes:
    """The hash of a leaf's bytes (32 bytes)."""
    return hashlib.sha256(b"\x00" + leaf).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of two neighbours' hashes (32 bytes)."""
    return hashlib.sha256(b"\x01" + left + right).digest()


class MerkleAccumulator:
    """Takes leaves one by one and keeps one hash a level: memory grows with the logarithm."""

    def __init__(self) -> None:
        self._peaks: list[bytes | None] = []
        self._count = 0

    @property
    def count(self) -> int:
        """Leaves taken so far."""
        return self._count

    def add(self, leaf: bytes) -> None:
        """Take the next leaf."""
        carried = leaf_hash(leaf)
        for level, peak in enumerate(self._peaks):
            if peak is None:
                self._peaks[level] = carried
                break
            carried = node_hash(peak, carried)
            self._peaks[level] = None
        else:
            self._peaks.append(carried)
        self._count += 1

    def root(self) -> str:
        """The root over all leaves so far, in hexadecimal."""
        root: bytes | None = None
        for peak in self._peaks:
            if peak is not None:
                root = peak if root is None else node_hash(peak, root)
        return (hashlib.sha256().digest() if root is None else root).hex()


def root_of(leaves: Iterable[bytes]) -> str:
    """The root over leaves, in hexadecimal, in one pass."""
    tree = MerkleAccumulator()
    for leaf in leaves:
        tree.add(leaf)
    return tree.root()


def proof_of(leaves: Iterable[bytes], index: int) -> Proof:
    """The proof for the leaf at an index, in one pass and logarithmic memory.

    Raises:
        NoSuchLeaf: there is no leaf of that number.
    """
    # A peak of 2^level leaves from `start` on; whether the wanted leaf is below it tells which
    # hashes its path needs, at the moment that two peaks are joined.
    peaks: list[tuple[int, int, bytes]] = []
    path: list[bytes] = []
    count = 0
    for count, leaf in enumerate(leaves, 1):
        peaks.append((0, count - 1, leaf_hash(leaf)))
        while len(peaks) > 1 and peaks[-2][0] == peaks[-1][0]:
            right, left = peaks.pop(), peaks.pop()
            _join(path, index, left, right, count)
            peaks.append((left[0] + 1, left[1], node_hash(left[2], right[2])))
    if not 0 <= index < count:
        raise NoSuchLeaf(index, count)
    while len(peaks) > 1:
        right, left = peaks.pop(), peaks.pop()
        _join(path, index, left, right, count)
        peaks.append((left[0] + 1, left[1], node_hash(left[2], right[2])))
    return Proof(index=index, count=count, path=tuple(step.hex() for step in path))


def _join(
    path: list[bytes],
    index: int,
    left: tuple[int, int, bytes],
    right: tuple[int, int, bytes],
    end: int,
) -> None:
    if left[1] <= index < right[1]:
        path.append(right[2])
    elif right[1] <= index < end:
        path.append(left[2])


def sides_of(index: int, count: int) -> list[Side]:
    """On which side of each step of a path its hash stands, from the leaf to the root.

    Raises:
        NoSuchLeaf: there is no leaf of that number.
    """
    if not 0 <= index < count:
        raise NoSuchLeaf(index, count)
    sides: list[Side] = []
    last = count - 1
    while last:
        if index % 2 or index < last:
            sides.append("left" if index % 2 else "right")
        index //= 2
        last //= 2
    return sides


def root_by(leaf: bytes, proof: Proof) -> str | None:
    """The root that a proof leads to; None where the path does not fit the place in the tree."""
    try:
        sides = sides_of(proof.index, proof.count)
        steps = [bytes.fromhex(step) for step in proof.path]
    except (NoSuchLeaf, ValueError):
        return None
    if len(sides) != len(steps) or any(len(step) != 32 for step in steps):
        return None
    return _climb(leaf_hash(leaf), sides, steps).hex()


def _climb(start: bytes, sides: Sequence[Side], steps: Sequence[bytes]) -> bytes:
    found = start
    for side, step in zip(sides, steps, strict=True):
        found = node_hash(step, found) if side == "left" else node_hash(found, step)
    return found


def verify(leaf: bytes, proof: Proof, root: str) -> bool:
    """Does the proof show that the leaf is in the tree of that root?"""
    return root_by(leaf, proof) == root
