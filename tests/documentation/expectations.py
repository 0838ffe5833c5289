"""What commands of the documentation must say, beside running: what their page promises of them.

Belongs here: page, command as the page has it, and a regular expression that its output holds.
"""

from __future__ import annotations

SAYS: dict[str, dict[str, str]] = {
    "first-run.md": {
        "make run": r"^14 documents = 9 expected \+ 5 excluded: the account adds up\.$",
        ".venv/bin/tallybook review list": "air-compressor-ac-50",
        ".venv/bin/tallybook run": "published",
    },
}
"""Page → command → what its output holds."""
