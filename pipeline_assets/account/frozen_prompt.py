"""Which prompt a version was asked with: by name from its frozen spec, by digest where proven.

Belongs here: the name, and the proof. Does not belong here: prompts themselves
(`pipeline_assets/workloads`).

The ledger keeps the digest of a version as a whole. A prompt that is installed is the one that was
used if the version, put together from what is installed, has that digest still.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from partitions.processing_version import Spec, SpecDisagrees, digest
from pipeline_assets.recovery.retry import REPAIR_PROMPT
from pipeline_assets.versions import UnknownAcceptance, UnknownPrompt, digested_parts
from pipeline_assets.workloads.registry import UnknownWorkload, load_workload
from pipeline_assets.workloads.workload import FIRST_PROMPT
from resources.settings import Settings


class PromptUsed(NamedTuple):
    """Name and SHA-256 of a prompt; the digest is None where it is not proven."""

    name: str | None
    digest: str | None


def prompt_used(
    settings: Settings,
    workload: str,
    spec: Mapping[str, Any],
    frozen_digest: str,
    recovery_path: str,
) -> PromptUsed:
    """The prompt that an attempt was asked with.

    Args:
        settings: where one's own workloads are.
        workload: the version's workload, which may have been taken away since.
        spec: the version's spec, as the ledger has it frozen.
        frozen_digest: of the version.
        recovery_path: of the attempt: a repair has a prompt of its own.

    Raises:
        WorkloadNamedTwice, InvalidWorkload: the workload is there and unusable.
    """
    name = _name(spec, recovery_path)
    try:
        installed = load_workload(workload, settings.workload_folder)
        declared = Spec.model_validate(spec)
        proven = digest(declared, digested_parts(declared, installed)) == frozen_digest
    except (UnknownWorkload, UnknownPrompt, UnknownAcceptance, SpecDisagrees, ValidationError):
        return PromptUsed(name, None)
    if not proven or name not in installed.prompts:
        return PromptUsed(name, None)
    return PromptUsed(name, hashlib.sha256(installed.prompts[name]).hexdigest())


def _name(spec: Mapping[str, Any], recovery_path: str) -> str:
    request = spec.get("request") or {}
    recovery = request.get("recovery") or {}
    if recovery_path == REPAIR_PROMPT and recovery.get("repair_prompt"):
        return str(recovery["repair_prompt"])
    return str(request.get("prompt", FIRST_PROMPT))
