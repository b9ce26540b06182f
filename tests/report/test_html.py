"""The page as text: complete, escaped, and the same bytes for the same facts."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

from paraagent.config import Profile
from paraagent.report.collect import Facts, collect
from paraagent.report.html import draw, headline, render


class _Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_what_models_and_tools_write_is_text_never_markup(page: str) -> None:
    assert "&lt;script&gt;alert(" in page
    tags = _Tags(page).found
    assert not [tag for tag, _ in tags if tag in ("script", "img", "iframe", "object")]
    assert not [name for _, attributes in tags for name in attributes if name.startswith("on")]


def test_control_characters_do_not_reach_the_page(page: str) -> None:
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", page)


def test_nothing_is_loaded_from_anywhere(page: str) -> None:
    for _, attributes in _Tags(page).found:
        for name in ("src", "href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:")), attributes
    assert "@import" not in page
    assert "url(http" not in page


def test_the_same_artifacts_give_the_same_bytes(artifacts: dict[str, Path], profile: Profile, page: str) -> None:
    again = collect(artifacts, profile, "0123456789abcdef")
    assert render(again, draw(again)) == page


def test_ids_are_unique(page: str) -> None:
    ids = [attributes["id"] for _, attributes in _Tags(page).found if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_every_table_has_a_caption_and_every_plot_a_text(page: str) -> None:
    assert page.count("<table>") == page.count("<caption>") > 8
    tags = _Tags(page).found
    plots = [attributes for tag, attributes in tags if attributes.get("role") == "img"]
    assert len(plots) == sum(tag == "svg" for tag, _ in tags) == 6
    assert all(attributes["aria-label"] for attributes in plots)


def test_headings_go_down_one_level_at_a_time(page: str) -> None:
    levels = [int(tag[1]) for tag, _ in _Tags(page).found if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))


def test_figures_of_the_page_are_those_of_the_summary(facts: Facts, page: str) -> None:
    for system, row in facts.summary["success"].items():
        assert f"{row['solved']} of {row['n']} solved" in page, system
    for stage in facts.stages:
        assert stage["fingerprint"][:12] in page


def test_the_curve_of_validation_says_where_most_was_solved(page: str) -> None:
    assert "most were solved at step 20: 14." in page
    assert "Validation in closed loop by step." in page


def test_a_broken_contract_says_which_check_and_how_grave(page: str) -> None:
    assert ">holds</td>" in page
    assert ">broken</td>" in page
    assert "onerror=alert(1)&gt; \N{REPLACEMENT CHARACTER} (warning)" in page


def test_the_headline_says_what_the_numbers_can_show() -> None:
    summary = {
        "tasks": 10,
        "systems": ["base", "sft", "rl"],
        "success": {"base": {"solved": 0}, "sft": {"solved": 7}, "rl": {"solved": 8}},
        "differences": [
            {"baseline": "base", "system": "sft", "difference": 0.7, "low": 0.4, "high": 0.9},
            {"baseline": "sft", "system": "rl", "difference": 0.1, "low": -0.1, "high": 0.3},
        ],
    }
    text = headline(summary)
    assert "Of 10 held-out tasks, base solved 0, sft solved 7, rl solved 8." in text
    assert "From base to sft: +70.0 points (+40.0 to +90.0), a difference." in text
    assert "From sft to rl: +10.0 points (−10.0 to +30.0), no difference that this many tasks can show." in text


def test_examples_show_every_system_and_both_ends(facts: Facts) -> None:
    assert {view.system for view in facts.examples} == {"oracle", "base", "sft", "rl"}
    assert {"solved", "wrong_arguments", "format"} <= {view.outcome for view in facts.examples}
    assert any(len(turn.calls) > 1 and "together" in turn.title for view in facts.examples for turn in view.turns)


def test_a_blank_turn_says_so_instead_of_showing_an_empty_box(facts: Facts) -> None:
    raw = [turn.raw for view in facts.examples if view.system == "base" for turn in view.turns]
    assert raw[1] == "(nothing but white space)"
