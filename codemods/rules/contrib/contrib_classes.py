"""Moves the classes of `tf.contrib.mixed_precision` to the shim's of the same behavior.

`tf.contrib` was removed in TensorFlow 2.0 (release notes, "tf.contrib has been removed"). No later
class behaves like these. The optimizer skips a step with a non-finite gradient with every manager,
and does not advance `global_step` on it; `FixedLossScale` applies such steps, and on TensorFlow
1.15 the weights become `-inf` at the first overflow. By default, the exponential manager waits for
two non-finite steps, and then multiplies the scale by 0.8. So migrations by hand to
`DynamicLossScale` changed the numbers. Subclasses of `LossScaleManager` override `get_loss_scale`
and `update_loss_scale`, and the shim's optimizer calls them like TensorFlow's.

TensorFlow's optimizer makes the gradients of embeddings dense, and the shim's keeps them sparse. So
Momentum, RMSProp and Ftrl leave rows alone that have no gradient, and norms of gradients have other
values where a row is looked up twice. For TensorFlow's numbers, apply `tf.convert_to_tensor` to
each gradient that `compute_gradients` returns.

`--unsafe` writes the similar classes of `tf.compat.v1.mixed_precision`, and says what differs, if
every class of the program has one, and nothing calls a method of a manager: `DynamicLossScale` only
if `decr_every_n_nan_or_inf=1`, and `decr_ratio` is the inverse of `incr_ratio`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Optional

import libcst as cst

from ...rewrite import arguments
from ..rule import Decision, Obstacle, Options, Program, Proposal, Reference, Rule

__all__ = ["RULE"]

_CODES = {
    "LS101": "tf.contrib.mixed_precision.FixedLossScaleManager",
    "LS102": "tf.contrib.mixed_precision.ExponentialUpdateLossScaleManager",
    "LS103": "tf.contrib.mixed_precision.LossScaleOptimizer",
    "LS104": "tf.contrib.mixed_precision.LossScaleManager",
}
_ON_SHIM = "TensorFlow 2 has no class of this behavior"
_NO_TWIN = "no class of TensorFlow 2 has the same numbers and methods"
_EXPONENTIAL = "ExponentialUpdateLossScaleManager"
_OTHER_NUMBERS = (
    "DynamicLossScale has the numbers of this manager only with decr_every_n_nan_or_inf=1 and the "
    "inverse of incr_ratio as decr_ratio"
)
_METHODS = ("get_loss_scale", "update_loss_scale")
_NO_METHOD = "no class of TensorFlow 2 has {}"


class _Twin(NamedTuple):
    """A similar class.

    Attributes:
      name: its name.
      renames: each parameter of the contrib class, in order, with its new name; None: it goes.
      caveat: how the behavior can differ.
    """

    name: str
    renames: Mapping[str, Optional[str]]
    caveat: str


_TWINS = {
    "FixedLossScaleManager": _Twin(
        "FixedLossScale",
        {"loss_scale": "loss_scale_value"},
        "FixedLossScale applies steps whose gradients overflow; the weights become NaN; it has no "
        "get_loss_scale and update_loss_scale",
    ),
    _EXPONENTIAL: _Twin(
        "DynamicLossScale",
        {
            "init_loss_scale": "initial_loss_scale",
            "incr_every_n_steps": "increment_period",
            "decr_every_n_nan_or_inf": None,
            "incr_ratio": "multiplier",
            "decr_ratio": None,
        },
        "DynamicLossScale has the same numbers; its variables have other names and dtypes in "
        "checkpoints (current_loss_scale, good_steps as int64), and it has no get_loss_scale and "
        "update_loss_scale",
    ),
    "LossScaleOptimizer": _Twin(
        "MixedPrecisionLossScaleOptimizer",
        {"opt": "opt", "loss_scale_manager": "loss_scale"},
        "MixedPrecisionLossScaleOptimizer skips None gradients; its state has other names in "
        "checkpoints",
    ),
}


def needs(program: Program, options: Options) -> Iterator[Obstacle]:
    """The shim's classes alone have the same behavior; with `--unsafe`, similar ones may do.

    Managers and optimizers fit together, so all of a program go the same way.
    """
    for reference in program.references_to(*_CODES):
        if not options.unsafe:
            yield Obstacle.at(reference, _ON_SHIM)
        elif not _has_twin(program, reference):
            is_manager = reference.legacy.name == _EXPONENTIAL
            yield Obstacle.at(reference, _OTHER_NUMBERS if is_manager else _NO_TWIN)
    if options.unsafe:
        for name in _METHODS:
            for attribute in program.attributes(name):
                symbol = f"{_EXPONENTIAL}.{name}"
                why = _NO_METHOD.format(name)
                yield Obstacle.of_contrib(attribute, "LS102", symbol, why)


def check(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Proposes the similar class with `--unsafe`."""
    for reference in program.references_to(*_CODES):
        twin = _TWINS[reference.legacy.name]
        call = program.call_of(reference.node)
        edits = ((call, arguments.renamed_arguments(twin.renames)),) if call is not None else ()
        path = f"tensorflow.compat.v1.mixed_precision.{twin.name}"
        yield Proposal.unsafe(reference, twin.caveat, path=path, edits=edits)


