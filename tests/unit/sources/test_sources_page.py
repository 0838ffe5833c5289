"""The declarations in docs/sources.md are ones that can be used."""

from __future__ import annotations

import re
from pathlib import Path

from resources.sources.declared import read_sources


def test_every_declaration_of_the_page_is_sound(repository: Path, tmp_path: Path) -> None:
    page = (repository / "docs" / "sources.md").read_text(encoding="utf-8")
    blocks = [
        block
        for block in re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
        if block.startswith("sources:")
    ]
    assert blocks
    kinds = set()
    for number, block in enumerate(blocks):
        file = tmp_path / f"{number}.yaml"
        file.write_text(block, encoding="utf-8")
        kinds |= {source.kind for source in read_sources(file)}
    assert {"bucket", "queue"} <= kinds
