"""Which dead letters are meant, and how they are grouped: decisions over frames.

Belongs here: choosing by name, by class or all, and grouping by cause. Does not belong here:
reading the frames and changing anything (`dead_letters.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

EXAMPLES = 3
"""A group, and a message, names so many documents."""
_CAUSE = ("failure_class", "diagnostics", "reason")


class SelectionUnclear(ValueError):
    """It is not said, or said twice, which dead letters are meant."""

    def __init__(self, found: list[str]) -> None:
        super().__init__(
            f"found {' and '.join(found) or 'nothing'} to choose by; expected exactly one of "
            "documents, --class and --all"
        )


class NothingSelected(LookupError):
    """No dead letter is of the class, or there is none at all."""

    def __init__(self, key: str, failure_class: str | None, classes: list[str]) -> None:
        meant = "no dead letter" if failure_class is None else f"no {failure_class!r} dead letter"
        there = f"the classes here are {', '.join(classes)}" if classes else "there is none at all"
        super().__init__(f"{key} has {meant} ({there}). Nothing was changed.")


class UnknownDeadLetter(LookupError):
    """A name that no dead letter has."""

    def __init__(self, key: str, names: list[str]) -> None:
        shown = ", ".join(repr(name) for name in names[:EXAMPLES])
        more = f" and {len(names) - EXAMPLES} more" if len(names) > EXAMPLES else ""
        super().__init__(
            f"{shown}{more}: not among the dead letters of {key}. `tallybook dead-letter list` "
            "shows them; `tallybook explain DOCUMENT` says what became of a document."
        )


class AmbiguousDeadLetter(LookupError):
    """A name that several documents end with."""

    def __init__(self, name: str, found: list[str]) -> None:
        more = ", ..." if len(found) > EXAMPLES else ""
        super().__init__(
            f"{len(found)} documents with dead letters end with {name!r} "
            f"({', '.join(found[:EXAMPLES])}{more}): give more of the id"
        )


@dataclass(frozen=True)
class Selection:
    """Which dead letters are meant: by name, by failure class, or all; one of the three.

    Attributes:
        names: document ids, unique endings of them, or record ids.
        failure_class: every one of a class.
        everything: every one of the version.
    """

    names: tuple[str, ...] = ()
    failure_class: str | None = None
    everything: bool = False


def choose(found: pl.DataFrame, selection: Selection, key: str) -> pl.DataFrame:
    """The chosen rows of a version's dead letters (`FOUND_SCHEMA`).

    Raises:
        SelectionUnclear: not exactly one way to choose was used.
        UnknownDeadLetter, AmbiguousDeadLetter: a name is of none, or of several documents.
        NothingSelected: the class has none, or the version.
    """
    ways = {
        "documents": bool(selection.names),
        "--class": selection.failure_class is not None,
        "--all": selection.everything,
    }
    used = [way for way, is_used in ways.items() if is_used]
    if len(used) != 1:
        raise SelectionUnclear(used)
    if selection.names:
        return match_names(found, selection.names, key)
    chosen = found
    if selection.failure_class is not None:
        chosen = found.filter(pl.col("failure_class") == selection.failure_class)
    if chosen.is_empty():
        classes = found["failure_class"].unique().sort().to_list()
        raise NothingSelected(key, selection.failure_class, classes)
    return chosen


def match_names(found: pl.DataFrame, names: tuple[str, ...], key: str) -> pl.DataFrame:
    """The rows whose document or record is named, by its id or by a unique end of it.

    Raises:
        UnknownDeadLetter, AmbiguousDeadLetter: a name is of none, or of several documents.
    """
    given = pl.DataFrame({"name": names}, schema={"name": pl.String}).unique(maintain_order=True)
    by_record = found.join(given, left_on="record_id", right_on="name", how="semi")
    by_document = found.join(given, left_on="document_id", right_on="name", how="semi")
    known = pl.concat([by_record["record_id"], by_document["document_id"]]).unique()
    unknown: list[str] = []
    documents = set(by_document["document_id"])
    for name in given.filter(~pl.col("name").is_in(known.implode()))["name"]:
        ending = _ending(found["document_id"].unique(), name)
        if ending is None:
            unknown.append(name)
        else:
            documents.add(ending)
    if unknown:
        raise UnknownDeadLetter(key, unknown)
    meant = pl.col("record_id").is_in(by_record["record_id"].implode())
    return found.filter(meant | pl.col("document_id").is_in(sorted(documents)))


def _ending(documents: pl.Series, name: str) -> str | None:
    """The one document that ends with a name; an ending at a folder's slash wins."""
    if not name.strip("/"):
        return None
    for ending in (f"/{name.removeprefix('/')}", name):
        found = documents.filter(documents.str.ends_with(ending)).sort().to_list()
        if len(found) > 1:
            raise AmbiguousDeadLetter(name, found)
        if found:
            return str(found[0])
    return None


def group_by_cause(found: pl.DataFrame) -> pl.DataFrame:
    """Dead letters by cause, the largest group first.

    Returns:
        failure_class, diagnostics, reason, letters, oldest_at, owners (list), examples (list of
        documents).
    """
    return (
        found.sort("opened_at", "document_id")
        .group_by(_CAUSE, maintain_order=True)
        .agg(
            letters=pl.len().cast(pl.Int64),
            oldest_at=pl.col("opened_at").min(),
            owners=pl.col("owner").unique().sort(),
            examples=pl.col("document_id").unique(maintain_order=True).head(EXAMPLES),
        )
        .sort("letters", *_CAUSE, descending=[True, False, False, False])
    )
