"""The page in a real browser: it loads without an error or a request, fits a phone, and opens by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.report.browser import VIEWS, chromium, needs_browser, opened, too_wide, weak_contrasts

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = needs_browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def file(page: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page, "utf-8")
    return path


@VIEWS
def test_it_loads_quietly_fits_and_opens_by_keyboard(browser: Browser, file: Path, view: tuple[int, str]) -> None:
    with opened(browser, file, view) as (page, faults):
        assert page.locator("h1").inner_text() == "How well it finds and calls tools"
        assert page.locator("table").count() == page.locator("table > caption").count()
        for element in page.locator("#examples > details").all():
            element.locator("summary").first.focus()
            page.keyboard.press("Enter")
            assert element.get_attribute("open") is not None
        page.wait_for_timeout(100)
        assert not too_wide(page)
        assert faults == []


@VIEWS
def test_text_can_be_read_in_both_themes(browser: Browser, file: Path, view: tuple[int, str]) -> None:
    with opened(browser, file, view) as (page, _):
        assert weak_contrasts(page) == {}
