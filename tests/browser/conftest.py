"""Debian's Chromium, and what is checked on every page."""

import shutil
from pathlib import Path

import pytest

from service.conftest import running

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run"]
CHECKS = (Path(__file__).parent / "page_checks.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")  # Playwright keeps an event loop in this thread, which asynchronous tests need free
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def context(browser):
    """The one context of a file of tests."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.set_default_timeout(300_000)  # only a page that hangs waits so long
    yield context
    context.close()


@pytest.fixture
def page(context):
    """A page on which no script fails and nothing is refused by the policy."""
    page = context.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda line: problems.append(line.text) if "Content Security" in line.text else None)
    yield page
    page.close()
    assert problems == []


def tripped_over(page):
    """What someone who reads the page with a screen reader, or with weak eyes, would trip over, in both schemes."""
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found += page.evaluate(CHECKS)
    page.emulate_media(color_scheme="light")
    return found


def too_wide(page):
    """Whether the page scrolls sideways on a phone."""
    size = page.viewport_size
    page.set_viewport_size({"width": 360, "height": 740})
    wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    page.set_viewport_size(size)
    return wide


__all__ = ["running", "too_wide", "tripped_over"]
