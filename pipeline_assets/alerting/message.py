"""The wording of what a channel is told: one digest, as JSON and as a mail.

Belongs here: the forms. Does not belong here: what is told (`decision.py`) and sending.

Alerts hold no document text, and nothing is added here but the table of kinds.
"""

from __future__ import annotations

import unicodedata
from dataclasses import asdict, dataclass
from typing import Any

from pipeline_assets.alerting.decision import Delivery, Notice
from pipeline_assets.alerting.kinds import SEVERITIES, kind_of, remedy_of

LONGEST_MESSAGE = 500
_HEADLINE = {"new": "", "again": "still: ", "over": "over: "}


@dataclass(frozen=True)
class Item:
    """One alert as it is told; times are UTC in the ledger's text form."""

    kind: str
    subject: str
    severity: str
    message: str
    first_at: str
    last_at: str
    times: int
    cleared: bool
    news: str
    meaning: str
    remedy: str


@dataclass(frozen=True)
class Digest:
    """Everything that one message tells.

    Attributes:
        items: the alerts.
        left: alerts that follow in the next message.
        sent_at: when it was put together, UTC.
    """

    items: tuple[Item, ...]
    left: int
    sent_at: str


def digest_of(delivery: Delivery, sent_at: str) -> Digest:
    """The digest of a delivery."""
    return Digest(tuple(_item(notice) for notice in delivery.notices), delivery.left, sent_at)


def trial_digest(sent_at: str) -> Digest:
    """A digest that only shows that a channel works."""
    item = Item(
        kind="test",
        subject="tallybook",
        severity="info",
        message="this is a test of the channel; nothing is wrong",
        first_at=sent_at,
        last_at=sent_at,
        times=1,
        cleared=False,
        news="new",
        meaning="Somebody asked for a test message.",
        remedy="tallybook alerts list",
    )
    return Digest((item,), 0, sent_at)


def json_body(digest: Digest) -> dict[str, Any]:
    """The body of a webhook: `alerts` (a list of items), `left`, `sent_at`."""
    return {
        "alerts": [asdict(item) for item in digest.items],
        "left": digest.left,
        "sent_at": digest.sent_at,
    }


def mail_subject(digest: Digest) -> str:
    """One line: the first alert, and how many more there are."""
    first = digest.items[0]
    more = len(digest.items) - 1 + digest.left
    urgent = " PAGE" if any(_pages(item) for item in digest.items) else ""
    rest = f" and {more} more" if more else ""
    return f"[Tallybook]{urgent} {_HEADLINE[first.news]}{first.kind} of {first.subject}{rest}"


def mail_text(digest: Digest) -> str:
    """The alerts under each other."""
    parts = [_paragraph(item) for item in digest.items]
    if digest.left:
        parts.append(f"{digest.left} more follow in the next message.")
    parts.append("`tallybook alerts list` shows what is open now. Times are UTC.")
    return "\n\n".join(parts) + "\n"


def _item(notice: Notice) -> Item:
    alert, entry = notice.alert, kind_of(notice.alert.kind)
    subject = plain(alert.subject)
    return Item(
        kind=plain(alert.kind),
        subject=subject,
        severity=entry.severity,
        message=plain(alert.message)[:LONGEST_MESSAGE],
        first_at=alert.first_at,
        last_at=alert.last_at,
        times=alert.times,
        cleared=alert.cleared_at is not None,
        news=notice.news,
        meaning=entry.meaning,
        remedy=remedy_of(alert.kind, subject),
    )


def _paragraph(item: Item) -> str:
    count = "once" if item.times == 1 else f"{item.times} times"
    lines = [
        f"{_HEADLINE[item.news]}{item.severity}: {item.kind} of {item.subject}",
        f"  {item.message}",
        f"  {item.meaning}",
        f"  raised {count}, {item.first_at} to {item.last_at}",
    ]
    if not item.cleared:
        lines.append(f"  next: {item.remedy}")
    return "\n".join(lines)


def _pages(item: Item) -> bool:
    return item.severity == SEVERITIES[0] and not item.cleared


def plain(text: str) -> str:
    """A text on one line, without control and format characters, fit for a mail header."""
    # Category "C": a bare surrogate cannot be encoded, a line break ends a header.
    kept = "".join(" " if unicodedata.category(char)[0] == "C" else char for char in text)
    return " ".join(kept.split())
