"""The channels that alerts leave through: their shape, and which ones the settings name.

Belongs here: the protocol, the one error and the list. Does not belong here: how each one sends
(`webhook.py`, `smtp.py`).
"""

from __future__ import annotations

from typing import Protocol

from pipeline_assets.alerting.message import Digest
from resources.clock import is_loopback
from resources.settings import Settings

TIMEOUT_SECONDS = 10.0
"""For each step of a conversation: a receiver that is gone costs a sensor little of its minute."""


class ChannelFailed(Exception):
    """A channel could not be told.

    The message is closed wording: it names no address, no secret, and nothing of an answer.
    """


class NoChannel(Exception):
    """A test of the channels was asked for, and none is configured."""

    def __init__(self) -> None:
        super().__init__(
            "no channel for alerts is configured. Set TALLYBOOK_ALERT_WEBHOOK_URL, or "
            "TALLYBOOK_ALERT_SMTP_URL with TALLYBOOK_ALERT_MAIL_FROM and TALLYBOOK_ALERT_MAIL_TO."
        )


class Channel(Protocol):
    """A way out."""

    @property
    def name(self) -> str:
        """How deliveries name it; at most 32 characters."""
        ...

    def send(self, digest: Digest) -> str | None:
        """Tell everything in one message; a text is what went wrong beside that (closed wording).

        Raises:
            ChannelFailed: it was not told, or that is not known.
        """
        ...


def configured_channels(settings: Settings) -> tuple[Channel, ...]:
    """The channels that the settings name; nothing is imported or opened for those they do not."""
    channels: list[Channel] = []
    if settings.alert_webhook_url is not None:
        from pipeline_assets.alerting.webhook import WebhookChannel

        channels.append(WebhookChannel(settings.alert_webhook_url, settings.alert_webhook_secret))
    if settings.alert_smtp_url is not None and settings.alert_mail_from is not None:
        from pipeline_assets.alerting.smtp import SmtpChannel, smtp_server

        channels.append(
            SmtpChannel(
                server=smtp_server(settings.alert_smtp_url),
                password=settings.alert_smtp_password,
                sender=settings.alert_mail_from,
                recipients=settings.alert_recipients,
                encrypted=not is_loopback(settings.alert_smtp_url),
            )
        )
    return tuple(channels)
