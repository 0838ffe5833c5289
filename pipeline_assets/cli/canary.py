"""`tallybook canary`: what vouches for a provider, model, SDK, schema and prompt together.

With `--live --prove` the whole pipeline is proven at a provider instead.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    VersionOption,
    counted,
    make_settings,
    open_existing,
)

if TYPE_CHECKING:
    from pipeline_assets.canary.live import Plan
    from pipeline_assets.canary.prove import Proof
    from resources.settings import Settings

PROVEN, UNPROVEN, WAITS = 0, 1, 3

canary_app = typer.Typer(invoke_without_command=True)
CanaryArgument = Annotated[str, typer.Argument(metavar="CANARY", help="As `canary list` names it.")]


@canary_app.callback()
def canary_group(
    context: typer.Context,
    live: Annotated[
        bool, typer.Option("--live", help="Send made-up documents to the version's provider.")
    ] = False,
    prove: Annotated[
        bool, typer.Option("--prove", help="Prove what became of them from stored evidence.")
    ] = False,
    records: Annotated[
        int | None,
        typer.Option(
            "--records",
            min=1,
            max=1000,
            help="Documents at the least [default: the workload's, or the provider's minimum].",
            show_default=False,
        ),
    ] = None,
    wait: Annotated[
        int,
        typer.Option("--wait", min=0, max=2880, metavar="MINUTES", help="For the provider."),
    ] = 30,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    version: VersionOption = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Show the canaries that must pass before records are sent, or prove a provider with them.

    `canary --live --prove` takes made-up documents through every stage at the version's provider,
    in a folder of their own inside the state: frozen, sent, polled, collected, judged, published.
    Failures are forced on the way, every step is done again, and three facts are proven. Exit
    status 0 if they hold, 1 if not, 3 while the provider is at work: the same command goes on.
    """
    if context.invoked_subcommand is not None:
        # Taken silently, an option in front of the command would mean nothing.
        if live or prove or records or yes or version or state or json:
            raise typer.BadParameter(
                "--live and --prove go without another command, and the "
                "options of a command behind it"
            )
        return 0
    if not (live or prove):
        sys.stdout.write(f"{context.get_help()}\n")
        raise typer.Exit(2)
    if not (live and prove):
        raise typer.BadParameter("--live and --prove go together")
    return _prove(make_settings(state=state, version=version), records, wait, yes=yes, json=json)


def _prove(settings: Settings, records: int | None, minutes: int, *, yes: bool, json: bool) -> int:
    import time
    from datetime import timedelta

    from partitions.processing_version import find_spec
    from pipeline_assets.canary.proof_place import proof_place
    from pipeline_assets.canary.prove import open_proof, plan_proof, prove
    from pipeline_assets.cli import output
    from pipeline_assets.cli.progress import shown_progress
    from pipeline_assets.cli.run_lock import run_lock

    # Before a folder is begun for a version that nobody has.
    find_spec(settings.version, settings.spec_folders)
    place = proof_place(settings, settings.version)
    with (
        run_lock(place.folder),
        shown_progress(quiet=json) as progress,
        open_proof(settings, place, progress) as (context, version),
    ):
        wanted = plan_proof(context, version, place, records)
        if wanted is not None:
            if not _agreed(wanted, yes=yes, json=json):
                output.say("Nothing was sent.")
                return UNPROVEN
            place.write_documents(dict(wanted.documents))
        elif not json:
            output.say(f"Going on with {place.name}.")
        proof = prove(
            context,
            version,
            place,
            wait=timedelta(minutes=minutes),
            sleep=time.sleep,
            tell=lambda why: None if json else output.say(f"Waiting: {why}"),
        )
    if json:
        output.emit_json(proof.as_json())
    else:
        _print_proof(proof, settings)
    if proof.waits is not None:
        return WAITS
    return PROVEN if proof.holds else UNPROVEN


def _agreed(plan: Plan, *, yes: bool, json: bool) -> bool:
    """Say what it will cost, and ask where somebody outside this machine is paid."""
    from pipeline_assets.canary.proof_errors import ProofNotConfirmed
    from pipeline_assets.cli import output

    if not json:
        output.facts(
            [
                ("documents", len(plan.documents)),
                ("requests", plan.requests or None),
                ("to", plan.place or "the built-in rules"),
                ("tokens read", f"{plan.input_tokens} at the most" if plan.requests else None),
                ("tokens written", f"{plan.output_tokens} at the most" if plan.requests else None),
                ("cost", _cost(plan)),
            ]
        )
    if yes or not plan.needs_a_word:
        return True
    if json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ProofNotConfirmed(str(plan.place))
    return typer.confirm("Send them?")


