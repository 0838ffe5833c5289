"""Options that several commands share, and the settings that follow from them.

Belongs here: their names and help, and turning paths of the command line into settings. Does not
belong here: what a command does. Only light modules are imported here, so that `--help` is quick.
"""

from __future__ import annotations

import re
import unicodedata
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from resources.context import Context
    from resources.settings import Settings

StateOption = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="DIR",
        help="Folder of ledger, artifacts and Dagster's history [default: data/state].",
        show_default=False,
    ),
]
VersionOption = Annotated[
    str | None,
    typer.Option(
        "--version",
        metavar="KEY",
        help="Processing version [default: manuals-baseline-2].",
        show_default=False,
    ),
]
WorkloadOption = Annotated[
    str | None,
    typer.Option(
        "--workload",
        metavar="NAME",
        help="Only entries of this workload, such as equipment_manuals.",
        show_default=False,
    ),
]
ByOption = Annotated[
    str | None,
    typer.Option(
        "--by", metavar="NAME", help="Who wants it [default: your login].", show_default=False
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

state_in_use: ContextVar[Path | None] = ContextVar("state_in_use", default=None)
"""The state folder that the command works on, for the log of an unexpected error."""

_SOURCE_NAME_LENGTH = 31
_NAMELESS_SOURCE = "source"


class NothingHere(LookupError):
    """A command that reads was pointed at a folder without a ledger."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"there is no ledger in {folder}. Process something first (tallybook run), or give the "
            "folder of an earlier run with --state."
        )


def make_settings(
    *,
    state: Path | None = None,
    version: str | None = None,
    source: Path | None = None,
    source_name: str | None = None,
) -> Settings:
    """The settings of a command; paths that were given count from the present folder.

    Raises:
        SettingsError: a setting cannot be used.
    """
    from resources.settings import load_settings

    settings = load_settings(
        state=_absolute(state),
        version=version,
        source=_absolute(source),
        source_name=source_name,
    )
    if source is not None and source_name is None:
        default = load_settings()
        if settings.source_folder.resolve() != default.source_folder.resolve():
            name = name_of_source(settings.source_folder.resolve())
            settings = settings.model_copy(update={"source_name": name})
    if state is not None and has_own_ledger(settings.state_folder):
        settings = settings.model_copy(update={"ledger_url": None})
    state_in_use.set(settings.state_folder)
    return settings


def has_own_ledger(folder: Path) -> bool:
    """Is it the state folder of a pilot or a proof, which lie in another one's?

    Their ledger is a file of their own, whatever database the archive's is in: a command that is
    pointed at one must never act on the archive.
    """
    return folder.parent.name in ("pilots", "proofs") and (folder / "ledger.sqlite").is_file()


def name_of_source(folder: Path) -> str:
    """A source name made of a folder's own name: `Old Manuals (2019)` → `old-manuals-2019`."""
    plain = unicodedata.normalize("NFKD", folder.name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9_]+", "-", plain).strip("-_")[:_SOURCE_NAME_LENGTH].rstrip("-_")
    return slug or _NAMELESS_SOURCE


def open_existing(settings: Settings) -> AbstractContextManager[Context]:
    """The context of a state folder that something was processed in.

    Raises:
        NothingHere: it holds no ledger.
        LedgerError: the ledger cannot be opened.
    """
    from resources.context import open_context

    ledger = settings.state_folder / "ledger.sqlite"
    if settings.ledger_url is None and not ledger.is_file():
        raise NothingHere(settings.state_folder)
    return open_context(settings)


def _absolute(path: Path | None) -> Path | None:
    return None if path is None else path.expanduser().absolute()


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 record`, `2 records`."""
    return f"{count} {one if count == 1 else many or one + 's'}"
