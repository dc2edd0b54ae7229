"""Foreign files, read as if an enemy had written them: bounded in size, depth and expansion, safe tags only.

Whatever cannot be read is BadInput that names what is wrong, before anything else is looked at and before anything is
written.
"""

import json
import sys
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from law.errors import BadInput

FILE_LENGTH_MAX = 1_048_576
DEPTH_MAX = 64
NODES_MAX = 200_000
"""How many values a YAML file may hold once every alias is spelled out."""

FAST_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Loader(FAST_LOADER):
    """Safe tags only; a key that is given twice is a mistake, not a choice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        if isinstance(node, yaml.MappingNode):
            keys = [(key.tag, key.value) for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            twice = next((key for key in keys if keys.count(key) > 1), None) if len(set(keys)) < len(keys) else None
            if twice is not None:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {twice[1]!r} is given twice", node.start_mark
                )
        return super().construct_mapping(node, deep)


def read_text(file: Path) -> str:
    """A file's text, or that of standard input for `-`. Raises BadInput for what is too long or is not UTF-8."""
    try:
        if str(file) == "-":
            content = sys.stdin.buffer.read(FILE_LENGTH_MAX + 1)
        else:
            with file.open("rb") as opened:
                content = opened.read(FILE_LENGTH_MAX + 1)
    except OSError as problem:
        raise BadInput(field=str(file), reason=f"cannot be read: {problem}") from problem
    if len(content) > FILE_LENGTH_MAX:
        raise BadInput(field=str(file), reason=f"is longer than {FILE_LENGTH_MAX} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise BadInput(field=str(file), reason=f"is not UTF-8 text: {problem}") from problem


def read_yaml(text: str) -> list[Any]:
    """Every document of a YAML text. Raises BadInput for what is not YAML, carries tags of its own, or would explode."""
    try:
        refuse_explosions(text)
        return [document for document in yaml.load_all(text, Loader=Loader) if document is not None]
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as problem:
        raise BadInput(field="file", reason=f"is not YAML that can be read safely: {one_line(problem)}") from problem


def refuse_explosions(text: str) -> None:
    """Raise BadInput unless the text, with every alias spelled out, stays within depth and size. Counts, builds nothing."""
    sizes: dict[str, int] = {}
    open_nodes: list[tuple[str | None, int]] = [(None, 0)]
    for event in yaml.parse(text, Loader=FAST_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, 1))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, size = open_nodes.pop()
            add(open_nodes, sizes, anchor, size)
        elif isinstance(event, yaml.AliasEvent):
            add(open_nodes, sizes, None, sizes.get(event.anchor, NODES_MAX))  # one that is still open holds itself
        elif isinstance(event, yaml.ScalarEvent):
            add(open_nodes, sizes, event.anchor, 1)
        if len(open_nodes) > DEPTH_MAX or open_nodes[-1][1] > NODES_MAX:
            raise BadInput(
                field="file", reason=f"is nested deeper than {DEPTH_MAX} or holds more than {NODES_MAX} values"
            )


def add(open_nodes: list[tuple[str | None, int]], sizes: dict[str, int], anchor: str | None, size: int) -> None:
    """Count a finished node into the one that holds it, and remember its size under its anchor."""
    if anchor is not None:
        sizes[anchor] = size
    holder, held = open_nodes[-1]
    open_nodes[-1] = (holder, held + size)


def read_json(text: str) -> Any:
    """A JSON text. Raises BadInput for what is not JSON, or is nested too deep."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise BadInput(field="file", reason=f"is not JSON: {one_line(problem)}") from problem


def one_line(problem: Exception) -> str:
    """What a parser said, on one line and not for ever."""
    return " ".join(str(problem).split())[:300] or type(problem).__name__
