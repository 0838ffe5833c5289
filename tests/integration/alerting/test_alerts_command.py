"""`tallybook alerts`: list, send, clear and test, in the state folder of a person."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline_assets.cli.app import main
from resources.context import open_context
from resources.ledger.alerts import raise_alert
from resources.settings import load_settings
from tests.support.alert_receivers import MailReceiver, WebhookReceiver
from tests.support.command import json_lines


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return a state folder with three open alerts of two subjects."""
    folder = tmp_path / "state"
    with open_context(load_settings(state=folder)) as context, context.ledger.write() as connection:
        at = context.ledger.now()
        raise_alert(connection, "unreachable", "job-1", "it does not answer", at)
        raise_alert(connection, "deadline", "job-1", "it stands at its deadline", at)
        raise_alert(connection, "incident", "job-2", "3 records have no disposition", at)
    return folder


@pytest.fixture
def configured(
    channel_settings: Callable[[], dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Set both channels in the environment."""
    for name, value in channel_settings().items():
        monkeypatch.setenv(name, value)


class Command:
    """Runs commands here and gives exit status, output and errors."""

    def __init__(self, state: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._state = state
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        status = main(["alerts", *arguments, "--state", str(self._state)])
        shown = self._capsys.readouterr()
        return status, shown.out, shown.err


@pytest.fixture
def alerts(state: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return `tallybook alerts` on that folder."""
    return Command(state, capsys)


def test_the_list_says_what_it_means_and_what_to_do(alerts: Command) -> None:
    status, shown, _ = alerts("list")
    assert status == 0
    for part in ("page", "incident", "job-2", "3 records have no disposition"):
        assert part in shown
    assert "Next: tallybook batch show job-1" in shown
    rows = json_lines(alerts("list", "--json")[1])
    assert [(row["kind"], row["severity"], row["times"]) for row in rows] == [
        ("unreachable", "warn", 1),
        ("deadline", "warn", 1),
        ("incident", "page", 1),
    ]
    assert all(row["meaning"] and row["remedy"] and row["channels"] == [] for row in rows)


@pytest.mark.usefixtures("configured")
def test_send_tells_both_channels_once(
    alerts: Command, webhook: WebhookReceiver, mailbox: MailReceiver
) -> None:
    assert alerts("send") == (0, "webhook: told of 3 alerts\nsmtp: told of 3 alerts\n", "")
    assert alerts("send") == (0, "webhook: nothing to tell\nsmtp: nothing to tell\n", "")
    assert len(webhook.requests) == len(mailbox.mails) == 1
    assert [kind for kind, _, _ in webhook.told] == ["incident", "unreachable", "deadline"]
    (row, *_) = json_lines(alerts("list", "--json")[1])
    assert [(channel["channel"], channel["told_times"]) for channel in row["channels"]] == [
        ("smtp", 1),
        ("webhook", 1),
    ]
    assert "smtp, webhook" in alerts("list")[1]


@pytest.mark.usefixtures("configured")
def test_send_says_which_channel_failed(
    alerts: Command, webhook: WebhookReceiver, mailbox: MailReceiver
) -> None:
    webhook.answer, webhook.answer_body = lambda: 503, b"open-sesame"
    status, shown, _ = alerts("send")
    assert status == 1
    assert shown == (
        "webhook: failed: it answered 503; 3 wait for the next message\nsmtp: told of 3 alerts\n"
    )
    assert len(mailbox.mails) == 1
    assert "webhook failed 1x (it answered 503)" in alerts("list")[1]
    webhook.answer = lambda: 204
    assert alerts("send")[:2] == (0, "webhook: told of 3 alerts\nsmtp: nothing to tell\n")


def test_send_without_a_channel_says_how_to_have_one(alerts: Command) -> None:
    status, shown, _ = alerts("send")
    assert status == 0
    assert "TALLYBOOK_ALERT_WEBHOOK_URL" in shown


@pytest.mark.usefixtures("configured")
def test_clear_keeps_the_reason_and_tells_the_end(
    alerts: Command, webhook: WebhookReceiver
) -> None:
    alerts("send")
    status, shown, _ = alerts("clear", "job-1", "--kind", "deadline", "--reason", "we\nwait")
    assert (status, shown) == (0, "Cleared of job-1: deadline.\n")
    assert [row["kind"] for row in json_lines(alerts("list", "--json")[1])] == [
        "unreachable",
        "incident",
    ]
    everything = json_lines(alerts("list", "--all", "--json")[1])
    assert [row["cleared_at"] is not None for row in everything] == [False, True, False]
    kept = "it stands at its deadline (cleared by tallybook: we wait)"
    assert everything[1]["message"] == kept
    alerts("send")
    assert webhook.told[-1] == ("deadline", "job-1", "over")
    assert webhook.requests[-1].alerts[0]["message"] == kept


def test_clear_of_all_kinds(alerts: Command) -> None:
    status, shown, _ = alerts("clear", "job-1", "--reason", "done")
    assert (status, shown) == (0, "Cleared of job-1: unreachable, deadline.\n")
    alerts("clear", "job-2", "--reason", "done")
    assert alerts("list") == (0, "No alert is open.\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["job-9", "--reason", "x"], "there is no open alert of 'job-9'"),
        (["job-1", "--kind", "incident", "--reason", "x"], "no open incident alert of 'job-1'"),
        (["job-1", "--reason", " \n"], "--reason is empty"),
    ],
)
def test_clear_that_is_refused(alerts: Command, arguments: list[str], message: str) -> None:
    status, shown, told = alerts("clear", *arguments)
    assert (status, shown) == (1, "")
    assert message in told
    assert told.count("\n") == 1
    assert len(json_lines(alerts("list", "--json")[1])) == 3


@pytest.mark.usefixtures("configured")
def test_a_test_message_goes_to_every_channel(
    alerts: Command, webhook: WebhookReceiver, mailbox: MailReceiver
) -> None:
    assert alerts("test") == (0, "webhook: sent\nsmtp: sent\n", "")
    assert webhook.told == [("test", "tallybook", "new")]
    assert len(mailbox.mails) == 1
    mailbox.data_answer = "554 no room"
    status, shown, _ = alerts("test")
    assert status == 1
    assert shown.startswith("webhook: sent\nsmtp: failed: the mail server answered 554")


def test_a_test_of_nothing_is_an_error(alerts: Command) -> None:
    status, _, told = alerts("test")
    assert status == 1
    assert "no channel for alerts is configured" in told


def test_a_setting_that_is_refused_is_one_line(
    alerts: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TALLYBOOK_ALERT_WEBHOOK_URL", "http://example.com/open-sesame")
    status, _, told = alerts("send")
    assert status == 1
    assert told.startswith("tallybook: TALLYBOOK_ALERT_WEBHOOK_URL: ")
    assert "open-sesame" not in told
