"""A processing version: the spec model, its files, its key grammar and its digest.

Belongs here: everything that decides which version a run is keyed by. Does not belong here:
freezing a digest in the ledger (`resources/ledger/versions.py`), Dagster's partitions
(`definition.py`), and operating settings (budgets, concurrency, promotion), which may change
without a new version and are never part of a digest.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import rfc8785
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from resources.strict_yaml import YamlUnreadable, read_yaml

KEY_PATTERN = r"[a-z0-9][a-z0-9._-]{0,62}"
"""Dagster accepts any text as a dynamic partition key, and breaks later on some of it."""

PACKAGED_SPECS = Path(__file__).parent / "versions"


class MalformedVersionKey(ValueError):
    """A text that cannot be the key of a processing version."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"{key!r} is not a processing version key: expected 1 to 63 lower-case letters, "
            "digits, '.', '_' or '-', starting with a letter or digit and without '..', "
            "for example manuals-baseline-2"
        )


class UnknownVersion(LookupError):
    """A well-formed key that no spec file has."""

    def __init__(self, key: str, known: list[str], folders: list[Path]) -> None:
        places = ", ".join(folder.name for folder in folders)
        super().__init__(
            f"there is no processing version {key!r} (known: {', '.join(known) or 'none'}; "
            f"looked in {places}). Check the key, or add {key}.yaml with that key."
        )


class InvalidSpec(ValueError):
    """A spec file that cannot be used, with the name of the file and of the field."""

    def __init__(self, file: Path, problem: str) -> None:
        super().__init__(f"{file.name}: {problem}")


_CAME_LATER = frozenset({"acceptance", "endpoint", "repairs", "request"})


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ParserSpec(_Strict):
    """The part of parsing that decides the text.

    Attributes:
        version: the parser version that the spec was written for.
        ocr_pages: at most so many pages of a document go through text recognition.
        max_pages: pages beyond this are not read.
    """

    version: str
    ocr_pages: int = Field(ge=0, le=500)
    max_pages: int = Field(ge=1, le=20_000)


