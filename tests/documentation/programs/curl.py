"""Stands in for `curl` where there is none: `curl [OPTION]... URL` prints what the address says."""

from __future__ import annotations

import sys
import urllib.request


def main(words: list[str]) -> int:
    """Print the answer; an HTTP error is an error, as with `--fail`."""
    with urllib.request.urlopen(words[-1], timeout=60) as answer:
        sys.stdout.buffer.write(answer.read())
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
