"""`tallybook audit`: proof from stored evidence, of everything or of one record."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    counted,
    make_settings,
    open_existing,
)

if TYPE_CHECKING:
    from pipeline_assets.audit.run import AuditReport

CLEAN, FOUND, OPEN = 0, 1, 3
SHOWN = 20
"""Findings that are printed of each check; --json has all of them."""

audit_app = typer.Typer(
    help="Prove from stored evidence that the ledger, its files and the archive are right.",
    invoke_without_command=True,
)


@audit_app.callback()
def audit_command(
    ctx: typer.Context,
    version: Annotated[
        str | None,
        typer.Option(
            "--version",
            metavar="KEY",
            help="Only this processing version [default: all of them].",
            show_default=False,
        ),
    ] = None,
    sample: Annotated[
        float,
        typer.Option(
            "--sample",
            metavar="PERCENT",
            help="Share of sources, texts and thumbnails whose bytes are read; manifests, "
            "requests, results and judged values are always read.",
        ),
    ] = 100,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="HEX",
            help="The digest that an earlier audit printed last: what it saw must be there still.",
            show_default=False,
        ),
    ] = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int | None:
    """Audit everything; `prove` and `verify` are about one record.

    Exit status: 0 nothing is wrong and everything is decided, 1 something is wrong, 3 nothing is
    wrong and something is open or could not be checked.
    """
    if ctx.invoked_subcommand is not None:
        return None
    from pipeline_assets.audit.run import audit
    from pipeline_assets.cli import output

    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        report = audit(context, version, sample, since)
    if json:
        output.emit_json_lines(
            [
                *({"kind": "finding", **finding.as_json()} for finding in report.findings),
                {"kind": "audit", **report.as_json()},
            ]
        )
    else:
        _print(report)
    if not report.clean:
        return FOUND
    return OPEN if report.open or report.left_out else CLEAN


@audit_app.command("prove")
def prove_command(
    record: Annotated[
        str, typer.Argument(metavar="RECORD", help="A record's or document's id, or its end.")
    ],
    report: Annotated[
        int | None,
        typer.Option(
            "--report",
            metavar="N",
            help="The kept report [default: the newest closed one, else the newest].",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the proof there.", show_default=False),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file if it is there already.")
    ] = False,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Prove that the outcome of one record is in a kept report."""
    import msgspec

    from pipeline_assets.account.whole_file import whole_file
    from pipeline_assets.audit.proof import prove
    from pipeline_assets.cli import output

    settings = make_settings(state=state)
    with open_existing(settings) as context:
        page = prove(context, record, report)
    told = msgspec.to_builtins(page)
    if out is not None:
        with whole_file(out, force=force) as file:
            file.write_text(output.json_line(told), encoding="utf-8")
    if json:
        output.emit_json(told)
        return 0
    closed = page.closing
    output.facts(
        [
            ("subject", page.outcome.get("subject")),
            ("outcome", page.outcome.get("state")),
            ("report", f"{page.report['report_no']} of {page.report['processing_version']}"),
            ("report digest", page.report["digest"]),
            (
                "closed",
                "nobody vouches for this report yet"
                if closed is None
                else f"by {closed['closed_by']}, {output.local(closed['closed_at'])}",
            ),
            ("leaf", f"{page.index} of {page.count}, {counted(len(page.path), 'hash', 'hashes')}"),
            ("root", page.root),
        ]
    )
    if out is not None:
        output.say(
            f"The proof is in {out}. Anybody can check it, without this ledger:",
            f"  {output.command('audit', 'verify', str(out), '--root', page.root)}",
        )
    return 0


@audit_app.command("verify")
def verify_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A proof, as `prove` writes it.")],
    root: Annotated[
        str | None,
        typer.Option(
            "--root",
            metavar="HEX",
            help="The root that you trust, such as that of a closed report.",
            show_default=False,
        ),
    ] = None,
    json: JsonOption = False,
) -> int:
    """Check a proof; needs no ledger and no state folder."""
    from pipeline_assets.audit.proof import LARGEST_PAGE, verify_page
    from pipeline_assets.cli import output

    with file.open("rb") as stream:
        verdict = verify_page(stream.read(LARGEST_PAGE + 1), root)
    page = verdict.page
    if json:
        output.emit_json(
            {
                "holds": verdict.holds,
                "why": verdict.why,
                "root": page.root,
                "root_was_given": root is not None,
                "outcome": page.outcome,
                "report": page.report,
                "closing": page.closing,
            }
        )
        return CLEAN if verdict.holds else FOUND
    if not verdict.holds:
        output.say(f"NOT PROVEN: {verdict.why}.")
        return FOUND
    output.say(
        f"PROVEN: {verdict.why}.",
        f"{page.outcome.get('subject')} is {page.outcome.get('state')}, outcome {page.index} of "
        f"{page.count} under root {page.root}.",
    )
    if root is None:
        output.say(
            "This shows that the file fits together. Compare its root with one that you trust: "
            "give it with --root."
        )
    return CLEAN


def _print(report: AuditReport) -> None:
    from pipeline_assets.cli import output

    for check, findings in groupby(report.findings, key=lambda finding: finding.check):
        kept = list(findings)
        output.table(
            f"{check}: {counted(report.counts[check], 'finding')}",
            ("what", "found", "expected"),
            [(each.subject, each.found, each.expected) for each in kept[:SHOWN]],
        )
        if report.counts[check] > SHOWN:
            output.say(f"… and {report.counts[check] - SHOWN} more; --json has them.")
    output.table(
        "The three facts",
        ("fact", "holds", "looked at"),
        [
            (
                fact.name,
                "yes" if fact.holds else "NO" if fact.findings else "not yet",
                fact.checked,
            )
            for fact in report.facts
        ],
    )
    for sentence in report.open:
        output.say(f"Open: {sentence}.")
    for sentence in report.left_out:
        output.say(f"Left out: {sentence}.")
    total = sum(report.counts.values())
    output.say(
        f"Audit {report.audit_no}: {counted(sum(report.checked.values()), 'thing')} looked at in "
        f"{counted(report.chains, 'chain')} of the journal, rows and files: "
        f"{counted(total, 'finding') if total else 'nothing is wrong'} "
        f"({report.seconds:.1f} s).",
        f"Digest of what this audit saw: {report.journal_digest}",
    )
