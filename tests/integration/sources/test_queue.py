"""Queues as sources: neither repetition nor order nor a crash changes what events lead to."""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from sqlalchemy import func, select

from pipeline_assets.ingest import parse_documents as parsing
from pipeline_assets.ingest.event_alerts import look_at_dead_events
from pipeline_assets.ingest.parse_documents import parse_documents
from pipeline_assets.ingest.scan import ScanReport, scan_declared, scan_source
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.versions import open_version
from resources.context import Context, open_context
from resources.ledger.alerts import open_alerts
from resources.ledger.schema import (
    documents,
    ledger_info,
    metadata,
    records,
    source_entries,
    source_events,
    source_versions,
    sources,
)
from resources.ledger.source_events import list_events, record_events, retry_events
from resources.ledger.source_snapshots import present_documents
from resources.settings import load_settings
from resources.sources.declared import QueueSource
from resources.sources.event_queue import source as queue_module
from resources.sources.event_queue.source import QueueListing, open_queue
from resources.sources.port import SourceEmpty, SourceError, SourceMissing, SourceUnreadable
from resources.sources.seen import Seen
from tests.integration.stages.support import KEY, InProcessPool, manual
from tests.support.bucket_server import CREDENTIALS, BucketServer, bucket_server, credentials
from tests.support.postgres import fresh_database

__all__ = ["bucket_server", "credentials"]
WORKLOAD = "equipment_manuals"


class Crash(Exception):
    """The process dies here."""


@dataclass
class Station:
    """A place of documents, a queue of events that name them, and the ledger of both."""

    context: Context
    root: Path
    more: dict[str, Any] = field(default_factory=dict)
    sent: int = 0

    @property
    def documents(self) -> Path:
        return self.root / "documents"

    @property
    def declared(self) -> QueueSource:
        given: dict[str, Any] = {
            "name": "q",
            "kind": "queue",
            "workload": WORKLOAD,
            "transport": "folder",
            "path": self.root / "events",
            "documents": {"kind": "folder", "path": self.documents},
            **self.more,
        }
        return QueueSource.model_validate(given)

    def put(self, name: str, text: str) -> None:
        file = self.documents / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def send(self, content: Any) -> None:
        self.sent += 1
        file = self.root / "events" / f"{self.sent:06}.tmp"
        file.write_text(json.dumps(content))
        file.rename(file.with_suffix(".json"))

    def opened(self) -> QueueListing:
        return open_queue(self.declared, self.context.ledger)

    def scan(self, source: QueueListing | None = None, **more: Any) -> ScanReport:
        return scan_source(self.context, source or self.opened(), self.declared, **more)

    def events(self, *columns: str) -> list[tuple[Any, ...]]:
        with self.context.ledger.read() as connection:
            states = ("waiting", "done", "dead", "discarded")
            frame = list_events(connection, self.context.ledger, states=states)
        return frame.select(columns).rows()

    def present(self) -> dict[str, str | None]:
        frame = present_documents(self.context.ledger, WORKLOAD)
        return dict(frame.select("document_id", "checksum").iter_rows())

    def count(self, table: Any) -> int:
        with self.context.ledger.read() as connection:
            return int(connection.execute(select(func.count()).select_from(table)).scalar() or 0)


def station_at(root: Path, ledger_url: str, **settings: Any) -> Iterator[Station]:
    for name in ("documents", "events"):
        (root / name).mkdir()
    given = load_settings(state=root / "state", ledger_url=ledger_url, **settings)
    with open_context(given) as context:
        with context.ledger.write() as connection:
            for table in reversed(metadata.sorted_tables):
                if table is not ledger_info:
                    connection.execute(table.delete())
        yield Station(context, root)


@pytest.fixture(scope="module")
def sqlite_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('ledger') / 'ledger.sqlite3'}"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("sqlite", id="sqlite"),
        pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgres),
    ],
)
def each_url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite_url")
        return
    with fresh_database(request.getfixturevalue("postgres")) as url:
        yield url.render_as_string(hide_password=False)


