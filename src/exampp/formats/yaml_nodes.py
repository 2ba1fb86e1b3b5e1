"""YAML as people write it: scalars as they are spelt, line numbers, no aliases.

Nothing is constructed from tags, so `007`, `no` and `2024-01-01` stay the text that they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

from exampp.errors import InputError
from exampp.formats.fields import brief, duplicate_error
from exampp.formats.lines import OnError, read_text

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEEPEST = 20
_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}"
    for name in ("bool", "float", "int", "map", "null", "seq", "str", "timestamp", "value")
)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text; null is an empty one."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of nodes."""

    line: int
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Mapping:
    """Nodes by key, every key once."""

    line: int
    nodes: dict[str, Node]


Node = Scalar | Listing | Mapping


def load(path: str | Path, on_error: OnError) -> Node:
    """The one document of a YAML file.

    InputError for broken YAML, aliases, and nesting that no bank needs; through `on_error` also for
    tags, keys that are no text, and a key that occurs twice (the first counts).
    """
    text = read_text(path)
    try:
        # Before anything is composed: aliases and depth are what makes small files explode.
        _check_events(text)
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        what = error.problem or error.context
        raise InputError(f"broken YAML ({what})", file=path, line=line) from None
    except yaml.YAMLError as error:
        reason = getattr(error, "reason", "unreadable")
        raise InputError(f"broken YAML ({reason})", file=path, line=_line_of(text, error)) from None
    except InputError as error:
        raise error.at(path) from None
    if root is None:
        raise InputError("the file is empty", file=path)
    return _node(root, lambda error: on_error(error.at(path)))


def _line_of(text: str, error: yaml.YAMLError) -> int | None:
    position = getattr(error, "position", None)
    return None if position is None else text.count("\n", 0, position) + 1


def _line(part: yaml.Event | yaml.Node) -> int:
    return 0 if part.start_mark is None else part.start_mark.line + 1


def _check_events(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        line = _line(event)
        if isinstance(event, yaml.AliasEvent):
            raise InputError("aliases are not read", line=line, mend="Write the text out")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise InputError("nested too deeply", line=line)


def _node(node: yaml.Node, on_error: Callable[[InputError], None]) -> Node:
    line = _line(node)
    if node.tag not in _TAGS:
        on_error(InputError(f"the tag {brief(node.tag)} is not read", line=line))
    if isinstance(node, yaml.ScalarNode):
        return Scalar(line, "" if node.tag.endswith(":null") else node.value)
    if isinstance(node, yaml.SequenceNode):
        return Listing(line, tuple(_node(part, on_error) for part in node.value))
    return _mapping(node, line, on_error)


def _mapping(node: yaml.Node, line: int, on_error: Callable[[InputError], None]) -> Mapping:
    nodes: dict[str, Node] = {}
    lines: dict[str, int] = {}
    for key_node, value_node in node.value:
        key = _node(key_node, on_error)
        if not isinstance(key, Scalar) or not key.text.strip():
            on_error(InputError("a key must be a text", line=key.line))
        elif key.text in nodes:
            what = f"the key {brief(key.text)}"
            on_error(duplicate_error(what, lines[key.text], "", key.line, key.text))
        else:
            nodes[key.text], lines[key.text] = _node(value_node, on_error), key.line
    return Mapping(line, nodes)


_PLAIN = re.compile(r"[A-Za-z](?:[\w ,.?'()/!$%&+=;-]|:(?=\w))*", re.ASCII)
_NOT_TEXT = frozenset(("yes", "no", "on", "off", "true", "false", "null", "y", "n"))
_UNPRINTABLE = re.compile(
    "[^\\x20-\\x7e\\xa0-\\u2027\\u202a-\\ufefe\\uff00-\\ufffd\\U00010000-\\U0010ffff]"
)
_LONGEST_KEY = 1000
"""YAML allows keys of 1024 characters before it wants a `?` in front of them."""


def quoted(text: str) -> str:
    """The text as a YAML scalar on one line, quoted only where plain text would be misread."""
    if _PLAIN.fullmatch(text) and not text.endswith(" ") and text.lower() not in _NOT_TEXT:
        return text
    escaped = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    )
    return '"' + _UNPRINTABLE.sub(lambda found: _escape(found[0]), escaped) + '"'


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def quoted_key(text: str) -> str:
    """The text as the key of a mapping; InputError if it is too long for one."""
    key = quoted(text)
    if len(key.encode(errors="surrogatepass")) > _LONGEST_KEY:
        raise InputError(f"{brief(text)} is too long for a key of YAML", mend="Use CSV")
    return key
