"""Erasing a document: nothing of it is left, and nothing else is touched."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline_assets.account import health, integrity
from pipeline_assets.account.explain import explain
from pipeline_assets.account.export import export_entries
from pipeline_assets.account.published import DocumentErased, published_entry
from pipeline_assets.account.report import build_report
from pipeline_assets.account.search import search
from pipeline_assets.collect.evidence import Verified, reconcile_batch
from pipeline_assets.prepare.again import frozen_bodies
from pipeline_assets.publish.withdraw import return_documents, withdraw_documents
from pipeline_assets.review.desk import lay_out
from pipeline_assets.review.errors import ReviewErased
from resources.contracts import PARSED_TEXT, scan_frame
from resources.ledger.batches import COMPLETE, find_batches
from resources.ledger.erasures import erased_documents
from resources.ledger.manifests import verify_manifest
from resources.providers.baseline import decode_request
from tests.integration.erasure.support import RARE, RARE_TEXT, Erasable, words_in
from tests.support.small_archive import COPY, FAN, KEY, PUMP, SAW, Archive


def problems(archive: Archive) -> list[str]:
    context = archive.context
    return [problem.kind for problem in [*integrity.diagnose(context), *health.look(context)]]


def test_no_word_of_an_erased_document_is_left(erasable: Erasable) -> None:
    state = erasable.archive.context.settings.state_folder
    before = words_in(state)
    kinds = {name.split("/")[1] for name in before if name.startswith("artifacts")}
    assert {"source", "text", "result", "frame"} <= kinds
    report = erasable.erase(RARE)
    assert words_in(state) == {}
    assert (report.purged.records, report.purged.entries) == (1, 1)
    assert erasable.state_of(RARE) == ["withdrawn"]
    assert erased_documents(erasable.archive.context.ledger).to_list() == [erasable.number(RARE)]
    assert problems(erasable.archive) == []
    assert build_report(erasable.archive.context, KEY).invariant_holds


def test_ids_digests_and_times_stay(erasable: Erasable) -> None:
    context = erasable.archive.context
    before = explain(context, RARE, KEY).as_json()
    erasable.erase(RARE)
    after = explain(context, RARE, KEY).as_json()
    assert after["erasure"]["reason"] == "asked by its owner"
    assert after["erasure"]["actor"] == "Ada"
    assert after["erasure"]["finished_at"] is not None
    assert after["source"]["checksum"] == before["source"]["checksum"]
    assert after["source"]["bytes_kept"] is False
    (then,), (now,) = before["records"], after["records"]
    assert now["record_id"] == then["record_id"]
    for attempt, same in zip(now["attempts"], then["attempts"], strict=True):
        for name in ("custom_id", "manifest", "request", "results", "disposition", "judgement"):
            assert attempt[name] == same[name]
    (entry,) = after["publications"]
    assert entry["content_digest"] == before["publications"][0]["content_digest"]
    assert entry["ended_by"] == {
        "kind": "erasure",
        "reason": "asked by its owner",
        "actor": "Ada",
    }
    assert not entry["visible"]


def test_nobody_sees_it_any_more_now_or_then(erasable: Erasable) -> None:
    context, clock = erasable.archive.context, erasable.archive.clock
    then = context.clock()
    clock.advance(60)
    erasable.erase(RARE)
    assert search(context, "quarzblitz") == []
    assert len(search(context, "pump")) == 1
    for moment in (None, then):
        with pytest.raises(DocumentErased, match="erased"):
            published_entry(context, RARE, as_of=moment)
    shown = [row["document_id"] for row in export_entries(context, as_of=then)]
    assert len(shown) == 2
    assert not any(name.endswith(RARE) for name in shown)


def test_other_documents_of_its_batch_are_as_they_were(erasable: Erasable) -> None:
    archive = erasable.archive
    context, version = archive.context, archive.version()
    (batch,) = find_batches(context.ledger, version.version_no, COMPLETE)
    before = reconcile_batch(context, version, batch, Verified())
    erasable.erase(RARE)
    verify_manifest(
        context.artifacts.require("manifest", batch.manifest_artifact),
        batch.manifest_id,
        batch.manifest_digest,
    )
    after = reconcile_batch(context, version, batch, Verified())
    attempt = erasable.column(
        "SELECT a.attempt_no FROM attempts a JOIN records r ON r.record_no = a.record_no "
        f"WHERE r.document_no = {erasable.number(RARE)}"
    )
    others = ~pl.col("attempt_no").is_in(attempt)
    for name in ("dispositions", "lines", "answers"):
        was, now = getattr(before, name), getattr(after, name)
        assert now.filter(others).equals(was.filter(others))
    assert after.dispositions.filter(~others)["failure_class"].to_list() == ["missing_result"]


def test_requests_of_others_are_read_as_they_were_frozen(erasable: Erasable) -> None:
    archive = erasable.archive
    context = archive.context
    erasable.erase(RARE)
    with context.ledger.read() as connection:
        rows = context.ledger.dialect.fetch(
            connection,
            "SELECT a.attempt_no, r.record_id, a.request_digest, a.request_offset, "
            "a.request_length, b.request_artifact FROM attempts a "
            "JOIN records r ON r.record_no = a.record_no JOIN batches b ON b.batch_no = a.batch_no "
            "WHERE r.document_no <> ?",
            {
                "row": pl.Int64,
                "record_id": pl.String,
                "request_digest": pl.String,
                "request_offset": pl.Int64,
                "request_length": pl.Int64,
                "request_artifact": pl.String,
            },
            (erasable.number(RARE),),
        )
    assert len(list(frozen_bodies(context.artifacts, rows, decode_request))) == rows.height == 3


def test_other_documents_of_its_text_pack_keep_their_text(erasable: Erasable) -> None:
    context = erasable.archive.context
    (pack,) = set(erasable.column("SELECT text_pack FROM parses WHERE text_pack IS NOT NULL"))
    before = pl.read_parquet(context.artifacts.path("text", pack))
    erasable.erase(RARE)
    context.artifacts.verify("text", pack)
    after = scan_frame(PARSED_TEXT, context.artifacts.require("text", pack)).collect()
    assert after.equals(before.filter(pl.col("text") != RARE_TEXT))
    assert after.height == before.height - 1


def test_bytes_that_another_document_has_stay(erasable: Erasable) -> None:
    context = erasable.archive.context
    report = erasable.erase(PUMP)
    ((checksum, others),) = report.plan.shared.items()
    assert [name.split("/", 1)[1] for name in others] == [COPY]
    assert context.artifacts.has("source", checksum)
    assert erasable.state_of(PUMP) == ["withdrawn"]
    assert search(context, "WP-100") == []
    assert problems(erasable.archive) == []


def test_an_open_review_of_it_is_closed(erasable: Erasable) -> None:
    erasable.erase(SAW)
    assert erasable.state_of(SAW) == ["withdrawn"]
    assert erasable.column("SELECT decision FROM reviews") == ["overtaken"]
    notes = erasable.column(
        "SELECT f.note FROM findings f JOIN records r ON r.record_no = f.record_no "
        f"WHERE r.document_no = {erasable.number(SAW)}"
    )
    assert notes
    assert set(notes) == {""}
    assert problems(erasable.archive) == []


def test_its_source_still_holds_it_and_it_is_never_processed_again(erasable: Erasable) -> None:
    archive = erasable.archive
    erasable.erase(RARE)
    archive.clock.advance(3600)
    archive.process()
    state = archive.context.settings.state_folder
    assert words_in(state) == {}
    assert erasable.state_of(RARE) == ["withdrawn"]
    archive.write(RARE, RARE_TEXT + "corrected\n")
    archive.clock.advance(3600)
    archive.process()
    assert words_in(state) == {}
    assert problems(archive) == []


def test_a_new_document_with_the_same_bytes_is_processed(erasable: Erasable) -> None:
    archive = erasable.archive
    erasable.erase(RARE)
    archive.write("another.txt", RARE_TEXT)
    archive.clock.advance(3600)
    archive.process()
    assert len(search(archive.context, "quarzblitz")) == 1
    assert problems(archive) == []
    # Looking through the erased one again leaves the other alone.
    assert erasable.erase(RARE).begun_before
    assert len(search(archive.context, "quarzblitz")) == 1
    assert problems(archive) == []


def test_bytes_of_a_withdrawn_document_stay_until_it_is_erased_too(erasable: Erasable) -> None:
    archive = erasable.archive
    (archive.folder / RARE).unlink()
    archive.write("another.txt", RARE_TEXT)
    archive.clock.advance(3600)
    archive.process()
    (archive.folder / "another.txt").unlink()
    archive.write(RARE, RARE_TEXT)
    archive.scan()
    assert erasable.state_of("another.txt") == ["published"]
    with archive.context.ledger.write() as connection:
        withdraw_documents(connection, archive.context, pl.Series([erasable.number("another.txt")]))
    report = erasable.erase(RARE)
    assert [*report.plan.shared.values()] == [("manuals/another.txt",)]
    assert problems(archive) == []
    # It comes back with the same bytes.
    archive.write("another.txt", RARE_TEXT)
    archive.scan()
    with archive.context.ledger.write() as connection:
        return_documents(connection, archive.context, pl.Series([erasable.number("another.txt")]))
    assert len(search(archive.context, "quarzblitz")) == 1
    assert problems(archive) == []
    erasable.erase("another.txt")
    assert words_in(archive.context.settings.state_folder) == {}
    assert problems(archive) == []


def test_both_documents_of_a_file_can_be_erased(erasable: Erasable) -> None:
    for name in (RARE, FAN):
        erasable.erase(name)
    context = erasable.archive.context
    state = context.settings.state_folder
    assert words_in(state, ("Ventilation",)) == {}
    assert problems(erasable.archive) == []
    assert build_report(context, KEY).invariant_holds


def test_a_review_of_it_says_that_it_was_erased(erasable: Erasable) -> None:
    erasable.erase(SAW)
    with pytest.raises(ReviewErased, match="was erased"):
        lay_out(erasable.archive.context, 1, "Ada")
