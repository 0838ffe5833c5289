"""Operating settings: what may change without a new version, with defaults and meanings.

Belongs here: the names, defaults and checks. Does not belong here: storing them
(`resources/ledger/versions.py`, journaled with reason and actor) and what uses them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Literal

from pipeline_assets.provider_jobs.polling import DeadlinePolicy
from resources.ledger.engine import Ledger
from resources.ledger.versions import all_operating


class UnknownOperatingSetting(LookupError):
    """A name that no operating setting has."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"there is no operating setting {name!r}; expected one of {', '.join(SETTINGS)}"
        )


class OperatingValueRefused(ValueError):
    """A value that an operating setting cannot have."""

    def __init__(self, name: str, value: str, wanted: str) -> None:
        super().__init__(f"{name} cannot be {value!r}: expected {wanted}")


@dataclass(frozen=True)
class OperatingSetting:
    """One setting.

    Attributes:
        default: used until somebody sets it.
        wanted: what a value looks like, for people.
        accepts: is a text a value?
        meaning: one sentence.
    """

    default: str
    wanted: str
    accepts: Callable[[str], bool]
    meaning: str


def _whole(low: int, high: int) -> Callable[[str], bool]:
    return lambda text: text.isdecimal() and len(text) < 16 and low <= int(text) <= high


def _amount(text: str) -> bool:
    return re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", text) is not None


def _name(text: str) -> bool:
    return 0 < len(text.strip()) <= 128 and text.isprintable()


def _one_of(*words: str) -> Callable[[str], bool]:
    return lambda text: text in words


SETTINGS: MappingProxyType[str, OperatingSetting] = MappingProxyType(
    {
        "attempts_a_record": OperatingSetting(
            "4",
            "attempts from 1 to 20",
            _whole(1, 20),
            "tries at a record that count, over all kinds of failure",
        ),
        "backlog_publication": OperatingSetting(
            "200000",
            "records, 0 for no limit",
            _whole(0, 10**9),
            "nothing new is submitted while so many records are accepted and not published",
        ),
        "backlog_review": OperatingSetting(
            "20000",
            "records, 0 for no limit",
            _whole(0, 10**9),
            "nothing new is submitted while so many records wait for a reviewer",
        ),
        "backlog_staging": OperatingSetting(
            "200000",
            "records, 0 for no limit",
            _whole(0, 10**9),
            "nothing new is submitted while so many records are collected and not judged",
        ),
        "breaker_floor": OperatingSetting(
            "50",
            "percent from 1 to 100",
            _whole(1, 100),
            "the version is held when fewer of its last results than that are usable",
        ),
        "breaker_least": OperatingSetting(
            "20",
            "results from 1 to 100000",
            _whole(1, 100_000),
            "the breaker says nothing before so many results",
        ),
        "breaker_minutes": OperatingSetting(
            "60",
            "minutes from 0 to 10080, 0 for only by command",
            _whole(0, 10_080),
            "a version that the breaker held is tried again after so long",
        ),
        "breaker_window": OperatingSetting(
            "200",
            "results, 0 to switch the breaker off",
            _whole(0, 100_000),
            "the breaker looks at so many of the last results",
        ),
        "budget_attempts": OperatingSetting(
            "0",
            "attempts, 0 for no limit",
            _whole(0, 10**9),
            "retries that a version may make in all before it is held",
        ),
        "budget_hours": OperatingSetting(
            "0",
            "hours, 0 for no limit",
            _whole(0, 10**6),
            "nothing new is submitted so long after a version's first submission; it is held",
        ),
        "budget_usd": OperatingSetting(
            "0",
            "US dollars such as 12.50, 0 for no limit",
            _amount,
            "what a version may cost; it is held before work that could pass that is submitted",
        ),
        "canary_days": OperatingSetting(
            "7",
            "days from 1 to 90",
            _whole(1, 90),
            "a passed canary vouches for its combination so long",
        ),
        "dead_letter_hours": OperatingSetting(
            "72",
            "hours from 1 to 8760",
            _whole(1, 8760),
            "an alert is raised when a dead letter stays open for so long",
        ),
        "dead_letter_owner": OperatingSetting(
            "operators",
            "a name of at most 128 characters",
            _name,
            "whom new dead letters belong to",
        ),
        "deadline_lead_minutes": OperatingSetting(
            "60",
            "minutes from 1 to 2880",
            _whole(1, 2880),
            "the internal deadline stands so long before the provider's",
        ),
        "deadline_policy": OperatingSetting(
            "wait",
            "wait or cancel_and_collect",
            _one_of("wait", "cancel_and_collect"),
            "what is done with a job at its internal deadline",
        ),
        "delete_remote": OperatingSetting(
            "after_collect",
            "after_collect or never",
            _one_of("after_collect", "never"),
            "when files at the provider are deleted",
        ),
        "enqueued_tokens": OperatingSetting(
            "0",
            "tokens, 0 for the capability table's figure or no limit",
            _whole(0, 10**12),
            "tokens that all open jobs of a provider, account and model may hold together",
        ),
        "free_retries": OperatingSetting(
            "3",
            "retries from 0 to 50",
            _whole(0, 50),
            "retries of a record after expiry or for want of capacity, which use no attempt",
        ),
        "jobs_in_flight": OperatingSetting(
            "0",
            "jobs, 0 for the capability table's figure or no limit",
            _whole(0, 10_000),
            "open jobs of a provider, account and model",
        ),
        "no_progress_minutes": OperatingSetting(
            "120",
            "minutes from 1 to 2880",
            _whole(1, 2880),
            "an alert is raised when live counts stand still for so long",
        ),
        "online_concurrency": OperatingSetting(
            "8",
            "calls from 1 to 256",
            _whole(1, 256),
            "online calls that may be under way at once; fewer when the provider pushes back",
        ),
        "promote": OperatingSetting(
            "auto",
            "auto or manual",
            _one_of("auto", "manual"),
            "whether accepted records are published by the next run, or by `tallybook promote`",
        ),
        "retry_hours": OperatingSetting(
            "168",
            "hours from 1 to 8760",
            _whole(1, 8760),
            "a record is not tried again so long after its first attempt was submitted",
        ),
        "review_hours": OperatingSetting(
            "168",
            "hours from 1 to 8760",
            _whole(1, 8760),
            "an alert is raised when a review stays open for so long",
        ),
        "reviewer_usd_hour": OperatingSetting(
            "0",
            "US dollars such as 45.00, 0 for not known",
            _amount,
            "what an hour of a reviewer costs, for the cost of an accepted item",
        ),
        "sample_least": OperatingSetting(
            "5",
            "records from 0 to 10000",
            _whole(0, 10_000),
            "a quality sample takes at least so many accepted records of every slice",
        ),
        "sample_percent": OperatingSetting(
            "2",
            "percent from 0 to 100, with at most six places",
            lambda text: _amount(text) and Decimal(text) <= 100,
            "a quality sample takes such a share of the accepted records of every slice",
        ),
        "scope": OperatingSetting(
            "all",
            "all or replays",
            _one_of("all", "replays"),
            "whether the version processes every document of its sources, or only what replays "
            "select",
        ),
        "stuck_hours": OperatingSetting(
            "24",
            "hours from 1 to 8760",
            _whole(1, 8760),
            "an alert is raised when records that nothing has to wait for stand still for so long",
        ),
    }
)


