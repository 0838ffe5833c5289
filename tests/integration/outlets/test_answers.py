"""What is posted, and what each kind of answer leads to; the database makes no difference here."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import threading
import time
from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from pipeline_assets.outlets.deliver import retry_deliveries, send_changes
from resources.ledger.alerts import open_alerts
from tests.integration.outlets.conftest import SECRET, World
from tests.support.archive_shelf import SECOND, content


def test_the_message(world: World) -> None:
    world.shelf.put("a", content("A <b>", ("X-1", "X-2"), "de", "d"), version=SECOND)
    world.send()
    (body,) = world.receiver.bodies
    (headers,) = world.receiver.headers
    message = json.loads(body)
    assert headers["Idempotency-Key"] == message["idempotency_key"]
    wanted = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    assert headers["X-Tallybook-Signature"] == f"sha256={wanted}"
    assert message["format"] == "tallybook.outlet/1"
    assert (message["effect"], message["change"]) == ("put", "publish")
    assert (message["document_id"], message["archive_version"]) == ("a", 1)
    assert [item["value"] for item in message["fields"]["product_identifiers"]] == ["X-1", "X-2"]
    assert message["fields"]["title"]["evidence"] == [{"page": 1, "quote": "as printed"}]
    assert message["provenance"]["processing_version"] == SECOND
    assert message["record_id"].endswith(SECOND)


@pytest.mark.parametrize("status", [400, 409, 410, 413, 422])
def test_what_is_refused_is_kept_and_told(world: World, status: int) -> None:
    world.receiver.answer = lambda _number, _message: status
    world.shelf.put("a", "a")
    report = world.send()
    assert (report.refused, report.failed, report.problem) == (1, 0, f"it answered {status}")
    assert world.shelf.rows() == [("a", 1, "put", "refused", 1)]
    (alert,) = open_alerts(world.context.ledger)
    assert (alert.kind, alert.subject) == ("outlet_failing", "webhook")
    world.shelf.clock.advance(timedelta(days=9))
    world.send(at_once=True)
    assert len(world.receiver.bodies) == 1, "it is never sent again by itself"
    world.receiver.answer = lambda _number, _message: 204
    assert retry_deliveries(world.context, "webhook", None) == 1
    assert world.send().delivered == 1
    assert open_alerts(world.context.ledger) == []


def test_a_busy_outlet_is_left_alone_for_as_long_as_it_asks(world: World) -> None:
    world.receiver.answer = lambda _number, _message: 429
    world.receiver.retry_after = "7200"
    world.shelf.put("a", "a")
    assert world.send().broken_off is False
    world.shelf.clock.advance(timedelta(seconds=7_100))
    world.send()
    assert len(world.receiver.bodies) == 1
    world.shelf.clock.advance(timedelta(seconds=101))
    world.send()
    assert len(world.receiver.bodies) == 2


def test_an_outlet_that_is_down_costs_few_tries(world: World) -> None:
    world.receiver.answer = lambda _number, _message: 500
    for number in range(40):
        world.shelf.put(f"d{number}", "v")
    report = world.send()
    assert report.broken_off
    assert 5 <= report.failed <= 8
    tried = [row for row in world.shelf.rows() if row[4]]
    assert len(tried) == report.failed, "no try is counted of what was not begun"
    assert [alert.kind for alert in open_alerts(world.context.ledger)] == ["outlet_failing"]
    world.receiver.answer = lambda _number, _message: 204
    world.send(at_once=True)
    assert world.receiver.holder.held == world.shelf.visible()
    assert open_alerts(world.context.ledger) == []


def test_what_was_not_begun_stays_as_it_was(world: World) -> None:
    """What failed before still counts as failing, and waits no shorter."""
    for number in range(9):
        world.shelf.put(f"d{number}", "v")
    world.receiver.answer = lambda number, _message: 500 if number % 3 else 204
    world.send()
    before = _waits(world)
    assert len(before) >= 5
    world.receiver.answer = lambda _number, _message: 503
    report = world.send(at_once=True)
    assert report.broken_off
    assert report.failed < len(before)
    after = _waits(world)
    assert after.keys() == before.keys()
    assert sum(after[entry] == before[entry] for entry in before) == len(before) - report.failed


def _waits(world: World) -> dict[int, tuple[str, int, str]]:
    with world.context.ledger.read() as connection:
        rows = connection.execute(
            text(
                "SELECT entry_no, next_try_at, status_code, problem FROM outlet_deliveries "
                "WHERE state = 'due' AND problem IS NOT NULL"
            )
        )
        return {row[0]: (row[1], row[2], row[3]) for row in rows}


def test_time_that_is_up_is_no_alarm(world: World) -> None:
    """One change that failed, of an outlet that takes the others: it is tried again first."""
    world.shelf.put("a", "v")
    world.shelf.put("b", "v")
    world.receiver.answer = lambda number, _message: 500 if number == 1 else 204
    report = send_changes(world.context, outlet=world.outlet, seconds=0)
    assert (report.delivered, report.failed, report.broken_off) == (1, 1, True)
    assert open_alerts(world.context.ledger) == []


@pytest.mark.parametrize("status", [302, 401, 404, 503])
def test_what_is_wrong_with_the_outlet_refuses_no_change(world: World, status: int) -> None:
    world.receiver.answer = lambda _number, _message: status
    for number in range(9):
        world.shelf.put(f"d{number}", "v")
    report = world.send()
    assert (report.refused, report.broken_off) == (0, True)
    assert report.failed <= 4
    assert {state for _, _, _, state, _ in world.shelf.rows()} == {"due"}


def test_requests_under_way_are_bounded(world: World) -> None:
    for number in range(12):
        world.shelf.put(f"d{number}", "v")
    world.receiver.before = lambda: time.sleep(0.02)
    outlet = replace(world.outlet, concurrency=3)
    assert send_changes(world.context, outlet=outlet).delivered == 12
    assert 2 <= world.receiver.most_at_once <= 3


def test_an_outlet_that_says_nothing_in_time(world: World) -> None:
    released = threading.Event()
    world.receiver.before = lambda: assert_waited(released)
    world.shelf.put("a", "a")
    report = send_changes(world.context, outlet=replace(world.outlet, step_seconds=0.2))
    released.set()
    assert (report.failed, report.problem) == (1, "it did not answer in time")


def assert_waited(event: threading.Event) -> None:
    assert event.wait(10)


def test_an_outlet_that_drips(world: World) -> None:
    """Each step is in time, and the whole is not."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,), daemon=True)
        thread.start()
        outlet = replace(
            world.outlet,
            url=SecretStr(f"http://127.0.0.1:{server.getsockname()[1]}/"),
            whole_seconds=0.5,
        )
        world.shelf.put("a", "a")
        begun = time.monotonic()
        report = send_changes(world.context, outlet=outlet)
        assert time.monotonic() - begun < 3
        thread.join(10)
    assert (report.failed, report.problem) == (1, "it did not answer in time")


def drip(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        try:
            for _ in range(100):
                connection.sendall(b"H")
                time.sleep(0.05)
        except OSError:
            return


def test_nobody_there(world: World) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/{SECRET}"
    world.shelf.put("a", "a private title")
    report = send_changes(world.context, outlet=replace(world.outlet, url=SecretStr(url)))
    assert report.failed == 1
    assert report.problem is not None
    assert report.problem.startswith("it could not be reached")
    with world.context.ledger.read() as connection:
        (problem,) = connection.execute(text("SELECT problem FROM outlet_deliveries")).one()
        alerts = [tuple(row) for row in connection.execute(text("SELECT message FROM alerts"))]
    for shown in (problem, str(report), str(alerts)):
        assert SECRET not in shown
        assert "private" not in shown


def test_an_alert_stays_open_while_anything_is_not_taken(world: World) -> None:
    world.receiver.answer = lambda number, _message: 422 if number == 1 else 204
    world.shelf.put("a", "a")
    world.send()
    world.shelf.put("b", "b")
    assert world.send().delivered == 1
    assert [alert.kind for alert in open_alerts(world.context.ledger)] == ["outlet_failing"]
    world.shelf.put("a", "another value, which is taken")
    world.send()
    assert open_alerts(world.context.ledger) == []
