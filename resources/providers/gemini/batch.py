"""Gemini's batch jobs behind the port.

Belongs here: creating, finding, looking at, ending and deleting jobs. Does not belong here:
inputs (`inputs.py`), results (`results.py`), the JSON of jobs (`jobs.py`), errors (`errors.py`).

The input goes up through the google-genai SDK. Everything about jobs is asked with httpx2: the
SDK's objects drop a job's error, its counts and its input (python-genai#1323, #2367), and its
download holds the whole file or writes it where it cannot be resumed. Base URL, version and key
are the SDK's own. A block of an upload that is not confirmed is sent again by the SDK, at most
twice more: that creates nothing. No other call is repeated.

Creating is not idempotent and display names are not unique: a job is known by its display name,
`tallybook-<intent id>`, and by when it was created.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

import httpx2

from resources.providers.gemini import errors
from resources.providers.gemini.account import Account, account_of, model_name
from resources.providers.gemini.calls import Calls, problem_of
from resources.providers.gemini.errors import CallProblem
from resources.providers.gemini.inputs import upload, usable_input
from resources.providers.gemini.jobs import (
    INLINE,
    NotAnOperation,
    Operation,
    job_of,
    read_operation,
    read_page,
)
from resources.providers.gemini.models import require_model
from resources.providers.gemini.results import inline_download, open_download
from resources.providers.gemini.statuses import PHASES, PROVIDER, bare_state
from resources.providers.port import (
    Ambiguous,
    Download,
    FileMissing,
    Found,
    Intent,
    Job,
    JobMissing,
    NewJob,
    ProviderError,
    ProviderOptions,
    Refused,
    RemoteFile,
    SdkMissing,
    Unavailable,
    Unreachable,
)

if TYPE_CHECKING:
    from google.genai import Client

METHOD = "batchGenerateContent"
DISPLAY_PREFIX = "tallybook-"

PAGE_SIZE = 100
SEARCH_MARGIN = timedelta(minutes=15)
"""How far the provider's clock may be behind ours: the search starts so long before the intent."""

MAX_PAGES = 10_000
"""A list of a million jobs ends by then; one that does not goes in circles."""


def connect_batch(options: ProviderOptions) -> GeminiBatch:
    """A client from the environment's key and base URL.

    Raises:
        SdkMissing: google-genai is not installed.
        CredentialsMissing: no usable key, or a base URL that is none.
    """
    try:
        from google import genai
        from google.genai import types
    except ImportError as error:
        raise SdkMissing(PROVIDER, "gemini") from error
    account = account_of(os.environ)
    http = httpx2.Client(timeout=options.timeout_seconds)
    sdk = genai.Client(
        vertexai=False,
        api_key=account.key,
        http_options=types.HttpOptions(
            base_url=account.base_url,
            api_version=account.version,
            timeout=int(options.timeout_seconds * 1000),  # milliseconds
            httpx_client=http,
        ),
    )
    return GeminiBatch(account, http, sdk)


