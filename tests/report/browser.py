"""A real browser, and tabs that note every message, error, dialog and request."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
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
VIEWS = pytest.mark.parametrize(
    "view", [(1280, "light"), (390, "light"), (390, "dark")], ids=["desktop", "phone", "phone-dark"]
)
needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no browser here: install Debian's `chromium` to run this test"
)
CONTRAST = """() => {
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
"""Contrast of body, muted, link and marked text against paper and wash."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser, as long as the block lasts."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, file: Path, view: tuple[int, str]) -> Iterator[tuple[Page, list[str]]]:
    """A tab on a page of this width and colour scheme, and what was wrong with it so far."""
    width, scheme = view
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    tab, faults = context.new_page(), list[str]()
    tab.on("console", lambda message: faults.append(f"{message.type}: {message.text}"))
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
    tab.on("request", lambda asked: asked.url.startswith(("file:", "data:")) or faults.append(asked.url))
    tab.goto(file.as_uri())
    yield tab, faults
    context.close()


def too_wide(page: Page) -> bool:
    """Whether the page itself scrolls sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))


def weak_contrasts(page: Page) -> dict[str, float]:
    """Text below the 4.5 of WCAG AA."""
    return {name: round(value, 2) for name, value in page.evaluate(CONTRAST) if value < 4.5}
