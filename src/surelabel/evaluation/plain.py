"""Dataclasses from plain values, as JSON has them."""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import types
import typing
from typing import Any


@functools.cache  # some evaluations hold figures of a hundred thousand labels
def _type_hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def from_plain(kind: Any, value: Any) -> Any:
    """Return the inverse of `dataclasses.asdict` for a type; raise TypeError, ValueError or KeyError for other values.

    Examples
    --------
    >>> from_plain(dict[float, tuple[int, ...] | None], {"0.5": [1, 2], "0.1": None})
    {0.5: (1, 2), 0.1: None}
    """
    make, origin, inner = kind, typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        hints = _type_hints(make)
        return make(**{name: from_plain(hints[name], part) for name, part in value.items()})
    if origin is types.UnionType:
        return None if value is None else from_plain(inner[0], value)
    if origin is tuple and isinstance(value, (list, tuple)):
        return tuple(from_plain(inner[0], part) for part in value)
    if origin in (dict, collections.abc.Mapping) and isinstance(value, dict):
        return {inner[0](name): from_plain(inner[1], part) for name, part in value.items()}
    allowed: Any = str if origin is typing.Literal else (int, float) if kind is float else origin or kind
    if kind is not Any and (isinstance(value, bool) or not isinstance(value, allowed)):
        raise TypeError(f"{value!r:.60} is not of type {kind}")
    return value
