"""Exporting what ended: everything once, and nothing where it cannot be."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta

import polars as pl
import pytest
from sqlalchemy import delete, insert, select, update

from pipeline_assets.prepare.retries import requeue
from pipeline_assets.tracing.export import TraceReport, export_traces
from pipeline_assets.tracing.exporter import Exporter
from pipeline_assets.tracing.one_record import trace_of
from pipeline_assets.tracing.spans import trace_id_of
from resources.context import Context
from resources.ledger.leases import acquire
from resources.ledger.schema import moves, records, trace_marks
from resources.ledger.trace_marks import GAP_PATIENCE, settled_up_to
from tests.integration.recovery.support import Retries
from tests.integration.stages.support import KEY, ON_ONE_DATABASE
from tests.integration.tracing.support import CollectorServer, Kept

GOOD = ["good"] * 8


def with_settings(context: Context, **changes: object) -> Context:
    return replace(context, settings=context.settings.model_copy(update=changes))


def export(retries: Retries, to: Exporter, share: float = 0.0) -> TraceReport:
    context = with_settings(retries.shop.context, trace_share=share)
    return export_traces(context, KEY, to)


def marks(retries: Retries) -> list[int]:
    return [row["move_no"] for row in retries.shop.rows(trace_marks)]


def test_off_by_default_and_then_nothing_is_read(retries: Retries) -> None:
    retries.walk(["good"])
    assert export_traces(retries.shop.context, KEY) == TraceReport("off")
    assert marks(retries) == []


def test_failing_slow_and_sampled_records_are_told_once(retries: Retries) -> None:
    retries.walk(["refused"], ["busy", "good"], *([one] for one in GOOD))
    kept = Kept()
    report = export(retries, kept)
    assert (report.ended, report.told, report.problem) == (10, 2, None)
    # The retried one is the slowest, and failing comes first.
    assert kept.roots() == [("m00.txt", "failing", 1), ("m01.txt", "failing", 1)]
    assert report.spans == sum(map(len, kept.traces))
    assert export(retries, kept) == TraceReport("kept")
    assert len(kept.traces) == 2
    everything = Kept("everything")
    assert export(retries, everything, 1.0).told == 10, "an exporter has a mark of its own"
    assert {why for _, why, _ in everything.roots()} == {"failing", "sampled"}


def test_a_failed_export_moves_no_mark(retries: Retries) -> None:
    retries.walk(["refused"], ["good"])
    report = export(retries, Kept(fail_after=1), 1.0)
    assert report == TraceReport("kept", problem="the test says so")
    assert marks(retries) == []
    kept = Kept()
    assert export(retries, kept, 1.0).told == 2


def test_what_ends_again_is_told_from_there(retries: Retries) -> None:
    retries.walk(["refused", "good"], ["good"])
    kept = Kept()
    export(retries, kept, 1.0)
    requeue(
        retries.shop.context,
        retries.shop.version(),
        pl.Series([retries.shop.rows(records)[0]["record_no"]], dtype=pl.Int64),
        "the provider mended it",
        "Ada",
    )
    again = Kept()
    report = export(retries, again, 1.0)
    assert (report.ended, again.traces) == (0, []), "under way"
    retries.step()
    report = export(retries, again, 1.0)
    assert (report.ended, report.told) == (1, 1)
    assert again.roots() == [("m00.txt", "failing", 2)]
    first = {span.span_id for trace in kept.traces for span in trace}
    assert not first & {span.span_id for span in again.traces[0]}
    (whole,) = [trace for trace in kept.traces if trace[0].trace_id == again.traces[0][0].trace_id]
    shown = trace_of(retries.shop.context, "m00.txt", KEY).spans
    assert [span.span_id for span in shown] == [span.span_id for span in (*whole, *again.traces[0])]


def test_nothing_that_people_wrote_is_told(retries: Retries) -> None:
    retries.walk(["refused", "doubtful"], ["good"])
    requeue(
        retries.shop.context,
        retries.shop.version(),
        pl.Series([retries.shop.rows(records)[0]["record_no"]], dtype=pl.Int64),
        "a very private reason",
        "Ada",
    )
    retries.step()
    kept = Kept()
    export(retries, kept, 1.0)
    shown = str([kept.traces, trace_of(retries.shop.context, "m00.txt", KEY).spans])
    for text in ("private", "Ada", "Bench Grinder", "bench grinder", "User Manual"):
        assert text not in shown


def test_episodes_are_those_of_the_journal(retries: Retries) -> None:
    """The frame that the choice is made of agrees with the lives, read one by one."""
    retries.walk(["refused"], ["busy", "good"], ["good"], ["doubtful"])
    kept = Kept()
    report = export(retries, kept, 1.0)
    assert report.ended == 3
    ids = [row["record_id"] for row in retries.shop.rows(records)]
    shown = {one: trace_of(retries.shop.context, one, KEY).spans for one in ids}
    closed = {
        trace_id_of(one)
        for one, spans in shown.items()
        if "tallybook.open" not in spans[0].attributes
    }
    assert {trace[0].trace_id for trace in kept.traces} == closed


def test_another_worker_s_export_is_left_alone(retries: Retries) -> None:
    retries.walk(["refused"])
    context = retries.shop.context
    version = retries.shop.version()
    acquire(context.ledger, f"traces:kept:{version.version_no}", "somebody else")
    kept = Kept()
    report = export(retries, kept)
    assert report.problem == "another worker is exporting this version's traces"
    assert kept.traces == []


@ON_ONE_DATABASE
def test_a_gap_of_a_younger_transaction_holds_the_mark_back(retries: Retries) -> None:
    retries.walk(["refused"])
    ledger = retries.shop.context.ledger
    numbers = [row["move_no"] for row in retries.shop.rows(moves)]
    with ledger.write() as connection:
        connection.execute(delete(moves).where(moves.c.move_no == numbers[2]))

    def reach(after: timedelta, mark: int = 0) -> int:
        with ledger.read() as connection:
            return settled_up_to(connection, ledger.dialect, mark, ledger.clock() + after)

    with ledger.write() as connection:
        connection.execute(update(moves).values(moved_at=ledger.now()))
    assert reach(timedelta()) == numbers[1]
    assert reach(timedelta(), numbers[1]) == numbers[1], "nothing is certain behind it"
    assert reach(GAP_PATIENCE + timedelta(seconds=1)) == numbers[-1]
    with ledger.write() as connection:
        whole = connection.execute(select(moves).order_by(moves.c.move_no)).mappings().first()
        assert whole is not None
        filled = dict(whole) | {"move_no": numbers[2], "chain": "x", "digest": "0" * 64}
        connection.execute(insert(moves).values(filled))
    assert reach(timedelta()) == numbers[-1]


def test_a_collector_gets_the_spans(
    retries: Retries, collector: CollectorServer, caplog: pytest.LogCaptureFixture
) -> None:
    retries.walk(["refused"], ["good"])
    context = with_settings(retries.shop.context, traces="otlp", trace_share=1.0)
    collector.status = 400
    report = export_traces(context, KEY)
    assert report.problem is not None
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in report.problem
    assert collector.url not in report.problem
    assert "open-sesame" not in report.problem
    assert caplog.text == "", "the library's own log quotes addresses"
    assert marks(retries) == []
    collector.status = 200
    report = export_traces(context, KEY)
    assert (report.told, report.problem) == (2, None)
    spans = collector.spans()
    assert len(spans) == report.spans
    ids = {row["record_id"]: row["record_no"] for row in retries.shop.rows(records)}
    assert {span.trace_id.hex() for span in spans} == {trace_id_of(one) for one in ids}
    roots = [span for span in spans if not span.parent_span_id]
    known = {span.span_id for span in spans}
    assert all(span.parent_span_id in known for span in spans if span not in roots)
    assert {span.status.message for span in roots} == {"dead_letter", ""}
    for span in spans:
        assert span.start_time_unix_nano <= span.end_time_unix_nano
    attributes = {one.key: one.value for one in roots[0].attributes}
    assert (
        attributes["tallybook.record_no"].int_value
        == ids[attributes["tallybook.record_id"].string_value]
    )
    resource = {
        one.key: one.value.string_value
        for one in collector.requests[0].resource_spans[0].resource.attributes
    }
    assert resource["service.name"] == "tallybook"
    assert resource["deployment.environment.name"] == "test"
    assert collector.headers[0]["x-key"] == "open-sesame"
    assert export_traces(context, KEY) == TraceReport("otlp")
    assert len(collector.spans()) == report.spans


@ON_ONE_DATABASE
@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        pytest.param(
            "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "only http/protobuf", id="another protocol"
        ),
        pytest.param(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "http://127.0.0.1:9/nobody",
            "the collector did not take",
            id="nobody listens",
        ),
    ],
)
def test_a_collector_that_cannot_be_used_is_told(
    retries: Retries, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, told: str
) -> None:
    retries.walk(["refused"])
    monkeypatch.setenv(variable, value)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    context = with_settings(retries.shop.context, traces="otlp")
    report = export_traces(context, KEY)
    assert report.problem is not None
    assert told in report.problem
    assert value not in report.problem
    assert marks(retries) == []


@ON_ONE_DATABASE
def test_headers_that_cannot_be_read_are_not_quoted(
    retries: Retries,
    collector: CollectorServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    retries.walk(["refused"])
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization: Bearer open-sesame")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "open-sesame")
    context = with_settings(retries.shop.context, traces="otlp")
    assert export_traces(context, KEY).spans == len(collector.spans()) > 0
    assert caplog.text == ""
    logging.getLogger("opentelemetry.util.re").warning("another one is heard again")
    assert "another one" in caplog.text
