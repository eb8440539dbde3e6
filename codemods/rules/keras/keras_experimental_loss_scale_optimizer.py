"""Moves `tf.keras.mixed_precision.experimental.LossScaleOptimizer` to the final class.

TensorFlow 2.9 removed `tf.keras.mixed_precision.experimental` (release notes 2.9.0). The final
class (2.4) takes `dynamic`, `initial_scale` and `dynamic_growth_steps` instead of a loss scale.
Constructors, `isinstance` checks and annotations are rewritten together: the final class is not a
subclass of the experimental one, so a check that stays behind would turn loss scaling off. A loss
scale that cannot be determined statically is left to the shim's `from_loss_scale` at run time. On
Keras 3, the shim's final class keeps the methods and the numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Safety, Target
from ...resolve.escapes import escapes
from ...resolve.possible_values import paths_of
from ...resolve.program import Program, Reference
from ...rewrite.proposal import Proposal
from ...rewrite.rename import SHIM, references, shim_path
from ..findings import OR_TO_SHIM, manual, report, safe, unsafe
from ..groups import KERAS_OPTIMIZERS
from ..rule import Example, Rule
from ._class_tests import may_test_compiled, risk_of_test
from ._class_uses import unportable_use
from ._constructors import FINAL_CLASS, ConstructorPlan, loss_scale_of, plan_constructors
from ._keras3_loops import INSTALLED, final_class, final_outcome, to_shim_class
from ._loss_scale_argument import NOT_CALLED, has_other_multiplier
from ._own_loss_scales import own_loss_scale
from ._subclasses import overridden_by
from ._tests import risky

__all__ = ["RULE"]

_SHIM = "the shim's class behaves as in TensorFlow 2.8"
_TOGETHER = "rewritten with the constructor so that isinstance checks still match"
_SUBCLASS = (
    "the constructor and private attributes of the final class differ: port this subclass by "
    f"hand{OR_TO_SHIM}"
)
_OVERRIDES = (
    "this subclass overrides {}, but fit on Keras 3 makes a step without get_scaled_loss and "
    "get_unscaled_gradients: port this subclass by hand"
)
_NOT_CALLED_BY_FIT = frozenset(["get_scaled_loss", "get_unscaled_gradients", "..."])
_STORED = (
    "the class is stored under a name that is called elsewhere: call the class by its own name, "
    "then migrate again"
)
_ESCAPES = (
    "the class is passed on, and its arguments are given elsewhere: write the constructor call "
    "here, then migrate again"
)
_MULTIPLIER = (
    "the class only doubles and halves since TensorFlow 2.4, as does the shim's: decide whether "
    "multiplier=2 will do"
)
_FROM_CONFIG = (
    "the final class has no from_config from TensorFlow 2.9 on: use "
    f"tf.keras.optimizers.deserialize{OR_TO_SHIM}"
)
_CUSTOM_OBJECT = (
    "from TensorFlow 2.9 on, the final class has no from_config, so loading an optimizer of this "
    "name fails: leave it out of custom_objects, as Keras knows the class itself"
)
_BECOMES_TRUE = (
    "if compile wrapped this optimizer, this test is False in TensorFlow 2.4 to 2.8, where compile "
    "uses the final class, and becomes True: check that what it guards must happen"
)


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the final class for every reference, or says why all must stay."""
    for reference in references(program, "LS301"):
        call = program.call_of(reference.node)
        risk = risk_of_test(program, reference.node) if to_shim_class(program) else None
        use = unportable_use(program, reference.node, not to_shim_class(program))
        if use:
            yield manual(reference, use, group=KERAS_OPTIMIZERS)
        elif risk is not None:
            to_shim = program.options.target is Target.SHIM
            yield risky(program, reference, risk, shim_path(reference) if to_shim else "")
        elif program.options.target is Target.SHIM:
            names = overridden_by(program, reference.node) or []
            if not _NOT_CALLED_BY_FIT.isdisjoint(names):
                guidance = _OVERRIDES.format(", ".join(names))
                yield manual(reference, guidance, group=KERAS_OPTIMIZERS)
            else:
                path = shim_path(reference)
                yield safe(reference, _SHIM, path=path, group=KERAS_OPTIMIZERS)
            yield from _refused_at_run_time(program, reference.node)
        elif call is not None:
            yield _constructed(program, reference, program.cached(plan_constructors)[call])
        else:
            guidance = _must_stay(program, reference)
            if guidance:
                yield manual(reference, guidance, group=KERAS_OPTIMIZERS)
            elif _is_custom_object(program, reference) and not program.options.for_keras_3:
                path = final_class(program)
                yield unsafe(reference, _CUSTOM_OBJECT, path=path, group=KERAS_OPTIMIZERS)
            elif may_test_compiled(program, reference.node):
                path = final_class(program)
                yield unsafe(reference, _BECOMES_TRUE, path=path, group=KERAS_OPTIMIZERS)
            else:
                yield _moved(program, reference, final_class(program), _TOGETHER)
    for node, name in program.migrated:
        if name == "LossScaleOptimizer" and _is_experimental_of_shim(program, node):
            yield from _refused_at_run_time(program, node)


