"""The text for machines: every number as `status` tells it, and no text of documents."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import accumulate, pairwise
from typing import Any, get_args

import polars as pl
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as older_families
from sqlalchemy import insert

from pipeline_assets.account.ages import Ages
from pipeline_assets.account.disk import DiskFacts, Place
from pipeline_assets.account.hold_facts import HoldFacts, QueueFacts
from pipeline_assets.account.machine_facts import (
    Costs,
    LastLooks,
    Reading,
    VersionReading,
    costs_now,
    read_facts,
)
from pipeline_assets.account.openmetrics import Form, as_text, exposition, measures
from pipeline_assets.account.operational import (
    DISPOSITIONS,
    UNRECONCILED,
    OperationalFacts,
    ProviderCounts,
    operational_facts,
)
from pipeline_assets.account.plotted import plotted_numbers
from pipeline_assets.account.readiness import Readiness
from pipeline_assets.account.remembered_costs import PAUSE, RememberedCosts
from pipeline_assets.account.status import NextPoll, Publication, Status, Waiting, status
from pipeline_assets.account.waits import Wait
from pipeline_assets.costs.account import CostAccount, Part, Tokens
from pipeline_assets.costs.charges import MEANINGS
from pipeline_assets.costs.review_time import ReviewTime
from pipeline_assets.costs.times import PARTS, TimeAccount
from pipeline_assets.distribution import EDGES, Distribution, distribution
from pipeline_assets.known_version import VersionNeverUsed
from pipeline_assets.recovery.backpressure import QUEUES
from pipeline_assets.recovery.holds import KINDS as HOLD_KINDS
from pipeline_assets.recovery.holds import hold
from resources.artifacts import KINDS as ARTIFACT_KINDS
from resources.clock import to_text
from resources.context import Context, open_context
from resources.ledger import schema
from resources.ledger.alerts import raise_alert
from resources.ledger.transitions import BATCH, RECORD
from resources.settings import Settings
from tests.support.clock import FrozenClock
from tests.support.postgres import fresh_database
from tests.support.small_archive import KEY, PUMP, Archive, fill_folder

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
FORMS: tuple[Form, ...] = get_args(Form)
PARSERS = {"openmetrics": text_string_to_metric_families, "prometheus": older_families}


def parse(text: bytes, form: Form = "openmetrics") -> Samples:
    """Every sample of a text; one that is there twice fails."""
    found: Samples = {}
    for family in PARSERS[form](text.decode()):
        assert family.documentation
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found
            found[key] = sample.value
    return found


def without_disk(text: bytes) -> Samples:
    """Without what changes while nobody does anything here: the disk, and the ledger's file."""
    found = parse(text)
    return {key: number for key, number in found.items() if not re.search("disk_|ledger_", key[0])}


def value(samples: Samples, name: str, **labels: str) -> float | None:
    return samples.get((f"tallybook_{name}", frozenset(labels.items())))


def spread(samples: Samples, name: str, ending: str = "", **labels: str) -> dict[str, Any]:
    """A histogram with its quantiles, in the form that `status --json` has."""
    bounds = [*(str(float(edge)) for edge in EDGES), "+Inf"]
    buckets = [value(samples, f"{name}_seconds_bucket", **labels, le=bound) for bound in bounds]
    counts = [int(count or 0) for count in buckets]
    quantiles = {
        field: value(samples, f"{name}_quantile_seconds", **labels, quantile=quantile)
        for field, quantile in (("p50", "0.5"), ("p90", "0.9"), ("max", "1"))
    }
    return {
        "count": value(samples, f"{name}_seconds_{ending}count", **labels),
        "total": value(samples, f"{name}_seconds_{ending}sum", **labels),
        **quantiles,
        "histogram": (counts[0], *(after - before for before, after in pairwise(counts))),
    }


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("sqlite", id="sqlite"),
        pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgres),
    ],
)
def busy(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Archive]:
    """Return an archive with an alert, a hold, audits, a backup and work that waits; shared."""
    place, clock = tmp_path_factory.mktemp("busy"), FrozenClock()
    with ExitStack() as stack:
        url = f"sqlite:///{place / 'ledger.sqlite3'}"
        if request.param == "postgresql":
            fresh = stack.enter_context(fresh_database(request.getfixturevalue("postgres")))
            url = fresh.render_as_string(hide_password=False)
        settings = Settings(
            state=place / "state", ledger_url=url, source=place / "documents", shard_records=2
        )
        context = stack.enter_context(open_context(settings, clock=clock, rng=random.Random(7)))
        archive = Archive(place / "documents", settings, context, clock)
        fill_folder(archive)
        archive.process()
        _make_busy(archive)
        yield archive


