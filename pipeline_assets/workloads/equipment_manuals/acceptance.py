"""The acceptances of this workload: which rules judge its answers, with which thresholds.

Belongs here: putting rules, repairs and thresholds together under a name. Does not belong here:
any rule. An acceptance that a version was frozen with never changes: a new rule, or another
threshold, is a new acceptance, and so a new processing version.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from pipeline_assets.workloads.equipment_manuals.rules import (
    frame,
    identifier_shape,
    language_agrees,
    title_present,
)
from pipeline_assets.workloads.rules import document_reference, evidence_on_page, uncertain_field
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
        rules=(
            frame.make_rule(limits),
            uncertain_field.RULE,
            document_reference.RULE,
            evidence_on_page.RULE,
            identifier_shape.make_rule(limits),
            language_agrees.RULE,
            title_present.RULE,
        ),
        batch_rules=(),
        repairs=(),
        places=True,
    )