def _has_twin(program: Program, reference: Reference) -> bool:
    twin = _TWINS.get(reference.legacy.name)
    if twin is None or reference.root is None:
        return twin is not None
    call = program.call_of(reference.node)
    found = arguments.matched(call, tuple(twin.renames)) if call is not None else None
    if found is None:
        return False
    return reference.legacy.name != _EXPONENTIAL or _is_exact(found)


def _is_exact(given: Mapping[str, cst.Arg]) -> bool:
    """Whether some DynamicLossScale has the numbers of the manager with these arguments."""
    numbers = {name: arguments.constant(argument.value) for name, argument in given.items()}
    ratio = numbers.get("incr_ratio", (2.0,))
    if ratio is None or not isinstance(ratio[0], (int, float)) or ratio[0] <= 0:
        return False
    is_inverse = numbers.get("decr_ratio") == (1 / ratio[0],)
    return is_inverse and numbers.get("decr_every_n_nan_or_inf") == (1,)


RULE = Rule(
    codes=_CODES,
    summary="tf.contrib.mixed_precision to the shim",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.0.0 (tf.contrib removed)",
    needs=needs,
    check=check,
    cases="""
        # not from another library
          from mindspore import FixedLossScaleManager
          from npu_bridge.npu_init import ExponentialUpdateLossScaleManager

          manager = ExponentialUpdateLossScaleManager(2**32, 1000, 2, 2.0, 0.5)

        # a fixed loss scale
        - from tensorflow.contrib.mixed_precision import FixedLossScaleManager, LossScaleOptimizer
        + from tf_lossscale.contrib.mixed_precision import FixedLossScaleManager, LossScaleOptimizer

          opt = LossScaleOptimizer(opt, FixedLossScaleManager(128))
          train_op = opt.minimize(loss, global_step=step)

        # an exponential loss scale
        - import tensorflow as tf
        + import tf_lossscale as tfls

        - manager = tf.contrib.mixed_precision.ExponentialUpdateLossScaleManager(2**15, 1000)
        - opt = tf.contrib.mixed_precision.LossScaleOptimizer(opt, manager)
        + manager = tfls.contrib.mixed_precision.ExponentialUpdateLossScaleManager(2**15, 1000)
        + opt = tfls.contrib.mixed_precision.LossScaleOptimizer(opt, manager)

        # a manager of the program's own
        - import tensorflow as tf
        + import tf_lossscale as tfls

        - class Halving(tf.contrib.mixed_precision.LossScaleManager):
        + class Halving(tfls.contrib.mixed_precision.LossScaleManager):
              def get_loss_scale(self):
                  return self.scale

        # a class test
        - from tensorflow.contrib import mixed_precision
        + from tf_lossscale.contrib import mixed_precision

          assert isinstance(manager, mixed_precision.LossScaleManager)

        # one of two managers, chosen by a branch
        - import tensorflow as tf
        + import tf_lossscale as tfls

          def wrap(opt, scale):
              if scale is None:
        -         manager = tf.contrib.mixed_precision.ExponentialUpdateLossScaleManager(8, 9)
        +         manager = tfls.contrib.mixed_precision.ExponentialUpdateLossScaleManager(8, 9)
              else:
        -         manager = tf.contrib.mixed_precision.FixedLossScaleManager(scale)
        -     return tf.contrib.mixed_precision.LossScaleOptimizer(opt, manager)
        +         manager = tfls.contrib.mixed_precision.FixedLossScaleManager(scale)
        +     return tfls.contrib.mixed_precision.LossScaleOptimizer(opt, manager)

        # the numbers of a manager
        > safe, --unsafe: only with decr_every_n_nan_or_inf=1
        - import tensorflow as tf
        + import tf_lossscale as tfls

        - manager = tf.contrib.mixed_precision.ExponentialUpdateLossScaleManager(8, 9)
        + manager = tfls.contrib.mixed_precision.ExponentialUpdateLossScaleManager(8, 9)

        # a method of a manager
        > safe, --unsafe: no class of TensorFlow 2 has get_loss_scale
        - from tensorflow.contrib.mixed_precision import FixedLossScaleManager
        + from tf_lossscale.contrib.mixed_precision import FixedLossScaleManager

          manager = FixedLossScaleManager(128)
          print(manager.get_loss_scale())
    """,
)
