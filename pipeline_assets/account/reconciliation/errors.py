"""What a report is refused for, each with what was found and what helps.

Belongs here: the exceptions of this folder. Does not belong here: finding what they tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from resources.ledger.kept_reports import KeptReport


class ReportError(Exception):
    """A report cannot be made, opened or closed as it was asked for; the message is for people."""


class UnknownBatch(ReportError):
    """A version has no batch of this name."""

    SHOWN = 3
    """Newest batches that the message names."""

    def __init__(self, key: str, batch_id: str, known: tuple[str, ...]) -> None:
        shown = ", ".join(known) or "none"
        super().__init__(
            f"version {key} has no batch {batch_id!r} (its newest: {shown}). `tallybook batch "
            "list` names them all."
        )


class UnknownReport(ReportError):
    """There is no kept report of a number."""

    def __init__(self, report_no: int) -> None:
        super().__init__(
            f"there is no kept report {report_no}. `tallybook report list` shows those there are."
        )


class ReportWithoutOutcomes(ReportError):
    """A report of an earlier release: its counts are kept, and nothing to make a page from."""

    def __init__(self, report_no: int) -> None:
        super().__init__(
            f"report {report_no} was kept by a release that did not keep the outcome of each "
            "record, so it can be neither shown as a page nor compared with. Choose a later one "
            "from `tallybook report list`."
        )


class ReportOfOther(ReportError):
    """A report of another version or batch cannot be a baseline."""

    def __init__(self, report: KeptReport, key: str, batch_id: str | None) -> None:
        def named(version: str, batch: str | None) -> str:
            return f"version {version}" + ("" if batch is None else f", batch {batch}")

        super().__init__(
            f"report {report.report_no} is of {named(report.key, report.batch_id)}, and the one to "
            f"compare is of {named(key, batch_id)}. `tallybook report list` shows which is of what."
        )


@dataclass(frozen=True)
class Obstacle:
    """Something that keeps a report from being closed.

    Attributes:
        kind: a short name for machines.
        what: what was found.
        remedy: what helps.
    """

    kind: str
    what: str
    remedy: str


class ReportNotClosable(ReportError):
    """A report cannot be closed; nothing was kept.

    Attributes:
        obstacles: everything that stands against it.
    """

    def __init__(self, key: str, obstacles: Sequence[Obstacle]) -> None:
        self.obstacles = tuple(obstacles)
        listed = "; ".join(
            f"({number}) {each.what}: {each.remedy}" for number, each in enumerate(obstacles, 1)
        )
        super().__init__(
            f"the report of {key} cannot be closed, and nothing was kept. "
            f"{len(self.obstacles)} in the way: {listed}"
        )


class ReportOvertaken(ReportError):
    """Something of the version moved between making its report and closing it."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"something of {key} moved while its report was made, so the report is behind, and "
            "nothing was kept. Close it again, best when no run is under way (tallybook status)."
        )


class CloserUnnamed(ReportError):
    """Nobody vouches for a report, or with a name that cannot be one."""

    def __init__(self) -> None:
        super().__init__(
            "found no name of at most 128 printable characters; expected who vouches for the "
            "collection: --by NAME"
        )
