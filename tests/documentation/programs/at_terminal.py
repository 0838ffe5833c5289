r"""A terminal with somebody at it: `at-terminal KEYS COMMAND...`.

Each time the command has been silent for a moment, the keys are pressed, until it ends. `\n` in
KEYS is the return key.
"""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import time

SILENCE_S = 1.0
LIMIT_S = 180.0


def main(words: list[str]) -> int:
    """The command's exit status; 124 if it had to be ended."""
    keys, *command = words
    pressed = keys.replace("\\n", "\n").encode()
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(command[0], command)
    deadline = time.monotonic() + LIMIT_S
    said_something = False
    while time.monotonic() < deadline:
        ready, _, _ = select.select([terminal], [], [], SILENCE_S)
        if not ready:
            if said_something:
                os.write(terminal, pressed)
            continue
        try:
            piece = os.read(terminal, 65_536)
        except OSError:  # on Linux, how a terminal says that nobody is there any more
            piece = b""
        if not piece:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said_something = True
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return 124


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
