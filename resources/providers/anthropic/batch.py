"""Message batches over the SDK: create, find, retrieve, cancel, download, delete.

Belongs here: the calls. Does not belong here: what an answer means (`jobs.py`), what an error
means (`errors.py`) and the lines of files (`wire.py`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import anthropic
import httpx2
import msgspec

from resources.providers.anthropic import jobs
from resources.providers.anthropic.errors import NAME, TRANSPORT, creating, problem_of, reading
from resources.providers.anthropic.sdk import account_text, sync_client
from resources.providers.port import (
    Ambiguous,
    Download,
    FileMissing,
    Found,
    Intent,
    Job,
    JobMissing,
    ModelUnavailable,
    NewJob,
    ProviderOptions,
    Refused,
    RemoteFile,
    Unavailable,
)

_PATH = "/v1/messages/batches"
_OPEN, _CLOSE = b'{"requests":[', b"]}"
_BLOCK = 1 << 20
_PAGE = 100
_RANGE_UNSATISFIABLE = 416


def connect_batch(options: ProviderOptions) -> AnthropicBatch:
    """A client with the credentials and the base URL of the environment.

    Raises:
        CredentialsMissing: neither a key nor a token is set.
    """
    return AnthropicBatch(sync_client(options))


class AnthropicBatch:
    """Jobs of one Anthropic workspace."""

    name = NAME

    def __init__(self, client: anthropic.Anthropic) -> None:
        self._client = client
        self._batches = client.messages.batches
        self.base_url = str(client.base_url)

    def account(self) -> str:
        """Base URL, digest of the key, workspace."""
        return account_text(self._client)

    def check_model(self, model: str) -> None:
        """Ask whether the model can be used.

        Raises:
            ModelUnavailable: the provider does not know it, or has retired it.
        """
        check_model(self._client, model)

    def create(self, job: NewJob) -> Job:
        """Create the job; the request file is streamed into the call's one JSON body.

        There is no upload, hence no reference: `on_uploaded` is not called.

        Raises:
            Refused: the provider said no: there is no job.
            Unreachable: no connection came about: there is no job.
            Ambiguous: there may be a job.
        """
        with job.request_file.open("rb") as file, creating():
            response = self._client.post(
                _PATH,
                cast_to=httpx2.Response,
                content=joined(file),
                options={
                    # Without a length the body would be sent in chunks of unknown number. And a
                    # redirected body cannot be sent twice: a redirect is an answer of its own.
                    "headers": {"Content-Length": str(joined_length(job.request_file))},
                    "follow_redirects": False,
                },
            )
        try:
            return jobs.to_job(jobs.read_batch(response.content))
        except jobs.NotAJob as error:
            raise Ambiguous(NAME, str(error)) from error

    def find(self, intent: Intent) -> Found:
        """Look for the job of an intent: jobs carry no name, but their result lines do.

        A job that has not ended can only be told by time and row total, so it is `maybe`.
        """
        certain: list[Job] = []
        maybe: list[Job] = []
        pages = _Pages(self._client)
        for batch in pages:
            if jobs.is_older(batch, intent):
                break
            if not jobs.may_be(batch, intent):
                continue
            job = jobs.to_job(batch)
            belongs = self._belongs(job, intent.batch_key) if job.phase == "ended" else None
            if belongs is None:
                maybe.append(job)
            elif belongs:
                certain.append(job)
        # The list is newest first.
        return Found(tuple(certain[::-1]), tuple(maybe[::-1]), pages.complete)

    def retrieve(self, job_id: str) -> Job:
        """The job as it is now.

        Raises:
            JobMissing: the provider does not have it, or not now.
        """
        with reading(JobMissing(NAME, job_id)):
            response = self._batches.with_raw_response.retrieve(job_id)
            body = response.read()
        try:
            return jobs.to_job(jobs.read_batch(body))
        except jobs.NotAJob as error:
            raise Unavailable(NAME, str(error)) from error

    def cancel(self, job_id: str) -> None:
        """Ask for the job's end; one that has ended already is no error.

        Raises:
            JobMissing: the provider does not have it.
        """
        try:
            with reading(JobMissing(NAME, job_id)):
                self._batches.with_raw_response.cancel(job_id)
        except Refused as refused:
            if refused.failure != "invalid_request" or self.retrieve(job_id).phase != "ended":
                raise

    @contextmanager
    def open_file(self, job_id: str, file: RemoteFile, offset: int) -> Iterator[Download]:
        """Stream the results from a byte offset on, or from the start where that is not offered.

        Raises:
            FileMissing: the results are not there yet, or archived, 29 days after the creation.
        """
        with ExitStack() as stack:
            try:
                response = stack.enter_context(self._opened(file.ref, offset))
            except _NoSuchRange:
                response = stack.enter_context(self._opened(file.ref, 0))
            yield Download(_blocks(response), _start(response, offset), _length(response))

    def delete(self, job_id: str, refs: tuple[str, ...]) -> None:
        """Delete jobs with their results; those that are gone already are no error.

        Raises:
            Refused: the job has not ended.
        """
        for ref in refs:
            gone = JobMissing(NAME, ref)
            try:
                with reading(gone):
                    self._batches.with_raw_response.delete(ref)
            except JobMissing:
                continue

    def close(self) -> None:
        """Give connections back."""
        self._client.close()

    @contextmanager
    def _opened(self, job_id: str, offset: int) -> Iterator[anthropic.APIResponse[Any]]:
        # Without compression, so that lengths and offsets are those of the file.
        headers = {"Accept-Encoding": "identity"}
        if offset:
            headers["Range"] = f"bytes={offset}-"
        missing = FileMissing(NAME, job_id, "not ready yet, archived, or deleted")
        with ExitStack() as stack:
            try:
                with reading(missing):
                    response = stack.enter_context(
                        self._batches.with_streaming_response.results(job_id, extra_headers=headers)
                    )
            except Refused as refused:
                if offset and _status_of(refused) == _RANGE_UNSATISFIABLE:
                    raise _NoSuchRange from refused
                raise
            except anthropic.AnthropicError as error:  # the job has no `results_url`
                raise missing from error
            yield response

    def _belongs(self, job: Job, batch_key: str) -> bool | None:
        """Are an ended job's results the batch's? None where they cannot be had any more."""
        try:
            with self.open_file(job.job_id, job.files[0], 0) as download:
                return jobs.names_batch(_lines(download.blocks), batch_key)
        except FileMissing:
            return None


def check_model(client: anthropic.Anthropic, model: str) -> None:
    """Ask whether a model can be used; shared with the online client.

    Raises:
        ModelUnavailable: the provider does not know it, or has retired it.
    """
    unavailable = ModelUnavailable(NAME, model)
    with reading(unavailable):
        body = client.models.with_raw_response.retrieve(model).read()
    try:
        lifecycle = msgspec.json.decode(body, type=_Model).lifecycle
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Unavailable(NAME, "an answer that is no model") from error
    if lifecycle == "retired":
        raise unavailable


def joined(file: BinaryIO) -> Iterator[bytes]:
    """The create call's body around the lines of a request file, block by block.

    Line ends become commas; a line of the wire has none inside.
    """
    yield _OPEN
    held = b""  # the file's last line feed is no comma
    while block := file.read(_BLOCK):
        yield held + block.removesuffix(b"\n").replace(b"\n", b",")
        held = b"," if block.endswith(b"\n") else b""
    yield _CLOSE


def joined_length(path: Path) -> int:
    """Bytes of `joined` for a file."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        last = file.read(1)
    return len(_OPEN) + size - (last == b"\n") + len(_CLOSE)


