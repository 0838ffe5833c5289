"""Looks against real receivers, on both databases: once each, failures, two senders, a death."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from pydantic import SecretStr
from sqlalchemy import event, func, select

from pipeline_assets.alerting.channels import ChannelFailed
from pipeline_assets.alerting.deliver import (
    CLAIM_SECONDS,
    LEASE_SECONDS,
    DeliveryReport,
    deliver_alerts,
)
from pipeline_assets.alerting.message import Digest
from pipeline_assets.alerting.webhook import WebhookChannel
from resources.clock import from_text, to_text
from resources.ledger.alerts import open_alerts, raise_alert, recent_alerts
from resources.ledger.engine import open_ledger
from resources.ledger.schema import alerts, leases
from tests.integration.alerting.conftest import World
from tests.support.alert_receivers import MailReceiver, WebhookReceiver


@dataclass
class Kept:
    """A channel in memory: keeps what it is sent, and does first what a test wants."""

    name: str = "webhook"
    first: Callable[[], None] = lambda: None
    after: Callable[[], None] = lambda: None
    note: str | None = None
    sent: list[tuple[str, str]] = field(default_factory=list)

    def send(self, digest: Digest) -> str | None:
        self.first()
        self.sent += [(item.subject, item.news) for item in digest.items]
        self.after()
        return self.note


def fail() -> None:
    raise ChannelFailed("it answered 500")


def summary(report: DeliveryReport) -> list[tuple[str, int, int, str | None]]:
    return [
        (outcome.channel, outcome.told, outcome.left, outcome.problem)
        for outcome in report.outcomes
    ]


def test_without_a_channel_nothing_is_asked_of_the_ledger(world: World) -> None:
    world.raise_one()
    asked: list[str] = []

    def listen(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        asked.append(statement)

    event.listen(world.context.ledger.engine, "before_cursor_execute", listen)
    try:
        assert deliver_alerts(world.context) == DeliveryReport()
    finally:
        event.remove(world.context.ledger.engine, "before_cursor_execute", listen)
    assert asked == []


def test_a_look_with_nothing_to_tell_writes_nothing(world: World) -> None:
    report = deliver_alerts(world.context, channels=[Kept()])
    assert report == DeliveryReport(("webhook",))
    with world.context.ledger.read() as connection:
        assert connection.scalar(select(func.count()).select_from(leases)) == 0


def test_an_alerts_whole_life(world: World, webhook: WebhookReceiver) -> None:
    channels = [WebhookChannel(SecretStr(webhook.url))]

    def look() -> int:
        return len(deliver_alerts(world.context, channels=channels).outcomes)

    world.raise_one()
    assert (look(), look()) == (1, 0), "told once"
    for _ in range(3):
        world.clock.advance(timedelta(minutes=19))
        world.raise_one()
    assert look() == 0, "it goes on, but the hour is not over"
    world.clock.advance(timedelta(minutes=3))
    assert (look(), look()) == (1, 0)
    world.clock.advance(timedelta(minutes=61))
    assert look() == 0, "nothing new"
    world.clear()
    assert (look(), look()) == (1, 0)
    world.raise_one()
    assert look() == 1, "another one of the same kind and subject"
    assert webhook.told == [
        ("unreachable", "job-1", news) for news in ("new", "again", "over", "new")
    ]
    first, again, over, _ = (request.alerts[0] for request in webhook.requests)
    assert [first["times"], again["times"], over["times"]] == [1, 4, 4]
    assert [first["cleared"], again["cleared"], over["cleared"]] == [False, False, True]
    assert first["first_at"] == again["first_at"] < again["last_at"]


def test_the_settings_hour(world: World) -> None:
    context = world.as_worker("w", alert_repeat_minutes=5)
    channel = Kept()
    for _ in range(4):
        world.raise_one()
        deliver_alerts(context, channels=[channel])
        world.clock.advance(timedelta(minutes=3))
    assert channel.sent == [("job-1", "new"), ("job-1", "again")]


def test_over_before_it_was_told_is_never_told(world: World) -> None:
    world.raise_one()
    world.clear()
    channel = Kept()
    assert deliver_alerts(world.context, channels=[channel]).outcomes == ()
    assert channel.sent == []


def test_a_look_is_one_bounded_message(world: World, webhook: WebhookReceiver) -> None:
    for number in range(120):
        world.raise_one(subject=f"job-{number}")
    channels = [WebhookChannel(SecretStr(webhook.url))]
    looks = [summary(deliver_alerts(world.context, channels=channels)) for _ in range(4)]
    assert looks == [
        [("webhook", 50, 70, None)],
        [("webhook", 50, 20, None)],
        [("webhook", 20, 0, None)],
        [],
    ]
    assert sorted(subject for _, subject, _ in webhook.told) == sorted(
        f"job-{number}" for number in range(120)
    )


def test_a_channel_that_fails_does_not_stop_the_other(world: World) -> None:
    world.raise_one()
    bad, good = Kept("webhook", first=fail), Kept("smtp")
    report = deliver_alerts(world.context, channels=[bad, good])
    assert summary(report) == [("webhook", 0, 1, "it answered 500"), ("smtp", 1, 0, None)]
    assert [outcome.channel for outcome in report.failed] == ["webhook"]
    by_channel = {row.channel: row for row in world.told()}
    assert (by_channel["smtp"].failures, by_channel["smtp"].told_times) == (0, 1)
    failed = by_channel["webhook"]
    assert (failed.failures, failed.told_at, failed.problem) == (1, None, "it answered 500")


def test_failures_wait_longer_each_time_and_never_over_an_hour(world: World) -> None:
    world.raise_one()
    bad = Kept(first=fail)
    waits = []
    for failures in range(1, 15):
        assert len(deliver_alerts(world.context, channels=[bad]).failed) == 1
        assert deliver_alerts(world.context, channels=[bad]).outcomes == (), "it waits"
        (row,) = world.told()
        assert row.failures == failures
        assert row.next_try_at is not None
        wait = from_text(row.next_try_at) - world.clock()
        assert wait <= min(timedelta(hours=1), timedelta(minutes=2 ** (failures - 1)))
        waits.append(wait)
        world.clock.advance(wait)
    assert max(waits[:3]) < timedelta(minutes=4) < max(waits[6:])
    bad.first = lambda: None
    deliver_alerts(world.context, channels=[bad])
    (row,) = world.told()
    assert (row.failures, row.next_try_at, row.problem) == (0, None, None)
    assert bad.sent == [("job-1", "new")]


def test_a_person_does_not_wait(world: World) -> None:
    world.raise_one()
    channel = Kept(first=fail)
    deliver_alerts(world.context, channels=[channel])
    channel.first = lambda: None
    assert deliver_alerts(world.context, channels=[channel]).outcomes == ()
    assert deliver_alerts(world.context, channels=[channel], at_once=True).outcomes[0].told == 1


def test_refused_recipients_are_kept_and_not_tried_again(world: World) -> None:
    world.raise_one()
    channel = Kept("smtp", note="1 of 2 recipients were refused")
    assert summary(deliver_alerts(world.context, channels=[channel])) == [
        ("smtp", 1, 0, "1 of 2 recipients were refused")
    ]
    assert world.told()[0].problem == "1 of 2 recipients were refused"
    assert deliver_alerts(world.context, channels=[channel]).outcomes == ()


def test_two_senders_at_once_tell_each_alert_once(world: World, webhook: WebhookReceiver) -> None:
    """Each with connections of its own, as two daemons have."""
    rounds, senders = 12, 4
    barrier = threading.Barrier(senders, timeout=60)
    url = world.context.ledger.engine.url.render_as_string(hide_password=False)
    channel = WebhookChannel(SecretStr(webhook.url))

    def work(number: int) -> int:
        ledger = open_ledger(url, clock=world.clock)
        told = 0
        try:
            context = replace(world.context, ledger=ledger, worker=f"sender-{number}")
            for round_ in range(rounds):
                with ledger.write() as connection:
                    # All raise the same alert too: it is one all the same.
                    raise_alert(connection, "incident", f"job-{round_}", "m", ledger.now())
                barrier.wait()
                told += sum(o.told for o in deliver_alerts(context, channels=[channel]).outcomes)
                barrier.wait()
        finally:
            ledger.close()
        return told

    with ThreadPoolExecutor(senders) as pool:
        told = sum(pool.map(work, range(senders)))
    assert sorted(webhook.told) == sorted(
        ("incident", f"job-{round_}", "new") for round_ in range(rounds)
    )
    assert told == rounds
    assert [alert.times for alert in open_alerts(world.context.ledger)] == [senders] * rounds


def test_a_sender_meanwhile_finds_the_lease_taken(world: World) -> None:
    world.raise_one()
    first, second = Kept(), Kept()

    def meanwhile() -> None:
        world.raise_one(subject="job-2")
        assert deliver_alerts(world.as_worker("second"), channels=[second]).busy

    first.first = meanwhile
    deliver_alerts(world.context, channels=[first])
    assert (first.sent, second.sent) == ([("job-1", "new")], [])
    deliver_alerts(world.as_worker("second"), channels=[second])
    assert second.sent == [("job-2", "new")]


@pytest.mark.parametrize("worker", ["second", None], ids=["another-process", "the-same-process"])
def test_a_slow_senders_claim_outlives_its_lease(world: World, worker: str | None) -> None:
    """The second one gets the lease, finds the telling claimed, and the first one's outcome counts.

    The same process may be at it twice: Dagster gives a tick up while its thread goes on.
    """
    world.raise_one()
    second = Kept()
    other = world.context if worker is None else world.as_worker(worker)

    def overtake() -> None:
        world.clock.advance(LEASE_SECONDS + 1)
        report = deliver_alerts(other, channels=[second])
        assert (report.outcomes, report.busy) == ((), False)

    first = Kept(first=overtake)
    assert deliver_alerts(world.context, channels=[first]).outcomes[0].told == 1
    (row,) = world.told()
    assert (row.told_times, row.next_try_at) == (1, None)
    assert second.sent == []


class Died(BaseException):
    """The process ends here."""


def die() -> None:
    raise Died


@pytest.mark.parametrize(
    ("meanwhile", "failures"), [(fail, 1), (die, 0)], ids=["that-failed", "still-at-it"]
)
def test_an_outcome_after_the_claim_was_taken_over_is_not_written(
    world: World, meanwhile: Callable[[], None], failures: int
) -> None:
    """What the holder of the newer claim finds, or will find, stands."""
    world.raise_one()

    def overtake() -> None:
        world.clock.advance(CLAIM_SECONDS + 1)
        with suppress(Died):
            second = world.as_worker("second")
            deliver_alerts(second, channels=[Kept(first=meanwhile)])

    deliver_alerts(world.context, channels=[Kept(first=overtake)])
    (row,) = world.told()
    assert (row.told_at, row.failures) == (None, failures)
    assert (row.claimed_until is None) is (failures == 1)


def test_a_death_between_sending_and_writing_tells_again(world: World) -> None:
    """At least once: nobody knows whether it was heard."""
    world.raise_one()
    channel = Kept(after=die)
    with pytest.raises(Died):
        deliver_alerts(world.context, channels=[channel])
    channel.after = lambda: None
    assert deliver_alerts(world.as_worker("next"), channels=[channel]).outcomes == ()
    world.clock.advance(CLAIM_SECONDS)
    assert deliver_alerts(world.as_worker("next"), channels=[channel]).outcomes[0].told == 1
    assert channel.sent == [("job-1", "new"), ("job-1", "new")]


def test_a_death_and_then_over_is_told(world: World) -> None:
    world.raise_one()
    channel = Kept(after=die)
    with pytest.raises(Died):
        deliver_alerts(world.context, channels=[channel])
    channel.after = lambda: None
    world.clear()
    world.clock.advance(CLAIM_SECONDS)
    for _ in range(2):
        deliver_alerts(world.as_worker("next"), channels=[channel])
    assert channel.sent == [("job-1", "new"), ("job-1", "over")]


def test_an_alert_that_changes_while_it_is_sent(world: World) -> None:
    """What is written is what was told, not what is true by then."""
    world.raise_one()
    channel = Kept(first=world.raise_one, after=world.clear)
    deliver_alerts(world.context, channels=[channel])
    (row,) = world.told()
    assert (row.told_times, row.told_cleared_at) == (1, None)
    channel.first = channel.after = lambda: None
    deliver_alerts(world.context, channels=[channel])
    assert channel.sent == [("job-1", "new"), ("job-1", "over")]


def test_a_channel_that_is_no_longer_there_is_forgotten(world: World) -> None:
    world.raise_one()
    deliver_alerts(world.context, channels=[Kept("smtp"), Kept("webhook")])
    world.clear()
    left = Kept("webhook")
    assert summary(deliver_alerts(world.context, channels=[left])) == [("webhook", 1, 0, None)]


def test_raising_at_once_makes_one_alert(world: World) -> None:
    """Update, then insert, in two transactions at once would make two open ones."""
    url = world.context.ledger.engine.url.render_as_string(hide_password=False)
    workers = 4
    barrier = threading.Barrier(workers, timeout=60)

    def work(_number: int) -> None:
        ledger = open_ledger(url, clock=world.clock)
        try:
            for round_ in range(15):
                barrier.wait()
                with ledger.write() as connection:
                    raise_alert(connection, "incident", f"job-{round_}", "m", ledger.now())
        finally:
            ledger.close()

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, range(workers)))
    assert [(alert.subject, alert.times) for alert in recent_alerts(world.context.ledger, 99)] == [
        (f"job-{round_}", workers) for round_ in range(15)
    ]


def test_no_secret_is_stored_or_shown(
    world: World, mailbox: MailReceiver, webhook: WebhookReceiver
) -> None:
    world.raise_one()
    secret = "open-sesame"
    context = world.as_worker(
        "w",
        alert_webhook_url=SecretStr(webhook.url + "/" + secret),
        alert_webhook_secret=SecretStr(secret + "-2"),
        alert_smtp_url=f"smtp://ops@127.0.0.1:{mailbox.port}",
        alert_smtp_password=SecretStr(secret + "-3"),
        alert_mail_from="tallybook@example.com",
        alert_mail_to="ops@example.com",
    )
    webhook.answer, webhook.answer_body = lambda: 500, secret.encode()
    mailbox.login_answer = f"535 {secret}-3 is wrong"
    report = deliver_alerts(context)
    assert len(report.failed) == 2
    assert [path.path for path in webhook.requests] == [f"/hook/{secret}"]
    assert mailbox.logins == [("ops", secret + "-3")]
    with world.context.ledger.read() as connection:
        stored = str(connection.execute(select(alerts)).all())
    for shown in (repr(report), repr(world.told()), repr(context), stored):
        assert secret not in shown
        assert "127.0.0.1" not in repr(report)
    assert len(world.told()) == 2


def test_times_are_stored_as_the_ledger_stores_them(world: World) -> None:
    world.raise_one()
    deliver_alerts(world.context, channels=[Kept()])
    assert world.told()[0].told_at == to_text(world.clock())
