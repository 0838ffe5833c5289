"""Reading one figure off a listing, as a reader does: `tallybook batch list --json | pick id`.

`pick KEY [NAME=PATTERN]...` prints the value of KEY in the first object that has it, however deep
it stands, and whose other members fit the patterns (`*` and `?` as in names of files).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any


def objects(text: str) -> Iterator[dict[str, Any]]:
    """Every object in JSON text, or in lines of it, the outer ones first."""
    decoder = json.JSONDecoder()
    place = 0
    while (place := _after_blank(text, place)) < len(text):
        value, place = decoder.raw_decode(text, place)
        yield from _objects_in(value)


def picked(text: str, key: str, patterns: dict[str, str]) -> str | None:
    """The value, or None where no object fits."""
    for each in objects(text):
        fits = all(fnmatchcase(str(each.get(name)), want) for name, want in patterns.items())
        if each.get(key) is not None and fits:
            return str(each[key])
    return None


def _after_blank(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _objects_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _objects_in(each)


def main(words: list[str]) -> int:
    """Print what is asked for; exit status 1 where there is none."""
    key, *rest = words
    patterns = dict(word.split("=", 1) for word in rest)
    text = sys.stdin.read()
    found = picked(text, key, patterns)
    if found is None:
        print(f"pick: nothing has {key} with {patterns} in: {text[:500]}", file=sys.stderr)
        return 1
    print(found)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
