"""What heads a document on a terminal: the field that names it, or that it has none.

Belongs here: only that. Does not belong here: which field it is (`workloads/fields.py`).
"""

from __future__ import annotations


def nothing_of(label: str) -> str:
    """In the place of a value that is absent: `(no title)`."""
    return f"(no {label[:1].lower()}{label[1:]})" if label else "(no fields)"
