"""The `tallybook` command: its commands, its exit statuses and its last resort.

Belongs here: putting the commands together, and turning whatever happens into an exit status and
at most one line. Does not belong here: any command.

Exit statuses: 0 done; 1 error; 2 wrong usage; 3 done as far as possible, and something waits
(`run`, `status`, `report`, `audit`); 130 interrupted; 141 the reader of the output went away.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

import typer
from typer.exceptions import TyperException
from typer.main import get_command

from pipeline_assets.cli import (
    about,
    alerts,
    audit,
    automation,
    backup,
    batch,
    blame,
    canary,
    compare,
    cost,
    dead_letter,
    doctor,
    erase,
    explain,
    export,
    metrics,
    migrate,
    operating,
    outcomes,
    outlets,
    pilot,
    promote,
    prune,
    quality,
    replay,
    report,
    restore,
    review,
    rollback,
    run,
    search,
    show,
    sources,
    status,
    trace,
    versions,
)

PROGRAM = "tallybook"
OK, ERROR, USAGE, INTERRUPTED = 0, 1, 2, 128 + signal.SIGINT

app = typer.Typer(
    name=PROGRAM,
    help="Turn an archive of documents into searchable metadata, and account for each of them.",
    epilog="Exit status: 0 done, 1 error, 2 wrong usage, 3 done and something waits.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for _module, _name in (
    (run, "run"),
    (status, "status"),
    (metrics, "metrics"),
    (outcomes, "outcomes"),
    (search, "search"),
    (show, "show"),
    (explain, "explain"),
    (trace, "trace"),
    (replay, "replay"),
    (promote, "promote"),
    (rollback, "rollback"),
    (export, "export"),
    (compare, "compare"),
    (cost, "cost"),
    (blame, "blame"),
    (versions, "versions"),
    (erase, "erase"),
    (prune, "prune"),
    (restore, "restore"),
    (migrate, "migrate"),
    (doctor, "doctor"),
    (about, "about"),
):
    app.command(_name)(getattr(_module, f"{_name}_command"))
app.command("replays")(replay.replays_command)
app.command("hold")(operating.hold_command)
app.command("release")(operating.release_command)
app.add_typer(alerts.alerts_app, name="alerts")
app.add_typer(audit.audit_app, name="audit")
app.add_typer(automation.automation_app, name="automation")
app.add_typer(backup.backup_app, name="backup")
app.add_typer(batch.batch_app, name="batch")
app.add_typer(canary.canary_app, name="canary")
app.add_typer(dead_letter.dead_letter_app, name="dead-letter")
app.add_typer(outlets.outlets_app, name="outlets")
app.add_typer(pilot.pilot_app, name="pilot")
app.add_typer(quality.quality_app, name="quality")
app.add_typer(report.report_app, name="report")
app.add_typer(review.review_app, name="review")
app.add_typer(sources.sources_app, name="sources")
app.add_typer(operating.settings_app, name="settings")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    status = _run(list(sys.argv[1:] if arguments is None else arguments))
    if status == INTERRUPTED:
        sys.stderr.write(
            f"{PROGRAM}: interrupted. What was committed is kept: run the same command again to "
            "go on from there.\n"
        )
    return status


def _run(arguments: list[str]) -> int:
    from pipeline_assets.cli.errors import print_error, tell
    from pipeline_assets.cli.output import PIPE_CLOSED, close_pipe, flush
    from resources.settings import UnsupportedPlatform, require_supported_platform

    try:
        require_supported_platform()
        answer = get_command(app).main(arguments, prog_name=PROGRAM, standalone_mode=False)
        flush()
    except TyperException as error:
        return _usage(error)
    except UnsupportedPlatform as error:
        print_error(str(error))
        return ERROR
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:
        return INTERRUPTED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        close_pipe()
        return PIPE_CLOSED
    except Exception as error:  # noqa: BLE001 - the last resort: a line, never a traceback
        tell(error)
        return ERROR
    return answer if isinstance(answer, int) else OK


def _usage(error: TyperException) -> int:
    from pipeline_assets.cli.errors import print_error

    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stdout.write(f"{error.format_message()}{os.linesep}")
        return USAGE
    context = getattr(error, "ctx", None)
    path = PROGRAM if context is None else context.command_path
    message = error.format_message().rstrip(".")
    print_error(f"{message}; `{path} --help` shows how it is used")
    return error.exit_code if error.exit_code != OK else ERROR


if __name__ == "__main__":
    sys.exit(main())
