"""Run the emulator by itself: `python -m tests.provider_emulator --port 8099`.

Prints the environment variables that send the SDKs to it, then serves until Ctrl-C.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.provider_emulator.control import set_timing
from tests.provider_emulator.environment import environment
from tests.provider_emulator.server import HOST, EmulatorServer, base_url, build_app, listen
from tests.provider_emulator.world import Timing, World


class BadArgument(ValueError):
    """An argument that cannot be used; the message is for the one who typed it."""


def read_timing(text: str) -> Timing:
    """Return a timing from `validating=1,running=5,cancelling=0` (virtual seconds).

    Raises:
        BadArgument: not of this form, or an unknown phase.
    """
    timing = Timing()
    changes: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        name, _, seconds = part.partition("=")
        try:
            changes[f"{name.strip()}_seconds"] = float(seconds)
        except ValueError:
            raise BadArgument(f"--timing takes PHASE=SECONDS, not {part!r}") from None
    try:
        set_timing(timing, changes)
    except ValueError as problem:
        raise BadArgument(f"--timing: {problem}") from None
    return timing


def read_faults(path: Path) -> list[Any]:
    """Return the list of faults in a YAML or JSON file.

    Raises:
        BadArgument: no such file, not YAML, or not a list.
    """
    try:
        faults = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as problem:
        raise BadArgument(f"--faults: {path} cannot be read: {problem}") from None
    if not isinstance(faults, list):
        raise BadArgument(f"--faults: {path} does not hold a list of faults")
    return faults


def main(arguments: list[str] | None = None) -> int:
    """Serve until interrupted; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.provider_emulator", description=__doc__)
    parser.add_argument("--port", type=int, default=8099, help="loopback port; 0 takes a free one")
    parser.add_argument("--faults", type=Path, help="YAML or JSON file with a list of faults")
    parser.add_argument(
        "--timing", default="", help="virtual seconds, e.g. validating=1,running=5,cancelling=0"
    )
    chosen = parser.parse_args(arguments)
    try:
        world = World(read_timing(chosen.timing))
        if chosen.faults is not None:
            world.faults.load(read_faults(chosen.faults))
        listener = listen(chosen.port)
    except (BadArgument, ValueError) as problem:
        parser.error(str(problem))
    except (OSError, OverflowError) as problem:
        parser.error(f"port {chosen.port} of {HOST} cannot be used: {problem}")
    serve(world, listener)
    return 0


def serve(world: World, listener: Any) -> None:
    """Print the variables to export and serve on a listening socket until a signal ends it."""
    world.base_url = base_url(listener)
    print(f"# The emulated providers are at {world.base_url} ; Ctrl-C ends them", flush=True)
    for name, value in environment(world.base_url).items():
        print(f"export {name}={shlex.quote(value)}", flush=True)
    try:
        EmulatorServer(build_app(world)).run(sockets=[listener])
    except KeyboardInterrupt:
        print("# ended", file=sys.stderr)
    finally:
        listener.close()
        world.close()


if __name__ == "__main__":
    sys.exit(main())
