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
        ("Looks up a user by primary email address.", "get a user by primary email address"),
        ("Lookup a member of the club.", "get a member of the club"),
        ("Look up the screening.", "get the screening"),
        ("Looks at the seats of a hall.", "get the seats of a hall"),
        ("Pulls up the bill of a table.", "get the bill of a table"),
        ("Finds out the height of a mast.", "find out the height of a mast"),
        ("Gets the keys of the specified user.", "get the keys of a user"),
        ("Returns a event of an unit in a hour.", "get an event of a unit in an hour"),
        ("Gets the details and status of a task.", "get a task"),
        ("Gets a participation of a race by external id.", "get a participation of a race"),
        ("Fetch up to 8 songs of a band.", "get songs of a band"),
        ("Searches and browses the shelves with pagination.", "search and browse the shelves"),
        ("Lists Amazon Quick accounts.", "list Amazon Quick accounts"),
        ("Query to list all workflows.", "list all workflows"),
        ("Gets a Rollout of the platform.", "get a rollout of the platform"),
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
        "Checks out a license.",
        "Search for categorie.",
        "Gets the state of a of the partition.",
    ],
)
def test_a_description_that_says_no_need_gives_none(description: str) -> None:
    assert need_of(description) is None


@pytest.mark.parametrize(
    ("description", "need"),
    [
        ("Turns on notifications for a vault.", "turn on notifications for a vault"),
        ("Carries out the plan of a team.", "carry out the plan of a team"),
        ("Rolls back a transaction.", "roll back a transaction"),
        ("Sets up a water meter.", "set up a water meter"),
        ("Adds up to 10 members to a club.", "add members to a club"),
        (
            "Changes the properties of a review and leaves the others.",
            "change the properties of a review and leave the others",
        ),
    ],
)
def test_a_verb_of_two_words_that_changes_something_stays_whole(description: str, need: str) -> None:
    assert need_of(description, writing=True) == need
