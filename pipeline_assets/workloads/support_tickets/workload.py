"""The workload `support_tickets`: category, priority, product, language and summary.

Belongs here: putting its files, columns, rules and baseline together.
"""

from __future__ import annotations

from pathlib import Path

from pipeline_assets.workloads.answer_format import echoed
from pipeline_assets.workloads.workload import (
    FIRST_PROMPT,
    Admission,
    Kept,
    PublishedField,
    Workload,
)
from resources.providers.baseline import RequestPage

from .acceptance import acceptances
from .baseline import answer
from .canary import CANARY_TICKETS, largest, wrong_fields
from .columns import FORMAT, decode
from .correction import correct

_FOLDER = Path(__file__).parent
SCHEMA_VERSION = 1
FIELDS = (
    PublishedField("category", "Category", search="description"),
    PublishedField("priority", "Priority"),
    PublishedField("product", "Product", search="identifiers"),
    PublishedField("language", "Language", search="language"),
    PublishedField("summary", "Summary", search="title"),
)
ADMISSION = Admission(
    result_may_be_late=Kept(
        holds=True,
        because="the category sorts tickets that are kept; who answers today does not wait for it",
    ),
    stands_alone=Kept(
        holds=True, because="a ticket is named by its number, and no answer needs another's"
    ),
    effect_can_be_retried=Kept(
        holds=True, because="an entry of the archive is written once for each accepted answer"
    ),
)


def load() -> Workload:
    """The workload, read from its folder; it is called as the folder is."""
    return Workload(
        name=_FOLDER.name,
        schema_version=SCHEMA_VERSION,
        fields=FIELDS,
        admission=ADMISSION,
        prompts=_prompts(),
        output_schema=(_FOLDER / "output_schema.json").read_bytes(),
        acceptances=acceptances(),
        check_answer=FORMAT.check,
        echoed=echoed,
        identical_duplicates="count_once",
        decode=decode,
        baseline=_answer,
        redaction=None,
        canary=lambda: CANARY_TICKETS,
        largest_canary=largest,
        wrong_in_canary=wrong_fields,
        correct=correct,
    )


def _prompts() -> dict[str, bytes]:
    """Every prompt by name: the first has a file of its own, the others are in a folder."""
    later = {file.stem: file.read_bytes() for file in sorted((_FOLDER / "prompts").glob("*.md"))}
    return later | {FIRST_PROMPT: (_FOLDER / "prompt.md").read_bytes()}


def _answer(document: str, pages: list[RequestPage]) -> bytes:
    return answer(document, pages)
