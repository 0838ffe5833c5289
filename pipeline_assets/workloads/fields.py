"""Published content of any workload, read by the fields that its workload declares.

Belongs here: from a workload's fields to labels, values, columns and what is searched, and what
content tells of itself where its workload is not installed any more. Does not belong here: any one
workload's fields, and looking inside a content for more than one field's values.

Content is a JSON object: field → `{value, status, evidence: [{page, quote}]}`, or a list of those,
in the order of the fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import polars as pl

from pipeline_assets.workloads.registry import UnknownWorkload, load_workload
from pipeline_assets.workloads.workload import PublishedField
from resources.ledger.archive_content import Searched, SearchedOf
from resources.settings import Settings

Fields = tuple[PublishedField, ...]
Role = Literal["title", "identifiers", "description", "language"]
"""How the search finds a field (`PublishedField.search`)."""
ROW_NAMES = (
    "document_id",
    "archive_version",
    "record_id",
    "workload",
    "thumbnail",
    "provenance",
    "published_at",
    "visible_until",
)
"""What stands beside the fields in an exported row."""
RESERVED = frozenset(ROW_NAMES) | {"processing_version", "source_checksum", "model", "document"}
"""Names that no field may have: they are other columns of an exported table or of an answer."""
STATUS = "_status"
"""Ends the name of the column that holds a field's status."""
ABSENT: Mapping[str, Any] = {"value": None, "status": "absent", "evidence": []}
"""What stands for a field that a content does not have."""
_VALUE = pl.Struct({"value": pl.String})


def fields_of(settings: Settings, workload: str) -> Fields:
    """The fields that an installed workload declares.

    Raises:
        UnknownWorkload, WorkloadNamedTwice, InvalidWorkload: it is not installed, or unusable.
    """
    return load_workload(workload, settings.workload_folder).fields


def readable_fields(settings: Settings, workload: str, content: Mapping[str, Any]) -> Fields:
    """The fields of a content, for reading: as declared, else as the content tells.

    What a content has beyond the declared fields, from an earlier schema, stands behind them.

    Args:
        settings: where one's own workloads are.
        workload: the content's workload, which may have been taken away since.
        content: the decoded content, or any mapping that has its members alone.

    Raises:
        WorkloadNamedTwice, InvalidWorkload: the workload is there and unusable.
    """
    try:
        declared = fields_of(settings, workload)
    except UnknownWorkload:
        declared = ()
    known = {field.name for field in declared}
    return (
        *(field for field in declared if field.name in content),
        *(_told(name, part) for name, part in content.items() if name not in known),
    )


def _told(name: str, part: Any) -> PublishedField:
    label = name.replace("_", " ")
    return PublishedField(name, label[:1].upper() + label[1:], many=isinstance(part, list))


def members_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an exported row, without what stands beside them."""
    return {name: part for name, part in row.items() if name not in ROW_NAMES}


def field_in_role(fields: Sequence[PublishedField], role: Role) -> PublishedField | None:
    """The field that the search finds in a role; None where the workload has none."""
    return next((field for field in fields if field.search == role), None)


def heading_field(fields: Sequence[PublishedField]) -> PublishedField | None:
    """The field that names a document to people: its title, else its first field."""
    return field_in_role(fields, "title") or next(iter(fields), None)


def heading_of(settings: Settings, row: Mapping[str, Any]) -> str | None:
    """What names the document of an exported row to people; None where it has no such value."""
    fields = readable_fields(settings, row["workload"], members_of(row))
    return text_of(row, heading_field(fields))


def parts_of(content: Mapping[str, Any], field: PublishedField) -> list[Mapping[str, Any]]:
    """The `{value, status, evidence}` of a field, as a list; one absent one for a missing field."""
    found = content.get(field.name)
    if found is None:
        return [] if field.many else [ABSENT]
    return found if isinstance(found, list) else [found]


def values_of(content: Mapping[str, Any], field: PublishedField | None) -> tuple[str, ...]:
    """The values of a field; none where it is absent, or where there is no such field."""
    if field is None:
        return ()
    parts = parts_of(content, field)
    return tuple(part["value"] for part in parts if part["value"] is not None)


def text_of(content: Mapping[str, Any], field: PublishedField | None) -> str | None:
    """A field's values as one text, with commas between; None where it has none."""
    return ", ".join(values_of(content, field)) or None


def status_of(content: Mapping[str, Any], field: PublishedField) -> str:
    """A field's status; of a list the least certain one, and absent where it is empty."""
    statuses = [part["status"] for part in parts_of(content, field)]
    known = (status for status in ("uncertain", "found") if status in statuses)
    return next(known, "absent")


def value_columns(contents: pl.Series, fields: Sequence[PublishedField]) -> pl.DataFrame:
    """The values of contents (JSON) as columns, one a field: a text, or a list of texts.

    A value that is absent, and a field that a content does not have, is null.
    """
    dtype = pl.Struct({field.name: pl.List(_VALUE) if field.many else _VALUE for field in fields})
    decoded = pl.DataFrame({"content": contents.str.json_decode(dtype)}).unnest("content")
    return decoded.select(_values(field).alias(field.name) for field in fields)


def _values(field: PublishedField) -> pl.Expr:
    if not field.many:
        return pl.col(field.name).struct.field("value")
    return pl.col(field.name).list.eval(pl.element().struct.field("value")).list.drop_nulls()


def searched(fields: Sequence[PublishedField]) -> Searched:
    """What of a content is searched, as the ledger takes it."""
    return {field.name: (field.many, field.search) for field in fields if field.search is not None}


def searched_of(settings: Settings) -> SearchedOf:
    """From a workload's name to what of its content is searched.

    What it gives raises UnknownWorkload where the workload is not installed: entries that nobody
    could find again are not written.
    """
    return partial(_searched_of, settings)


def _searched_of(settings: Settings, workload: str) -> Searched:
    return searched(fields_of(settings, workload))
