"""The real sensor `provider_batch_monitor`, a tick for each line on standard input.

A whole pair of Dagster daemons is too heavy for a test; what they do at the same time is this.
Prints a JSON object a tick: the keys of the runs that it asks for, or why it asks for none.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.batch_shop import BatchShop, scrubbed
from tests.support.command import REPOSITORY

LIMIT_S = 60.0


@dataclass(frozen=True)
class Ticker:
    """A process that evaluates the sensor when it is told to."""

    process: subprocess.Popen[str]

    def go(self) -> None:
        """Begin a tick."""
        assert self.process.stdin is not None
        self.process.stdin.write("tick\n")
        self.process.stdin.flush()

    def told(self) -> dict[str, Any]:
        """Wait for what the tick came to."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            assert self.process.stderr is not None
            raise RuntimeError(f"the sensor's process ended: {self.process.stderr.read()[-2000:]}")
        return json.loads(line)


@contextmanager
def ticker(shop: BatchShop, variables: dict[str, str]) -> Iterator[Ticker]:
    """Start such a process for the length of a block."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.support.sensor_ticks"],
        cwd=REPOSITORY,
        env=scrubbed(variables | shop.variables()),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    try:
        yield Ticker(process)
    finally:
        process.stdin.close()
        process.wait(LIMIT_S)
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()


def main() -> None:
    """Evaluate a tick for each line."""
    import dagster as dg

    from pipeline_assets.automation.sensors import provider_batch_monitor
    from pipeline_assets.cli.dagster_instance import open_instance
    from pipeline_assets.expected_errors import EXPECTED_ERRORS
    from resources.context_resource import ContextOpening, ContextResource
    from resources.settings import load_settings

    settings = load_settings()
    resource = ContextResource(opening=ContextOpening(settings, EXPECTED_ERRORS))
    with open_instance(settings) as instance:
        for _ in sys.stdin:
            with dg.build_sensor_context(
                instance=instance, resources={"tallybook": resource}
            ) as context:
                result = provider_batch_monitor(context)
            if isinstance(result, dg.SensorResult):
                told: dict[str, Any] = {
                    "runs": [request.run_key for request in result.run_requests or []]
                }
            else:
                told = {"runs": [], "skipped": str(getattr(result, "skip_message", result))}
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
