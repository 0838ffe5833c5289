"""Erasing what failed, what is tried again and what is under way, with a scripted provider."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import msgspec
import polars as pl
import pytest
from sqlalchemy import text

from pipeline_assets.account import health, integrity
from pipeline_assets.account.documents import find_document
from pipeline_assets.account.report import build_report
from pipeline_assets.erasure.plan import ErasureRefused
from pipeline_assets.erasure.purge import EraseReport, erase
from pipeline_assets.prepare.retries import requeue
from resources.artifacts import ArtifactDamaged, Sidecar
from resources.ledger.results import store_result_file
from tests.integration.erasure.support import words_in
from tests.integration.recovery.support import Retries
from tests.integration.stages.conftest import context, settings, shared_url, shop
from tests.integration.stages.support import KEY, Shop
from tests.support.clock import FrozenClock

__all__ = ["context", "settings", "shared_url", "shop"]


@pytest.fixture
def retries(
    shop: Shop, frozen_clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Retries]:
    if "postgresql" in str(shop.context.settings.ledger_url):
        pytest.skip("the statements are shown on both databases elsewhere")
    yield Retries(shop, frozen_clock, monkeypatch)


def erase_it(retries: Retries, name: str) -> EraseReport:
    found = find_document(retries.shop.context, name)
    return erase(retries.shop.context, found.document_no, found.document_id, "asked", "Ada")


def problems(retries: Retries) -> list[str]:
    found = [*integrity.diagnose(retries.shop.context), *health.look(retries.shop.context)]
    return [problem.kind for problem in found if problem.broken]


def test_another_record_of_the_batch_is_tried_again(retries: Retries) -> None:
    retries.start(["good"], ["busy", "good"], ["busy", "busy", "good"])
    retries.step()
    assert retries.states() == ["published", "retry_wait", "retry_wait"]
    erase_it(retries, "m00.txt")
    erase_it(retries, "m01.txt")
    assert retries.states() == ["withdrawn", "withdrawn", "retry_wait"]
    retries.again()
    retries.again()
    assert retries.states() == ["withdrawn", "withdrawn", "published"]
    retries.check()
    assert problems(retries) == []
    assert build_report(retries.shop.context, KEY).invariant_holds
    state = retries.shop.context.settings.state_folder
    assert words_in(state, ("BG-000", "BG-100")) == {}


@pytest.mark.slow
def test_another_dead_letter_of_the_batch_is_requeued(retries: Retries) -> None:
    retries.walk(["refused"], ["refused", "good"])
    erase_it(retries, "m00.txt")
    assert retries.states() == ["withdrawn", "dead_letter"]
    assert [closing for *_, closing in retries.letters()] == ["withdrawn", None]
    shop = retries.shop
    requeue(shop.context, shop.version(), pl.Series([2]), "the provider mended it", "Ada")
    retries.step()
    assert retries.states() == ["withdrawn", "published"]
    retries.check()
    assert problems(retries) == []


def test_what_is_prepared_or_submitted_is_refused_with_what_helps(retries: Retries) -> None:
    retries.start(["good"])
    with pytest.raises(ErasureRefused, match=r"-b1 is prepared: tallybook batch discard"):
        erase_it(retries, "m00.txt")
    assert retries.states() == ["prepared"]


@pytest.mark.slow
def test_a_published_record_that_is_asked_again_is_refused(retries: Retries) -> None:
    """Its request is at the provider once more: what comes back would hold it."""
    retries.start(["expired + late", "good"], ["good"])
    retries.step()
    retries.clock.advance(3600 * 3)
    retries.freeze()
    with pytest.raises(ErasureRefused, match="is prepared"):
        erase_it(retries, "m00.txt")


@pytest.mark.slow
def test_late_results_go_too(retries: Retries) -> None:
    retries.walk(["busy", "good + late"], ["good"])
    assert retries.late()
    report = erase_it(retries, "m00.txt")
    assert report.purged.missing == 0
    assert words_in(retries.shop.context.settings.state_folder, ("BG-000",)) == {}
    assert problems(retries) == []
    retries.check()


@pytest.mark.slow
def test_conflicting_lines_go_too(retries: Retries) -> None:
    retries.walk(["conflict"], ["good"])
    erase_it(retries, "m00.txt")
    assert words_in(retries.shop.context.settings.state_folder, ("BG-000",)) == {}
    assert problems(retries) == []


@pytest.mark.slow
def test_what_comes_back_later_is_told_and_purged_again(retries: Retries) -> None:
    """A batch is reconciled again, and its provider sends the answer of an erased document."""
    retries.walk(["busy", "good"], ["good"])
    shop = retries.shop
    artifacts, ledger = shop.context.artifacts, shop.context.ledger
    line = b'{"custom_id":"some-0","text":"BG-000 came back"}'
    erase_it(retries, "m00.txt")
    stored = artifacts.put("result", line + b"\n")
    number = retries.batch_nos()[0]
    with ledger.write() as connection:
        store_result_file(connection, number, "output", stored.digest, stored.size, 1, ledger.now())
        connection.execute(
            text(
                "INSERT INTO results (result_file_no, line, attempt_no, line_offset, line_length) "
                "SELECT MAX(result_file_no), 0, 1, 0, :length FROM result_files"
            ),
            {"length": len(line)},
        )
    assert problems(retries) == ["erased_came_back"]
    assert erase_it(retries, "m00.txt").begun_before
    assert problems(retries) == []
    assert artifacts.path("result", stored.digest).read_bytes() == b" " * len(line) + b"\n"


@pytest.mark.slow
def test_the_same_bytes_stored_again_do_not_bring_it_back(retries: Retries) -> None:
    """A provider is asked once more for the results of a batch, and sends the same file."""
    retries.walk(["good"], ["good"])
    artifacts = retries.shop.context.artifacts
    (digest,) = artifacts.names("result")
    before = artifacts.path("result", digest).read_bytes()
    erase_it(retries, "m00.txt")
    redacted = artifacts.path("result", digest).read_bytes()
    assert len(redacted) == len(before)
    assert redacted != before
    assert artifacts.put("result", before).digest == digest
    assert artifacts.path("result", digest).read_bytes() == redacted
    artifacts.verify("result", digest)


def test_a_file_restored_from_a_backup_is_told(retries: Retries) -> None:
    retries.walk(["good"], ["good"])
    artifacts = retries.shop.context.artifacts
    (digest,) = artifacts.names("result")
    path = artifacts.path("result", digest)
    before = path.read_bytes()
    erase_it(retries, "m00.txt")
    path.write_bytes(before)
    path.with_name(digest + ".redacted").unlink()
    assert problems(retries) == ["redaction"]
    erase_it(retries, "m00.txt")
    assert problems(retries) == []
    assert b"BG-000" not in path.read_bytes()


def test_a_sidecar_does_not_make_a_change_legal(retries: Retries) -> None:
    retries.walk(["good"], ["good"])
    artifacts = retries.shop.context.artifacts
    (digest,) = artifacts.names("result")
    path = artifacts.path("result", digest)
    forged = path.read_bytes().replace(b"BG-100", b"BG-999")
    path.write_bytes(forged)
    told = Sidecar(hashlib.sha256(forged).hexdigest(), (1,))
    path.with_name(digest + ".redacted").write_bytes(msgspec.json.encode(told))
    with pytest.raises(ArtifactDamaged):
        artifacts.verify("result", digest)
    assert problems(retries) == ["redaction"]
    with pytest.raises(ArtifactDamaged):
        erase_it(retries, "m00.txt")


@pytest.mark.slow
def test_a_damaged_file_is_not_made_whole_by_an_erasure(retries: Retries) -> None:
    retries.walk(["good"], ["good"])
    artifacts = retries.shop.context.artifacts
    (digest,) = artifacts.names("result")
    path = artifacts.path("result", digest)
    path.write_bytes(path.read_bytes().replace(b"BG-100", b"BG-999"))
    with pytest.raises(ArtifactDamaged):
        erase_it(retries, "m00.txt")
    assert "unfinished_erasure" in problems(retries)
