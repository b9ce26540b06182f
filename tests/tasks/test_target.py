"""What a person calls a parameter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paraagent.tasks.target import owner_of, word_of
from tests.toolenv.interfaces import tool


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("extid", "external ID"),
        ("appid", "app ID"),
        ("paid", "paid"),
        ("awsAccountId", "AWS account ID"),
        ("trans_id", "transaction ID"),
        ("bundleSid", "bundle SID"),
    ],
)
def test_a_parameter_is_said_in_words(name: str, word: str) -> None:
    assert word_of(name, ()) == word


@pytest.mark.parametrize(("source_name", "owner"), [("members_update", ()), ("update_members", ("member",))])
def test_a_parameter_belongs_to_a_thing_and_to_no_act(source_name: str, owner: tuple[str, ...]) -> None:
    assert owner_of(replace(tool(), source_name=source_name, path="/members"), "name") == owner
