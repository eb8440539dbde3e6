"""Counts the steps of one optimizer where they are built, and the skipped ones in their branch."""

import dataclasses
import weakref
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from tf_lossscale._core.finite import BadGradients, bad_gradients
from tf_lossscale._core.loss_scales import DynamicLossScale, is_fixed
from tf_lossscale._core.minimum import minimum_of
from tf_lossscale._core.same_class import is_our, loss_scale_class
from tf_lossscale._core.unscaled import source_of
from tf_lossscale._core.watching import Step, WatchedStep, Watcher, initialized
from tf_lossscale._keras.wrapper import LossScaleWrapper
from tf_lossscale._records import advice
from tf_lossscale._records.format import ScaleParameters
from tf_lossscale._types import (
    Gradient,
    Graph,
    Loss,
    Operation,
    Optimizer,
    Session,
    Tensor,
    Variable,
    Variables,
)
from tf_lossscale._v1.contrib import LossScaleOptimizer
from tf_lossscale._v1.managers import ExponentialUpdateLossScaleManager
from tf_lossscale._v1.optimizer import MixedPrecisionLossScaleOptimizer
from tf_lossscale._versions.base import tf, tf1, where
from tf_lossscale._versions.graphs import in_eager_mode, in_xla_context, outermost_graph
from tf_lossscale._versions.keras import keras_family, mixed_float16_is_on
from tf_lossscale._versions.unnoticed import unnoticed
from tf_lossscale._versions.variables import RawVariable, variable_name

_OURS = (LossScaleOptimizer, MixedPrecisionLossScaleOptimizer, LossScaleWrapper)
_INNER = ("inner_optimizer", "_inner_optimizer", "_optimizer", "_opt", "optimizer")
"""The attributes by which optimizers refer to the one that they wrap."""


def scales_losses(optimizer: Optimizer) -> bool:
    """Returns whether an optimizer, or one that it wraps, is a loss-scale optimizer of any kind."""
    for _ in range(len(_INNER)):
        if any(is_our(cls, optimizer) for cls in _OURS) or loss_scale_class(optimizer):
            return True
        attributes = getattr(optimizer, "__dict__", {})
        inner = next((attributes[name] for name in _INNER if name in attributes), None)
        if inner is None:
            return False
        optimizer = inner
    return False


def check(optimizer: Optimizer) -> None:
    """Raises TypeError if an optimizer is not of our class, ValueError if it skips no step."""
    if not any(is_our(cls, optimizer) for cls in _OURS):
        name = f"{type(optimizer).__module__}.{type(optimizer).__name__}"
        if loss_scale_class(optimizer):
            raise TypeError(
                f"Monitor counts the steps of tf_lossscale's optimizers, but {name} is "
                "TensorFlow's or Keras's own class. Create the optimizer under the same path of "
                "tf_lossscale (such as tfls.keras.mixed_precision.LossScaleOptimizer), or run the "
                "program with `tf-lossscale run --replace`; `tf-lossscale run --monitor` counts "
                "the steps of all classes."
            )
        if keras_family(optimizer) and not scales_losses(optimizer) and mixed_float16_is_on():
            raise TypeError(
                f"Monitor takes a loss-scale optimizer of tf_lossscale, but got: {name}. "
                f"{advice.MIXED_FLOAT16}."
            )
        raise TypeError(
            f"Monitor takes a loss-scale optimizer of tf_lossscale, but got: {name}. Pass the "
            "optimizer that scales the loss: for a Keras model that was compiled under "
            "mixed_float16, model.optimizer; for a wrapper around a loss-scale optimizer, the "
            "latter."
        )
    if isinstance(optimizer, LossScaleWrapper):
        fixed = not optimizer._state.dynamic
    else:
        fixed = not isinstance(optimizer, LossScaleOptimizer) and is_fixed(optimizer._loss_scale)
    if fixed:
        raise ValueError(
            f"A {type(optimizer).__name__} with a fixed loss scale applies every step, so there "
            "are no skipped steps to count. Use a dynamic loss scale, or test the gradients of a "
            "step with tf_lossscale.monitoring.find_nonfinite(grads_and_vars)."
        )


def _current_scale(optimizer: Optimizer) -> Tensor:
    is_keras = isinstance(optimizer, LossScaleWrapper)
    scale = optimizer.loss_scale if is_keras else optimizer._current_loss_scale()
    return tf.convert_to_tensor(scale)


