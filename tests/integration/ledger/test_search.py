"""Full text: the same entries answer the same query on both databases."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from resources.ledger.engine import Ledger, open_ledger
from resources.ledger.search_text import MAX_TOKENS, query_terms, tokens

ENTRIES = {
    1: ("QRV-100 Operating Instructions", "QRV-100/2.5", "How to run the pump safely."),
    2: ("QRV installation", "QRV", "Water pump for cellars; model qrv-100x is another."),
    3: ("Crème brûlée torch", "CBT.7", "Ångström-grade ÖL, café use"),
    4: ("取扱説明書 ポンプ", "DP-9", "この説明書はガス器具用です"),
    5: ("카메라 사용 설명서", "K-1", "한국어"),
    6: ("O'Neil's \"quoted\" C:\\temp\\x", "A&B|C!", "left (right) <-> near * star: colon"),
    7: ("and or not near", "", "an entry of operators"),
    8: ("Filter™ kit", "ZZ\u2011200", "Be\u00addie\u00adnung der Pumpe"),
    9: ("Betriebsanleitung für die Straße", "", "Ölwechsel"),
    10: ("", "", ""),
    11: ("カス", "", "same shape as another word but for a mark"),
    12: ("end of title", "starts identifiers", "begins description"),
    13: ("हिन्दी मार्गदर्शिका", "HI-1", "คู่มือ دليل"),
    14: ("\U00010400\U00010401 \U00020bb7野家", "", "🛠 tools"),
}

QUERIES = [
    pytest.param("m", [], id="one letter of a word"),
    pytest.param("qrv-100", [1], id="part number"),
    pytest.param("qrv", [2], id="not the start of a part number"),
    pytest.param("QRV-100x", [2], id="case"),
    pytest.param("100", [], id="not the middle of a part number"),
    pytest.param("qrv-100/2.5", [1], id="slash and dot"),
    pytest.param("cbt.7", [3], id="dot"),
    pytest.param("zz-200", [8], id="ordinary hyphen for a non-breaking one"),
    pytest.param("ZZ\u2010200", [8], id="another hyphen"),
    pytest.param("pump", [1, 2], id="descriptions"),
    pytest.param("water pump", [2], id="every term"),
    pytest.param("pump water", [2], id="in any order"),
    pytest.param("pump lamp", [], id="one term is not there"),
    pytest.param("pump pump", [1, 2], id="a term twice"),
    pytest.param("creme BRULEE", [3], id="accents in the entry"),
    pytest.param("crème", [3], id="accents in both"),
    pytest.param("cafe\u0301", [3], id="decomposed accent"),
    pytest.param("olwechsel", [9], id="umlaut"),
    pytest.param("strase", [], id="sharp s is no s"),
    pytest.param("filter", [8], id="trade sign"),
    pytest.param("bedienung", [8], id="soft hyphens"),
    pytest.param("説明書", [4], id="a word inside a sentence"),
    pytest.param("取扱説明書", [4], id="a longer word"),
    pytest.param("明説", [], id="characters in another order"),
    pytest.param("取書", [], id="characters that are apart"),
    pytest.param("ガス", [4], id="kana with its mark"),
    pytest.param("カス", [11], id="kana without a mark"),
    pytest.param("ﾎﾟﾝﾌﾟ", [4], id="half-width kana"),
    pytest.param("설명서", [5], id="Hangul"),
    pytest.param("dp-9 説明書", [4], id="scripts mixed"),
    pytest.param("हिन्दी", [13], id="Devanagari"),
    pytest.param("คู่มือ", [13], id="Thai"),
    pytest.param("دليل", [13], id="Arabic"),
    pytest.param("\U00010428\U00010429", [14], id="astral letters, other case"),
    pytest.param("\U00020bb7野家", [14], id="astral Han"),
    pytest.param("o'neil", [6], id="apostrophe"),
    pytest.param("o’neil", [6], id="typographic apostrophe"),
    pytest.param("c:\\temp", [6], id="backslash"),
    pytest.param('"quoted"', [6], id="double quotes"),
    pytest.param("(right)", [6], id="parentheses"),
    pytest.param("a&b|c!", [6], id="operators inside"),
    pytest.param("left & right", [6], id="an operator alone is nothing"),
    pytest.param("left | lamp", [], id="there is no or"),
    pytest.param("!left", [6], id="there is no not"),
    pytest.param("left <-> near", [6], id="there is no follows"),
    pytest.param("sta*", [], id="there is no prefix"),
    pytest.param("star:", [6], id="there is no column nor weight"),
    pytest.param("title:pump", [], id="a column's name is a word"),
    pytest.param("AND", [7], id="AND is a word"),
    pytest.param("pump OR torch", [], id="OR is a word"),
    pytest.param("pump NOT water", [], id="NOT is a word"),
    pytest.param("NEAR(pump water)", [], id="NEAR is a word"),
    pytest.param("near", [6, 7], id="near is a word"),
    pytest.param("^left", [6], id="there is no anchor"),
    pytest.param("left:A", [], id="there is no weight"),
    pytest.param("'; DROP TABLE archive_search; --", [], id="SQL"),
    pytest.param("title/starts", [], id="joined by a slash"),
    pytest.param("title:starts", [], id="a phrase ends with its field"),
    pytest.param("identifiers:begins", [], id="a phrase ends with its field, again"),
    pytest.param("of:title", [12], id="a phrase in one field"),
    pytest.param("", [], id="empty"),
    pytest.param(" \t\n", [], id="blank"),
    pytest.param("' \" \\ & | ! ( ) : * <->", [], id="nothing but operators"),
    pytest.param("\0", [], id="null character"),
    pytest.param("pump\0", [1, 2], id="null character after a word"),
    pytest.param("pump " * 3000, [1, 2], id="very many words"),
    pytest.param(" ".join(f"w{n}" for n in range(60_000)), [], id="very many other words"),
    pytest.param("x" * 5000, [], id="very long word"),
    pytest.param("説" * 60_000, [], id="very long phrase"),
]


def searchable(entries: dict[int, tuple[str, str, str]]) -> pl.DataFrame:
    rows = [(number, *texts, "en") for number, texts in entries.items()]
    frame = pl.DataFrame(
        rows,
        schema={
            "entry_no": pl.Int64,
            "title": pl.String,
            "identifiers": pl.String,
            "description": pl.String,
            "language": pl.String,
        },
        orient="row",
    )
    return frame.with_columns(tokens(pl.col("title", "identifiers", "description")))


def replace_entries(ledger: Ledger, entries: dict[int, tuple[str, str, str]]) -> None:
    with ledger.write() as connection:
        connection.execute(text("DELETE FROM archive_search"))
        ledger.dialect.add_search(connection, searchable(entries))


def hits(ledger: Ledger, query: str, limit: int = 100) -> list[int]:
    with ledger.read() as connection:
        found = ledger.dialect.search(connection, query_terms(query), limit)
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    return [number for number, _ in found]


@pytest.fixture(scope="module")
def archive(module_url: str) -> Iterator[Ledger]:
    """Return a ledger whose search table holds `ENTRIES`."""
    ledger = open_ledger(module_url)
    replace_entries(ledger, ENTRIES)
    yield ledger
    ledger.close()


@pytest.mark.parametrize(("query", "expected"), QUERIES)
def test_a_query_finds_its_entries(archive: Ledger, query: str, expected: list[int]) -> None:
    assert sorted(hits(archive, query)) == expected


def test_every_entry_is_there(archive: Ledger) -> None:
    with archive.read() as connection:
        found = archive.dialect.search_entries(connection)
    assert sorted(found["entry_no"].to_list()) == sorted(ENTRIES)


def test_titles_and_identifiers_come_before_descriptions(ledger: Ledger) -> None:
    replace_entries(
        ledger,
        {
            1: ("lamp", "L-1", "a valve for this and that"),
            2: ("valve", "V-1", "a part of this and that"),
            3: ("screw", "valve", "a part of this and that"),
        },
    )
    assert hits(ledger, "valve")[-1] == 1


def test_equal_scores_come_by_entry_number(ledger: Ledger, rng: random.Random) -> None:
    numbers = list(range(1, 41))
    rng.shuffle(numbers)
    replace_entries(ledger, {number: ("same title", "S-1", "same words") for number in numbers})
    assert hits(ledger, "same") == sorted(numbers)
    assert hits(ledger, "same", limit=3) == [1, 2, 3]


def test_dropped_entries_are_not_found(ledger: Ledger) -> None:
    replace_entries(ledger, ENTRIES)
    with ledger.write() as connection:
        gone = pl.DataFrame({"entry_no": [2, 999]}, schema={"entry_no": pl.Int64})
        ledger.dialect.stage(connection, "stage_gone", gone)
        ledger.dialect.drop_search(connection, "stage_gone")
    assert hits(ledger, "pump") == [1]
    with ledger.read() as connection:
        left = ledger.dialect.search_entries(connection)["entry_no"].to_list()
    assert sorted(left) == sorted(set(ENTRIES) - {2})


def test_no_entries_can_be_added(ledger: Ledger) -> None:
    replace_entries(ledger, {})
    with ledger.read() as connection:
        assert ledger.dialect.search_entries(connection).height == 0


def test_a_long_field_is_indexed_to_its_end(ledger: Ledger) -> None:
    filler = " ".join(f"word{number}" for number in range(MAX_TOKENS - 1))
    replace_entries(ledger, {1: ("x", "", f"{filler} last"), 2: ("x", "", f"{filler} a last")})
    assert hits(ledger, "last") == [1]
    assert hits(ledger, "word998:last") == [1]


@pytest.mark.parametrize(
    "description",
    [
        pytest.param("\U00010428" * 70_000, id="one endless word"),
        pytest.param(" ".join("\U00010428" * 70 + str(n) for n in range(20_000)), id="huge"),
        pytest.param("same " * 20_000, id="one word over and over"),
    ],
)
def test_a_monstrous_entry_does_not_fail_its_shard(ledger: Ledger, description: str) -> None:
    monster = (description, description, description)
    replace_entries(ledger, {1: monster, 2: ("pump", "", "")})
    assert hits(ledger, "pump") == [2]


ALPHABET = "aAbé .-/'\"\\&|!():*<>^,\u00ad\u2011日本ガカ\u0301\u3099ーπςΣ\U00010428"
WORDS = st.text(ALPHABET, max_size=12)


@pytest.mark.postgres
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    entries=st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=4),
    queries=st.lists(WORDS, min_size=1, max_size=4),
)
def test_both_databases_answer_alike(
    pair: tuple[Ledger, Ledger],
    entries: Sequence[tuple[str, str, str]],
    queries: Sequence[str],
) -> None:
    numbered = dict(enumerate(entries, start=1))
    for ledger in pair:
        replace_entries(ledger, numbered)
    # What is in an entry is asked for as well, else most queries would find nothing.
    for query in [*queries, *entries[0]]:
        found = [sorted(hits(ledger, query)) for ledger in pair]
        assert found[0] == found[1], query


@pytest.fixture
def pair(
    tmp_path_factory: pytest.TempPathFactory, postgres_url: str
) -> Iterator[tuple[Ledger, ...]]:
    """Return one ledger on each database."""
    folder = tmp_path_factory.mktemp("pair")
    ledgers = tuple(map(open_ledger, (f"sqlite:///{folder / 'ledger.sqlite3'}", postgres_url)))
    yield ledgers
    for ledger in ledgers:
        ledger.close()
