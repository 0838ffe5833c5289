"""The archive: each entry's content, where it comes from, and its three representations.

Belongs here: content digests, the form of published content, and thumbnail, search entry and head
of what is visible. Does not belong here: rows that name each other (`ledger_rows.py`), and the
thumbnails' bytes (`artifacts.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
import polars as pl

from pipeline_assets.audit.look import Look
from pipeline_assets.workloads.answer_format import Evidence, Status
from pipeline_assets.workloads.registry import (
    InvalidWorkload,
    UnknownWorkload,
    WorkloadNamedTwice,
    load_workload,
)
from pipeline_assets.workloads.workload import PublishedField
from resources.ledger.erasures import NOTHING
from resources.ledger.representations import (
    name_entries,
    stray_search_entries,
    unsearchable_entries,
)

CONTENT, FORM, SEARCH = "archive.content", "archive.form", "archive.search"


class _Field(msgspec.Struct, forbid_unknown_fields=True):
    """A published value; which values are allowed is the workload's to say."""

    value: str | None
    status: Status
    evidence: list[Evidence]


_ENTRY_SCHEMA = {
    "entry_no": pl.Int64,
    "document_id": pl.String,
    "archive_version": pl.Int64,
    "content": pl.String,
    "content_digest": pl.String,
    "workload": pl.String,
    "erased": pl.Int64,
    "accepted": pl.Int64,
}
_ENTRIES = (
    "SELECT e.entry_no, d.document_id, e.archive_version, e.content, e.content_digest, v.workload, "
    "CASE WHEN EXISTS (SELECT 1 FROM erasures x WHERE x.document_no = e.document_no) "
    "THEN 1 ELSE 0 END, "
    "CASE WHEN EXISTS (SELECT 1 FROM attempts a JOIN judgements j ON j.attempt_no = a.attempt_no "
    "AND j.values_digest = e.content_digest WHERE a.record_no = e.record_no) "
    "OR EXISTS (SELECT 1 FROM reviews w WHERE w.record_no = e.record_no "
    "AND w.decision = 'correct' AND w.corrected_digest = e.content_digest) THEN 1 ELSE 0 END "
    "FROM archive_entries e JOIN documents d ON d.document_no = e.document_no "
    "JOIN processing_versions v ON v.version_no = e.version_no WHERE "
)


def check_archive(look: Look) -> None:
    """Check the content of every entry, and what is there of every visible one."""
    forms: dict[str, type[msgspec.Struct] | None] = {}
    statement = f"{_ENTRIES} {look.of_version('e.version_no')} ORDER BY e.entry_no"
    for part in look.stream(statement, _ENTRY_SCHEMA):
        look.findings.looked(CONTENT, part.height)
        for row in part.iter_rows(named=True):
            _check_entry(look, row, forms)
    _check_search(look)


def _check_entry(
    look: Look, row: Mapping[str, Any], forms: dict[str, type[msgspec.Struct] | None]
) -> None:
    subject = f"archive version {row['archive_version']} of document {row['document_id']}"
    if row["erased"]:
        if row["content"] != NOTHING:
            look.findings.add(CONTENT, subject, "content", "none: its document was erased")
        return
    digest = hashlib.sha256(row["content"].encode()).hexdigest()
    if digest != row["content_digest"]:
        look.findings.add(
            CONTENT,
            subject,
            f"content with digest {digest[:16]}",
            f"{row['content_digest'][:16]}, which was published",
        )
    if not row["accepted"]:
        look.findings.add(
            CONTENT,
            subject,
            f"values {row['content_digest'][:16]}",
            "values that were judged, or that a reviewer put in their place",
        )
    workload = str(row["workload"])
    if workload not in forms:
        forms[workload] = _form_of(look, workload)
    form = forms[workload]
    if form is not None and not _has_form(row["content"], form):
        look.findings.add(FORM, subject, "content of another form", "the published fields, whole")


def _form_of(look: Look, workload: str) -> type[msgspec.Struct] | None:
    try:
        known = load_workload(workload, look.context.settings.workload_folder)
    except (InvalidWorkload, UnknownWorkload, WorkloadNamedTwice) as error:
        look.findings.leave_out(
            f"the form of what workload {workload} published: {type(error).__name__}"
        )
        return None
    return _struct(workload, tuple(known.fields))


@lru_cache(maxsize=32)
def _struct(workload: str, fields: tuple[PublishedField, ...]) -> type[msgspec.Struct]:
    return msgspec.defstruct(
        f"Published_{workload}",
        [(field.name, list[_Field] if field.many else _Field) for field in fields],
        forbid_unknown_fields=True,
    )


def _has_form(content: str, form: type[msgspec.Struct]) -> bool:
    try:
        msgspec.json.decode(content, type=form)
    except (msgspec.ValidationError, msgspec.DecodeError):
        return False
    return True


def _check_search(look: Look) -> None:
    """The search knows what is visible, and nothing else; of all versions, it has no version."""
    ledger = look.context.ledger
    missing = unsearchable_entries(look.connection, ledger)
    for document_id, entry_no in name_entries(look.connection, ledger, missing).iter_rows():
        look.findings.add(
            SEARCH, f"document {document_id}", f"no search entry {entry_no}", "one, it is visible"
        )
    for entry_no in stray_search_entries(look.connection, ledger)["entry_no"]:
        look.findings.add(
            SEARCH, f"search entry {entry_no}", "a search entry", "none: nothing visible has it"
        )
    look.findings.looked(SEARCH)
