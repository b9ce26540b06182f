"""The eight laws over interfaces drawn at random and over families of tools, and that the checks see a broken world."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paraagent.catalog.interface import ToolInterface
from paraagent.progress import Quiet
from paraagent.toolenv.laws import LAWS, Findings, check_laws, play
from paraagent.toolenv.laws.census import take_census
from paraagent.toolenv.meaning import Meaning
from paraagent.toolenv.session import Session
from paraagent.toolenv.world import World
from tests.toolenv.families import CALENDAR, CLUSTER, REPOSITORIES
from tests.toolenv.interfaces import interfaces

FAMILIES = {"calendar": CALENDAR, "cluster": CLUSTER, "repositories": REPOSITORIES}


def broken_laws(found: Findings) -> set[int]:
    return {violation.law for violation in found.violations}


@settings(max_examples=100, deadline=None)
@given(interface=interfaces(), seed=st.integers(0, 2**62))
def test_the_laws_hold_for_any_interface(interface: ToolInterface, seed: int) -> None:
    assert check_laws([interface], seed).violations == []


@settings(max_examples=25, deadline=None)
@given(family=st.sampled_from(sorted(FAMILIES)), seed=st.integers(0, 2**62))
def test_the_laws_hold_for_families_of_tools(family: str, seed: int) -> None:
    assert check_laws(FAMILIES[family], seed).violations == []


def test_every_law_is_asked_of_a_whole_family() -> None:
    assert {law for law, _ in check_laws(CALENDAR, 1).checks} == set(LAWS)


def test_the_laws_hold_for_the_tools_of_the_fixtures(tiny_tools: list[ToolInterface]) -> None:
    kinds = groupby(sorted(tiny_tools, key=_kind), _kind)
    assert [each for _, family in kinds for each in check_laws(list(family), 5).violations] == []


def _kind(tool: ToolInterface) -> tuple[str, str]:
    return Meaning(tool).kind


class Answering(World):
    """A world whose answers are spoilt in one way."""

    law: ClassVar[int]
    told: ClassVar[int] = 0

    def respond(self, tool: ToolInterface, arguments: Mapping[str, Any]) -> Any:
        return self.spoilt(tool, super().respond(tool, arguments))

    def spoilt(self, tool: ToolInterface, result: Any) -> Any:
        return result


class Moody(Answering):
    law = 1

    def spoilt(self, tool: ToolInterface, result: Any) -> Any:
        Moody.told += 1
        return {**result, "summary": f"answer {Moody.told}"} if "summary" in result else result


class Careless(Answering):
    law = 2

    def spoilt(self, tool: ToolInterface, result: Any) -> Any:
        return {**result, "status": "somehow"} if "status" in result else result


class Deaf(Answering):
    law = 3

    def spoilt(self, tool: ToolInterface, result: Any) -> Any:
        return {**result, "calendarId": "another"} if "calendarId" in result else result


class Fickle(Answering):
    law = 4

    def spoilt(self, tool: ToolInterface, result: Any) -> Any:
        return {**result, "summary": tool.name} if tool.source_name == "events.get" else result


class Obliging(World):
    law = 5

    def __init__(self, seed: int, issued: Any = None) -> None:
        super().__init__(seed)


class Forgetful(Answering):
    law = 6

    def respond(self, tool: ToolInterface, arguments: Mapping[str, Any]) -> Any:
        return {} if tool.effect == "delete" else super().respond(tool, arguments)


class Leaky(World):
    law = 7
    sessions: ClassVar[dict[int, Session]] = {}

    def __init__(self, seed: int, issued: Any = None) -> None:
        super().__init__(seed, issued)
        self.session = self.sessions.setdefault(seed, self.session)


class Generous(Answering):
    law = 8

    def respond(self, tool: ToolInterface, arguments: Mapping[str, Any]) -> Any:
        return super().respond(tool, {name: each for name, each in arguments.items() if name != "maxResults"})


@pytest.mark.parametrize("world", [Moody, Careless, Deaf, Fickle, Obliging, Forgetful, Leaky, Generous])
def test_a_world_that_breaks_a_law_is_caught(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play, "World", world)
    assert world.law in broken_laws(check_laws(CALENDAR, 1))


def test_a_census_asks_every_tool_of_a_catalog_in_two_processes(tiny_catalog_path: Path) -> None:
    taken = take_census(tiny_catalog_path, 0, 2, 0, 1, Quiet())
    assert taken["tools"] == taken["laws"]["1"]["tools"] == 30
    assert sum(len(law["violations"]) for law in taken["laws"].values()) == 0