def _make_busy(archive: Archive) -> None:
    context, version_no = archive.context, archive.version().version_no
    archive.write(PUMP, "A document that changed. Its record is of other bytes now.")
    archive.clock.advance(7200)
    archive.scan()
    hold(context, version_no, "budget", "told by the test")
    at = context.ledger.now()
    with context.ledger.write() as connection:
        raise_alert(connection, "incident", "b-1", "a message", at)
        raise_alert(connection, "of_the_future", "b-1", "a message", at)
        for version, findings in ((version_no, 3), (None, 2)):
            connection.execute(
                insert(schema.audits).values(
                    version_no=version,
                    scope="{}",
                    checked=9,
                    findings=findings,
                    journal_digest="0" * 64,
                    actor="ada",
                    made_at=at,
                )
            )
        connection.execute(
            insert(schema.backups).values(
                backup_id="b",
                digest="0" * 64,
                ledger_rows=1,
                artifacts=1,
                bytes=1,
                actor="ada",
                made_at=at,
            )
        )


def test_every_number_is_that_of_status(busy: Archive) -> None:
    context = busy.context
    told = status(context, KEY).as_json()
    found = parse(exposition(context))

    def of(name: str, **labels: str) -> float | None:
        return value(found, name, version=KEY, **labels)

    assert told["waiting"]
    assert told["held"]["kind"] == "budget"
    assert of("documents") == told["documents"]
    assert of("excluded_documents") == told["excluded"]
    assert of("shown_documents") == told["shown"]
    assert of("open_records") == told["open_records"]
    assert of("active_attempts") == told["active_attempts"]
    assert of("dead_letters_open") == told["dead_letters"]
    assert of("retries_due") == told["retries_due"]
    assert of("publication_ratio") == told["publication"]["share"]
    assert of("done") == int(told["done"]) == 0
    assert of("closed") == 0
    assert of("reviews_open", kind="findings") == told["review_backlog"]
    assert of("reviews_open", kind="quality_sample") == told["sample_backlog"]
    assert {stage: of("stage_documents", stage=stage) for stage in told["stages"]} == told["stages"]
    for state in sorted(RECORD.keys() - {""}):
        assert of("records", state=state) == told["states"].get(state, 0)
    for state in sorted(BATCH.keys() - {""}):
        assert of("batches", state=state) == told["batches"].get(state, 0)
    for item in told["waiting"]:
        needs = "person" if item["by_person"] else "run"
        assert of("waiting", what=item["what"], needs=needs) == item["count"]
    for queue in told["backlog"]:
        assert of("queue_records", queue=queue["queue"]) == queue["records"]
        assert of("queue_limit_records", queue=queue["queue"]) == queue["limit"]
    for kind in HOLD_KINDS:
        assert of("held", kind=kind) == int(kind == told["held"]["kind"])
    for name, field in (
        ("open_record_age", "open_records"),
        ("batch_out_age", "batches_out"),
        ("open_batch_age", "batches_open"),
        ("review_age", "reviews"),
        ("sample_age", "quality_samples"),
    ):
        assert spread(found, name, "g", version=KEY) == told["ages"][field]


