"""Prints what parsing makes of one file: `python -m pipeline_assets.ingest.parsing.dump FILE`.

For a person who looks into a document; the pipeline never calls it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pipeline_assets.ingest.parsing.model import ParseFailure, ParseLimits, ParseReport, ParseTask
from pipeline_assets.ingest.parsing.pool import ParserPool, ParserUnavailable


def to_json(report: ParseReport) -> dict[str, Any]:
    """A report as plain JSON values, the thumbnail by its size only."""
    cost = {
        "wall_seconds": round(report.wall_seconds, 3),
        "cpu_seconds": round(report.cpu_seconds, 3),
        "peak_rss_bytes": report.peak_rss_bytes,
    }
    outcome = report.outcome
    if isinstance(outcome, ParseFailure):
        return {"reason": outcome.reason, "detail": outcome.detail, "cost": cost}
    return {
        "media_type": outcome.media_type,
        "page_count": outcome.page_count,
        "language": outcome.language,
        "languages": list(outcome.languages),
        "partial": outcome.partial,
        "notes": list(outcome.notes),
        "thumbnail_bytes": len(outcome.thumbnail or b""),
        "pages": [
            {"number": page.number, "origin": page.origin, "offset": page.offset, "text": page.text}
            for page in outcome.pages
        ],
        "cost": cost,
    }


def main(arguments: list[str]) -> int:
    """Exit status 0 for pages, 3 for a document that has none, 1 without a parser, 2 for usage."""
    if len(arguments) != 1:
        print("usage: python -m pipeline_assets.ingest.parsing.dump FILE", file=sys.stderr)
        return 2
    path = Path(arguments[0])
    try:
        with ParserPool(1, ParseLimits()) as pool:
            (report,) = pool.parse_many([ParseTask(key=path.name, path=path)])
    except ParserUnavailable as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(to_json(report), ensure_ascii=False, indent=1))
    return 3 if isinstance(report.outcome, ParseFailure) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
