"""A result that is too long is cut on its structure."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paraagent.toolenv.limits import LEFT_OUT, fit_json, size

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=12), inner, max_size=8),
    max_leaves=60,
)


@settings(deadline=None)
@example(value={f"field {number}": [[number] * 30] for number in range(100)}, room=400)
@example(value={str(number): number for number in range(200_000)}, room=400)
@given(value=VALUES, room=st.integers(40, 400))
def test_a_cut_value_is_json_that_fits(value: Any, room: int) -> None:
    cut = fit_json(value, room)
    assert size(cut) <= room
    assert orjson.loads(orjson.dumps(cut)) == cut


@given(value=VALUES)
def test_a_value_that_fits_is_left_as_it_is(value: Any) -> None:
    assert fit_json(value, size(value)) is value


def test_a_long_array_keeps_its_first_elements_and_counts_the_others() -> None:
    cut = fit_json(list(range(1000)), 100)
    assert cut[:5] == [0, 1, 2, 3, 4]
    assert cut[-1] == {LEFT_OUT: f"{1000 - len(cut) + 1} items"}


def test_small_fields_stay_whole_beside_a_large_one() -> None:
    cut = fit_json({"id": "evt_1", "log": "x" * 5000, "status": "done"}, 200)
    assert (cut["id"], cut["status"]) == ("evt_1", "done")
    assert cut["log"].endswith("… (5000 characters)")


def test_an_object_with_too_many_fields_says_how_many_are_missing() -> None:
    cut = fit_json({f"field_{number}": number for number in range(100)}, 300)
    assert cut[LEFT_OUT] == f"{100 - len(cut) + 1} fields"
