"""A report over many records holds a shard of them at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import REPOSITORY, environment

RECORDS = 200_000
MOST_MORE_MB = 200
"""On top of what the process held before: numbers of subjects, a shard, the allocator's slack."""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_records(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.many_outcomes", str(tmp_path), str(RECORDS)],
        cwd=REPOSITORY,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=900,
        check=True,
    )
    found = json.loads(done.stdout)
    assert found["rows"] == RECORDS + 6
    assert found["peak_mb"] - found["before_mb"] < MOST_MORE_MB
