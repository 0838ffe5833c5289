"""Which of the released ledgers are among the fast tests."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
FAST = (
    "test_it_is_opened_upgraded_and_adds_up[postgresql-0005]",
    "test_outside_of_dev_it_waits_for_the_command[sqlite-prod-0001]",
    "test_what_was_under_way_is_finished[sqlite-0002]",
    "test_what_was_under_way_is_finished[sqlite-0005]",
)
QUICK = (
    "test_a_look_says_what_an_upgrade_will_do_and_changes_nothing[sqlite",
    "test_it_is_opened_upgraded_and_adds_up[sqlite",
    "test_of_two_upgrades_at_once_one_waits_for_the_other[sqlite",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """PostgreSQL and the emulator take a few seconds for each release."""
    for item in items:
        if item.path.parent == HERE and item.name not in FAST and not item.name.startswith(QUICK):
            item.add_marker(pytest.mark.slow)
