"""Finding a workload by name: among the packaged ones, and in a folder of one's own.

Belongs here: the lookup and the import. Does not belong here: what a workload has to be
(`declaration.py`), and any one workload. A workload is a folder with a module `workload` that has
a function `load() -> Workload`; adding one changes nothing here.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import re
import sys
import traceback
from functools import cache
from pathlib import Path
from types import ModuleType

from pipeline_assets.workloads.declaration import problem_of
from pipeline_assets.workloads.workload import Workload

_PACKAGE = "pipeline_assets.workloads"
_MODULE = "workload"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


class UnknownWorkload(LookupError):
    """A spec or a source names a workload that is not installed."""

    def __init__(self, name: str, folder: Path | None = None) -> None:
        own = (
            "no folder of your own is set (TALLYBOOK_WORKLOADS)"
            if folder is None
            else f"your own folder is {folder}"
        )
        super().__init__(
            f"there is no workload {name!r}: expected a package pipeline_assets.workloads.{name}, "
            f"or a folder {name} among your own, with a module `workload`; {own}. Correct the "
            "spec's field `workload`, or add the folder."
        )


class WorkloadNamedTwice(LookupError):
    """A folder of one's own has the name of a packaged workload."""

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(
            f"the workload {name!r} is packaged, and your own folder {folder} has one of that name "
            "too; which one is meant cannot be told. Rename your own folder and its workload."
        )


class InvalidWorkload(ValueError):
    """A workload is there and cannot be used."""

    def __init__(self, name: str, where: str, problem: str) -> None:
        super().__init__(
            f"the workload {name!r} cannot be used ({where}): {problem}. Nothing was done under "
            "it: correct the file; docs/workloads.md says what a workload needs."
        )


def load_workload(name: str, folder: Path | None = None) -> Workload:
    """The workload of that name.

    Args:
        name: as specs call it.
        folder: the folder of one's own workloads (`Settings.workload_folder`).

    Raises:
        UnknownWorkload: neither place has it.
        WorkloadNamedTwice: both have it.
        InvalidWorkload: its module cannot be imported, or what it gives is no workload.
    """
    return _load(name, None if folder is None else folder.absolute())


@cache
def _load(name: str, folder: Path | None) -> Workload:
    packaged = _NAME.fullmatch(name) is not None and _is_packaged(name)
    own = _own_file(name, folder)
    if own is None or folder is None:
        if not packaged:
            raise UnknownWorkload(name, folder)
        return _checked(name, _PACKAGE, f"{name}/{_MODULE}.py")
    if packaged:
        raise WorkloadNamedTwice(name, folder)
    return _checked(name, _own_package(folder), str(own))


def _is_packaged(name: str) -> bool:
    try:
        return importlib.util.find_spec(f"{_PACKAGE}.{name}.{_MODULE}") is not None
    except ModuleNotFoundError:  # there is no such folder, or it is a plain module
        return False


def _own_file(name: str, folder: Path | None) -> Path | None:
    if folder is None or _NAME.fullmatch(name) is None:
        return None
    file = folder / name / f"{_MODULE}.py"
    return file if file.is_file() else None


def _own_package(folder: Path) -> str:
    """A package that has a folder's workloads as its members, made once.

    Its name is of no other package's, and of no other folder's: two folders may each have a
    workload of one name.
    """
    name = f"own_workloads_{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"
    if name not in sys.modules:
        package = ModuleType(name, f"The workloads of {folder}.")
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    # A folder that was looked into before it was filled is remembered as it was.
    importlib.invalidate_caches()
    return name


def _checked(name: str, package: str, where: str) -> Workload:
    known = set(sys.modules)
    try:
        made = importlib.import_module(f"{package}.{name}.{_MODULE}").load()
    except (Exception, SystemExit) as error:
        _forget(f"{package}.{name}", known)
        raise InvalidWorkload(name, _place(error, package, name) or where, _told(error)) from error
    problem = problem_of(made, name)
    if problem is not None:
        _forget(f"{package}.{name}", known)
        raise InvalidWorkload(name, where, problem)
    return made


def _forget(package: str, known: set[str]) -> None:
    """Whoever corrects a file and asks again gets all of its folder anew."""
    for module in set(sys.modules) - known:
        if module == package or module.startswith(f"{package}."):
            del sys.modules[module]


def _told(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"it is not Python ({error.msg})"
    if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        return f"its module has no {error.name}; expected a function load()"
    what = str(error).partition("\n")[0]
    return f"loading it failed with {type(error).__name__}{f': {what}' if what else ''}"


def _place(error: BaseException, package: str, name: str) -> str | None:
    """The file and line of a workload's own that an error comes from."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    folder = _folder_of(package, name)
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(folder)
    ]
    return f"{own[-1].filename}, line {own[-1].lineno}" if own else None


def _folder_of(package: str, name: str) -> Path:
    return Path(next(iter(sys.modules[package].__path__))) / name
