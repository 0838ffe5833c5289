"""Operating settings: what may change without a new version, with defaults and meanings.

Belongs here: the names, defaults and checks. Does not belong here: storing them
(`resources/ledger/versions.py`, journaled with reason and actor) and what uses them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType

from pipeline_assets.provider_jobs.polling import DeadlinePolicy
from resources.ledger.engine import Ledger
from resources.ledger.versions import get_operating


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


def _one_of(*words: str) -> Callable[[str], bool]:
    return lambda text: text in words


SETTINGS: MappingProxyType[str, OperatingSetting] = MappingProxyType(
    {
        "canary_days": OperatingSetting(
            "7",
            "days from 1 to 90",
            _whole(1, 90),
            "a passed canary vouches for its combination so long",
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
    }
)


@dataclass(frozen=True)
class Operating:
    """The operating settings of a version, as values."""

    canary_age: timedelta
    deadline_lead: timedelta
    deadline_policy: DeadlinePolicy
    delete_remote: bool
    enqueued_tokens: int | None
    jobs_in_flight: int | None
    no_progress: timedelta
    online_concurrency: int


def operating(ledger: Ledger, version_no: int) -> Operating:
    """The settings that hold for a version now."""

    def value(name: str) -> str:
        return get_operating(ledger, version_no, name, SETTINGS[name].default)

    policy: DeadlinePolicy = (
        "cancel_and_collect" if value("deadline_policy") == "cancel_and_collect" else "wait"
    )
    return Operating(
        canary_age=timedelta(days=int(value("canary_days"))),
        deadline_lead=timedelta(minutes=int(value("deadline_lead_minutes"))),
        deadline_policy=policy,
        delete_remote=value("delete_remote") == "after_collect",
        enqueued_tokens=int(value("enqueued_tokens")) or None,
        jobs_in_flight=int(value("jobs_in_flight")) or None,
        no_progress=timedelta(minutes=int(value("no_progress_minutes"))),
        online_concurrency=int(value("online_concurrency")),
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