def _cost(plan: Plan) -> str:
    if plan.at_most is None:
        return f"unknown ({plan.basis})"
    again = "; what must be tried again comes on top" if plan.requests else ""
    return f"at the most {plan.at_most:.4f} USD ({plan.basis}){again}"


def _print_proof(proof: Proof, settings: Settings) -> None:
    from pipeline_assets.cli import output

    states = ", ".join(f"{count} {state}" for state, count in (proof.states or {}).items())
    where = settings.state_folder / "proofs" / proof.name
    rows: list[tuple[str, object]] = [("proof", proof.name), ("in", where), ("records", states)]
    if proof.waits is not None or proof.audit is None or proof.replay is None:
        rows += [("waits for", proof.waits), ("next look", output.local(proof.due_at))]
        output.facts(rows)
        output.say("The same command goes on with it; nothing is sent twice.")
        return
    rows += [("canary before them", proof.canary), ("published", proof.published)]
    rows += [("forced, and mended", failure) for failure in proof.forced]
    rows += [("never came to", failure) for failure in proof.not_forced]
    unknown = "; ".join(f"{count} {why}" for why, count in (proof.usd_unknown or {}).items())
    rows.append(("cost", f"{proof.usd} USD" + (f", and unknown: {unknown}" if unknown else "")))
    output.facts(rows)
    for fact in proof.audit.facts:
        output.say(
            f"{'proven' if fact.holds and fact.checked else 'NOT PROVEN'}: {fact.name} "
            f"({counted(fact.checked, 'look')}, {counted(len(fact.findings), 'finding')})"
        )
    replayed = proof.replay
    rewritten = ", ".join(replayed.changed)
    output.facts(
        [
            ("every step again", f"changed {rewritten}" if rewritten else "changed no row"),
            ("rows looked at", sum(replayed.tables.values())),
            ("digest of them", replayed.digest),
            (
                "audit",
                f"{len(proof.audit.findings)} findings, {counted(proof.audit.chains, 'chain')}",
            ),
            ("journal", proof.audit.journal_digest),
        ]
    )
    for finding in proof.audit.findings:
        output.say(
            f"found: {finding.check}: {finding.subject}: {finding.found}; expected "
            f"{finding.expected}"
        )
    if not proof.published:
        output.say("NOT PROVEN: nothing was published, so there was nothing to deliver again.")
    output.say("All three facts hold." if proof.holds else "The proof failed.")


@canary_app.command("list")
def list_command(state: StateOption = None, json: JsonOption = False) -> int:
    """List canaries, newest first."""
    from pipeline_assets.account.canary_facts import canary_rows
    from pipeline_assets.cli import output

    with open_existing(make_settings(state=state)) as context:
        rows = canary_rows(context)
    if json:
        output.emit_json_lines(rows)
        return 0
    output.table(
        "Canaries",
        ("canary", "state", "provider", "mode", "model", "sdk", "judged", "vouches until"),
        (
            (
                row["canary_id"],
                row["state"],
                row["provider"],
                row["mode"],
                row["model"],
                row["sdk_version"],
                output.local(row["judged_at"]),
                output.local(row["expires_at"]),
            )
            for row in rows
        ),
    )
    return 0


@canary_app.command("show")
def show_command(name: CanaryArgument, state: StateOption = None, json: JsonOption = False) -> int:
    """Show one canary and everything that was wrong with its answers."""
    from pipeline_assets.account.canary_facts import canary_facts
    from pipeline_assets.cli import output

    with open_existing(make_settings(state=state)) as context:
        facts = canary_facts(context, name)
    if json:
        output.emit_json(facts)
        return 0
    findings: list[dict[str, Any]] = facts.pop("findings")
    output.facts([(label.replace("_", " "), value) for label, value in facts.items()])
    if findings:
        output.table(
            "Findings",
            ("document", "check", "note"),
            ((entry["document"], entry["check"], entry["note"]) for entry in findings),
        )
    return 0


@canary_app.command("drop")
def drop_command(
    name: CanaryArgument,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.")],
    state: StateOption = None,
) -> int:
    """Drop a verdict, so that the next run sends another canary."""
    from pipeline_assets.canary.drop import drop_canary
    from pipeline_assets.cli import output

    with open_existing(make_settings(state=state)) as context:
        drop_canary(context, name, reason)
    output.say(f"{name} does not count any more; the next run sends another one.")
    return 0
