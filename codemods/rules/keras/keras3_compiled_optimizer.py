"""Reports uses of `model.optimizer` that Keras 3 lacks, where the program does not set the policy.

Under a `mixed_float16` policy, `compile` wraps the optimizer of a model in the class of the
installed Keras. The class of Keras 3 (TensorFlow 2.16) has no `get_scaled_loss`, no
`get_unscaled_gradients` and no `loss_scale`: a training step that uses them raises an
AttributeError. Under a policy that the shim sets, `compile` makes the shim's class, which has them.
So a program that sets the policy goes to the shim's policies, and needs no other edit. Where
nothing in the run sets a policy, or makes a loss-scale optimizer, the use is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..rule import Decision, Obstacle, Options, Program, Proposal, Rule, When

__all__ = ["RULE"]

_NEED = "Keras 3's class has no {}, and compile makes the shim's class only under the shim's policy"
_MESSAGE = (
    "compile may have wrapped this optimizer in the class of the installed Keras, and Keras 3's "
    "has no {}: set the policy with tfls.keras.mixed_precision.set_global_policy"
)


def needs(program: Program, options: Options) -> Iterator[Obstacle]:
    """For Keras 3, only the shim's policy lets `compile` make a class with these methods."""
    if not options.for_keras_3:
        return
    for use in program.keras_2_methods.foreign_uses:
        symbol = f"LossScaleOptimizer.{use.name}"
        when = When.ALWAYS if use.is_compiled else When.IF_COMPILED
        yield Obstacle.of_policies(use.node, "LS406", symbol, _NEED.format(use.name), when)


def reports(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Reports the uses in a file that no test of the optimizer guards."""
    if not (options.for_keras_3 or options.to_shim) or decision.is_origin_known:
        return
    for use in program.keras_2_methods.foreign_uses:
        if use.is_compiled and not use.is_test:
            symbol = f"LossScaleOptimizer.{use.name}"
            yield Proposal.report(use.node, "LS406", symbol, _MESSAGE.format(use.name))


RULE = Rule(
    codes={"LS406": "get_scaled_loss or loss_scale of an optimizer that compile may have wrapped"},
    summary="Keras 2's methods of a compiled optimizer, reported for Keras 3",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.16.1",
    needs=needs,
    reports=reports,
    cases="""
        # not on Keras 2
          import tensorflow as tf

          class Scaled(tf.keras.Model):
              def train_step(self, data):
                  return self.optimizer.get_scaled_loss(self.loss_of(data))

        # a step of a model whose policy is set elsewhere
        > manual, --keras 3: set the policy
          import tensorflow as tf

          class Scaled(tf.keras.Model):
              def train_step(self, data):
                  return self.optimizer.get_scaled_loss(self.loss_of(data))

        # under the shim's policy
        > safe, --keras 3: compile makes the shim's class
          import tensorflow as tf
        + import tf_lossscale as tfls

        - tf.keras.mixed_precision.set_global_policy("mixed_float16")
        + tfls.keras.mixed_precision.set_global_policy("mixed_float16")

          class Scaled(tf.keras.Model):
              def train_step(self, data):
                  return self.optimizer.get_scaled_loss(self.loss_of(data))

        # a callback that reads the loss scale
        > --keras 3
          import tensorflow as tf
        + import tf_lossscale as tfls

        - tf.keras.mixed_precision.experimental.set_policy("mixed_float16")
        + tfls.keras.mixed_precision.experimental.set_policy("mixed_float16")

          class Report(tf.keras.callbacks.Callback):
              def on_epoch_end(self, epoch, logs=None):
                  print(float(self.model.optimizer.loss_scale))
    """,
)
