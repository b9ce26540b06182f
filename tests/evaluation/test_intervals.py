"""Wilson's interval and the paired bootstrap, against figures computed by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraagent.evaluation import paired_bootstrap, wilson


def test_wilson_of_eight_in_ten_is_the_textbook_interval() -> None:
    # z = 1.959964, z² = 3.841459: centre (0.8 + 0.192073) / 1.384146 = 0.716738,
    # half-width 1.959964 / 1.384146 · √(0.016 + 0.009604) = 0.226579.
    rate, low, high = wilson(8, 10, 0.95)
    assert rate == 0.8
    assert low == pytest.approx(0.490160, abs=1e-5)
    assert high == pytest.approx(0.943317, abs=1e-5)


def test_wilson_is_not_a_point_at_the_ends() -> None:
    assert wilson(0, 10, 0.95) == (0.0, 0.0, pytest.approx(0.277533, abs=1e-5))
    assert wilson(10, 10, 0.95) == (1.0, pytest.approx(0.722467, abs=1e-5), 1.0)


def test_no_episodes_say_nothing() -> None:
    assert wilson(0, 0, 0.95) == (0.0, 0.0, 1.0)


@given(n=st.integers(1, 500), share=st.floats(0, 1), confidence=st.floats(0.5, 0.999))
def test_wilson_holds_the_rate_and_mirrors(n: int, share: float, confidence: float) -> None:
    solved = round(share * n)
    rate, low, high = wilson(solved, n, confidence)
    assert 0 <= low <= rate <= high <= 1
    mirrored = wilson(n - solved, n, confidence)
    assert mirrored.low == pytest.approx(1 - high)
    assert mirrored.high == pytest.approx(1 - low)


def test_more_confidence_is_a_wider_interval() -> None:
    narrow, wide = wilson(30, 40, 0.8), wilson(30, 40, 0.99)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_the_same_seed_gives_the_same_bootstrap() -> None:
    first, second = [1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0]
    assert paired_bootstrap(first, second, 0.95, seed=7) == paired_bootstrap(first, second, 0.95, seed=7)
    value, low, high = paired_bootstrap(first, second, 0.95, seed=7)
    assert value == pytest.approx(2 / 7)
    assert low <= value <= high


def test_a_constant_difference_is_certain() -> None:
    assert paired_bootstrap([1.0] * 9, [0.0] * 9, 0.95, seed=1) == (1.0, 1.0, 1.0)


def test_bootstrap_of_many_pairs_meets_the_normal_interval() -> None:
    # 100 pairs, 30 gained and 10 lost: mean 0.2, variance 0.4 − 0.04 = 0.36, so 0.2 ± 1.96 · 0.6 / 10.
    first, second = [1.0] * 30 + [0.0] * 70, [0.0] * 30 + [1.0] * 10 + [0.0] * 60
    value, low, high = paired_bootstrap(first, second, 0.95, seed=3)
    assert value == pytest.approx(0.2)
    assert low == pytest.approx(0.2 - 0.1176, abs=0.015)
    assert high == pytest.approx(0.2 + 0.1176, abs=0.015)


def test_unpaired_values_are_refused() -> None:
    with pytest.raises(ValueError, match="3 and 2"):
        paired_bootstrap([1, 0, 1], [1, 0], 0.95, seed=0)
