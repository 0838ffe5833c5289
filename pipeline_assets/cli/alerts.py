"""`tallybook alerts`: what has to be known, who was told, and telling it now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    counted,
    make_settings,
    open_existing,
)

if TYPE_CHECKING:
    from pipeline_assets.alerting.deliver import DeliveryReport
    from resources.ledger.alert_deliveries import Told
    from resources.ledger.alerts import Alert

alerts_app = typer.Typer(
    help="Show alerts, send them to the configured channels, and clear them.",
    no_args_is_help=True,
)
MOST_SHOWN = 500


class NoOpenAlert(LookupError):
    """Nothing of that subject and kind is open."""

    def __init__(self, subject: str, kind: str | None) -> None:
        what = "alert" if kind is None else f"{kind} alert"
        super().__init__(
            f"there is no open {what} of {subject!r}; `tallybook alerts list` shows those there "
            "are. Nothing was changed."
        )


class NoReason(ValueError):
    """An alert is to be cleared by hand and nobody says why."""

    def __init__(self) -> None:
        super().__init__("--reason is empty; say why the alert is cleared, it is kept.")


@alerts_app.command("list")
def list_command(
    everything: Annotated[
        bool, typer.Option("--all", help=f"Also those that are over; the newest {MOST_SHOWN}.")
    ] = False,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """List open alerts, with what each means, what to do, and which channel knows of it."""
    from pipeline_assets.cli import output
    from resources.ledger.alert_deliveries import deliveries_of
    from resources.ledger.alerts import open_alerts, recent_alerts

    with open_existing(make_settings(state=state)) as context:
        ledger = context.ledger
        found = recent_alerts(ledger, MOST_SHOWN) if everything else open_alerts(ledger)
        left = max(0, len(found) - MOST_SHOWN)
        shown = found[left:]
        told = deliveries_of(ledger, [alert.no for alert in shown])
    rows = [_row(alert, told) for alert in shown]
    if json:
        output.emit_json_lines(rows)
        return 0
    if not rows:
        output.say("There is no alert." if everything else "No alert is open.")
        return 0
    _print(rows)
    if left:
        output.say(f"{counted(left, 'older alert')} not shown.")
    return 0


@alerts_app.command("send")
def send_command(state: StateOption = None) -> int:
    """Tell every channel now what it is owed, also what waits after a failure."""
    from pipeline_assets.alerting.channels import NoChannel
    from pipeline_assets.alerting.deliver import deliver_alerts
    from pipeline_assets.cli import output

    with open_existing(make_settings(state=state)) as context:
        report = deliver_alerts(context, at_once=True)
    if not report.channels:
        output.say(f"Nothing was sent: {NoChannel()}")
    elif report.busy:
        output.say("Nothing was sent: another sender is at it.")
    else:
        _print_report(report)
    return 1 if report.failed else 0


@alerts_app.command("clear")
def clear_command(
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="As `alerts list` shows it.")],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.")],
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="KIND", help="Of this kind only.")
    ] = None,
    state: StateOption = None,
) -> int:
    """Clear the open alerts of a subject by hand."""
    from pipeline_assets.alerting.message import plain
    from pipeline_assets.cli import output
    from resources.ledger.alerts import clear_by_hand

    why = plain(reason)
    if not why:
        raise NoReason
    settings = make_settings(state=state)
    with open_existing(settings) as context, context.ledger.write() as connection:
        note = f"cleared by {settings.owner}: {why}"
        kinds = clear_by_hand(connection, subject, context.ledger.now(), note, kind)
    if not kinds:
        raise NoOpenAlert(subject, kind)
    output.say(f"Cleared of {subject}: {', '.join(kinds)}.")
    return 0


@alerts_app.command("test")
def test_command(state: StateOption = None) -> int:
    """Send a test message to every configured channel."""
    from pipeline_assets.alerting.channels import ChannelFailed, NoChannel, configured_channels
    from pipeline_assets.alerting.message import trial_digest
    from pipeline_assets.cli import output
    from resources.clock import to_text

    settings = make_settings(state=state)
    channels = configured_channels(settings)
    if not channels:
        raise NoChannel
    status = 0
    for channel in channels:
        try:
            note = channel.send(trial_digest(to_text(settings.clock())))
        except ChannelFailed as error:
            output.say(f"{channel.name}: failed: {error}")
            status = 1
        else:
            output.say(f"{channel.name}: sent{'' if note is None else f', but {note}'}")
    return status


def _row(alert: Alert, told: list[Told]) -> dict[str, Any]:
    from pipeline_assets.alerting.kinds import kind_of, remedy_of

    entry = kind_of(alert.kind)
    return {
        "kind": alert.kind,
        "subject": alert.subject,
        "severity": entry.severity,
        "message": alert.message,
        "meaning": entry.meaning,
        "remedy": remedy_of(alert.kind, alert.subject),
        "first_at": alert.first_at,
        "last_at": alert.last_at,
        "times": alert.times,
        "cleared_at": alert.cleared_at,
        "channels": [
            {
                "channel": row.channel,
                "told_at": row.told_at,
                "told_times": row.told_times,
                "told_cleared_at": row.told_cleared_at,
                "failures": row.failures,
                "next_try_at": None if row.problem is None else row.next_try_at,
                "problem": row.problem,
            }
            for row in told
            if row.alert_no == alert.no
        ],
    }


def _print(rows: list[dict[str, Any]]) -> None:
    from pipeline_assets.cli import output

    columns = ("severity", "kind", "subject", "message", "times", "last", "over", "told")
    output.table(
        "Alerts",
        columns,
        (
            (
                row["severity"],
                row["kind"],
                row["subject"],
                row["message"],
                row["times"],
                output.local(row["last_at"]),
                output.local(row["cleared_at"]),
                ", ".join(_knows(channel) for channel in row["channels"]),
            )
            for row in rows
        ),
    )
    for remedy in dict.fromkeys(row["remedy"] for row in rows if row["cleared_at"] is None):
        output.say(f"Next: {remedy}")


def _knows(channel: dict[str, Any]) -> str:
    """What a channel knows of an alert, in few words."""
    name = channel["channel"]
    if channel["failures"]:
        return f"{name} failed {channel['failures']}x ({channel['problem']})"
    if channel["told_at"] is None:
        return f"{name} under way"
    return name if channel["problem"] is None else f"{name} ({channel['problem']})"


def _print_report(report: DeliveryReport) -> None:
    from pipeline_assets.cli import output

    for name in report.channels:
        outcome = next((found for found in report.outcomes if found.channel == name), None)
        if outcome is None:
            output.say(f"{name}: nothing to tell")
            continue
        waits = f"; {outcome.left} wait for the next message" if outcome.left else ""
        if outcome.told:
            beside = "" if outcome.problem is None else f", but {outcome.problem}"
            output.say(f"{name}: told of {counted(outcome.told, 'alert')}{beside}{waits}")
        else:
            output.say(f"{name}: failed: {outcome.problem}{waits}")
