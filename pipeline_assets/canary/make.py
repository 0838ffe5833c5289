"""Making a canary: its documents asked about like records, and one request broken on purpose.

Belongs here: which requests a canary has. Does not belong here: the documents (a workload's), the
verdict (`judge.py`), sending (`run.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Any

import msgspec

from pipeline_assets.canary.judge import AskedDocument
from pipeline_assets.prompting.render import DocumentRefused
from pipeline_assets.prompting.request_maker import RequestMaker
from pipeline_assets.workloads.workload import CanaryDocument
from resources.providers.tokens import count_tokens
from resources.record_ids import custom_id, reference


class CanaryUnmakeable(Exception):
    """A document of the canary cannot be sent under the version's own limits."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(
            f"the canary's document {name!r} cannot be sent: {problem} Nothing was submitted: give "
            "the version more document_tokens."
        )


@dataclass(frozen=True)
class Canary:
    """A canary ready to be stored.

    Attributes:
        lines: request lines, no newline.
        asked: what each of them asks.
        input_tokens: of all prompts, on the side of too many.
    """

    lines: tuple[bytes, ...]
    asked: tuple[AskedDocument, ...]
    input_tokens: int


def canary_documents(maker: RequestMaker, minimum: int) -> list[CanaryDocument]:
    """The valid documents of a canary: the workload's, the largest practical one, and repeats.

    Args:
        maker: of the version; its budget decides how large the largest one is.
        minimum: requests that the provider wants in a job at least, the broken one included.
    """
    workload = maker.version.workload
    documents = list(workload.canary())
    documents.append(workload.largest_canary(maker.document_tokens, count_tokens))
    wanted = max(0, minimum - 1 - len(documents))
    repeats = islice(cycle(workload.canary()), wanted)
    documents += [
        replace(document, name=f"{document.name} (repeat {number})")
        for number, document in enumerate(repeats, start=1)
    ]
    return documents


def name_documents(
    documents: Sequence[CanaryDocument], combination: str, key: str
) -> tuple[AskedDocument, ...]:
    """Ids and references of a canary's requests; the broken one is the last."""
    entries: list[CanaryDocument | None] = [*documents, None]
    return tuple(
        AskedDocument(
            custom_id=custom_id(key, index),
            reference=reference(f"canary:{combination}:{index}"),
            document=document,
        )
        for index, document in enumerate(entries)
    )


def make_canary(maker: RequestMaker, combination: str, key: str, minimum: int) -> Canary:
    """The requests of a canary.

    Raises:
        CanaryUnmakeable: a document does not fit the version's limits.
    """
    documents = canary_documents(maker, minimum)
    asked = name_documents(documents, combination, key)
    valid = asked[:-1]
    rendered = maker.render(
        [
            (entry.reference, _pages(document))
            for entry, document in zip(valid, documents, strict=True)
        ]
    )
    lines: list[bytes] = []
    tokens = 0
    for entry, text in zip(valid, rendered, strict=True):
        if isinstance(text, DocumentRefused):
            raise CanaryUnmakeable(entry.name, str(text))
        tokens += maker.prompt_tokens(text)
        lines.append(
            maker.wire.encode_request(entry.custom_id, maker.body(entry.reference, text.text))
        )
    broken: dict[str, Any] = maker.wire.broken_body(replace(maker.ask, user="broken on purpose"))
    lines.append(maker.wire.encode_request(asked[-1].custom_id, msgspec.json.encode(broken)))
    return Canary(tuple(lines), asked, tokens)


def _pages(document: CanaryDocument) -> list[tuple[int, str]]:
    return list(enumerate(document.pages, start=1))
