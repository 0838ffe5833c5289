"""`python -m tests.faults.tampering`: plant, audit, and print a line each."""

from __future__ import annotations

import argparse
import sys
import warnings
from contextlib import ExitStack

from tests.faults.tampering.series import Outcome, run_series
from tests.support.postgres import postgres_server


def main(arguments: list[str] | None = None) -> int:
    """Run the series; 1 unless everything planted was named and nothing else was."""
    parser = argparse.ArgumentParser(prog="tampering", description=__doc__)
    parser.add_argument(
        "--database", nargs="+", choices=("sqlite", "postgresql"), default=["sqlite", "postgresql"]
    )
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("default")
    with ExitStack() as stack:
        wanted = "postgresql" in chosen.database
        server = stack.enter_context(postgres_server()) if wanted else None
        outcomes = run_series(chosen.database, server, _tell)
    planted = sum(outcome.planted for outcome in outcomes)
    found = sum(outcome.planted and outcome.right for outcome in outcomes)
    alarms = sum(not outcome.planted and not outcome.right for outcome in outcomes)
    print(f"planted={planted} found={found} false_alarms={alarms}")
    return 0 if found == planted and not alarms else 1


def _tell(outcome: Outcome) -> None:
    verdict = ("found" if outcome.planted else "clean") if outcome.right else "WRONG"
    print(f"{verdict:<6} {outcome.what}  →  {outcome.told}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