@pytest.fixture
def station(tmp_path: Path, sqlite_url: str) -> Iterator[Station]:
    yield from station_at(tmp_path, sqlite_url)


@pytest.fixture
def both(tmp_path: Path, each_url: str) -> Iterator[Station]:
    yield from station_at(tmp_path, each_url)


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_only_the_named_documents_are_looked_at(both: Station) -> None:
    for name in ("a", "b", "in/c"):
        both.put(name, name)
    both.send({"document": "a"})
    both.send([{"document": "in/c"}, {"document": "a"}, {"document": "never"}])
    report = both.scan()
    assert report.snapshot.added == 2
    assert both.present() == {"q/a": sha("a"), "q/in/c": sha("in/c")}
    assert [state for (state,) in both.events("state")] == ["done"] * 4
    assert list((both.root / "events").iterdir()) == []
    # What no event names stays as it is known, even if it is gone.
    (both.documents / "a").unlink()
    both.put("in/c", "newer")
    both.send({"document": "in/c"})
    report = both.scan()
    assert (report.snapshot.changed, report.snapshot.removed) == (1, 0)
    assert both.present() == {"q/a": sha("a"), "q/in/c": sha("newer")}
    both.send({"document": "a"})
    assert both.scan().snapshot.removed == 1
    assert both.present() == {"q/in/c": sha("newer")}
    assert not both.scan().snapshot.written


def test_an_event_without_id_that_is_sent_again_looks_again(station: Station) -> None:
    for text in ("one", "two", "three"):
        station.put("a", text)
        station.send({"document": "a"})
        station.scan()
        assert station.present() == {"q/a": sha(text)}
    assert len(station.events("state")) == 3


