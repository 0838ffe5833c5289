"""Put one answer together from the rules: the baseline's only entry."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline_assets.workloads.equipment_manuals.answer import Answer
from pipeline_assets.workloads.equipment_manuals.baseline.description import find_description
from pipeline_assets.workloads.equipment_manuals.baseline.identifiers import find_identifiers
from pipeline_assets.workloads.equipment_manuals.baseline.language import find_language
from pipeline_assets.workloads.equipment_manuals.baseline.pages import PageText, read_pages
from pipeline_assets.workloads.equipment_manuals.baseline.title import find_title
from pipeline_assets.workloads.equipment_manuals.baseline.usage import Usage

__all__ = ["PageText", "answer"]


def answer(document: str, pages: Sequence[PageText]) -> Answer:
    """Answer from the text of the pages alone. Deterministic.

    Args:
        document: the reference of the request; echoed.
        pages: the pages in order, as parsed.
    """
    read = read_pages(pages)
    usage = Usage(read.counted)
    title = find_title(read, usage)
    return Answer(
        document=document,
        title=title.field,
        product_identifiers=find_identifiers(title, read, usage),
        language=find_language(pages),
        description=find_description(title, read),
    )
