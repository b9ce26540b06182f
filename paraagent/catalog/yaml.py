"""YAML as JSON values, read from events, so that no document can cost more than its size.

YAML 1.2's core schema decides what a plain scalar is: `no` and a date stay text, `200` as a key is text. A key that
stands twice, an alias to what holds it, nesting without end and aliases that multiply are errors with their line.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

MAX_DEPTH = 500
MAX_COPIES = 1_000_000
"""Nodes that aliases may repeat in one document."""
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}$")
_BASED = re.compile(r"0o[0-7]{1,20}$|0x[0-9a-fA-F]{1,15}$")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$")
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_WORDS |= {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


class YamlError(ValueError):
    """What is wrong with a document, and where."""


@dataclass(slots=True)
class _Open:
    """A mapping or list that is being read."""

    value: dict[str, Any] | list[Any]
    anchor: str | None
    key: str | None = None
    """Of a mapping: the key whose value comes next."""
    merged: list[dict[str, Any]] = field(default_factory=list)
    """What `<<` names: it gives what the mapping itself does not have."""
    size: int = 1


def load(data: bytes) -> Any:
    """The one document of a stream. Raises YamlError."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Reader().read(yaml.parse(data, Loader=loader))
    except yaml.YAMLError as error:
        raise YamlError(" ".join(str(error).split())[:200]) from error
    except UnicodeDecodeError as error:
        raise YamlError(f"not UTF-8 text: {error}") from error


class _Reader:
    def __init__(self) -> None:
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int] | None] = {}
        self._copies = 0
        self._root: list[Any] = []

    def read(self, events: Any) -> Any:
        import yaml

        documents = 0
        for event in events:
            line = event.start_mark.line + 1
            if isinstance(event, yaml.ScalarEvent):
                self._scalar(event, line)
            elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                self._start({} if isinstance(event, yaml.MappingStartEvent) else [], event.anchor, line)
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                self._end(line)
            elif isinstance(event, yaml.AliasEvent):
                self._alias(event.anchor, line)
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise YamlError(f"a second document begins in line {line}: one file holds one")
        return self._root[0] if self._root else None

    def _scalar(self, event: Any, line: int) -> None:
        top = self._stack[-1] if self._stack else None
        if top is not None and isinstance(top.value, dict) and top.key is None:
            if event.value in top.value:
                raise YamlError(f"the key {event.value[:60]!r} stands twice, the second time in line {line}")
            top.key = event.value
            if event.anchor:
                self._anchors[event.anchor] = (event.value, 1)
            return
        value = plain(event.value) if event.implicit[0] else event.value
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        self._put(value, 1, line)

    def _start(self, value: dict[str, Any] | list[Any], anchor: str | None, line: int) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise YamlError(f"nested more than {MAX_DEPTH} levels deep in line {line}")
        top = self._stack[-1] if self._stack else None
        if top is not None and isinstance(top.value, dict) and top.key is None:
            raise YamlError(f"a key that is no text in line {line}")
        if anchor:
            self._anchors[anchor] = None
        self._stack.append(_Open(value, anchor))

    def _end(self, line: int) -> None:
        done = self._stack.pop()
        if isinstance(done.value, dict):
            for other in done.merged:
                for key, value in other.items():
                    done.value.setdefault(key, value)
        if done.anchor:
            self._anchors[done.anchor] = (done.value, done.size)
        self._put(done.value, done.size, line)

    def _alias(self, anchor: str, line: int) -> None:
        known = self._anchors.get(anchor)
        if known is None:
            what = "stands inside what it names" if anchor in self._anchors else "names nothing"
            raise YamlError(f"the alias *{anchor} in line {line} {what}")
        value, size = known
        self._copies += size
        if self._copies > MAX_COPIES:
            raise YamlError(f"aliases repeat more than {MAX_COPIES:,} nodes, up to *{anchor} in line {line}")
        top = self._stack[-1] if self._stack else None
        if top is not None and isinstance(top.value, dict) and top.key is None:
            raise YamlError(f"an alias as a key in line {line}")
        self._put(value, size, line)

    def _put(self, value: Any, size: int, line: int) -> None:
        if not self._stack:
            self._root.append(value)
            return
        top = self._stack[-1]
        top.size += size
        if isinstance(top.value, list):
            top.value.append(value)
            return
        key, top.key = top.key, None
        assert key is not None
        sources = value if isinstance(value, list) else [value]
        if key == "<<" and all(isinstance(source, dict) for source in sources):
            top.merged.extend(sources)
        else:
            top.value[key] = value


def plain(text: str) -> Any:
    """What an unquoted scalar means."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.match(text):
        return int(text)
    if _BASED.match(text):
        return int(text, 0)
    if _FLOAT.match(text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text