class _Model(msgspec.Struct, frozen=True):
    lifecycle: str | None = None


class _NoSuchRange(Exception):
    """Nothing lies at the offset that was asked for."""


class _Pages:
    """All jobs of the account, newest first; `complete` once they were seen to the end.

    It stays complete when the reader stops by itself.
    """

    def __init__(self, client: anthropic.Anthropic) -> None:
        self._batches = client.messages.batches
        self.complete = True

    def __iter__(self) -> Iterator[jobs.MessageBatch]:
        after: str | None = None
        while True:
            page = self._page(after)
            yield from page.data
            if not page.has_more:
                return
            if not page.last_id or page.last_id == after or not page.data:
                self.complete = False  # there is more, and no way to it
                return
            after = page.last_id

    def _page(self, after: str | None) -> jobs.BatchPage:
        with reading(Unavailable(NAME, "HTTP 404")):
            batches = self._batches.with_raw_response
            body = batches.list(
                limit=_PAGE, after_id=anthropic.omit if after is None else after
            ).read()
        try:
            return jobs.read_page(body)
        except jobs.NotAJob as error:
            raise Unavailable(NAME, str(error)) from error


def _blocks(response: anthropic.APIResponse[Any]) -> Iterator[bytes]:
    try:
        yield from response.iter_bytes()
    except TRANSPORT as error:
        raise Unavailable(NAME, f"the download broke off: {problem_of(error)}") from error


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines as their bytes come, so that the first ones need not wait for the rest."""
    rest = b""
    for block in blocks:
        *whole, rest = (rest + block).split(b"\n")
        yield from (line for line in whole if line.strip())
    if rest.strip():
        yield rest


def _start(response: anthropic.APIResponse[Any], asked: int) -> int:
    """Where the body starts.

    Raises:
        Unavailable: a part that was not asked for.
    """
    if response.status_code != 206:
        return 0
    found = re.match(r"bytes (\d+)-", response.headers.get("content-range", ""))
    if found is None or int(found[1]) > asked:
        raise Unavailable(NAME, "a part of the file that was not asked for")
    return int(found[1])


def _length(response: anthropic.APIResponse[Any]) -> int | None:
    encoded = response.headers.get("content-encoding", "identity") != "identity"
    length = response.headers.get("content-length", "")
    return int(length) if length.isdecimal() and not encoded else None


def _status_of(refused: Refused) -> int | None:
    cause = refused.__cause__
    return cause.status_code if isinstance(cause, anthropic.APIStatusError) else None
