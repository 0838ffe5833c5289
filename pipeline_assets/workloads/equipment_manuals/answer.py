"""The answer of this workload, as every provider returns it: the typed form of the output schema.

Only the shape belongs here. Whether an answer is right, and may be published, is decided by the
acceptance rules; how the baseline finds one, in `baseline/`.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Status = Literal["found", "absent", "uncertain"]


class Evidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a value stands in the document.

    Attributes:
        page: 1-based page number.
        quote: the words as printed; white space and Unicode forms are folded when compared.
    """

    page: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
    quote: str


class Field(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One value with its certainty.

    Attributes:
        value: the value, or None. Always None when `status` is "absent"; an "uncertain" field
            may carry its best candidate for the reviewer.
        status: "found": printed and unambiguous; "absent": looked for and not there;
            "uncertain": a person has to look.
        evidence: the quotes that carry the value; empty when `status` is "absent".
    """

    value: str | None
    status: Status
    evidence: list[Evidence]


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


ABSENT = Field(value=None, status="absent", evidence=[])
