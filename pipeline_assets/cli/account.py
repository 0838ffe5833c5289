"""What `run`, `status` and `report` share: the table of outcomes, what waits, the exit status.

Belongs here: telling an account to a person. Does not belong here: making it
(`pipeline_assets/account`).
"""

from __future__ import annotations

from pipeline_assets.account.report import Report
from pipeline_assets.account.status import Status, Waiting
from pipeline_assets.account.violations import pending_sentence
from pipeline_assets.cli import output
from pipeline_assets.cli.options import counted
from pipeline_assets.quality.error_rates import SampleSummary
from resources.settings import Settings

DONE, BROKEN, WAITS = 0, 1, 3

_FOR = {
    "awaiting_review": ("record", "for a reviewer (stopped by a rule or an uncertain field)"),
    "dead_letter": ("record", "for its owner (failed for good)"),
    "awaiting_approval": ("document", "for approval (tallybook sources waiting)"),
    "canary failed": ("canary", "for an operator (nothing is sent until it is dropped)"),
    "batch quarantined": ("batch", "for an operator (the provider may have it or not)"),
    "batch incident": ("batch", "for an operator (results do not add up to the manifest)"),
    "pending": ("document", "for another run (scanned and not processed)"),
    "retry_wait": ("record", "for another run (an attempt failed that another may mend)"),
}


def exit_status(report: Report, status: Status) -> int:
    """0: all is done; 3: something waits; 1: the account does not add up."""
    broken = set(report.violations)
    if report.pending:
        # The source changed after the last run: nothing is wrong, only unfinished.
        broken.discard(pending_sentence(report.pending))
    if broken:
        return BROKEN
    return DONE if status.done else WAITS


def print_outcomes(report: Report) -> None:
    """The table of outcomes with its sum, and whether the account adds up."""
    rows: list[tuple[str, int]] = [
        *((state, count) for state, count in report.states.items()),
        *((f"excluded: {reason}", count) for reason, count in report.excluded.items()),
    ]
    if report.pending:
        rows.append(("pending", report.pending))
    output.table(
        f"Outcomes under {report.processing_version}",
        ("outcome", "documents"),
        [*rows, ("all", report.documents)],
    )
    excluded = sum(report.excluded.values())
    output.say(
        f"{counted(report.documents, 'document')} = {report.expected} expected + "
        f"{excluded} excluded"
        + (f" + {report.pending} not processed yet" if report.pending else "")
        + (": the account adds up." if report.invariant_holds else ".")
    )
    for violation in report.violations:
        output.say(f"Does not add up: {violation}")


def print_waiting(status: Status) -> None:
    """What waits, and for whom."""
    for item in status.waiting:
        output.say(f"Waits: {_sentence(item, status)}.")


def print_sample(sample: SampleSummary | None) -> None:
    """What was sampled, what of it waits, and the error rate so far; nothing without a sample."""
    if sample is None:
        return
    told = (
        f"Quality sample: {counted(sample.drawn, 'record')}, {sample.waiting} of them wait for a "
        "reviewer"
    )
    rate = rate_sentence(sample.rate, sample.low, sample.high)
    if rate is not None:
        told += f"; {sample.errors} of {sample.decided} wrong: error rate {rate}"
    output.say(f"{told}.")


def rate_sentence(rate: float | None, low: float | None, high: float | None) -> str | None:
    """An error rate with its interval; None before the first decision."""
    if rate is None or low is None or high is None:
        return None
    if low == high:
        return f"{rate:.1%} (every record was looked at)"
    return f"{rate:.1%} (95 % interval: {low:.1%} to {high:.1%})"


def next_steps(
    status: Status, settings: Settings, examples: dict[str, str], word: str = "WORD"
) -> list[str]:
    """Commands to type next.

    Args:
        status: where the version stands.
        settings: whose state folder and version the commands name where they are not the default.
        examples: state → id of a document in it.
        word: something that a search finds.
    """
    options = options_of(settings)
    steps = []
    for state in ("awaiting_review", "dead_letter", "excluded"):
        if state in examples:
            steps.append(output.command("explain", examples[state], *options))
    if status.states.get("awaiting_review"):
        steps.append(output.command("review", "next", *options))
    if any(not item.by_person for item in status.waiting):
        steps.append(output.command("run", *options))
    if status.states.get("published"):
        if "published" in examples:
            steps.append(output.command("show", examples["published"], *options))
        steps.append(output.command("search", word, *options_of(settings, version=False)))
        steps.append(output.command("export", "--output", "archive.jsonl", *options))
    return steps


def print_next_steps(steps: list[str]) -> None:
    """The commands under each other."""
    if steps:
        output.heading("Next steps")
        output.say(*(f"  {step}" for step in steps))


def options_of(settings: Settings, *, version: bool = True) -> list[str]:
    """What has to be given again so that a command means the same place and version."""
    from resources.settings import load_settings

    default = load_settings()
    options = []
    if settings.state_folder != default.state_folder:
        options += ["--state", str(settings.state)]
    if version and settings.version != default.version:
        options += ["--version", settings.version]
    return options


def _sentence(item: Waiting, status: Status) -> str:
    if item.what == "held":
        return _held_sentence(status)
    thing, whom = _FOR.get(item.what, ("record", f"for another run ({item.what})"))
    if item.what == "accepted" and item.by_person:
        whom = f"for `tallybook promote {status.processing_version}` (accepted, not published)"
    if item.what.startswith("batch "):
        thing = "batch"
    if item.what == "retry_wait" and status.retries_due_at is not None:
        whom += f", due from {output.local(status.retries_due_at)}"
    many = {"batch": "batches", "canary": "canaries"}.get(thing)
    return f"{counted(item.count, thing, many)} {whom}"


def _held_sentence(status: Status) -> str:
    held = status.held
    if held is None:
        return f"an operator has to release the version ({status.state_reason})"
    if not held.ends_by_itself:
        return f"an operator has to release the version, held for {held.kind} ({held.reason})"
    moment = "" if held.ends_at is None else f" at {output.local(held.ends_at)}"
    return f"the version, held for {held.kind}, goes on {held.ends}{moment} ({held.reason})"
