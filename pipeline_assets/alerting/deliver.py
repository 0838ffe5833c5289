"""One look: tell every channel what it is owed, and write down what came of it.

Belongs here: the order of claim, send and outcome. Does not belong here: what is owed
(`decision.py`), how it is sent (`webhook.py`, `smtp.py`).

A telling is claimed under the lease `alerts` and committed before anything is sent, so two senders
never tell the same at once. Between the sending and the writing of its outcome a process may die:
then the claim runs out and the same is told again. At least once is right here: an alert told twice
costs a glance, one told never costs the night.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from pipeline_assets.alerting.channels import Channel, ChannelFailed, configured_channels
from pipeline_assets.alerting.decision import (
    Delivery,
    DeliveryPolicy,
    decide_deliveries,
    next_wait,
)
from pipeline_assets.alerting.message import digest_of
from resources.clock import to_text
from resources.context import Context
from resources.ledger.alert_deliveries import (
    Told,
    alerts_in_question,
    claim,
    write_failed,
    write_told,
)
from resources.ledger.leases import Lease, LeaseHeld, LeaseLost, fenced, held

LEASE = "alerts"
LEASE_SECONDS = 120
CLAIM_SECONDS = 300
"""Above the lease: a sender that was suspended still has its claim when it comes back, and the
next sender leaves it alone. A sender that died is followed up after so long."""


@dataclass(frozen=True)
class ChannelOutcome:
    """What came of one message.

    Attributes:
        channel: the channel's name.
        told: alerts that it was told of.
        left: alerts that follow in the next message.
        problem: closed wording; with `told`, what went wrong beside it.
    """

    channel: str
    told: int
    left: int = 0
    problem: str | None = None


@dataclass(frozen=True)
class DeliveryReport:
    """What came of a look.

    Attributes:
        channels: the channels that there are.
        outcomes: one for each message.
        busy: another sender was at it, so nothing was done here.
    """

    channels: tuple[str, ...] = ()
    outcomes: tuple[ChannelOutcome, ...] = ()
    busy: bool = False

    @property
    def failed(self) -> tuple[ChannelOutcome, ...]:
        """The messages that were not told."""
        return tuple(outcome for outcome in self.outcomes if not outcome.told)


@dataclass(frozen=True)
class _Claimed:
    """A delivery that this process may send, and until when."""

    delivery: Delivery
    failures: dict[int, int]
    until: str


def deliver_alerts(
    context: Context, *, channels: Sequence[Channel] | None = None, at_once: bool = False
) -> DeliveryReport:
    """Tell every channel what it is owed, in one message each.

    Quick and silent where no channel is configured or nothing is owed: it then writes nothing. A
    channel that fails stops neither the others nor the caller.

    Args:
        context: the open resources.
        channels: the channels; those of the settings by default.
        at_once: try now what waits after a failure.

    Raises:
        LedgerError: the ledger does not answer.
    """
    ways = configured_channels(context.settings) if channels is None else tuple(channels)
    names = tuple(way.name for way in ways)
    if not ways:
        return DeliveryReport()
    policy = DeliveryPolicy(
        names, timedelta(minutes=context.settings.alert_repeat_minutes), at_once
    )
    if not _owed(context, policy):
        return DeliveryReport(names)
    try:
        with held(context.ledger, LEASE, context.worker, LEASE_SECONDS) as lease:
            mine = _claim(context, lease, policy)
            outcomes = [_send(context, way, mine[way.name]) for way in ways if way.name in mine]
    except (LeaseHeld, LeaseLost):
        return DeliveryReport(names, busy=True)
    return DeliveryReport(names, tuple(outcomes))


def _owed(context: Context, policy: DeliveryPolicy) -> bool:
    """Reading only: a look that finds nothing takes no lease."""
    with context.ledger.read() as connection:
        alerts, told = alerts_in_question(connection, policy.channels)
    return bool(decide_deliveries(alerts, told, context.clock(), policy))


def _claim(context: Context, lease: Lease, policy: DeliveryPolicy) -> dict[str, _Claimed]:
    claimed = {}
    with fenced(context.ledger, lease) as connection:
        alerts, told = alerts_in_question(connection, policy.channels)
        now = context.clock()
        until = to_text(now + timedelta(seconds=CLAIM_SECONDS))
        for delivery in decide_deliveries(alerts, told, now, policy):
            claim(connection, delivery.channel, _numbers(delivery), until)
            claimed[delivery.channel] = _Claimed(delivery, _failures(told, delivery.channel), until)
    return claimed


def _send(context: Context, way: Channel, claimed: _Claimed) -> ChannelOutcome:
    delivery = claimed.delivery
    try:
        note = way.send(digest_of(delivery, context.ledger.now()))
    except ChannelFailed as error:
        return _failed(context, claimed, str(error))
    with context.ledger.write() as connection:
        write_told(
            connection,
            delivery.channel,
            [notice.alert for notice in delivery.notices],
            claimed_until=claimed.until,
            at=context.ledger.now(),
            note=note,
        )
    return ChannelOutcome(delivery.channel, len(delivery.notices), delivery.left, note)


def _failed(context: Context, claimed: _Claimed, problem: str) -> ChannelOutcome:
    delivery = claimed.delivery
    now = context.clock()
    # The longest failing alert says how long: the channel is at fault, not the alert.
    failures = 1 + max(claimed.failures.get(no, 0) for no in _numbers(delivery))
    again = to_text(now + next_wait(failures, context.rng))
    with context.ledger.write() as connection:
        write_failed(
            connection,
            delivery.channel,
            _numbers(delivery),
            claimed_until=claimed.until,
            next_try_at=again,
            problem=problem,
        )
    waiting = len(delivery.notices) + delivery.left
    return ChannelOutcome(delivery.channel, 0, waiting, problem)


def _numbers(delivery: Delivery) -> list[int]:
    return [notice.alert.no for notice in delivery.notices]


def _failures(told: Sequence[Told], channel: str) -> dict[int, int]:
    return {row.alert_no: row.failures for row in told if row.channel == channel}
