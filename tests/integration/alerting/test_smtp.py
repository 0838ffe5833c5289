"""Mail against a real receiver: what is sent, to whom, and never in the clear over a network."""

from __future__ import annotations

import shutil
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from pipeline_assets.alerting.channels import ChannelFailed
from pipeline_assets.alerting.decision import Delivery, Notice
from pipeline_assets.alerting.message import digest_of, trial_digest
from pipeline_assets.alerting.smtp import SmtpChannel, SmtpServer
from resources.ledger.alerts import Alert
from tests.support.alert_receivers import MailReceiver, mail_receiver, self_signed

AT = "2030-01-02T03:04:05.000000Z"
DIGEST = trial_digest(AT)
SECRET = "open-sesame"


def channel(
    port: int, *, user: str | None = None, tls: bool = False, encrypted: bool = False
) -> SmtpChannel:
    return SmtpChannel(
        server=SmtpServer("127.0.0.1", port, user, tls),
        password=None if user is None else SecretStr(SECRET),
        sender="tallybook@example.com",
        recipients=("ops@example.com", "night@example.com"),
        encrypted=encrypted,
        timeout=5,
    )


def test_one_mail_goes_to_everybody(mailbox: MailReceiver) -> None:
    alert = Alert("incident", "job-1", "größer als erwartet", AT, AT, 1, None, 1)
    assert (
        channel(mailbox.port).send(digest_of(Delivery("smtp", (Notice(alert, "new"),)), AT)) is None
    )
    ((sender, recipients, mail),) = mailbox.mails
    assert sender == "tallybook@example.com"
    assert recipients == ["ops@example.com", "night@example.com"]
    assert mail["Subject"] == "[Tallybook] PAGE incident of job-1"
    assert mail["To"] == "ops@example.com, night@example.com"
    assert mail["Date"] == "Wed, 02 Jan 2030 03:04:05 +0000"
    assert mail["Message-ID"].endswith("@example.com>")
    assert mail["Auto-Submitted"] == "auto-generated"
    assert "größer als erwartet" in mail.get_content()
    assert mailbox.logins == []


def test_a_user_logs_in(mailbox: MailReceiver) -> None:
    channel(mailbox.port, user="ops").send(DIGEST)
    assert mailbox.logins == [("ops", SECRET)]
    assert len(mailbox.mails) == 1


def test_a_refused_login_shows_no_password(mailbox: MailReceiver) -> None:
    mailbox.login_answer = f"535 {SECRET} is wrong"
    with pytest.raises(ChannelFailed, match=r"answered 535 \(SMTPAuthenticationError\)") as failed:
        channel(mailbox.port, user="ops").send(DIGEST)
    assert SECRET not in str(failed.value)
    assert failed.value.__suppress_context__
    assert mailbox.mails == []


def test_some_recipients_are_refused(mailbox: MailReceiver) -> None:
    mailbox.refused = {"night@example.com"}
    assert channel(mailbox.port).send(DIGEST) == "1 of 2 recipients were refused"
    assert [recipients for _, recipients, _ in mailbox.mails] == [["ops@example.com"]]


@pytest.mark.parametrize(
    ("refused", "answer", "problem"),
    [
        ({"night@example.com", "ops@example.com"}, "250 taken", "SMTPRecipientsRefused"),
        (set[str](), "554 no room", "answered 554"),
    ],
)
def test_a_mail_that_is_not_taken(
    mailbox: MailReceiver, refused: set[str], answer: str, problem: str
) -> None:
    mailbox.refused, mailbox.data_answer = refused, answer
    with pytest.raises(ChannelFailed, match=problem):
        channel(mailbox.port).send(DIGEST)
    assert mailbox.mails == []


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(ChannelFailed, match="ConnectionRefusedError"):
            channel(taken.getsockname()[1]).send(DIGEST)


def test_a_server_that_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        quick = channel(silent.getsockname()[1])
        with pytest.raises(ChannelFailed, match="SMTPServerDisconnected"):
            SmtpChannel(quick.server, None, quick.sender, quick.recipients, timeout=0.2).send(
                DIGEST
            )


@pytest.fixture
def tls(tmp_path: Path) -> tuple[ssl.SSLContext, Path]:
    """Return a server's TLS and the certificate to trust, or skip."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl on this machine to make a certificate")
    return self_signed(tmp_path)


@pytest.fixture(params=[False, True], ids=["starttls", "smtps"])
def encrypted_mailbox(
    request: pytest.FixtureRequest, tls: tuple[ssl.SSLContext, Path]
) -> Iterator[tuple[MailReceiver, bool]]:
    """Return a mail server with TLS, and whether it starts at once."""
    with mail_receiver(tls[0], tls_at_once=request.param) as receiver:
        yield receiver, request.param


def test_user_and_mail_go_encrypted(
    encrypted_mailbox: tuple[MailReceiver, bool],
    tls: tuple[ssl.SSLContext, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    receiver, at_once = encrypted_mailbox
    monkeypatch.setenv("SSL_CERT_FILE", str(tls[1]))
    channel(receiver.port, user="ops", tls=at_once, encrypted=True).send(DIGEST)
    assert len(receiver.mails) == 1
    in_the_clear = [verb for verb in receiver.commands if not verb.startswith("encrypted ")]
    assert in_the_clear == ([] if at_once else ["EHLO", "STARTTLS"])


def test_a_certificate_that_nobody_vouches_for_ends_it(
    encrypted_mailbox: tuple[MailReceiver, bool],
) -> None:
    receiver, at_once = encrypted_mailbox
    with pytest.raises(ChannelFailed, match="SSLCertVerificationError"):
        channel(receiver.port, user="ops", tls=at_once, encrypted=True).send(DIGEST)
    assert (receiver.logins, receiver.mails) == ([], [])


def test_a_server_without_tls_is_told_nothing(mailbox: MailReceiver) -> None:
    with pytest.raises(ChannelFailed, match="SMTPNotSupportedError"):
        channel(mailbox.port, user="ops", encrypted=True).send(DIGEST)
    assert (mailbox.logins, mailbox.mails) == ([], [])
