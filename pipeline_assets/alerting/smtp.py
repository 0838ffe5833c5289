"""Mail: one message for a digest, over TLS wherever it leaves this machine.

Belongs here: the message and the conversation with the server. Does not belong here: which
addresses are allowed (`resources/settings.py`) and the wording (`message.py`).
"""

from __future__ import annotations

import smtplib
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from pipeline_assets.alerting.channels import TIMEOUT_SECONDS, ChannelFailed
from pipeline_assets.alerting.message import Digest, mail_subject, mail_text
from resources.clock import from_text


@dataclass(frozen=True)
class SmtpServer:
    """Where mail is handed in.

    Attributes:
        host: its name or address.
        port: its port.
        user: who logs in, if anybody does.
        tls: is the conversation encrypted from its first byte (`smtps`)?
    """

    host: str
    port: int
    user: str | None
    tls: bool


@dataclass(frozen=True)
class SmtpChannel:
    """Sends mail through one server.

    Attributes:
        server: the server.
        password: logs the server's user in.
        sender: the address that the mail comes from.
        recipients: the addresses that it goes to.
        encrypted: must the conversation be encrypted? Off only for this machine itself.
        timeout: seconds for each step of the conversation.
    """

    server: SmtpServer
    password: SecretStr | None
    sender: str
    recipients: tuple[str, ...]
    encrypted: bool = True
    timeout: float = TIMEOUT_SECONDS
    name: str = "smtp"

    def send(self, digest: Digest) -> str | None:
        """Send one mail to everybody; if some recipients are refused, the text says how many.

        Raises:
            ChannelFailed: nobody was sent it, or that is not known.
        """
        try:
            with self._connect() as client:
                if self.encrypted and not self.server.tls:
                    client.starttls(context=ssl.create_default_context())
                if self.server.user is not None and self.password is not None:
                    client.login(self.server.user, self.password.get_secret_value())
                refused = client.send_message(self._message(digest))
        # `from None`, and the class alone: what a server says may quote what it was sent.
        except TimeoutError:
            raise ChannelFailed("the mail server did not answer in time") from None
        except smtplib.SMTPResponseException as error:
            raise ChannelFailed(
                f"the mail server answered {error.smtp_code} ({type(error).__name__})"
            ) from None
        except (smtplib.SMTPException, OSError, ValueError) as error:
            raise ChannelFailed(f"the mail was not sent ({type(error).__name__})") from None
        if not refused:
            return None
        return f"{len(refused)} of {len(self.recipients)} recipients were refused"

    def _connect(self) -> smtplib.SMTP:
        server = self.server
        if server.tls:
            return smtplib.SMTP_SSL(
                server.host,
                server.port,
                timeout=self.timeout,
                context=ssl.create_default_context(),
            )
        return smtplib.SMTP(server.host, server.port, timeout=self.timeout)

    def _message(self, digest: Digest) -> EmailMessage:
        message = EmailMessage()
        message["Subject"] = mail_subject(digest)
        message["From"] = self.sender
        message["To"] = ", ".join(self.recipients)
        message["Date"] = format_datetime(from_text(digest.sent_at))
        message["Message-ID"] = make_msgid(domain=self.sender.rpartition("@")[2])
        message["Auto-Submitted"] = "auto-generated"  # RFC 3834: keeps holiday replies away
        message.set_content(mail_text(digest))
        return message


def smtp_server(url: str) -> SmtpServer:
    """The server of a URL that the settings accepted (`smtp://user@host:587`, `smtps://`)."""
    parts = urlsplit(url)
    tls = parts.scheme == "smtps"
    return SmtpServer(
        host=parts.hostname or "",
        # RFC 6409 and RFC 8314: message submission, without and with implicit TLS.
        port=parts.port or (465 if tls else 587),
        user=None if parts.username is None else unquote(parts.username),
        tls=tls,
    )
