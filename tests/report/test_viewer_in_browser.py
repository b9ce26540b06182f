"""The trace viewer in a real browser: by mouse, by keyboard, on a phone, with hostile and with many episodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from paraagent.report import viewer
from paraagent.trace import Episode
from tests.report.browser import VIEWS, chromium, needs_browser, opened, too_wide, weak_contrasts
from tests.report.episodes import EVIL, full, hostile, large, many, task, unusual, wide

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = needs_browser
DESKTOP = (1280, "light")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("viewer")
    sets: dict[str, list[Episode]] = {
        "full": [full()],
        "some": [full(), hostile(), large()],
        "hostile": [hostile()],
        "large": [large()],
        "unusual": [unusual()],
        "wide": [wide()],
        "twice": [full(), full()],
        "many": many(2_000),
    }
    for name, episodes in sets.items():
        viewer.write(folder / f"{name}.html", episodes, {"full": task()}, f"{name} traces")
    return {name: folder / f"{name}.html" for name in sets}


def heading(page: Page) -> str:
    """The heading of the open episode, which has the focus."""
    page.wait_for_selector("#episode:not([hidden]) h2")
    assert page.evaluate("document.activeElement === document.querySelector('#episode h2')")
    return page.locator("#episode h2").inner_text()


def boxes(page: Page, selector: str) -> list[dict[str, Any]]:
    script = "all => all.map(e => { const b = e.getBoundingClientRect(); return {left: b.left, right: b.right}; })"
    found: list[dict[str, Any]] = page.eval_on_selector_all(selector, script)
    return found


@VIEWS
@pytest.mark.parametrize("name", ["full", "some", "hostile", "large", "many", "unusual", "wide"])
def test_it_loads_quietly_and_fits(browser: Browser, made: dict[str, Path], name: str, view: tuple[int, str]) -> None:
    with opened(browser, made[name], view) as (page, faults):
        if name in ("some", "many"):
            assert page.locator("#list").is_visible()
            assert not too_wide(page)
            page.locator("#rows tbody a").first.click()
        heading(page)
        page.keyboard.press("e")
        page.wait_for_timeout(100)
        assert not too_wide(page)
        assert weak_contrasts(page) == {}
        assert page.locator("table").count() == page.locator("table > caption").count()
        assert faults == []


def test_what_looks_like_markup_is_text(browser: Browser, made: dict[str, Path]) -> None:
    with opened(browser, made["hostile"], DESKTOP) as (page, faults):
        heading(page)
        page.keyboard.press("e")
        page.wait_for_timeout(200)
        assert page.locator("#episode img, #episode script").count() == 0
        assert "<script>alert(1)</script>" in page.locator("#episode").inner_text()
        assert EVIL[-5:] in page.locator("#episode").inner_text()
        assert faults == []


def test_the_timeline_shows_what_ran_together(browser: Browser, made: dict[str, Path]) -> None:
    with opened(browser, made["full"], DESKTOP) as (page, _):
        heading(page)
        first, second, third, last = boxes(page, ".timeline .track .span.call")
        assert first["left"] == pytest.approx(second["left"], abs=1)
        assert third["right"] < second["right"] < first["right"] < last["left"]
        assert page.locator(".timeline .track .span.failed").count() == 1
        assert page.locator(".timeline .track .span.hidden").count() == 1
        text = page.locator(".timeline").inner_text()
        assert "⚡" in text
        assert "×3" in text
        assert page.locator(".band-name").all_inner_texts() == ["Search phase · turn 1", "Call phase · turns 2–3"]


def test_a_plan_is_a_graph_whose_nodes_carry_what_became_of_them(browser: Browser, made: dict[str, Path]) -> None:
    with opened(browser, made["full"], DESKTOP) as (page, _):
        heading(page)
        states = page.eval_on_selector_all(
            ".graph .node",
            "all => all.map(e => [e.querySelector('title').textContent, e.classList[1]])",
        )
        assert {name.split(":")[0]: state for name, state in states} == {
            "list_rooms": "done",
            "get_room": "failed",
            "book#1": "done",
            "book#2": "open",
        }
        assert page.locator(".graph .edge").count() == 1


def test_a_revised_plan_keeps_what_was_done(browser: Browser, made: dict[str, Path]) -> None:
    with opened(browser, made["unusual"], DESKTOP) as (page, _):
        heading(page)
        titles = page.eval_on_selector_all(".graph .node title", "all => all.map(e => e.textContent)")
        assert titles == [
            "list_rooms: done",
            "get_room: succeeded, but not shown to the model",
            "book#1: never called",
            "book#2: never called",
            "list_rooms: done",
            "weather: never called",
            "book: done",
        ]


def test_without_times_only_the_order_is_drawn(browser: Browser, made: dict[str, Path]) -> None:
    with opened(browser, made["unusual"], DESKTOP) as (page, _):
        heading(page)
        assert "only the order is drawn" in page.locator(".timeline-part").inner_text()
        assert page.locator(".axis").count() == 0
        first, second, last = boxes(page, ".timeline .track .span.call")
        assert first == second
        assert last["left"] == pytest.approx(first["right"], abs=1)


def test_tools_given_before_the_first_turn_are_shown(browser: Browser, made: dict[str, Path]) -> None:
    with opened(browser, made["unusual"], DESKTOP) as (page, _):
        heading(page)
        assert page.locator(".opening .hits .target").count() == 1
        needed = page.locator(".needed li").all_inner_texts()
        assert "found before the first turn, called" in needed[0]


def test_a_plan_of_many_calls_is_drawn_and_listed(browser: Browser, made: dict[str, Path]) -> None:
    with opened(browser, made["wide"], DESKTOP) as (page, faults):
        heading(page)
        assert page.locator(".graph .node").count() == 256
        assert page.locator(".graph .node.done").count() == 16
        label = page.locator(".graph svg").get_attribute("aria-label")
        assert label == "Plan of 256 calls in 2 steps with 16,384 dependencies; 16 done, 0 failed, 240 never called"
        page.locator("summary", has_text="Steps as a list").click()
        page.locator(".steps li li").first.wait_for()
        assert page.locator(".steps li li").count() == 256
        assert faults == []


def test_one_episode_twice_is_two_episodes(browser: Browser, made: dict[str, Path]) -> None:
    with opened(browser, made["twice"], DESKTOP) as (page, _):
        page.locator("#rows tbody a").nth(1).click()
        heading(page)
        assert page.locator(".kicker").inner_text().endswith("full/1~2")
        assert "2 of 2" in page.locator("#episode > nav").inner_text()


def test_what_a_team_said_is_kept_beside_the_turn(browser: Browser, made: dict[str, Path]) -> None:
    with opened(browser, made["unusual"], DESKTOP) as (page, _):
        heading(page)
        page.locator("summary", has_text="What the team said (2)").click()
        page.locator(".notes li").first.wait_for()
        assert page.locator(".notes li").all_inner_texts() == ["critic a fact is missing", "writer I have all."]


def test_targets_are_marked_and_a_missed_one_is_told(browser: Browser, made: dict[str, Path]) -> None:
    with opened(browser, made["full"], DESKTOP) as (page, _):
        heading(page)
        needed = page.locator(".needed li").all_inner_texts()
        assert "list_rooms" in needed[0]
        assert "found in turn 1, called" in needed[0]
        assert "missed: no search returned it" in needed[1]
        assert page.locator(".hits .target").count() == 1


def test_calls_are_folded_until_they_are_asked_for(browser: Browser, made: dict[str, Path]) -> None:
    with opened(browser, made["large"], DESKTOP) as (page, _):
        heading(page)
        before = page.locator("#episode pre").count()
        page.keyboard.press("e")
        page.wait_for_function("document.querySelectorAll('#episode details:not([open])').length === 0")
        assert page.locator("#episode pre").count() >= before + 15 * 4
        page.keyboard.press("e")
        page.wait_for_function("document.querySelectorAll('#episode .turns details[open]').length === 0")


def test_everything_goes_by_keyboard(browser: Browser, made: dict[str, Path]) -> None:
    with opened(browser, made["some"], DESKTOP) as (page, faults):
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("k")
        page.keyboard.press("Enter")
        first = heading(page)
        page.keyboard.press("n")
        page.wait_for_function("text => document.querySelector('#episode h2').textContent !== text", arg=first)
        page.keyboard.press("p")
        page.wait_for_function("text => document.querySelector('#episode h2').textContent === text", arg=first)
        page.keyboard.press("j")
        assert page.evaluate("document.activeElement.closest('.turns') !== null")
        page.keyboard.press("Escape")
        page.wait_for_selector("#list:not([hidden])")
        assert page.evaluate("document.activeElement.closest('#rows tbody') !== null")
        page.keyboard.press("/")
        page.keyboard.type("jjj?")
        assert page.locator("#filter").input_value() == "jjj?"
        assert page.locator("#none").is_visible()
        page.keyboard.press("Escape")
        page.locator("#list-title").focus()
        page.keyboard.press("?")
        assert page.locator("#keys").is_visible()
        page.keyboard.press("Escape")
        assert not page.locator("#keys").is_visible()
        assert faults == []


def test_the_way_back_is_the_browsers_own(browser: Browser, made: dict[str, Path]) -> None:
    with opened(browser, made["some"], DESKTOP) as (page, _):
        page.locator("#rows tbody a").nth(2).click()
        assert "Book the quiet room" in heading(page)
        address = page.url
        page.go_back()
        page.wait_for_selector("#list:not([hidden])")
        page.goto(address)
        page.wait_for_selector("#episode:not([hidden]) h2")


def test_two_thousand_episodes_are_filtered_and_sorted(browser: Browser, made: dict[str, Path]) -> None:
    with opened(browser, made["many"], DESKTOP) as (page, _):
        count = page.locator("#count")
        assert count.inner_text() == "2,000 of 2,000 episodes"
        page.locator("#filter").fill("rare_tool")
        page.wait_for_function("document.querySelector('#count').textContent.startsWith('200 of')")
        page.locator("#policy").select_option("sft")
        page.wait_for_function("document.querySelector('#count').textContent.startsWith('0 of')")
        page.locator("#policy").select_option("rl")
        page.locator("#outcome").select_option("solved")
        page.wait_for_function("document.querySelector('#count').textContent.startsWith('100 of')")
        page.locator("#rows thead button", has_text="Time").click()
        assert "Request number 1980" in page.locator("#rows tbody th").first.inner_text()