class GeminiBatch:
    """The port's `BatchClient` for Gemini.

    Args:
        account: place and key.
        http: for jobs and downloads, and inside the SDK.
        sdk: for uploads.
    """

    name = PROVIDER

    def __init__(self, account: Account, http: httpx2.Client, sdk: Client) -> None:
        self._account = account
        self._calls = Calls(account, http)
        self._sdk = sdk
        self.base_url: str = account.base_url

    def account(self) -> str:
        """What the key identifies; the key only as a digest."""
        return self._account.text()

    def check_model(self, model: str) -> None:
        """Ask whether the model can be used in a batch.

        Raises:
            ModelUnavailable: the provider does not know it, or not for batches.
        """
        require_model(self._calls, model, METHOD)

    def create(self, job: NewJob) -> Job:
        """Upload the input, unless the intent has a reference to it, and create the job.

        Inputs live for 48 hours: one that is gone, or not of the size that was sent, is uploaded
        again. The window cannot be chosen.

        Raises:
            Refused: the provider said no, or the upload broke off: there is no job.
            Unreachable: no connection came about: there is no job.
            Ambiguous: there may be a job.
        """
        display_name = f"{DISPLAY_PREFIX}{job.intent.intent_id}"
        file_name = usable_input(self._calls, job) or upload(self._sdk, job, display_name)
        batch = {"displayName": display_name, "inputConfig": {"fileName": file_name}}
        url = self._account.url(model_name(job.intent.model), METHOD)
        try:
            response = self._calls.http.post(
                url, headers=self._account.headers, json={"batch": batch}
            )
        except httpx2.HTTPError as error:
            raise errors.of_transport_at_create(error) from error
        if response.is_success:
            return _created(response.content)
        problem = problem_of(response)
        if response.is_server_error or response.status_code == 408:
            raise errors.ambiguous(problem)
        raise errors.of_creation(problem)

    def find(self, intent: Intent) -> Found:
        """Look for the job of an intent among the account's jobs, all pages of them.

        Jobs created under another number of the same batch count if they are not older than the
        intent. A job without a display name, or of another number without a time, cannot be told.

        Raises:
            Unavailable: a page could not be had; nothing is known then.
        """
        jobs: list[Operation] = []
        maybe: list[Operation] = []
        complete = True
        for page, whole in self._pages():
            complete = complete and whole
            for operation in page:
                kind = _kind(operation, intent)
                if kind != "other":
                    (jobs if kind == "sure" else maybe).append(operation)
        return Found(
            jobs=tuple(self._in_full(one) for one in _oldest_first(jobs)),
            maybe=tuple(job_of(one) for one in _oldest_first(maybe)),
            complete=complete,
        )

    def retrieve(self, job_id: str) -> Job:
        """The job as it is now.

        Raises:
            JobMissing: the provider does not have it, or not now.
        """
        return job_of(self._operation(job_id))

    def cancel(self, job_id: str) -> None:
        """Ask the provider to end the job; one that has ended already is left as it is.

        Raises:
            JobMissing: the provider does not have it, or not now.
        """
        answer = self._calls.ask("POST", self._account.url(job_id, "cancel"))
        if isinstance(answer, CallProblem) and answer.name != "FAILED_PRECONDITION":
            raise errors.of_reading(answer, JobMissing(PROVIDER, job_id))

    @contextmanager
    def open_file(self, job_id: str, file: RemoteFile, offset: int) -> Iterator[Download]:
        """Stream a result file from a byte offset on, or from the start.

        Inline results are read out of the operation and given as the lines of a file.

        Raises:
            FileMissing: the file is not there (any more, or yet), or the provider refuses the
                name that it gave it.
        """
        if file.ref.startswith(INLINE):
            operation = self._operation(file.ref.removeprefix(INLINE))
            yield inline_download(operation, file.ref, offset)
            return
        with open_download(self._calls, file.ref, offset) as download:
            yield download

    def delete(self, job_id: str, refs: tuple[str, ...]) -> None:
        """Delete remote files of a job, and the job itself where its name is among them.

        What is gone already is no error, and neither is a result file whose id the Files API
        refuses as too long: no call deletes it, and it goes with its retention. Every reference
        is tried before an error is raised.
        """
        failed: ProviderError | None = None
        for ref in refs:
            try:
                self._delete(ref)
            except (Refused, Unavailable, Unreachable) as error:
                failed = failed or error
        if failed is not None:
            raise failed

    def close(self) -> None:
        """Give connections back."""
        self._sdk.close()
        self._calls.http.close()

    def _pages(self) -> Iterator[tuple[list[Operation], bool]]:
        """Page by page: operations, and whether all of them could be read and the list goes on."""
        token: str | None = None
        seen: set[str] = set()
        while True:
            parameters = {"pageSize": str(PAGE_SIZE), **({"pageToken": token} if token else {})}
            answer = self._calls.ask("GET", self._account.url("batches"), parameters)
            if isinstance(answer, CallProblem):
                raise errors.of_reading(answer)
            try:
                operations, whole, token = read_page(answer)
            except NotAnOperation as error:
                raise Unavailable(PROVIDER, str(error)) from error
            circles = token in seen or len(seen) >= MAX_PAGES
            yield operations, whole and not circles
            if token is None or circles:
                return
            seen.add(token)

    def _in_full(self, operation: Operation) -> Job:
        """A listed job; one that has ended is fetched, since lists leave results out."""
        job = job_of(operation)
        _, outcome = PHASES.get(bare_state(job.raw_status), (None, None))
        if outcome is None or job.files:
            return job
        try:
            return self.retrieve(operation.name)
        except JobMissing:
            return job

    def _operation(self, job_id: str) -> Operation:
        answer = self._calls.ask("GET", self._account.url(job_id))
        if isinstance(answer, CallProblem):
            raise errors.of_reading(answer, JobMissing(PROVIDER, job_id))
        try:
            return read_operation(answer)
        except NotAnOperation as error:
            raise Unavailable(PROVIDER, str(error)) from error

    def _delete(self, ref: str) -> None:
        answer = self._calls.ask("DELETE", self._account.url(ref))
        if isinstance(answer, CallProblem) and not answer.long_file_id:
            gone = FileMissing(PROVIDER, ref, answer.note)
            error = errors.of_reading(answer, gone)
            if error is not gone:
                raise error


def _created(data: bytes) -> Job:
    try:
        return job_of(read_operation(data))
    except NotAnOperation as error:
        raise Ambiguous(PROVIDER, str(error)) from error


def _kind(operation: Operation, intent: Intent) -> Literal["sure", "maybe", "other"]:
    """What an operation is to an intent."""
    name = operation.display_name
    if name == f"{DISPLAY_PREFIX}{intent.intent_id}":
        return "sure"
    created = operation.created_at
    if created is not None and created < intent.recorded_at - SEARCH_MARGIN:
        return "other"
    if name is None:
        return "maybe"
    if not name.startswith(f"{DISPLAY_PREFIX}{intent.batch_key}-"):
        return "other"
    return "maybe" if created is None else "sure"


def _oldest_first(operations: list[Operation]) -> list[Operation]:
    return sorted(operations, key=lambda one: (one.metadata.create_time or "", one.name))
