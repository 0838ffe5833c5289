"""What each provider takes and gives, as a dated, sourced table: `capabilities.yaml`.

Belongs here: reading the table strictly and finding a row. Does not belong here: holding a job
against a row (`admission.py`), prices (`prices.py`), and what one account may do, which is an
operating setting.
"""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Hashable
from dataclasses import fields, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

import yaml
from pydantic import AfterValidator, ConfigDict, Field, PositiveInt, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from resources.providers.port import ProviderError
from resources.providers.schema_dialects import DIALECTS, SchemaLimits

Mode = Literal["batch", "online"]
Known = Literal["probe"] | bool
"""Yes, no, or not to be known without asking: `probe` means one request decides."""

TABLE = Path(__file__).with_name("capabilities.yaml")
_STRICT = ConfigDict(extra="forbid", strict=True)

T = TypeVar("T")


class BrokenCapabilityTable(ValueError):
    """A capability table that cannot be used, with the place of the first fault."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"the capability table cannot be used: {problem}")


class UnsupportedCombination(ProviderError):
    """No row of the table is about what was asked for."""

    def __init__(self, wanted: str, nearest: tuple[str, ...]) -> None:
        super().__init__(
            f"the capability table has no row for {wanted}. Nearest rows: {'; '.join(nearest)}. "
            "Choose a model, endpoint and mode that a row has, or add a row with its sources."
        )


@dataclass(frozen=True, config=_STRICT)
class Fact(Generic[T]):
    """One statement about a provider.

    Attributes:
        value: what is stated.
        source: key of the table's list of sources.
        date: when it was so, `2026-11` or `2026-10-21`.
        note: how the value is meant; empty where that is plain.
    """

    value: T
    source: Annotated[str, Field(min_length=1)]
    date: Annotated[str, Field(pattern=r"^20\d\d-(0[1-9]|1[0-2])(-([0-2]\d|3[01]))?$")]
    note: str = ""


@dataclass(frozen=True, config=_STRICT)
class Window:
    """Hours that one may ask a provider to finish in.

    Attributes:
        at_least: the shortest window, in hours.
        at_most: the longest; the same as the shortest where there is no choice.
    """

    at_least: PositiveInt
    at_most: PositiveInt


def _is_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is no regular expression ({error})") from error
    return text


def _is_dialect(name: str) -> str:
    if name not in DIALECTS:
        raise ValueError(f"{name!r} is no schema dialect; expected one of {', '.join(DIALECTS)}")
    return name


_Pattern = Annotated[str, AfterValidator(_is_pattern)]
_Dialect = Annotated[str, AfterValidator(_is_dialect)]
_Limit = Fact[PositiveInt] | None


@dataclass(frozen=True, config=_STRICT)
class Capability:
    """One row: a provider's endpoint in one mode, for the models that a pattern matches.

    A fact that is None is not known; nothing is refused for it.

    Attributes:
        provider: as in a spec.
        model: pattern of model names, `*` for any text.
        endpoint: as a `Wire` names it.
        mode: `batch` or `online`.
        max_records: requests in one job.
        min_records: requests in one job, at least.
        max_bytes: of one job's request file.
        max_line_bytes: of one request.
        custom_id_pattern: the whole of a custom id, as a regular expression.
        enqueued_tokens: prompt tokens that may wait at the provider at one time.
        jobs_in_flight: jobs that may be open at one time.
        creations_per_hour: jobs that may be created in an hour.
        output_tokens_max: tokens that one answer may be asked to have.
        input_tokens_max: tokens that one prompt may have.
        context_tokens: tokens of prompt and answer together.
        parameters_allowed: names that a spec's parameters may have; None where any is tried.
        parameters_refused: names that are refused, with the reason; stronger than the above.
        structured_output: whether answers can be held to a schema.
        schema_dialects: dialects that the endpoint takes, the usual one first.
        schema_limits: how large a schema may be.
        tools: whether tools can be used.
        window_hours: windows that one may ask for.
        deadline_hours: when the provider ends an unfinished job for certain.
        retention_hours: how long results can be fetched; `unlimited` where they are the caller's.
        cancel: what becomes of finished rows.
        file_format: how requests travel.
        input_by_reference: whether a request may refer to text that lies elsewhere.
        counts_live: whether a running job counts its finished rows.
        rate_limits: what else is limited, in words.
    """

    provider: str
    model: str
    endpoint: str
    mode: Mode
    max_records: _Limit = None
    min_records: _Limit = None
    max_bytes: _Limit = None
    max_line_bytes: _Limit = None
    custom_id_pattern: Fact[_Pattern] | None = None
    enqueued_tokens: _Limit = None
    jobs_in_flight: _Limit = None
    creations_per_hour: _Limit = None
    output_tokens_max: _Limit = None
    input_tokens_max: _Limit = None
    context_tokens: _Limit = None
    parameters_allowed: Fact[list[str]] | None = None
    parameters_refused: Fact[dict[str, str]] | None = None
    structured_output: Fact[Known] | None = None
    schema_dialects: Fact[list[_Dialect]] | None = None
    schema_limits: Fact[SchemaLimits] | None = None
    tools: Fact[Known] | None = None
    window_hours: Fact[Window] | None = None
    deadline_hours: _Limit = None
    retention_hours: Fact[PositiveInt | Literal["unlimited"]] | None = None
    cancel: Fact[str] | None = None
    file_format: Fact[str] | None = None
    input_by_reference: Fact[bool] | None = None
    counts_live: Fact[bool] | None = None
    rate_limits: Fact[str] | None = None

    @property
    def row(self) -> str:
        """The row's name, for messages."""
        return f"{self.provider} {self.model} {self.endpoint} {self.mode}"

    def facts(self) -> dict[str, Fact[Any]]:
        """What is known, by field."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Fact)}

    def with_setting(
        self, field: Literal["enqueued_tokens", "jobs_in_flight"], value: int, date: str
    ) -> Capability:
        """This row with a limit that an operator has set; it is named as such in refusals."""
        return replace(self, **{field: Fact[PositiveInt](value, "operating setting", date)})


@dataclass(frozen=True, config=_STRICT)
class CapabilityTable:
    """The whole table.

    Attributes:
        sources: key to what it stands for.
        rows: in the order of the file.
    """

    sources: dict[str, str]
    rows: tuple[Capability, ...]


class _Loader(yaml.SafeLoader):
    """Refuses a field that is given twice, and keeps dates as the text that they are."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise yaml.constructor.ConstructorError(
                None, None, f"field {twice!r} is given twice", node.start_mark
            )
        return super().construct_mapping(node, deep)


