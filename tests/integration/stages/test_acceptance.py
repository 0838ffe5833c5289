"""What the stage accept leaves behind: reviews, places, another attempt, alerts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import polars as pl
import pytest

from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.prepare.retries import freeze_retries, requeue
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.submit.submit_batches import submit_batches
from pipeline_assets.versions import OpenVersion
from pipeline_assets.workloads.workload import (
    BatchFindings,
    BatchRule,
    BatchView,
    Rule,
    Severity,
    Shard,
)
from resources.contracts import PLACES, read_frame
from resources.ledger.schema import (
    alerts,
    batches,
    dead_letters,
    judgements,
    retry_decisions,
    reviews,
)
from tests.integration.stages.support import FAN, Shop

FOUND = {"row": pl.Int64, "field": pl.String, "note": pl.String}


def about(document: str, severity: Severity) -> Rule:
    """A rule that finds something about one document."""

    def check(shard: Shard) -> pl.DataFrame:
        return shard.records.filter(pl.col("document_id").str.ends_with(document)).select(
            "row", field=pl.lit("title"), note=pl.lit("told by the test")
        )

    return Rule("told", 1, severity, check)


def whole(severity: Severity, pattern: str | None) -> BatchRule:
    """A rule that finds something about every answer of a batch."""

    def check(view: BatchView) -> BatchFindings:
        found = view.answers.select("row", field=pl.lit("title"), note=pl.lit("told by the test"))
        return BatchFindings(found, pattern)

    return BatchRule("told_of_all", 1, severity, check)


def with_rules(
    version: OpenVersion, *rules: Rule, batch_rules: tuple[BatchRule, ...] = (), places: bool = True
) -> OpenVersion:
    """The version with other rules than its spec declares."""
    name = version.spec.acceptance or "1"
    changed = replace(
        version.workload.acceptances[name], rules=rules, batch_rules=batch_rules, places=places
    )
    return replace(version, workload=replace(version.workload, acceptances={name: changed}))


def answered(shop: Shop) -> OpenVersion:
    """Everything up to collected answers."""
    version = shop.fill().prepare()
    submit_batches(shop.context, version)
    collect_batches(shop.context, version)
    return version


def again(shop: Shop, version: OpenVersion) -> None:
    """The records that are due get another answer, which is judged."""
    submit_batches(shop.context, version)
    collect_batches(shop.context, version)
    judge_batches(shop.context, version)


def test_what_waits_has_a_review(shop: Shop) -> None:
    version = with_rules(answered(shop), about(FAN, "review"))
    report = judge_batches(shop.context, version)
    assert report.outcomes == {"accepted": 1, "awaiting_review": 1}
    (opened,) = shop.rows(reviews)
    waiting = {row["record_no"]: row for row in shop.rows(judgements)}[opened["record_no"]]
    assert waiting["outcome"] == "awaiting_review"
    assert (opened["attempt_no"], opened["values_digest"]) == (
        waiting["attempt_no"],
        waiting["values_digest"],
    )
    assert (opened["kind"], opened["sample_no"], opened["revision"], opened["decision"]) == (
        "findings",
        0,
        0,
        None,
    )
    assert opened["slice"] == "en/short/text"
    assert opened["priority"] > 0, "nobody can find the document yet"
    judge_batches(shop.context, version)
    assert shop.rows(reviews) == [opened], "judging again opens nothing"


def test_a_document_that_is_shown_waits_with_less_haste(shop: Shop) -> None:
    version = answered(shop)
    judge_batches(shop.context, with_rules(version))
    publish_accepted(shop.context, version)
    shop.write(FAN, (shop.folder / FAN).read_text().replace("level floor", "firm floor"))
    shop.prepare()
    submit_batches(shop.context, version)
    collect_batches(shop.context, version)
    judge_batches(shop.context, with_rules(version, about(FAN, "review")))
    (opened,) = shop.rows(reviews)
    assert opened["priority"] == 0


def test_an_answer_of_another_document_is_asked_for_once_more(shop: Shop) -> None:
    version = with_rules(answered(shop), about(FAN, "recover"))
    report = judge_batches(shop.context, version)
    assert report.outcomes == {"accepted": 1, "recovery": 1}
    assert sorted(shop.states().values()) == ["accepted", "retry_wait"]
    (decision,) = shop.rows(retry_decisions)
    assert (decision["decision"], decision["failure_class"], decision["recovery_path"]) == (
        "retry",
        "misrouted",
        "repeat",
    )
    (alert,) = shop.rows(alerts)
    assert alert["kind"] == "misrouted"
    assert alert["message"].endswith("1 is asked about once more")
    assert not shop.rows(reviews)

    with shop.context.ledger.write() as connection:
        connection.exec_driver_sql("UPDATE record_state SET not_before = NULL")
    assert freeze_retries(shop.context, version).records == 1
    again(shop, version)
    assert sorted(shop.states().values()) == ["accepted", "dead_letter"]
    (letter,) = shop.rows(dead_letters)
    assert letter["failure_class"] == "misrouted"
    assert letter["reason"] == "misrouted came 2 times, at most 1 retries"
    assert shop.rows(alerts)[-1]["message"].endswith("1 is given up and waits for its owner")


def test_a_second_answer_that_is_right_is_accepted(shop: Shop) -> None:
    version = answered(shop)
    judge_batches(shop.context, with_rules(version, about(FAN, "recover")))
    with shop.context.ledger.write() as connection:
        connection.exec_driver_sql("UPDATE record_state SET not_before = NULL")
    freeze_retries(shop.context, version)
    again(shop, version)
    assert set(shop.states().values()) == {"accepted"}
    assert publish_accepted(shop.context, version).published == 2


def test_a_newer_answer_overtakes_the_review_of_an_older_one(shop: Shop) -> None:
    version = with_rules(answered(shop), about(FAN, "review"))
    judge_batches(shop.context, version)
    (first,) = shop.rows(reviews)
    requeue(shop.context, version, pl.Series([first["record_no"]]), "look once more", "a reviewer")
    again(shop, version)
    older, newer = shop.rows(reviews)
    assert (older["review_no"], older["decision"], older["reviewer"]) == (
        first["review_no"],
        "overtaken",
        None,
    )
    assert older["revision"] == first["revision"] + 1
    assert (newer["record_no"], newer["decision"]) == (first["record_no"], None)
    assert newer["attempt_no"] > older["attempt_no"]


@pytest.mark.parametrize("pattern", [None, "2 of 2 answers are those of their neighbours"])
def test_a_pattern_is_told_once_a_batch(shop: Shop, pattern: str | None) -> None:
    version = with_rules(answered(shop), batch_rules=(whole("review", pattern),))
    report = judge_batches(shop.context, version)
    assert report.outcomes == {"awaiting_review": 2}
    told = [(row["kind"], row["subject"], row["message"]) for row in shop.rows(alerts)]
    (batch,) = shop.rows(batches)
    assert told == ([] if pattern is None else [("answers_astray", batch["batch_id"], pattern)])


def places_kept(shop: Shop, change: Callable[[OpenVersion], OpenVersion]) -> pl.DataFrame | None:
    judge_batches(shop.context, change(answered(shop)))
    (batch,) = shop.rows(batches)
    digest = batch["places_artifact"]
    if digest is None:
        return None
    return read_frame(PLACES, shop.context.artifacts.require("frame", digest))


def test_places_of_quotes_are_kept(shop: Shop) -> None:
    kept = places_kept(shop, with_rules)
    assert kept is not None
    assert kept["attempt_no"].n_unique() == 2
    assert kept["start"].null_count() == 0
    assert (kept["end"] > kept["start"]).all()


def test_rules_that_ask_for_no_places_keep_none(shop: Shop) -> None:
    assert places_kept(shop, lambda version: with_rules(version, places=False)) is None
