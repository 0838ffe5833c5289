"""The page of `tallybook status`: what is said, and the forms that it takes.

Belongs here: words, tables and small bars. Does not belong here: the figures
(`account/status.py`, `account/disk.py`), and drawing the page again and again (`status_watch.py`).

A page is names with values, and tables. On a terminal it is laid out to its width; anywhere else
no line is cut or folded, so that commands can be copied and lines searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline_assets.cli import output
from pipeline_assets.cli.account import rate_sentence
from pipeline_assets.cli.options import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pipeline_assets.account.disk import DiskFacts
    from pipeline_assets.account.hold_facts import BreakerFacts
    from pipeline_assets.account.readiness import Readiness
    from pipeline_assets.account.status import Status, VersionLine
    from pipeline_assets.account.waits import Wait
    from pipeline_assets.distribution import Distribution

WIDE = 120
"""From so many columns on the bins of a histogram have columns of their own."""
BARS = "▁▂▃▄▅▆▇█"
NO_BAR = "·"
BINS = ("1m", "5m", "15m", "1h", "4h", "1d", "3d", "7d", "more")
"""Short names of the bins of `distribution.EDGES`, by their upper edges."""

_THINGS = {
    "awaiting_review": ("record awaiting review", "records awaiting review"),
    "dead_letter": ("dead letter", "dead letters"),
    "awaiting_approval": ("document awaiting approval", "documents awaiting approval"),
    "canary failed": ("failed canary", "failed canaries"),
    "pending": ("document not processed yet", "documents not processed yet"),
    "quality_sample": ("answer of a quality sample", "answers of a quality sample"),
    "retry_wait": ("record awaiting another attempt", "records awaiting another attempt"),
}
_UNITS = ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min"))


@dataclass(frozen=True)
class Facts:
    """Names and values under each other; a value of None is left out.

    Attributes:
        rows: an empty name goes on with the one above.
        heading: what they are about; None for no heading.
    """

    rows: Sequence[tuple[str, str | None]]
    heading: str | None = None


@dataclass(frozen=True)
class Grid:
    """A table."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


Page = list[Facts | Grid]


def page_of(
    now: Status, disk: DiskFacts, options: list[str], width: int, *, watching: bool = False
) -> Page:
    """Everything about one version.

    Args:
        now: where it stands.
        disk: what is used and free.
        options: what a command needs to mean the same place and version.
        width: columns.
        watching: the end may be cut off, and nobody copies commands: what waits comes early, and
            without them.
    """
    facts = Facts(
        [
            *_standing(now),
            *_moving(now),
            *_hold(now, options),
            *_queues(now),
            ("disk", disk_sentence(disk)),
            ("ready", ready_sentence(now.ready)),
        ]
    )
    stages = Grid(
        "Documents that have passed a stage", tuple(now.stages), [tuple(now.stages.values())]
    )
    if watching:
        return [facts, _waits(now.waits, None), stages, *_ages(now, width)]
    return [facts, stages, *_ages(now, width), _waits(now.waits, options)]


def page_of_all(lines: Sequence[VersionLine]) -> Page:
    """A line a version, and why those that are held are."""
    found: Page = [
        Grid(
            "Processing versions",
            ("version", "state", "open", "accepted", "published", "review", "dead", "waits"),
            [
                (
                    line.processing_version,
                    line.state,
                    line.open_records,
                    line.accepted,
                    line.published,
                    line.awaiting_review,
                    line.dead_letters,
                    line.waiting,
                )
                for line in lines
            ],
        )
    ]
    held = [line for line in lines if line.held_for is not None]
    if held:
        rows = [(line.processing_version, _held_line(line)) for line in held]
        found.append(Facts(rows, heading="Held"))
    return found


def print_page(page: Page) -> None:
    """Once, to standard output."""
    for part in page:
        if isinstance(part, Grid):
            output.say("")
            output.table(part.title, part.columns, part.rows)
        elif output.console().is_terminal:
            output.console().print(_laid_out(part))
        else:
            if part.heading is not None:
                output.heading(part.heading)
            _print_facts(part)


def drawn(page: Page) -> RenderableType:
    """For a terminal that is drawn anew again and again."""
    from rich.console import Group
    from rich.text import Text

    return Group(
        *(
            Group(Text(""), output.grid(part.title, part.columns, part.rows))
            if isinstance(part, Grid)
            else _laid_out(part)
            for part in page
        )
    )


def span(seconds: float | None) -> str:
    """`3 s`, `12 min`, `5.2 h`, `2.6 days`; a dash where there is nothing."""
    if seconds is None:
        return "–"
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def size(count: float) -> str:
    """Bytes in decimal units, as disks are sold."""
    for scale, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count:.0f} B"


