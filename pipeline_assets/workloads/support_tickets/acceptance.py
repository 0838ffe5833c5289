"""The acceptances of this workload: which rules judge its answers, with which thresholds.

Belongs here: putting rules, repairs and thresholds together under a name. Does not belong here:
any rule. An acceptance that a version was frozen with never changes: a new rule, or another
threshold, is a new acceptance, and so a new processing version.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from pipeline_assets.workloads.format_repair.repairs import REPAIRS
from pipeline_assets.workloads.rules import (
    answers_shifted,
    document_reference,
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

from .columns import value_columns
from .rules import (
    category_supported,
    frame,
    own_words,
    priority_justified,
    product_named,
    summary_supported,
)

_FOLDER = Path(__file__).parent


def acceptances() -> Mapping[str, Acceptance]:
    """Name → acceptance, read from the thresholds' files."""
    thresholds = (_FOLDER / "thresholds.yaml").read_bytes()
    limits = yaml.safe_load(thresholds)
    return {
        FIRST_ACCEPTANCE: Acceptance(
            thresholds=thresholds,
            columns=value_columns(limits),
            rules=(
                frame.make_rule(limits),
                uncertain_field.RULE,
                document_reference.RULE,
                evidence_stands.RULE,
                mixed_scripts.make_rule(("product", "summary"), "product"),
                placeholder_value.make_rule(("product", "summary"), "product"),
                own_words.RULE,
                category_supported.make_rule(limits),
                priority_justified.RULE,
                product_named.RULE,
                language_agrees.RULE_2,
                language_quoted.RULE,
                summary_supported.make_rule(limits),
                instructions_obeyed.RULE,
            ),
            batch_rules=(
                answers_shifted.make_rule(limits),
                titles_shared.make_rule(limits, "summary"),
            ),
            repairs=REPAIRS,
            places=True,
        )
    }
