"""The capability table as a page of the documentation.

Belongs here: how the table is laid out for people. Does not belong here: any fact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from resources.providers.capabilities import Capability, CapabilityTable, Fact, packaged_table

_IDENTITY = ("provider", "model", "endpoint", "mode")
_TITLES: Mapping[str, str] = {
    "max_records": "records in a job, at most",
    "min_records": "records in a job, at least",
    "max_bytes": "bytes of a job's file",
    "max_line_bytes": "bytes of a request",
    "custom_id_pattern": "custom id",
    "enqueued_tokens": "tokens waiting at one time",
    "jobs_in_flight": "jobs open at one time",
    "creations_per_hour": "jobs created in an hour",
    "output_tokens_max": "tokens of an answer",
    "input_tokens_max": "tokens of a prompt",
    "context_tokens": "tokens of prompt and answer",
    "parameters_allowed": "parameters taken",
    "parameters_refused": "parameters refused",
    "structured_output": "structured output",
    "schema_dialects": "schema dialects",
    "schema_limits": "schema limits",
    "tools": "tools",
    "window_hours": "window, hours",
    "deadline_hours": "hard end, hours",
    "retention_hours": "results kept, hours",
    "cancel": "on cancelling",
    "file_format": "requests travel as",
    "input_by_reference": "input by reference",
    "counts_live": "counts while running",
    "rate_limits": "other limits",
}


def packaged_page() -> str:
    """The page of the table that comes with the package."""
    return as_markdown(packaged_table())


def as_markdown(table: CapabilityTable) -> str:
    """The page: a table for each endpoint and mode, then the sources."""
    lines = [
        "# What the providers take",
        "",
        "Printed from `resources/providers/capabilities.yaml` by `make docs`; a test compares the",
        "two. A job that a row does not allow is refused before anything is sent, with the row and",
        "the reason. What is not listed is not known, and nothing is refused for it. `probe` means",
        "that only a request can tell. Of two rows that match a model, the one whose pattern says",
        "more counts.",
    ]
    for (provider, endpoint, mode), rows in _groups(table).items():
        lines += ["", f"## {provider}, `{endpoint}`, {mode}", ""]
        lines += _group_lines(rows)
    lines += ["", "## Sources", "", "| key | source |", "| --- | --- |"]
    lines += [f"| {key} | {_cell(text)} |" for key, text in table.sources.items()]
    return "\n".join(lines) + "\n"


def _groups(table: CapabilityTable) -> dict[tuple[str, str, str], list[Capability]]:
    groups: dict[tuple[str, str, str], list[Capability]] = {}
    for row in table.rows:
        groups.setdefault((row.provider, row.endpoint, row.mode), []).append(row)
    return groups


def _group_lines(rows: list[Capability]) -> list[str]:
    lines = ["| fact | models | value | source | date |", "| --- | --- | --- | --- | --- |"]
    for field in fields(Capability):
        if field.name in _IDENTITY:
            continue
        by_fact: dict[str, list[str]] = {}
        for row in rows:
            fact = row.facts().get(field.name)
            if fact is not None:
                by_fact.setdefault(_fact_cells(fact), []).append(f"`{row.model}`")
        for cells, models in by_fact.items():
            named = "all" if len(models) == len(rows) else ", ".join(models)
            lines.append(f"| {_TITLES[field.name]} | {named} | {cells} |")
    return lines


def _fact_cells(fact: Fact[Any]) -> str:
    note = f" ({fact.note})" if fact.note else ""
    return f"{_cell(_text(fact.value) + note)} | {fact.source} | {fact.date}"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return "; ".join(f"`{name}`: {_text(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return ", ".join(f"`{inner}`" for inner in value)
    if is_dataclass(value) and not isinstance(value, type):
        known = {name: inner for name, inner in asdict(value).items() if inner is not None}
        return "; ".join(
            f"{name.replace('_', ' ')} {_text(inner)}" for name, inner in known.items()
        )
    return str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