def _is_experimental_of_shim(program: Program, node: cst.CSTNode) -> bool:
    """Whether `node` means the shim's experimental class, as after an earlier run."""
    return paths_of(program, node) == {
        f"{SHIM}.keras.mixed_precision.experimental.LossScaleOptimizer"
    }


def _moved(program: Program, reference: Reference, path: str, message: str) -> Proposal:
    if final_outcome(program) is Safety.UNSAFE:
        return unsafe(reference, message, path=path, group=KERAS_OPTIMIZERS)
    return safe(reference, message, path=path, group=KERAS_OPTIMIZERS)


def _constructed(program: Program, reference: Reference, wrap: ConstructorPlan) -> Proposal:
    if not wrap.target:
        return manual(reference, wrap.message, group=KERAS_OPTIMIZERS)
    path = final_class(program) if wrap.target == FINAL_CLASS else wrap.target
    message = wrap.message
    if final_outcome(program) is Safety.UNSAFE:
        message = f"{message}; {INSTALLED}"
    moved = _moved(program, reference, path, message)
    return moved._replace(edits=wrap.edits, removed=wrap.removed)


def _must_stay(program: Program, reference: Reference) -> str:
    """Why a reference that is not called must stay; empty where it need not."""
    if overridden_by(program, reference.node) is not None:
        return _SUBCLASS
    if escapes(program, reference.node):
        return _ESCAPES
    if _is_called_elsewhere(program, reference):
        return _STORED
    if _reads_from_config(program, reference) and not program.options.for_keras_3:
        return _FROM_CONFIG
    return ""


def _refused_at_run_time(program: Program, node: cst.CSTNode) -> Iterator[Proposal]:
    """Reports a loss scale that the class has refused since TensorFlow 2.4, as the shim's does."""
    call = program.call_of(node)
    scale = loss_scale_of(call) if call is not None else None
    if scale is None:
        return
    if has_other_multiplier(program, scale):
        yield report(scale, "LS301", "LossScaleOptimizer", _MULTIPLIER)
    own = own_loss_scale(program, scale)
    if own:
        yield report(scale, "LS301", "LossScaleOptimizer", f"{own}: {NOT_CALLED}")


def _is_called_elsewhere(program: Program, reference: Reference) -> bool:
    """Whether the class is an attribute or a default that the program calls."""
    parent = program.parents.get(reference.node)
    if isinstance(parent, cst.Param):
        loads = (name for name in program.scopes.loads if name.value == parent.name.value)
        return any(program.call_of(name) is not None for name in loads)
    if not isinstance(parent, cst.Assign):
        return False
    for one in parent.targets:
        if isinstance(one.target, cst.Attribute):
            stored = one.target.attr.value
        elif isinstance(one.target, cst.Name) and reference.scope.kind == "class":
            stored = one.target.value
        else:
            continue
        if any(program.call_of(node) for node in program.attributes(stored)):
            return True
    return False


def _is_custom_object(program: Program, reference: Reference) -> bool:
    """Whether the class is in `custom_objects={...}`, with which Keras constructs it."""
    element = program.parents.get(reference.node)
    display = program.parents.get(element) if isinstance(element, cst.DictElement) else None
    argument = program.parents.get(display) if display is not None else None
    if not isinstance(argument, cst.Arg) or argument.keyword is None:
        return False
    return argument.keyword.value == "custom_objects"


