"""The arguments of a call, matched to parameters and given other names."""

import libcst as cst
import pytest
from tf_lossscale_codemods.rewrite.arguments import matched, renamed_arguments


def call(source: str) -> cst.Call:
    expression = cst.parse_expression(source)
    assert isinstance(expression, cst.Call)
    return expression


@pytest.mark.parametrize("source", ["f(*a)", "f(1, **a)", "f(1, 2, 3)", "f(c=1)", "f(1, a=2)"])
def test_what_cannot_be_matched(source):
    assert matched(call(source), ("a", "b")) is None


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("f()", "f()"),
        ("f(1)", "f(1)"),
        ("f(1, 2)", "f(1)"),
        ("f(1 , 2, 3)", "f(1 , z=3)"),
        ("f(1, 2, c = 3,)", "f(1, z = 3,)"),
        ("f(c=3, a=1)", "f(z=3, x=1)"),
        ("f(c=3, b=2)", "f(z=3)"),
        ("f(b=2)", "f()"),
        ("f(a=1,  # one\n  c=3)", "f(x=1,  # one\n  z=3)"),
    ],
)
def test_renamed(source, after):
    new = renamed_arguments({"a": "x", "b": None, "c": "z"})(call(source))
    assert cst.Module([]).code_for_node(new) == after
