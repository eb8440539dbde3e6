"""The build of the reference fails where a class lacks a method or a docstring."""

import importlib.util
import inspect
import os
import re

import pytest

from tf_lossscale import _namespace, _paths

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CLASSES = {
    "keras.mixed_precision": "get_scaled_loss",
    "keras.mixed_precision.experimental": "get_unscaled_gradients",
    "contrib.mixed_precision": "compute_gradients",
}


@pytest.fixture(scope="module")
def reference():
    """The hook that `mkdocs build` runs."""
    path = os.path.join(ROOT, "docs", "check_reference.py")
    spec = importlib.util.spec_from_file_location("check_reference", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def site(reference, tmp_path):
    """A site whose only page has all anchors that the hook asks for."""
    anchors = [one for each in _paths.SYMBOLS for one in reference.missing_of(each, set())]
    assert len(anchors) > 80
    (tmp_path / "api").mkdir()
    page = "\n".join(f'<h2 id="{each}">title</h2>' for each in anchors)
    (tmp_path / "api" / "all.html").write_text(page)
    return tmp_path


def test_a_page_with_everything_is_accepted(reference, site):
    reference.on_post_build({"site_dir": str(site)})


@pytest.mark.parametrize("namespace", CLASSES)
@pytest.mark.parametrize("what", ["class", "method"])
def test_what_is_not_on_a_page_fails_the_build(reference, site, namespace, what):
    name = f"tf_lossscale.{namespace}.LossScaleOptimizer"
    name += "" if what == "class" else "." + CLASSES[namespace]
    page = site / "api" / "all.html"
    page.write_text(page.read_text().replace(f'id="{name}"', 'id="other"'))
    with pytest.raises(Exception, match=re.escape(name)):
        reference.on_post_build({"site_dir": str(site)})


def test_an_example_that_is_shown_as_a_quotation_fails_the_build(reference, site):
    page = site / "api" / "all.html"
    page.write_text(page.read_text() + "<blockquote><p>import tensorflow</p></blockquote>")
    with pytest.raises(Exception, match=r"Examples:.*all\.html"):
        reference.on_post_build({"site_dir": str(site)})


def test_a_symbol_without_a_docstring_fails_the_build(reference, site, monkeypatch):
    monkeypatch.setattr(_namespace, "load", lambda symbol: lambda: None)
    with pytest.raises(Exception, match=r"contrib\.tpu\.cross_replica_sum"):
        reference.on_post_build({"site_dir": str(site)})


def test_a_method_of_the_wrappers_that_a_class_lacks_is_noticed(reference, monkeypatch):
    members = reference.public_members
    monkeypatch.setattr(
        reference,
        "public_members",
        lambda cls: {each: one for each, one in members(cls).items() if each != "get_scaled_loss"},
    )
    symbol = _paths.NAMESPACES["keras.mixed_precision"]["LossScaleOptimizer"]
    found = {"tf_lossscale.keras.mixed_precision.LossScaleOptimizer"}
    missing = reference.missing_of(symbol, found)
    assert "tf_lossscale.keras.mixed_precision.LossScaleOptimizer.get_scaled_loss" in missing


def test_every_symbol_is_on_the_page_of_its_first_namespace():
    for symbol in _paths.SYMBOLS:
        path = os.path.join(ROOT, "docs", "api", symbol.namespaces[0] + ".md")
        with open(path, encoding="utf-8") as page:
            name = f"tf_lossscale.{symbol.namespaces[0]}.{symbol.name}"
            assert re.search(rf"(::: |{{ #){re.escape(name)}\b", page.read(), re.MULTILINE), name


def undocumented_arguments(function):
    """Parameters that the docstring does not have below "Args:"."""
    names = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    section = re.search(r"^Args:\n((?:  .*\n?|\n)*)", inspect.getdoc(function) or "", re.MULTILINE)
    documented = re.findall(r"^  \*{0,2}(\w+):", section[1] if section else "", re.MULTILINE)
    return [name for name in names if name not in documented]


@pytest.mark.parametrize("symbol", _paths.SYMBOLS, ids=lambda symbol: symbol.implementation)
def test_every_argument_is_documented(reference, symbol):
    value = _namespace.load(symbol)
    if not value.__module__.startswith(_namespace.ROOT):
        assert symbol.name in ("Policy", "set_global_policy", "global_policy")  # Keras's own
        return
    functions = [value]
    if inspect.isclass(value):
        functions += reference.functions_of(value)
    for function in functions:
        assert undocumented_arguments(function) == [], function


def test_an_argument_that_is_not_documented_is_noticed():
    def step(gradients, name=None):
        """Makes a step.

        Args:
          gradients: the gradients.
        """

    assert undocumented_arguments(step) == ["name"]
