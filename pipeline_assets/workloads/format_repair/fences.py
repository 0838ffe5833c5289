"""Repair `fences`: an answer that is one fenced block of Markdown.

The block has to be all that there is, and to be closed; a text with a second fence is left alone.
"""

from __future__ import annotations

import re

from pipeline_assets.workloads.format_repair.scanning import JSON_SPACE
from pipeline_assets.workloads.workload import Repair

_OPENING = re.compile(r"(`{3,}+|~{3,}+)[ \t]*+(?:[A-Za-z][A-Za-z0-9_+.-]*+)?")


def mend(text: str) -> str | None:
    """What stands between the fences."""
    block = text.strip(JSON_SPACE)
    opening = _OPENING.match(block)
    if opening is None or not block.endswith(opening[1]):
        return None
    inner = block[opening.end() : -len(opening[1])].strip(JSON_SPACE)
    if opening[1][:3] in inner or not inner.startswith(("{", "[")):
        return None
    return inner


REPAIR = Repair(id="fences", version=1, mend=mend)