def test_the_house(busy: Archive) -> None:
    context, at = busy.context, busy.clock()
    found = parse(exposition(context))
    (disk,) = [version.disk for version in read_facts(context).versions]
    assert value(found, "read_timestamp_seconds") == at.timestamp()
    assert value(found, "alerts_open", kind="incident", severity="page") == 1
    assert value(found, "alerts_open", kind="of_the_future", severity="warn") == 1
    assert value(found, "alerts_open", kind="misrouted", severity="page") == 0
    assert value(found, "last_audit_timestamp_seconds", version=KEY) == at.timestamp()
    assert value(found, "last_audit_findings", version=KEY) == 2
    assert value(found, "last_backup_timestamp_seconds") == at.timestamp()
    assert value(found, "last_report_timestamp_seconds", version=KEY) is None
    assert value(found, "last_closing_timestamp_seconds", version=KEY) is None
    assert value(found, "ledger_bytes") == disk.ledger_bytes > 0
    assert value(found, "disk_reserve_bytes") == disk.reserve
    for kind, size in disk.artifacts.items():
        assert value(found, "artifact_bytes", kind=kind) == size
        assert value(found, "artifact_files", kind=kind) == disk.artifact_files[kind]
    assert value(found, "disk_free_bytes", place="artifacts")


def test_the_jobs(busy: Archive) -> None:
    (facts,) = operational_facts(busy.context)
    found, told = parse(exposition(busy.context)), facts.as_json()
    labels = {"version": KEY, "provider": "baseline", "mode": "embedded"}
    for name, field in (
        ("jobs_total", "jobs"),
        ("polls_total", "polls"),
        ("polls_per_job", "polls_per_job"),
        ("most_polls", "most_polls"),
        ("attempts_total", "attempts"),
        ("retry_ratio", "retry_rate"),
        ("result_files_total", "result_files"),
        ("result_lines_total", "result_lines"),
        ("download_bytes_total", "download_bytes"),
        ("incidents_total", "incidents_ever"),
        ("quarantines_total", "quarantined_ever"),
    ):
        assert value(found, name, **labels) == told[field]
    for disposition, count in facts.dispositions.items():
        assert value(found, "dispositions_total", **labels, disposition=disposition) == count
    for state, count in facts.unreconciled.items():
        assert value(found, "unreconciled_records", **labels, state=state) == count
    for name, ending, field in (
        ("queue_age", "g", "queue_now"),
        ("queue_time", "", "queue_ended"),
        ("running_age", "g", "running_now"),
        ("running_time", "", "running_ended"),
        ("reconciliation_age", "g", "reconciling_now"),
        ("reconciliation_lag", "", "reconciling_ended"),
    ):
        assert spread(found, name, ending, **labels) == told[field]
    # Nothing is at a provider, so nobody says anything of any row.
    assert value(found, "provider_rows", **labels, outcome="total") is None


def test_the_costs_and_what_is_plotted(busy: Archive) -> None:
    context = busy.context
    account = costs_now(context, KEY).account
    found, plotted = parse(exposition(context)), plotted_numbers(context, KEY)
    now = status(context, KEY)
    (facts,) = operational_facts(context)
    assert value(found, "accepted_items", version=KEY) == account.accepted > 0
    assert value(found, "tokens_total", version=KEY, kind="input") == account.tokens.input
    assert value(found, "cost_known_usd", version=KEY) == float(account.usd) == 0
    for reason in MEANINGS:
        assert value(found, "cost_unknown", version=KEY, reason=reason) == 0
    for name, part in (("whole", account.time.whole), *account.time.parts.items()):
        told = spread(found, "item_time", "g", version=KEY, part=name)
        assert told["histogram"] == part.histogram
    assert plotted["accepted items"] == account.accepted
    assert plotted["published"] == now.publication.published
    assert plotted["review backlog"] == now.review_backlog
    assert plotted["dead letters"] == now.dead_letters
    assert plotted["failures"] == sum(facts.failures.values())
    assert plotted["retry rate"] == 0
    assert plotted["cost per accepted item, USD"] == 0
    assert plotted["oldest open record, hours"] == 0
    assert all(isinstance(number, int | float) for number in plotted.values())


