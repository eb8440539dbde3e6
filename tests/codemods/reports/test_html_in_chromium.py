"""The HTML report as a browser shows it: filters, keys, light and dark."""

import chromium
import pytest
from command_line import CommandLine
from tf_lossscale_codemods.cli.command import main

pytestmark = pytest.mark.chromium

LEGACY = """\
import tensorflow as tf
from tensorflow.contrib.mixed_precision import ExponentialUpdateLossScaleManager

manager = ExponentialUpdateLossScaleManager(2.0 ** 15, 2000)
opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")


def step(loss, variables):
    if isinstance(opt, tf.keras.mixed_precision.experimental.LossScaleOptimizer):
        loss = opt.get_scaled_loss(loss)
    return tf.gradients(loss, variables)


scale = tf.keras.mixed_precision.experimental.global_policy().loss_scale
"""
CROSS_SHARD = """\
import tensorflow as tf

if FLAGS.use_tpu:
    optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
"""


@pytest.fixture(scope="module")
def browser():
    with chromium.started() as browser:
        yield browser


@pytest.fixture(scope="module")
def report(warm, tmp_path_factory) -> str:
    with pytest.MonkeyPatch.context() as patched:
        command_line = CommandLine(tmp_path_factory.mktemp("report"), None, patched)
        command_line.write(train=LEGACY.encode(), models__resnet=LEGACY.encode())
        command_line.write(
            models__bert=CROSS_SHARD.encode(),
            broken=b"from tensorflow.keras import mixed_precision\nx = (\n",
        )
        assert main(["migrate", "--report", "html:report.html"]) == 2
    return f"file://{command_line.directory}/report.html"


@pytest.fixture
def page(browser, report, request):
    scheme = getattr(request, "param", "light")
    page = browser.new_page(color_scheme=scheme, viewport={"width": 1100, "height": 900})
    problems: list = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text))
    page.on("request", lambda one: problems.append(one.url) if "report.html" not in one.url else 0)
    page.goto(report)
    yield page
    page.close()
    assert not problems


def places(page) -> int:
    return page.locator("#places .place:visible").count()


def total(page) -> int:
    return page.locator("#places .place").count()


def test_all_places_show_at_first(page):
    assert places(page) == total(page) > 8
    assert page.locator("output").inner_text() == f"{total(page)} of {total(page)} findings"


def test_filter_by_outcome(page):
    for kind in ("safe", "unsafe", "manual"):
        page.get_by_label(kind, exact=False).first.uncheck()
    assert places(page) == 1
    assert page.locator("#places section:visible h2").all_inner_texts() == ["broken.py"]
    assert page.locator("output").inner_text() == f"1 of {total(page)} findings"
    page.locator("input[value=error]").uncheck()
    assert places(page) == 0
    assert page.locator("#nothing").is_visible()


def test_the_filter_is_in_the_url(page):
    whole = total(page)
    page.locator("select").select_option("LS102")
    page.locator("input[value=manual]").uncheck()
    page.locator("input[type=search]").fill("train")
    fragment = "outcome=safe%2Cunsafe%2Cerror&rule=LS102&path=train"
    assert page.evaluate("location.href").endswith(f"report.html#{fragment}")
    shown = places(page)
    assert 0 < shown < whole
    page.reload()
    assert places(page) == shown
    assert not page.locator("input[value=manual]").is_checked()
    assert page.locator("select").input_value() == "LS102"
    page.evaluate("location.hash = 'path=models&rule=%3Cb%3E'")
    page.wait_for_function("document.querySelector('[name=path]').value === 'models'")
    shown = page.locator("#places section:visible h2").all_inner_texts()
    assert shown == ["models/bert.py", "models/resnet.py"]
    page.locator("input[type=search]").fill("")
    assert page.evaluate("location.href").endswith("report.html")
    assert places(page) == whole


def test_the_whole_page_by_keyboard(page):
    page.keyboard.press("j")
    first = page.evaluate("document.activeElement.innerText")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.innerText") != first
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.innerText") == first
    page.keyboard.press("/")
    page.keyboard.type("train")
    assert page.locator("#places section:visible h2").all_inner_texts() == ["train.py"]
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    opened = page.locator("#places details[open]:visible")
    assert opened.count() == 1
    assert "\nfrom tensorflow.contrib.mixed_precision import" in opened.inner_text()
    assert opened.locator("pre").is_visible()


def test_the_skip_link_comes_first_and_shows_when_focused(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator(".skip").bounding_box()["x"] > 0
    page.keyboard.press("Enter")
    assert page.url.endswith("#places")


CONTRAST = """() => {
  const curve = (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const channel = (v) => curve(v / 255);
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (c) => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
  const ground = (el) => {
    for (; el; el = el.parentElement) {
      const c = parse(getComputedStyle(el).backgroundColor);
      if (c.length < 4 || c[3] > 0) { return c; }
    }
    return [255, 255, 255];
  };
  let worst = [99, ""];
  for (const el of document.querySelectorAll("body *")) {
    const text = [...el.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!el.offsetParent || !text) { continue; }
    const [a, b] = [light(parse(getComputedStyle(el).color)), light(ground(el))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst[0]) { worst = [ratio, el.outerHTML.slice(0, 90)]; }
  }
  return worst;
}"""


@pytest.mark.parametrize("page", ["light", "dark"], indirect=True)
def test_light_and_dark_are_readable(page, request):
    page.get_by_text("Open all").click()
    ratio, where = page.evaluate(CONTRAST)
    assert ratio >= 4.5, where  # what WCAG asks of text
    scheme = request.node.callspec.params["page"]
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(20, 23, 26)") == (scheme == "dark")


def test_a_narrow_window_does_not_scroll_sideways(page):
    page.set_viewport_size({"width": 360, "height": 740})
    page.get_by_text("Open all").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
