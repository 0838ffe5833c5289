"""A result file of 1 GiB, cut three times: collected whole, in little memory."""

from __future__ import annotations

import pytest

from tests.benchmarks.big_download import CUTS, collect


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize(
    "mib", [pytest.param(8, id="8MiB"), pytest.param(1024, id="1GiB", marks=pytest.mark.slow)]
)
def test_every_byte_in_little_memory(provider: str, mib: int) -> None:
    found = collect(provider, mib)
    assert found.connections == CUTS + 1
    assert found.size >= mib << 20
    assert found.identical
    assert found.lines > mib * 200
    assert found.peak_rss_mb < 200
