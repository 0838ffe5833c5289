"""Planted faults: which ones there are, and when one strikes.

Belongs here: the table of operations and kinds, and the plan that counts them down. What a kind
does stands where it is done: `http.py` for connections and bodies, `rows.py` for result lines,
`answers.py` for answers, a provider's module for what has the provider's own form.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

PROVIDERS = ("openai", "anthropic", "gemini", "bedrock")
EVERY_PROVIDER = "*"

HTTP_KINDS = ("status", "drop_before", "drop_after", "delay")
CALLS = ("upload", "create", "retrieve", "list", "cancel", "delete", "models", "answer", "file")
KINDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(CALLS, HTTP_KINDS),
    "download": (*HTTP_KINDS, "cut", "truncate_at_newline"),
    # Asked once, when a job is created.
    "job": (
        "failed",
        "expired",
        "cancelled",
        "stuck",
        "unknown_status",
        "all_failed",
        "unlisted",
        "no_counts",
        "inline",
        "not_found",
    ),
    # Asked for every row when it is run.
    "row": (
        "error",
        "truncated",
        "refused",
        "filtered",
        "prose",
        "null_values",
        "no_finish",
        "status_zero",
        "not_executed",
        "repetition",
        "raw_u2028",
    ),
    # Asked once a job, when its result files are made; every matching fault strikes.
    "lines": (
        "missing",
        "late",
        "duplicate",
        "duplicate_differs",
        "alien",
        "malformed",
        "shuffle",
        "swap",
        "crlf",
        "shift",
    ),
}
"""Kinds by operation. A kind that only one provider has is added here too."""


class InvalidFault(ValueError):
    """A fault that could never strike, or whose figures make no sense."""


@dataclass(frozen=True)
class Fault:
    """One planted fault.

    Attributes:
        provider: one of `PROVIDERS`, or `*` for each.
        op: the operation that it strikes, a key of `KINDS`.
        kind: what happens, one of the operation's kinds.
        times: how often it strikes; None means for ever.
        after: so many matching operations are let through first.
        args: what the kind needs; `match` (facts by name) narrows it to some operations.
    """

    provider: str
    op: str
    kind: str
    times: int | None = 1
    after: int = 0
    args: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what could never strike: a test that waits for it would always pass."""
        if self.provider not in (*PROVIDERS, EVERY_PROVIDER):
            raise InvalidFault(f"no provider is called {self.provider!r}: {(*PROVIDERS, '*')}")
        if self.op not in KINDS:
            raise InvalidFault(f"no operation is called {self.op!r}: {tuple(KINDS)}")
        if self.kind not in KINDS[self.op]:
            raise InvalidFault(
                f"the operation {self.op!r} has no fault {self.kind!r}: {KINDS[self.op]}"
            )
        if (self.times is not None and self.times < 1) or self.after < 0:
            raise InvalidFault("`times` is at least 1 (or null, for ever) and `after` at least 0")
        if not isinstance(self.args.get("match", {}), Mapping):
            raise InvalidFault("`args.match` holds facts by name")


def read_fault(data: object) -> Fault:
    """Return a fault from its JSON or YAML form.

    Raises:
        InvalidFault: not a mapping, a missing or unknown field, or a fault without effect.
    """
    if not isinstance(data, Mapping):
        raise InvalidFault(f"a fault is a mapping, not {type(data).__name__}")
    wanted = {"provider", "op", "kind"}
    known = wanted | {"times", "after", "args"}
    if not wanted <= set(data) <= known:
        raise InvalidFault(f"a fault has {sorted(wanted)} and at most {sorted(known)}")
    if not isinstance(data.get("times", 1), int | None) or not isinstance(
        data.get("after", 0), int
    ):
        raise InvalidFault("`times` and `after` are whole numbers")
    if not isinstance(data.get("args", {}), Mapping):
        raise InvalidFault("`args` is a mapping")
    return Fault(**data)


@dataclass
class _Standing:
    """A fault and what is left of it."""

    fault: Fault
    let_through: int
    left: int | None


class FaultPlan:
    """The faults that are planted now; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._standing: list[_Standing] = []

    def add(self, fault: Fault) -> None:
        """Plant a fault behind those that are there."""
        with self._lock:
            self._standing.append(_Standing(fault, fault.after, fault.times))

    def clear(self) -> None:
        """Take every fault away."""
        with self._lock:
            self._standing.clear()

    def load(self, items: Iterable[object]) -> None:
        """Plant faults from their JSON or YAML form: all of them, or none.

        Raises:
            InvalidFault: one of them is not a fault.
        """
        for fault in [read_fault(item) for item in items]:
            self.add(fault)

    def pending(self) -> list[Fault]:
        """Return the faults that have not struck as often as they should."""
        with self._lock:
            return [one.fault for one in self._standing if one.left is None or one.left > 0]

    def take(self, provider: str, op: str, **facts: Any) -> Fault | None:
        """Return the first fault that strikes this operation, and use it up once."""
        with self._lock:
            return next(
                (one.fault for one in self._matching(provider, op, facts) if _strikes(one)), None
            )

    def take_all(self, provider: str, op: str, **facts: Any) -> list[Fault]:
        """Return every fault that strikes this operation, each used up once."""
        with self._lock:
            matching = self._matching(provider, op, facts)
            return [one.fault for one in matching if _strikes(one)]

    def _matching(self, provider: str, op: str, facts: Mapping[str, Any]) -> list[_Standing]:
        return [
            one
            for one in self._standing
            if one.fault.provider in (provider, EVERY_PROVIDER)
            and one.fault.op == op
            and one.fault.args.get("match", {}).items() <= facts.items()
        ]


def _strikes(one: _Standing) -> bool:
    """Count a matching operation down: first those let through, then the strikes."""
    if one.left == 0:
        return False
    if one.let_through > 0:
        one.let_through -= 1
        return False
    if one.left is not None:
        one.left -= 1
    return True
