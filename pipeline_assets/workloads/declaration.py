"""What a workload has to be before anything is done under it.

Belongs here: checking what a folder's `load()` gives. Does not belong here: finding the folder
(`registry.py`), the three rules of admission (`admission.py`), and whether its rules are any good.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, get_args

from pipeline_assets.workloads.workload import (
    FIRST_ACCEPTANCE,
    FIRST_PROMPT,
    Acceptance,
    Admission,
    BatchRule,
    Kept,
    PublishedField,
    Redaction,
    Repair,
    Rule,
    Severity,
    Workload,
)

_MEMBER = re.compile(r"[a-z][a-z0-9_]{0,62}")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_ROLES = ("title", "identifiers", "description", "language")
_LONE_ROLES = ("title", "language")
_CALLED = (
    "check_answer",
    "echoed",
    "decode",
    "baseline",
    "canary",
    "largest_canary",
    "wrong_in_canary",
    "correct",
)
_ECHO = "document"


def problem_of(made: object, name: str) -> str | None:
    """The first thing that is wrong with what a folder's `load()` gave; None where nothing is.

    Args:
        made: what it gave.
        name: the folder's name.
    """
    if not isinstance(made, Workload):
        return f"load() gave a {type(made).__name__}, expected a Workload"
    return next(_problems(made, name), None)


def _problems(made: Workload, name: str) -> Iterator[str]:
    if made.name != name:
        yield f"it calls itself {made.name!r}, expected the name of its folder, {name!r}"
    if not _is_count(made.schema_version):
        yield f"its schema_version is {made.schema_version!r}, expected a whole number from 1 on"
    yield from _of_fields(made.fields)
    yield from _of_admission(made.admission)
    yield from _of_prompts(made.prompts)
    yield from _of_output_schema(made)
    yield from _of_acceptances(made.acceptances)
    yield from (
        f"its {one} cannot be called" for one in _CALLED if not callable(getattr(made, one))
    )
    if made.identical_duplicates not in ("count_once", "distrust"):
        yield (
            f"its identical_duplicates is {made.identical_duplicates!r}, expected 'count_once' or "
            "'distrust'"
        )
    if made.redaction is not None and not isinstance(made.redaction, Redaction):
        yield f"its redaction is a {type(made.redaction).__name__}, expected a Redaction or None"


def _of_fields(fields: Any) -> Iterator[str]:
    # Late, since that module finds workloads by the registry, which asks this one.
    from pipeline_assets.workloads.fields import RESERVED, STATUS

    if not isinstance(fields, tuple) or not fields:
        yield "its fields are empty, expected a tuple of at least one PublishedField"
        return
    for one in fields:
        if not isinstance(one, PublishedField):
            yield f"its fields hold a {type(one).__name__}, expected PublishedFields"
            return
        if not isinstance(one.name, str) or _MEMBER.fullmatch(one.name) is None:
            yield f"it has a field {one.name!r}, expected small letters, digits and _"
        elif one.name == _ECHO or one.name in RESERVED:
            yield f"it has a field {one.name!r}, a name that exported rows use for themselves"
        if not isinstance(one.label, str) or not one.label.strip():
            yield f"its field {one.name!r} has no label"
    names = {one.name for one in fields}
    for name in sorted(name for name in names if name.removesuffix(STATUS) in names - {name}):
        yield f"it has a field {name!r}, which is a column of {name.removesuffix(STATUS)!r} already"
    yield from _of_roles(fields)


def _of_roles(fields: tuple[PublishedField, ...]) -> Iterator[str]:
    for name in _repeated(one.name for one in fields):
        yield f"it has the field {name!r} twice"
    for one in fields:
        if one.search not in (*_ROLES, None):
            yield f"its field {one.name!r} has the search role {one.search!r}, which there is not"
        elif one.search in _LONE_ROLES and one.many:
            yield f"its field {one.name!r} is a list, and the search role {one.search} is for one"
    for role in _repeated(one.search for one in fields if one.search is not None):
        yield f"several of its fields have the search role {role!r}, expected one at most"


def _of_admission(admission: Any) -> Iterator[str]:
    if not isinstance(admission, Admission):
        yield f"its admission is a {type(admission).__name__}, expected an Admission"
        return
    for rule, kept in vars(admission).items():
        if not isinstance(kept, Kept) or not isinstance(kept.because, str):
            yield f"its admission says {rule} without Kept(holds, because)"
        elif not isinstance(kept.holds, bool):
            yield f"its admission says {rule} with {kept.holds!r}, expected True or False"


def _of_prompts(prompts: Any) -> Iterator[str]:
    if not isinstance(prompts, Mapping) or FIRST_PROMPT not in prompts:
        yield f"it has no prompt {FIRST_PROMPT!r}"
        return
    for name, data in prompts.items():
        if _NAME.fullmatch(str(name)) is None:
            yield f"it has a prompt {name!r}, expected small letters, digits, - and _"
        if not isinstance(data, bytes) or not data.strip():
            yield f"its prompt {name!r} is empty, or not the bytes of a file"


def _of_output_schema(made: Workload) -> Iterator[str]:
    if not isinstance(made.output_schema, bytes):
        yield "its output_schema is not the bytes of a file"
        return
    try:
        schema = json.loads(made.output_schema)
    except ValueError:
        yield "its output_schema is not JSON"
        return
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or _ECHO not in properties:
        yield f"its output_schema has no property {_ECHO!r}, by which an answer names its document"
        return
    missing = [
        one.name
        for one in made.fields
        if isinstance(one, PublishedField) and one.name not in properties
    ]
    if missing:
        yield f"its output_schema has no property {', '.join(missing)}, which its fields name"


def _of_acceptances(acceptances: Any) -> Iterator[str]:
    if not isinstance(acceptances, Mapping) or FIRST_ACCEPTANCE not in acceptances:
        yield f"it has no acceptance {FIRST_ACCEPTANCE!r}"
        return
    for name, acceptance in acceptances.items():
        if _NAME.fullmatch(str(name)) is None:
            yield f"it has an acceptance {name!r}, expected small letters, digits, - and _"
        if not isinstance(acceptance, Acceptance):
            yield f"its acceptance {name!r} is a {type(acceptance).__name__}"
            continue
        yield from (f"its acceptance {name!r} {told}" for told in _of_rules(acceptance))


def _of_rules(acceptance: Acceptance) -> Iterator[str]:
    if not isinstance(acceptance.thresholds, bytes):
        yield "has thresholds that are not the bytes of a file"
    rules = (*acceptance.rules, *acceptance.batch_rules)
    if not rules:
        yield "has no rule, so that everything would be published unseen"
    parts: list[tuple[tuple[Any, ...], type[Any], Callable[[Any], Any]]] = [
        (acceptance.rules, Rule, lambda rule: rule.check),
        (acceptance.batch_rules, BatchRule, lambda rule: rule.check),
        (acceptance.repairs, Repair, lambda repair: repair.mend),
    ]
    for entries, kind, act in parts:
        for entry in entries:
            if not isinstance(entry, kind):
                yield f"has a {type(entry).__name__} where a {kind.__name__} is expected"
                return
            if not _is_count(entry.version) or not callable(act(entry)):
                yield f"has a {kind.__name__} {entry.id!r} without a version or a function"
    for name in _repeated(rule.id for rule in rules):
        yield f"has the rule {name!r} twice"
    for rule in rules:
        if rule.severity not in get_args(Severity):
            yield f"has the rule {rule.id!r} with the severity {rule.severity!r}"


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, times in Counter(names).items() if times > 1]
