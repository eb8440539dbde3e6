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
            star=b"from tensorflow.contrib.mixed_precision import *\n",
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


@pytest.mark.parametrize("page", ["light", "dark"], indirect=True)
def test_light_and_dark_are_readable(page, request):
    page.get_by_text("Open all").click()
    ratio, where = page.evaluate(chromium.CONTRAST)
    assert ratio >= 4.5, where  # what WCAG asks of text
    scheme = request.node.callspec.params["page"]
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(20, 23, 26)") == (scheme == "dark")


def test_a_narrow_window_does_not_scroll_sideways(page):
    page.set_viewport_size({"width": 360, "height": 740})
    page.get_by_text("Open all").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_filters_do_not_cover_the_findings_of_a_narrow_window(page):
    """They stay in view in a wide one only: on a phone, they are a third of it."""
    for width, stays in ((1100, True), (390, False)):
        page.set_viewport_size({"width": width, "height": 740})
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        bottom = page.locator(".filters").bounding_box()
        assert (bottom["y"] + bottom["height"] > 0) == stays


def test_code_in_messages_is_shown_without_backticks(page):
    shown = page.locator("summary").all_inner_texts()
    assert any("names from import * (tensorflow" in text for text in shown)
    assert "import *" in page.locator("summary code").all_inner_texts()
    assert "`" not in "".join(shown)
