"""The acceptances of this workload: which rules judge its answers, with which thresholds.

Belongs here: putting rules, repairs and thresholds together under a name. Does not belong here:
any rule. An acceptance that a version was frozen with never changes: a new rule, or another
threshold, is a new acceptance, and so a new processing version.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from pipeline_assets.workloads.equipment_manuals.columns import value_columns
from pipeline_assets.workloads.equipment_manuals.rules import (
    catalogue_agrees,
    frame,
    identifier_kind,
    identifier_shape,
    identifier_whole,
    title_plausible,
    title_present,
)
from pipeline_assets.workloads.format_repair.repairs import REPAIRS
from pipeline_assets.workloads.rules import (
    answers_repeated,
    answers_shifted,
    description_supported,
    document_reference,
    evidence_on_page,
    evidence_stands,
    instructions_obeyed,
    language_agrees,
    language_quoted,
    mixed_scripts,
    placeholder_value,
    titles_shared,
    uncertain_field,
)
from pipeline_assets.workloads.workload import FIRST_ACCEPTANCE, Acceptance

_FOLDER = Path(__file__).parent


def acceptances() -> Mapping[str, Acceptance]:
    """Name → acceptance, read from the thresholds' files."""
    return {FIRST_ACCEPTANCE: _first(), "2": _second()}


def _first() -> Acceptance:
    thresholds = (_FOLDER / "thresholds.yaml").read_bytes()
    limits = yaml.safe_load(thresholds)
    return Acceptance(
        thresholds=thresholds,
        columns=value_columns(limits),
        rules=(
            frame.make_rule(limits),
            uncertain_field.RULE,
            document_reference.RULE,
            evidence_on_page.RULE,
            identifier_shape.make_rule(limits),
            language_agrees.RULE,
            title_present.RULE,
        ),
    )


def _second() -> Acceptance:
    thresholds = (_FOLDER / "thresholds-2.yaml").read_bytes()
    limits = yaml.safe_load(thresholds)
    return Acceptance(
        thresholds=thresholds,
        columns=value_columns(limits),
        rules=(
            frame.make_rule(limits),
            uncertain_field.RULE,
            document_reference.RULE,
            evidence_stands.RULE,
            mixed_scripts.make_rule(("title", "description"), "product_identifiers"),
            placeholder_value.make_rule(("title", "description"), "product_identifiers"),
            identifier_shape.make_rule(limits),
            identifier_kind.make_rule(limits),
            identifier_whole.RULE,
            catalogue_agrees.make_rule(limits),
            language_agrees.RULE_2,
            language_quoted.RULE,
            title_present.RULE,
            title_plausible.make_rule(limits),
            description_supported.make_rule(limits),
            instructions_obeyed.RULE,
        ),
        batch_rules=(
            answers_shifted.make_rule(limits),
            answers_repeated.make_rule(limits),
            titles_shared.make_rule(limits),
        ),
        repairs=REPAIRS,
        places=True,
    )
