"""A worker that dies by SIGKILL in the middle of a submission, many times, each in a process.

Run as a program it imports everything once, then forks for each order that it reads (a JSON object
a line) and answers with the signal that ended the fork. Forked before any thread was started, a
fork is as good as a new process, and takes a fraction of its time.
"""

from __future__ import annotations

import os
import signal
from typing import Any

from tests.support.dying_forks import serve_orders

POINTS = ("before", "uploaded", "after")
"""Right before the create call; when the input is uploaded; after the provider took the job."""


class Dying:
    """A batch client whose process is killed at a point of `create`."""

    def __init__(self, client: Any, point: str) -> None:
        self._client = client
        self._point = point

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def create(self, job: Any) -> Any:
        """Create the job, or not, and die."""
        from dataclasses import replace

        if self._point == "before":
            os.kill(os.getpid(), signal.SIGKILL)

        def uploaded(ref: str) -> None:
            job.on_uploaded(ref)
            if self._point == "uploaded":
                os.kill(os.getpid(), signal.SIGKILL)

        self._client.create(replace(job, on_uploaded=uploaded))
        os.kill(os.getpid(), signal.SIGKILL)


def submit(order: dict[str, Any]) -> None:
    """Submit a version's batches with clients that die."""
    from pipeline_assets.provider_jobs import clients
    from pipeline_assets.submit.submit_batches import submit_batches
    from pipeline_assets.versions import open_version
    from resources.context import open_context
    from resources.settings import load_settings

    os.environ.update(order["environment"])
    real = clients.batch_client

    def dying(*given: Any, **named: Any) -> Any:
        return Dying(real(*given, **named), order["point"])

    clients.batch_client = dying
    settings = load_settings(state=order["state"], source=order["source"], source_name="shop")
    with open_context(settings) as context:
        submit_batches(context, open_version(context, order["key"]))


def main() -> None:
    """Fork for each order."""
    for provider in ("openai", "anthropic", "gemini", "bedrock"):
        __import__(f"resources.providers.{provider}.batch")
    import anthropic  # noqa: F401 - imported once, before the forks
    import boto3  # noqa: F401
    import openai  # noqa: F401
    from google import genai  # noqa: F401

    import pipeline_assets.submit.submit_batches  # noqa: F401
    import resources.context  # noqa: F401

    serve_orders(submit)


if __name__ == "__main__":
    main()
