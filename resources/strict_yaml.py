"""YAML that refuses a field that is given twice.

Belongs here: the loader, and why a file cannot be read. Does not belong here: what a file must
hold.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


class YamlUnreadable(ValueError):
    """A file is no YAML that can be read; `problem` goes on from the file's name."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(problem)


class OnceLoader(yaml.SafeLoader):
    """Refuses a field that is given twice; YAML's own loader keeps the last one in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping whose keys are distinct."""
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and (key.tag, key.value) in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"field {key.value!r} is given twice", key.start_mark
                )
            seen.add((key.tag, str(key.value)))
        return super().construct_mapping(node, deep)


def read_yaml(file: Path) -> Any:
    """The plain values that a file holds.

    Raises:
        YamlUnreadable: it cannot be read, is no UTF-8, no YAML, or holds itself.
    """
    try:
        # A subclass of the safe loader, which makes plain values only.
        return yaml.load(file.read_text(encoding="utf-8"), OnceLoader)  # noqa: S506
    except OSError as error:
        raise YamlUnreadable(f"cannot be read ({error.strerror})") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        where = getattr(error, "problem_mark", None)
        line = f" at line {where.line + 1}" if where is not None else ""
        problem = getattr(error, "problem", None) or "it is not UTF-8 text"
        raise YamlUnreadable(f"is not valid YAML{line} ({problem})") from error
    except RecursionError:
        raise YamlUnreadable("is nested too deeply, or holds itself") from None
