"""Names: readable, valid, unique, stable."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraagent.catalog.effects import effect
from paraagent.catalog.names import assign, candidate

VALID = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")


@pytest.mark.parametrize(
    ("provider", "service", "name", "expected"),
    [
        ("amazonaws.com", "ec2", "DescribeInstances", "ec2_describe_instances"),
        ("googleapis.com", "calendar", "events.list", "calendar_events_list"),
        ("stripe.com", "stripe.com", "GetCustomersCustomer", "stripe_get_customers_customer"),
        ("github.com", "api.github.com", "repos/get", "github_repos_get"),
        ("azure.com", "compute", "VirtualMachines_List", "azure_compute_virtual_machines_list"),
        ("api.video", "api.video", "list-videos", "video_list_videos"),
        ("stripe.com", "stripe.com", "stripe_refund", "stripe_refund"),
    ],
)
def test_names_say_where_a_tool_belongs_and_what_it_does(provider: str, service: str, name: str, expected: str) -> None:
    assert candidate(provider, service, name) == expected


def test_a_long_name_gives_up_the_service_before_its_own_words() -> None:
    name = candidate("azure.com", "a-very-long-service-name-that-goes-on", "VirtualMachineScaleSets_GetInstanceView")
    assert name.startswith("azure_a_very_long")
    assert name.endswith("virtual_machine_scale_sets_get_instance_view")
    assert len(name) <= 64


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=200))
def test_any_name_is_valid(provider: str, service: str, name: str) -> None:
    assert VALID.match(candidate(provider, service, name))


@given(st.lists(st.sampled_from(["a", "A", "b", "x" * 64, "x" * 63 + "Y"]), max_size=30))
def test_assigned_names_are_unique_after_case_folding_and_the_first_keeps_its_own(wanted: list[str]) -> None:
    names = assign((f"id{i}", name) for i, name in enumerate(wanted))
    assert len({name.lower() for name in names}) == len(wanted)
    assert all(VALID.match(name) for name in names)
    for i, name in enumerate(wanted):
        if name.lower() not in {earlier.lower() for earlier in wanted[:i]}:
            assert names[i] == name


def test_a_tool_keeps_its_name_when_later_tools_want_it_too() -> None:
    first = assign([("a/1", "get"), ("a/2", "get")])
    assert assign([("a/1", "get"), ("a/2", "get"), ("b/1", "get")])[:2] == first


@pytest.mark.parametrize(
    ("method", "name", "expected"),
    [
        ("GET", "DeleteNothing", "read"),
        ("POST", "DescribeInstances", "read"),
        ("POST", "projects.locations.list", "read"),
        ("POST", "CreateBucket", "create"),
        ("POST", "TerminateInstances", "delete"),
        ("PATCH", "cups", "update"),
        ("PUT", "CreateCup", "create"),
        ("DELETE", "cups", "delete"),
        ("POST", "Frobnicate", "other"),
    ],
)
def test_effect_follows_the_method_and_then_the_verb(method: str, name: str, expected: str) -> None:
    assert effect(method, name) == expected
