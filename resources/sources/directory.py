"""A folder and everything below it as a source.

Here: walking one folder and opening a file in it, safely on any tree that a file system can hold.
Not here: checksums (`checksums`), what a file contains (the parser), which documents are new
(`changes`). File name extensions are not judged: the content decides, later.

Guarantees:
- Nothing outside the root is read: links are never followed, every folder of a path is opened by
  descriptor with O_NOFOLLOW, and folders on another file system are not entered.
- Nothing blocks: pipes, sockets and devices are recognised before they are opened, and a file that
  is exchanged for one in between is opened without blocking and refused.
- No limit on depth: at most four descriptors are open, whatever the tree looks like.
- The order is the same each time: a folder's files by raw bytes, then its sub-folders by raw bytes.
- Memory holds the names of one folder and of the sub-folders still to visit, not the archive.

Hidden files are documents like any other. Two hard links are two documents.
"""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from resources.sources.document_id import (
    FORBIDDEN_IN_IDS,
    DocumentIdTooLong,
    check_source_name,
    document_id,
    escape_path,
    exact_document_id,
    shortened_document_id,
)
from resources.sources.port import (
    EntryRefused,
    SourceEmpty,
    SourceEntry,
    SourceMissing,
    SourceUnreadable,
    Walk,
    WalkReport,
)
from resources.sources.spelling import may_be_spelt_otherwise

DEFAULT_MAX_FILE_BYTES = 256 * 1024 * 1024

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_EFFECTIVE_IDS = os.access in os.supports_effective_ids
# Our own exhaustion says nothing about a document: these end the walk.
_OUR_OWN_TROUBLE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
NO_LONGER_THERE = "no longer there"
_OTHER_FILE_SYSTEM = "another file system"
_NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_FOLDERS_KNOWN = 16

#: The raw names of a folder that are not ASCII, by what they fold to; of a few folders.
FoldedNames = dict[bytes, dict[str, list[bytes]]]

#: (reason, detail) of an exclusion; None for a document to read.
_Verdict = tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class _Listing:
    """The sorted names in one folder; `folder` is its relative path, b"" for the root.

    `is_plain`: all names are ASCII, so no two of them fold to one id.
    """

    folder: bytes
    files: list[bytes]
    folders: list[bytes]
    is_plain: bool


@dataclass(frozen=True, slots=True)
class _Group:
    """Folders whose paths fold to one id, nearly always a single one; visited together.

    `clashes` is True if an id made from the folder's path would not be unique.
    """

    folders: tuple[bytes, ...]
    clashes: bool


class _NotListed(Exception):
    """A folder's names cannot be had; the verdict says why. `absent`: there is no such folder."""

    def __init__(self, reason: str, detail: str, *, absent: bool = False) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.absent = absent


