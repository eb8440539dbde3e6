"""Graph-mode programs that a rewrite by spelling breaks."""

from __future__ import annotations

from .program import ANY, MANUAL
from .traps import Trap

_EXPONENTIAL = "{ExponentialUpdateLossScaleManager}(1024., $period, $bad, 2, $ratio)"
_DRAWN = {"period": ("1", "2", "3"), "bad": ("1", "2"), "ratio": (".5", ".8")}

GRAPH_TRAPS: dict[str, Trap] = {
    # The variable keeps its name on the shim; on TensorFlow 2 the name is that of its handle.
    "fetched_by_name": Trap(
        """
        manager = {ExponentialUpdateLossScaleManager}(1024., $period, $bad, 2, $ratio)
        optimizer = {LossScaleOptimizer}({inner}, manager)
        """,
        MANUAL,
        draws={**_DRAWN, "name": ("'loss_scale:0'",)},
        scale="$name",
    ),
    # `tf.gradients` bypasses the scaling, before and after.
    "gradients_beside_it": Trap(
        """
        manager = {ExponentialUpdateLossScaleManager}(1024., $period, $bad, 2, $ratio)
        optimizer = {LossScaleOptimizer}({inner}, manager)
        """,
        ANY,
        draws=_DRAWN,
        train="""
        grads = {v1}.gradients(loss, [weights])
        train_op = optimizer.apply_gradients(list(zip(grads, [weights])), step)
        """,
        scale="manager.get_loss_scale()",
    ),
    "nested": Trap(
        """
        manager = {ExponentialUpdateLossScaleManager}(1024., $period, $bad, 2, $ratio)
        inner = {LossScaleOptimizer}({inner}, {FixedLossScaleManager}(8))
        optimizer = {LossScaleOptimizer}(inner, manager)
        """,
        draws=_DRAWN,
        scale="manager.get_loss_scale()",
    ),
    "private": Trap(
        """
        manager = {ExponentialUpdateLossScaleManager}(1024., $period, $bad, 2, $ratio)
        optimizer = {LossScaleOptimizer}({inner}, manager)
        record["rate"] = type(optimizer._opt).__name__
        """,
        ANY,
        draws={
            **_DRAWN,
            "attribute": ("manager._loss_scale", "optimizer._loss_scale_manager.get_loss_scale()"),
        },
        scale="$attribute",
    ),
    "by_table": Trap(
        """
        MANAGERS = {
            'fixed': {FixedLossScaleManager},
            'exponential': {ExponentialUpdateLossScaleManager},
        }
        manager = $manager
        optimizer = {LossScaleOptimizer}({inner}, manager)
        """,
        draws={"manager": ("MANAGERS['fixed'](128.)", "MANAGERS['exponential'](128., 2)")},
        scale="manager.get_loss_scale()",
    ),
    "isinstance": Trap(
        """
        manager = $manager
        assert isinstance(manager, {LossScaleManager})
        record["fixed"] = isinstance(manager, {FixedLossScaleManager})
        optimizer = {LossScaleOptimizer}({inner}, manager)
        record["wrapped"] = isinstance(optimizer, {LossScaleOptimizer})
        record["base"] = isinstance(optimizer, {v1}.train.Optimizer)
        """,
        draws={**_DRAWN, "manager": (_EXPONENTIAL, "{FixedLossScaleManager}(16)")},
        scale="manager.get_loss_scale()",
    ),
    "in_a_class": Trap(
        """
        class Model(object):
            '''Trains with tf.contrib.mixed_precision.LossScaleOptimizer.'''

            def __init__(self, optimizer):
                self._manager = {ExponentialUpdateLossScaleManager}(1024., $period, $bad, 2, $ratio)
                self._optimizer = {LossScaleOptimizer}(optimizer, self._manager)

        model = Model({inner})
        optimizer = model._optimizer
        """,
        draws=_DRAWN,
        scale="model._manager.get_loss_scale()",
    ),
    "passed_on": Trap(
        """
        import functools
        manager = {FixedLossScaleManager}(64)
        wrap = functools.partial({LossScaleOptimizer}, loss_scale_manager=manager)
        optimizer = wrap({inner})
        """,
    ),
    "subclass_of_both": Trap(
        """
        class Patient({ExponentialUpdateLossScaleManager}):
            def __init__(self, *args, **kwargs):
                super(Patient, self).__init__(*args, decr_every_n_nan_or_inf=3, **kwargs)

        class Named({LossScaleOptimizer}):
            def get_scale(self):
                return self._loss_scale_manager.get_loss_scale()

        optimizer = Named({inner}, Patient(256., $period, decr_ratio=0.5))
        """,
        ANY,
        draws={"period": ("1", "2")},
        scale="optimizer.get_scale()",
    ),
    "try_import": Trap(
        """
        try:
            from tensorflow.contrib.mixed_precision import LossScaleOptimizer as Wrapper
            from tensorflow.contrib.mixed_precision import FixedLossScaleManager as Manager
        except ImportError:
            Wrapper = Manager = None
        optimizer = {inner}
        if Wrapper is not None:
            optimizer = Wrapper(optimizer, Manager($scale))
        record["wrapped"] = Wrapper is not None
        """,
        ANY,
        draws={"scale": ("8", "64.0")},
    ),
    # A class of the same name that is the program's own.
    "own_class": Trap(
        """
        class FixedLossScale(object):
            def __init__(self, value):
                self.value = value

        own = FixedLossScale(3)
        manager = {FixedLossScaleManager}(own.value * 8)
        optimizer = {LossScaleOptimizer}({inner}, manager)
        record["own"] = own.value
        """,
        scale="manager.get_loss_scale()",
    ),
    # A loss scale used by hand, without an optimizer of ours.
    "protocol": Trap(
        """
        loss_scale = {DynamicLossScale}(1024., $period)
        optimizer = {inner}
        """,
        draws={"period": ("1", "2", "3")},
        train="""
        pairs = optimizer.compute_gradients(loss * loss_scale(), [weights])
        grads = [g / loss_scale() for g, v in pairs]
        update, finite = loss_scale.update(grads)
        def apply():
            return optimizer.apply_gradients([(grads[0], weights)], step)
        with {v1}.control_dependencies([update]):
            train_op = {v1}.cond({v1}.convert_to_tensor(finite), apply, {v1}.no_op)
        """,
        scale="loss_scale()",
    ),
    # Both optimizers move one scale.
    "shared_object": Trap(
        """
        loss_scale = {DynamicLossScale}(256., $period)
        second = {MixedPrecisionLossScaleOptimizer}({inner}, loss_scale)
        optimizer = {MixedPrecisionLossScaleOptimizer}({inner}, loss_scale)
        """,
        draws={"period": ("1", "2")},
        train="""
        first_op = optimizer.minimize(loss, step, var_list=[weights])
        with {v1}.control_dependencies([first_op]):
            train_op = second.minimize(loss * 0.5, var_list=[weights])
        """,
        scale="loss_scale()",
    ),
    "handed_on": Trap(
        """
        def build(cls, base, **kwargs):
            return cls(base, **kwargs)

        optimizer = build(
            {MixedPrecisionLossScaleOptimizer}, {inner}, loss_scale=$scale
        )
        """,
        draws={"scale": ("64", "'dynamic'")},
    ),
    "config": Trap(
        """
        original = $scale
        record["config"] = original.get_config()
        loss_scale = type(original).from_config(original.get_config())
        optimizer = {MixedPrecisionLossScaleOptimizer}({inner}, loss_scale)
        """,
        draws={"scale": ("{FixedLossScale}(32)", "{DynamicLossScale}(32, 2, 2.0)")},
        scale="loss_scale()",
    ),
    "choice": Trap(
        """
        fp16 = $fp16
        wrap = {enable_mixed_precision_graph_rewrite} if fp16 else (lambda opt: opt)
        optimizer = wrap({inner})
        """,
        ANY,
        draws={"fp16": ("True", "False")},
    ),
}
"""Every trap comes up once in so many programs."""
