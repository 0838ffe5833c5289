"""The kinds of alerts: how urgent each is, what it means, and which command comes next.

Belongs here: the table. Does not belong here: raising (beside the work that meets the trouble) and
sending.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Severity = Literal["page", "warn", "info"]
SEVERITIES: tuple[Severity, ...] = ("page", "warn", "info")
"""The most urgent first. `page`: money or data is at stake, or nothing goes on without a person;
`warn`: look at it today; `info`: it mends itself, and is told so that nobody wonders."""


@dataclass(frozen=True)
class AlertKind:
    """One kind.

    Attributes:
        severity: how urgent it is.
        meaning: one sentence.
        remedy: the command to begin with; `{subject}` and `{version}` stand for the alert's
            subject, and for its first part up to a slash.
    """

    severity: Severity
    meaning: str
    remedy: str


KINDS: MappingProxyType[str, AlertKind] = MappingProxyType(
    {
        "answers_astray": AlertKind(
            "page",
            "The answers of a batch are, as a whole, not those of its documents.",
            "tallybook review list --version {version}",
        ),
        "auth": AlertKind(
            "page",
            "The version is held, because the provider refuses the credentials.",
            "tallybook status --version {version}",
        ),
        "backpressure": AlertKind(
            "info",
            "Nothing new is submitted, because staging, review or publication are behind.",
            "tallybook status --version {version}",
        ),
        "breaker": AlertKind(
            "page",
            "The version is held, because too few of its last results are usable.",
            "tallybook status --version {version}",
        ),
        "budget": AlertKind(
            "warn",
            "The version is held: its next work could pass its budget of attempts, money or time.",
            "tallybook settings list --version {version}",
        ),
        "canary_failed": AlertKind(
            "warn",
            "The trial batch did not pass, so no record of its combination is sent.",
            "tallybook canary show {subject}",
        ),
        "dead_letters": AlertKind(
            "warn",
            "The number of dead letters grew.",
            "tallybook dead-letter list --version {version}",
        ),
        "dead_letters_aging": AlertKind(
            "warn",
            "A dead letter has been open for too long.",
            "tallybook dead-letter list --version {version}",
        ),
        "deadline": AlertKind(
            "warn",
            "A provider job stands at its internal deadline and may expire.",
            "tallybook batch show {subject}",
        ),
        "free_retries": AlertKind(
            "warn",
            "The version is held, because jobs expired or found no capacity too often.",
            "tallybook status --version {version}",
        ),
        "incident": AlertKind(
            "page",
            "The account of a batch does not hold, so nothing of it is reported complete.",
            "tallybook batch reconcile {subject} --reason WHY",
        ),
        "job_failed": AlertKind(
            "warn",
            "The provider failed a job as a whole.",
            "tallybook batch show {subject}",
        ),
        "late_commit": AlertKind(
            "info",
            "A worker that had lost its lease tried to commit and was refused.",
            "tallybook doctor",
        ),
        "misrouted": AlertKind(
            "page",
            "An answer belongs to another document than the one it came for.",
            "tallybook batch show {subject}",
        ),
        "no_progress": AlertKind(
            "warn",
            "The counts of a provider job stand still.",
            "tallybook batch show {subject}",
        ),
        "not_collectable": AlertKind(
            "page",
            "Results are done and paid, and the provider does not hand them out.",
            "tallybook batch show {subject}",
        ),
        "outlet_failing": AlertKind(
            "warn",
            "An outlet does not take what the archive shows.",
            "tallybook outlets list",
        ),
        "quarantined": AlertKind(
            "page",
            "It is not known whether a job reached the provider; a second one may be paid twice.",
            "tallybook batch show {subject}",
        ),
        "quota": AlertKind(
            "page",
            "The version is held, because the account has no money or allowance left.",
            "tallybook status --version {version}",
        ),
        "refused": AlertKind(
            "page",
            "The version is held, because the provider refuses its jobs.",
            "tallybook status --version {version}",
        ),
        "reviews_aging": AlertKind(
            "warn",
            "A review has been open for too long.",
            "tallybook review list --version {version}",
        ),
        "run_failed": AlertKind(
            "warn",
            "A run of Dagster failed, and none of its kind has succeeded since.",
            "tallybook status --version {version}",
        ),
        "second_job": AlertKind(
            "page",
            "The provider has two jobs for one batch, and may bill both.",
            "tallybook batch show {subject}",
        ),
        "source_events": AlertKind(
            "warn",
            "Events of a queue were given up, so documents that they name were not looked at.",
            "tallybook sources events --source {subject}",
        ),
        "source_silent": AlertKind(
            "warn",
            "Automation is on, and has not looked at a source for too long.",
            "tallybook automation status",
        ),
        "source_unreadable": AlertKind(
            "warn",
            "A source cannot be listed, so nothing is known of its documents now.",
            "tallybook sources list",
        ),
        "stuck_work": AlertKind(
            "warn",
            "Work of the version stands still, and nothing moves it by itself.",
            "tallybook status --version {version}",
        ),
        "unknown_status": AlertKind(
            "warn",
            "The provider gives a job a status that is not known.",
            "tallybook batch show {subject}",
        ),
        "unreachable": AlertKind(
            "warn",
            "The provider does not answer questions about a job.",
            "tallybook batch show {subject}",
        ),
    }
)

_UNKNOWN = AlertKind("warn", "A kind without a description.", "tallybook alerts list")


def kind_of(kind: str) -> AlertKind:
    """The entry of a kind; an alert of a kind that the table does not know is told all the same."""
    return KINDS.get(kind, _UNKNOWN)


def remedy_of(kind: str, subject: str) -> str:
    """The command to begin with, ready for a shell."""
    version = subject.partition("/")[0]
    words = {"subject": shlex.quote(subject), "version": shlex.quote(version)}
    # Not str.format: a subject may hold braces of its own.
    return re.sub(r"\{(subject|version)\}", lambda found: words[found[1]], kind_of(kind).remedy)
