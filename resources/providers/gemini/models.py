"""Whether a model can be used, asked of Gemini's model list.

Belongs here: the one call that both clients share.
"""

from __future__ import annotations

import msgspec

from resources.providers.gemini.account import model_name
from resources.providers.gemini.calls import Calls
from resources.providers.gemini.errors import CallProblem, failure_of, of_reading
from resources.providers.gemini.statuses import PROVIDER
from resources.providers.port import ModelUnavailable, Unavailable


class _Model(msgspec.Struct, frozen=True, rename="camel"):
    supported_generation_methods: list[str] = []


def require_model(calls: Calls, model: str, method: str) -> None:
    """Ask for a model by its name.

    A model that lists its methods must list this one; a list that is empty says nothing.

    Raises:
        ModelUnavailable: it is not known to this account, or not for this method.
        Refused: the account itself is refused.
        Unreachable, Unavailable: no usable answer came.
    """
    answer = calls.ask("GET", calls.account.url(model_name(model)))
    if isinstance(answer, CallProblem):
        missing = ModelUnavailable(PROVIDER, model)
        bad_name = answer.status == 400 and failure_of(answer) == "invalid_request"
        raise missing if bad_name else of_reading(answer, missing)
    try:
        methods = msgspec.json.decode(answer, type=_Model).supported_generation_methods
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unavailable(PROVIDER, "the answer describes no model") from error
    if methods and method not in methods:
        raise ModelUnavailable(PROVIDER, model)
