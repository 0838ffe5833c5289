"""Input files of Gemini's jobs.

Belongs here: finding out whether an earlier upload can still be used, and uploading. Does not
belong here: the job made from it (`batch.py`).

Nothing in here creates a job, so every trouble is a refusal that says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2
import msgspec

from resources.providers.gemini.calls import Calls
from resources.providers.gemini.errors import NOT_SENT, CallProblem, of_creation, read_problem
from resources.providers.gemini.statuses import PROVIDER
from resources.providers.port import FailureClass, NewJob, Refused, Unavailable, Unreachable

if TYPE_CHECKING:
    from google.genai import Client
    from google.genai.errors import APIError

MIME_TYPE = "application/jsonl"
"""`jsonl` is in use too; `application/json` is taken for one value (python-genai#1248)."""


class _File(msgspec.Struct, frozen=True, rename="camel"):
    state: str | None = None
    size_bytes: str | None = None


def usable_input(calls: Calls, job: NewJob) -> str | None:
    """The name of the input that was uploaded before, if it is still there and whole.

    Raises:
        Refused: it cannot be found out now, or the file is still being taken in.
        Unreachable: no connection came about.
    """
    name = job.intent.input_ref
    if not name:
        return None
    try:
        answer = calls.ask("GET", calls.account.url(name))
    except Unavailable as error:
        raise _broken_off("transport", error) from error
    if isinstance(answer, CallProblem):
        if answer.file_gone or answer.status == 404:
            return None
        raise of_creation(answer)
    try:
        file = msgspec.json.decode(answer, type=_File)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _broken_off("server_error", error) from error
    if file.state == "FAILED" or file.size_bytes != str(job.size):
        return None
    _require_ready(file.state, name)
    return name


def upload(sdk: Client, job: NewJob, display_name: str) -> str:
    """Upload the request file through the SDK, in blocks of 8 MB, and tell its name.

    Raises:
        Refused: the provider said no, or the upload broke off.
        Unreachable: no connection came about.
    """
    from google.genai.errors import APIError
    from google.genai.types import UploadFileConfig

    config = UploadFileConfig(mime_type=MIME_TYPE, display_name=display_name)
    try:
        file = sdk.files.upload(file=job.request_file, config=config)
    except APIError as error:
        raise of_creation(_sdk_problem(error)) from error
    except httpx2.HTTPError as error:
        if isinstance(error, NOT_SENT):
            raise Unreachable(PROVIDER, type(error).__name__) from error
        raise _broken_off("transport", error) from error
    except (KeyError, ValueError) as error:  # the SDK's errors for answers of another form
        raise _broken_off("server_error", error) from error
    if not file.name:
        raise Refused(PROVIDER, "server_error", None, "the uploaded file was given no name")
    job.on_uploaded(file.name)
    _require_ready(file.state.value if file.state is not None else None, file.name)
    return file.name


def _require_ready(state: str | None, name: str) -> None:
    if state == "PROCESSING":
        raise Refused(PROVIDER, "transport", "input_not_ready", f"{name} is still PROCESSING")


def _broken_off(failure: FailureClass, error: Exception) -> Refused:
    note = f"the input is not there ({type(error).__name__}), so no job was made"
    return Refused(PROVIDER, failure, None, note)


def _sdk_problem(error: APIError) -> CallProblem:
    headers = getattr(error.response, "headers", None) or {}
    return read_problem(error.code, headers, msgspec.json.encode(error.details))