class RecoverySpec(_Strict):
    """What another attempt may do differently, once each; what is absent is not allowed.

    Attributes:
        output_tokens: an answer that was cut is asked for again with room for so many tokens.
        repair_prompt: an answer that was not usable JSON is asked for again with this prompt of
            the workload.
        document_tokens: a request that was too large for the model is made again with at most so
            many tokens of the document's text.
    """

    output_tokens: int | None = Field(default=None, ge=16, le=300_000)
    repair_prompt: str | None = Field(default=None, pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")
    document_tokens: int | None = Field(default=None, ge=100, le=2_000_000)


class RequestSpec(_Strict):
    """How a document is asked about, where it leaves the house.

    Attributes:
        prompt: name of the workload's prompt.
        document_tokens: at most so many tokens of a document's text are sent (an estimate);
            it is cut at a page's end and the cut is recorded.
        output_tokens: at most so many tokens may be answered.
        redaction: the workload's redaction step with the version that is meant; none if absent.
        tail: what becomes of records too few for the provider's smallest batch: joined with the
            batch before, answered online, or refused.
        window_hours: how long the provider may take, where it lets one choose.
        recovery: what another attempt may do differently; nothing if absent.
    """

    prompt: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")
    document_tokens: int = Field(ge=100, le=2_000_000)
    output_tokens: int = Field(ge=16, le=300_000)
    redaction: dict[str, int] | None = Field(default=None, min_length=1, max_length=1)
    tail: Literal["merge", "online", "refuse"] = "merge"
    window_hours: int = Field(default=24, ge=1, le=168)
    recovery: RecoverySpec | None = None

    @model_validator(mode="after")
    def _recovery_is_a_change(self) -> RequestSpec:
        recovery = self.recovery
        if recovery is None:
            return self
        if recovery.output_tokens is not None and recovery.output_tokens <= self.output_tokens:
            raise ValueError("recovery.output_tokens must be above output_tokens")
        if recovery.document_tokens is not None and (
            recovery.document_tokens >= self.document_tokens
        ):
            raise ValueError("recovery.document_tokens must be below document_tokens")
        if recovery.repair_prompt == self.prompt:
            raise ValueError("recovery.repair_prompt must be another prompt than prompt")
        return self


class Spec(_Strict):
    """One processing version as its file declares it.

    Attributes:
        key: the version's name, also the Dagster partition key.
        description: one line for people; not part of the digest.
        workload: what is extracted.
        operation: the kind of work on a record.
        provider: who answers.
        mode: `embedded` answers inside the run; the others are a provider's own modes.
        model: the provider's name of the model, or the version of the rules.
        parameters: whatever the model is asked with besides the prompt.
        schema_version: the version of the output schema.
        parser: the parsing that the requests are made from.
        rules: every acceptance rule with the version that is meant.
        acceptance: name of the workload's rules and thresholds; its first ones if absent.
        repairs: every repair of an answer's form with the version that is meant; none if absent.
        batch_records: at most so many records in a batch, and so in a shard.
        endpoint: which of the provider's endpoints; its usual one if absent.
        request: how a document is asked about; every provider but the built-in one needs it.
    """

    key: str
    description: str = ""
    workload: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    operation: str = Field(default="extract", pattern=r"^[a-z][a-z0-9_]*$")
    provider: Literal["baseline", "openai", "anthropic", "gemini", "bedrock"]
    mode: Literal["embedded", "batch", "online"]
    model: str = Field(min_length=1)
    parameters: dict[str, Any] = {}
    schema_version: int = Field(ge=1)
    parser: ParserSpec
    rules: dict[str, int]
    acceptance: str | None = Field(default=None, pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")
    repairs: dict[str, int] | None = Field(default=None, min_length=1)
    batch_records: int = Field(default=25_000, ge=1, le=50_000)
    endpoint: str | None = None
    request: RequestSpec | None = None

    @model_validator(mode="after")
    def _provider_and_mode_fit(self) -> Spec:
        embedded = self.provider == "baseline"
        if embedded != (self.mode == "embedded"):
            wanted = "embedded" if embedded else "batch or online"
            raise ValueError(
                f"provider {self.provider!r} has no mode {self.mode!r}; expected {wanted}"
            )
        if embedded and (self.request is not None or self.endpoint is not None):
            raise ValueError(
                "the built-in provider asks nobody: leave out 'request' and 'endpoint'"
            )
        if not embedded and self.request is None:
            raise ValueError(
                f"provider {self.provider!r} needs 'request' with prompt, document_tokens and "
                "output_tokens"
            )
        return self

    def declared(self) -> dict[str, Any]:
        """The spec as plain values, as it is digested and kept.

        Fields that came later are left out where a spec does not use them, so that the digest of
        a version that was frozen before stays what it was.
        """
        content = self.model_dump()
        if content["request"] is not None and content["request"]["recovery"] is None:
            del content["request"]["recovery"]
        return {
            name: value
            for name, value in content.items()
            if not (name in _CAME_LATER and value is None)
        }

    @field_validator("key")
    @classmethod
    def _key_follows_grammar(cls, key: str) -> str:
        return check_key(key)

    @field_validator("parameters")
    @classmethod
    def _parameters_have_one_canonical_form(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        try:
            rfc8785.dumps(parameters)
        except rfc8785.CanonicalizationError as error:
            raise ValueError(f"has no canonical JSON ({error}); use text for it") from error
        except RecursionError as error:
            raise ValueError("contains itself, or is nested too deeply") from error
        return parameters


@dataclass(frozen=True)
class DigestedParts:
    """The bytes and versions of a workload that a processing version freezes.

    Attributes:
        prompt: the prompt template's bytes.
        output_schema: the output schema's bytes.
        thresholds: the thresholds' bytes.
        rules: rule id to the version that the code implements, of the acceptance that is meant.
        parser_version: the parser that the code implements.
        schema_version: the version of the output schema that the code implements.
        redactions: redaction step to the version that the code implements.
        repairs: repair of an answer's form to the version that the code implements.
        repair_prompt: the bytes of the prompt that mends an answer; None where none is declared.
    """

    prompt: bytes
    output_schema: bytes
    thresholds: bytes
    rules: Mapping[str, int]
    parser_version: str
    schema_version: int
    redactions: Mapping[str, int] = field(default_factory=dict)
    repairs: Mapping[str, int] = field(default_factory=dict)
    repair_prompt: bytes | None = None


class SpecDisagrees(ValueError):
    """A spec declares rule, schema or parser versions that the installed code does not have."""

    def __init__(self, key: str, problems: list[str]) -> None:
        super().__init__(
            f"processing version {key!r} cannot be used with this release: {'; '.join(problems)}. "
            "Results would not be what the version promises: install the release that has these "
            "versions, or write a new version with its own key."
        )


def check_key(key: str) -> str:
    """`key`, if it is a processing version key.

    Raises:
        MalformedVersionKey: it is not.
    """
    if not re.fullmatch(KEY_PATTERN, key) or ".." in key:
        raise MalformedVersionKey(key)
    return key


def read_spec(file: Path) -> Spec:
    """The spec in a YAML file; the file is named like its key.

    Raises:
        InvalidSpec: not YAML, an unknown or missing field, a wrong type, or another name.
    """
    try:
        content = read_yaml(file)
    except YamlUnreadable as error:
        raise InvalidSpec(file, error.problem) from error
    if not isinstance(content, dict):
        raise InvalidSpec(file, "expected a mapping of fields, found something else")
    try:
        spec = Spec.model_validate(content)
    except ValidationError as error:
        raise InvalidSpec(file, _explain(error)) from error
    if file.stem != spec.key:
        raise InvalidSpec(file, f"holds key {spec.key!r}; name the file {spec.key}.yaml")
    return spec


def list_specs(folders: list[Path]) -> dict[str, Path]:
    """Key to file of every spec in the folders; a later folder may add keys, not replace them.

    Raises:
        InvalidSpec: two folders hold the same key, or a folder cannot be listed.
    """
    found: dict[str, Path] = {}
    for folder in folders:
        for file in _spec_files(folder):
            if file.stem in found:
                raise InvalidSpec(file, f"another folder already has a version {file.stem!r}")
            found[file.stem] = file
    return found


def find_spec(key: str, folders: list[Path]) -> Spec:
    """The spec of a key.

    Raises:
        MalformedVersionKey: the key cannot be one.
        UnknownVersion: no folder has it.
        InvalidSpec: its file cannot be used.
    """
    check_key(key)
    files = list_specs(folders)
    if key not in files:
        raise UnknownVersion(key, sorted(files), folders)
    return read_spec(files[key])


def digest(spec: Spec, parts: DigestedParts) -> str:
    """SHA-256 over the canonical JSON (RFC 8785) of everything that decides a result.

    The description is for people and stays out; so do operating settings, which a spec cannot
    hold at all.

    Raises:
        SpecDisagrees: the code has other rule, schema or parser versions than the spec declares.
    """
    problems = _disagreements(spec, parts)
    if problems:
        raise SpecDisagrees(spec.key, problems)
    declared = {name: value for name, value in spec.declared().items() if name != "description"}
    repair = parts.repair_prompt
    document = {
        "spec": declared,
        **({} if repair is None else {"repair_prompt": hashlib.sha256(repair).hexdigest()}),
        "prompt": hashlib.sha256(parts.prompt).hexdigest(),
        "output_schema": hashlib.sha256(parts.output_schema).hexdigest(),
        "thresholds": hashlib.sha256(parts.thresholds).hexdigest(),
    }
    return hashlib.sha256(rfc8785.dumps(document)).hexdigest()


def _spec_files(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.suffix == ".yaml")
    except OSError as error:
        raise InvalidSpec(
            folder,
            f"cannot be listed ({error.strerror}); expected a folder of processing versions: "
            "correct TALLYBOOK_SPECS",
        ) from error


def _disagreements(spec: Spec, parts: DigestedParts) -> list[str]:
    problems = []
    if spec.parser.version != parts.parser_version:
        problems.append(
            f"parser {spec.parser.version} is declared, {parts.parser_version} is installed"
        )
    if spec.schema_version != parts.schema_version:
        problems.append(
            f"output schema {spec.schema_version} is declared, {parts.schema_version} is installed"
        )
    for kind, wanted, known in (
        ("rule", spec.rules, parts.rules),
        ("repair", spec.repairs or {}, parts.repairs),
    ):
        for name in sorted(set(wanted) | set(known)):
            declared, installed = wanted.get(name), known.get(name)
            if declared != installed:
                problems.append(
                    f"{kind} {name} is declared as {declared or 'absent'} and installed as "
                    f"{installed or 'absent'}"
                )
    declared_redaction = (spec.request.redaction if spec.request else None) or {}
    for step, version in declared_redaction.items():
        installed = parts.redactions.get(step)
        if installed != version:
            problems.append(
                f"redaction {step} is declared as {version} and installed as "
                f"{installed or 'absent'}"
            )
    return problems


_MODELS: Mapping[str | int, type[BaseModel]] = {"parser": ParserSpec, "request": RequestSpec}


def _model_of(place: tuple[int | str, ...]) -> type[BaseModel]:
    if place[:2] == ("request", "recovery") and len(place) > 2:
        return RecoverySpec
    return _MODELS.get(place[0], Spec) if place else Spec


def _explain(error: ValidationError) -> str:
    lines = []
    for problem in error.errors(include_url=False, include_input=False):
        name = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            known = ", ".join(_model_of(problem["loc"]).model_fields)
            lines.append(f"unknown field {name!r} (known: {known})")
        elif problem["type"] == "missing":
            lines.append(f"field {name!r} is missing")
        elif not name:
            lines.append(problem["msg"])
        else:
            lines.append(f"field {name!r}: {problem['msg']}")
    return "; ".join(lines)
