"""The answer of this workload, as every provider returns it: the typed form of the output schema.

Only the shape and its closed lists belong here. Whether an answer is right, and may be published,
is decided by the acceptance rules; how the baseline finds one, in `baseline.py`.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from pipeline_assets.workloads.answer_format import Evidence, Field, Status

Category = Literal["billing", "delivery", "defect", "account", "question", "complaint", "other"]
Priority = Literal["low", "normal", "high", "urgent"]
CATEGORIES: tuple[str, ...] = get_args(Category)
PRIORITIES: tuple[str, ...] = get_args(Priority)


class CategoryField(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A field whose value is a category; its members are those of `Field`."""

    value: Category | None
    status: Status
    evidence: list[Evidence]


class PriorityField(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A field whose value is a priority; its members are those of `Field`."""

    value: Priority | None
    status: Status
    evidence: list[Evidence]


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is told of one ticket.

    Attributes:
        document: the reference that the request carried, echoed unchanged.
        category: what the writer wants the service to deal with.
        priority: how soon, as far as the ticket itself says.
        product: the product that it is about, as the ticket names it.
        language: ISO 639-1 code of the writer's own words.
        summary: one sentence in that language.
    """

    document: str
    category: CategoryField
    priority: PriorityField
    product: Field
    language: Field
    summary: Field
