"""Rewrites `get_layer_policy(layer)` to `layer.dtype_policy`.

TensorFlow 2.9 removed the function with the experimental module; layers have had the attribute
since 2.4. An import of the function is removed with the calls that read it. Where it is passed on
or exported, the program stays with the shim's function.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Safety
from ...resolve.mentions import Mention, mention_of
from ...resolve.program import Program
from ...resolve.tree import string_of
from ...rewrite.arguments import matched
from ...rewrite.comments import comments_in
from ...rewrite.proposal import Proposal
from ...rewrite.rename import references
from ..findings import needs_shim, safe
from ..names import names_bound
from ..rule import Example, Rule

__all__ = ["RULE"]

_MESSAGE = "use layer.dtype_policy"
_EXPORTED = "a string, as in `__all__`, names this function"
_PASSED = "what calls this function, or what it is given, cannot be seen"


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the attribute for every call."""
    for reference in references(program, "LS604"):
        call = program.call_of(reference.node)
        found = matched(call, ("layer",)) if call is not None else None
        names = names_bound(program, reference)
        if any(string_of(one) in names for one in program.scopes.strings):
            yield needs_shim(reference, _EXPORTED)
        elif mention_of(program, reference) is Mention.IMPORT:
            yield safe(reference, _MESSAGE, removed=(reference,))
        elif call is None or not found or comments_in(call) or not _is_simple(found["layer"].value):
            yield needs_shim(reference, _PASSED)
        else:
            yield safe(reference, _MESSAGE, edits=((call, _attribute),), removed=(reference,))


def _is_simple(layer: cst.BaseExpression) -> bool:
    """Whether an attribute can follow an expression without further parentheses."""
    return isinstance(layer, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))


def _attribute(node: cst.CSTNode) -> object:
    assert isinstance(node, cst.Call)
    name = cst.Name("dtype_policy")
    return cst.Attribute(node.args[0].value, name, lpar=node.lpar, rpar=node.rpar)


RULE = Rule(
    codes={"LS604": "tf.keras.mixed_precision.experimental.get_layer_policy"},
    summary="get_layer_policy(layer) to layer.dtype_policy",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.9.0",
    check=check,
    examples=(
        Example(
            "not a method with the same name",
            """\
            import tensorflow as tf

            policy = net.get_layer_policy(tf.keras.mixed_precision)
            """,
        ),
        Example(
            "a call",
            """\
            import tensorflow as tf
            from tensorflow.keras.mixed_precision.experimental import get_layer_policy

            print(get_layer_policy(model).name, get_layer_policy(layer).name)
            print(tf.keras.mixed_precision.experimental.get_layer_policy(model.layers[0]))
            """,
            """\
            print(model.dtype_policy.name, layer.dtype_policy.name)
            print(model.layers[0].dtype_policy)
            """,
            Safety.SAFE,
        ),
    ),
)
