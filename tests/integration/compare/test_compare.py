"""Two versions side by side: what is counted and what is listed."""

from __future__ import annotations

import pytest

from pipeline_assets.compare.compare import Comparison, SameVersion, compare_versions
from tests.support.archive_shelf import FIRST, SECOND, Shelf


def listed(found: Comparison) -> list[str]:
    return [entry.document_id.split()[0] for entry in found.listed]


def test_counts(shelf: Shelf) -> None:
    found = compare_versions(shelf.context, FIRST, SECOND)
    assert (found.both, found.changed, found.matching) == (6, 4, 4)
    assert found.fields["title"] == {
        "same": 2,
        "form": 1,
        "changed": 3,
        "gained": 0,
        "lost": 0,
        "absent": 0,
    }
    assert found.fields["product_identifiers"] | {"absent": 0} == {
        "same": 2,
        "form": 0,
        "changed": 0,
        "gained": 1,
        "lost": 1,
        "absent": 0,
    }
    assert (found.only_first_ids, found.only_second_ids) == (["g first"], ["h second"])
    assert (found.unpublished, found.other_bytes) == ((0, 0), 0)
    assert list(found.slices) == ["unparsed"]
    assert found.slices["unparsed"]["documents"] == 6
    assert found.slices["unparsed"]["changed"] == 4
    assert found.slices["unparsed"]["fields"] == found.fields


def test_the_newest_values_of_a_version_count_whatever_is_shown_now(shelf: Shelf) -> None:
    found = compare_versions(shelf.context, FIRST, SECOND)
    documents = {entry.document_id: entry for entry in found.listed}
    assert documents["c changed"].first["title"] == ["older, and corrected"]
    assert documents["c changed"].second["product_identifiers"] == ["X-1", "X-2"]
    rolled = documents["e rolled back"]
    assert (rolled.first["title"], rolled.second["title"]) == (["one"], ["two"])


@pytest.mark.parametrize(
    ("where", "documents"),
    [
        ([], ["c", "d", "e", "f"]),
        (["title=form"], ["b"]),
        (["title=changed", "product_identifiers=gained"], ["c"]),
        (["product_identifiers=lost", "slice=unparsed"], ["d"]),
        (["slice=de/short/text"], []),
    ],
    ids=["changed", "form", "two", "slice", "another slice"],
)
def test_what_is_listed(shelf: Shelf, where: list[str], documents: list[str]) -> None:
    found = compare_versions(shelf.context, FIRST, SECOND, where=where)
    assert listed(found) == documents
    assert found.both == 6, "conditions choose what is listed, not what is counted"
    few = compare_versions(shelf.context, FIRST, SECOND, where=where, limit=1)
    assert (listed(few), few.matching) == (documents[:1], len(documents))


def test_a_version_with_itself(shelf: Shelf) -> None:
    with pytest.raises(SameVersion):
        compare_versions(shelf.context, FIRST, FIRST)
