"""The build of the reference fails where a class lacks a method or a docstring."""

import inspect
import os
import re
import runpy

import pytest

from tf_lossscale import _namespace, _paths

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


REFERENCE = runpy.run_path(os.path.join(ROOT, "docs", "check_reference.py"))
"""The hook that `mkdocs build` runs."""


def test_a_page_without_anchors_fails_the_build(tmp_path):
    (tmp_path / "api").mkdir()
    with pytest.raises(Exception, match=r"contrib\.mixed_precision\.LossScaleOptimizer"):
        REFERENCE["on_post_build"]({"site_dir": str(tmp_path)})


def undocumented_arguments(function):
    """Parameters that the docstring does not have below "Args:"."""
    names = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    section = re.search(r"^Args:\n((?:  .*\n?|\n)*)", inspect.getdoc(function) or "", re.MULTILINE)
    documented = re.findall(r"^  \*{0,2}(\w+):", section[1] if section else "", re.MULTILINE)
    return [name for name in names if name not in documented]


@pytest.mark.parametrize("symbol", _paths.SYMBOLS, ids=lambda symbol: symbol.implementation)
def test_every_argument_is_documented(symbol):
    value = _namespace.load(symbol)
    if not value.__module__.startswith(_namespace.ROOT):
        assert symbol.name in ("Policy", "set_global_policy", "global_policy")  # Keras's own
        return
    functions = [value]
    if inspect.isclass(value):
        functions += REFERENCE["functions_of"](value)
    for function in functions:
        assert undocumented_arguments(function) == [], function
