"""`tallybook metrics`: the figures of `status` and of the jobs, for machines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_assets.cli.options import StateOption, make_settings, open_existing

if TYPE_CHECKING:
    from pipeline_assets.account.openmetrics import Form
    from resources.settings import Settings

LOOPBACK, PORT = "127.0.0.1", 9464
TEXTFILE_SUFFIX = ".prom"
"""The textfile collector of node_exporter reads such files alone, and in the older form alone."""


def metrics_command(
    version: Annotated[
        str | None,
        typer.Option(
            "--version",
            metavar="KEY",
            help="Only this processing version [default: all that were ever used].",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write to a file, whole; one that ends in .prom in Prometheus's older form, "
            "for the textfile collector of node_exporter.",
        ),
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve them over HTTP until interrupted.")
    ] = False,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help=f"Where to serve them [default: {LOOPBACK}, for this machine alone].",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="N",
            min=0,
            max=65535,
            help=f"The port; 0 takes any that is free [default: {PORT}].",
            show_default=False,
        ),
    ] = None,
    state: StateOption = None,
) -> int:
    """Print the figures as OpenMetrics text, write them to a file, or serve them."""
    from pipeline_assets.cli import output

    _check_usage(out, serve, host, port)
    settings = make_settings(state=state, version=version)
    keys = None if version is None else (version,)
    if serve:
        return _serve(settings, keys, host or LOOPBACK, PORT if port is None else port)
    form: Form = "openmetrics"
    if out is not None and out.suffix == TEXTFILE_SUFFIX:
        form = "prometheus"
    text = _reader(settings, keys, form)()
    if out is None:
        output.say_text(text.decode())
    else:
        _write(out.expanduser(), text)
    return 0


def _check_usage(out: Path | None, serve: bool, host: str | None, port: int | None) -> None:
    if serve and out is not None:
        raise typer.BadParameter("--serve and --out exclude each other")
    if not serve and (host is not None or port is not None):
        raise typer.BadParameter("--host and --port go with --serve")


def _reader(
    settings: Settings, keys: tuple[str, ...] | None, form: Form = "openmetrics"
) -> Callable[[], bytes]:
    """Reads the text; the ledger is opened for each, since it may be moved or restored between."""
    from pipeline_assets.account.openmetrics import exposition
    from pipeline_assets.account.remembered_costs import RememberedCosts

    costs = RememberedCosts()

    def read() -> bytes:
        with open_existing(settings) as context:
            return exposition(context, keys, form, costs)

    return read


def _write(file: Path, text: bytes) -> None:
    """Whole or not at all, and readable for the collector's user, as far as the umask lets it."""
    import os

    from pipeline_assets.account.whole_file import whole_file

    with whole_file(file, force=True) as fresh:
        fresh.write_bytes(text)
        mask = os.umask(0o077)
        os.umask(mask)
        fresh.chmod(0o644 & ~mask)


def _serve(settings: Settings, keys: tuple[str, ...] | None, host: str, port: int) -> int:
    import signal

    from pipeline_assets.account.openmetrics import CONTENT_TYPE
    from pipeline_assets.cli import output
    from pipeline_assets.cli.errors import print_error, tell
    from pipeline_assets.cli.metrics_server import MetricsServer, Scrapes, who_can_read

    read = _reader(settings, keys)
    with MetricsServer(host, port, Scrapes(read, CONTENT_TYPE, tell)) as server:
        warning = who_can_read(server.address)
        if warning is not None:
            print_error(f"warning: {warning}")
        read()  # a wrong folder or key is told now, not to a scraper that nobody watches
        # A service manager ends it this way, and process 1 of a container has no default for it.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        output.say(f"Metrics are at {server.url} until this is interrupted.")
        output.flush()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            output.say("Stopped.")
    return 0
