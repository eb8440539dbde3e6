"""Starts the browser of the tests with the marker `chromium`.

They need Chromium, on the path or named by TFLS_CHROMIUM. If TFLS_REQUIRE_CHROMIUM is set, as in
CI, its absence is a failure rather than a skip.
"""

import contextlib
import os
import shutil

import pytest

CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const parse = (color) => {  // any color of CSS
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  };
  const over = (top, ground) =>
    [0, 1, 2].map((i) => top[i] * top[3] + ground[i] * (1 - top[3])).concat(1);
  const ground = (element) => {
    const layers = [];
    for (; element; element = element.parentElement) {
      layers.push(parse(getComputedStyle(element).backgroundColor));
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  const curve = (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const channel = (v) => curve(v / 255);
  const light = (c) => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
  let worst = [99, ""];
  for (const element of document.querySelectorAll("body *")) {
    const text = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!element.offsetParent || !text || element.matches(".headerlink")) { continue; }
    const below = ground(element);
    const [a, b] = [light(over(parse(getComputedStyle(element).color), below)), light(below)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst[0]) { worst = [ratio, element.outerHTML.slice(0, 90)]; }
  }
  return worst;
}"""
"""Returns the lowest contrast of a text on the page with what is behind it, and its element."""


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
