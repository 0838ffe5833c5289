"""Named recovery paths over real SDKs and an emulator: what the next request does differently."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline_assets.prepare.retries import freeze_retries
from pipeline_assets.provider_jobs.operate import cancel, require_job
from pipeline_assets.recovery.holds import hold_of, release
from pipeline_assets.versions import open_version
from resources.ledger.schema import attempts, batch_parents, batches, renderings
from resources.providers.capabilities import Fact
from resources.providers.registry import batch_client
from tests.integration.stages.support import manual
from tests.support.emulator import RunningEmulator
from tests.support.provider_walk import ProviderWalk, provider_walk
from tests.support.recovery_walk import (
    attempts_of,
    check_three_facts,
    freeze_due,
    shop_of,
    spec_like,
    try_again,
)

pytestmark = pytest.mark.slow

KEY = "manuals-openai-batch-2"
TOO_LARGE = {"status": 400, "code": "context_length_exceeded"}


@contextmanager
def walking(
    emulator: RunningEmulator,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    documents: int = 3,
    **given: Any,
) -> Iterator[ProviderWalk]:
    key = given.pop("key", KEY)
    provider = given.pop("provider", "openai")
    with provider_walk(
        emulator, provider, folder, monkeypatch, documents, key=key, **given
    ) as walk:
        walk.pass_canary()
        yield walk


@pytest.fixture
def walk(
    emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ProviderWalk]:
    with walking(emulator, tmp_path, monkeypatch) as opened:
        yield opened


def paths(walk: ProviderWalk, document: str = "shop/d0.txt") -> list[tuple[str, str | None]]:
    """(path, failure class) of every attempt at a document."""
    found = attempts_of(walk).filter(pl.col("document_id") == document)
    return list(found.select("path", "failure_class").iter_rows())


def bodies(walk: ProviderWalk, document: str = "shop/d0.txt") -> list[dict[str, Any]]:
    """The body of every request about a document, as it stands in the request file."""
    shop = shop_of(walk)
    wanted = attempts_of(walk).filter(pl.col("document_id") == document)["attempt_no"].to_list()
    files = {row["batch_no"]: row["request_artifact"] for row in shop.rows(batches)}
    found = []
    for row in shop.rows(attempts):
        if row["attempt_no"] in wanted:
            path = walk.context.artifacts.path("request", files[row["batch_no"]])
            place = row["request_offset"]
            line = path.read_bytes()[place : place + row["request_length"]]
            found.append(json.loads(line)["body"])
    return found


def digests(walk: ProviderWalk, document: str = "shop/d0.txt") -> list[str]:
    wanted = attempts_of(walk).filter(pl.col("document_id") == document)["attempt_no"].to_list()
    rows = shop_of(walk).rows(attempts)
    return [row["request_digest"] for row in rows if row["attempt_no"] in wanted]


def letters(walk: ProviderWalk) -> list[tuple[str, str]]:
    found = shop_of(walk).query(
        "SELECT failure_class, reason FROM dead_letters ORDER BY attempt_no",
        {"failure_class": pl.String, "reason": pl.String},
    )
    return list(found.iter_rows())


def hold_kind(walk: ProviderWalk) -> str | None:
    version = open_version(walk.context, walk.key)
    with walk.context.ledger.read() as connection:
        found = hold_of(connection, version.version_no)
    return None if found is None else found.kind


def let_go(walk: ProviderWalk) -> None:
    version = open_version(walk.context, walk.key)
    assert release(walk.context, version.version_no, None, "settled")


def batch_states(walk: ProviderWalk) -> list[str]:
    return [row["state"] for row in shop_of(walk).rows(batches)]


def test_a_cut_answer_is_asked_for_with_more_room(walk: ProviderWalk) -> None:
    walk.plant("row", "truncated")
    (report,) = try_again(walk)
    assert report.paths == {"larger_output": 1}
    assert paths(walk) == [("first", "truncated"), ("larger_output", None)]
    first, second = bodies(walk)
    assert (first["max_output_tokens"], second["max_output_tokens"]) == (4000, 12_000)
    assert {**first, "max_output_tokens": 0} == {**second, "max_output_tokens": 0}
    assert len(set(digests(walk))) == 2
    assert walk.published() == walk.titles
    assert batch_states(walk) == ["completed", "completed"]
    check_three_facts(walk)


def test_an_answer_that_is_cut_again_is_given_up(walk: ProviderWalk) -> None:
    walk.plant("row", "truncated", times=None, match={"index": 0})
    try_again(walk)
    assert paths(walk) == [("first", "truncated"), ("larger_output", "truncated")]
    assert letters(walk) == [("truncated", "larger_output was tried and did not help")]
    assert walk.states()["shop/d0.txt"] == "dead_letter"
    assert batch_states(walk) == ["completed_with_errors", "completed_with_errors"]
    check_three_facts(walk)


def test_an_unusable_answer_is_asked_for_with_the_repair_prompt(walk: ProviderWalk) -> None:
    walk.plant("row", "prose")
    (report,) = try_again(walk)
    assert report.paths == {"repair_prompt": 1}
    assert paths(walk) == [("first", "malformed_json"), ("repair_prompt", None)]
    first, second = bodies(walk)
    assert "An earlier answer" not in json.dumps(first)
    assert "An earlier answer" in json.dumps(second)
    assert first["max_output_tokens"] == second["max_output_tokens"]
    assert first["text"] == second["text"], "the schema is the same"
    assert walk.published() == walk.titles
    check_three_facts(walk)


def test_it_is_repaired_once(walk: ProviderWalk) -> None:
    walk.plant("row", "prose", times=None, match={"index": 0})
    try_again(walk)
    assert paths(walk) == [("first", "malformed_json"), ("repair_prompt", "malformed_json")]
    assert letters(walk) == [("malformed_json", "repair_prompt was tried and did not help")]
    check_three_facts(walk)


def long_manual(identifier: str) -> str:
    care = "A line about the pump and its care.\n" * 400
    return manual("Circulation Pump", identifier) + "\f".join(["", *[care] * 12])


def add_long(walk: ProviderWalk) -> None:
    """A thirteenth page is beyond what is sent; half of what is sent is allowed at a second try."""
    name = "long.txt"
    text = long_manual("WP-900")
    walk.context.settings.source_folder.joinpath(name).write_text(text, encoding="utf-8")
    walk.titles[f"shop/{name}"] = "Circulation Pump WP-900 User Manual"
    walk.prepare()


def test_what_is_too_large_is_sent_with_fewer_pages(walk: ProviderWalk) -> None:
    walk.settle()
    add_long(walk)
    walk.plant("row", "error", **TOO_LARGE)
    (report,) = try_again(walk)
    assert report.paths == {"fewer_pages": 1}
    assert paths(walk, "shop/long.txt") == [("first", "too_large"), ("fewer_pages", None)]
    of_record = shop_of(walk).rows(renderings)[-2:]
    assert [row["pages"] for row in of_record] == [13, 13]
    assert 24_000 >= of_record[0]["tokens"] > 12_000 >= of_record[1]["tokens"] > 0
    assert of_record[0]["pages_sent"] > of_record[1]["pages_sent"] > 0
    assert walk.published() == walk.titles
    check_three_facts(walk)


def test_a_changed_request_that_is_the_same_one_is_not_sent(walk: ProviderWalk) -> None:
    """All of its pages fit the smaller room: fewer of them would be the identical call."""
    walk.plant("row", "error", **TOO_LARGE)
    walk.settle()
    report = freeze_due(walk)
    assert (report.records, report.refused) == (0, 1)
    walk.settle()
    assert paths(walk) == [("first", "too_large")]
    ((failure, reason),) = letters(walk)
    assert failure == "too_large"
    assert "the same" in reason
    assert batch_states(walk) == ["completed_with_errors"]
    check_three_facts(walk)


def test_what_cannot_be_cut_further_is_given_up_beside_one_that_can(
    emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page is the least that is sent."""
    specs = spec_like(
        "manuals-openai-batch-2",
        tmp_path / "specs",
        "manuals-small",
        request={"recovery": {"document_tokens": 100, "output_tokens": 12_000}},
    )
    with walking(
        emulator, tmp_path / "walk", monkeypatch, specs=specs, key="manuals-small"
    ) as walk:
        walk.plant("row", "error", match={"index": 0}, **TOO_LARGE)
        walk.plant("row", "status_zero", match={"index": 1})
        walk.settle()
        report = freeze_due(walk)
        assert (report.records, report.refused, report.paths) == (1, 1, {"repeat": 1})
        walk.settle()
        assert walk.states() == {
            "shop/d0.txt": "dead_letter",
            "shop/d1.txt": "published",
            "shop/d2.txt": "published",
        }
        ((failure, _),) = letters(walk)
        assert failure == "too_large"
        assert batch_states(walk) == ["completed_with_errors", "completed"]
        check_three_facts(walk)


