"""Reports policies of `tf.keras` in programs that import `tf_keras`.

From TensorFlow 2.16 on, `tf.keras` is Keras 3, and only with `TF_USE_LEGACY_KERAS=1` the package
tf-keras, which keeps Keras 2. `import tf_keras as keras` gets that package in any case. So without
the variable, a policy that is set through `tf.keras`, or through the shim, which follows
`tf.keras`, is one of Keras 3: the layers of `tf_keras` compute in float32, `compile` wraps no
optimizer, and no error says so. In TensorFlow 2.14 and 2.15, `tf.keras` is the package keras, with
the same result.

If a file of the project sets the variable, nothing is reported. A comment, a message or a text cell
of a notebook that mentions it does not set it. `tf_keras.mixed_precision` is right with and without
it, and stays, also under a name of the program, such as `keras`.

The loss-scale optimizer of `tf.keras` does not fit an optimizer of `tf_keras` either. The shim's
class wraps an optimizer of any Keras, so the symbols of this group go to the shim.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

import libcst as cst

from ..rule import Decision, Obstacle, Options, Program, Proposal, Reference, Rule, When

__all__ = ["RULE"]

_CLASS = (
    "the program imports tf_keras, whose optimizers only the shim's class wraps with and without "
    "TF_USE_LEGACY_KERAS=1"
)
_UNREACHED = (
    "the program imports tf_keras, but tf.keras is Keras 3 unless TF_USE_LEGACY_KERAS=1 is set, so "
    "models of tf_keras do not use this policy: set the variable before TensorFlow is imported"
)
_WRITE = _UNREACHED + ", or write tf_keras.mixed_precision.{}"
_ONLY_VARIABLE = _UNREACHED + ", because policies of tf_keras have no loss scale"
_FINAL = {
    "set_policy": "set_global_policy",
    "set_global_policy": "set_global_policy",
    "Policy": "Policy",
    "global_policy": "global_policy",
}
"""The names that policies are set, made and read by; each with its name in `tf_keras`."""


def needs(program: Program, options: Options) -> Iterator[Obstacle]:
    """Optimizers that would get the class of `tf.keras`."""
    is_on_shim = options.for_keras_3 and not options.unsafe
    if options.sets_legacy_keras or is_on_shim:
        return
    for reference in program.references_to("LS301", "LS401"):
        if not _is_of_tf_keras(program, reference):
            yield Obstacle.at(reference, _CLASS, When.IF_TF_KERAS)


def reports(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Reports each place that sets, makes or reads a policy of `tf.keras` or of the shim."""
    if options.sets_legacy_keras or not decision.imports_tf_keras:
        return
    places = [
        (reference.node, reference.legacy.name)
        for reference in program.references
        if reference.legacy.is_policy and _is_left(program, reference, options, decision)
    ]
    places += [
        (node, name) for node, name in program.migrated if not isinstance(node, cst.ImportAlias)
    ]
    has_scale = any(map(_has_arguments, map(program.call_of, _made(places))))
    for node, name in places:
        if name in _FINAL:
            message = _ONLY_VARIABLE if has_scale else _WRITE.format(_FINAL[name])
            yield Proposal.report(node, "LS606", name, message)


def _is_left(program: Program, reference: Reference, options: Options, decision: Decision) -> bool:
    """Whether a place uses a symbol that is not one of `tf_keras` after the rewrite."""
    if program.mentions.of(reference).binds_name:
        return False
    legacy = reference.legacy
    is_moved = decision.goes_to_shim(legacy.group) and legacy.is_renamed(options, decision)
    if legacy.root == "tf_keras" and legacy.is_of_final_api:
        return False  # stays as it is
    if _is_of_tf_keras(program, reference):
        return is_moved
    return legacy.root != "keras" or is_moved


def _is_of_tf_keras(program: Program, reference: Reference) -> bool:
    """Whether a place means a symbol of `tf_keras`, as after `try: import tf_keras as keras`."""
    paths = program.paths_of(reference.node)
    return reference.legacy.root == "tf_keras" or any(
        path.partition(".")[0] == "tf_keras" for path in paths
    )


def _made(places: list[tuple[cst.CSTNode, str]]) -> list[cst.CSTNode]:
    return [node for node, name in places if name == "Policy"]


def _has_arguments(call: Optional[cst.Call]) -> bool:
    """Whether a policy is made with more than its name."""
    return call is not None and len(call.args) > 1


RULE = Rule(
    codes={"LS606": "a policy of tf.keras beside tf_keras"},
    summary="policies that do not reach tf_keras without TF_USE_LEGACY_KERAS=1, reported",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.16.1",
    needs=needs,
    reports=reports,
    cases="""
        # not the policy of tf_keras itself
          import tensorflow as tf
          import tf_keras as keras

          keras.mixed_precision.set_global_policy("mixed_float16")
          model = keras.Sequential([keras.layers.Dense(4)])

        # not where the name can be tf_keras
          try:
              import tf_keras as keras
          except ImportError:
              from tensorflow import keras

          keras.mixed_precision.set_global_policy("mixed_float16")

        # a policy of tf.keras
        > manual: or write tf_keras.mixed_precision.set_global_policy
          import tensorflow as tf
          import tf_keras as keras

          tf.keras.mixed_precision.set_global_policy("mixed_float16")
          model = keras.Sequential([keras.layers.Dense(4)])

        # a policy of the shim, with a loss scale
        > manual, --to shim: because policies of tf_keras have no loss scale
        - import tensorflow as tf
        + import tf_lossscale as tfls
          from tf_keras.layers import Dense

        - policy = tf.keras.mixed_precision.experimental.Policy("mixed_float16", loss_scale=128)
        - tf.keras.mixed_precision.experimental.set_policy(policy)
        + policy = tfls.keras.mixed_precision.experimental.Policy("mixed_float16", loss_scale=128)
        + tfls.keras.mixed_precision.experimental.set_policy(policy)
          layer = Dense(4)

        # an optimizer of tf_keras
          import tensorflow as tf
        + import tf_lossscale as tfls
          import tf_keras as keras

        - opt = tf.keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1))
        + opt = tfls.keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1))
          print(tf.__version__)
    """,
)
