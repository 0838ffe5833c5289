"""Faults of whole result files: lines that are missing, doubled, strange, damaged or exchanged.

Belongs here: what is done to lines that a provider's module has already rendered. Does not belong
here: how a line is rendered, and faults of one row's answer (`answers.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.provider_emulator.faults import Fault
from tests.provider_emulator.world import World

Lines = list[tuple[str, bytes]]
"""Row id and rendered line without its line feed, in the order of the result file."""

ALIEN_ID = "not-asked-for-0001"


def mangle_lines(
    world: World,
    provider: str,
    job_id: str,
    lines: Lines,
    alien: Callable[[str], bytes],
    differ: Callable[[bytes], bytes] | None = None,
) -> list[bytes]:
    """Return the lines of a result file with the planted `lines` faults done to them.

    Call it once a job and result file. The plan is asked with the facts `job_id`, `rows`; every
    fault that strikes is carried out, in the order in which they were planted. Lines that
    `missing` keeps back come with the job that `late` strikes, behind its own.

    Args:
        world: holds the plan, the randomness and the lines that were kept back.
        provider: whose job it is.
        job_id: the job's id.
        lines: the rendered lines; not changed.
        alien: renders a successful line for an id.
        differ: renders a line's second, different version for `duplicate_differs`; without it
            the line of the next row is taken, under the first one's id.

    Returns:
        Lines without line feeds; after `crlf` each ends in a carriage return.
    """
    mangled = list(lines)
    held_back: Lines = world.state.setdefault(f"{provider}.held_back", [])
    for fault in world.faults.take_all(provider, "lines", job_id=job_id, rows=len(lines)):
        if fault.kind == "late":
            mangled += held_back
            held_back.clear()
            continue
        before = mangled
        mangled = _MANGLERS[fault.kind](world, before, fault, alien, differ)
        if fault.kind == "missing":
            held_back += [line for line in before if line not in mangled]
    return [line for _, line in mangled]


def _index(fault: Fault, lines: Lines, name: str = "index", default: int = 0) -> int:
    """Return a row's place out of a fault's arguments, kept within the file."""
    return int(fault.args.get(name, default)) % len(lines) if lines else 0


def _renamed(line: bytes, old: str, new: str) -> bytes:
    """Return a line with its id, where it first stands as a JSON string, replaced."""
    return line.replace(f'"{old}"'.encode(), f'"{new}"'.encode(), 1)


def _missing(_w: World, lines: Lines, fault: Fault, *_: Any) -> Lines:
    at = _index(fault, lines)
    return lines[:at] + lines[at + 1 :]


def _duplicate(_w: World, lines: Lines, fault: Fault, *_: Any) -> Lines:
    at = _index(fault, lines)
    return [*lines, *lines[at : at + 1]]


def _duplicate_differs(
    _w: World,
    lines: Lines,
    fault: Fault,
    alien: Callable[[str], bytes],
    differ: Callable[[bytes], bytes] | None,
) -> Lines:
    if not lines:
        return lines
    at = _index(fault, lines)
    row_id, line = lines[at]
    other_id, other = lines[(at + 1) % len(lines)]
    if differ is not None:
        second = differ(line)
    elif other_id == row_id:
        second = alien(row_id)
    else:
        second = _renamed(other, other_id, row_id)
    return [*lines, (row_id, second)]


def _alien(_w: World, lines: Lines, fault: Fault, alien: Callable[[str], bytes], *_: Any) -> Lines:
    row_id = str(fault.args.get("custom_id", ALIEN_ID))
    return [*lines, (row_id, alien(row_id))]


def _malformed(_w: World, lines: Lines, fault: Fault, *_: Any) -> Lines:
    at = _index(fault, lines)
    return [
        (row_id, line[: max(1, len(line) // 2)] if place == at else line)
        for place, (row_id, line) in enumerate(lines)
    ]


def _shuffle(world: World, lines: Lines, *_: Any) -> Lines:
    shuffled = list(lines)
    world.rng.shuffle(shuffled)
    return shuffled


def _swap(_w: World, lines: Lines, fault: Fault, *_: Any) -> Lines:
    if len(lines) < 2:
        return lines
    a, b = _index(fault, lines, "a"), _index(fault, lines, "b", 1)
    swapped = list(lines)
    (id_a, line_a), (id_b, line_b) = lines[a], lines[b]
    swapped[a] = (id_a, _renamed(line_b, id_b, id_a))
    swapped[b] = (id_b, _renamed(line_a, id_a, id_b))
    return swapped


def _crlf(_w: World, lines: Lines, *_: Any) -> Lines:
    return [(row_id, line + b"\r") for row_id, line in lines]


def _shift(_w: World, lines: Lines, *_: Any) -> Lines:
    ids = [row_id for row_id, _ in lines]
    return [
        (new, _renamed(line, old, new))
        for (old, line), new in zip(lines, ids[1:] + ids[:1], strict=True)
    ]


_MANGLERS: dict[str, Callable[..., Lines]] = {
    "missing": _missing,
    "duplicate": _duplicate,
    "duplicate_differs": _duplicate_differs,
    "alien": _alien,
    "malformed": _malformed,
    "shuffle": _shuffle,
    "swap": _swap,
    "crlf": _crlf,
    "shift": _shift,
}
