"""Score what a run answered against gold labels: pure scoring, and a small command.

    python -m tests.benchmarks.score_baseline LABELS.jsonl OUTCOMES.jsonl EXPORT.jsonl --prefix dev/

Reads the lines of `tallybook outcomes --json` and `tallybook export` (several files are joined by
`document_id`) and prints a table. What the labels mean, and which deviations they tolerate, is
told in the README beside them. Nothing here knows how an answer was found.
"""

from __future__ import annotations

import argparse
import json
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from resources.sources.document_id import escape_path

ACCEPTED_STATES = frozenset({"accepted", "published"})


class UnusableInput(ValueError):
    """A labels or outcomes file cannot be read as JSON lines of the expected shape."""


@dataclass(frozen=True)
class Outcome:
    """What a run says of one file.

    Attributes:
        state: the record's state, or "excluded".
        title: the title, or None.
        product_identifiers: those reported as found.
        language: ISO 639-1 code, or None.
    """

    state: str
    title: str | None = None
    product_identifiers: tuple[str, ...] = ()
    language: str | None = None


@dataclass(frozen=True)
class Miss:
    """One wrong value of an accepted record."""

    file: str
    field: str
    got: str
    expected: str


@dataclass(frozen=True)
class Score:
    """Counts over the readable labelled documents; copies of the same bytes count once.

    Attributes:
        documents: how many there are.
        accepted: how many were accepted without a person.
        titles, identifiers, languages: (right, reported) among the accepted.
        title_recall, identifier_recall, language_recall: (right, expected) among all documents,
            accepted or not.
        misses: every wrong value of an accepted record.
    """

    documents: int = 0
    accepted: int = 0
    titles: tuple[int, int] = (0, 0)
    identifiers: tuple[int, int] = (0, 0)
    languages: tuple[int, int] = (0, 0)
    title_recall: tuple[int, int] = (0, 0)
    identifier_recall: tuple[int, int] = (0, 0)
    language_recall: tuple[int, int] = (0, 0)
    misses: tuple[Miss, ...] = field(default=())

    @property
    def accepted_share(self) -> float:
        """Accepted documents over all readable labelled ones."""
        return share((self.accepted, self.documents))


def share(counts: tuple[int, int]) -> float:
    """Right over all; 1.0 when there is nothing to be wrong about."""
    right, total = counts
    return right / total if total else 1.0


def normal(text: str) -> str:
    """The form that titles and identifiers are compared in: NFKC, case folded, alphanumerics."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(character for character in folded if character.isalnum())


def score(labels: Iterable[Mapping[str, Any]], outcomes: Mapping[str, Outcome]) -> Score:
    """Compare outcomes, by the labels' `file`, with the labels. A file without outcome is open."""
    total = Score()
    for copies in _by_content(labels):
        outcome = _outcome_of(copies, outcomes)
        total = _add(total, _score_one(copies[0], outcome))
    return total


