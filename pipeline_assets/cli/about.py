"""`tallybook about`: which release this is and where its state lives."""

from __future__ import annotations

from pipeline_assets.cli.options import (
    JsonOption,
    NothingHere,
    StateOption,
    make_settings,
    open_existing,
)


def about_command(state: StateOption = None, json: JsonOption = False) -> int:
    """Show the release, and the places that the other commands use."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from pipeline_assets.cli import output

    settings = make_settings(state=state)
    try:
        with open_existing(settings) as context:
            ledger = context.ledger.place
    except NothingHere:
        ledger = "not made yet"
    try:
        release = version("tallybook")
    except PackageNotFoundError:
        release = "used from its folder, not installed"
    facts = {
        "release": release,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "profile": settings.profile,
        "state": str(settings.state_folder),
        "ledger": ledger,
        "source": str(settings.source_folder),
        "processing_version": settings.version,
    }
    if json:
        output.emit_json(facts)
    else:
        output.facts(facts.items())
    return 0
