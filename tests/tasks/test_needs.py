"""A need is what somebody wants done, in the description's own words, or nothing."""

from __future__ import annotations

import pytest

from paraagent.tasks.needs import need_of


@pytest.mark.parametrize(
    ("description", "need"),
    [
        (
            "Returns detailed information about the specified cluster, including its tags.",
            "get a cluster",
        ),
        ("Lists the layers of your map by id.", "list the layers of my map"),
        (
            "Retrieves a paginated list of orders for the given customers.",
            "list orders for the customers",
        ),
        (
            "This operation returns the weather forecast of an existing airport. See the guide.",
            "get the weather forecast of an airport",
        ),
        ("Describes one or more volumes that you own.", "get the volumes"),
        ("List of all nodes linked to a registration", "list all nodes linked to a registration"),
        ("Gets the current state of a shipment based on its number.", "get the current state of a shipment"),
    ],
)
def test_a_description_becomes_a_need(description: str, need: str) -> None:
    assert need_of(description) == need


@pytest.mark.parametrize(
    "description",
    [
        "Deletes a cluster and its nodes.",
        "Returns the details.",
        "Gets the eventId of a calendar entry.",
        "Returns a JSON response for the endpoint.",
        "Calls GET /v1/orders",
        "",
        "Retrieves information about what you can see.",
    ],
)
def test_a_description_that_says_no_need_gives_none(description: str) -> None:
    assert need_of(description) is None
