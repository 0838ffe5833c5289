"""`tallybook quality`: samples of what the rules accepted, and the error rate found in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

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
    from pipeline_assets.quality.error_rates import ErrorRates
    from resources.settings import Settings

quality_app = typer.Typer(
    help="Draw a sample of accepted records for review, and show the error rate found in it.",
    no_args_is_help=True,
)
_LARGEST_SEED = 2**62


@quality_app.command("draw")
def draw_command(
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.")],
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            metavar="NUMBER",
            min=0,
            max=_LARGEST_SEED,
            help="What the order of the records is made of [default: that of the sample before].",
            show_default=False,
        ),
    ] = None,
    version: VersionOption = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Give reviewers the accepted records that the sample of a version still lacks."""
    from pipeline_assets.cli import output
    from pipeline_assets.known_version import known_version
    from pipeline_assets.quality.draw import draw_sample
    from pipeline_assets.versions import open_version

    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        known = known_version(context, settings.version)
        opened = open_version(context, known.key)
        report = draw_sample(context, opened, reason, settings.owner, seed=seed)
    if json:
        output.emit_json(
            {
                "sample_no": report.sample_no,
                "drawn": report.drawn,
                "population": report.population,
                "sampled": report.sampled,
                "by_slice": report.by_slice,
                "seed": report.seed,
            }
        )
        return 0
    of_all = f"{report.sampled} of {counted(report.population, 'accepted record')}"
    if not report.drawn:
        output.say(
            f"Nothing was drawn: the samples of {known.key} hold {of_all}, as many as are wanted "
            "(settings sample_percent and sample_least)."
        )
        return 0
    output.table("Drawn by slice", ("slice", "records"), list(report.by_slice.items()))
    output.say(
        f"{counted(report.drawn, 'record')} drawn for sample {report.sample_no}; the samples of "
        f"{known.key} hold {of_all} now.",
        f"Review them with: {_review(settings)}",
    )
    return 0


@quality_app.command("show")
def show_command(
    version: VersionOption = None, state: StateOption = None, json: JsonOption = False
) -> int:
    """Show the error rate of a version, with its interval, by slice and by field."""
    from pipeline_assets.cli import output
    from pipeline_assets.cli.account import options_of
    from pipeline_assets.known_version import known_version
    from pipeline_assets.quality.error_rates import corrected_fields, error_rates

    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        known = known_version(context, settings.version)
        with context.ledger.read() as connection:
            rates = error_rates(connection, context.ledger, known.version_no)
        fields = corrected_fields(context, known.version_no)
    if json:
        output.emit_json(
            {
                "processing_version": known.key,
                "sampled": rates is not None,
                **({} if rates is None else rates.as_json()),
                "corrected_fields": fields,
            }
        )
        return 0
    if rates is None:
        draw = output.command("quality", "draw", "--reason", "TEXT", *options_of(settings))
        output.say(f"No quality sample of {known.key} was drawn. Draw one: {draw}")
        return 0
    _print(known.key, rates, fields)
    if rates.waiting:
        output.say(f"Review what waits: {_review(settings)}")
    return 0


def _review(settings: Settings) -> str:
    from pipeline_assets.cli import output
    from pipeline_assets.cli.account import options_of

    return output.command("review", "next", "--kind", "quality_sample", *options_of(settings))


def _print(key: str, rates: ErrorRates, fields: dict[str, int]) -> None:
    from pipeline_assets.cli import output
    from pipeline_assets.cli.account import rate_sentence

    output.facts(
        [
            ("processing version", key),
            ("last drawn", output.local(rates.drawn_at)),
            ("accepted by rules", f"{counted(rates.population, 'record')} then"),
            ("in samples", f"{rates.drawn}, {rates.waiting} of them wait for a reviewer"),
            (
                "decided",
                f"{rates.decided}: {rates.right} right, {rates.corrected} corrected, "
                f"{rates.rejected} rejected",
            ),
            (
                "error rate",
                rate_sentence(rates.rate, rates.low, rates.high) or "nothing is decided yet",
            ),
            ("speaks of", _share(rates)),
        ]
    )
    output.table(
        "By slice",
        ("slice", "accepted", "sampled", "waiting", "right", "wrong", "error rate"),
        (
            (
                entry.slice,
                entry.population,
                entry.drawn,
                entry.waiting,
                entry.right,
                entry.errors,
                rate_sentence(entry.rate, entry.low, entry.high),
            )
            for entry in rates.by_slice
        ),
    )
    if fields:
        output.table("Fields that corrections changed", ("field", "answers"), list(fields.items()))


def _share(rates: ErrorRates) -> str | None:
    """What the overall rate leaves out and its interval allows for, where there is something."""
    if not rates.decided or rates.looked_at == rates.population:
        return None
    return (
        f"{rates.looked_at} of {counted(rates.population, 'record')}; in the other slices nothing "
        "is decided, and the interval is wider for it"
    )
