"""Intervals: how sure a measured rate or difference is, given how few episodes it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np


class Interval(NamedTuple):
    """An estimate and the two ends of its confidence interval."""

    value: float
    low: float
    high: float


def wilson(successes: int, n: int, confidence: float) -> Interval:
    """Wilson's score interval of a success rate (Wilson 1927): never outside 0 … 1, sensible at 0 and at n successes.

    Without trials nothing is known: rate 0, interval 0 … 1.
    """
    if n == 0:
        return Interval(0.0, 0.0, 1.0)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    rate = successes / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Interval(rate, low, high)


def paired_bootstrap(
    first: Sequence[float], second: Sequence[float], confidence: float, seed: int, resamples: int = 10_000
) -> Interval:
    """Mean of `first - second` over the same tasks, with the percentile interval of a bootstrap over tasks (Efron
    1979).

    Pairs stay together in every resample, so that what makes a task hard for both systems cancels out. The same seed
    gives the same interval.

    Raises:
        ValueError: the two sequences differ in length.
    """
    if len(first) != len(second):
        raise ValueError(f"paired values must match: {len(first)} and {len(second)}")
    if not first:
        return Interval(0.0, 0.0, 0.0)
    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    draws = np.random.default_rng(seed).integers(0, len(difference), size=(resamples, len(difference)))
    low, high = np.quantile(difference[draws].mean(axis=1), [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(difference.mean()), float(low), float(high))
