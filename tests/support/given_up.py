"""Documents that a provider refuses or answers twice, so that their records are given up."""

from __future__ import annotations

import json

import pytest

from pipeline_assets.collect import evidence
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.submit import answer_embedded as submitting
from pipeline_assets.submit.submit_batches import submit_batches
from pipeline_assets.versions import OpenVersion
from resources.providers.baseline import BaselineProvider
from tests.integration.stages.support import Shop, manual


class Scripted(BaselineProvider):
    """The built-in rules; each request is answered as its entry says: refused, conflict, well."""

    def __init__(self, version: OpenVersion, script: list[str]) -> None:
        super().__init__(version.spec.model, version.workload.baseline)
        self._script = iter(script)

    def answer_line(self, request: bytes) -> bytes:
        """One line, or two that contradict each other."""
        line = json.loads(super().answer_line(request))
        wanted = next(self._script)
        if wanted == "refused":
            return json.dumps({"custom_id": line["custom_id"], "status_code": 400}).encode()
        lines = [line]
        if wanted == "conflict":
            other = line["body"] | {"text": line["body"]["text"] + " "}
            lines.append(line | {"body": other})
        return b"\n".join(json.dumps(entry).encode() for entry in lines)


def walk_to_dead_letters(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, script: list[str]
) -> OpenVersion:
    """Have one document (`m0.txt`, ...) an entry answered so, and collect."""
    for number in range(len(script)):
        shop.write(f"m{number}.txt", manual("Bench Grinder", f"BG-{number}00"))
    version = shop.prepare()
    provider = Scripted(version, script)
    monkeypatch.setattr(submitting, "embedded_provider", lambda _: provider)
    monkeypatch.setattr(evidence, "result_reader", lambda _: provider)
    submit_batches(shop.context, version)
    collect_batches(shop.context, version)
    return version