def test_an_older_form_for_node_exporter(busy: Archive) -> None:
    text = exposition(busy.context, form="prometheus")
    found = parse(text, "prometheus")
    types = set(re.findall(r"^# TYPE \S+ (\S+)$", text.decode(), re.MULTILINE))
    assert types == {"gauge", "counter", "histogram"}
    newer = parse(exposition(busy.context))
    assert value(found, "attempts_total", version=KEY, provider="baseline", mode="embedded") == 3
    # Names in queries are the same in both, but for the sums of what there is now.
    endings = ("_gcount", "_gsum", "_count", "_sum")
    assert {key for key in newer if not key[0].endswith(endings)} == {
        key for key in found if not key[0].endswith(endings)
    }


def test_only_some_versions(busy: Archive) -> None:
    assert without_disk(exposition(busy.context, [KEY])) == without_disk(exposition(busy.context))
    with pytest.raises(VersionNeverUsed):
        exposition(busy.context, ["manuals-baseline-1"])
    none = parse(exposition(busy.context, []))
    assert not [labels for _, labels in none if "version" in dict(labels)]
    assert value(none, "alerts_open", kind="incident", severity="page") == 1


def test_no_document_is_told(busy: Archive) -> None:
    text = exposition(busy.context).decode()
    with busy.context.ledger.read() as connection:
        names = busy.context.ledger.dialect.fetch(
            connection,
            "SELECT document_id AS told FROM documents UNION SELECT record_id FROM records "
            "UNION SELECT batch_id FROM batches UNION SELECT content FROM archive_entries",
            {"told": pl.String},
        )["told"].to_list()
    assert len(names) > 8
    for name in (*names, "told by the test", "a message", "Pump", str(busy.folder)):
        assert name not in text


def test_one_moment(busy: Archive) -> None:
    """What is committed while the figures are read is in none of them."""
    context = busy.context
    before = without_disk(exposition(context))

    def interrupted(read: Context, key: str) -> Costs:
        with context.ledger.write() as connection:
            raise_alert(connection, "second_job", "b-2", "meanwhile", context.ledger.now())
        return costs_now(read, key)

    assert without_disk(exposition(context, read_costs=interrupted)) == before
    after = parse(exposition(context))
    assert value(after, "alerts_open", kind="second_job", severity="page") == 1


# Whatever the state.

MARK = "Zq"
"""Stands in every text that comes from outside or from people; in no word of ours."""
free = st.text(max_size=8).map(lambda text: f'{text}"\\\n{MARK}')
count = st.integers(0, 10**12)
share = st.none() | st.floats(0, 1)
seconds = st.floats(0, 1e8, allow_nan=False)
moment = st.datetimes(datetime(2000, 1, 1), datetime(2099, 1, 1)).map(
    lambda then: to_text(then.replace(tzinfo=UTC))
)
perhaps_moment = st.none() | moment
usd = st.decimals(0, 10**6, places=6)
spreads = st.lists(seconds, max_size=4).map(
    lambda values: distribution(pl.Series(values, dtype=pl.Float64))
)


def counts_of(words: tuple[str, ...]) -> st.SearchStrategy[dict[str, int]]:
    return st.dictionaries(st.sampled_from(words), count)


def statuses(key: str) -> st.SearchStrategy[Status]:
    held = st.builds(
        HoldFacts,
        kind=st.sampled_from(HOLD_KINDS),
        reason=free,
        since=moment,
        actor=free,
        ends_by_itself=st.booleans(),
        ends_at=perhaps_moment,
        ends=free,
    )
    waiting = st.builds(
        Waiting, st.sampled_from(("dead_letter", "batch incident", "held")), count, st.just(True)
    )
    return st.builds(
        Status,
        processing_version=st.just(key),
        state=st.sampled_from(("active", "held", "retired")),
        state_reason=free,
        documents=count,
        excluded=count,
        stages=counts_of(("scanned", "published")),
        states=counts_of((*sorted(RECORD.keys() - {""}), "unknown")),
        batches=counts_of(tuple(sorted(BATCH.keys() - {""}))),
        open_records=count,
        oldest_open_at=perhaps_moment,
        oldest_open_seconds=st.none() | seconds,
        waiting=st.lists(waiting, unique_by=lambda item: item.what).map(tuple),
        held=st.none() | held,
        breaker=st.none(),
        backlog=st.just(tuple(QueueFacts(name, 1, limit) for name in QUEUES for limit in (None,))),
        retries_due_at=perhaps_moment,
        sample=st.none(),
        shown=count,
        ages=st.builds(Ages, *[spreads] * 5),
        active_attempts=count,
        accepted=count,
        review_backlog=count,
        sample_backlog=count,
        dead_letters=count,
        publication=st.builds(
            Publication, published=count, accepted=count, shown=count, share=share
        ),
        next_poll=st.none() | st.builds(NextPoll, free, moment, st.booleans()),
        retries_due=count,
        waits=st.just((Wait(MARK, 1, MARK, None, (MARK,)),)),
        ready=st.none()
        | st.builds(Readiness, digest=free, made_at=moment, closed_at=moment, closed_by=free),
    )


