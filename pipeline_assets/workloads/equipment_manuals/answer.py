"""The answer of this workload, as every provider returns it: the typed form of the output schema.

Only the shape belongs here. Whether an answer is right, and may be published, is decided by the
acceptance rules; how the baseline finds one, in `baseline/`.
"""

from __future__ import annotations

import msgspec

from pipeline_assets.workloads.answer_format import ABSENT, Evidence, Field, Status

__all__ = ["ABSENT", "Answer", "Evidence", "Field", "Status"]


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is extracted from one document.

    Attributes:
        document: the reference that the request carried, echoed unchanged.
        title: the title as printed.
        product_identifiers: models and part numbers that the document is about; an empty list
            means that none is printed.
        language: ISO 639-1 code of the body.
        description: one to three sentences on what the product or document is.
    """

    document: str
    title: Field
    product_identifiers: list[Field]
    language: Field
    description: Field