def name_of(optimizer: Optimizer) -> str:
    """Returns the name of the inner optimizer: on Keras 3, all our wrappers have one name."""
    if isinstance(optimizer, LossScaleWrapper):
        inner = optimizer.inner_optimizer
        return str(getattr(inner, "name", None) or inner._name)
    try:
        return str(optimizer.get_name())
    except AttributeError:  # an inner optimizer that is not TensorFlow's
        return type(optimizer).__name__


def update_of(optimizer: Optimizer) -> Optional[ScaleParameters]:
    """Returns how the loss scale is updated; None if it is fixed, or of the program's own class."""
    scale = getattr(optimizer, "_loss_scale_manager", None) or optimizer._loss_scale
    if isinstance(optimizer, LossScaleOptimizer):
        if not isinstance(scale, ExponentialUpdateLossScaleManager):
            return None
        growth = scale._incr_every_n_steps, scale._incr_ratio
        shrink = scale._decr_every_n_nan_or_inf, scale._decr_ratio
        return _parameters(minimum_of(scale), "exponential", *growth, *shrink)
    # A fixed one is refused by `check`.
    if isinstance(optimizer, LossScaleWrapper):
        state = optimizer._state
        factor = getattr(state, "multiplier", None)  # which a class of the program has not
        return _parameters(minimum_of(scale), "dynamic", state.growth_steps, factor)
    if isinstance(scale, DynamicLossScale):
        return _parameters(minimum_of(scale), "dynamic", scale.increment_period, scale.multiplier)
    return None


def _parameters(
    minimum: float,
    rule: str,
    growth_steps: Any,
    growth_factor: Any,
    shrink_steps: Any = 1,
    shrink_factor: Any = None,
) -> ScaleParameters:
    """Returns the parameters, of an unknown rule if one of them is no number: a tensor, or None."""
    try:
        if shrink_factor is None:
            shrink_factor = 1 / growth_factor
        numbers = int(growth_steps), float(growth_factor), int(shrink_steps), float(shrink_factor)
    except (TypeError, ValueError, ZeroDivisionError):
        return ScaleParameters("unknown", minimum_scale=minimum)
    return ScaleParameters(rule, None, *numbers, minimum_scale=minimum)


_SCOPE = "tf_lossscale_monitor/"
_SIZE = 9
_NONE = -1


class Reading(NamedTuple):
    """What the counters of a graph or of eager mode hold: `StepCounts`, and more."""

    steps: int
    skipped: int
    in_a_row: int
    longest: int  # the most skipped steps in a row
    bad: Optional[str]  # the first variable with a non-finite gradient in the last skipped step
    last_bad: Optional[str]  # the last such variable, to which the backward pass comes first
    bad_count: int  # how many variables had one in that step, and how many variables it has
    variables: int
    scale: float


