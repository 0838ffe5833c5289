"""Which channels the settings name, what they refuse, and that they never show a secret."""

from __future__ import annotations

import traceback

import pytest

from pipeline_assets.alerting.channels import configured_channels
from pipeline_assets.alerting.smtp import SmtpChannel, SmtpServer, smtp_server
from pipeline_assets.alerting.webhook import WebhookChannel
from resources.settings import SettingsError, load_settings

SECRET = "open-sesame"
MAIL = {
    "alert_smtp_url": "smtp://127.0.0.1:2525",
    "alert_mail_from": "tallybook@example.com",
    "alert_mail_to": "a@example.com, b@example.com",
}


@pytest.mark.parametrize(
    ("url", "accepted"),
    [
        ("https://hooks.example.com/t/" + SECRET, True),
        (f"https://user:{SECRET}@hooks.example.com:8443/x?y=z", True),
        ("http://127.0.0.1:9/x", True),
        ("http://[::1]:9/x", True),
        ("http://localhost/x", True),
        ("http://hooks.example.com/" + SECRET, False),
        ("http://127.0.0.1.example.com/" + SECRET, False),
        ("http://127.0.0.1@example.com/" + SECRET, False),
        ("HTTP://example.com/" + SECRET, False),
        ("ftp://127.0.0.1/" + SECRET, False),
        ("file:///etc/" + SECRET, False),
        ("hooks.example.com/" + SECRET, False),
        ("https://", False),
        (f"https://example.com/{SECRET}\n", False),
        (f"https://example.com:99999/{SECRET}", False),
        (f"https://[::1/{SECRET}", False),
    ],
)
def test_a_webhook_is_encrypted_or_on_this_machine(url: str, accepted: bool) -> None:
    if accepted:
        (channel,) = configured_channels(load_settings(alert_webhook_url=url))
        assert isinstance(channel, WebhookChannel)
        assert channel.url.get_secret_value() == url
        return
    with pytest.raises(SettingsError, match=r"^TALLYBOOK_ALERT_WEBHOOK_URL: ") as refused:
        load_settings(alert_webhook_url=url)
    assert SECRET not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize(
    "url",
    [
        "mail.example.com",
        "https://mail.example.com",
        "smtp://",
        "smtp://mail.example.com/path",
        "smtp://mail.example.com?x=y",
        "smtp://mail.example.com:0",
        f"smtp://ops:{SECRET}@mail.example.com",
    ],
)
def test_a_mail_server_that_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match=r"^TALLYBOOK_ALERT_SMTP_URL: ") as refused:
        load_settings(**{**MAIL, "alert_smtp_url": url})
    assert SECRET not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alert_mail_to": None}, "belong together"),
        ({"alert_mail_from": None}, "belong together"),
        ({"alert_smtp_url": None}, "belong together"),
        ({"alert_smtp_password": SECRET}, "give both, or none"),
        ({"alert_smtp_url": "smtp://ops@127.0.0.1"}, "give both, or none"),
        ({"alert_mail_from": "nobody"}, "TALLYBOOK_ALERT_MAIL_FROM"),
        ({"alert_mail_from": "a@example.com\nBcc: b@example.com"}, "TALLYBOOK_ALERT_MAIL_FROM"),
        ({"alert_mail_to": "a@example.com,,b@example.com"}, "TALLYBOOK_ALERT_MAIL_TO"),
        ({"alert_mail_to": "a@example.com;b@example.com"}, "TALLYBOOK_ALERT_MAIL_TO"),
        ({"alert_repeat_minutes": 0}, "TALLYBOOK_ALERT_REPEAT_MINUTES"),
    ],
)
def test_mail_settings_that_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message) as refused:
        load_settings(**{**MAIL, **changes})
    assert SECRET not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize(
    ("url", "server", "encrypted"),
    [
        ("smtp://ops@127.0.0.1:2525", SmtpServer("127.0.0.1", 2525, "ops", False), False),
        ("smtp://ops@mail.example.com", SmtpServer("mail.example.com", 587, "ops", False), True),
        ("smtps://o%40x@mail.example.com", SmtpServer("mail.example.com", 465, "o@x", True), True),
    ],
)
def test_mail_goes_encrypted_unless_it_stays_here(
    url: str, server: SmtpServer, encrypted: bool
) -> None:
    given = {**MAIL, "alert_smtp_url": url, "alert_smtp_password": SECRET}
    (channel,) = configured_channels(load_settings(**given))
    assert isinstance(channel, SmtpChannel)
    assert channel.server == smtp_server(url) == server
    assert channel.encrypted is encrypted
    assert channel.recipients == ("a@example.com", "b@example.com")


def test_without_settings_there_is_no_channel() -> None:
    assert configured_channels(load_settings()) == ()


def test_nothing_shows_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYBOOK_ALERT_WEBHOOK_URL", f"https://example.com/{SECRET}")
    monkeypatch.setenv("TALLYBOOK_ALERT_WEBHOOK_SECRET", SECRET)
    monkeypatch.setenv("TALLYBOOK_ALERT_SMTP_PASSWORD", SECRET)
    monkeypatch.setenv("TALLYBOOK_ALERT_SMTP_URL", "smtp://ops@127.0.0.1")
    monkeypatch.setenv("TALLYBOOK_ALERT_MAIL_FROM", "a@example.com")
    monkeypatch.setenv("TALLYBOOK_ALERT_MAIL_TO", "b@example.com")
    settings = load_settings()
    channels = configured_channels(settings)
    assert [channel.name for channel in channels] == ["webhook", "smtp"]
    for shown in (repr(settings), str(settings), settings.model_dump_json(), repr(channels)):
        assert SECRET not in shown
