"""Answers in a bad form: mended, recorded and published where the version repairs, else buried."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from pipeline_assets.account.explain import explain
from pipeline_assets.cli.app import main
from pipeline_assets.collect import settle as settling
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.submit.submit_batches import submit_batches
from pipeline_assets.versions import OpenVersion
from resources.ledger.moves import move_batch
from resources.ledger.repairs import REPAIR_SCHEMA, store_repairs
from resources.ledger.schema import dispositions, late_results, repairs
from tests.integration.recovery import support
from tests.integration.recovery.support import Line, Retries
from tests.integration.stages.support import KEY, ON_ONE_DATABASE, Shop
from tests.support.clock import FrozenClock

DAMAGED = {
    "fenced": "```json\n{}\n```",
    "among words": "Here is what I found:\n{}\nAnything else?",
    "surplus comma": "{},}}",
    "cut": "```json\n{}",
    "twice": '{}, "document": "doc-0",}}',
}
"""How an answer's text comes back; `{}` is the answer, in the last three without its last brace."""


def _damaged(kind: str, line: Line) -> Line:
    text = line["body"]["text"]
    if kind not in ("fenced", "among words"):
        text = text[:-1]
    return line | {"body": line["body"] | {"text": DAMAGED[kind].format(text)}}


def _answer_as(kind: str, line: Line, earlier: Any) -> list[Line]:
    """As the scripts of recovery say, and after `untidy ` every good answer is fenced."""
    if kind in DAMAGED:
        return [_damaged(kind, line)]
    lines = ANSWER_AS(kind.removeprefix("untidy "), line, earlier)
    if not kind.startswith("untidy "):
        return lines
    return [_damaged("fenced", entry) if "body" in entry else entry for entry in lines]


ANSWER_AS = support.answer_as


@pytest.fixture
def retries(shop: Shop, frozen_clock: FrozenClock, monkeypatch: pytest.MonkeyPatch) -> Retries:
    """Return a shop whose version repairs, and whose provider damages answers as scripts say."""
    monkeypatch.setattr(support, "answer_as", _answer_as)
    return Retries(shop, frozen_clock, monkeypatch)


def made(shop: Shop) -> list[tuple[int, int, str, int]]:
    """attempt_no, ordinal, rule and version of every repair."""
    return [
        (row["attempt_no"], row["ordinal"], row["rule"], row["rule_version"])
        for row in shop.rows(repairs)
    ]


def given_text(shop: Shop, attempt: dict[str, Any]) -> str:
    """The text of an attempt's answer as it came back."""
    (line,) = attempt["results"]
    data = shop.context.artifacts.path("result", line["artifact"]).read_bytes()
    return json.loads(data[line["offset"] : line["offset"] + line["length"]])["body"]["text"]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_mended_answers_are_recorded_and_published(
    retries: Retries, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = retries.shop
    kinds = ["good", "fenced", "among words", "surplus comma", "cut", "twice"]
    retries.walk(*[[kind] for kind in kinds])
    assert retries.states() == ["published"] * 4 + ["dead_letter"] * 2
    assert made(shop) == [
        (2, 0, "fences", 1),
        (3, 0, "surrounding_text", 1),
        (4, 0, "commas", 1),
    ]
    assert {row["failure_class"] for row in shop.rows(dispositions)[4:]} == {"malformed_json"}
    titles = [json.loads(str(row[2]))["title"]["value"] for row in shop.archive()]
    assert titles == [f"Bench Grinder BG-{number}00 User Manual" for number in range(4)]
    retries.check()

    story = explain(shop.context, "m03.txt", KEY)
    (attempt,) = story.records[0]["attempts"]
    text = given_text(shop, attempt)
    (repair,) = attempt["repairs"]
    assert repair == {
        "rule": "commas",
        "rule_version": 1,
        "before_digest": digest(text),
        "after_digest": digest(re.sub(r",\}\Z", "}", text)),
    }
    assert explain(shop.context, "m00.txt", KEY).records[0]["attempts"][0]["repairs"] == []

    settings = shop.context.settings
    monkeypatch.setenv("TALLYBOOK_LEDGER_URL", str(settings.ledger_url))
    place = ["--state", str(settings.state)]
    assert main(["explain", "m03.txt", *place]) == 0
    told = " ".join(capsys.readouterr().out.split())
    before, after = repair["before_digest"][:12], repair["after_digest"][:12]
    assert f"repaired commas 1 (text {before}… → {after}…)" in told
    assert main(["explain", "m00.txt", *place]) == 0
    assert "repaired" not in capsys.readouterr().out


@ON_ONE_DATABASE
def test_a_version_without_repairs_mends_nothing(
    shop: Shop, frozen_clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = OpenVersion.acceptance
    monkeypatch.setattr(
        OpenVersion, "acceptance", property(lambda v: replace(plain.__get__(v), repairs=()))
    )
    monkeypatch.setattr(support, "answer_as", _answer_as)
    retries = Retries(shop, frozen_clock, monkeypatch)
    retries.walk(["fenced"], ["good"])
    assert retries.states() == ["dead_letter", "published"]
    assert made(shop) == []


@ON_ONE_DATABASE
@pytest.mark.parametrize(
    ("second", "used", "mended"),
    [
        pytest.param("untidy busy + late", 1, [1], id="used"),
        pytest.param("untidy good + late", 0, [2], id="not-used"),
    ],
)
def test_a_late_result_that_is_used_is_mended(
    retries: Retries, second: str, used: int, mended: list[int]
) -> None:
    retries.walk(["missing", second])
    assert retries.states() == ["published"]
    assert [row["used"] for row in retries.shop.rows(late_results)] == [used]
    assert [row[:3] for row in made(retries.shop)] == [(no, 0, "fences") for no in mended]


@ON_ONE_DATABASE
def test_an_incident_records_no_repair_until_it_is_settled(
    retries: Retries, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = retries.shop
    version = retries.start(["fenced"])
    submit_batches(shop.context, version)
    with monkeypatch.context() as patch:
        patch.setattr(settling, "count_dispositions", lambda *_: 0)
        assert len(collect_batches(shop.context, version).incidents) == 1
    assert made(shop) == []
    ledger = shop.context.ledger
    with ledger.write() as connection:
        cause = shop.context.cause("the test says so", "test")
        (number,) = retries.batch_nos()
        move_batch(connection, ledger.dialect, number, "incident", "reconciling", cause)
    assert collect_batches(shop.context, version).dispositions == {"succeeded": 1}
    assert made(shop) == [(1, 0, "fences", 1)]


def test_an_attempt_keeps_its_first_repairs(shop: Shop) -> None:
    def frame(*rows: tuple[int, int, str]) -> pl.DataFrame:
        whole = [(no, ordinal, rule, 1, "0" * 64, "1" * 64) for no, ordinal, rule in rows]
        return pl.DataFrame(whole, schema=REPAIR_SCHEMA, orient="row")

    ledger = shop.context.ledger
    with ledger.write() as connection:
        store_repairs(connection, ledger, frame((1, 0, "fences"), (1, 1, "commas")))
        store_repairs(
            connection, ledger, frame((1, 0, "quotes"), (1, 2, "quotes"), (2, 0, "commas"))
        )
        store_repairs(connection, ledger, frame())
    assert made(shop) == [(1, 0, "fences", 1), (1, 1, "commas", 1), (2, 0, "commas", 1)]
