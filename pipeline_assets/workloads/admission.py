"""The three rules that work must keep to be done in batches, and refusing work that does not.

Belongs here: the rules' names and the refusal. Does not belong here: what a workload says of
itself (its `Admission`). A batch discount makes up for none of them: work that breaks one is left
synchronous, or is thought out anew first.
"""

from __future__ import annotations

from pipeline_assets.workloads.workload import Workload

RULES = {
    "result_may_be_late": "nobody needs the answer within the request that asks for it",
    "stands_alone": (
        "every record has a stable identity and reaches its end independently of the others"
    ),
    "effect_can_be_retried": "applying a result again does not double its effect",
}
"""The members of `Admission`, in the order they are asked, with what each means."""


class NotAdmitted(ValueError):
    """A workload does not keep a rule of admission, or does not say how."""

    def __init__(self, name: str, rule: str, because: str) -> None:
        self.name = name
        self.rule = rule
        self.because = because
        super().__init__(
            f"the workload {name!r} is not admitted to batch processing: its rule {rule} "
            f"({RULES[rule]}) does not hold, because {because}. Nothing was frozen or sent. Keep "
            "this work synchronous, or change what it does and then its `admission`."
        )


def require_admitted(workload: Workload) -> None:
    """Refuse a workload that does not keep all three rules.

    Raises:
        NotAdmitted: for the first rule that does not hold, or holds without a reason.
    """
    for rule in RULES:
        kept = getattr(workload.admission, rule)
        because = kept.because.strip().rstrip(".")
        if not because:
            raise NotAdmitted(
                workload.name, rule, "it does not say how (`because` is blank), so nobody can check"
            )
        if not kept.holds:
            raise NotAdmitted(workload.name, rule, because)