def test_a_repeated_request_is_the_newest_one(walk: ProviderWalk) -> None:
    """A transport failure after a larger request repeats the larger one."""
    walk.plant("row", "truncated")
    walk.settle()
    walk.plant("row", "status_zero")
    try_again(walk)
    assert paths(walk) == [("first", "truncated"), ("larger_output", "transport"), ("repeat", None)]
    assert [body["max_output_tokens"] for body in bodies(walk)] == [4000, 12_000, 12_000]
    _, second, third = digests(walk)
    assert second == third
    assert walk.published() == walk.titles
    check_three_facts(walk)


def test_an_earlier_change_is_kept_by_a_later_one(walk: ProviderWalk) -> None:
    """Repaired with the room that it needed already, or it would only be cut once more."""
    walk.plant("row", "truncated")
    walk.settle()
    walk.plant("row", "prose")
    try_again(walk)
    assert [path for path, _ in paths(walk)] == ["first", "larger_output", "repair_prompt"]
    assert [body["max_output_tokens"] for body in bodies(walk)] == [4000, 12_000, 12_000]
    assert walk.published() == walk.titles


@pytest.mark.parametrize(
    ("kind", "args", "failure", "path"),
    [
        ("truncated", {}, "truncated", "larger_output"),
        ("prose", {}, "malformed_json", "repair_prompt"),
        ("error", TOO_LARGE, "too_large", "fewer_pages"),
    ],
)
def test_without_recovery_in_the_spec_it_is_an_owners(
    emulator: RunningEmulator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    args: dict[str, Any],
    failure: str,
    path: str,
) -> None:
    with walking(emulator, tmp_path, monkeypatch, 2, key="manuals-openai-batch-1") as walk:
        walk.plant("row", kind, **args)
        assert try_again(walk) == []
        assert letters(walk) == [(failure, f"the version allows no {path}")]
        assert sorted(walk.states().values()) == ["dead_letter", "published"]


