"""One seed decides everything: every random choice derives its own seed from the run's seed and what it is for."""

from __future__ import annotations

import hashlib
import random


def derive(seed: int, *parts: object) -> int:
    """A 63-bit seed that depends on `seed` and on every part's text; stable across processes and versions of Python."""
    text = "\x1f".join([str(seed), *map(str, parts)])
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") >> 1


def rng(seed: int, *parts: object) -> random.Random:
    """A private random generator for one purpose."""
    return random.Random(derive(seed, *parts))
