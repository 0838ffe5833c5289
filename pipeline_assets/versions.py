"""Opening a processing version for work: its spec, its workload, its frozen row.

Belongs here: putting the three together. Does not belong here: the digest
(`partitions/processing_version.py`) and the freezing (`resources/ledger/versions.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import rfc8785

from partitions.processing_version import DigestedParts, Spec, digest, find_spec
from pipeline_assets.workloads.admission import require_admitted
from pipeline_assets.workloads.registry import load_workload
from pipeline_assets.workloads.workload import (
    FIRST_ACCEPTANCE,
    FIRST_PROMPT,
    Acceptance,
    Redaction,
    Workload,
)
from resources.context import Context
from resources.ledger.versions import FrozenVersion, VersionNotActive, find, freeze
from resources.parser_settings import PARSER_VERSION


@dataclass(frozen=True)
class OpenVersion:
    """A version that work can be done under."""

    spec: Spec
    workload: Workload
    frozen: FrozenVersion

    @property
    def key(self) -> str:
        """The version's key, also the partition key."""
        return self.spec.key

    @property
    def held(self) -> str | None:
        """Why nothing new may be submitted under it; None where it may."""
        return self.frozen.state_reason if self.frozen.state == "held" else None

    @property
    def acceptance(self) -> Acceptance:
        """The rules and thresholds that its answers are judged by."""
        return _acceptance(self.spec, self.workload)

    @property
    def version_no(self) -> int:
        """The version's number in the ledger."""
        return self.frozen.version_no


class UnknownPrompt(LookupError):
    """A spec names a prompt that its workload does not have."""

    def __init__(self, key: str, prompt: str, known: list[str]) -> None:
        super().__init__(
            f"{key}.yaml names the prompt {prompt!r}; its workload has {', '.join(known)}. Correct "
            "`request`, or add the prompt to the workload."
        )


class UnknownAcceptance(LookupError):
    """A spec names rules and thresholds that its workload does not have."""

    def __init__(self, key: str, acceptance: str, known: list[str]) -> None:
        super().__init__(
            f"{key}.yaml names the acceptance {acceptance!r}; its workload has {', '.join(known)}. "
            "Correct the field `acceptance`, or add its thresholds and rules to the workload."
        )


def prompt_of(version: OpenVersion) -> bytes:
    """The bytes of the prompt template that a version is asked with."""
    return _prompt(version.spec, version.workload)


def repair_prompt_of(version: OpenVersion) -> bytes | None:
    """The bytes of the prompt that a version mends unusable answers with; None if it has none."""
    return _repair_prompt(version.spec, version.workload)


def redaction_of(version: OpenVersion) -> Redaction | None:
    """What is done to a text before it leaves the house: only what the spec declares."""
    declared = version.spec.request.redaction if version.spec.request else None
    return version.workload.redaction if declared else None


def digested_parts(spec: Spec, workload: Workload) -> DigestedParts:
    """What a version of this workload freezes besides its own spec.

    Raises:
        UnknownPrompt: the spec names a prompt that the workload does not have.
        UnknownAcceptance: the spec names an acceptance that the workload does not have.
    """
    redaction = workload.redaction
    acceptance = _acceptance(spec, workload)
    return DigestedParts(
        prompt=_prompt(spec, workload),
        output_schema=workload.output_schema,
        thresholds=acceptance.thresholds,
        rules={rule.id: rule.version for rule in (*acceptance.rules, *acceptance.batch_rules)},
        parser_version=PARSER_VERSION,
        schema_version=workload.schema_version,
        redactions={} if redaction is None else {redaction.id: redaction.version},
        repairs={repair.id: repair.version for repair in acceptance.repairs},
        repair_prompt=_repair_prompt(spec, workload),
    )


def _acceptance(spec: Spec, workload: Workload) -> Acceptance:
    name = spec.acceptance or FIRST_ACCEPTANCE
    if name not in workload.acceptances:
        raise UnknownAcceptance(spec.key, name, sorted(workload.acceptances))
    return workload.acceptances[name]


def _prompt(spec: Spec, workload: Workload) -> bytes:
    return _named_prompt(
        spec, workload, FIRST_PROMPT if spec.request is None else spec.request.prompt
    )


def _repair_prompt(spec: Spec, workload: Workload) -> bytes | None:
    recovery = None if spec.request is None else spec.request.recovery
    if recovery is None or recovery.repair_prompt is None:
        return None
    return _named_prompt(spec, workload, recovery.repair_prompt)


def _named_prompt(spec: Spec, workload: Workload, name: str) -> bytes:
    if name not in workload.prompts:
        raise UnknownPrompt(spec.key, name, sorted(workload.prompts))
    return workload.prompts[name]


def look_at_version(context: Context, key: str) -> OpenVersion:
    """The version of `key` for a look alone: one that was never used is not frozen by it.

    Such a version has the number 0, which none in the ledger has.

    Raises:
        see `open_version`.
    """
    if find(context.ledger, key) is not None:
        return open_version(context, key)
    spec = find_spec(key, context.settings.spec_folders)
    workload = load_workload(spec.workload, context.settings.workload_folder)
    require_admitted(workload)
    found = digest(spec, digested_parts(spec, workload))
    return OpenVersion(
        spec, workload, FrozenVersion(0, spec.key, spec.workload, found, "active", "never used")
    )


def open_version(context: Context, key: str) -> OpenVersion:
    """The version of `key`, frozen in the ledger at first use.

    Raises:
        MalformedVersionKey: the key cannot be one.
        UnknownVersion: no spec file has the key.
        InvalidSpec: its file cannot be used.
        UnknownWorkload: its workload is not installed.
        WorkloadNamedTwice: one's own folder has a workload of a packaged one's name.
        InvalidWorkload: its workload cannot be used.
        NotAdmitted: its workload does not keep the three rules of admission.
        UnknownPrompt: it names a prompt that its workload does not have.
        UnknownAcceptance: it names an acceptance that its workload does not have.
        SpecDisagrees: it declares other rule, schema or parser versions than are installed.
        VersionChanged: it was frozen with another digest.
        VersionNotActive: it is retired. A held one can be opened: what is under way goes on, and
            only submitting asks for its state.
    """
    spec = find_spec(key, context.settings.spec_folders)
    workload = load_workload(spec.workload, context.settings.workload_folder)
    require_admitted(workload)
    frozen = freeze(
        context.ledger,
        key=spec.key,
        workload=spec.workload,
        digest=digest(spec, digested_parts(spec, workload)),
        spec=rfc8785.dumps(spec.declared()).decode(),
        cause=context.cause("first use", "open_version"),
    )
    if frozen.state == "retired":
        raise VersionNotActive(frozen.key, frozen.state, frozen.state_reason)
    return OpenVersion(spec, workload, frozen)
