"""Moves `experimental.Policy` to `tf.keras.mixed_precision.Policy`.

The final policy (TensorFlow 2.4, release notes 2.4.0) carries no loss scale: `compile` wraps the
optimizer under `mixed_float16`, dynamically. So `loss_scale="dynamic"` goes from such a policy, and
any other value is left: the scale must move to where the optimizer is made, and `loss_scale=None`,
which meant no scaling, would now *add* it.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Safety, Target
from ...resolve.program import Program, Reference
from ...rewrite.arguments import constant, loses_comments, matched, with_arguments
from ...rewrite.proposal import Proposal
from ...rewrite.rename import move, references, shim_path
from ..rule import Example, Rule
from ._family import SHIM_MESSAGE, final_path, group_of

__all__ = ["RULE"]

_SAME = "the same policy under its final name"
_DROPPED = "loss_scale='dynamic' is what compile does under mixed_float16 anyway"
_OTHER = (
    "a policy no longer carries a loss scale: wrap the optimizer where it is made, "
    "LossScaleOptimizer(optimizer, dynamic=..., initial_scale=...), then drop the argument here; "
    "compile now scales dynamically under mixed_float16 whatever stood here (None too)"
)
_SUBCLASS = "a subclass of the experimental policy: its constructor differs; port it by hand"


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the final class; policies with a loss scale hold all of them back."""
    for reference in references(program, "LS602", "experimental"):
        if program.options.target is Target.SHIM:
            yield move(program, reference, shim_path(reference), SHIM_MESSAGE)
            continue
        call = program.call_of(reference.node)
        if call is not None:
            yield _constructed(program, reference, call)
        elif _is_base(program, reference.node):
            yield _manual(program, reference, _SUBCLASS)
        else:
            yield _moved(program, reference, _SAME)


def _constructed(program: Program, reference: Reference, call: cst.Call) -> Proposal:
    found = matched(call, ("name", "loss_scale"))
    if found is None:
        return _manual(program, reference, _OTHER)
    if "loss_scale" not in found:
        return _moved(program, reference, _SAME)
    scale = constant(found["loss_scale"].value)
    name = constant(found["name"].value) if "name" in found else None
    dropped = with_arguments(
        call, [argument for argument in call.args if argument is not found["loss_scale"]]
    )
    same = scale == ("auto",) or (scale == ("dynamic",) and name == ("mixed_float16",))
    if not same or loses_comments(call, dropped):
        return _manual(program, reference, _OTHER)

    def edit(node: cst.CSTNode) -> object:
        assert isinstance(node, cst.Call)
        return dropped.with_changes(func=node.func)

    return _moved(program, reference, _DROPPED)._replace(edits=((call, edit),))


def _moved(program: Program, reference: Reference, message: str) -> Proposal:
    group = group_of(program, reference)
    return move(program, reference, final_path(reference), message, group=group)


def _manual(program: Program, reference: Reference, message: str) -> Proposal:
    return Proposal(
        node=reference.node,
        code="LS602",
        symbol="Policy",
        outcome=Safety.MANUAL,
        message=message,
        group=group_of(program, reference),
        blocks=True,
    )


def _is_base(program: Program, node: cst.CSTNode) -> bool:
    argument = program.parents.get(node)
    owner = program.parents.get(argument) if argument is not None else None
    return isinstance(owner, cst.ClassDef) and any(base is argument for base in owner.bases)


RULE = Rule(
    codes={"LS602": "tf.keras.mixed_precision.experimental.Policy"},
    summary="experimental Policy to the final class",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.4.0",
    check=check,
    examples=(
        Example(
            "not the final policy",
            """\
            import tensorflow as tf

            policy = tf.keras.mixed_precision.Policy("mixed_float16")
            """,
        ),
        Example(
            "not another library's policy",
            """\
            from jmp import Policy

            policy = Policy("mixed_precision")
            """,
        ),
        Example(
            "left where the policy carries a fixed scale",
            """\
            import tensorflow as tf

            policy = tf.keras.mixed_precision.experimental.Policy("mixed_float16", loss_scale=128)
            """,
            None,
            Safety.MANUAL,
            message_contains="wrap the optimizer",
        ),
        Example(
            "left where None meant no scaling",
            """\
            from tensorflow.keras.mixed_precision.experimental import Policy

            policy = Policy("mixed_float16", loss_scale=None)
            other = Policy("float32")
            """,
            None,
            Safety.MANUAL,
            message_contains="None",
        ),
        Example(
            "left where a policy that does not scale was given a scale",
            """\
            from tensorflow.keras.mixed_precision.experimental import Policy

            policy = Policy("float32", loss_scale="dynamic")
            """,
            None,
            Safety.MANUAL,
        ),
        Example(
            "a name alone",
            """\
            import tensorflow as tf

            policy = tf.keras.mixed_precision.experimental.Policy(name)
            layer = tf.keras.layers.Dense(1, dtype=policy)
            """,
            """\
            import tensorflow as tf

            policy = tf.keras.mixed_precision.Policy(name)
            layer = tf.keras.layers.Dense(1, dtype=policy)
            """,
            Safety.SAFE,
        ),
        Example(
            "dynamic is dropped",
            """\
            from tensorflow.keras.mixed_precision import experimental as mixed_precision

            policy = mixed_precision.Policy("mixed_float16", loss_scale="dynamic")
            mixed_precision.set_policy(policy)
            """,
            """\
            from tensorflow.keras import mixed_precision

            policy = mixed_precision.Policy("mixed_float16")
            mixed_precision.set_global_policy(policy)
            """,
            Safety.SAFE,
        ),
        Example(
            "to the shim, with its loss scale",
            """\
            from tensorflow.keras.mixed_precision.experimental import Policy

            policy = Policy("mixed_float16", loss_scale=128)
            """,
            """\
            from tf_lossscale.keras.mixed_precision.experimental import Policy

            policy = Policy("mixed_float16", loss_scale=128)
            """,
            Safety.SAFE,
            target=Target.SHIM,
        ),
    ),
)
