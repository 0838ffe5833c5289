"""The workload `equipment_manuals`: title, product identifiers, language and description.

Belongs here: putting its files, columns, rules and baseline together.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from pipeline_assets.workloads.equipment_manuals.acceptance import acceptances
from pipeline_assets.workloads.equipment_manuals.baseline.answer import PageText, answer
from pipeline_assets.workloads.equipment_manuals.canary import (
    CANARY_DOCUMENTS,
    largest,
    wrong_fields,
)
from pipeline_assets.workloads.equipment_manuals.columns import check_answer, decode, echoed
from pipeline_assets.workloads.equipment_manuals.correction import correct
from pipeline_assets.workloads.workload import (
    FIRST_PROMPT,
    Admission,
    Kept,
    PublishedField,
    Workload,
)
from resources.providers.baseline import RequestPage

_FOLDER = Path(__file__).parent
SCHEMA_VERSION = 1
FIELDS = (
    PublishedField("title", "Title", search="title"),
    PublishedField("product_identifiers", "Product identifiers", many=True, search="identifiers"),
    PublishedField("language", "Language", search="language"),
    PublishedField("description", "Description", search="description"),
)
ADMISSION = Admission(
    result_may_be_late=Kept(
        holds=True, because="an archive is read at leisure; what it shows today stays until then"
    ),
    stands_alone=Kept(
        holds=True, because="a manual is named by its place, and no answer needs another's"
    ),
    effect_can_be_retried=Kept(
        holds=True, because="an entry of the archive is written once for each accepted answer"
    ),
)


def load() -> Workload:
    """The workload, read from its folder."""
    return Workload(
        name="equipment_manuals",
        schema_version=SCHEMA_VERSION,
        fields=FIELDS,
        admission=ADMISSION,
        prompts=_prompts(),
        output_schema=(_FOLDER / "output_schema.json").read_bytes(),
        acceptances=acceptances(),
        check_answer=check_answer,
        echoed=echoed,
        identical_duplicates="count_once",
        decode=decode,
        baseline=_answer,
        redaction=None,
        canary=lambda: CANARY_DOCUMENTS,
        largest_canary=largest,
        wrong_in_canary=wrong_fields,
        correct=correct,
    )


def _prompts() -> dict[str, bytes]:
    """Every prompt by name: the first has a file of its own, the others are in a folder."""
    later = {file.stem: file.read_bytes() for file in sorted((_FOLDER / "prompts").glob("*.md"))}
    return later | {FIRST_PROMPT: (_FOLDER / "prompt.md").read_bytes()}


def _answer(document: str, pages: list[RequestPage]) -> bytes:
    return msgspec.json.encode(
        answer(document, [PageText(page.number, page.text) for page in pages])
    )
