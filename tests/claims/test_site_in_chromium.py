"""The site as a browser shows it: nothing is cut off, and copy buttons copy commands."""

import chromium
import pytest

pytestmark = pytest.mark.chromium

CUT_OFF = """() => {
  const width = document.documentElement.clientWidth;
  const found = [];
  if (document.documentElement.scrollWidth > width) { found.push("the page scrolls sideways"); }
  const scrolls = (element) => /auto|scroll/.test(getComputedStyle(element).overflowX);
  for (const element of document.querySelectorAll("article *")) {
    const box = element.getBoundingClientRect();
    if (!element.offsetParent || element.matches(".headerlink, pre *")) { continue; }
    if (box.right > width + 1 && !scrolls(element)) { found.push(element.outerHTML.slice(0, 90)); }
    if (element.matches("td, th") && element.scrollWidth > element.clientWidth + 1) {
      found.push("a cell: " + element.textContent.slice(0, 90));
    }
    if (element.matches("pre > code") && element.scrollWidth > element.clientWidth + 1
        && !scrolls(element)) {
      found.push("a block: " + element.textContent.slice(0, 90));
    }
  }
  return found;
}"""


@pytest.fixture(scope="module")
def browser():
    with chromium.started() as browser:
        yield browser


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_every_page_can_be_read(browser, site, width, scheme):
    """Nothing is cut off, no page scrolls sideways, and every text has the contrast of WCAG."""
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    cut_off, pale = {}, {}
    # The page for missing addresses finds its styles only on a server.
    paths = sorted(path for path in site.glob("**/*.html") if path.name != "404.html")
    for path in paths:
        page.goto(path.as_uri())
        name = path.relative_to(site).as_posix()
        cut_off[name] = page.evaluate(CUT_OFF)
        pale[name] = page.evaluate(chromium.CONTRAST)
    page.close()
    assert len(paths) > 50
    assert {name: found for name, found in cut_off.items() if found} == {}
    assert {name: worst for name, worst in pale.items() if worst[0] < 4.5} == {}


@pytest.fixture
def copy(browser, site):
    """Presses the copy buttons of a page, and returns what each copies."""
    context = browser.new_context()
    context.grant_permissions(["clipboard-read", "clipboard-write"])

    def pressed(name):
        page = context.new_page()
        page.goto((site / name).as_uri())
        copied = []
        for button in page.locator("article .md-clipboard, article .md-code__button").all():
            button.click()
            copied.append(page.evaluate("navigator.clipboard.readText()"))
        page.close()
        return copied

    yield pressed
    context.close()


def test_copy_buttons_leave_out_prompts_and_output(copy):
    copied = copy("guide-tf1.html")
    assert "python3.7 -m venv ../old\npython3.12 -m venv ../new" in [
        text.strip() for text in copied
    ]
    assert "$ " not in "".join(copied)
    assert "…" not in "".join(copied)


def test_copy_buttons_of_examples_leave_out_prompts_and_results(copy):
    copied = copy("api/checkpoints.html")
    example = next(text for text in copied if "mkdtemp" in text)
    assert example.startswith("import os, tempfile\nimport tensorflow as tf\n")
    assert ">>>" not in example
    assert "\n[1.0, 2.0]" not in example
