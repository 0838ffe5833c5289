"""How clients of OpenAI are made: the key of the environment, the account, timeouts.

Belongs here: what the batch and the online client have in common. Does not belong here: jobs
(`batch.py`), answers (`online.py`).
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import msgspec

from resources.providers.openai.errors import NAME, failure_of, is_unknown, read_error, trouble_of
from resources.providers.port import CredentialsMissing, ModelUnavailable

if TYPE_CHECKING:
    import httpx2
    from openai import OpenAI

KEY_VARIABLE = "OPENAI_API_KEY"
CONNECT_SECONDS = 10.0
"""At most so long for a connection; a longer wait is an outage, not a slow answer."""


class _Model(msgspec.Struct, frozen=True):
    id: str


class _Models(msgspec.Struct, frozen=True):
    data: list[_Model]


def require_key() -> str:
    """Return the key of the environment.

    Raises:
        CredentialsMissing: there is none, or it cannot be sent in a header.
    """
    key = os.environ.get(KEY_VARIABLE, "")
    if not key:
        raise CredentialsMissing(NAME, KEY_VARIABLE)
    if not key.isascii() or not key.isprintable() or " " in key:
        # The HTTP library would refuse it with a message that shows it.
        raise CredentialsMissing(NAME, f"{KEY_VARIABLE} of printable characters without spaces")
    return key


def describe_account(client: OpenAI) -> str:
    """Return a text that differs between any two accounts; of the key it holds the SHA-256."""
    fields = (
        str(client.base_url).rstrip("/"),
        client.organization or "",
        client.project or "",
        hashlib.sha256(client.api_key.encode()).hexdigest(),
    )
    return "\n".join(fields)


def ask_for_model(client: OpenAI, model: str) -> None:
    """Ask whether the account can use a model.

    Raises:
        ModelUnavailable: the provider does not know it, or not for this account.
        Refused, Unavailable, Unreachable: the question was not answered.
    """
    from openai import APIError

    try:
        client.models.with_raw_response.retrieve(model)
    except APIError as error:
        trouble = trouble_of(error)
        if failure_of(trouble) == "unsupported":
            raise ModelUnavailable(NAME, model) from None
        # Compatible servers often have only the list: to them the path is what is not known.
        if trouble.status == 404 and _is_listed(client, model):
            return
        if is_unknown(trouble):
            raise ModelUnavailable(NAME, model) from None
        raise read_error(trouble) from None


def _is_listed(client: OpenAI, model: str) -> bool:
    """Return whether the list of models names it; False where there is no such list either.

    Raises:
        Refused, Unavailable, Unreachable: there may be a list, and it was not given.
    """
    from openai import APIError

    try:
        answer = client.models.with_raw_response.list()
    except APIError as error:
        trouble = trouble_of(error)
        if trouble.status == 404:
            return False
        raise read_error(trouble) from None
    try:
        models = msgspec.json.decode(answer.content, type=_Models).data
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return any(entry.id == model for entry in models)


def timeout_of(seconds: float) -> httpx2.Timeout:
    """Return the timeouts of a client: `seconds` for each wait on an open connection."""
    import httpx2

    return httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