def jobs(key: str) -> st.SearchStrategy[OperationalFacts]:
    said = st.none() | count
    return st.builds(
        OperationalFacts,
        processing_version=st.just(key),
        provider=st.sampled_from(("openai", "baseline")),
        mode=st.sampled_from(("batch", "embedded")),
        queue_now=spreads,
        queue_ended=spreads,
        running_now=spreads,
        running_ended=spreads,
        reconciling_now=spreads,
        reconciling_ended=spreads,
        provider_counts=st.builds(ProviderCounts, count, count, said, said, said, said),
        dispositions=counts_of(DISPOSITIONS),
        failures=counts_of(("truncated", "expired")),
        jobs=count,
        polls=count,
        most_polls=count,
        attempts=count,
        retries=counts_of(("repeat", "larger_output")),
        result_files=count,
        download_bytes=count,
        result_lines=count,
        unreconciled=counts_of(UNRECONCILED),
        incidents=count,
        incidents_ever=count,
        quarantined=count,
        quarantined_ever=count,
    )


def costs(key: str) -> st.SearchStrategy[Costs]:
    tokens = st.builds(Tokens, count, count, count)
    unknown = counts_of(tuple(MEANINGS))
    parts = st.sampled_from(("retries", "canaries")).flatmap(
        lambda name: st.builds(Part, st.just(name), count, tokens, usd, unknown)
    )
    review = st.builds(
        ReviewTime,
        decided=count,
        timed=count,
        untimed=count,
        capped=count,
        minutes=usd,
        usd_hour=st.none() | usd,
        usd=st.none() | usd,
    )
    account = st.builds(
        CostAccount,
        key=st.just(key),
        accepted=count,
        attempts=count,
        tokens=tokens,
        provider_usd=usd,
        unknown=unknown,
        by_purpose=st.lists(parts, unique_by=lambda part: part.name).map(tuple),
        by_outcome=st.just(()),
        by_class=st.just(()),
        by_slice=st.just(()),
        review=review,
        prices=st.just(()),
        time=st.builds(
            TimeAccount, count, spreads, st.fixed_dictionaries({name: spreads for name in PARTS})
        ),
    )
    return st.builds(Costs, account, st.just(datetime(2030, 1, 1, tzinfo=UTC)))


disks = st.builds(
    lambda sizes, free_bytes, forecast, enough: DiskFacts(
        artifacts=sizes,
        artifact_files=sizes,
        artifact_bytes=sum(sizes.values()),
        ledger_bytes=5,
        places=(Place(("artifacts", "ledger"), free_bytes, free_bytes, forecast, enough),),
        per_document=None,
        per_record=None,  # pyright: ignore[reportArgumentType]  # in no metric
        record_bytes=None,
        ahead=None,  # pyright: ignore[reportArgumentType]  # in no metric
        records_ahead=0,
        forecast=forecast,
        unknown=(),
        reserve=1,
        enough=enough,
    ),
    counts_of(ARTIFACT_KINDS),
    st.none() | count,
    st.none() | count,
    st.none() | st.booleans(),
)


def version_readings(key: str) -> st.SearchStrategy[VersionReading]:
    looks = st.builds(LastLooks, perhaps_moment, perhaps_moment, perhaps_moment, st.none() | count)
    return st.builds(VersionReading, statuses(key), jobs(key), disks, costs(key), looks)


