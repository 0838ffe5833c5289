"""Starting what a reader leaves running in another terminal: `serve PORT FILE COMMAND`.

Returns when something listens at the port. The number of its process group is added to FILE, so
that it can be ended later; nothing here ends it but when it does not come up.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

LIMIT_S = 180.0


def main(words: list[str]) -> int:
    """Exit status 0 when it listens, else that of the command, or 1."""
    port, listed, command = int(words[0]), Path(words[1]), words[2]
    log = listed.with_name(f"served-{port}.log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["bash", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    with listed.open("a", encoding="utf-8") as file:
        file.write(f"{process.pid}\n")
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline and process.poll() is None:
        if _listens(port):
            print(log.read_text(encoding="utf-8", errors="replace"))
            return 0
        time.sleep(0.1)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    print(log.read_text(encoding="utf-8", errors="replace"))
    return process.wait() or 1


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
