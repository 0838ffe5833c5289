"""`tallybook sources events`: events of queues that wait or were given up; retry and discard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    counted,
    make_settings,
    open_existing,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from sqlalchemy import Connection

    from resources.ledger.engine import Ledger

events_app = typer.Typer(
    help="Show events of queues that wait or were given up, and retry or discard those.",
    invoke_without_command=True,
)
Numbers = Annotated[
    list[int] | None,
    typer.Argument(
        metavar="[EVENT]...",
        min=1,
        max=2**63 - 1,
        help="Numbers of events.",
        show_default=False,
    ),
]
OfSource = Annotated[
    str | None, typer.Option("--source", metavar="NAME", help="Of this source.", show_default=False)
]
All = Annotated[bool, typer.Option("--all", help="Every event of the source that was given up.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.")]
By = Annotated[
    str | None,
    typer.Option(
        "--by", metavar="NAME", help="Who decides [default: your login].", show_default=False
    ),
]


class EventsUnnamed(ValueError):
    """It is not said which events are meant, or said twice."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"found {found}; expected numbers of events, or --source NAME with --all. Nothing was "
            "changed: `tallybook sources events` lists them."
        )


@events_app.callback()
def list_command(
    context: typer.Context,
    source: OfSource = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also those that are done or discarded.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most so many.")] = 50,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """List events that wait or were given up, the oldest first."""
    from pipeline_assets.cli import output
    from resources.ledger.source_events import STATES, list_events

    if context.invoked_subcommand is not None:
        return 0
    with open_existing(make_settings(state=state)) as opened:
        with opened.ledger.read() as connection:
            found = list_events(
                connection,
                opened.ledger,
                source=source,
                states=STATES if everything else ("dead", "waiting"),
            )
        now = opened.clock()
    shown = list(found.head(limit).iter_rows(named=True))
    if json:
        output.emit_json_lines(row | {"age_hours": _age(row, now)} for row in shown)
        return 0
    if not shown:
        output.say("No event waits, and none was given up.")
        return 0
    _print_events(shown, found.height, now)
    return 0


@events_app.command("retry")
def retry_command(
    reason: Reason,
    events: Numbers = None,
    source: OfSource = None,
    everything: All = False,
    by: By = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Let events that were given up wait for another look, with all their tries."""
    from resources.ledger.source_events import retry_events

    return _deal("retried", retry_events, events, source, everything, reason, by, state, json=json)


@events_app.command("discard")
def discard_command(
    reason: Reason,
    events: Numbers = None,
    source: OfSource = None,
    everything: All = False,
    by: By = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Let events go for good."""
    from resources.ledger.source_events import discard_events

    return _deal(
        "discarded", discard_events, events, source, everything, reason, by, state, json=json
    )


def login(by: str | None) -> str:
    """Whoever was named, else the login; empty where that has no name, so that somebody signs."""
    import getpass

    if by is not None:
        return by
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _deal(
    done: str,
    change: Callable[..., int],
    events: list[int] | None,
    source: str | None,
    everything: bool,
    reason: str,
    by: str | None,
    state: Path | None,
    *,
    json: bool,
) -> int:
    from pipeline_assets.approval.said import require_actor, require_reason
    from pipeline_assets.cli import output
    from pipeline_assets.ingest.event_alerts import look_at_dead_events

    why, who = require_reason(reason), require_actor(login(by))
    with open_existing(make_settings(state=state)) as context:
        with context.ledger.write() as connection:
            chosen = _chosen(connection, context.ledger, events, source, everything=everything)
            count = change(connection, context.ledger, chosen, reason=why, actor=who)
        look_at_dead_events(context)
    if json:
        output.emit_json({done: count, "events": chosen})
        return 0
    output.say(f"{counted(count, 'event')} {done}.")
    return 0


def _chosen(
    connection: Connection,
    ledger: Ledger,
    events: list[int] | None,
    source: str | None,
    *,
    everything: bool,
) -> list[int]:
    from resources.ledger.source_events import list_events

    if events and (source is not None or everything):
        raise EventsUnnamed("numbers of events together with --source or --all")
    if events:
        return events
    if source is None or not everything:
        raise EventsUnnamed("no event" if source is None else "--source without --all")
    found = list_events(connection, ledger, source=source, states=("dead",))
    if found.is_empty():
        raise EventsUnnamed(f"no event of source {source!r} that was given up")
    return found["event_no"].to_list()


def _age(row: dict[str, Any], now: datetime) -> float:
    """Hours since it was first received."""
    from resources.clock import from_text

    return round((now - from_text(row["first_at"])).total_seconds() / 3600, 1)


def _print_events(rows: list[dict[str, Any]], count: int, now: datetime) -> None:
    from pipeline_assets.cli import output

    output.table(
        counted(count, "event"),
        ("event", "source", "document", "state", "problem", "owner", "received", "tries", "age"),
        (
            (
                row["event_no"],
                row["source"],
                row["document_id"] or "(none)",
                row["state"],
                row["problem"],
                row["owner"],
                row["times"],
                row["tries"],
                f"{_age(row, now)} h",
            )
            for row in rows
        ),
    )
    if count > len(rows):
        output.say(f"{counted(count - len(rows), 'more event')} not shown: --limit shows more.")
    dead = [row for row in rows if row["state"] == "dead"]
    if dead:
        one = dead[0]["event_no"]
        output.say(
            "Look again: " + output.command("sources", "events", "retry", one, "--reason", "TEXT"),
            "Let it go: " + output.command("sources", "events", "discard", one, "--reason", "TEXT"),
        )
