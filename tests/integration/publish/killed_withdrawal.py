"""A program that withdraws in forks of itself, which are killed for real at a chosen statement."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from pipeline_assets.publish.withdraw import withdraw_removed
from pipeline_assets.versions import open_version
from resources.context import open_context
from resources.settings import load_settings
from tests.integration.publish.killing import Executioner, kill_this_process, watched
from tests.integration.publish.support import TWO
from tests.support.dying_forks import serve_orders


def _withdraw(order: dict[str, Any]) -> None:
    moment = datetime.fromisoformat(order["now"])
    settings = load_settings(state=Path(order["state"]), ledger_url=order["ledger_url"]).model_copy(
        update={"specs": Path(order["specs"]), "sources": Path(order["sources"])}
    )
    executioner = Executioner(order["die_at"], kill_this_process)
    with open_context(settings, clock=lambda: moment) as context:
        version = open_version(context, TWO)
        with watched(context, executioner):
            withdraw_removed(context, version)


if __name__ == "__main__":
    serve_orders(_withdraw)
