"""The page in a real browser: it loads without an error or a request, fits a phone, and opens by keyboard."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no browser here: install Debian's `chromium` to run this test"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def file(page: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page, "utf-8")
    return path


@pytest.fixture(params=[(1280, "light"), (390, "light"), (390, "dark")], ids=["desktop", "phone", "phone-dark"])
def tab(request: pytest.FixtureRequest, browser: Browser, file: Path) -> Iterator[tuple[Page, list[str]]]:
    width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    tab, faults = context.new_page(), list[str]()
    tab.on("console", lambda message: faults.append(f"{message.type}: {message.text}"))
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
    tab.on("request", lambda asked: asked.url.startswith(("file:", "data:")) or faults.append(asked.url))
    tab.goto(file.as_uri())
    yield tab, faults
    context.close()


def test_it_loads_quietly_fits_and_opens_by_keyboard(tab: tuple[Page, list[str]]) -> None:
    page, faults = tab
    assert page.locator("h1").inner_text() == "How well it finds and calls tools"
    assert page.locator("table").count() == page.locator("table > caption").count()
    for element in page.locator("#examples > details").all():
        element.locator("summary").first.focus()
        page.keyboard.press("Enter")
        assert element.get_attribute("open") is not None
    page.wait_for_timeout(100)
    width, visible = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert width <= visible
    assert faults == []


def test_text_can_be_read_in_both_themes(tab: tuple[Page, list[str]]) -> None:
    """Contrast of body, muted and link text against paper, at least the 4.5 of WCAG AA."""
    page, _ = tab
    ratios = page.evaluate(
        """() => {
            const style = getComputedStyle(document.documentElement);
            const light = name => {
                const hex = style.getPropertyValue(name).trim().slice(1);
                const [r, g, b] = [0, 2, 4].map(i => parseInt(hex.slice(i, i + 2), 16) / 255)
                    .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            return ["--ink", "--muted", "--link", "--good", "--bad"].flatMap(
                name => ["--paper", "--wash"].map(back => [name + " on " + back, ratio(light(name), light(back))]));
        }"""
    )
    assert {name: round(value, 2) for name, value in ratios if value < 4.5} == {}
