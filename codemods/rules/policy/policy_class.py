"""Moves `experimental.Policy` to `tf.keras.mixed_precision.Policy`.

The final policy (TensorFlow 2.4, release notes 2.4.0) carries no loss scale: `compile` wraps the
optimizer under `mixed_float16`, dynamically. So `loss_scale="dynamic"` goes from such a policy, and
any other value is left: the scale must move to where the optimizer is made, and `loss_scale=None`,
which meant no scaling, would now *add* it.

The shim's policy keeps its loss scale, but `compile` has ignored it since TensorFlow 2.9: the shim
then raises an error for every loss scale that is not what `compile` does. Evidence for safe under
`--to shim`: the call has no such argument, or its name and its loss scale are constants of which
this is known.

Policies flow from `Policy` through `set_policy` to `global_policy` and the layers. Evidence for
safe: every policy of the file can move, and none is a class test: from TensorFlow 2.4 on, only a
policy that the program itself makes is an instance of the experimental class. If one cannot move,
the whole policy API of the file stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

import libcst as cst

from ...model import Safety, Target
from ...resolve.program import Program, Reference
from ...rewrite.arguments import constant, loses_comments, matched, with_arguments
from ...rewrite.proposal import Proposal
from ...rewrite.rename import references
from ..findings import manual
from ..keras._class_tests import object_of_test
from ..rule import Example, Rule
from ._family import MOVES, REMOVED_NAME, group_of, removed_name

__all__ = ["RULE"]

_DROPPED = "loss_scale='dynamic' is the default of compile under mixed_float16; argument dropped"
_OTHER = (
    "policies no longer have a loss scale: wrap the optimizer in "
    "LossScaleOptimizer(optimizer, dynamic=..., initial_scale=...), then drop the argument; "
    "compile now scales dynamically under mixed_float16, even for None"
)
_FROM_CONFIG = (
    "the policy of Keras 3 refuses the loss_scale of a config that the experimental one wrote: "
    "make it from its name"
)
_TESTED = (
    "in TensorFlow 2.4 to 2.8, this test is False for the default policies of layers, and becomes "
    "True: check that what it guards must happen"
)
_SUBCLASS = "the constructor of the final Policy differs: port this subclass by hand"


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the final class; policies with a loss scale hold all of them back."""
    for reference in references(program, "LS602"):
        call = program.call_of(reference.node)
        if call is not None:
            yield from _constructed(program, reference, call)
        elif _reads_from_config(program, reference.node) and program.options.for_keras_3:
            yield manual(reference, _FROM_CONFIG, group=group_of(reference))
        elif _is_base(program, reference.node):
            yield manual(reference, _SUBCLASS, group=group_of(reference))
        elif _is_tested(program, reference):
            for proposal in MOVES.proposals(program, reference):
                yield proposal._replace(outcome=Safety.UNSAFE, message=_TESTED)
        else:
            yield from MOVES.proposals(program, reference)


def _is_tested(program: Program, reference: Reference) -> bool:
    """Whether it is the class of a class test, and the target has another class."""
    is_moved = program.options.target is Target.FINAL
    return is_moved and object_of_test(program, reference.node) is not None


def _constructed(program: Program, reference: Reference, call: cst.Call) -> Iterator[Proposal]:
    if removed_name(call):
        yield manual(reference, REMOVED_NAME, group=group_of(reference))
        return
    found = matched(call, ("name", "loss_scale"))
    if found is not None and "loss_scale" not in found:
        yield from MOVES.proposals(program, reference)
        return
    dropped = _without_loss_scale(call, found) if found is not None else None
    if dropped is None:
        yield manual(reference, _OTHER, group=group_of(reference))
        return

    def edit(node: cst.CSTNode) -> object:
        assert isinstance(node, cst.Call)
        return dropped.with_changes(func=node.func)

    for proposal in MOVES.proposals(program, reference):
        yield proposal._replace(message=_DROPPED, edits=((call, edit),))


def _without_loss_scale(call: cst.Call, found: dict[str, cst.Arg]) -> Optional[cst.Call]:
    """The call without its loss scale; None where that is another than the one of compile."""
    scale = constant(found["loss_scale"].value)
    name = constant(found["name"].value) if "name" in found else None
    if scale != ("auto",) and (scale != ("dynamic",) or name != ("mixed_float16",)):
        return None
    kept = [argument for argument in call.args if argument is not found["loss_scale"]]
    dropped = with_arguments(call, kept)
    return None if loses_comments(call, dropped) else dropped


def _reads_from_config(program: Program, node: cst.CSTNode) -> bool:
    parent = program.parents.get(node)
    return isinstance(parent, cst.Attribute) and parent.attr.value == "from_config"


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
            "left where the policy has a fixed loss scale",
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
            "left where it is passed to a function that is left",
            """\
            import tensorflow as tf

            policy = tf.keras.mixed_precision.experimental.Policy("mixed_float16", loss_scale=None)
            tf.keras.mixed_precision.experimental.set_policy(policy)
            """,
            None,
            Safety.MANUAL,
            message_contains="not rewritten: resolve line 3",
        ),
        Example(
            "left where a policy without loss scaling was passed a loss scale",
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
            "to the shim, with a loss scale that compile applies in every version",
            """\
            from tensorflow.keras.mixed_precision.experimental import Policy

            policy = Policy("mixed_float16", loss_scale="dynamic")
            """,
            """\
            from tf_lossscale.keras.mixed_precision.experimental import Policy

            policy = Policy("mixed_float16", loss_scale="dynamic")
            """,
            Safety.SAFE,
            target=Target.SHIM,
        ),
        Example(
            "to the shim, with a loss scale that it refuses from TensorFlow 2.9 on",
            """\
            from tensorflow.keras.mixed_precision.experimental import Policy

            policy = Policy("mixed_float16", loss_scale=128)
            """,
            """\
            from tf_lossscale.keras.mixed_precision.experimental import Policy

            policy = Policy("mixed_float16", loss_scale=128)
            """,
            Safety.UNSAFE,
            target=Target.SHIM,
            unsafe=True,
            message_contains="refuses",
        ),
        Example(
            "a test of the class",
            """\
            from tensorflow.keras.mixed_precision.experimental import Policy

            def is_mixed(layer):
                return isinstance(layer.dtype_policy, Policy)
            """,
            """\
            from tensorflow.keras.mixed_precision import Policy

            def is_mixed(layer):
                return isinstance(layer.dtype_policy, Policy)
            """,
            Safety.UNSAFE,
            unsafe=True,
            message_contains="becomes True",
        ),
    ),
)
