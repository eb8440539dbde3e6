"""Moves `experimental.Policy` to `tf.keras.mixed_precision.Policy`.

The final policy (TensorFlow 2.4, release notes 2.4.0) carries no loss scale: `compile` wraps the
optimizer under `mixed_float16`, dynamically. So `loss_scale="dynamic"` goes from such a policy. Any
other value is reported: the scale must move to where the optimizer is made, and `loss_scale=None`,
which meant no scaling, would now *add* it.

Policies flow from `Policy` through `set_policy` to `global_policy` and the layers, so one decision
is made for all of them. Class tests, subclasses and the class as a value need the shim's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

import libcst as cst

from ...model import Safety
from ...resolve.mentions import Mention, mention_of
from ...resolve.program import Program
from ...resolve.tree import Edit
from ...rewrite.arguments import matched, with_arguments
from ...rewrite.comments import comments_in
from ...rewrite.proposal import Proposal
from ...rewrite.rename import references
from ..rule import Example, Rule
from ._policies import has_own_loss_scale, reports_of_call, to_final, to_shim_because

__all__ = ["RULE"]

_DROPPED = "loss_scale='dynamic' is the default of compile under mixed_float16; argument dropped"
_OTHER = "the final policy has no loss scale"
_COMMENT = "a comment stands between the arguments"
_WHY = {
    Mention.BASE: "the constructor of the final policy is another one",
    Mention.MEMBER: "configs of the experimental policy have a loss scale",
    Mention.TEST: "in TensorFlow 2.4 to 2.8, the policies of layers are not experimental ones",
    Mention.VALUE: "the class is passed on as a value",
}


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the final class, or says which places need the shim's."""
    for reference in references(program, "LS602"):
        call = program.call_of(reference.node)
        why = _WHY.get(mention_of(program, reference), "")
        if call is not None and (has_own_loss_scale(call) or comments_in(call)):
            why = _OTHER if has_own_loss_scale(call) else _COMMENT
        if why:
            yield to_shim_because(reference, why)
            continue
        dropped = _without_loss_scale(call) if call is not None else None
        for proposal in to_final(program, reference):
            if dropped is None or call is None:
                yield proposal
            else:
                edits = ((call, _replacing(dropped)),)
                yield proposal._replace(message=_DROPPED, edits=edits)


def reports(program: Program) -> Iterator[Proposal]:
    """Reports the arguments that no current TensorFlow accepts."""
    return reports_of_call(program, "LS602")


def _replacing(dropped: cst.Call) -> Edit:
    def edit(node: cst.CSTNode) -> object:
        assert isinstance(node, cst.Call)
        return dropped.with_changes(func=node.func)

    return edit


def _without_loss_scale(call: cst.Call) -> Optional[cst.Call]:
    """The call without its loss scale; None if it has none."""
    found = matched(call, ("name", "loss_scale"))
    if found is None or "loss_scale" not in found:
        return None
    kept = [argument for argument in call.args if argument is not found["loss_scale"]]
    return with_arguments(call, kept)


RULE = Rule(
    codes={"LS602": "tf.keras.mixed_precision.experimental.Policy"},
    summary="experimental Policy to the final class",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.4.0",
    check=check,
    reports=reports,
    examples=(
        Example(
            "not the final policy",
            """\
            import tensorflow as tf

            policy = tf.keras.mixed_precision.Policy("mixed_float16")
            """,
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
            "reported where the policy has a fixed loss scale",
            """\
            import tensorflow as tf

            policy = tf.keras.mixed_precision.experimental.Policy("mixed_float16", loss_scale=128)
            """,
            """\
            import tf_lossscale as tfls

            policy = tfls.keras.mixed_precision.experimental.Policy("mixed_float16", loss_scale=128)
            """,
            Safety.MANUAL,
            message_contains="wrap the optimizer",
        ),
    ),
)
