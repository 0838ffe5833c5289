"""Opening a version: frozen at first use, refused when anything digested changed since."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from partitions.processing_version import PACKAGED_SPECS, SpecDisagrees, UnknownVersion
from pipeline_assets import versions
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.replay.reasons import UnknownReplayReason
from pipeline_assets.submit.submit_batches import submit_batches
from pipeline_assets.versions import open_version
from pipeline_assets.workloads.equipment_manuals.workload import load
from pipeline_assets.workloads.registry import UnknownWorkload
from pipeline_assets.workloads.workload import Repair, Workload
from resources.access import read_page_texts, thumbnail_path
from resources.artifacts import ArtifactMissing
from resources.context import Context
from resources.ledger.moves import move_version
from resources.ledger.schema import (
    accesses,
    batches,
    moves,
    operating_settings,
    parses,
    processing_versions,
)
from resources.ledger.versions import (
    VersionChanged,
    VersionNotActive,
    get_operating,
    list_versions,
    set_operating,
)
from tests.integration.stages.support import KEY, ON_ONE_DATABASE, PUMP, Shop, manual

TEXT = (PACKAGED_SPECS / f"{KEY}.yaml").read_text(encoding="utf-8")


@pytest.fixture
def mine(shop: Shop) -> Callable[[str], Context]:
    """Return a function that writes the spec `mine` and gives a context that knows it."""
    folder = shop.folder.parent / "specs"
    folder.mkdir()
    settings = shop.context.settings.model_copy(update={"specs": folder})

    def write(text: str) -> Context:
        (folder / "mine.yaml").write_text(text, encoding="utf-8")
        return replace(shop.context, settings=settings)

    return write


SPEC = TEXT.replace(f"key: {KEY}", "key: mine")


def test_a_version_is_frozen_once(shop: Shop) -> None:
    first = shop.version()
    again = shop.version()
    assert first.frozen == again.frozen
    assert (first.frozen.state, first.frozen.workload) == ("active", "equipment_manuals")
    assert [version.key for version in list_versions(shop.context.ledger)] == [KEY]
    assert len(shop.rows(moves)) == 1


@ON_ONE_DATABASE
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(SPEC.replace("rules-1", "rules-2"), id="model"),
        pytest.param(SPEC.replace("max_pages: 2000", "max_pages: 2001"), id="parser-bound"),
        pytest.param(SPEC + "parameters: {effort: low}\n", id="parameters"),
        pytest.param(SPEC + "batch_records: 24999\n", id="batch-size"),
        pytest.param(SPEC + "operation: classify\n", id="operation"),
    ],
)
def test_a_spec_that_was_edited_is_refused(mine: Callable[[str], Context], text: str) -> None:
    assert text != SPEC
    frozen = open_version(mine(SPEC), "mine").frozen.digest
    with pytest.raises(VersionChanged, match="give the changed version a new key") as refused:
        open_version(mine(text), "mine")
    assert "mine.yaml" in str(refused.value)
    assert frozen[:16] in str(refused.value)
    assert open_version(mine(SPEC), "mine").frozen.digest == frozen


@ON_ONE_DATABASE
def test_a_description_may_be_edited(mine: Callable[[str], Context]) -> None:
    first = open_version(mine(SPEC), "mine")
    text = "\n".join(line for line in SPEC.splitlines() if not line.startswith("description"))
    assert open_version(mine(text + "\ndescription: better told\n"), "mine").frozen == first.frozen


def other_acceptance(real: Workload, **changes: Any) -> Workload:
    changed = replace(real.acceptances["2"], **changes)
    return replace(real, acceptances={**real.acceptances, "2": changed})


def flip(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


@ON_ONE_DATABASE
@pytest.mark.parametrize("part", ["prompt", "output_schema", "thresholds"])
def test_one_changed_byte_is_refused(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    shop.version()
    real = load()
    changed = (
        replace(real, prompts={**real.prompts, "1": flip(real.prompt)})
        if part == "prompt"
        else other_acceptance(real, thresholds=flip(real.acceptances["2"].thresholds))
        if part == "thresholds"
        else replace(real, **{part: flip(getattr(real, part))})
    )
    monkeypatch.setattr(versions, "load_workload", lambda *_: changed)
    with pytest.raises(VersionChanged):
        shop.version()


def other_rule(real: Workload) -> Workload:
    rules = real.acceptances["2"].rules
    return other_acceptance(real, rules=(*rules[:-1], replace(rules[-1], version=2)))


@ON_ONE_DATABASE
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(other_rule, id="rule-version"),
        pytest.param(
            lambda real: other_acceptance(real, rules=real.acceptances["2"].rules[:-1]),
            id="rule-removed",
        ),
        pytest.param(
            lambda real: other_acceptance(real, repairs=(Repair("fences", 1, lambda text: text),)),
            id="repair-added",
        ),
        pytest.param(lambda real: replace(real, schema_version=2), id="output-schema"),
    ],
)
def test_another_release_is_refused(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, change: Callable[[Workload], Workload]
) -> None:
    real = load()
    monkeypatch.setattr(versions, "load_workload", lambda *_: change(real))
    with pytest.raises(SpecDisagrees):
        shop.version()
    assert shop.rows(processing_versions) == []


@ON_ONE_DATABASE
def test_what_cannot_be_opened(mine: Callable[[str], Context]) -> None:
    context = mine(SPEC.replace("equipment_manuals", "no_such_thing"))
    with pytest.raises(UnknownWorkload):
        open_version(context, "mine")
    known = ", ".join(sorted({"mine", *(path.stem for path in PACKAGED_SPECS.glob("*.yaml"))}))
    with pytest.raises(UnknownVersion, match=re.escape(f"(known: {known};")):
        open_version(context, "other")


def rest(shop: Shop, state: str) -> None:
    number = shop.version().version_no
    cause = shop.context.cause("the budget is used up", "a test")
    with shop.context.ledger.write() as connection:
        move_version(connection, shop.context.ledger.dialect, number, "active", state, cause)


def test_a_retired_version_is_refused(shop: Shop) -> None:
    rest(shop, "retired")
    with pytest.raises(VersionNotActive, match=r"is retired \(the budget is used up\)"):
        shop.version()


def test_a_held_version_can_be_opened_and_says_why(shop: Shop) -> None:
    assert shop.version().held is None
    rest(shop, "held")
    assert shop.version().held == "the budget is used up"


@pytest.mark.parametrize("key", [KEY, "manuals-openai-batch-1", "manuals-anthropic-online-1"])
def test_a_held_version_submits_nothing_and_goes_on_when_released(shop: Shop, key: str) -> None:
    """No provider is even connected to: none of them has a key here."""
    parsed = shop.fill().ingest()
    ledger = shop.context.ledger
    version = open_version(shop.context, key)
    assert parsed.workload == version.workload
    freeze_manifest(shop.context, version)
    cause = shop.context.cause("the budget is used up", "a test")
    with ledger.write() as connection:
        move_version(connection, ledger.dialect, version.version_no, "active", "held", cause)
    before = shop.counts()

    report = submit_batches(shop.context, open_version(shop.context, key))
    assert (report.batches, report.records) == (0, 0)
    assert report.waiting == {"every batch": "the version is held: the budget is used up"}
    assert {row["state"] for row in shop.rows(batches)} == {"prepared"}
    assert set(shop.states().values()) == {"prepared"}
    assert shop.counts() == before

    with ledger.write() as connection:
        move_version(connection, ledger.dialect, version.version_no, "held", "active", cause)
    if key == KEY:
        assert submit_batches(shop.context, open_version(shop.context, key)).records == 2


def test_operating_settings_stand_apart(shop: Shop) -> None:
    first, ledger = shop.version(), shop.context.ledger
    assert get_operating(ledger, first.version_no, "budget", "10") == "10"
    for version_no, value, reason in (
        (None, "20", "for all"),
        (first.version_no, "30", "for this one"),
        (first.version_no, "40", "more"),
        (None, "50", "for all again"),
    ):
        set_operating(ledger, version_no, "budget", value, shop.context.cause(reason, "a test"))
    assert get_operating(ledger, first.version_no, "budget", "10") == "40"
    assert get_operating(ledger, first.version_no + 1, "budget", "10") == "50"
    assert get_operating(ledger, first.version_no, "other", "10") == "10"
    assert shop.version().frozen == first.frozen, "no part of the digest"
    journal = [(row["value"], row["reason"], row["actor"]) for row in shop.rows(operating_settings)]
    assert journal == [
        ("20", "for all", "tallybook"),
        ("30", "for this one", "tallybook"),
        ("40", "more", "tallybook"),
        ("50", "for all again", "tallybook"),
    ]


def test_a_replay_reason_of_ones_own(shop: Shop) -> None:
    version = shop.fill().ingest()
    with pytest.raises(UnknownReplayReason, match="give one of new_source"):
        freeze_manifest(shop.context, version, replay_reason="because")
    assert freeze_manifest(shop.context, version, replay_reason="new_prompt").expected == 2
    reasons = shop.query("SELECT DISTINCT replay_reason FROM records", {"reason": pl.String})
    assert reasons["reason"].to_list() == ["new_prompt"]


def test_two_versions_of_the_same_documents(shop: Shop, mine: Callable[[str], Context]) -> None:
    shop.fill().walk()
    context = mine(SPEC)
    version = open_version(context, "mine")
    report = freeze_manifest(context, version)
    assert (report.expected, report.already) == (2, 0)
    names = shop.query("SELECT record_id FROM records", {"id": pl.String})["id"]
    assert names.n_unique() == 4
    assert Path(PUMP).name in "".join(names)


def test_looking_at_a_text_or_an_image_is_recorded(shop: Shop) -> None:
    shop.write(PUMP, manual("Circulation Pump", "WP-100"))
    shop.ingest()
    (row,) = shop.rows(parses)
    context = shop.context
    pages = read_page_texts(context, row["checksum"], row["text_pack"], "ann", "to review it")
    assert pages["page"].to_list() == [1]
    assert "WP-100" in pages["text"][0]
    assert thumbnail_path(context, row["thumbnail"], "ben", "to show it").is_file()
    seen = [(a["who"], a["why"], a["kind"], a["digest"]) for a in shop.rows(accesses)]
    assert seen == [
        ("ann", "to review it", "text", row["checksum"]),
        ("ben", "to show it", "thumbnail", row["thumbnail"]),
    ]
    assert {a["opened_at"] for a in shop.rows(accesses)} == {context.ledger.now()}
    with pytest.raises(ArtifactMissing):
        thumbnail_path(context, "0" * 64, "ben", "to show it")
    assert len(shop.rows(accesses)) == 2, "nothing was shown"