_Loader.add_constructor("tag:yaml.org,2002:timestamp", yaml.SafeLoader.construct_yaml_str)


def read_table(text: str) -> CapabilityTable:
    """The table in a YAML text.

    Raises:
        BrokenCapabilityTable: not of the form, a fact without source or date, an unknown field or
            source, a row twice.
    """
    try:
        content = yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader underneath
    except yaml.YAMLError as error:
        raise BrokenCapabilityTable(" ".join(str(error).split())) from error
    if not isinstance(content, dict):
        raise BrokenCapabilityTable("expected a mapping with 'sources' and 'rows'")
    # What only the rows refer to, as YAML anchors.
    content.pop("shared", None)
    try:
        # Through JSON, since only there does the strict mode make dataclasses out of mappings.
        table = TypeAdapter(CapabilityTable).validate_json(json.dumps(content))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BrokenCapabilityTable(f"{place or 'the root'}: {first['msg']}") from error
    _refuse_contradictions(table)
    return table


def _refuse_contradictions(table: CapabilityTable) -> None:
    seen: set[str] = set()
    for capability in table.rows:
        if capability.row in seen:
            raise BrokenCapabilityTable(f"the row {capability.row!r} is there twice")
        seen.add(capability.row)
        for name, fact in capability.facts().items():
            if fact.source not in table.sources:
                raise BrokenCapabilityTable(
                    f"{capability.row}: {name} names the source {fact.source!r}, which is not "
                    "under 'sources'"
                )


@cache
def packaged_table() -> CapabilityTable:
    """The table that comes with the package, read once.

    Raises:
        BrokenCapabilityTable: the file was damaged.
    """
    return read_table(TABLE.read_text(encoding="utf-8"))


def find_capability(
    provider: str,
    model: str,
    endpoint: str,
    mode: Mode,
    table: CapabilityTable | None = None,
) -> Capability:
    """The row for a model: of several that match, the one whose pattern says the most.

    Raises:
        UnsupportedCombination: no row matches; the message names the nearest ones.
    """
    rows = (table or packaged_table()).rows
    matching = [
        row
        for row in rows
        if (row.provider, row.endpoint, row.mode) == (provider, endpoint, mode)
        and fnmatchcase(model, row.model)
    ]
    if matching:
        return max(matching, key=lambda row: len(row.model.replace("*", "")))
    wanted = f"{provider} {model} {endpoint} {mode}"
    nearest = sorted(
        rows, key=lambda row: _nearness(row, provider, model, endpoint, mode), reverse=True
    )
    raise UnsupportedCombination(wanted, tuple(row.row for row in nearest[:3]))


def _nearness(
    row: Capability, provider: str, model: str, endpoint: str, mode: Mode
) -> tuple[bool, bool, float, bool, bool]:
    """How near a row is to what was asked for: the provider counts first, the mode last."""
    alike = difflib.SequenceMatcher(None, model, row.model).ratio()
    return (
        row.provider == provider,
        fnmatchcase(model, row.model),
        alike,
        row.endpoint == endpoint,
        row.mode == mode,
    )


if __name__ == "__main__":
    from resources.providers.capability_page import packaged_page

    sys.stdout.write(packaged_page())
