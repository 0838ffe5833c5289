"""Jobs at OpenAI: the port's batch client over the SDK.

Belongs here: calls, and what their failures are raised as. Does not belong here: reading answers
(`jobs.py`), tables (`statuses.py`, `errors.py`), waiting and repeating (the pipeline).

The SDK carries the calls and its retries are off: it would repeat the creation of a job, which
has no idempotency key (PROVIDERS.md 1.6).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import msgspec

from resources.providers.openai.connection import (
    ask_for_model,
    describe_account,
    require_key,
    timeout_of,
)
from resources.providers.openai.errors import (
    NAME,
    Trouble,
    create_error,
    read_error,
    trouble_of,
    upload_error,
)
from resources.providers.openai.jobs import (
    BATCH_KEY,
    INTENT_KEY,
    Batch,
    BatchPage,
    File,
    is_newest_first,
    is_of,
    job_of,
)
from resources.providers.openai.wire import OpenAIWire
from resources.providers.port import (
    Ambiguous,
    Download,
    FileMissing,
    Found,
    Intent,
    Job,
    JobMissing,
    NewJob,
    ProviderOptions,
    Refused,
    RemoteFile,
    Unavailable,
)

if TYPE_CHECKING:
    import httpx2
    from openai import OpenAI

LIST_LIMIT = 100
"""Batches on a page of the list: the most that there may be (PROVIDERS.md 1.1)."""

CLOCK_SKEW = timedelta(minutes=15)
"""How much earlier than its intent a job may seem to be created: two clocks are compared."""

_RANGE = re.compile(r"bytes (\d+)-\d+/(?:\d+|\*)")
_UNSATISFIED = re.compile(r"bytes \*/(\d+)")
_Read = TypeVar("_Read")


class OpenAIBatchClient:
    """The port's `BatchClient` for one endpoint.

    Args:
        client: the SDK's client, without retries.
        endpoint: what every row of a batch asks.
    """

    name = NAME

    def __init__(self, client: OpenAI, endpoint: str) -> None:
        self._client = client
        self._endpoint = endpoint
        self.base_url = str(client.base_url)

    def account(self) -> str:
        """Return what the credentials in use identify; digested before it is kept."""
        return describe_account(self._client)

    def check_model(self, model: str) -> None:
        """Ask whether the model can be used.

        Raises:
            ModelUnavailable: the provider does not know it, or not for this account.
            Refused, Unavailable, Unreachable: the question was not answered.
        """
        ask_for_model(self._client, model)

    def create(self, job: NewJob) -> Job:
        """Upload the input, unless the intent has a reference to it, and create the job.

        The window is always 24 hours; the provider offers no other.

        Raises:
            Refused: the provider said no, or the upload failed: there is no job. The code
                `input_not_found` means that the uploaded file is not known yet.
            Unreachable: no connection came about: there is no job.
            Ambiguous: there may be a job.
        """
        ref = job.intent.input_ref
        if not ref:
            ref = self._upload(job)
            job.on_uploaded(ref)
        return self._create(job.intent, ref)

    def _upload(self, job: NewJob) -> str:
        from openai import APIError

        name = f"tallybook-{job.intent.intent_id}.jsonl"
        try:
            with job.request_file.open("rb") as file:
                response = self._client.files.with_raw_response.create(
                    file=(name, file), purpose="batch"
                )
        except APIError as error:
            raise upload_error(trouble_of(error)) from None
        uploaded = _read(response.content, File)
        if uploaded is None or not uploaded.id:
            raise Refused(NAME, "transport", "upload_unclear", "the answer names no file")
        if uploaded.bytes is not None and uploaded.bytes != job.size:
            note = f"{uploaded.bytes} bytes arrived of {job.size}"
            raise Refused(NAME, "transport", "upload_incomplete", note)
        return uploaded.id

    def _create(self, intent: Intent, ref: str) -> Job:
        from openai import APIError

        try:
            response = self._client.batches.with_raw_response.create(
                input_file_id=ref,
                endpoint=cast("Any", self._endpoint),
                completion_window="24h",
                metadata={BATCH_KEY: intent.batch_key, INTENT_KEY: intent.intent_id},
            )
        except APIError as error:
            raise create_error(trouble_of(error)) from None
        batch = _read(response.content, Batch)
        if batch is None:
            raise Ambiguous(NAME, f"HTTP {response.status_code} with a body that is no batch")
        return job_of(batch)

    def find(self, intent: Intent) -> Found:
        """Look for the job of an intent among the account's jobs.

        The list has no filter. It is read back to the time of the intent where it turns out to
        be ordered newest first, which the provider does not promise, else to its end.

        Raises:
            Refused, Unavailable, Unreachable: the list could not be read to its end.
        """
        earliest = (intent.recorded_at - CLOCK_SKEW).timestamp()
        found: dict[str, Batch] = {}
        times: list[float] = []
        for page in self._pages():
            found |= {batch.id: batch for batch in page.data if is_of(batch, intent)}
            times += [batch.created_at for batch in page.data if batch.created_at is not None]
            if is_newest_first(times) and times[-1] < earliest:
                break
        jobs = sorted(found.values(), key=lambda batch: (batch.created_at or 0, batch.id))
        return Found(jobs=tuple(map(job_of, jobs)), maybe=(), complete=True)

    def _pages(self) -> Iterator[BatchPage]:
        after: str | None = None
        seen: set[str] = set()
        while True:
            page = self._page(after)
            yield page
            if not page.has_more or not page.data:
                return
            after = page.data[-1].id
            if after in seen:
                raise Unavailable(NAME, "the list of batches does not end")
            seen.add(after)

    def _page(self, after: str | None) -> BatchPage:
        from openai import APIError, omit

        try:
            response = self._client.batches.with_raw_response.list(
                after=omit if after is None else after, limit=LIST_LIMIT
            )
        except APIError as error:
            raise read_error(trouble_of(error)) from None
        page = _read(response.content, BatchPage)
        if page is None:
            raise Unavailable(NAME, "a list that is no list of batches")
        return page

    def retrieve(self, job_id: str) -> Job:
        """Return the job as it is now.

        Raises:
            JobMissing: the provider does not have it, or not now.
            Refused, Unavailable, Unreachable: the question was not answered.
        """
        from openai import APIError

        try:
            response = self._client.batches.with_raw_response.retrieve(job_id)
        except APIError as error:
            raise _job_error(trouble_of(error), job_id) from None
        batch = _read(response.content, Batch)
        if batch is None:
            raise Unavailable(NAME, "an answer that is no batch")
        return job_of(batch)

    def cancel(self, job_id: str) -> None:
        """Ask the provider to end the job; a job that has ended, or is ending, stays as it is.

        Raises:
            JobMissing: the provider does not have it, or not now.
            Refused, Unavailable, Unreachable: it was not asked.
        """
        from openai import APIError

        try:
            self._client.batches.with_raw_response.cancel(job_id)
        except APIError as error:
            trouble = trouble_of(error)
            if trouble.status in (400, 409) and self._is_ending(job_id):
                return
            raise _job_error(trouble, job_id) from None

    def _is_ending(self, job_id: str) -> bool:
        return self.retrieve(job_id).phase in ("cancelling", "ended")

    @contextmanager
    def open_file(self, job_id: str, file: RemoteFile, offset: int) -> Iterator[Download]:
        """Stream a result file from a byte offset on, or from the start where it cannot resume.

        Raises:
            FileMissing: the file is not there (any more, or yet).
            Refused, Unavailable, Unreachable: it was not opened. The blocks raise `Unavailable`
                where the connection breaks.
        """
        del job_id  # a file has an id of its own
        with ExitStack() as stack:
            opened = self._open(stack, file.ref, offset)
            yield opened if opened is not None else Download(iter(()), offset, 0)

    def _open(self, stack: ExitStack, ref: str, offset: int) -> Download | None:
        """Return an open download, None where nothing is left behind the offset."""
        from openai import APIError, APIStatusError

        # Compressed bytes could be neither resumed nor counted.
        headers = {"Accept-Encoding": "identity"}
        if offset:
            headers["Range"] = f"bytes={offset}-"
        try:
            answer = stack.enter_context(
                self._client.files.with_streaming_response.content(ref, extra_headers=headers)
            )
        except APIStatusError as error:
            if error.status_code != 416:
                _raise_file_error(trouble_of(error), ref)
            size = _UNSATISFIED.fullmatch(error.response.headers.get("content-range", ""))
            if size is not None and int(size[1]) == offset:
                return None
            return self._open(stack, ref, 0) if offset else None
        except APIError as error:
            raise read_error(trouble_of(error)) from None
        return _download(answer.http_response, offset)

    def delete(self, job_id: str, refs: tuple[str, ...]) -> None:
        """Delete remote files of a job; those that are gone already are no error.

        Raises:
            Refused, Unavailable, Unreachable: one of them could not be deleted.
        """
        del job_id  # files have ids of their own
        from openai import APIError

        for ref in refs:
            try:
                self._client.files.with_raw_response.delete(ref)
            except APIError as error:
                trouble = trouble_of(error)
                if trouble.status != 404:
                    raise read_error(trouble) from None

    def close(self) -> None:
        """Give connections back."""
        self._client.close()


def connect_batch(options: ProviderOptions, endpoint: str) -> OpenAIBatchClient:
    """Return a client for jobs, with the credentials and base URL of the environment.

    Raises:
        CredentialsMissing: there is no usable key.
        ValueError: the endpoint is not served.
    """
    place = OpenAIWire(endpoint).endpoint
    key = require_key()
    from openai import OpenAI

    client = OpenAI(api_key=key, max_retries=0, timeout=timeout_of(options.timeout_seconds))
    return OpenAIBatchClient(client, place)


def _read(body: bytes, shape: type[_Read]) -> _Read | None:
    """Return a body in its shape, None where it has another."""
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _job_error(trouble: Trouble, job_id: str) -> Exception:
    return JobMissing(NAME, job_id) if trouble.status == 404 else read_error(trouble)


def _raise_file_error(trouble: Trouble, ref: str) -> NoReturn:
    if trouble.status in (404, 410):
        raise FileMissing(NAME, ref, trouble.what) from None
    raise read_error(trouble) from None


def _download(response: httpx2.Response, offset: int) -> Download:
    start = 0
    if response.status_code == 206:
        given = _RANGE.fullmatch(response.headers.get("content-range", ""))
        if given is None or int(given[1]) != offset:
            raise Unavailable(NAME, "a part of the file that was not asked for")
        start = offset
    length = response.headers.get("content-length", "")
    encoded = response.headers.get("content-encoding", "identity") != "identity"
    known = length.isdecimal() and not encoded
    return Download(_blocks(response), start, int(length) if known else None)


def _blocks(response: httpx2.Response) -> Iterator[bytes]:
    import httpx2

    try:
        yield from response.iter_bytes()
    except (httpx2.HTTPError, httpx2.StreamError) as error:
        raise Unavailable(NAME, f"the download broke off: {type(error).__name__}") from None
