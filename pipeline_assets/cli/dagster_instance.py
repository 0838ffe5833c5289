"""The Dagster instance of a state folder.

Belongs here: making its home, opening it safely and registering partitions. Does not belong here:
runs (`dagster_run.py`) and what dead ones left behind (`leftover_runs.py`).

`python -m pipeline_assets.cli.dagster_instance` makes the home ready and prints where it is; the
user interface starts from there.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import yaml
from sqlalchemy.exc import DBAPIError

from partitions.definition import register
from partitions.processing_version import list_specs
from resources.context import make_private
from resources.settings import Settings, SettingsError, load_settings

TEMPLATE = Path(__file__).with_name("instance.yaml")
CONFIG_NAME = "dagster.yaml"


class InstanceUnusable(Exception):
    """Dagster's own storage does not work; the ledger is not touched by that."""

    def __init__(self, home: Path, cause: str) -> None:
        super().__init__(
            f"Dagster's storage in {home} cannot be used ({cause}). The ledger is a database of "
            f"its own and lost nothing: free some space or correct {home / CONFIG_NAME}, and run "
            "the same command again."
        )


def instance_home(settings: Settings) -> Path:
    """Where the instance of a state folder lives; DAGSTER_HOME of its user interface."""
    return settings.state_folder / "dagster"


def prepare_home(settings: Settings) -> Path:
    """Make the instance's home with its configuration, where it is not there yet."""
    make_private(settings.state_folder)
    home = make_private(instance_home(settings))
    config = home / CONFIG_NAME
    if not config.exists():
        # Renamed into place: another process never reads half of it.
        fresh = home / f".{CONFIG_NAME}.{os.getpid()}"
        shutil.copyfile(TEMPLATE, fresh)
        fresh.rename(config)
    return home


def _make_whole(home: Path) -> None:
    """Make a home with all its tables beside its place and move it there.

    Dagster makes tables only for a file that is not there: whoever dies in between would leave
    an instance that cannot be used and is never finished.
    """
    for begun in home.parent.glob(f".{home.name}-*"):
        shutil.rmtree(begun)
    fresh = make_private(home.parent / f".{home.name}-{os.getpid()}")
    shutil.copyfile(TEMPLATE, fresh / CONFIG_NAME)
    dg.DagsterInstance.from_config(str(fresh)).dispose()
    fresh.rename(home)


@contextmanager
def open_instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    """The instance of the state folder, for the length of a block.

    Raises:
        InstanceUnusable: its storage cannot be opened.
    """
    home = instance_home(settings)
    make_private(settings.state_folder)
    with _off_the_terminal():
        # Four processes that made the tables of a fresh instance at once lost 6 of 12 starts.
        with told(home), _first_use(settings.state_folder):
            if not home.exists():
                _make_whole(home)
            prepare_home(settings)
            instance = dg.DagsterInstance.from_config(str(home))
        try:
            yield instance
        finally:
            instance.dispose()


def prepare(settings: Settings) -> Path:
    """Make everything ready for the user interface: home, tables, a partition for each version.

    Raises:
        InstanceUnusable: the storage cannot be opened or written.
        InvalidSpec: two folders hold a version of the same key.
        MalformedVersionKey: a spec file has a name that cannot be a key.
    """
    with open_instance(settings) as instance, told(instance_home(settings)):
        register(instance, list_specs(settings.spec_folders))
    return instance_home(settings)


@contextmanager
def told(home: Path) -> Iterator[None]:
    """Tell an error of Dagster's own storage in one line.

    Raises:
        InstanceUnusable: the block met one.
    """
    try:
        yield
    except (dg.DagsterInvalidConfigError, yaml.YAMLError) as error:
        raise InstanceUnusable(home, f"{CONFIG_NAME} is not valid") from error
    except Exception as error:
        cause = _database_error(error)
        if cause is None:
            raise
        raise InstanceUnusable(home, " ".join(str(cause.orig).split())) from error


def _database_error(error: BaseException | None) -> DBAPIError | None:
    """The database's error behind one of Dagster's; its storages raise either."""
    while error is not None and not isinstance(error, DBAPIError):
        error = error.__cause__
    return error


@contextmanager
def _off_the_terminal() -> Iterator[None]:
    """Keep what Dagster says through the root logger from standard error.

    A handler that does nothing is enough: without any, `logging` would add one that prints.
    """
    root, silent = logging.getLogger(), logging.NullHandler()
    root.addHandler(silent)
    try:
        yield
    finally:
        root.removeHandler(silent)


@contextmanager
def _first_use(state: Path) -> Iterator[None]:
    with (state / "dagster.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    try:
        print(prepare(load_settings()))
    except (InstanceUnusable, SettingsError, ValueError, OSError) as error:
        sys.exit(f"tallybook: {error}")