@dataclass(frozen=True)
class Operating:
    """The operating settings of a version, as values; None where there is no limit.

    `breaker_floor` is a share from 0 to 1; a `breaker_pause` of None means: only by command.
    """

    attempts_a_record: int
    backlog_publication: int | None
    backlog_review: int | None
    backlog_staging: int | None
    breaker_floor: Decimal
    breaker_least: int
    breaker_pause: timedelta | None
    breaker_window: int | None
    budget_attempts: int | None
    budget_time: timedelta | None
    budget_usd: Decimal | None
    canary_age: timedelta
    dead_letter_age: timedelta
    dead_letter_owner: str
    deadline_lead: timedelta
    deadline_policy: DeadlinePolicy
    delete_remote: bool
    enqueued_tokens: int | None
    free_retries: int
    jobs_in_flight: int | None
    no_progress: timedelta
    online_concurrency: int
    promote: Literal["auto", "manual"]
    retry_time: timedelta
    review_age: timedelta
    reviewer_usd_hour: Decimal | None
    sample_least: int
    sample_percent: Decimal
    scope: Literal["all", "replays"]
    stuck_age: timedelta


def operating(ledger: Ledger, version_no: int) -> Operating:
    """The settings that hold for a version now."""
    chosen = all_operating(ledger, version_no)

    def value(name: str) -> str:
        return chosen.get(name, SETTINGS[name].default)

    policy: DeadlinePolicy = (
        "cancel_and_collect" if value("deadline_policy") == "cancel_and_collect" else "wait"
    )
    return Operating(
        attempts_a_record=int(value("attempts_a_record")),
        backlog_publication=int(value("backlog_publication")) or None,
        backlog_review=int(value("backlog_review")) or None,
        backlog_staging=int(value("backlog_staging")) or None,
        breaker_floor=Decimal(value("breaker_floor")) / 100,
        breaker_least=int(value("breaker_least")),
        breaker_pause=timedelta(minutes=int(value("breaker_minutes"))) or None,
        breaker_window=int(value("breaker_window")) or None,
        budget_attempts=int(value("budget_attempts")) or None,
        budget_time=timedelta(hours=int(value("budget_hours"))) or None,
        budget_usd=Decimal(value("budget_usd")) or None,
        canary_age=timedelta(days=int(value("canary_days"))),
        dead_letter_age=timedelta(hours=int(value("dead_letter_hours"))),
        dead_letter_owner=value("dead_letter_owner"),
        deadline_lead=timedelta(minutes=int(value("deadline_lead_minutes"))),
        deadline_policy=policy,
        delete_remote=value("delete_remote") == "after_collect",
        enqueued_tokens=int(value("enqueued_tokens")) or None,
        free_retries=int(value("free_retries")),
        jobs_in_flight=int(value("jobs_in_flight")) or None,
        no_progress=timedelta(minutes=int(value("no_progress_minutes"))),
        online_concurrency=int(value("online_concurrency")),
        promote="manual" if value("promote") == "manual" else "auto",
        retry_time=timedelta(hours=int(value("retry_hours"))),
        review_age=timedelta(hours=int(value("review_hours"))),
        reviewer_usd_hour=Decimal(value("reviewer_usd_hour")) or None,
        sample_least=int(value("sample_least")),
        sample_percent=Decimal(value("sample_percent")),
        scope="replays" if value("scope") == "replays" else "all",
        stuck_age=timedelta(hours=int(value("stuck_hours"))),
    )


def check_operating(name: str, value: str) -> None:
    """Refuse a setting that does not exist or a value that it cannot have.

    Raises:
        UnknownOperatingSetting: no such name.
        OperatingValueRefused: no such value.
    """
    if name not in SETTINGS:
        raise UnknownOperatingSetting(name)
    if not SETTINGS[name].accepts(value):
        raise OperatingValueRefused(name, value, SETTINGS[name].wanted)
