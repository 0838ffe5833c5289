"""The text names of records, batches and attempts, all regenerated, never random.

Belongs here: building them and taking them apart. Does not belong here: integer keys
(`resources/ledger/allocate.py`) and document ids (`resources/sources/document_id.py`).
"""

from __future__ import annotations

import hashlib
import re

import polars as pl

_CUSTOM_ID = r"^([0-9a-f]{12})-(0|[1-9][0-9]{0,8})$"


def record_id(workload: str, document_id: pl.Expr, checksum: pl.Expr, version: str) -> pl.Expr:
    """`<workload>:<document_id>@<checksum[:12]>:<processing_version>` for every row."""
    return pl.format(f"{workload}:{{}}@{{}}:{version}", document_id, checksum.str.slice(0, 12))


def reference(record: str) -> str:
    """What a request calls its document: it gives nothing away and cannot be guessed in a text.

    The answer must echo it, since an id join alone does not catch an answer that a provider put
    under another key.
    """
    return "doc-" + hashlib.sha256(record.encode()).hexdigest()[:16]


def batch_key(ledger_id: str, manifest_id: str, ordinal: int) -> str:
    """Twelve hexadecimal digits that name a batch to a provider, unique over ledgers."""
    return hashlib.sha256(f"{ledger_id}\0{manifest_id}\0{ordinal}".encode()).hexdigest()[:12]


def custom_id(key: str, index: int) -> str:
    """The id of the attempt that is `index` (from 0) in the batch of this key."""
    return f"{key}-{index}"


def split_custom_id(custom: pl.Expr) -> pl.Expr:
    """A struct of `batch_key` and `index`; both null where the text is no custom id."""
    groups = custom.str.extract_groups(_CUSTOM_ID)
    return pl.struct(
        batch_key=groups.struct.field("1"),
        index=groups.struct.field("2").cast(pl.Int64, strict=False),
    )


def is_custom_id(text: str) -> bool:
    """Does the text have the form of a custom id?"""
    return re.fullmatch(_CUSTOM_ID, text) is not None
