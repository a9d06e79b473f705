"""A service and a browser that the tests of a module share."""

import pytest

from browsing import CHROMIUM, FLAGS
from service_running import make_bundle, serving


@pytest.fixture(scope="session")
def bundle():
    return make_bundle()


@pytest.fixture(scope="module")
def service(bundle):
    with serving(bundle) as running:
        yield running


@pytest.fixture
def client(service):
    with service.client() as client:
        yield client


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()
