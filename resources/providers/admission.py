"""May this job be sent? A planned job held against a row of the capability table.

Belongs here: the rules, each of which names the row, its source and its date when it refuses.
Does not belong here: the table (`capabilities.py`), the dialects (`schema_dialects.py`), cutting
records into jobs (`splitting.py`), and making a job smaller: nothing is trimmed to pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from resources.providers.capabilities import Capability, Fact
from resources.providers.port import ProviderError
from resources.providers.schema_dialects import check_schema

DIALECT_PARAMETER = "schema_dialect"
"""Our own parameter, where an endpoint takes several dialects; it is never sent."""

TOOL_PARAMETERS = frozenset({"tools", "toolConfig"})
"""What a request that brings tools says, over all providers."""


@dataclass(frozen=True)
class PlannedJob:
    """What is known of a job before it is sent.

    Attributes:
        records: requests in it.
        size: bytes of its request file.
        largest_line: bytes of its longest request line.
        output_tokens: what each answer may have, as asked.
        largest_prompt_tokens: of its longest prompt, the provider's safety factor included.
        prompt_tokens: of all its prompts together; None where nobody counted.
        custom_ids_ok: every custom id has the row's form.
        custom_ids_unique: no custom id is there twice.
        parameters: what the spec declares besides; keys are the provider's own body fields.
        schema: the output schema; None where no structured output is asked for.
        window_hours: what the provider is asked to finish in; None for online calls.
    """

    records: int
    size: int
    largest_line: int
    output_tokens: int
    largest_prompt_tokens: int
    prompt_tokens: int | None = None
    custom_ids_ok: bool = True
    custom_ids_unique: bool = True
    parameters: Mapping[str, Any] = field(default_factory=dict)
    schema: Mapping[str, Any] | None = None
    window_hours: int | None = None


@dataclass(frozen=True)
class Refusal:
    """One reason why a job may not be sent; its text is the message for people.

    Attributes:
        rule: the rule's name, the same as the fact's field.
        found: what the job has.
        allowed: what the row allows.
        row: the row's name.
        source: where the row has it from.
        date: when it was so.
    """

    rule: str
    found: str
    allowed: str
    row: str
    source: str
    date: str

    def __str__(self) -> str:
        return (
            f"{self.rule}: found {self.found}, allowed {self.allowed} "
            f"(row {self.row}; source {self.source}, {self.date})"
        )


class JobRefused(ProviderError):
    """A job that its provider would not take; nothing was sent.

    Attributes:
        refusals: every reason.
    """

    def __init__(self, refusals: Iterable[Refusal]) -> None:
        self.refusals = tuple(refusals)
        reasons = "".join(f"\n- {refusal}" for refusal in self.refusals)
        super().__init__(
            f"the job was refused before anything was sent:{reasons}\n"
            "Nothing is trimmed to pass: change the version's spec or the operating settings, or "
            "correct the row in resources/providers/capabilities.yaml with its source."
        )


def check_job(capability: Capability, job: PlannedJob) -> list[Refusal]:
    """Every reason why the job may not be sent; empty where it may.

    A `probe` in the row refuses nothing: the canary's request is the probe.
    """
    return [
        *_of_sizes(capability, job),
        *_of_custom_ids(capability, job),
        *_of_parameters(capability, job),
        *_of_schema(capability, job),
        *_of_window(capability, job),
    ]


def require_admitted(capability: Capability, job: PlannedJob) -> None:
    """Let a job pass, or say everything that is against it.

    Raises:
        JobRefused: with every reason.
    """
    refusals = check_job(capability, job)
    if refusals:
        raise JobRefused(refusals)


def custom_ids_fit(capability: Capability, custom_ids: Iterable[str]) -> tuple[bool, bool]:
    """Whether all ids have the row's form, and whether none is there twice."""
    fact = capability.custom_id_pattern
    pattern = re.compile(".*" if fact is None else fact.value, re.DOTALL)
    fit, seen, count = True, set[str](), 0
    for custom_id in custom_ids:
        fit = fit and pattern.fullmatch(custom_id) is not None
        seen.add(custom_id)
        count += 1
    return fit, len(seen) == count


