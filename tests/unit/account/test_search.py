"""Searching the published archive."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.account.search import NothingToSearchFor, search
from resources.identifiers import fold_identifier
from tests.support.small_archive import COPY, FAN, PUMP, Archive, manual


@pytest.mark.parametrize(
    ("text", "product", "language", "found"),
    [
        pytest.param("pump", None, None, [PUMP], id="word"),
        pytest.param("WP-100", None, None, [PUMP], id="part-number"),
        pytest.param("PUMP water", None, None, [PUMP], id="every-word"),
        pytest.param("pump fan", None, None, [], id="words-of-two"),
        pytest.param("user manual", None, None, [FAN, PUMP], id="both"),
        pytest.param("manual", "wp 100", None, [PUMP], id="product"),
        pytest.param("manual", "WP-10", None, [], id="not-a-prefix"),
        pytest.param("manual", None, "EN", [FAN, PUMP], id="language"),
        pytest.param("manual", None, "de", [], id="other-language"),
        pytest.param("saw", None, None, [], id="not-published"),
        pytest.param('manual" OR "saw', None, None, [], id="no-query-language"),
    ],
)
def test_search(
    text: str, product: str | None, language: str | None, found: list[str], read_archive: Archive
) -> None:
    hits = search(read_archive.context, text, product, language)
    assert sorted(hit.document_id for hit in hits) == [f"manuals/{name}" for name in found]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_a_hit_tells_what_it_is(read_archive: Archive) -> None:
    (hit,) = search(read_archive.context, "pump")
    assert (hit.label, hit.title) == ("Title", "Water Pump WP-100 User Manual")
    assert hit.workload == "equipment_manuals"
    assert (hit.identifiers, hit.language) == (("WP-100",), "en")
    assert "[pump]" in hit.snippet.lower()


def test_the_limit_counts_after_the_filters(archive: Archive) -> None:
    for number in range(1, 6):
        archive.write(f"heater-{number}.txt", manual("Wall Heater", f"WH-{number}0"))
    archive.process()
    assert len(search(archive.context, "manual", limit=3)) == 3
    (hit,) = search(archive.context, "manual", product="WH-50", limit=1)
    assert hit.identifiers == ("WH-50",)


def test_only_the_newest_version_is_found(archive: Archive) -> None:
    (archive.folder / COPY).unlink()  # else it takes the place of the changed one
    archive.write(PUMP, manual("Water Pump", "WP-200"))
    archive.process()
    assert search(archive.context, "WP-100") == []
    assert [hit.title for hit in search(archive.context, "pump")] == [
        "Water Pump WP-200 User Manual"
    ]


@pytest.mark.parametrize("text", ["", "  ", "-", "(...)"])
def test_a_text_without_words_is_refused(text: str, read_archive: Archive) -> None:
    with pytest.raises(NothingToSearchFor, match="give at least one word"):
        search(read_archive.context, text)


@pytest.mark.parametrize(
    ("one", "other"),
    [("LP-320", "lp 320"), ("LP‑320", "LP320"), ("ＬＰ-320", "lp-320"), ("LP_320", "LP–320")],
)
def test_identifiers_fold_to_the_same(one: str, other: str) -> None:
    assert fold_identifier(one) == fold_identifier(other)


@given(
    st.lists(st.text(alphabet="aB9Ж", min_size=1), min_size=1),
    st.lists(st.sampled_from(["-", " ", "\u2011", "_", "\u00a0", "–"]), min_size=9, max_size=9),
)
def test_separators_never_matter(parts: list[str], separators: list[str]) -> None:
    joined = "".join(a + b for a, b in zip(parts, separators * len(parts), strict=False))
    assert fold_identifier(joined) == fold_identifier("".join(parts).swapcase())
