"""Starts the browser of the tests with the marker `chromium`.

They need Chromium, on the path or named by TFLS_CHROMIUM. If TFLS_REQUIRE_CHROMIUM is set, as in
CI, its absence is a failure rather than a skip.
"""

import contextlib
import os
import shutil

import pytest


@contextlib.contextmanager
def started():
    """Yields a browser of Playwright."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    path = os.environ.get("TFLS_CHROMIUM") or next(filter(None, map(shutil.which, names)), "")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _without("playwright is not installed")
    if not path:
        _without("Chromium is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def _without(what: str) -> None:
    (pytest.fail if os.environ.get("TFLS_REQUIRE_CHROMIUM") else pytest.skip)(what)
