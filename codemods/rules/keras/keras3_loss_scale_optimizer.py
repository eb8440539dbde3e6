"""On the Keras 3 target, for an unknown Keras, and with `--to shim`: the final class to the shim's.

Keras 3 (TensorFlow 2.16, release notes 2.16.1) has another class of the same name. It lacks
`get_scaled_loss`, `get_unscaled_gradients`, `loss_scale` and fixed scales; its scale can reach 0 or
infinity; it checks the gradients of the first replica only, and does not advance `iterations` on a
skipped step. The shim's class subclasses it and keeps the methods and numbers of Keras 2. With
`--unsafe`, plain loops use the installed class itself: `scale_loss`, and no unscaling, because
`apply_gradients` unscales.

A program is written for Keras 3's class, which then stays, if it calls `scale_loss` of an optimizer
that is certainly a loss-scale optimizer. Constructors and annotations move safely. A test such as
`isinstance(optimizer, LossScaleOptimizer)` moves safely only if the source shows where the
optimizer is made: `compile` wraps in the installed class, for which the test would be False.

The shim's class stays on the way to the final API. On the Keras 2 target, a note says that
TensorFlow's class does the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety, Target
from ...resolve.legacy_symbols import root_of
from ...resolve.possible_values import paths_of
from ...resolve.program import Program, Reference
from ...rewrite.proposal import Proposal
from ...rewrite.rename import SHIM, references
from ..findings import manual, safe, unsafe
from ..groups import KERAS_OPTIMIZERS
from ..rule import Example, Rule
from ._class_tests import risk_of_test
from ._class_uses import unportable_use
from ._constructors import has_loss_scale
from ._keras3_loops import final_class, to_shim_class
from ._optimizer_type import calls_scale_loss
from ._subclasses import overridden_by
from ._tests import risky

__all__ = ["RULE"]

_SHIM_CLASS = f"{SHIM}.keras.mixed_precision.LossScaleOptimizer"

_MESSAGE = (
    "the shim's class keeps the methods and numbers of Keras 2; the class of this name in Keras 3 "
    "does not"
)
_BACKEND = (
    "the shim's class needs the TensorFlow backend, but this file imports only keras, which can "
    "run on another one"
)
_GUARDED = (
    "belongs to a version guard: remove the legacy arm (see LS908), then migrate again; Keras 3 "
    "has another class of this name"
)


_ON_SHIM = (
    "left on the shim, whose class runs on Keras 2 and Keras 3; "
    "tf.keras.mixed_precision.LossScaleOptimizer does the same on Keras 2"
)


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the shim's class, unless the program is written for Keras 3's."""
    if program.options.target is Target.FINAL and program.options.keras == 2:
        yield from _left_on_shim(program)
    if not to_shim_class(program) or calls_scale_loss(program):
        return
    guarded = program.options.target is Target.SHIM and program.cached(_is_guarded)
    for reference in references(program, "LS401"):
        if reference.legacy.root == "tf_keras" or _handled_elsewhere(program, reference):
            continue
        risk = risk_of_test(program, reference.node)
        use = unportable_use(program, reference.node)
        if guarded or use:
            guidance = _GUARDED if guarded else use
            yield manual(reference, guidance, group=KERAS_OPTIMIZERS)
        elif risk is not None:
            yield risky(program, reference, risk)
        elif reference.legacy.root == "keras" and not program.cached(_imports_tensorflow):
            path = final_class(program)
            yield unsafe(reference, _BACKEND, path=path, group=KERAS_OPTIMIZERS)
        else:
            yield safe(reference, _MESSAGE, path=final_class(program), group=KERAS_OPTIMIZERS)


def _left_on_shim(program: Program) -> Iterator[Proposal]:
    """A note on each use of the shim's final class, which one step to Keras 2 does not need."""
    for node, name in program.migrated:
        if name == "LossScaleOptimizer" and paths_of(program, node) == {_SHIM_CLASS}:
            yield Proposal(node, "LS401", name, Safety.SAFE, _ON_SHIM, stays=True)


def _imports_tensorflow(program: Program) -> bool:
    """Whether the program imports TensorFlow, and so does not run on another backend of Keras."""
    roots = (root_of(binding.path) for binding in program.imports())
    return any(root is not None and root.name not in ("keras", "tf_keras") for root in roots)


def _is_guarded(program: Program) -> bool:
    """Whether the program chooses between the experimental and the final class itself."""
    return any(reference.legacy.is_keras_optimizer for reference in program.guarded)


def _handled_elsewhere(program: Program, reference: Reference) -> bool:
    """Whether LS304 or LS405 has the finding for this place."""
    call = program.call_of(reference.node)
    if call is not None and has_loss_scale(call):
        return True
    return bool(overridden_by(program, reference.node))


