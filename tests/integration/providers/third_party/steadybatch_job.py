"""Run one steadybatch job as its quick start does. A script: JSON on stdin, JSON on stdout.

Only what the library's own documentation shows belongs here; keys and addresses come from the
environment.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def provider_of(name: str) -> Any:
    """Return the library's own adapter, made without arguments."""
    if name == "openai":
        from steadybatch.providers.openai_batch import OpenAIBatch

        return OpenAIBatch()
    if name == "anthropic":
        from steadybatch.providers.anthropic_batch import AnthropicBatch

        return AnthropicBatch()
    from steadybatch.providers.gemini_batch import GeminiBatch

    return GeminiBatch()


def main() -> None:
    """Read `provider`, `model`, `schema`, `prompts` (key → text), `checkpoint`; run; report."""
    from steadybatch import Request, Runner

    job = json.load(sys.stdin)
    requests = [
        Request(key=key, messages=[{"role": "user", "content": text}])
        for key, text in job["prompts"].items()
    ]
    runner = Runner(
        provider_of(job["provider"]),
        job["model"],
        response_schema=job["schema"],
        checkpoint=job["checkpoint"],
        poll_every=0.2,
    )
    report = runner.run(requests)
    shown = {
        "ok": report.ok,
        "batches": report.batches_submitted,
        "missing": report.lines_missing,
        "refused_for_capacity": report.capacity_refusals,
        "data": {one.key: one.data for one in report.results},
        "errors": {one.key: one.error for one in report.results if one.error},
    }
    json.dump(shown, sys.stdout)


if __name__ == "__main__":
    main()
