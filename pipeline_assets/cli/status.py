"""`tallybook status`: where a version stands and what waits.

Whether the account adds up takes longer to tell; that is `tallybook report`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    VersionOption,
    make_settings,
    open_existing,
)

if TYPE_CHECKING:
    from pipeline_assets.account.hold_facts import BreakerFacts
    from pipeline_assets.account.status import Status


def status_command(
    version: VersionOption = None, state: StateOption = None, json: JsonOption = False
) -> int:
    """Show how far every stage is, what is open, and what waits for a person."""
    from pipeline_assets.account.status import status
    from pipeline_assets.cli import output
    from pipeline_assets.cli.account import DONE, WAITS, options_of, print_sample, print_waiting

    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        now = status(context, settings.version)
    if json:
        output.emit_json(now.as_json())
    else:
        _print(now)
        _print_holds(now, options_of(settings))
        print_sample(now.sample)
        print_waiting(now)
        if now.done:
            output.say("Nothing waits.")
    return DONE if now.done else WAITS


def _print(now: Status) -> None:
    from pipeline_assets.cli import output

    output.facts(
        [
            ("processing version", f"{now.processing_version} ({now.state})"),
            ("documents", f"{now.documents}, {now.excluded} of them excluded"),
            ("open records", now.open_records),
            ("oldest of them moved", output.local(now.oldest_open_at)),
            ("retries due from", output.local(now.retries_due_at)),
            ("shown", _shown_sentence(now)),
        ]
    )
    output.table(
        "Documents that have passed a stage", tuple(now.stages), [tuple(now.stages.values())]
    )
    output.table("Records by state", ("state", "records"), list(now.states.items()))
    output.table("Batches by state", ("state", "batches"), list(now.batches.items()))


def _print_holds(now: Status, options: list[str]) -> None:
    """Why nothing is submitted, and how far it is from that."""
    from pipeline_assets.cli import output

    held = now.held
    if held is not None:
        release = output.command("release", "--reason", "TEXT", *options)
        output.facts(
            [
                ("held for", held.kind),
                ("because", held.reason),
                ("since", f"{output.local(held.since)}, by {held.actor}"),
                ("goes on", " at ".join(filter(None, (held.ends, output.local(held.ends_at))))),
                ("or" if held.ends_by_itself else "command", release),
            ]
        )
    if now.breaker is not None:
        output.facts([("circuit breaker", _breaker_sentence(now.breaker))])
    if now.backlog:
        output.table(
            "Records in front of the later stages",
            ("queue", "records", "limit"),
            [
                (entry.queue, entry.records, "none" if entry.limit is None else str(entry.limit))
                for entry in now.backlog
            ],
        )


def _shown_sentence(now: Status) -> str | None:
    """What the archive shows of it, where that is not all that it published."""
    published = now.states.get("published", 0)
    if now.shown == published:
        return None
    return (
        f"{now.shown} of {published} published documents: for the others the archive shows another "
        "version, or none"
    )


def _breaker_sentence(breaker: BreakerFacts) -> str:
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
