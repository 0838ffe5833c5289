"""One plain call to Gemini under an account.

Belongs here: sending, and telling an answer from a problem and from no answer. Does not belong
here: what is asked (`batch.py`, `inputs.py`, `results.py`) and what problems mean (`errors.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import httpx2

from resources.providers.gemini.account import Account
from resources.providers.gemini.errors import CallProblem, of_transport, read_problem


@dataclass(frozen=True)
class Calls:
    """Place, key and connections.

    `http` carries no key by itself: the SDK shares it, and sends an upload's bytes without one.
    """

    account: Account
    http: httpx2.Client

    def ask(
        self, method: str, url: str, parameters: dict[str, str] | None = None
    ) -> bytes | CallProblem:
        """A call that may be repeated by the caller: its body, or what was said instead.

        Raises:
            Unreachable: no connection came about.
            Unavailable: no answer came.
        """
        try:
            response = self.http.request(
                method, url, params=parameters, headers=self.account.headers
            )
        except httpx2.HTTPError as error:
            raise of_transport(error) from error
        return response.content if response.is_success else problem_of(response)


def problem_of(response: httpx2.Response) -> CallProblem:
    """What a response that was read, and is no success, says."""
    return read_problem(response.status_code, response.headers, response.content)
