"""Results of Gemini's jobs as streams of bytes.

Belongs here: downloads, and inline results given as a file. Does not belong here: what stands in
the lines (`wire.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import msgspec

from resources.providers.gemini.calls import Calls, problem_of
from resources.providers.gemini.errors import of_reading, of_transport
from resources.providers.gemini.jobs import NotAnOperation, Operation, inline_lines
from resources.providers.gemini.statuses import PROVIDER
from resources.providers.port import Download, FileMissing, Unavailable

_WHOLE, _PART, _BEYOND = 200, 206, 416


@contextmanager
def open_download(calls: Calls, name: str, offset: int) -> Iterator[Download]:
    """Stream a result file from a byte offset on, or from the start where ranges are ignored.

    Raises:
        FileMissing: it is not there (any more, or yet), or the provider refuses the name that it
            gave it.
        Unavailable: no usable answer came, or another part of the file than was asked for.
    """
    response = _request(calls, name, offset)
    try:
        yield _download(response, name, offset)
    finally:
        response.close()


def inline_download(operation: Operation, ref: str, offset: int) -> Download:
    """The inline results of an operation as the lines of a file; the same at every look.

    They are held in memory: inline jobs are limited to 20 MB of requests (G-G).

    Raises:
        FileMissing: the operation has none.
        Unavailable: they cannot be read.
    """
    if operation.inlined is None:
        raise FileMissing(PROVIDER, ref, "the job has no inline results now")
    try:
        rest = b"".join(inline_lines(operation))[offset:]
    except (NotAnOperation, msgspec.MsgspecError) as error:
        raise Unavailable(PROVIDER, "inline results of another form") from error
    return Download(iter((rest,) if rest else ()), offset, len(rest))


def _request(calls: Calls, name: str, offset: int) -> httpx2.Response:
    """The response, its body not read yet."""
    # Compressed bytes have other offsets and another length than the file.
    headers = {**calls.account.headers, "accept-encoding": "identity"}
    if offset > 0:
        headers["range"] = f"bytes={offset}-"
    request = calls.http.build_request(
        "GET", calls.account.url(name, "download"), params={"alt": "media"}, headers=headers
    )
    try:
        response = calls.http.send(request, stream=True, follow_redirects=True)
        if response.status_code in (_WHOLE, _PART, _BEYOND):
            return response
        response.read()
    except httpx2.HTTPError as error:
        raise of_transport(error) from error
    problem = problem_of(response)
    if problem.status == 400 and not problem.bad_key:
        raise FileMissing(PROVIDER, name, problem.note)
    raise of_reading(problem, FileMissing(PROVIDER, name, problem.note))


def _download(response: httpx2.Response, name: str, offset: int) -> Download:
    told = response.headers.get("content-range", "")
    if response.status_code == _BEYOND:
        if told != f"bytes */{offset}":
            raise Unavailable(PROVIDER, f"{name} does not reach to byte {offset}")
        return Download(iter(()), offset, 0)
    if response.status_code == _PART and not told.startswith(f"bytes {offset}-"):
        raise Unavailable(PROVIDER, f"{name} was answered with another range")
    length = response.headers.get("content-length", "")
    plain = "content-encoding" not in response.headers
    return Download(
        blocks=_blocks(response),
        offset=offset if response.status_code == _PART else 0,
        length=int(length) if plain and length.isdecimal() else None,
    )


def _blocks(response: httpx2.Response) -> Iterator[bytes]:
    try:
        yield from response.iter_bytes()
    except httpx2.HTTPError as error:
        raise Unavailable(PROVIDER, f"the download broke off: {type(error).__name__}") from error