def _by_content(labels: Iterable[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for label in labels:
        if label.get("labelled") and label.get("readable"):
            groups.setdefault(label["sha256"], []).append(label)
    return [sorted(group, key=lambda label: "duplicate_of" in label) for group in groups.values()]


def _outcome_of(
    copies: Sequence[Mapping[str, Any]], outcomes: Mapping[str, Outcome]
) -> Outcome | None:
    """The outcome of the copy that became a record; the others are excluded as duplicates."""
    known = [outcomes[label["file"]] for label in copies if label["file"] in outcomes]
    records = [outcome for outcome in known if outcome.state != "excluded"]
    return (records or known or [None])[0]


def _score_one(label: Mapping[str, Any], outcome: Outcome | None) -> Score:
    got = outcome or Outcome(state="open")
    titles = _titles(label)
    title_right = got.title is not None and normal(got.title) in titles
    expected = {normal(value): value for value in label.get("product_identifiers") or ()}
    good = _good_identifiers(label)
    reported = [value for value in got.product_identifiers if normal(value) not in _neutral(label)]
    strict = label.get("identifiers_complete") is not False and not label.get("ambiguous")
    counted = [value for value in reported if strict or normal(value) in good]
    hit = {good[normal(value)] for value in reported if normal(value) in good}
    languages = _languages(label)
    language_right = got.language in languages
    accepted = got.state in ACCEPTED_STATES
    misses: list[Miss] = []
    if accepted and got.title is not None and not title_right:
        misses.append(Miss(label["file"], "title", got.title, str(label.get("title"))))
    if accepted:
        misses.extend(
            Miss(
                label["file"], "product_identifiers", value, ", ".join(expected.values()) or "none"
            )
            for value in counted
            if normal(value) not in good
        )
        if got.language is not None and not language_right:
            misses.append(Miss(label["file"], "language", got.language, "/".join(languages)))
    right_identifiers = sum(normal(value) in good for value in counted)
    return Score(
        documents=1,
        accepted=int(accepted),
        titles=(int(title_right), int(got.title is not None)) if accepted else (0, 0),
        identifiers=(right_identifiers, len(counted)) if accepted else (0, 0),
        languages=(int(language_right), int(got.language is not None)) if accepted else (0, 0),
        title_recall=(int(title_right), 1) if label.get("title") else (0, 0),
        identifier_recall=(len(hit & set(expected)), len(expected)) if strict else (0, 0),
        language_recall=(int(language_right), 1) if label.get("language") else (0, 0),
        misses=tuple(misses),
    )


def _titles(label: Mapping[str, Any]) -> frozenset[str]:
    titles = [label.get("title"), *(label.get("title_alternatives") or ())]
    return frozenset(normal(title) for title in titles if title)


def _good_identifiers(label: Mapping[str, Any]) -> dict[str, str]:
    """Normal form of every right identifier, to the normal form of the one that it stands for."""
    good = {normal(value): normal(value) for value in label.get("product_identifiers") or ()}
    for value, alternatives in (label.get("identifier_alternatives") or {}).items():
        good.update({normal(alternative): normal(value) for alternative in alternatives})
    return good


def _neutral(label: Mapping[str, Any]) -> frozenset[str]:
    values = [*(label.get("optional_identifiers") or ()), *(label.get("also_mentioned") or ())]
    return frozenset(normal(value) for value in values) - set(_good_identifiers(label))


def _languages(label: Mapping[str, Any]) -> tuple[str, ...]:
    several = label.get("languages") if label.get("ambiguous") else None
    return tuple(several or [label["language"]])


def _add(left: Score, right: Score) -> Score:
    def both(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
        return first[0] + second[0], first[1] + second[1]

    return Score(
        documents=left.documents + right.documents,
        accepted=left.accepted + right.accepted,
        titles=both(left.titles, right.titles),
        identifiers=both(left.identifiers, right.identifiers),
        languages=both(left.languages, right.languages),
        title_recall=both(left.title_recall, right.title_recall),
        identifier_recall=both(left.identifier_recall, right.identifier_recall),
        language_recall=both(left.language_recall, right.language_recall),
        misses=left.misses + right.misses,
    )


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read a file of JSON objects, one a line.

    Raises:
        UnusableInput: a line is no JSON object.
        OSError: the file cannot be read.
    """
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise UnusableInput(
                f"{path}, line {number} is no JSON ({error.msg}); expected one object a line"
            ) from error
        if not isinstance(row, dict):
            raise UnusableInput(f"{path}, line {number} is no JSON object; expected one a line")
        rows.append(row)
    return rows


def outcomes_by_file(
    rows: Iterable[Mapping[str, Any]], labels: Iterable[Mapping[str, Any]], prefix: str
) -> dict[str, Outcome]:
    """Join rows by `document_id` and name them by the labels' `file`.

    Args:
        rows: rows of one or several exports; later ones add to earlier ones.
        labels: the label rows.
        prefix: what stands in a `document_id` before the path, such as "dev/". The path may or
            may not begin with the folder "files/" of the labels.

    Raises:
        UnusableInput: a row has no `document_id`.
    """
    joined: dict[str, dict[str, Any]] = {}
    for row in rows:
        if not isinstance(row.get("document_id"), str):
            raise UnusableInput("a row has no document_id; expected lines of outcomes or export")
        joined.setdefault(row["document_id"], {}).update(
            {key: value for key, value in row.items() if value is not None}
        )
    found: dict[str, Outcome] = {}
    for label in labels:
        for path in (label["file"], label["file"].removeprefix("files/")):
            row = joined.get(prefix + escape_path(path.encode()))
            if row is not None:
                found[label["file"]] = _outcome(row)
    return found


def _outcome(row: Mapping[str, Any]) -> Outcome:
    nested = row.get("values")
    values: Mapping[str, Any] = nested if isinstance(nested, dict) else row
    identifiers = [_value(item) for item in values.get("product_identifiers") or ()]
    return Outcome(
        state=str(row.get("state", "unknown")),
        title=_value(values.get("title")),
        product_identifiers=tuple(value for value in identifiers if value is not None),
        language=_value(values.get("language")),
    )


def _value(item: Any) -> str | None:
    """A plain value, or the value of a field that is found."""
    if isinstance(item, dict):
        return item.get("value") if item.get("status", "found") == "found" else None
    return item


def table(result: Score) -> str:
    """The score as a text table, misses below."""
    rows = [
        ("accepted", (result.accepted, result.documents)),
        ("title, right among accepted", result.titles),
        ("identifiers, right among accepted", result.identifiers),
        ("language, right among accepted", result.languages),
        ("title, right among all", result.title_recall),
        ("identifiers, found among all", result.identifier_recall),
        ("language, right among all", result.language_recall),
    ]
    lines = [
        f"{name:<36}{counts[0]:>5} of {counts[1]:<5}{share(counts):>7.1%}" for name, counts in rows
    ]
    lines += [
        f"wrong {miss.field} in {miss.file}: {miss.got!r}, expected {miss.expected!r}"
        for miss in result.misses
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Score files and print the table; exit status 1 when a file cannot be used."""
    parser = argparse.ArgumentParser(description="Score a run against gold labels.")
    parser.add_argument("labels", type=Path, help="labels.jsonl")
    parser.add_argument("outcomes", type=Path, nargs="+", help="JSON lines of outcomes or export")
    parser.add_argument("--prefix", default="", help='document_id before the path, e.g. "dev/"')
    options = parser.parse_args(arguments)
    try:
        labels = read_lines(options.labels)
        rows = [row for path in options.outcomes for row in read_lines(path)]
        result = score(labels, outcomes_by_file(rows, labels, options.prefix))
    except (UnusableInput, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(table(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
