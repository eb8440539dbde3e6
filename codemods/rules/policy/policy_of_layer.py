"""Rewrites `get_layer_policy(layer)` to `layer.dtype_policy`.

The function went with the experimental module in TensorFlow 2.9; layers have the attribute since
2.4.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Safety, Target
from ...resolve.program import Program, Reference
from ...rewrite.arguments import matched
from ...rewrite.comments import comments_in
from ...rewrite.proposal import Proposal
from ...rewrite.rename import move, references, shim_path
from ..rule import Example, Rule
from ._family import SHIM_MESSAGE, group_of

__all__ = ["RULE"]

_MESSAGE = "a layer tells its policy itself"
_MANUAL = (
    "it is passed on, or called in a way that hides the layer: read layer.dtype_policy instead"
)


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the attribute for every call."""
    for reference in references(program, "LS604", "experimental"):
        if program.options.target is Target.SHIM:
            yield move(program, reference, shim_path(reference), SHIM_MESSAGE)
            continue
        call = program.call_of(reference.node)
        found = matched(call, ("layer",)) if call is not None else None
        if isinstance(reference.node, cst.ImportAlias):
            yield _proposal(program, reference)
        elif call is None or not found or comments_in(call):
            yield _proposal(program, reference)._replace(
                outcome=Safety.MANUAL, message=_MANUAL, removed=(), blocks=True
            )
        else:
            yield _proposal(program, reference)._replace(edits=((call, _attribute),))


def _proposal(program: Program, reference: Reference) -> Proposal:
    return Proposal(
        node=reference.node,
        code="LS604",
        symbol="get_layer_policy",
        outcome=Safety.SAFE,
        message=_MESSAGE,
        removed=(reference,),
        group=group_of(program, reference),
    )


def _attribute(node: cst.CSTNode) -> object:
    assert isinstance(node, cst.Call)
    layer = node.args[0].value
    simple = isinstance(layer, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) or layer.lpar
    if not simple:
        layer = layer.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.Attribute(layer, cst.Name("dtype_policy"), lpar=node.lpar, rpar=node.rpar)


RULE = Rule(
    codes={"LS604": "tf.keras.mixed_precision.experimental.get_layer_policy"},
    summary="get_layer_policy(layer) to layer.dtype_policy",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.9.0",
    check=check,
    examples=(
        Example(
            "not a method of that name",
            """\
            import tensorflow as tf

            policy = net.get_layer_policy(tf.keras.mixed_precision)
            """,
            None,
            None,
        ),
        Example(
            "left where the function is passed on",
            """\
            from tensorflow.keras.mixed_precision.experimental import get_layer_policy

            policies = map(get_layer_policy, layers)
            """,
            None,
            Safety.MANUAL,
        ),
        Example(
            "a call",
            """\
            import tensorflow as tf
            from tensorflow.keras.mixed_precision.experimental import get_layer_policy

            print(get_layer_policy(model).name, get_layer_policy(a or b).name)
            print(tf.keras.mixed_precision.experimental.get_layer_policy(model.layers[0]))
            """,
            """\
            print(model.dtype_policy.name, (a or b).dtype_policy.name)
            print(model.layers[0].dtype_policy)
            """,
            Safety.SAFE,
        ),
    ),
)