class DirectorySource:
    """A folder of documents.

    Args:
        name: the source's name in document ids.
        root: the folder; may itself be a link.
        max_file_bytes: larger files are excluded as `too_large` without being read.
        allow_empty: accept a root without a single name. By default that is an error, since it is
            how a disk that is not mounted looks.

    Raises:
        DocumentIdError: the name cannot name a source.
    """

    kind = "directory"

    def __init__(
        self,
        name: str,
        root: Path | str | bytes,
        *,
        max_file_bytes: int = DEFAULT_MAX_FILE_BYTES,
        allow_empty: bool = False,
    ) -> None:
        self.name = check_source_name(name)
        self.max_file_bytes = max_file_bytes
        self._root = os.fsencode(root)
        self._allow_empty = allow_empty

    @property
    def location(self) -> str:
        """The root folder as given; bytes that are no text are shown as escapes."""
        return self._root.decode("utf-8", "backslashreplace")

    def walk(self) -> Walk:
        """Start a pass over everything below the root.

        Raises, with the first entry:
            SourceMissing: the root does not exist or is no folder.
            SourceUnreadable: the root cannot be listed, or this process ran out of descriptors or
                memory. A folder below the root that cannot be listed is an `unreadable` entry, and
                is in the report's `unlisted`.
            SourceEmpty: the root holds no name at all.
        """
        return Walk(self._entries())

    def open(self, entry: SourceEntry) -> BinaryIO:
        """Open a file for reading; every folder on the way is opened without following links.

        Raises:
            EntryRefused: it is excluded, gone, not readable, or no longer a regular file of
                acceptable size.
            SourceMissing, SourceUnreadable: the root is not usable.
        """
        if entry.excluded is not None:
            raise EntryRefused(entry.document_id, entry.excluded, entry.detail)
        if not _is_inside(entry.relative_path):
            raise EntryRefused(entry.document_id, "outside_root", "the path is not below the root")
        folder, _, name = entry.relative_path.rpartition(b"/")
        try:
            with self._opened_root() as root, self._opened_folder(root, folder) as descriptor:
                file = os.open(name, _FILE_FLAGS, dir_fd=descriptor)
        except _NotListed as refusal:
            raise EntryRefused(entry.document_id, refusal.reason, refusal.detail) from refusal
        except OSError as error:
            if error.errno in _OUR_OWN_TROUBLE:
                raise self._root_unreadable(error) from error
            raise EntryRefused(entry.document_id, *_why_not_opened(error)) from error
        try:
            verdict = judge_file(os.fstat(file), self.max_file_bytes)
            if verdict is not None:
                raise EntryRefused(entry.document_id, *verdict)
            return os.fdopen(file, "rb")
        except BaseException:
            os.close(file)
            raise

    def spelt_as(
        self, document_id: str, path: bytes, known: FoldedNames | None = None
    ) -> list[bytes]:
        """The raw paths that are there and fold to a path, each folder listed where it has to be.

        Args:
            document_id: for the refusal.
            path: a path in NFC.
            known: folders that were listed before, which are not listed again; others are added.

        Raises:
            EntryRefused: a folder on the way cannot be listed, so that it is not known.
            SourceMissing, SourceUnreadable: the root is not usable.
        """
        if not _is_inside(path):
            return []
        known = {} if known is None else known
        try:
            with self._opened_root() as root:
                found = [b""]
                for step in path.split(b"/"):
                    found = [
                        _join(folder, name)
                        for folder in found
                        for name in self._names_like(root, folder, step, known)
                    ]
                return found
        except _NotListed as refusal:
            raise EntryRefused(document_id, refusal.reason, refusal.detail) from refusal

    def _names_like(self, root: int, folder: bytes, name: bytes, known: FoldedNames) -> list[bytes]:
        if not may_be_spelt_otherwise(name):
            return [name]
        if folder not in known:
            if len(known) >= _FOLDERS_KNOWN:
                known.clear()
            known[folder] = self._folded_names(root, folder)
        others = known[folder].get(escape_path(name), [])
        return [name, *others] if name.isascii() else others

    def _folded_names(self, root: int, folder: bytes) -> dict[str, list[bytes]]:
        found: dict[str, list[bytes]] = {}
        try:
            with self._opened_folder(root, folder) as descriptor, os.scandir(descriptor) as names:
                for item in names:
                    raw = os.fsencode(item.name)
                    if not raw.isascii():
                        found.setdefault(escape_path(raw), []).append(raw)
        except _NotListed as refusal:
            if not refusal.absent:
                raise
        except OSError as error:
            raise self._not_listed(folder, error) from error
        return found

    def _entries(self) -> Generator[SourceEntry, None, WalkReport]:
        count = 0
        unlisted: list[bytes] = []
        with self._opened_root() as root:
            real_root = os.path.realpath(self._root)
            pending = [_Group((b"",), clashes=False)]
            while pending:
                group = pending.pop()
                listings: list[_Listing] = []
                for folder in group.folders:
                    try:
                        listings.append(self._list(root, folder))
                    except _NotListed as failure:
                        unlisted.append(folder)
                        count += 1
                        yield self._folder_entry(folder, group.clashes, failure)
                collided = _collided(listings)
                for listing in listings:
                    try:
                        for entry in self._files(root, real_root, listing, collided):
                            count += 1
                            yield entry
                    except _NotListed as failure:
                        unlisted.append(listing.folder)
                        count += 1
                        yield self._folder_entry(listing.folder, group.clashes, failure)
                pending.extend(reversed(_child_groups(listings)))
        return WalkReport(entries=count, unlisted=tuple(unlisted))

    @contextmanager
    def _opened_root(self) -> Iterator[int]:
        try:
            descriptor = os.open(self._root, _FOLDER_FLAGS)
        except (FileNotFoundError, NotADirectoryError) as error:
            found = "is not a folder" if isinstance(error, NotADirectoryError) else "does not exist"
            raise SourceMissing(
                f"source {self.name}: {self.location!a} {found}; expected the folder that "
                "holds the documents: mount or create it, or correct the source's path in the "
                "settings"
            ) from error
        except OSError as error:
            raise self._root_unreadable(error) from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _list(self, root: int, folder: bytes) -> _Listing:
        """The names in a folder, all or none: a listing that breaks off is no listing."""
        try:
            files: list[bytes] = []
            folders: list[bytes] = []
            with self._opened_folder(root, folder) as descriptor, os.scandir(descriptor) as names:
                for item in names:
                    into = folders if item.is_dir(follow_symlinks=False) else files
                    into.append(os.fsencode(item.name))
        except OSError as error:
            raise self._not_listed(folder, error) from error
        if not folder and not files and not folders and not self._allow_empty:
            raise SourceEmpty(
                f"source {self.name}: {self.location!a} is empty; expected documents. Check "
                "that its disk is mounted; if it is meant to be empty, allow an empty source in "
                "the settings"
            )
        is_plain = all(name.isascii() for name in files) and all(n.isascii() for n in folders)
        return _Listing(folder, sorted(files), sorted(folders), is_plain)

    @contextmanager
    def _opened_folder(self, root: int, folder: bytes) -> Iterator[int]:
        """A descriptor of a folder below the root, each step taken without following links.

        Raises, before its body runs:
            _NotListed: the folder is on another file system, or it cannot be opened.
            SourceUnreadable: this process ran out of descriptors or memory.
        """
        descriptor = os.dup(root)
        try:
            try:
                for step in folder.split(b"/") if folder else ():
                    below = os.open(step, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=descriptor)
                    os.close(descriptor)
                    descriptor = below
            except OSError as error:
                raise self._not_listed(folder, error) from error
            # Folders only: overlay file systems may report a device of their own for each file.
            if folder and os.fstat(descriptor).st_dev != os.fstat(root).st_dev:
                raise _NotListed("outside_root", _OTHER_FILE_SYSTEM)
            yield descriptor
        finally:
            os.close(descriptor)

    def _not_listed(self, folder: bytes, error: OSError) -> _NotListed | SourceUnreadable:
        if not folder or error.errno in _OUR_OWN_TROUBLE:
            return self._root_unreadable(error)
        detail = f"folder could not be listed ({_errno_name(error)})"
        return _NotListed("unreadable", detail, absent=error.errno in _NOT_THERE)

    def _files(
        self, root: int, real_root: bytes, listing: _Listing, collided: frozenset[str]
    ) -> Iterator[SourceEntry]:
        if not listing.files:
            return
        with self._opened_folder(root, listing.folder) as descriptor:
            for name in listing.files:
                path = _join(listing.folder, name)
                collides = bool(collided) and escape_path(name) in collided
                try:
                    status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                except FileNotFoundError:
                    # Removed since the folder was listed: it is really not there.
                    continue
                except OSError as error:
                    detail = f"could not be examined ({_errno_name(error)})"
                    yield self._entry(path, None, ("unreadable", detail), collides)
                    continue
                if stat.S_ISLNK(status.st_mode):
                    verdict = _judge_link(descriptor, name, real_root, path)
                else:
                    verdict = judge_file(status, self.max_file_bytes)
                    if verdict is None and not _may_read(descriptor, name):
                        verdict = ("unreadable", "permission denied")
                yield self._entry(path, status, verdict, collides)

    def _folder_entry(self, folder: bytes, clashes: bool, why: _NotListed) -> SourceEntry:
        identity = _identity(self.name, folder, exact=clashes)
        return SourceEntry(
            identity or shortened_document_id(self.name, folder),
            folder,
            display_name(folder),
            size=0,
            mtime_ns=0,
            inode=(0, 0),
            excluded=why.reason,
            detail=why.detail,
        )

    def _entry(
        self, path: bytes, status: os.stat_result | None, verdict: _Verdict, collides: bool
    ) -> SourceEntry:
        if collides:
            verdict = ("id_collision", "another name differs only in Unicode composition")
        identity = _identity(self.name, path, exact=collides)
        if identity is None:
            verdict = ("name_too_long", f"the path has {len(path)} bytes")
        return SourceEntry(
            identity or shortened_document_id(self.name, path),
            path,
            display_name(path),
            size=0 if status is None else status.st_size,
            mtime_ns=0 if status is None else status.st_mtime_ns,
            inode=(0, 0) if status is None else (status.st_dev, status.st_ino),
            excluded=None if verdict is None else verdict[0],
            detail="" if verdict is None else verdict[1],
        )

    def _root_unreadable(self, error: OSError) -> SourceUnreadable:
        return SourceUnreadable(
            f"source {self.name}: {self.location!a} cannot be listed ({_errno_name(error)}); "
            "expected a readable folder: correct its permissions or its disk. Nothing is known "
            "about its documents until then"
        )