def bars(histogram: Sequence[int]) -> str:
    """A bar a bin, the highest for the fullest; whatever is not empty has at least the lowest."""
    most = max(histogram, default=0)
    return "".join(
        BARS[-(-count * len(BARS) // most) - 1] if count else NO_BAR for count in histogram
    )


def disk_sentence(disk: DiskFacts) -> str:
    """What is used, what is free, and whether it is enough."""
    told = f"{size(disk.artifact_bytes)} of artifacts, {size(disk.ledger_bytes)} of ledger; "
    told += " and ".join(
        f"{'free space unknown' if place.free is None else size(place.free) + ' free'} for "
        f"{' and '.join(place.holds)}"
        for place in disk.places
    )
    if not disk.records_ahead:
        return f"{told}; nothing is ahead{_enough(disk)}"
    ahead = counted(disk.records_ahead, "document or record", "documents and records")
    if disk.forecast is None:
        missing = ", ".join(disk.unknown)
        return f"{told}; what {ahead} ahead may take is not known yet ({missing}){_enough(disk)}"
    return f"{told}; {ahead} ahead may take {size(disk.forecast)}{_enough(disk)}"


def ready_sentence(ready: Readiness | None) -> str:
    """Is the collection ready, and if not, why."""
    if ready is None:
        return "no: no report of it was closed"
    closed = (
        f"report {ready.report_no} was closed on {output.local(ready.closed_at)} by "
        f"{ready.closed_by}"
    )
    if ready.ready:
        return f"yes: {closed}, and nothing happened since"
    return f"no longer: {closed}; since then {since_closed(ready)}"


def since_closed(ready: Readiness) -> str:
    """What happened since a report was made; empty where nothing did."""
    since = []
    if ready.records_since:
        since.append(f"{counted(ready.records_since, 'record')} moved")
    elif ready.moves_since:
        since.append(f"{counted(ready.moves_since, 'move')} of batches or the version")
    if ready.scanned_since:
        since.append("the sources changed")
    if ready.shown_since:
        since.append("the archive shows something else of it")
    return " and ".join(since)


def open_sentence(now: Status) -> str:
    """How much is open, of the present documents and of those that changed or went away since."""
    former = now.ages.open_records.count - now.open_records
    told = str(now.open_records)
    if former > 0:
        told += f" and {former} of documents that changed or went away since"
    oldest = output.local(now.oldest_open_at)
    return f"{told}, the oldest moved last at {oldest}" if oldest else told


def shown_sentence(now: Status) -> str | None:
    """What the archive shows of it, where that is not all that it published."""
    publication = now.publication
    former, again = publication.shown_former, publication.shown_again
    present = publication.shown - former - again
    if present == publication.published and not (former or again):
        return None
    told = f"{present} of {publication.published} published documents"
    if present < publication.published:
        told += " (for the others the archive shows another version, or none)"
    if again:
        told += f", and {counted(again, 'document')} whose record is being processed again"
    if former:
        told += f", and {counted(former, 'document')} that changed or went away since"
    return told


def _standing(now: Status) -> list[tuple[str, str | None]]:
    publication = now.publication
    both = publication.published + publication.accepted
    return [
        ("processing version", f"{now.processing_version} ({now.state})"),
        ("documents", f"{now.documents}, {now.excluded} of them excluded"),
        ("records", _counts(now.states)),
        ("batches", _counts(now.batches)),
        (
            "published",
            None
            if publication.share is None
            else f"{publication.published} of {both} accepted or published "
            f"({100 * publication.share:.4g} %)",
        ),
        ("shown", shown_sentence(now)),
        ("review backlog", _review_sentence(now)),
        ("dead letters", str(now.dead_letters) if now.dead_letters else None),
    ]


def _moving(now: Status) -> list[tuple[str, str | None]]:
    retries = output.local(now.retries_due_at)
    poll = now.next_poll
    return [
        (
            "open records",
            open_sentence(now),
        ),
        ("active attempts", str(now.active_attempts) if now.active_attempts else None),
        (
            "next poll",
            None
            if poll is None
            else f"{poll.batch_id} at {output.local(poll.at)}"
            + (" (that is over: nobody looks)" if poll.overdue else ""),
        ),
        ("retries due", None if retries is None else f"{now.retries_due} now; from {retries}"),
    ]


def _review_sentence(now: Status) -> str | None:
    sample = now.sample
    if not now.review_backlog and sample is None:
        return None
    told = f"{now.review_backlog} that a finding asked for"
    if sample is None:
        return told
    told += f"; quality sample: {sample.waiting} of {counted(sample.drawn, 'record')} wait"
    rate = rate_sentence(sample.rate, sample.low, sample.high)
    return told if rate is None else f"{told}, error rate {rate}"


def _hold(now: Status, options: list[str]) -> list[tuple[str, str | None]]:
    """Why nothing is submitted, and how far it is from that."""
    rows: list[tuple[str, str | None]] = []
    held = now.held
    if held is not None:
        release = output.command("release", "--reason", "TEXT", *options)
        rows += [
            ("held for", held.kind),
            ("because", held.reason),
            ("since", f"{output.local(held.since)}, by {held.actor}"),
            ("goes on", " at ".join(filter(None, (held.ends, output.local(held.ends_at))))),
            ("or" if held.ends_by_itself else "command", release),
        ]
    if now.breaker is not None:
        rows.append(("circuit breaker", breaker_sentence(now.breaker)))
    return rows


def breaker_sentence(breaker: BreakerFacts) -> str:
    """What the circuit breaker sees."""
    if breaker.window is None:
        return "switched off"
    if not breaker.results:
        told = "no results yet"
    else:
        told = (
            f"{breaker.usable} of the last {breaker.results} results are usable "
            f"({breaker.usable_percent:g} %)"
        )
    told += f"; floor {breaker.floor_percent} %, from {breaker.enough} results on"
    return f"{told}; on probation, one batch at a time" if breaker.on_probation else told


def _queues(now: Status) -> list[tuple[str, str | None]]:
    if not now.backlog:
        return []
    told = (
        f"{entry.queue} {entry.records}"
        + (" (no limit)" if entry.limit is None else f" of {entry.limit}")
        for entry in now.backlog
    )
    return [("queues", ", ".join(told))]


def _ages(now: Status, width: int) -> Page:
    ages = now.ages
    rows = [
        (name, ages_of)
        for name, ages_of in (
            ("records since last move", ages.open_records),
            ("batches at the provider", ages.batches_out),
            ("batches not complete", ages.batches_open),
            ("reviews of findings", ages.reviews),
            ("quality samples", ages.quality_samples),
        )
        if ages_of.count
    ]
    if not rows:
        return []
    if width >= WIDE:
        columns = ("open", "count", "half", "9 of 10", "oldest", *BINS, "")
        cells = [
            (*_age_row(name, found), *found.histogram, bars(found.histogram))
            for name, found in rows
        ]
        return [Grid("How old what is open is, and how many are up to so old", columns, cells)]
    columns = ("open", "count", "half", "9 of 10", "oldest", "how many")
    cells = [(*_age_row(name, found), bars(found.histogram)) for name, found in rows]
    legend = "up to " + ", ".join(BINS)
    return [Grid("How old what is open is", columns, cells), Facts([("bars", legend)])]


def _age_row(name: str, found: Distribution) -> tuple[str, int, str, str, str]:
    return (name, found.count, span(found.p50), span(found.p90), span(found.max))


def _waits(waits: Sequence[Wait], options: list[str] | None) -> Facts:
    """Without options, without commands; a command that helps several is said with the last."""
    if not waits:
        return Facts([("", "Nothing waits.")])
    rows: list[tuple[str, str | None]] = []
    for wait, after in zip(waits, [*waits[1:], None], strict=True):
        since = "" if wait.since is None else f", since {output.local(wait.since)}"
        rows.append((wait.who, f"{_thing(wait)}{since}"))
        if options is None or wait.command is None:
            continue
        if after is None or (after.who, after.command) != (wait.who, wait.command):
            rows.append(("", f"  {output.command(*wait.command, *_options(wait, options))}"))
    return Facts(rows, heading="What waits for whom")


def _options(wait: Wait, options: list[str]) -> list[str]:
    """What is named by the command itself is not named again."""
    if (
        wait.command
        and wait.command[0] in ("promote", "batch", "canary", "sources")
        and "--version" in options
    ):
        at = options.index("--version")
        return [*options[:at], *options[at + 2 :]]
    return options


def _thing(wait: Wait) -> str:
    if wait.what == "held":
        return "the version is held"
    if wait.what in _THINGS:
        return counted(wait.count, *_THINGS[wait.what])
    if wait.what.startswith("batch "):
        state = wait.what.removeprefix("batch ")
        return counted(wait.count, f"batch {state}", f"batches {state}")
    return counted(wait.count, f"record {wait.what}", f"records {wait.what}")


def _held_line(line: VersionLine) -> str:
    since = "" if line.since is None else f" since {output.local(line.since)}"
    return f"for {line.held_for}{since}: {line.reason}; goes on {line.ends}"


def _enough(disk: DiskFacts) -> str:
    kept = f"{size(disk.reserve)} are to stay free"
    if disk.enough is None:
        return f"; {kept}"
    return f": enough, {kept}" if disk.enough else f": NOT ENOUGH, {kept}"


def _counts(counts: dict[str, int]) -> str | None:
    return ", ".join(f"{count} {state}" for state, count in counts.items()) or None


def _print_facts(part: Facts) -> None:
    width = _name_width(part)
    output.say(*(f"{name:<{width}}  {value}" if width else value for name, value in _kept(part)))


def _laid_out(part: Facts) -> RenderableType:
    """Names in a column of their own; long values go on under each other."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from pipeline_assets.account.plain_text import one_line

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, min_width=_name_width(part))
    grid.add_column(overflow="fold")
    for name, value in _kept(part):
        grid.add_row(Text(one_line(name)), Text(one_line(value)))
    if part.heading is None:
        return grid
    return Group(Text(f"\n{part.heading}", style="bold"), grid)


def _kept(part: Facts) -> list[tuple[str, str]]:
    return [(name, value) for name, value in part.rows if value]


def _name_width(part: Facts) -> int:
    return max((len(name) for name, _ in _kept(part)), default=0)
