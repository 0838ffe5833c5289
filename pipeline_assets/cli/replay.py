"""`tallybook replay` and `tallybook replays`: process selected records again, and what was."""

from __future__ import annotations

from pathlib import Path
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
    from decimal import Decimal

    from pipeline_assets.prepare.estimate import Estimate
    from pipeline_assets.replay.model import ReplayPlan, ReplayRequest
    from resources.context import Context
    from resources.ledger.replays import Replay
    from resources.settings import Settings

SLICES_SHOWN = 20
OK, ERROR, WAITS = 0, 1, 3


class DocumentsUnreadable(ValueError):
    """The file of document ids cannot be used."""

    def __init__(self, file: Path, problem: str) -> None:
        super().__init__(
            f"{file} {problem}; expected a text file with one document id a line. Nothing was "
            "replayed."
        )


def replay_command(
    from_version: Annotated[
        str, typer.Option("--from", metavar="V1", help="The version whose records are selected.")
    ],
    to_version: Annotated[
        str,
        typer.Option(
            "--to", metavar="V2", help="Under which they are processed; V1 for another attempt."
        ),
    ],
    reason: Annotated[
        str,
        typer.Option(
            "--reason",
            metavar="TEXT",
            help="Why; it is kept. It may begin with a word of the closed list (new_prompt: ...).",
        ),
    ],
    where: Annotated[
        str | None,
        typer.Option(
            metavar="EXPR",
            help="Only records that this is true of, such as 'identifiers > 1'; see "
            "docs/selection.md.",
            show_default=False,
        ),
    ] = None,
    documents: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Only these documents: one id a line.", show_default=False
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Who asks [default: the owner].", show_default=False),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would happen, and change nothing.")
    ] = False,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Process selected records of a version under another one, or again under the same.

    Only the selected ones are asked about: no other document of the version is touched, and what
    is published stays visible until something else is.
    """
    import uuid

    from partitions.processing_version import find_spec
    from pipeline_assets.replay.model import ReplayRequest, replay_id_of
    from pipeline_assets.replay.plan import split_reason

    settings = make_settings(state=state, version=to_version)
    find_spec(to_version, settings.spec_folders)
    word, note = split_reason(reason)
    run_id = str(uuid.uuid4())
    request = ReplayRequest(
        replay_id=replay_id_of(to_version, run_id),
        from_key=from_version,
        where=where,
        documents=None if documents is None else read_ids(documents),
        reason=word,
        note=note,
        actor=by or settings.owner,
    )
    if dry_run:
        return _dry_run(settings, request, to_version, json=json)
    return _replay(settings, request, to_version, run_id, json=json)


def replays_command(
    version: Annotated[
        str | None,
        typer.Option(
            "--version", metavar="KEY", help="Only from or to this version.", show_default=False
        ),
    ] = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """List every replay: what was selected, why, by whom, and the manifest that carries it out."""
    from pipeline_assets.cli import output
    from pipeline_assets.known_version import known_version
    from resources.ledger.replays import list_replays

    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        number = None if version is None else known_version(context, version).version_no
        found = list_replays(context.ledger, number)
    if json:
        output.emit_json_lines(vars_of(replay) for replay in found)
        return OK
    output.table(
        "Replays",
        ("replay", "from", "to", "reason", "selected", "where", "by", "at", "why"),
        [
            (
                replay.replay_id,
                replay.from_version,
                replay.to_version,
                replay.reason,
                replay.selected,
                replay.expression or ("a list" if replay.listed is not None else "all"),
                replay.actor,
                output.local(replay.created_at),
                replay.note,
            )
            for replay in found
        ],
    )
    return OK


def vars_of(replay: Replay) -> dict[str, Any]:
    """A replay as plain JSON values."""
    import msgspec

    return msgspec.to_builtins(replay)


def read_ids(file: Path) -> tuple[str, ...]:
    """The document ids of a file, one a line, each once.

    Raises:
        DocumentsUnreadable: it cannot be read, or holds none.
    """
    try:
        # Some editors begin a file with a mark; ids may hold what else ends a line in Unicode.
        lines = file.expanduser().read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise DocumentsUnreadable(file, f"cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise DocumentsUnreadable(file, "is not UTF-8 text") from error
    found = tuple(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if not found:
        raise DocumentsUnreadable(file, "holds no document id")
    return found


def _dry_run(settings: Settings, request: ReplayRequest, key: str, *, json: bool) -> int:
    from pipeline_assets.cli import output
    from pipeline_assets.prepare.estimate import estimate
    from pipeline_assets.replay.plan import plan_replay
    from pipeline_assets.versions import look_at_version

    with open_existing(settings) as context:
        version = look_at_version(context, key)
        plan = plan_replay(context, version, request)
        cost = estimate(context, version, plan)
        slices = _slices(plan)
    if json:
        output.emit_json(_plan_as_json(plan, request.from_key, key, slices) | cost.as_json())
        return OK
    _print_plan(plan, request.from_key, key, slices)
    if not plan.members.is_empty():
        _print_estimate(cost)
    output.say("Nothing is changed: this is what would happen.")
    return OK


def _replay(
    settings: Settings, request: ReplayRequest, key: str, run_id: str, *, json: bool
) -> int:
    from pipeline_assets.automation.jobs import replay_version
    from pipeline_assets.cli import output
    from pipeline_assets.cli.dagster_run import run_job
    from pipeline_assets.cli.progress import shown_progress
    from pipeline_assets.cli.run_lock import run_lock
    from pipeline_assets.replay.plan import plan_replay
    from pipeline_assets.versions import look_at_version
    from resources.ledger.replays import find_replay

    with open_existing(settings) as context:
        # What cannot succeed is told before a run is started.
        plan = plan_replay(context, look_at_version(context, key), request)
    if plan.members.is_empty():
        return _nothing(plan, request.from_key, key, json=json)
    config = {
        "replay_from": request.from_key,
        "where": request.where,
        "documents": None if request.documents is None else list(request.documents),
        "note": request.note,
        "replay_reason": request.reason,
        "actor": request.actor,
    }
    given = {name: value for name, value in config.items() if value is not None}
    with run_lock(settings.state_folder), shown_progress(quiet=json) as progress:
        outcome = run_job(
            settings,
            key,
            replay_version.name,
            {"manifest": {"config": given}},
            run_id=run_id,
            progress=progress,
        )
    with open_existing(settings) as context:
        done = find_replay(context.ledger, request.replay_id)
        states = {} if done is None else _states(context, request.replay_id, key)
    if not outcome.success:
        from pipeline_assets.cli.run import RunFailed

        raise RunFailed(told_failure(outcome.error_line, done))
    if done is None:
        return _nothing(plan, request.from_key, key, json=json)
    waits = any(state not in ("published", "rejected", "superseded") for state in states)
    if json:
        output.emit_json(
            _plan_as_json(plan, request.from_key, key, _slices(plan))
            | {"replay_id": done.replay_id, "manifest": done.manifest_id, "states": states}
        )
    else:
        _print_plan(plan, request.from_key, key, _slices(plan))
        _print_done(done, states, settings)
    return WAITS if waits else OK


def told_failure(error: str | None, done: Replay | None) -> str:
    """Why the run failed, and whether the replay must be asked for again."""
    told = f"{(error or 'the run failed').rstrip('. ')}."
    if done is None:
        return f"{told} Nothing of the replay was frozen."
    return (
        f"{told} The replay {done.replay_id} is frozen in {done.manifest_id} all the same: do not "
        f"ask for it again. What is open of it goes on with the next run of {done.to_version}."
    )


def _nothing(plan: ReplayPlan, from_key: str, key: str, *, json: bool) -> int:
    from pipeline_assets.cli import output

    if json:
        output.emit_json(
            _plan_as_json(plan, from_key, key, []) | {"replay_id": None, "manifest": None}
        )
    else:
        _print_plan(plan, from_key, key, [])
        if plan.members.is_empty():
            output.say("Nothing to replay: no selected record can be processed.")
        else:
            output.say(
                "Nothing was frozen: none of them could be sent, or they changed meanwhile. "
                f"`tallybook outcomes --version {key}` says why of each document."
            )
    return OK


def _slices(plan: ReplayPlan) -> list[tuple[str, int]]:
    from pipeline_assets.selection.select import slices

    return [(str(name), int(count)) for name, count in slices(plan.members).iter_rows()]


def _states(context: Context, replay_id: str, key: str) -> dict[str, int]:
    from pipeline_assets.account.reasons import account_by_reason

    for replay in account_by_reason(context, key).replays:
        if replay.replay_id == replay_id:
            return replay.states
    return {}


def _plan_as_json(
    plan: ReplayPlan, from_key: str, key: str, slices: list[tuple[str, int]]
) -> dict[str, Any]:
    return {
        "from": from_key,
        "to": key,
        "reason": plan.replay.reason,
        "note": plan.replay.note,
        "differs_in": list(plan.changes),
        "selected": plan.members.height,
        "left_out": plan.skipped,
        "slices": dict(slices),
        "corrected_by_reviewers": plan.corrected,
    }


def _print_plan(plan: ReplayPlan, from_key: str, key: str, slices: list[tuple[str, int]]) -> None:
    from pipeline_assets.cli import output

    count = plan.members.height
    gets, is_ = ("gets", "is") if count == 1 else ("get", "are")
    what = f"{gets} another attempt" if plan.same else f"{is_} processed under {key}"
    output.say(
        f"{counted(count, 'record')} of {from_key} {what}: {plan.replay.reason} "
        f"({plan.replay.note})."
    )
    if len(plan.changes) > 1:
        output.say(f"The two versions differ in more than one way: {', '.join(plan.changes)}.")
    if slices:
        output.table("Why they are in", ("slice", "records"), slices[:SLICES_SHOWN])
        if len(slices) > SLICES_SHOWN:
            output.say(f"... and {len(slices) - SLICES_SHOWN} more slices (--json has all)")
    if plan.skipped:
        output.table("Selected, and left out", ("why", "records"), list(plan.skipped.items()))
    if plan.corrected:
        output.say(
            f"{counted(plan.corrected, 'record')} of them show a reviewer's correction, which an "
            "accepted new answer replaces."
        )


def _print_estimate(cost: Estimate) -> None:
    from pipeline_assets.cli import output

    output.facts(
        [
            ("expected cost", _money(cost.amount, cost.basis)),
            *(
                [
                    ("input tokens", f"{cost.input_tokens:,} in all"),
                    ("output tokens", f"{cost.output_tokens:,} in all ({cost.output_basis})"),
                ]
                if cost.input_tokens is not None and cost.output_tokens is not None
                else []
            ),
            ("expected time", _time(cost)),
            *([("cannot be done", cost.blocked)] if cost.blocked else []),
            *(
                [("not parsed yet", f"{cost.not_parsed} documents, counted like the mean")]
                if cost.not_parsed
                else []
            ),
            *(
                [("cannot be sent", f"{cost.refused} of {cost.looked_at} that were looked at")]
                if cost.refused
                else []
            ),
        ]
    )


def _money(amount: Decimal | None, basis: str) -> str:
    if amount is None:
        return basis if "nothing" in basis else f"unknown ({basis or 'no price is known'})"
    return f"{amount:.4f} US dollars ({basis})"


def _time(cost: Estimate) -> str:
    if cost.hours is None:
        return cost.time_basis
    half, most = cost.hours
    return f"half of the batches within {half} h, nine of ten within {most} h ({cost.time_basis})"


def _print_done(done: Replay, states: dict[str, int], settings: Settings) -> None:
    from pipeline_assets.cli import output
    from pipeline_assets.cli.account import options_of

    output.say(f"Replay {done.replay_id} is frozen in {done.manifest_id}.")
    output.table("Where its records are", ("state", "records"), list(states.items()))
    options = options_of(settings, version=False)
    output.heading("Next steps")
    steps = [output.command("report", "--by", "reason", "--version", done.to_version, *options)]
    if done.from_version != done.to_version:
        steps.append(output.command("compare", done.from_version, done.to_version, *options))
    output.say(*(f"  {step}" for step in steps))