def judge_file(status: os.stat_result, max_file_bytes: int) -> _Verdict:
    """Why a file with this status is excluded, as (reason, detail), or None if it may be read."""
    if not stat.S_ISREG(status.st_mode):
        return ("not_a_document", _special_kind(status.st_mode))
    if status.st_size == 0:
        return ("empty", "")
    if status.st_size > max_file_bytes:
        return ("too_large", f"{status.st_size} bytes, limit {max_file_bytes}")
    return None


def display_name(path: bytes) -> str:
    """The last part of a path as one line of NFC text; what cannot be shown becomes U+FFFD."""
    name = path.rpartition(b"/")[2].decode("utf-8", "replace")
    composed = unicodedata.normalize("NFC", name)
    return "".join(
        "\ufffd" if FORBIDDEN_IN_IDS.match(character) and character not in "@:%" else character
        for character in composed
    )


def _collided(listings: list[_Listing]) -> frozenset[str]:
    """The folded names that more than one file has; all listings belong to one group."""
    if len(listings) == 1 and listings[0].is_plain:
        return frozenset()
    counts = Counter(escape_path(name) for listing in listings for name in listing.files)
    return frozenset(name for name, count in counts.items() if count > 1)


def _child_groups(listings: list[_Listing]) -> list[_Group]:
    """The sub-folders to visit, in order, those that fold alike together."""
    if len(listings) == 1 and listings[0].is_plain:
        only = listings[0]
        return [_Group((_join(only.folder, name),), clashes=False) for name in only.folders]
    file_names = {escape_path(name) for listing in listings for name in listing.files}
    alike: dict[str, list[bytes]] = {}
    for listing in listings:
        for name in listing.folders:
            alike.setdefault(escape_path(name), []).append(_join(listing.folder, name))
    return [
        _Group(tuple(folders), clashes=len(folders) > 1 or name in file_names)
        for name, folders in alike.items()
    ]


