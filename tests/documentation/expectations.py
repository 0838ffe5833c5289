"""What commands of the documentation must say, beside running: what their page promises of them.

Belongs here: page, beginning of a command as the page has it, and a regular expression that its
output holds. Of commands that begin alike the one of exactly this text is meant, else the
last.
"""

from __future__ import annotations

SAYS: dict[str, dict[str, str]] = {
    "README.md": {
        "make run": "the account adds up",
        '.venv/bin/tallybook search "label printers"': r"label-printers-lp-310",
        ".venv/bin/tallybook run --version tickets-baseline-1": r"published +41\b",
        ".venv/bin/tallybook rollback": "shown with earlier values again",
        ".venv/bin/tallybook promote": "shown with the values of manuals-baseline-2 again",
    },
    "alerts.md": {
        "tallybook alerts list --all": "quarantined",
        "tallybook alerts clear": "Cleared of",
    },
    "audit.md": {
        "tallybook audit --version": "nothing is wrong",
        "tallybook audit verify proof.json --root": "PROVEN",
    },
    "automation.md": {
        "tallybook automation off retry_due": "retry_due",
        "tallybook automation status": r"retry_due +sensor +off",
    },
    "backup.md": {
        "tallybook backup verify": "is whole",
        "tallybook doctor --state": "Nothing is broken",
        "tallybook restore BACKUPS --state ANOTHER": "postgresql",
    },
    "first-run.md": {
        "make run": r"^14 documents = 9 expected \+ 5 excluded: the account adds up\.$",
        ".venv/bin/tallybook search": "label-printers-lp-310",
        ".venv/bin/tallybook review list": "air-compressor-ac-50",
        ".venv/bin/tallybook review correct": "1 review corrected",
        ".venv/bin/tallybook run": "published +9|air-compressor-ac-50.pdf +published",
        ".venv/bin/tallybook audit": "nothing is wrong",
    },
    "live-canary.md": {"tallybook canary --live --prove": "proven"},
    "metrics.md": {"curl": "^# EOF$"},
    "postgresql.md": {
        "tallybook run": "the account adds up",
        "tallybook migrate": "makes the schema",
        "tallybook migrate --check": "It is up to date",
        "tallybook status": "8 published",
    },
    "providers.md": {
        "tallybook canary --live --prove": "All three facts hold",
        "tallybook cost": "USD|US dollars|\\$",
    },
    "publication.md": {
        "tallybook rollback --document DOCUMENT --reason": "1 document shown with earlier values",
        "tallybook rollback --document DOCUMENT --to": "1 document shown",
        "tallybook rollback KEY --reason": "shown with earlier values again",
    },
    "report.md": {"tallybook report close": "[Cc]losed"},
    "retention.md": {"tallybook erase": "erased"},
    "review.md": {
        "tallybook review next": "nothing was decided",
        "tallybook review correct": "1 review corrected",
        "tallybook review reject --where-rule": "3 reviews rejected",
    },
    "simulation.md": {"python -m tests.faults.simulation --mutate": "^violated: "},
    "sources.md": {
        "tallybook sources list": "waits? for approval|manuals",
        "tallybook sources approve --source": "approved",
        "tallybook sources events retry": "1 event",
    },
    "runbook.md": {
        "tallybook status": "batch quarantined",
        "tallybook doctor": "^quarantined",
        "tallybook batch discard": "is cancelled",
        "tallybook dead-letter requeue": "1 dead letter requeued",
        "tallybook rollback": "shown with earlier values again",
        "tallybook promote": "shown with the values of",
    },
}
"""Page → beginning of a command → what its output holds."""