def _refusal(
    capability: Capability, rule: str, fact: Fact[Any], found: str, allowed: str
) -> Refusal:
    return Refusal(rule, found, allowed, capability.row, fact.source, fact.date)


def _of_sizes(capability: Capability, job: PlannedJob) -> Iterator[Refusal]:
    together = job.largest_prompt_tokens + job.output_tokens
    at_most = {
        "max_records": (job.records, "records in one job"),
        "max_bytes": (job.size, "bytes in one job"),
        "max_line_bytes": (job.largest_line, "bytes in one request"),
        "enqueued_tokens": (job.prompt_tokens, "prompt tokens waiting at one time"),
        "output_tokens_max": (job.output_tokens, "tokens for one answer"),
        "input_tokens_max": (job.largest_prompt_tokens, "tokens in one prompt"),
        "context_tokens": (together, "tokens in prompt and answer together"),
    }
    facts = capability.facts()
    for rule, (found, what) in at_most.items():
        fact = facts.get(rule)
        if fact is not None and found is not None and found > fact.value:
            yield _refusal(capability, rule, fact, f"{found} {what}", f"at most {fact.value}")
    least = capability.min_records
    if least is not None and job.records < least.value:
        found = f"{job.records} records in one job"
        yield _refusal(capability, "min_records", least, found, f"at least {least.value}")


def _of_custom_ids(capability: Capability, job: PlannedJob) -> Iterator[Refusal]:
    fact = capability.custom_id_pattern
    if fact is None:
        return
    if not job.custom_ids_ok:
        found, allowed = "a custom id of another form", f"only {fact.value}"
        yield _refusal(capability, "custom_id_pattern", fact, found, allowed)
    if not job.custom_ids_unique:
        found, allowed = "a custom id that is there twice", "each only once"
        yield _refusal(capability, "custom_id_unique", fact, found, allowed)


def _of_parameters(capability: Capability, job: PlannedJob) -> Iterator[Refusal]:
    refused, allowed = capability.parameters_refused, capability.parameters_allowed
    tools = capability.tools
    for name in job.parameters:
        found = f"the parameter {name!r}"
        if refused is not None and name in refused.value:
            reason = f"not at all: {refused.value[name]}"
            yield _refusal(capability, "parameters_refused", refused, found, reason)
        elif name in TOOL_PARAMETERS and tools is not None and tools.value is False:
            yield _refusal(capability, "tools", tools, found, "no tools")
        elif allowed is not None and name not in allowed.value:
            names = f"only {', '.join(allowed.value)}"
            yield _refusal(capability, "parameters_allowed", allowed, found, names)


def _of_schema(capability: Capability, job: PlannedJob) -> Iterator[Refusal]:
    if job.schema is None:
        return
    offered = capability.structured_output
    if offered is not None and offered.value is False:
        found, allowed = "an output schema", "no structured output"
        yield _refusal(capability, "structured_output", offered, found, allowed)
        return
    dialects, limits = capability.schema_dialects, capability.schema_limits
    if dialects is None:
        return
    dialect = job.parameters.get(DIALECT_PARAMETER, dialects.value[0])
    if dialect not in dialects.value:
        found, allowed = f"the schema dialect {dialect!r}", f"only {', '.join(dialects.value)}"
        yield _refusal(capability, "schema_dialects", dialects, found, allowed)
        return
    in_form = check_schema(job.schema, dialect)
    for problem in in_form:
        found, allowed = f"in the schema {problem}", f"only the dialect {dialect}"
        yield _refusal(capability, "schema", dialects, found, allowed)
    if limits is not None and not in_form:
        for problem in check_schema(job.schema, dialect, limits.value):
            found, allowed = f"in the schema {problem}", "no larger schema"
            yield _refusal(capability, "schema_limits", limits, found, allowed)


def _of_window(capability: Capability, job: PlannedJob) -> Iterator[Refusal]:
    fact = capability.window_hours
    if fact is None or job.window_hours is None:
        return
    least, most = fact.value.at_least, fact.value.at_most
    if not least <= job.window_hours <= most:
        found = f"a window of {job.window_hours} hours"
        allowed = f"{least} hours" if least == most else f"{least} to {most} hours"
        yield _refusal(capability, "window_hours", fact, found, allowed)
