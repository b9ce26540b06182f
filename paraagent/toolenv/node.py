"""A compiled schema: what makes its values from a key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from paraagent.toolenv.leaves import MASK

SHIFT = 48
"""A value's own key are the bits of the product of its holder's key and its salt from this one on: two random factors
scatter over the middle of their product, and no cheaper way does."""


class Node(NamedTuple):
    """Makes a value. Objects and arrays call `make` themselves: a call more for every field would cost too much."""

    make: Callable[..., Any]
    salt: int = 0
    """Of a plain value, made by a leaf `(key, now)`; 0 where `make` takes `(key, now, scene)`."""

    def __call__(self, key: int, now: int, scene: Any) -> Any:
        if self.salt:
            return self.make(key * self.salt >> SHIFT & MASK, now)
        return self.make(key, now, scene)


def constant(value: Any) -> Node:
    """The same value always."""
    return Node(lambda key, now: value, 1)
