"""YAML that refuses a field that is given twice.

Belongs here: the loader. Does not belong here: what a file must hold.
"""

from __future__ import annotations

from typing import Any

import yaml


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
