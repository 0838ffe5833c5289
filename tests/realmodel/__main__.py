"""`make realmodel`: a real, small model answers labelled documents, and the rules judge it.

Prints what was accepted, what waits for a reviewer and what was stopped, by rule, and how many
fields of what was accepted are right. Exit status 1 if fewer than 99 % of them are, or if the walk
did not come to its end; 2 if it cannot run here.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline_assets.versions import open_version
from resources.context import Context, open_context
from resources.settings import load_settings
from tests.benchmarks.score_baseline import UnusableInput, read_lines
from tests.realmodel.findings import answers, as_lines, find
from tests.realmodel.model_server import ModelMissing, ModelServerBroke, model_server
from tests.realmodel.proxy import bounding_proxy
from tests.realmodel.walk import (
    DOCUMENT_TOKENS,
    KEY,
    WalkStopped,
    canary_verdict,
    walk,
    write_spec,
)

CORPUS_VARIABLE = "TALLYBOOK_DEV_CORPUS"
"""Names another folder than the one beside the repository, as for the tests."""
CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "dev"
Label = Mapping[str, Any]
SOURCE_NAME = "dev"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it."""
    options = _options(arguments)
    try:
        labels = [
            label
            for label in read_lines(options.corpus / "labels.jsonl")
            if label["kind"] != "adversarial"
        ]
        labels = spread(labels, options.documents or len(labels))
    except (OSError, UnusableInput) as error:
        print(f"no labelled documents: {error}", file=sys.stderr)
        return 2
    folder = options.folder or Path(tempfile.mkdtemp(prefix="tallybook-realmodel-"))
    folder.mkdir(parents=True, exist_ok=True)
    key = secrets.token_hex(16)
    try:
        with model_server(folder, key, options.threads) as server, bounding_proxy(server) as url:
            # As a person points the SDK at a compatible server.
            os.environ["OPENAI_BASE_URL"] = f"{url}/v1"
            os.environ["OPENAI_API_KEY"] = key
            return _walk_all(folder, labels, options)
    except ModelMissing as error:
        print(error, file=sys.stderr)
        return 2
    except (ModelServerBroke, WalkStopped) as error:
        print(f"stopped: {error}", file=sys.stderr)
        return 1
    finally:
        if options.folder is None:
            shutil.rmtree(folder)


def spread(labels: Sequence[Label], most: int) -> list[Label]:
    """At most so many of the labels, evenly over all of them, in their order."""
    count = min(most, len(labels))
    return [labels[number * len(labels) // count] for number in range(count)]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Let a real, small model answer documents.")
    parser.add_argument(
        "--corpus",
        type=Path,
        default=Path(os.environ.get(CORPUS_VARIABLE, CORPUS)),
        help="folder with labels.jsonl and files/",
    )
    parser.add_argument("--documents", type=int, help="only so many of them")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of the model")
    parser.add_argument(
        "--document-tokens", type=int, default=DOCUMENT_TOKENS, help="of a document that are sent"
    )
    parser.add_argument("--no-canary", action="store_true", help="send none, to save its time")
    parser.add_argument(
        "--folder", type=Path, help="keep documents, state and the model's file here"
    )
    parser.add_argument(
        "--answers", type=Path, help="write every answer here; it holds text of the documents"
    )
    return parser.parse_args(arguments)


def _walk_all(folder: Path, labels: Sequence[Label], options: argparse.Namespace) -> int:
    source = folder / "documents"
    for label in labels:
        copied = source / label["file"]
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(options.corpus / label["file"], copied)
    write_spec(folder / "specs", options.document_tokens)
    settings = load_settings(
        state=folder / "state", source=source, source_name=SOURCE_NAME, specs=folder / "specs"
    )
    started = time.monotonic()
    with open_context(settings) as context:
        walk(context, canary=not options.no_canary)
        _tell_canary(context)
        if options.answers is not None:
            rows = answers(context, open_version(context, KEY))
            options.answers.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        found = find(context, KEY, labels, f"{SOURCE_NAME}/")
    print("\n".join(as_lines(found, labels)))
    print(f"seconds {time.monotonic() - started:.0f}")
    return 0 if found.good else 1


def _tell_canary(context: Context) -> None:
    verdict = canary_verdict(context)
    if verdict is None:
        print("canary: none was sent")
        return
    print(
        f"canary: {verdict.state}, {len(verdict.findings)} findings; the trial goes on all the same"
    )
    for document, check, note in verdict.findings:
        print(f"  {document}: {check}: {note}")


if __name__ == "__main__":
    sys.exit(main())