class StepCounter(Watcher):
    """Has counters for eager mode, and for each graph of a Session: a variable for each.

    A finite step only increments the variable. It holds the number of steps, of skipped steps, of
    steps up to the last skipped one, of skipped steps in a row then, the most of them, the number
    of the first bad variable and of the last one, and of `Reading` `bad_count` and `variables`.

    Attributes:
      counters: by graph, None for eager mode: the variable, and the loss scale to read with it.
      scales_loss: whether a loss was scaled through the optimizer.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = weakref.ref(optimizer)
        self.counters: Dict[Optional[Graph], Tuple[RawVariable, Variable]] = {}
        self.scales_loss = False
        self._names: List[str] = []
        self._first: Dict[Tuple[str, ...], int] = {}

    def loss(self, optimizer: Optimizer, loss: Loss) -> None:
        self.scales_loss = True

    def begin(self, step: Step) -> Optional[WatchedStep]:
        """Prepares to count a step; one that is always applied is not counted."""
        if step.is_unconditional:
            return None
        graph = outermost_graph()
        with unnoticed(_SCOPE):
            if graph not in self.counters:
                variable = RawVariable([_SIZE])
                with tf.init_scope():  # now, because the graph may be finalized later
                    scale = None if graph is None else _current_scale(self._optimizer())
                self.counters[graph] = variable, scale
            if graph is not None and in_xla_context():
                raise NotImplementedError(
                    "tf_lossscale.monitoring.Monitor cannot count the steps that XLA compiles in a "
                    "Session. Remove the Monitor, or compile a tf.function in eager mode."
                )
            variable, _ = self.counters[graph]
            return _CountedStep(self, variable, step, initialized(variable))

    def number_of(self, variables: Variables) -> int:
        """Returns the number of the first of `variables`; the others have the numbers after it."""
        names = tuple(variable_name(variable) for variable in variables)
        if names not in self._first:
            self._first[names] = len(self._names)
            self._names.extend(names)
        return self._first[names]

    def read(self, session: Optional[Session]) -> Reading:
        """Reads the counters of the graph of a Session, or of eager mode."""
        variable, scale = self.counters[None if session is None else session.graph]
        values = [int(value) for value in variable.value(session)]
        steps, skipped, last, in_a_row, longest, first_bad, last_bad, *counts = values
        if session is None:
            with in_eager_mode():
                scale = float(_current_scale(self._optimizer()))
        else:
            scale = float(session.run(scale))
        in_a_row = in_a_row if skipped and last == steps else 0
        first, final = (self._name_of(bad) if skipped else None for bad in (first_bad, last_bad))
        bad_count, variables = counts
        return Reading(steps, skipped, in_a_row, longest, first, final, bad_count, variables, scale)

    def _name_of(self, number: int) -> Optional[str]:
        return None if number == _NONE else self._names[number]


@dataclasses.dataclass
class _CountedStep(WatchedStep):
    """Counts one step in the variable of a `StepCounter`: on the device, with nothing read back."""

    _counter: StepCounter
    _variable: RawVariable
    _step: Step
    _ready: Sequence[Tensor]

    def skipped(self) -> Optional[Operation]:
        """Counts a skipped step, before `finished` counts it as a step."""
        offset = self._counter.number_of(self._step.variables)
        with unnoticed(_SCOPE), tf1.control_dependencies(self._ready):
            number = len(self._step.tested)
            count, zero, one, none = [tf.constant(n, tf.int64) for n in (number, 0, 1, _NONE)]
            bad = _bad_of(self._step)
            numbers = [
                where(bad.count > zero, position + offset, none)
                for position in (bad.first, bad.last)
            ]
            before = self._variable.read()
            steps, skipped, last, in_a_row, longest, *_ = tf.unstack(before)
            in_a_row = where(tf.equal(last, steps), in_a_row + one, one)
            longest = where(in_a_row > longest, in_a_row, longest)
            series = [steps, skipped + one, steps + one, in_a_row, longest]
            after = tf.stack([*series, *numbers, bad.count, count])
            # Not assigned: another thread may count a step meanwhile.
            return self._variable.assign_add(after - before)

    def finished(self, operation: Optional[Operation], applied: Tensor) -> Optional[Operation]:
        after = [] if operation is None or tf.executing_eagerly() else [operation]
        with unnoticed(_SCOPE), tf1.control_dependencies([*self._ready, *after]):
            return self._variable.assign_add([1] + [0] * (_SIZE - 1))


def _bad_of(step: Step) -> BadGradients:
    """Finds the bad gradients of a step before the program has clipped them, if that is known.

    It reads no tensor that only it would need: a gradient that a step keeps for the branch of
    skipped steps cannot give its memory to the next operation, so finite steps would be slower.
    """
    bad = bad_gradients(step.tested)
    if step.unscaled is not None and _are_changed(step.unscaled, step.tested):
        # Clipping by the global norm makes all gradients NaN if one is not finite.
        unscaled = bad_gradients(step.unscaled)
        bad = _chosen(unscaled.count > 0, unscaled, bad)
    rows = step.tested if step.unscaled is None else step.unscaled
    sources = [list(map(source_of, row)) for row in rows]
    # To unscale is one factor, which makes no finite gradient infinite.
    own_factors = 1 if step.unscaled is not None or step.unscales else 0
    most_factors = max((source.factors for row in sources for source in row), default=0)
    if len(rows) < 2 or most_factors <= own_factors:
        return bad
    earlier = bad_gradients([[source.gradient for source in row] for row in sources])
    are_all = tf.equal(bad.count, len(rows))
    return _chosen(tf.logical_and(are_all, earlier.count > 0), earlier, bad)


def _are_changed(
    unscaled: Sequence[Sequence[Gradient]], tested: Sequence[Sequence[Gradient]]
) -> bool:
    """Returns whether a step tests other gradients than those that were unscaled for it."""
    before = [id(gradient) for row in unscaled for gradient in row]
    return before != [id(gradient) for row in tested for gradient in row]


def _chosen(condition: Tensor, bad: BadGradients, others: BadGradients) -> BadGradients:
    return BadGradients(*(where(condition, *values) for values in zip(bad, others)))
