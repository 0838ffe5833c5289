"""The wording: what a mail and a webhook say, and that no text of an alert breaks them."""

from __future__ import annotations

import json
from email.message import EmailMessage

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.alerting.decision import Delivery, Notice
from pipeline_assets.alerting.message import (
    LONGEST_MESSAGE,
    digest_of,
    json_body,
    mail_subject,
    mail_text,
    plain,
    trial_digest,
)
from resources.ledger.alerts import Alert

AT = "2030-01-02T03:04:05.000000Z"


def notice(
    kind: str = "incident", subject: str = "job-1", message: str = "m", **more: str
) -> Notice:
    over = more.get("cleared_at")
    alert = Alert(kind, subject, message, AT, AT, 3, over, 1)
    return Notice(alert, "over" if over else "new")


def test_a_webhook_is_told_everything() -> None:
    body = json_body(digest_of(Delivery("webhook", (notice(), notice(cleared_at=AT)), 7), AT))
    assert body["left"] == 7
    assert body["sent_at"] == AT
    first, second = body["alerts"]
    assert first == {
        "kind": "incident",
        "subject": "job-1",
        "severity": "page",
        "message": "m",
        "first_at": AT,
        "last_at": AT,
        "times": 3,
        "cleared": False,
        "news": "new",
        "meaning": "The account of a batch does not hold, so nothing of it is reported complete.",
        "remedy": first["remedy"],
    }
    assert first["remedy"] == "tallybook batch reconcile job-1 --reason WHY"
    assert (second["cleared"], second["news"]) == (True, "over")


@pytest.mark.parametrize(
    ("notices", "left", "subject"),
    [
        ([notice()], 0, "[Tallybook] PAGE incident of job-1"),
        ([notice("unreachable")], 0, "[Tallybook] unreachable of job-1"),
        ([notice("unreachable"), notice()], 0, "[Tallybook] PAGE unreachable of job-1 and 1 more"),
        ([notice(cleared_at=AT)], 4, "[Tallybook] over: incident of job-1 and 4 more"),
    ],
)
def test_the_subject_of_a_mail(notices: list[Notice], left: int, subject: str) -> None:
    assert mail_subject(digest_of(Delivery("smtp", tuple(notices), left), AT)) == subject


def test_the_text_of_a_mail() -> None:
    text = mail_text(digest_of(Delivery("smtp", (notice(), notice(cleared_at=AT)), 2), AT))
    assert "page: incident of job-1\n  m\n" in text
    assert "raised 3 times" in text
    assert text.count("next: tallybook batch") == 1, "what is over needs no remedy"
    assert "over: page: incident of job-1" in text
    assert "2 more follow in the next message." in text


def test_a_long_message_is_cut() -> None:
    digest = digest_of(Delivery("smtp", (notice(message="x" * 9999),)), AT)
    assert len(digest.items[0].message) == LONGEST_MESSAGE


@given(st.text(), st.text(), st.text())
def test_no_text_breaks_a_header_or_the_encoding(kind: str, subject: str, message: str) -> None:
    digest = digest_of(Delivery("smtp", (notice(kind, subject, message),)), AT)
    mail = EmailMessage()
    mail["Subject"] = mail_subject(digest)
    mail.set_content(mail_text(digest))
    assert mail.as_bytes().split(b"\n\n", 1)[0].count(b"\nSubject:") <= 1
    json.dumps(json_body(digest), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\r\nBcc: x@y", "a Bcc: x@y"),
        ("a\ud800b", "a b"),
        ("a\x1b[31mb", "a [31mb"),
        ("größe", "größe"),
        ("  a \t b ", "a b"),
    ],
)
def test_plain(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_the_trial_says_that_nothing_is_wrong() -> None:
    assert "nothing is wrong" in mail_text(trial_digest(AT))
