"""An import-linter contract: a library is imported only by modules whose names match.

import-linter's own wildcards stand for whole parts of a name, so they cannot say `*resource*`.
The rules themselves are in `pyproject.toml`; here is only how such a rule is checked.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import cast

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class OnlyImportedByContract(Contract):
    """Modules named in `libraries` are imported directly only by modules that match `allowed`.

    Attributes:
        libraries: top-level names of external packages.
        allowed: shell patterns over dotted module names; `*` also matches dots.
    """

    type_name = "only_imported_by"

    libraries = fields.SetField(subfield=fields.StringField())
    allowed = fields.SetField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Find every import of a library by a module that no pattern allows."""
        output.verbose_print(verbose, "Looking for importers...")
        libraries = cast("set[str]", self.libraries)
        allowed = cast("set[str]", self.allowed)
        strays = [
            (importer, library, line)
            for library in sorted(libraries & graph.modules)
            for importer in forbidden_importers(
                graph.find_modules_that_directly_import(library), allowed
            )
            for line in _line_numbers(graph, importer, library)
        ]
        return ContractCheck(kept=not strays, metadata={"strays": strays})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Name each stray import with its line, and the patterns that would allow it."""
        for importer, library, line in check.metadata["strays"]:
            output.print_error(f"{importer} imports {library} (line {line})", bold=False)
        allowed = ", ".join(sorted(cast("set[str]", self.allowed)))
        output.print(f"Allowed are only: {allowed}.")


def forbidden_importers(importers: Iterable[str], allowed: Iterable[str]) -> list[str]:
    """Return the importers, sorted, that match none of the allowed patterns."""
    patterns = tuple(allowed)
    return sorted(
        importer
        for importer in importers
        if not any(fnmatchcase(importer, pattern) for pattern in patterns)
    )


def _line_numbers(graph: ImportGraph, importer: str, library: str) -> list[int]:
    details = graph.get_import_details(importer=importer, imported=library)
    return [detail["line_number"] for detail in details] or [0]
