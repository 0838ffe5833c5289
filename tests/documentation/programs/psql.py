"""Stands in for `psql` where there is none: `psql -q -v ON_ERROR_STOP=1 -d PLACE -f FILE`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import psycopg


def main(words: list[str]) -> int:
    """Run the file's statements in one transaction; any error ends it, as ON_ERROR_STOP does."""
    parser = argparse.ArgumentParser(prog="psql")
    parser.add_argument("-q", action="store_true")
    parser.add_argument("-v", choices=["ON_ERROR_STOP=1"], required=True)
    parser.add_argument("-d", required=True, dest="place")
    parser.add_argument("-f", required=True, dest="file", type=Path)
    chosen = parser.parse_args(words)
    with psycopg.connect(chosen.place) as connection:
        connection.execute(chosen.file.read_bytes())
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
