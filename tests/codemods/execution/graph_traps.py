"""Graph-mode programs that a rewrite by spelling breaks."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from .program import ANY, MANUAL, REWRITTEN

__all__ = ["GRAPH_TRAPS", "GraphTrap"]


class GraphTrap(NamedTuple):
    """Statements that leave an optimizer in `optimizer`.

    Attributes:
      lines: with `{inner}` for a new inner optimizer, `{tf}` and `{v1}` for TensorFlow and its
        `compat.v1`, and `{Symbol}` for legacy symbols.
      expected: what every stage must make of it.
      scale: what to fetch as the loss scale; empty where nothing is read.
      train: statements that leave `train_op`; the random ones where there are none.
    """

    lines: list[str]
    expected: str = REWRITTEN
    scale: str = ""
    train: tuple[str, ...] = ()


def _exponential(rng: random.Random) -> str:
    period, bad = rng.choice("123"), rng.choice("12")
    ratio = rng.choice([".5", ".8"])
    return f"{{ExponentialUpdateLossScaleManager}}(1024., {period}, {bad}, 2, {ratio})"


def _wrapped(rng: random.Random, manager: str = "manager") -> str:
    return f"optimizer = {{LossScaleOptimizer}}({{inner}}, {manager})"


def _fetched_by_name(rng: random.Random) -> GraphTrap:
    """The variable keeps its name on the shim; on TensorFlow 2 the name is that of its handle."""
    return GraphTrap(
        [f"manager = {_exponential(rng)}", _wrapped(rng)], MANUAL, rng.choice(["'loss_scale:0'"])
    )


def _gradients_beside_it(rng: random.Random) -> GraphTrap:
    """`tf.gradients` bypasses the scaling, before and after."""
    return GraphTrap(
        [f"manager = {_exponential(rng)}", _wrapped(rng)],
        ANY,
        "manager.get_loss_scale()",
        (
            "grads = {v1}.gradients(loss, [weights])",
            "train_op = optimizer.apply_gradients(list(zip(grads, [weights])), step)",
        ),
    )


def _nested(rng: random.Random) -> GraphTrap:
    return GraphTrap(
        [
            f"manager = {_exponential(rng)}",
            "inner = {LossScaleOptimizer}({inner}, {FixedLossScaleManager}(8))",
            "optimizer = {LossScaleOptimizer}(inner, manager)",
        ],
        scale="manager.get_loss_scale()",
    )


def _private(rng: random.Random) -> GraphTrap:
    return GraphTrap(
        [
            f"manager = {_exponential(rng)}",
            _wrapped(rng),
            'record["rate"] = type(optimizer._opt).__name__',
        ],
        ANY,
        rng.choice(["manager._loss_scale", "optimizer._loss_scale_manager.get_loss_scale()"]),
    )


def _by_table(rng: random.Random) -> GraphTrap:
    kind = rng.choice(["fixed", "exponential"])
    arguments = "128." if kind == "fixed" else "128., 2"
    return GraphTrap(
        [
            "MANAGERS = {",
            "    'fixed': {FixedLossScaleManager},",
            "    'exponential': {ExponentialUpdateLossScaleManager},",
            "}",
            f"manager = MANAGERS['{kind}']({arguments})",
            _wrapped(rng),
        ],
        scale="manager.get_loss_scale()",
    )


def _isinstance(rng: random.Random) -> GraphTrap:
    return GraphTrap(
        [
            f"manager = {rng.choice([_exponential(rng), '{FixedLossScaleManager}(16)'])}",
            "assert isinstance(manager, {LossScaleManager})",
            'record["fixed"] = isinstance(manager, {FixedLossScaleManager})',
            _wrapped(rng),
            'record["wrapped"] = isinstance(optimizer, {LossScaleOptimizer})',
            'record["base"] = isinstance(optimizer, {v1}.train.Optimizer)',
        ],
        scale="manager.get_loss_scale()",
    )


def _in_a_class(rng: random.Random) -> GraphTrap:
    return GraphTrap(
        [
            "class Model(object):",
            "    '''Trains with tf.contrib.mixed_precision.LossScaleOptimizer.'''",
            "",
            "    def __init__(self, optimizer):",
            f"        self._manager = {_exponential(rng)}",
            "        self._optimizer = {LossScaleOptimizer}(optimizer, self._manager)",
            "",
            "model = Model({inner})",
            "optimizer = model._optimizer",
        ],
        scale="model._manager.get_loss_scale()",
    )


def _passed_on(rng: random.Random) -> GraphTrap:
    return GraphTrap(
        [
            "import functools",
            "manager = {FixedLossScaleManager}(64)",
            "wrap = functools.partial({LossScaleOptimizer}, loss_scale_manager=manager)",
            "optimizer = wrap({inner})",
        ]
    )


def _subclass_of_both(rng: random.Random) -> GraphTrap:
    return GraphTrap(
        [
            "class Patient({ExponentialUpdateLossScaleManager}):",
            "    def __init__(self, *args, **kwargs):",
            "        super(Patient, self).__init__(*args, decr_every_n_nan_or_inf=3, **kwargs)",
            "",
            "class Named({LossScaleOptimizer}):",
            "    def get_scale(self):",
            "        return self._loss_scale_manager.get_loss_scale()",
            "",
            f"optimizer = Named({{inner}}, Patient(256., {rng.choice('12')}, decr_ratio=0.5))",
        ],
        ANY,
        "optimizer.get_scale()",
    )


def _try_import(rng: random.Random) -> GraphTrap:
    return GraphTrap(
        [
            "try:",
            "    from tensorflow.contrib.mixed_precision import LossScaleOptimizer as Wrapper",
            "    from tensorflow.contrib.mixed_precision import FixedLossScaleManager as Manager",
            "except ImportError:",
            "    Wrapper = Manager = None",
            "optimizer = {inner}",
            "if Wrapper is not None:",
            f"    optimizer = Wrapper(optimizer, Manager({rng.choice(['8', '64.0'])}))",
            'record["wrapped"] = Wrapper is not None',
        ],
        ANY,
    )


def _own_class(rng: random.Random) -> GraphTrap:
    """A class of the same name that is the program's own."""
    return GraphTrap(
        [
            "class FixedLossScale(object):",
            "    def __init__(self, value):",
            "        self.value = value",
            "",
            "own = FixedLossScale(3)",
            "manager = {FixedLossScaleManager}(own.value * 8)",
            _wrapped(rng),
            'record["own"] = own.value',
        ],
        scale="manager.get_loss_scale()",
    )