RULE = Rule(
    codes={"LS401": "tf.keras.mixed_precision.LossScaleOptimizer on Keras 3"},
    summary="the final Keras LossScaleOptimizer to the shim's, for Keras 3",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.16.1",
    check=check,
    examples=(
        Example(
            "not on Keras 2",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
            """,
        ),
        Example(
            "not tf_keras, which stays Keras 2",
            """\
            from tf_keras.mixed_precision import LossScaleOptimizer

            opt = LossScaleOptimizer(opt)
            """,
            keras=3,
        ),
        Example(
            "not a loop written for Keras 3",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
            with tf.GradientTape() as tape:
                loss = opt.scale_loss(loss_of(model(x), y))
            """,
            keras=3,
        ),
        Example(
            "not tf_keras for the shim, either",
            """\
            from tf_keras.mixed_precision import LossScaleOptimizer

            opt = LossScaleOptimizer(opt)
            """,
            target=Target.SHIM,
        ),
        Example(
            "an optimizer that compile may have wrapped",
            """\
            import tensorflow as tf

            class Scaled(tf.keras.Model):
                def train_step(self, data):
                    with tf.GradientTape() as tape:
                        loss = self.loss_of(data)
                        if isinstance(
                            self.optimizer, tf.keras.mixed_precision.LossScaleOptimizer
                        ):
                            loss = self.optimizer.get_scaled_loss(loss)
            """,
            None,
            Safety.MANUAL,
            keras=3,
            message_contains="before compile",
        ),
        Example(
            "an optimizer that a function is given, which nothing here calls",
            """\
            import tensorflow as tf

            def scaled(opt, loss):
                if isinstance(opt, tf.keras.mixed_precision.LossScaleOptimizer):
                    loss = opt.get_scaled_loss(loss)
                return loss
            """,
            None,
            Safety.UNSAFE,
            target=Target.SHIM,
            message_contains="becomes False",
        ),
        Example(
            "a program of keras alone, which may run on another backend",
            """\
            import keras

            opt = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD())
            """,
            None,
            Safety.UNSAFE,
            keras=3,
            message_contains="backend",
        ),
        Example(
            "left where types are compared, which differ from TensorFlow 2.11 to 2.15",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())
            print(type(opt) is tf.keras.mixed_precision.LossScaleOptimizer)
            """,
            None,
            Safety.MANUAL,
            target=Target.SHIM,
            message_contains="isinstance",
        ),
        Example(
            "left where a method of the class is replaced",
            """\
            import tensorflow as tf

            tf.keras.mixed_precision.LossScaleOptimizer.get_scaled_loss = traced
            """,
            None,
            Safety.MANUAL,
            keras=3,
            message_contains="replaces",
        ),
        Example(
            "beside a flag called scale_loss",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())
            loss = opt.get_scaled_loss(loss) if FLAGS.scale_loss else loss
            """,
            """\
            import tensorflow as tf
            import tf_lossscale as tfls

            opt = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())
            loss = opt.get_scaled_loss(loss) if FLAGS.scale_loss else loss
            """,
            Safety.SAFE,
            keras=3,
        ),
        Example(
            "for the shim, which runs on Keras 2 and Keras 3",
            """\
            from tensorflow.keras.mixed_precision import LossScaleOptimizer

            opt = LossScaleOptimizer(SGD())
            if isinstance(opt, LossScaleOptimizer):
                loss = opt.get_scaled_loss(loss)
            """,
            """\
            from tf_lossscale.keras.mixed_precision import LossScaleOptimizer

            opt = LossScaleOptimizer(SGD())
            if isinstance(opt, LossScaleOptimizer):
                loss = opt.get_scaled_loss(loss)
            """,
            Safety.SAFE,
            target=Target.SHIM,
        ),
        Example(
            "a loop with clipping stays as it is on the shim's class",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())
            with tf.GradientTape() as tape:
                loss = opt.get_scaled_loss(loss_of(model(x), y))
            grads = opt.get_unscaled_gradients(tape.gradient(loss, model.trainable_variables))
            grads, _ = tf.clip_by_global_norm(grads, 1.0)
            opt.apply_gradients(zip(grads, model.trainable_variables))
            """,
            """\
            import tensorflow as tf
            import tf_lossscale as tfls

            opt = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())
            with tf.GradientTape() as tape:
                loss = opt.get_scaled_loss(loss_of(model(x), y))
            grads = opt.get_unscaled_gradients(tape.gradient(loss, model.trainable_variables))
            grads, _ = tf.clip_by_global_norm(grads, 1.0)
            opt.apply_gradients(zip(grads, model.trainable_variables))
            """,
            Safety.SAFE,
            keras=3,
        ),
    ),
)
