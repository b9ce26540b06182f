import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraagent.training.advantages import decoupled, whiten, within_groups

WEIGHTS = {"trajectory": 1.0, "phase": 0.5, "step": 0.25}
ALL = np.ones(4, dtype=bool)
ONE_GROUP = np.zeros(4, dtype=np.int64)


def test_a_channel_is_normalised_with_the_population_deviation() -> None:
    values, flat = within_groups(np.array([1.0, 2.0, 3.0, 4.0]), ONE_GROUP, ALL)
    deviation = np.sqrt(1.25) + 1e-6
    assert values == pytest.approx(np.array([-1.5, -0.5, 0.5, 1.5]) / deviation)
    assert flat == 0


def test_channels_are_normalised_apart_then_weighted_added_and_whitened() -> None:
    channels = {
        "trajectory": np.array([2.0, 0.0, 2.0, 0.0]),  # ±1
        "phase": np.array([0.5, 0.5, 0.1, 0.1]),  # ±1
        "step": np.array([1.0, 1.0, 1.0, 1.0]),  # no spread
    }
    found = decoupled(channels, WEIGHTS, ONE_GROUP, ALL)
    summed = np.array([1.5, -0.5, 0.5, -1.5])
    assert found.values == pytest.approx(summed / np.sqrt(1.25), abs=1e-4)
    assert found.flat == {"trajectory": 0, "phase": 0, "step": 1}
    assert found.reason == ""


def test_a_small_channel_weighs_as_much_as_a_large_one() -> None:
    large = {"trajectory": np.array([200.0, 0.0, 0.0, 200.0]), "phase": np.zeros(4), "step": np.zeros(4)}
    small = {"trajectory": np.array([0.002, 0.0, 0.0, 0.002]), "phase": np.zeros(4), "step": np.zeros(4)}
    one, other = (decoupled(channels, WEIGHTS, ONE_GROUP, ALL).values for channels in (large, small))
    assert one == pytest.approx(other, abs=5e-3)


def test_groups_are_compared_with_themselves_only() -> None:
    groups = np.array([0, 0, 1, 1])
    values, flat = within_groups(np.array([0.0, 1.0, 100.0, 101.0]), groups, ALL)
    assert values == pytest.approx(np.array([-1.0, 1.0, -1.0, 1.0]), abs=1e-5)
    assert flat == 0


def test_a_group_of_one_and_a_flat_group_contribute_nothing() -> None:
    values, flat = within_groups(np.array([5.0, 1.0, 1.0 + 1e-9, 1.0]), np.array([0, 1, 1, 1]), ALL)
    assert not values.any()
    assert flat == 2


def test_an_episode_without_a_verdict_leaves_the_statistics_and_gets_nothing() -> None:
    verdict = np.array([True, True, True, False])
    channels = {name: np.array([1.0, 2.0, 3.0, np.nan]) for name in WEIGHTS}
    found = decoupled(channels, WEIGHTS, ONE_GROUP, verdict)
    assert found.values[3] == 0
    assert found.values[:3] == pytest.approx(np.array([-1.0, 0.0, 1.0]) * np.sqrt(1.5), abs=1e-4)


def test_a_batch_without_any_signal_says_why_and_moves_nothing() -> None:
    same = {name: np.ones(4) for name in WEIGHTS}
    found = decoupled(same, WEIGHTS, ONE_GROUP, ALL)
    assert not found.values.any()
    assert "differs" in found.reason
    nobody = decoupled(same, WEIGHTS, ONE_GROUP, ~ALL)
    assert not nobody.values.any()
    assert "verdict" in nobody.reason


finite = st.floats(-2, 2, allow_nan=False)


@given(
    st.lists(st.tuples(finite, finite, finite, st.integers(0, 3), st.booleans()), min_size=1, max_size=24),
)
def test_advantages_are_finite_centred_and_zero_without_a_verdict(
    rows: list[tuple[float, float, float, int, bool]],
) -> None:
    table = np.array([row[:3] for row in rows])
    channels = dict(zip(WEIGHTS, table.T, strict=True))
    verdict = np.array([row[4] for row in rows])
    found = decoupled(channels, WEIGHTS, np.array([row[3] for row in rows]), verdict)
    assert np.isfinite(found.values).all()
    assert not found.values[~verdict].any()
    assert abs(found.values.sum()) < 1e-6
    if not found.reason:
        assert found.values[verdict].std() == pytest.approx(1, abs=2e-2) or np.ptp(found.values) < 2


def test_whitening_leaves_mean_zero_and_deviation_one() -> None:
    values = whiten(np.array([1.0, 2.0, 6.0]), np.ones(3, dtype=bool))
    assert values.mean() == pytest.approx(0)
    assert values.std() == pytest.approx(1, abs=1e-5)
