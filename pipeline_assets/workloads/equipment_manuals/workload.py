"""The workload `equipment_manuals`: title, product identifiers, language and description.

Belongs here: putting its files, columns, rules and baseline together.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import yaml

from pipeline_assets.workloads.equipment_manuals.baseline.answer import PageText, answer
from pipeline_assets.workloads.equipment_manuals.canary import (
    CANARY_DOCUMENTS,
    largest,
    wrong_fields,
)
from pipeline_assets.workloads.equipment_manuals.columns import check_answer, decode, echoed
from pipeline_assets.workloads.equipment_manuals.rules import (
    frame,
    identifier_shape,
    language_agrees,
    title_present,
)
from pipeline_assets.workloads.rules import document_reference, evidence_on_page, uncertain_field
from pipeline_assets.workloads.workload import FIRST_PROMPT, Workload
from resources.providers.baseline import RequestPage

_FOLDER = Path(__file__).parent
SCHEMA_VERSION = 1


def load() -> Workload:
    """The workload, read from its folder."""
    thresholds = (_FOLDER / "thresholds.yaml").read_bytes()
    limits = yaml.safe_load(thresholds)
    return Workload(
        name="equipment_manuals",
        schema_version=SCHEMA_VERSION,
        prompts=_prompts(),
        output_schema=(_FOLDER / "output_schema.json").read_bytes(),
        thresholds=thresholds,
        check_answer=check_answer,
        echoed=echoed,
        identical_duplicates="count_once",
        decode=decode,
        rules=(
            frame.make_rule(limits),
            uncertain_field.RULE,
            document_reference.RULE,
            evidence_on_page.RULE,
            identifier_shape.make_rule(limits),
            language_agrees.RULE,
            title_present.RULE,
        ),
        baseline=_answer,
        redaction=None,
        canary=lambda: CANARY_DOCUMENTS,
        largest_canary=largest,
        wrong_in_canary=wrong_fields,
    )


def _prompts() -> dict[str, bytes]:
    """Every prompt by name: the first has a file of its own, the others are in a folder."""
    later = {file.stem: file.read_bytes() for file in sorted((_FOLDER / "prompts").glob("*.md"))}
    return later | {FIRST_PROMPT: (_FOLDER / "prompt.md").read_bytes()}


def _answer(document: str, pages: list[RequestPage]) -> bytes:
    return msgspec.json.encode(
        answer(document, [PageText(page.number, page.text) for page in pages])
    )