def at_point(source: QueueListing, point: str, rng: random.Random) -> None:
    """Let the process die at a point of the next scan."""
    place, transport = source._place, source._transport
    acknowledge, settle = transport.acknowledge, source.settle
    look_up, read = place.look_up, place.read

    def die(*args: object) -> Any:
        raise Crash

    def acknowledge_some_then_die(receipts: list[str]) -> None:
        acknowledge(receipts[: rng.randint(0, len(receipts))])
        raise Crash

    def settle_then_die(*args: Any) -> None:
        settle(*args)
        raise Crash

    def look_then_die(ids: Iterable[str]) -> Iterator[Seen]:
        for number, seen in enumerate(look_up(ids)):
            if number == 3:
                raise Crash
            yield seen

    def read_then_die(wanted: pl.DataFrame) -> Iterator[pl.DataFrame]:
        yield from read(wanted.head(max(1, wanted.height // 2)))
        raise Crash

    patches: dict[str, tuple[object, str, Callable[..., Any]]] = {
        "received": (source, "_store", die),
        "stored": (transport, "acknowledge", die),
        "acknowledged": (transport, "acknowledge", acknowledge_some_then_die),
        "looked": (place, "look_up", look_then_die),
        "read": (place, "read", read_then_die),
        "snapshot": (source, "settle", settle_then_die),
    }
    target, name, replacement = patches[point]
    setattr(target, name, replacement)


POINTS = ["received", "stored", "acknowledged", "looked", "read", "snapshot"]


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_loses_nothing_and_doubles_nothing(
    station: Station, point: str, rng: random.Random
) -> None:
    for number in range(8):
        station.put(f"d{number}", f"text {number}")
        station.send({"id": f"e{number}", "document": f"d{number}"})
    source = station.opened()
    at_point(source, point, rng)
    with pytest.raises(Crash):
        station.scan(source)
    station.scan()
    assert station.present() == {f"q/d{n}": sha(f"text {n}") for n in range(8)}
    assert sorted(station.events("event_key", "state")) == sorted(
        (key, "done") for (key,) in station.events("event_key")
    )
    assert len(station.events("event_key")) == 8
    assert (station.count(source_entries), station.count(source_versions)) == (8, 8)


def deliveries(names: list[str], rng: random.Random) -> list[dict[str, str]]:
    """Every event one to five times, in any order."""
    events = [{"id": f"event {name}", "document": name} for name in names]
    sent = [event for event in events for _ in range(rng.randint(1, 5))]
    rng.shuffle(sent)
    return sent


@pytest.mark.parametrize("seed", range(4))
def test_every_event_one_to_five_times_in_any_order(both: Station, seed: int) -> None:
    rng = random.Random(seed)
    names = [f"in/{number}.txt" for number in range(30)]
    for name in names:
        both.put(name, name)
    sent = deliveries(names, rng)
    left = list(sent)
    while left:
        batch, left = left[:20], left[20:]
        # Several events in one file, and files of one event.
        while batch:
            some = rng.randint(1, 4)
            part, batch = batch[:some], batch[some:]
            both.send(part if len(part) > 1 else part[0])
        source = both.opened()
        if rng.random() < 0.6:
            at_point(source, rng.choice(POINTS), rng)
        try:
            both.scan(source)
        except Crash:
            continue
    both.scan()
    assert both.present() == {f"q/{name}": sha(name) for name in names}
    events = both.events("event_key", "document_id", "state", "times")
    assert len(events) == 30
    assert {document for _, document, _, _ in events} == {f"q/{name}" for name in names}
    assert {state for _, _, state, _ in events} == {"done"}
    assert sum(times for *_, times in events) >= len(sent)
    assert both.count(source_entries) == 30
    assert both.count(source_versions) == 30


@pytest.mark.slow
def test_one_record_each(tmp_path: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the declared source, the parser and the manifest, after every few deliveries."""
    monkeypatch.setattr(parsing, "ParserPool", InProcessPool)
    rng = random.Random(3)
    file = tmp_path / "sources.yaml"
    file.write_text(
        "sources:\n  q:\n    kind: queue\n    workload: equipment_manuals\n"
        "    transport: folder\n    path: events\n"
        "    documents: {kind: folder, path: documents}\n"
    )
    names = [f"in/{number}.txt" for number in range(6)]
    for station in station_at(tmp_path, sqlite_url, sources=file):
        for number, name in enumerate(names):
            station.put(name, manual("Water Pump", f"WP-{number}"))
        version = open_version(station.context, KEY)
        for event in deliveries(names, rng):
            station.send(event)
            if rng.random() < 0.3:
                scan_declared(station.context)
                parse_documents(station.context, parser_settings(version.spec), WORKLOAD)
                freeze_manifest(station.context, version)
        scan_declared(station.context)
        parse_documents(station.context, parser_settings(version.spec), WORKLOAD)
        freeze_manifest(station.context, version)
        with station.context.ledger.read() as connection:
            found = connection.execute(
                select(documents.c.document_id, func.count())
                .join(records, records.c.document_no == documents.c.document_no)
                .group_by(documents.c.document_id)
            )
            assert sorted(tuple(row) for row in found) == [(f"q/{name}", 1) for name in names]


def test_stale_and_swapped_events_tell_nothing_untrue(station: Station) -> None:
    """An event of a document's first state comes long after its last one."""
    rng = random.Random(5)
    station.put("stays", "x")
    late: list[dict[str, str]] = []
    for step in range(40):
        name = f"d{rng.randint(0, 5)}"
        if rng.random() < 0.3:
            (station.documents / name).unlink(missing_ok=True)
        else:
            station.put(name, f"{step}")
        event = {"id": f"{step}", "document": name}
        station.send(event)
        late.append(event)
        if rng.random() < 0.4:
            station.send(rng.choice(late))
            station.scan()
    for event in rng.sample(late, len(late)):
        station.send(event)
    station.scan()
    held = {f"q/{file.name}": sha(file.read_text()) for file in station.documents.iterdir()}
    held.pop("q/stays")
    assert station.present() == held


def test_a_document_that_is_still_being_written_keeps_its_event(station: Station) -> None:
    station.put("a", "half")
    station.send({"document": "a"})
    report = station.scan(settle_seconds=3_600)
    assert (report.unsettled, station.present()) == (1, {})
    assert station.events("state", "tries") == [("waiting", 0)]
    station.put("a", "whole")
    station.scan()
    assert station.present() == {"q/a": sha("whole")}
    assert station.events("state") == [("done",)]


def test_what_cannot_be_acted_on_is_dead_with_an_owner_and_tells_people(station: Station) -> None:
    station.more = {"owner": "clerks"}
    station.put("a", "x")
    station.send({"document": "../a"})
    station.send({"nothing": 1})
    station.scan()
    assert station.events("state", "owner", "problem") == [
        ("dead", "clerks", "the named path is outside the source"),
        ("dead", "clerks", "the message names no document"),
    ]
    assert look_at_dead_events(station.context) == {"q": 2}
    assert look_at_dead_events(station.context) == {"q": 2}
    (alert,) = open_alerts(station.context.ledger)
    assert (alert.kind, alert.subject, alert.times) == ("source_events", "q", 1)
    with station.context.ledger.write() as connection:
        connection.execute(source_events.delete())
    assert look_at_dead_events(station.context) == {}
    assert open_alerts(station.context.ledger) == []


def test_a_look_that_fails_is_repeated_then_given_up_then_taken_up_by_hand(
    station: Station,
) -> None:
    station.more = {"tries": 2}
    station.put("a", "x")
    station.put("b", "y")
    station.send([{"document": "a"}, {"document": "b"}])

    def scan_failing() -> None:
        source = station.opened()
        look_up = source._place.look_up

        def fail(document_ids: Iterable[str]) -> Iterator[Seen]:
            for seen in look_up(document_ids):
                bad = seen.document_id == "q/a"
                yield Seen("q/a", "failed", problem="access denied") if bad else seen

        source._place.look_up = fail
        station.scan(source)

    scan_failing()
    assert station.present() == {"q/b": sha("y")}
    assert station.events("document_id", "state", "tries") == [
        ("q/a", "waiting", 1),
        ("q/b", "done", 0),
    ]
    scan_failing()
    assert station.events("state", "problem") == [("dead", "access denied"), ("done", None)]
    station.scan()
    assert station.present() == {"q/b": sha("y")}
    ledger = station.context.ledger
    with ledger.write() as connection:
        retry_events(connection, ledger, [1], reason="access given", actor="kim")
    station.scan()
    assert station.present() == {"q/a": sha("x"), "q/b": sha("y")}


def test_a_place_or_queue_that_cannot_be_had_changes_nothing(station: Station) -> None:
    station.put("a", "x")
    station.send({"document": "a"})
    station.scan()
    (station.documents / "a").unlink()
    station.send({"document": "a"})
    events = station.root / "events"
    with pytest.raises(SourceEmpty):  # it looks like a disk that is not mounted
        station.scan()
    station.documents.rename(station.root / "away")
    with pytest.raises(SourceMissing):
        station.scan()
    assert len(list(events.iterdir())) == 1
    assert station.present() == {"q/a": sha("x")}
    (station.root / "away").rename(station.documents)
    station.more = {"allow_empty": True}
    station.scan()
    assert station.present() == {}
    events.rename(station.root / "no-events")
    with pytest.raises(SourceMissing, match="there is no folder of events"):
        station.scan()


def test_a_listing_that_fails_first_leaves_no_source(station: Station) -> None:
    (station.root / "events").rmdir()
    station.put("a", "x")
    with pytest.raises(SourceMissing):
        list(station.opened().listing())
    assert station.count(sources) == 0


def test_odd_files_are_listed_as_a_folder_lists_them(station: Station) -> None:
    station.put("empty", "")
    station.put("big", "x" * 100)
    station.put("in/ok", "x")
    (station.documents / "link").symlink_to(station.documents / "in")
    station.put("u\u0308", "decomposed")
    station.more = {
        "documents": {"kind": "folder", "path": station.documents, "max_file_bytes": 50}
    }
    names = ["empty", "big", "link", "link/ok", "in", "in/ok/x", "in/ok", "ü"]
    station.send([{"document": name} for name in names])
    station.scan()
    frame = present_documents(station.context.ledger, WORKLOAD)
    assert (
        dict(frame.select("document_id", "excluded").iter_rows())
        == {
            "q/empty": "empty",
            "q/big": "too_large",
            "q/link": "symbolic_link",
            "q/in/ok": None,
            "q/ü": "unreadable",
        }
        or dict(frame.select("document_id", "excluded").iter_rows())["q/ü"] is None
    )
    assert {state for (state,) in station.events("state")} == {"done"}


def test_ten_thousand_events_take_few_queries(station: Station) -> None:
    from sqlalchemy import event

    station.put("a", "x")
    for part in range(10):
        station.send([{"document": f"d{part}-{n}"} for n in range(1_000)])
    statements = 0
    engine = station.context.ledger.engine

    def count(*args: object) -> None:
        nonlocal statements
        statements += 1

    event.listen(engine, "before_cursor_execute", count)
    started = time.monotonic()
    station.scan()
    assert statements < 200
    assert time.monotonic() - started < 20
    assert station.events("state") == [("done",)] * 10_000


def sqs_station(station: Station, server: BucketServer, bucket: str | None, queue: str) -> None:
    station.more = {
        "transport": "sqs",
        "path": None,
        "queue_url": queue,
        "endpoint": server.endpoint,
    }
    if bucket is not None:
        station.more["documents"] = {
            "kind": "bucket",
            "url": f"s3://{bucket}/in",
            "endpoint": server.endpoint,
        }


def notified(bucket: str, key: str) -> dict[str, Any]:
    return {"Records": [{"s3": {"bucket": {"name": bucket}, "object": {"key": key}}}]}


@pytest.fixture
def no_wait(monkeypatch: pytest.MonkeyPatch, credentials: None) -> None:
    monkeypatch.setattr("resources.sources.event_queue.sqs.WAIT_SECONDS", 0)


@pytest.mark.usefixtures("no_wait")
def test_a_message_is_received_once_its_event_is_stored(
    station: Station, bucket_server: BucketServer
) -> None:
    bucket, queue = bucket_server.new_bucket(), bucket_server.new_queue(hidden_seconds=0)
    bucket_server.client().put_object(Bucket=bucket, Key="in/a", Body=b"x")
    sqs_station(station, bucket_server, bucket, queue)
    sqs = bucket_server.client("sqs")
    sqs.send_message(QueueUrl=queue, MessageBody=json.dumps({"id": "1", "document": "a"}))
    transport = station.opened()._transport
    (first,), (again,) = transport.receive(1, 1), transport.receive(1, 1)
    assert first.event_key == again.event_key
    transport.acknowledge([first.receipt, again.receipt])
    assert transport.receive(1, 1) == []
    sqs.send_message(QueueUrl=queue, MessageBody=json.dumps(notified(bucket, "in/a")))
    (other,) = transport.receive(1, 1)
    assert other.event_key != first.event_key


@pytest.mark.slow
@pytest.mark.usefixtures("no_wait")
def test_a_queue_of_notifications_about_a_bucket(
    station: Station, bucket_server: BucketServer
) -> None:
    rng = random.Random(11)
    bucket, queue = bucket_server.new_bucket(), bucket_server.new_queue()
    s3, sqs = bucket_server.client(), bucket_server.client("sqs")
    names = [f"d{number}" for number in range(12)]
    for name in names:
        s3.put_object(Bucket=bucket, Key=f"in/{name}", Body=name.encode())
    sqs_station(station, bucket_server, bucket, queue)
    sent = [name for name in names for _ in range(rng.randint(1, 5))]
    rng.shuffle(sent)
    for start in range(0, len(sent), 10):
        for name in sent[start : start + 10]:
            body = json.dumps(notified(bucket, f"in/{name}"))
            sqs.send_message(QueueUrl=queue, MessageBody=body)
        station.scan()
    assert station.present() == {f"q/{name}": sha(name) for name in names}
    assert {state for (state,) in station.events("state")} == {"done"}
    assert station.count(source_entries) == station.count(source_versions) == 12
    # A change, a removal, and an event of something outside.
    s3.put_object(Bucket=bucket, Key="in/d0", Body=b"newer")
    s3.delete_object(Bucket=bucket, Key="in/d1")
    for key in ("in/d0", "in/d1", "out/x"):
        sqs.send_message(QueueUrl=queue, MessageBody=json.dumps(notified(bucket, key)))
    report = station.scan()
    assert (report.snapshot.changed, report.snapshot.removed) == (1, 1)
    assert station.present()["q/d0"] == sha("newer")
    assert "q/d1" not in station.present()
    assert [state for (state,) in station.events("state")].count("dead") == 1
    # An object that did not change is not read again, whatever its event says.
    sqs.send_message(QueueUrl=queue, MessageBody=json.dumps(notified(bucket, "in/d2")))
    assert station.scan().read == 0
    with station.opened().open("q/d0") as stream:
        assert stream.read() == b"newer"


@pytest.mark.slow
@pytest.mark.usefixtures("no_wait")
@pytest.mark.parametrize("point", ["received", "stored", "acknowledged", "looked", "snapshot"])
def test_a_crash_between_the_queue_and_the_ledger(
    station: Station, bucket_server: BucketServer, point: str, rng: random.Random
) -> None:
    queue = bucket_server.new_queue(hidden_seconds=1)
    sqs = bucket_server.client("sqs")
    sqs_station(station, bucket_server, None, queue)
    for number in range(5):
        station.put(f"d{number}", f"text {number}")
        body = json.dumps({"id": f"{number}", "document": f"d{number}"})
        for _ in range(rng.randint(1, 3)):
            sqs.send_message(QueueUrl=queue, MessageBody=body)
    source = station.opened()
    at_point(source, point, rng)
    with pytest.raises(Crash):
        station.scan(source)
    time.sleep(1.1)
    station.scan()
    assert station.present() == {f"q/d{n}": sha(f"text {n}") for n in range(5)}
    assert station.events("state") == [("done",)] * 5
    assert station.count(source_entries) == station.count(source_versions) == 5
    time.sleep(1.1)
    assert sqs.receive_message(QueueUrl=queue).get("Messages", []) == []


@pytest.mark.usefixtures("no_wait")
def test_no_queue_no_server_no_client(
    station: Station, bucket_server: BucketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    station.put("a", "x")
    queue = bucket_server.new_queue()
    sqs_station(station, bucket_server, None, f"{queue}-none")
    with pytest.raises(SourceMissing, match="there is no queue"):
        list(station.opened().listing())
    sqs_station(station, bucket_server, None, queue)
    for name in CREDENTIALS:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    with pytest.raises(SourceUnreadable, match="no credentials were found"):
        station.scan()
    monkeypatch.setitem(__import__("sys").modules, "botocore.exceptions", None)
    with pytest.raises(SourceError, match="pip install"):
        station.scan()
    assert station.present() == {}


def test_more_than_a_listing_takes_is_for_the_next(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_module, "MESSAGES_AT_A_TIME", 4)
    monkeypatch.setattr(queue_module, "MOST_EVENTS", 10)
    station.put("a", "x")
    for _ in range(12):
        station.send({"document": "a"})
    list(station.opened().listing())
    assert len(list((station.root / "events").iterdir())) == 2
    station.scan()
    assert station.events("state") == [("done",)] * 12


def test_messages_of_many_events_are_stored_a_part_at_a_time(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_module, "MOST_EVENTS", 10)
    stored: list[int] = []

    def noted(
        connection: Any, ledger: Any, source_no: int, events: pl.DataFrame, owner: str
    ) -> None:
        stored.append(events.height)
        record_events(connection, ledger, source_no, events, owner)

    monkeypatch.setattr(queue_module, "record_events", noted)
    station.put("a", "first")
    for message in range(4):
        station.send([{"document": "a", "id": f"{message} {number}"} for number in range(8)])
    assert station.scan().snapshot.documents == 1
    assert stored == [16, 16]
    assert {state for (state,) in station.events("state")} == {"done"}
    assert list((station.root / "events").iterdir()) == []