readings = st.builds(
    Reading,
    st.just(datetime(2030, 1, 1, tzinfo=UTC)),
    st.tuples()
    | st.tuples(version_readings("one"))
    | st.tuples(*map(version_readings, ("a", "b"))),
    st.dictionaries(st.tuples(st.sampled_from(("incident", "auth")), st.just("page")), count),
    perhaps_moment,
)


@examples(max_examples=60)
@given(readings, st.sampled_from(FORMS))
def test_whatever_the_state_the_text_parses_and_tells_no_text(reading: Reading, form: Form) -> None:
    found = list(measures(reading))
    text = as_text(found, form)
    samples = parse(text, form)
    assert MARK not in text.decode()
    single = [measure for measure in found if not isinstance(measure.value, Distribution)]
    spreads_told = [measure for measure in found if isinstance(measure.value, Distribution)]
    # Buckets, count and sum for each spread.
    assert len(samples) == len(single) + len(spreads_told) * (len(EDGES) + 3)


@given(spreads)
def test_buckets_are_cumulative_and_end_in_the_count(spread_told: Distribution) -> None:
    assert list(accumulate(spread_told.histogram))[-1] == spread_told.count


def test_unknown_costs_have_no_sample(busy: Archive) -> None:
    known = costs_now(busy.context, KEY)
    account = replace(known.account, unknown={"price_unknown": 2}, provider_usd=Decimal(0))

    def unknown(context: Context, key: str) -> Costs:
        return replace(known, account=account)

    found = parse(exposition(busy.context, read_costs=unknown))
    assert value(found, "cost_unknown", version=KEY, reason="price_unknown") == 2
    for name in (
        "cost_known_usd",
        "provider_cost_known_usd",
        "cost_per_accepted_usd",
        "provider_cost_per_accepted_usd",
    ):
        assert value(found, name, version=KEY) is None
    plotted = plotted_numbers(busy.context, KEY, unknown)
    assert "cost per accepted item, USD" not in plotted


@pytest.mark.parametrize(
    ("minutes", "untimed", "seconds"),
    [
        pytest.param("0", 0, 0.0, id="nothing was reviewed"),
        pytest.param("1.5", 2, 90.0, id="what is known of it"),
        pytest.param("0", 2, None, id="not known is no 0"),
    ],
)
def test_the_time_of_reviewers(
    busy: Archive, minutes: str, untimed: int, seconds: float | None
) -> None:
    known = costs_now(busy.context, KEY)
    review = replace(known.account.review, minutes=Decimal(minutes), untimed=untimed)
    told = replace(known, account=replace(known.account, review=review))
    found = parse(exposition(busy.context, read_costs=lambda _context, _key: told))
    assert value(found, "review_time_seconds", version=KEY) == seconds
    assert value(found, "reviews_untimed", version=KEY) == untimed


@pytest.mark.parametrize(
    ("took", "later", "reads"),
    [
        pytest.param(0.0, 0.001, 2, id="at once where reading takes no time"),
        pytest.param(2.0, 2.0 * PAUSE - 0.1, 1, id="not within ten times its time"),
        pytest.param(2.0, 2.0 * PAUSE + 0.1, 2, id="anew after that"),
    ],
)
def test_costs_are_remembered(
    sqlite_archive: Archive, took: float, later: float, reads: int
) -> None:
    archive, clock, read_at = sqlite_archive, [0.0], list[float]()

    def read(context: Context, key: str) -> Costs:
        read_at.append(clock[0])
        clock[0] += took
        return Costs(None, context.clock())  # pyright: ignore[reportArgumentType]  # not looked at

    remembered = RememberedCosts(read, lambda: clock[0])
    first = remembered(archive.context, KEY)
    clock[0] += later
    archive.clock.advance(60)
    second = remembered(archive.context, KEY)
    assert len(read_at) == reads
    assert (second == first) == (reads == 1)
    remembered(archive.context, "another")
    assert len(read_at) == reads + 1