def _identity(source_name: str, path: bytes, *, exact: bool) -> str | None:
    """The id of a path, or None if it would be too long."""
    try:
        return (exact_document_id if exact else document_id)(source_name, path)
    except DocumentIdTooLong:
        return None


def _judge_link(folder: int, name: bytes, real_root: bytes, path: bytes) -> tuple[str, str]:
    """Where a link leads, told without opening its target."""
    target_exists = True
    try:
        os.stat(name, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return ("broken_link", "the link leads in a circle")
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            return ("symbolic_link", f"target could not be examined ({_errno_name(error)})")
        target_exists = False
    try:
        target = os.path.realpath(_join(real_root, path))
    except OSError as error:
        return ("symbolic_link", f"target could not be examined ({_errno_name(error)})")
    if target != real_root and not target.startswith(real_root.rstrip(b"/") + b"/"):
        found = "link out of the source"
        return ("outside_root", found if target_exists else f"{found}, to nothing")
    if not target_exists:
        return ("broken_link", "the target does not exist")
    return ("symbolic_link", "")


def _may_read(folder: int, name: bytes) -> bool:
    return os.access(name, os.R_OK, dir_fd=folder, effective_ids=_EFFECTIVE_IDS)


def _why_not_opened(error: OSError) -> tuple[str, str]:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return ("unreadable", NO_LONGER_THERE)
    if error.errno == errno.ELOOP:
        return ("symbolic_link", "replaced by a link")
    if error.errno in (errno.EACCES, errno.EPERM):
        return ("unreadable", "permission denied")
    if error.errno == errno.ENXIO:
        return ("not_a_document", "socket or device")
    return ("unreadable", f"could not be opened ({_errno_name(error)})")


def _special_kind(mode: int) -> str:
    kinds: Iterable[tuple[str, bool]] = (
        ("pipe", stat.S_ISFIFO(mode)),
        ("socket", stat.S_ISSOCK(mode)),
        ("device", stat.S_ISCHR(mode) or stat.S_ISBLK(mode)),
        ("folder", stat.S_ISDIR(mode)),
        ("link", stat.S_ISLNK(mode)),
    )
    return next((kind for kind, matches in kinds if matches), "special file")


def _errno_name(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, type(error).__name__)


def _is_inside(path: bytes) -> bool:
    return b"\0" not in path and all(step not in (b"", b".", b"..") for step in path.split(b"/"))


def _join(folder: bytes, name: bytes) -> bytes:
    return folder + b"/" + name if folder else name