def _reads_from_config(program: Program, reference: Reference) -> bool:
    parent = program.parents.get(reference.node)
    return isinstance(parent, cst.Attribute) and parent.attr.value == "from_config"


RULE = Rule(
    codes={"LS301": "tf.keras.mixed_precision.experimental.LossScaleOptimizer"},
    summary="experimental Keras LossScaleOptimizer to the final class",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.9.0",
    check=check,
    examples=(
        Example(
            "not the final class",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(opt, dynamic=False, initial_scale=8)
            """,
        ),
        Example(
            "not where a method of the class makes an optimizer from a config",
            """\
            import tensorflow as tf

            LSO = tf.keras.mixed_precision.experimental.LossScaleOptimizer
            opt = LSO.from_config(config)
            """,
            outcome=Safety.MANUAL,
            message_contains="deserialize",
        ),
        Example(
            "not the class of smdistributed",
            """\
            from smdistributed.modelparallel.tensorflow import LossScaleOptimizer

            opt = LossScaleOptimizer(opt, 'dynamic')
            """,
        ),
        Example(
            "not scale_loss of apex",
            """\
            from apex import amp

            with amp.scale_loss(loss, opt) as scaled_loss:
                scaled_loss.backward()
            """,
        ),
        Example(
            "left where the multiplier is not two",
            """\
            import tensorflow as tf
            mp = tf.keras.mixed_precision.experimental

            scale = tf.mixed_precision.experimental.DynamicLossScale(multiplier=3.0)
            opt = mp.LossScaleOptimizer(opt, scale)
            print(isinstance(opt, mp.LossScaleOptimizer))
            """,
            None,
            Safety.MANUAL,
            message_contains="doubles and halves",
        ),
        Example(
            "left where two optimizers share one loss scale",
            """\
            import tensorflow as tf
            from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer

            scale = tf.train.experimental.DynamicLossScale()
            first = LossScaleOptimizer(first, scale)
            second = LossScaleOptimizer(second, scale)
            """,
            None,
            Safety.MANUAL,
            message_contains="also used elsewhere",
        ),
        Example(
            "left where it is subclassed",
            """\
            import tensorflow as tf

            class Clipping(tf.keras.mixed_precision.experimental.LossScaleOptimizer):
                pass
            """,
            None,
            Safety.MANUAL,
            message_contains="subclass",
        ),
        Example(
            "left where it is called through an attribute",
            """\
            import tensorflow as tf

            class Trainer:
                wrapper = tf.keras.mixed_precision.experimental.LossScaleOptimizer

                def wrap(self, opt):
                    return self.wrapper(opt, "dynamic")
            """,
            None,
            Safety.MANUAL,
            message_contains="stored",
        ),
        Example(
            "left where it is passed on to be called elsewhere",
            """\
            import tensorflow as tf
            from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer

            def build(cls, opt):
                return cls(opt, loss_scale=128)

            opt = build(LossScaleOptimizer, tf.keras.optimizers.SGD())
            """,
            None,
            Safety.MANUAL,
            message_contains="passed on",
        ),
        Example(
            "left where a dict of classes contains it",
            """\
            import tensorflow as tf

            WRAPPERS = {"amp": tf.keras.mixed_precision.experimental.LossScaleOptimizer}
            opt = WRAPPERS["amp"](opt, "dynamic")
            """,
            None,
            Safety.MANUAL,
            message_contains="passed on",
        ),
        Example(
            "left where a loss scale of the program's own is passed",
            """\
            import tensorflow as tf

            class Halving(tf.mixed_precision.experimental.DynamicLossScale):
                def update(self, grads):
                    return super().update(grads)

            opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, Halving())
            """,
            None,
            Safety.MANUAL,
            message_contains="Halving",
        ),
        Example(
            "left where the loss scale is None",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, None)
            """,
            None,
            Safety.MANUAL,
            message_contains="None",
        ),
        Example(
            "left where a policy has the loss scale",
            """\
            from tensorflow.keras.mixed_precision import experimental as prec

            opt = prec.LossScaleOptimizer(opt, prec.global_policy().loss_scale)
            """,
            None,
            Safety.MANUAL,
            message_contains="policy",
        ),
        Example(
            "one of two callables that share their arguments",
            """\
            from tensorflow.keras.mixed_precision import experimental as prec

            opt = (prec.LossScaleOptimizer if fp16 else keep)(opt, "dynamic")
            """,
            None,
            Safety.MANUAL,
            message_contains="passed on",
        ),
        Example(
            "a loop over callables",
            """\
            from tensorflow.keras.mixed_precision import experimental as prec

            for wrap in (prec.LossScaleOptimizer, keep):
                opt = wrap(opt, "dynamic")
            """,
            None,
            Safety.MANUAL,
            message_contains="passed on",
        ),
        Example(
            "one loss scale for every optimizer of a loop",
            """\
            import tensorflow as tf

            prec = tf.keras.mixed_precision.experimental
            scale = tf.mixed_precision.experimental.DynamicLossScale(8)
            for opt in optimizers:
                wrapped.append(prec.LossScaleOptimizer(opt, scale))
            """,
            None,
            Safety.MANUAL,
            message_contains="shared",
        ),
        Example(
            "arguments of both classes",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(
                opt, dynamic=True, loss_scale="dynamic"
            )
            """,
            None,
            Safety.MANUAL,
            message_contains="both classes",
        ),
        Example(
            "a suppressed isinstance check keeps the constructor unchanged",
            """\
            from tensorflow.keras.mixed_precision import experimental as prec

            opt = prec.LossScaleOptimizer(opt, "dynamic")
            if isinstance(opt, prec.LossScaleOptimizer):  # lossscale: ignore[LS301] 2.3 only
                scale = True
            """,
            None,
            Safety.MANUAL,
            message_contains="not rewritten: resolve line",
        ),
        Example(
            "dynamic by position",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, 'dynamic')
            """,
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
            """,
            Safety.SAFE,
        ),
        Example(
            "dynamic by keyword, with checks",
            """\
            from tensorflow.keras.mixed_precision import experimental as mixed_precision

            opt = mixed_precision.LossScaleOptimizer(opt, loss_scale="dynamic")
            if isinstance(opt, mixed_precision.LossScaleOptimizer):
                loss = opt.get_scaled_loss(loss)
            """,
            """\
            from tensorflow.keras import mixed_precision

            opt = mixed_precision.LossScaleOptimizer(opt)
            if isinstance(opt, mixed_precision.LossScaleOptimizer):
                loss = opt.get_scaled_loss(loss)
            """,
            Safety.SAFE,
        ),
        Example(
            "in an isinstance check with other classes",
            """\
            import tensorflow as tf

            LSO = tf.keras.mixed_precision.experimental.LossScaleOptimizer
            if isinstance(opt, (LSO, tf.keras.optimizers.SGD)):
                print(opt)
            """,
            """\
            import tensorflow as tf

            LSO = tf.keras.mixed_precision.LossScaleOptimizer
            if isinstance(opt, (LSO, tf.keras.optimizers.SGD)):
                print(opt)
            """,
            Safety.SAFE,
        ),
        Example(
            "in custom_objects, with which Keras constructs it",
            """\
            import tensorflow as tf

            LSO = tf.keras.mixed_precision.experimental.LossScaleOptimizer
            model = tf.keras.models.load_model(path, custom_objects={"Opt": LSO})
            """,
            """\
            import tensorflow as tf

            LSO = tf.keras.mixed_precision.LossScaleOptimizer
            model = tf.keras.models.load_model(path, custom_objects={"Opt": LSO})
            """,
            Safety.UNSAFE,
            unsafe=True,
            message_contains="leave it out",
        ),
        Example(
            "a number, which is a fixed loss scale",
            """\
            import tensorflow.keras.mixed_precision.experimental as mp

            opt = mp.LossScaleOptimizer(opt, loss_scale=2 ** 10)
            """,
            """\
            import tensorflow.keras.mixed_precision as mp

            opt = mp.LossScaleOptimizer(opt, dynamic=False, initial_scale=2 ** 10)
            """,
            Safety.SAFE,
        ),
        Example(
            "a fixed loss scale",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(
                opt, tf.train.experimental.FixedLossScale(128.0)
            )
            """,
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(
                opt, dynamic=False, initial_scale=128.0
            )
            """,
            Safety.SAFE,
        ),
        Example(
            "a dynamic loss scale in place, one argument to a line",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(
                tf.keras.optimizers.SGD(),
                tf.mixed_precision.experimental.DynamicLossScale(8, increment_period=1000),
            )
            """,
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(
                tf.keras.optimizers.SGD(),
                initial_scale=8,
                dynamic_growth_steps=1000,
            )
            """,
            Safety.SAFE,
        ),
        Example(
            "a dynamic loss scale in a variable that is used once",
            """\
            import tensorflow as tf
            from tensorflow.keras.mixed_precision import experimental as mp

            def wrap(opt):
                # high on purpose
                loss_scale = tf.mixed_precision.experimental.DynamicLossScale(
                    initial_loss_scale=2.0**22, increment_period=20
                )
                opt = mp.LossScaleOptimizer(opt, loss_scale)
                return opt
            """,
            """\
            from tensorflow.keras import mixed_precision as mp

            def wrap(opt):
                # high on purpose
                opt = mp.LossScaleOptimizer(opt, initial_scale=2.0**22, dynamic_growth_steps=20)
                return opt
            """,
            Safety.SAFE,
        ),
        Example(
            "a loss scale that is only known at run time",
            """\
            import tensorflow as tf

            def wrap(opt, loss_scale):
                return tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, loss_scale)
            """,
            """\
            import tf_lossscale as tfls

            def wrap(opt, loss_scale):
                return tfls.keras.mixed_precision.from_loss_scale(opt, loss_scale)
            """,
            Safety.SAFE,
            message_contains="run time",
        ),
        Example(
            "an imported name that is called and checked",
            """\
            from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer

            def wrap(opt, loss_scale):
                if isinstance(opt, LossScaleOptimizer):
                    return opt
                return LossScaleOptimizer(opt, loss_scale)
            """,
            """\
            from tensorflow.keras.mixed_precision import LossScaleOptimizer
            from tf_lossscale.keras.mixed_precision import from_loss_scale

            def wrap(opt, loss_scale):
                if isinstance(opt, LossScaleOptimizer):
                    return opt
                return from_loss_scale(opt, loss_scale)
            """,
            Safety.SAFE,
        ),
        Example(
            "starred arguments that may contain the loss scale",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, **settings)
            """,
            """\
            import tf_lossscale as tfls

            opt = tfls.keras.mixed_precision.from_loss_scale(opt, **settings)
            """,
            Safety.SAFE,
        ),
        Example(
            "comments among the arguments stay",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(
                opt,  # wrapped
                loss_scale='dynamic',  # grows
            )
            """,
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(
                opt,  # wrapped
                # grows
            )
            """,
            Safety.SAFE,
        ),
        Example(
            "the shim keeps the arguments",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, 'dynamic')
            """,
            """\
            import tf_lossscale as tfls

            opt = tfls.keras.mixed_precision.experimental.LossScaleOptimizer(opt, 'dynamic')
            """,
            Safety.SAFE,
            target=Target.SHIM,
        ),
        Example(
            "on Keras 3 the shim's final class",
            """\
            import tensorflow as tf
            from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer

            opt = LossScaleOptimizer(tf.keras.optimizers.SGD(), 128.0)
            """,
            """\
            import tensorflow as tf
            from tf_lossscale.keras.mixed_precision import LossScaleOptimizer

            opt = LossScaleOptimizer(tf.keras.optimizers.SGD(), dynamic=False, initial_scale=128.0)
            """,
            Safety.SAFE,
            keras=3,
        ),
        Example(
            "to the shim, with a multiplier that the shim rejects",
            """\
            import tensorflow as tf

            scale = tf.mixed_precision.experimental.DynamicLossScale(multiplier=4.0)
            opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, scale)
            """,
            """\
            import tf_lossscale as tfls

            scale = tfls.mixed_precision.experimental.DynamicLossScale(multiplier=4.0)
            opt = tfls.keras.mixed_precision.experimental.LossScaleOptimizer(opt, scale)
            """,
            Safety.SAFE,
            target=Target.SHIM,
            message_contains="multiplier",
        ),
    ),
)
