"""What was spent: charges of attempts, totals, the account by accepted item, and budgets' figures.

Belongs here: everything that is said about money and time per accepted item. Does not belong here:
prices (`resources/providers/prices.py`) and the decision on a budget
(`pipeline_assets/recovery/budget.py`).
"""

from __future__ import annotations

from pipeline_assets.costs.totals import JobCost, job_cost

__all__ = ["JobCost", "job_cost"]