def _protocol(rng: random.Random) -> GraphTrap:
    """A loss scale used by hand, without an optimizer of ours."""
    return GraphTrap(
        [f"loss_scale = {{DynamicLossScale}}(1024., {rng.choice('123')})", "optimizer = {inner}"],
        scale="loss_scale()",
        train=(
            "pairs = optimizer.compute_gradients(loss * loss_scale(), [weights])",
            "grads = [g / loss_scale() for g, v in pairs]",
            "update, finite = loss_scale.update(grads)",
            "def apply():",
            "    return optimizer.apply_gradients([(grads[0], weights)], step)",
            "with {v1}.control_dependencies([update]):",
            "    train_op = {v1}.cond({v1}.convert_to_tensor(finite), apply, {v1}.no_op)",
        ),
    )


def _shared_object(rng: random.Random) -> GraphTrap:
    """Both optimizers move one scale."""
    return GraphTrap(
        [
            f"loss_scale = {{DynamicLossScale}}(256., {rng.choice('12')})",
            "second = {MixedPrecisionLossScaleOptimizer}({inner}, loss_scale)",
            "optimizer = {MixedPrecisionLossScaleOptimizer}({inner}, loss_scale)",
        ],
        scale="loss_scale()",
        train=(
            "first_op = optimizer.minimize(loss, step, var_list=[weights])",
            "with {v1}.control_dependencies([first_op]):",
            "    train_op = second.minimize(loss * 0.5, var_list=[weights])",
        ),
    )


def _handed_on(rng: random.Random) -> GraphTrap:
    scale = rng.choice(["64", "'dynamic'"])
    return GraphTrap(
        [
            "def build(cls, base, **kwargs):",
            "    return cls(base, **kwargs)",
            "",
            "optimizer = build(",
            f"    {{MixedPrecisionLossScaleOptimizer}}, {{inner}}, loss_scale={scale}",
            ")",
        ]
    )


def _config(rng: random.Random) -> GraphTrap:
    scale = rng.choice(["{FixedLossScale}(32)", "{DynamicLossScale}(32, 2, 2.0)"])
    return GraphTrap(
        [
            f"original = {scale}",
            'record["config"] = original.get_config()',
            "loss_scale = type(original).from_config(original.get_config())",
            "optimizer = {MixedPrecisionLossScaleOptimizer}({inner}, loss_scale)",
        ],
        scale="loss_scale()",
    )


def _choice(rng: random.Random) -> GraphTrap:
    return GraphTrap(
        [
            f"fp16 = {rng.choice(['True', 'False'])}",
            "wrap = {enable_mixed_precision_graph_rewrite} if fp16 else (lambda opt: opt)",
            "optimizer = wrap({inner})",
        ],
        ANY,
    )


GRAPH_TRAPS: tuple[Callable[[random.Random], GraphTrap], ...] = (
    _fetched_by_name,
    _gradients_beside_it,
    _nested,
    _private,
    _by_table,
    _isinstance,
    _in_a_class,
    _passed_on,
    _subclass_of_both,
    _try_import,
    _own_class,
    _protocol,
    _shared_object,
    _handed_on,
    _config,
    _choice,
)
"""Every trap comes up once in so many programs."""
