"""Scenarios and their changes, however they are given, as the texts that the laboratory reads."""

from __future__ import annotations

import datetime
import math
import os
import re
from pathlib import Path
from typing import Any, Iterable, Mapping, Optional, Tuple, Union

from . import _tailwater

#: A file, a text in TOML, or the same as a dictionary.
Scenario = Union[str, "os.PathLike[str]", Mapping[str, Any]]
#: Changes, as after ``--set``.
Sets = Union[Mapping[str, Any], Iterable[str], None]
#: Name, title, text, and the folder in which files that it names are looked for.
Source = Tuple[str, str, str, str]

#: What a scenario that has no file is called.
NAME = "scenario"


def source(scenario: Scenario) -> Source:
    """The text of a scenario, and where it is from."""
    if isinstance(scenario, Mapping):
        return NAME, NAME, dumps(scenario), ""
    if isinstance(scenario, str) and re.search(r"[\n=]", scenario) and not os.path.exists(scenario):
        return NAME, NAME, scenario, ""
    name, title, text, base = _tailwater.read(os.fspath(scenario))
    return name, title, text, os.fspath(base)


def changes(sets: Sets) -> list[str]:
    """Changes as ``key=value``."""
    if sets is None:
        return []
    if isinstance(sets, str):
        return [sets]
    if isinstance(sets, Mapping):
        return [f"{key}={word(item)}" for key, item in sets.items()]
    return [str(item) for item in sets]


def axes(vary: Union[Mapping[str, Iterable[Any]], Iterable[str], None]) -> list[str]:
    """What is varied, as ``key=value,value``."""
    if vary is None:
        return []
    if isinstance(vary, str):
        return [vary]
    if isinstance(vary, Mapping):
        return [f"{key}={','.join(word(item) for item in values)}" for key, values in vary.items()]
    return [str(item) for item in vary]


def seeded(
    sets: list[str], schemes: list[str], vary: list[str], seeds: Union[int, Iterable[int], None]
) -> Tuple[list[str], list[str], list[str], Optional[str]]:
    """The same with seeds as the command line has them: how many, which, or a single one by ``--set``."""
    if seeds is None or isinstance(seeds, int):
        return sets, schemes, vary, None if seeds is None else str(seeds)
    which = [int(seed) for seed in seeds]
    if len(which) == 1:
        return [*sets, f"seed={which[0]}"], schemes, vary, None
    return sets, schemes, vary, ",".join(map(str, which))


#: Texts that no reader of TOML takes for anything else: a word, or a number with a unit.
_PLAIN = re.compile(r"(?!(?:true|false|inf|nan)$)(?:[A-Za-z][\w.+/-]*|(?!0[xob])\d+(?:\.\d+)?(?![eE]\d)[A-Za-z%][\w/%]*)")


def word(item: Any) -> str:
    """A value as it stands after ``key=``."""
    return item if isinstance(item, str) and _PLAIN.fullmatch(item) else value(item)


_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def _quoted(text: str) -> str:
    def char(c: str) -> str:
        return _ESCAPES.get(c) or (f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else c)

    return '"' + "".join(map(char, text)) + '"'


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a key of a scenario is a text, not {key!r}")
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _quoted(key)


def value(item: Any) -> str:
    """A value in TOML, in one line."""
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, str):
        return _quoted(item)
    if isinstance(item, os.PathLike):
        return _quoted(os.fspath(item))
    if isinstance(item, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {value(v)}" for k, v in item.items()) + " }" if item else "{}"
    if isinstance(item, (list, tuple, range)):
        return "[" + ", ".join(value(v) for v in item) + "]"
    if isinstance(item, (datetime.date, datetime.time)):
        return item.isoformat()
    if hasattr(item, "__index__"):
        return str(item.__index__())
    if hasattr(item, "__float__"):
        number = float(item)
        return repr(number) if math.isfinite(number) else {"inf": "inf", "-inf": "-inf"}.get(str(number), "nan")
    raise TypeError(f"{item!r} cannot be written in a scenario: use texts, numbers, booleans, lists and dictionaries")


def _is_tables(item: Any) -> bool:
    return isinstance(item, (list, tuple)) and len(item) > 0 and all(isinstance(v, Mapping) for v in item)


def dumps(table: Mapping[str, Any]) -> str:
    """A dictionary as TOML."""
    lines: list[str] = []

    def write(table: Mapping[str, Any], path: str) -> None:
        deep = {k: v for k, v in table.items() if isinstance(v, Mapping) or _is_tables(v)}
        lines.extend(f"{_key(k)} = {value(v)}" for k, v in table.items() if k not in deep)
        for key, item in deep.items():
            below = f"{path}.{_key(key)}" if path else _key(key)
            for one in [item] if isinstance(item, Mapping) else item:
                head = f"[{below}]" if isinstance(item, Mapping) else f"[[{below}]]"
                lines.extend(["", head] if lines else [head])
                write(one, below)

    write(table, "")
    return "\n".join(lines) + "\n"


def folder(path: Union[str, "os.PathLike[str]"]) -> str:
    """A path that means the same from anywhere on this machine."""
    return str(Path(path).absolute())
