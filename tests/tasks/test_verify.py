"""Every check of a task, shown on a task that fails it alone."""

from __future__ import annotations

from typing import Any

import pytest

from paraagent.catalog.interface import ToolInterface
from paraagent.catalog.store import Catalog
from paraagent.config import EnvConfig
from paraagent.retrieval.index import Hit, ToolIndex
from paraagent.task import Atom, ReferenceCall, Slot, Task
from paraagent.tasks.facts import value_at
from paraagent.tasks.rejection import RejectionError
from paraagent.tasks.verify import (
    Outline,
    check_answer,
    check_found,
    check_request,
    difficulty,
    is_sibling,
    nearest,
    solved_by_oracle,
)
from paraagent.toolenv.world import World

NAME = "shipping_track_parcel"
ARGUMENTS = {"tracking_number": "278418"}
REQUEST = "Where is my parcel? The tracking number is 278418. Tell me the city."


def parcel(tool: ToolInterface, **changes: Any) -> Task:
    value = value_at(World(12).respond(tool, ARGUMENTS), "city")
    fields: dict[str, Any] = {
        "task_id": "train-00001",
        "request": REQUEST,
        "shape": "single",
        "width": 1,
        "reach": "service",
        "split": "train",
        "seed": 12,
        "slots": (Slot(text="track a parcel by its number", tool=NAME),),
        "calls": (ReferenceCall(id="c1", tool=NAME, arguments=ARGUMENTS),),
        "atoms": (Atom(call="c1", path="city", value=value),),
    }
    return Task(**(fields | changes))


@pytest.fixture
def tracker(tiny_catalog: Catalog) -> ToolInterface:
    tool = tiny_catalog.get(NAME)
    assert tool is not None
    return tool


def test_a_good_task_passes_every_check(tracker: ToolInterface, tiny_catalog: Catalog, tiny_index: ToolIndex) -> None:
    task = parcel(tracker)
    check_request(task)
    check_answer(task, {NAME: tracker}, EnvConfig())
    assert solved_by_oracle([task], tiny_catalog, tiny_index, EnvConfig()) == [True]
    assert solved_by_oracle([task], tiny_catalog, tiny_index, EnvConfig(fault_rate=1.0, latency="fixed")) == [True]


def test_an_answer_that_stands_in_the_request_is_rejected(tracker: ToolInterface) -> None:
    task = parcel(tracker)
    with pytest.raises(RejectionError, match="answer stands in the request"):
        check_request(task.model_copy(update={"request": f"{REQUEST} Is it in {task.atoms[0].value}?"}))


def test_a_request_that_names_its_tool_is_rejected(tracker: ToolInterface) -> None:
    with pytest.raises(RejectionError, match="request names a tool"):
        check_request(parcel(tracker, request=f"{REQUEST} Use {NAME}."))


def test_a_request_without_an_argument_is_rejected(tracker: ToolInterface) -> None:
    with pytest.raises(RejectionError, match="request lacks an argument"):
        check_request(parcel(tracker, request="Where is my parcel? Tell me the city."))


def test_a_long_request_is_rejected(tracker: ToolInterface) -> None:
    with pytest.raises(RejectionError, match="request is too long"):
        check_request(parcel(tracker, request=REQUEST + " please" * 50))


def test_an_answer_of_another_world_is_rejected(tracker: ToolInterface) -> None:
    with pytest.raises(RejectionError, match="answer does not hold in the task's world"):
        check_answer(
            parcel(tracker, atoms=(Atom(call="c1", path="city", value="Nowhere"),)), {NAME: tracker}, EnvConfig()
        )


def test_an_answer_that_the_call_only_repeats_is_rejected(tracker: ToolInterface) -> None:
    atom = Atom(call="c1", path="tracking_number", value="278418")
    with pytest.raises(RejectionError, match="answer is the same in another world"):
        check_answer(parcel(tracker, atoms=(atom,)), {NAME: tracker}, EnvConfig())


def test_an_answer_at_no_place_is_rejected(tracker: ToolInterface) -> None:
    with pytest.raises(RejectionError, match="answer does not hold in the task's world"):
        check_answer(parcel(tracker, atoms=(Atom(call="c1", path="town", value="Lyon"),)), {NAME: tracker}, EnvConfig())


def test_a_reference_that_does_not_find_its_tool_earns_nothing(
    tracker: ToolInterface, tiny_catalog: Catalog, tiny_index: ToolIndex
) -> None:
    wrong = parcel(tracker, calls=(ReferenceCall(id="c1", tool=NAME, arguments={"number": "278418"}),))
    assert solved_by_oracle([wrong], tiny_catalog, tiny_index, EnvConfig()) == [False]


def outline(name: str, description: str, effect: str = "read", needs: str = "id", takes: str = "id") -> Outline:
    return Outline(name, name, effect, description, frozenset(needs.split()), frozenset(takes.split()))


GET = outline("calendar_events_get", "Returns one event of a calendar.")


@pytest.mark.parametrize(
    ("other", "sibling"),
    [
        (outline("calendar_events_list", "Lists what is planned."), True),
        (outline("calendar_v3_events_get", "An event."), True),
        (outline("calendar_us_event_get", "An event."), True),
        (outline("agenda_entry", "Returns one event of the calendar."), True),
        (outline("calendar_events_delete", "Removes one event of a calendar.", "delete"), False),
        (outline("calendar_settings_get", "Returns one setting."), False),
        (outline("calendar_us_event_get", "An event.", needs="id region", takes="id region"), False),
        (outline("calendar_events_list", "Lists what is planned.", needs="", takes="query"), False),
    ],
)
def test_a_variant_or_twin_is_a_sibling_and_another_act_is_not(other: Outline, sibling: bool) -> None:
    assert is_sibling(GET, other) is sibling


def test_a_tool_that_its_slot_does_not_find_is_rejected() -> None:
    other = outline("weather_current", "Tells the weather.")
    with pytest.raises(RejectionError, match="slot does not find the tool"):
        check_found(GET, [Hit(other.name, 1.0)], {other.name: other})


def test_a_tool_beside_its_sibling_is_rejected() -> None:
    twin = outline("calendar_events_list", "Lists what is planned.")
    check_found(GET, [Hit(GET.name, 2.0), Hit(twin.name, 1.0)], {twin.name: twin}, {GET.name, twin.name})
    with pytest.raises(RejectionError, match="near-identical sibling"):
        check_found(GET, [Hit(GET.name, 2.0), Hit(twin.name, 1.0)], {twin.name: twin})


def test_the_nearest_other_tool_is_the_one_that_says_most_of_the_same() -> None:
    far, near = outline("a", "Returns one invoice."), outline("b", "Returns one event of a diary.")
    hits = [Hit(name, 1.0) for name in (GET.name, "a", "b")]
    name, likeness = nearest(GET, hits, {each.name: each for each in (GET, far, near)})
    assert name == "b"
    assert 0 < likeness < 1


def test_more_calls_and_more_alike_tools_make_a_task_harder(tracker: ToolInterface) -> None:
    task = parcel(tracker)
    calls = (task.calls[0], ReferenceCall(id="c2", tool="other", arguments={}))
    chain = task.model_copy(update={"calls": calls, "width": 2, "hard_edges": (("c1", "c2"),)})
    assert 0 <= difficulty(task, 0.0, 0) < difficulty(task, 0.5, 0) < difficulty(chain, 0.5, 0) <= 1