def test_a_job_that_has_no_room_goes_in_halves(
    emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with walking(emulator, tmp_path, monkeypatch, 5) as walk:
        walk.plant("job", "failed", code="token_limit_exceeded")
        (report,) = try_again(walk)
        assert (report.records, report.batches) == (5, 3)
        assert report.paths == {"smaller_batch": 5}
        sizes = [row["expected_records"] for row in shop_of(walk).rows(batches)]
        assert sizes == [5, 2, 2, 1], "at most half the size"
        tried = attempts_of(walk)
        assert tried["counted"].to_list()[:5] == [0] * 5, "it costs no attempt"
        for document in walk.titles:
            first, second = digests(walk, document)
            assert first == second
        parents = {row["parent_batch_no"] for row in shop_of(walk).rows(batch_parents)}
        assert len(parents) == 1
        assert walk.published() == walk.titles
        assert batch_states(walk) == ["completed"] * 4
        check_three_facts(walk)


def test_a_job_that_never_has_room_holds_the_version(walk: ProviderWalk) -> None:
    walk.plant("job", "failed", times=None, code="token_limit_exceeded")
    made = try_again(walk)
    assert [report.batches for report in made] == [3, 3, 3], "one record is the least"
    assert hold_kind(walk) == "free_retries"
    assert set(walk.states().values()) == {"retry_wait"}
    assert letters(walk) == []
    walk.world.faults.clear()
    let_go(walk)
    assert freeze_due(walk).records == 3
    walk.settle()
    assert walk.published() == walk.titles
    check_three_facts(walk)


def test_a_job_that_fails_for_the_account_is_sent_again_after_the_release(
    walk: ProviderWalk,
) -> None:
    walk.plant("job", "failed", code="insufficient_quota")
    walk.settle()
    assert hold_kind(walk) == "quota"
    assert set(walk.states().values()) == {"retry_wait"}
    report = freeze_due(walk)
    assert report.manifest_id is None
    assert "held" in str(report.waiting)
    let_go(walk)
    assert freeze_due(walk).records == 3
    walk.settle()
    assert walk.published() == walk.titles
    assert batch_states(walk) == ["completed", "completed"]
    check_three_facts(walk)


def test_half_a_job_that_expired(walk: ProviderWalk) -> None:
    walk.plant("job", "expired", done=0.7)
    (report,) = try_again(walk)
    assert report.records == 1, "what was done is used, the rest is asked for again"
    assert paths(walk, "shop/d2.txt") == [("first", "expired"), ("repeat", None)]
    assert attempts_of(walk)["counted"].drop_nulls().to_list() == [0]
    assert walk.published() == walk.titles
    check_three_facts(walk)


def test_what_an_operator_cancelled_at_the_provider_stays_so(walk: ProviderWalk) -> None:
    walk.step()
    (row,) = walk.jobs("submitted", "running")
    job = require_job(walk.context, row.id)
    client = batch_client(walk.context.settings, job.provider, job.endpoint)
    cancel(walk.context, job, client, "not wanted", "Ada")
    client.close()
    assert try_again(walk) == []
    assert set(walk.states().values()) == {"cancelled"}
    assert shop_of(walk).query("SELECT attempt_no FROM retry_decisions", {"n": pl.Int64}).is_empty()


def test_the_budget_of_money(walk: ProviderWalk) -> None:
    """The first job has cost more than all may: it is not followed by another."""
    walk.plant("row", "status_zero")
    walk.step()
    # Lowered while the job is out: before that it would have stopped the job itself.
    walk.set_operating("budget_usd", "0.0001")
    walk.settle()
    assert hold_kind(walk) == "budget"
    assert walk.states()["shop/d0.txt"] == "retry_wait"
    walk.set_operating("budget_usd", "50")
    let_go(walk)
    assert freeze_due(walk).records == 1
    walk.settle()
    assert walk.published() == walk.titles
    assert hold_kind(walk) is None
    check_three_facts(walk)


def test_a_budget_that_is_not_reached(walk: ProviderWalk) -> None:
    walk.set_operating("budget_usd", "50")
    walk.plant("row", "status_zero")
    (report,) = try_again(walk)
    assert report.records == 1
    assert walk.published() == walk.titles


BEDROCK = "manuals-bedrock-batch-1"


def takes_at_least(monkeypatch: pytest.MonkeyPatch, records: int) -> None:
    """The provider takes no smaller batch from now on."""
    home = importlib.import_module("pipeline_assets.prepare.plan")
    real = home._capability
    monkeypatch.setattr(
        home,
        "_capability",
        lambda *given: replace(real(*given), min_records=Fact(records, "a test", "2026-11")),
    )


@pytest.mark.parametrize(
    ("least", "sizes"),
    [
        pytest.param(2, [5, 3, 2], id="halves-are-too-small-for-one-cut"),
        pytest.param(3, [5, 5], id="no-half-is-taken"),
    ],
)
def test_no_half_is_smaller_than_the_provider_takes(
    emulator: RunningEmulator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    least: int,
    sizes: list[int],
) -> None:
    """The alternative is a batch that is refused for ever."""
    with walking(emulator, tmp_path, monkeypatch, 5) as walk:
        takes_at_least(monkeypatch, least)
        walk.plant("job", "failed", code="token_limit_exceeded")
        walk.settle()
        freeze_due(walk)
        assert [row["expected_records"] for row in shop_of(walk).rows(batches)] == sizes


def test_too_few_for_the_provider_wait_with_the_reason(
    emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with walking(emulator, tmp_path, monkeypatch, 100, key=BEDROCK, provider="bedrock") as walk:
        walk.plant("row", "error", status=529)
        walk.settle()
        report = freeze_due(walk)
        assert (report.manifest_id, report.records, report.refused) == (None, 0, 0)
        assert report.waiting is not None
        assert report.waiting.startswith("1 records are to be tried again")
        assert "below 100" in report.waiting
        assert sorted(set(walk.states().values())) == ["published", "retry_wait"]
        version = open_version(walk.context, BEDROCK)
        again = freeze_retries(walk.context, version)
        assert again.waiting is None, "it is looked at again in an hour"
        walk.advance(3_700)
        assert freeze_retries(walk.context, version).waiting == report.waiting
