"""Rows parsed into packs and the cache: what is stored, what is told, what a killed run loses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline_assets.ingest import parse_rows as module
from pipeline_assets.ingest.parse_rows import parse_rows
from pipeline_assets.ingest.parsing.document import parse_document
from pipeline_assets.ingest.parsing.model import ParsedDocument, ParseLimits
from pipeline_assets.ingest.parsing.reading import ReadContext
from pipeline_assets.ingest.placeholder import placeholder
from resources.context import Context, open_context
from resources.contracts import PARSED_TEXT, read_frame
from resources.ledger.parses import PARSE_SCHEMA
from resources.parser_settings import ParserSettings
from resources.settings import Settings
from resources.sources.declared import TableSource
from resources.sources.listing import TEXT_SCHEMA
from resources.sources.table_file import TableFile, open_table
from tests.support.clock import FrozenClock

SETTINGS = ParserSettings()
ENGLISH = "The pump makes a loud noise whenever it starts, and then it stops after a minute."
GERMAN = "Die Pumpe macht beim Einschalten ein lautes Geräusch und bleibt nach einer Minute stehen."


@pytest.fixture
def context(tmp_path: Path, frozen_clock: FrozenClock) -> Iterator[Context]:
    """Return open resources with an empty ledger."""
    with open_context(Settings(home=tmp_path / "home"), clock=frozen_clock) as opened:
        yield opened


def table(folder: Path, bodies: list[str]) -> TableFile:
    path = folder / "t.csv"
    frame = pl.DataFrame({"id": [f"{at}" for at in range(len(bodies))], "body": bodies})
    frame.write_csv(path)
    declared = {"name": "t", "workload": "w", "kind": "table", "key": "id", "text": ["body"]}
    return open_table(TableSource.model_validate({**declared, "path": path}))


def missing(source: TableFile) -> pl.DataFrame:
    whole = pl.concat(list(source.listing()))
    documents = whole.filter(pl.col("excluded").is_null())
    return documents.select("checksum", "document_id", bytes="size").unique("checksum")


def cache(context: Context) -> pl.DataFrame:
    with context.ledger.read() as connection:
        return context.ledger.dialect.fetch(
            connection,
            f"SELECT {', '.join(PARSE_SCHEMA)} FROM parses ORDER BY checksum",
            PARSE_SCHEMA,
        )


def packs(context: Context) -> dict[str, pl.DataFrame]:
    return {
        path.name: read_frame(PARSED_TEXT, path)
        for path in (context.artifacts.root / "text").glob("*/*")
    }


def test_rows_are_stored_as_their_text(
    tmp_path: Path, ledger_url: str, frozen_clock: FrozenClock
) -> None:
    settings = Settings(home=tmp_path / "home", ledger_url=ledger_url)
    with open_context(settings, clock=frozen_clock) as context:
        check_stored(context, tmp_path)


def check_stored(context: Context, tmp_path: Path) -> None:
    source = table(tmp_path, [ENGLISH, "pump", "\ufffd\ufffd pump \ufffd\ufffd\n"])
    wanted = missing(source)
    report = parse_rows(context, SETTINGS, source, wanted)
    assert (report.parsed, report.failed, report.gone) == (2, {"not_a_document": 1}, 0)
    rows = {row["checksum"]: row for row in cache(context).iter_rows(named=True)}
    ((digest, pages),) = packs(context).items()
    texts = {row["text"]: row for row in pages.iter_rows(named=True)}
    assert set(texts) == {ENGLISH, "pump"}
    for text, page in texts.items():
        assert (page["page"], page["origin"], page["offset"]) == (1, "text", 0)
        row = rows[page["checksum"]]
        assert row | {"parsed_at": ""} == {
            "checksum": page["checksum"],
            "parser_key": SETTINGS.key,
            "excluded": None,
            "detail": "",
            "media_type": "text/plain",
            "page_count": 1,
            "language": "en" if text == ENGLISH else None,
            "languages": "",
            "partial": 0,
            "notes": "",
            "text_pack": digest,
            "thumbnail": row["thumbnail"],
            "wall_ms": 0,
            "cpu_ms": 0,
            "peak_rss_bytes": 0,
            "cacheable": 1,
            "parsed_at": "",
        }
        stored = context.artifacts.path("thumbnail", row["thumbnail"]).read_bytes()
        assert stored == placeholder()
    (refused,) = [row for row in rows.values() if row["excluded"] is not None]
    assert (refused["excluded"], refused["text_pack"], refused["thumbnail"]) == (
        "not_a_document",
        None,
        None,
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(ENGLISH, id="a-sentence"),
        pytest.param("\n".join([ENGLISH * 3, GERMAN * 3]), id="two-languages"),
        pytest.param("E-17", id="a-code"),
        pytest.param("漢字かな交じりの文章です。", id="a-script-of-its-own"),
        pytest.param("0815 / 4711", id="figures"),
        pytest.param("x\ufffd" * 40, id="binary"),
        pytest.param("a b \ufffd " + "word " * 40, id="one-undefined-sign"),
    ],
)
def test_a_row_is_judged_as_a_file_of_plain_text_is(text: str) -> None:
    reading = ReadContext(ParseLimits(), False, lambda: None, None, lambda: 0.0)
    outcome = parse_document(text.encode(), reading, claimed="text/plain")
    row = module._judged(
        pl.DataFrame({"document_id": ["t/1"], "checksum": ["c"], "text": [text]})
    ).row(0, named=True)
    if isinstance(outcome, ParsedDocument):
        found = (None, outcome.language, " ".join(outcome.languages))
    else:
        found = (outcome.reason, None, "")
    assert (row["excluded"], row["language"], row["languages"]) == found


def test_rows_that_changed_or_went_are_gone(context: Context, tmp_path: Path) -> None:
    wanted = missing(table(tmp_path, [ENGLISH, GERMAN, "other"]))
    report = parse_rows(context, SETTINGS, table(tmp_path, [ENGLISH, "changed"]), wanted)
    assert (report.parsed, report.failed, report.gone) == (1, {}, 2)
    assert cache(context).height == 1


def test_nothing_is_missing(context: Context, tmp_path: Path) -> None:
    source = table(tmp_path, [ENGLISH])
    report = parse_rows(context, SETTINGS, source, missing(source).clear())
    assert (report.parsed, report.failed, report.gone) == (0, {}, 0)
    assert packs(context) == {}


@pytest.mark.parametrize("limit", ["PACK_ROWS", "PACK_CHARACTERS"])
def test_a_killed_run_loses_one_pack(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(module, limit, {"PACK_ROWS": 4, "PACK_CHARACTERS": 4 * 6}[limit])
    source = table(tmp_path, [f"text {at}" for at in range(10)])
    wanted = missing(source)
    whole = source.texts

    def broken(ids: pl.Series) -> Iterator[pl.DataFrame]:
        for frame in whole(ids):
            for number, part in enumerate(frame.iter_slices(2)):
                if number == 4:
                    raise KeyboardInterrupt
                yield part

    monkeypatch.setattr(source, "texts", broken)
    with pytest.raises(KeyboardInterrupt):
        parse_rows(context, SETTINGS, source, wanted)
    assert cache(context).height == 4
    monkeypatch.setattr(source, "texts", whole)
    left = wanted.filter(~pl.col("checksum").is_in(cache(context)["checksum"].implode()))
    assert parse_rows(context, SETTINGS, source, left).parsed == 6
    stored = cache(context)
    assert stored["checksum"].sort().equals(wanted["checksum"].sort())
    texts = packs(context)
    for row in stored.iter_rows(named=True):
        assert row["checksum"] in texts[row["text_pack"]]["checksum"]


def test_every_row_is_told_to_who_watches(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(
        type(context.progress), "start", lambda _, label, total: told.append((label, total))
    )
    monkeypatch.setattr(type(context.progress), "advance", lambda _, count=1: told.append(count))
    monkeypatch.setattr(type(context.progress), "finish", lambda _: told.append("end"))
    wanted = missing(table(tmp_path, [ENGLISH, GERMAN, "other"]))
    parse_rows(context, SETTINGS, table(tmp_path, [ENGLISH]), wanted)
    assert told == [("parsing", 3), 1, 2, "end"]


def test_texts_are_stored_for_each_parser(context: Context, tmp_path: Path) -> None:
    source = table(tmp_path, [ENGLISH])
    wanted = missing(source)
    for pages in (10, 20):
        parse_rows(context, ParserSettings(max_pages=pages), source, wanted)
    assert cache(context)["parser_key"].n_unique() == 2
    assert dict(next(iter(source.texts(wanted["document_id"]))).schema) == TEXT_SCHEMA
