"""Counts the steps of one optimizer where they are built, and the skipped ones in their branch."""

import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from tf_lossscale._contrib.managers import ExponentialUpdateLossScaleManager
from tf_lossscale._contrib.optimizer import LossScaleOptimizer
from tf_lossscale._core.finite import bad_gradients
from tf_lossscale._core.loss_scales import DynamicLossScale, is_fixed
from tf_lossscale._core.same_class import is_our, loss_scale_class
from tf_lossscale._core.steps import (
    Step,
    WatchedStep,
    Watcher,
    initialized,
    unnoticed,
    variable_name,
)
from tf_lossscale._keras.wrapper import LossScaleWrapper
from tf_lossscale._v1.optimizer import MixedPrecisionLossScaleOptimizer
from tf_lossscale._versions.base import tf, tf1, where
from tf_lossscale._versions.graphs import in_xla_context, outermost_graph
from tf_lossscale._versions.watching import RawVariable

__all__ = ["Counters", "StepCounter", "Values", "check", "current_scale", "has_minimum", "name_of"]


def check(optimizer: Any) -> None:
    """Checks that an optimizer is one of ours, which can skip a step.

    Raises:
      TypeError: it is not one of our loss-scale optimizers.
      ValueError: its loss scale never skips a step.
    """
    ours = (LossScaleOptimizer, MixedPrecisionLossScaleOptimizer, LossScaleWrapper)
    if not any(is_our(cls, optimizer) for cls in ours):
        raise TypeError(_refusal(optimizer))
    if isinstance(optimizer, LossScaleOptimizer):
        return
    if isinstance(optimizer, LossScaleWrapper):
        fixed = not optimizer.dynamic
    else:
        fixed = is_fixed(optimizer._loss_scale)
    if fixed:
        raise ValueError(
            f"A {type(optimizer).__name__} with a fixed loss scale applies every step, so there "
            "are no skipped steps to count. Use a dynamic loss scale, or test the gradients of a "
            "step with tf_lossscale.monitoring.find_nonfinite(grads_and_vars)."
        )


def _refusal(optimizer: Any) -> str:
    cls = type(optimizer)
    name = f"{cls.__module__}.{cls.__name__}"
    if loss_scale_class(optimizer):
        return (
            f"Monitor counts the steps of tf_lossscale's optimizers, but {name} is TensorFlow's or "
            "Keras's own class. Create the optimizer under the same path of tf_lossscale (such as "
            "tfls.keras.mixed_precision.LossScaleOptimizer), or run the program with "
            "`tf-lossscale run --replace`."
        )
    return (
        f"Monitor takes a loss-scale optimizer of tf_lossscale, but got: {name}. Pass the "
        "optimizer that scales the loss: for a Keras model that was compiled under mixed_float16, "
        "model.optimizer; for a wrapper around a loss-scale optimizer, the latter."
    )


def current_scale(optimizer: Any) -> Any:
    """Returns the loss scale: a float32 tensor of shape `[]`."""
    if isinstance(optimizer, LossScaleWrapper):
        scale = optimizer.loss_scale
    else:
        scale = optimizer._current_loss_scale()
    return tf.convert_to_tensor(scale)


def name_of(optimizer: Any) -> str:
    """Returns the name of the inner optimizer; in Keras 3, that of ours is always the same."""
    if isinstance(optimizer, LossScaleWrapper):
        inner = optimizer.inner_optimizer
        return str(getattr(inner, "name", None) or inner._name)
    try:
        return str(optimizer.get_name())
    except AttributeError:  # an inner optimizer that is not TensorFlow's
        return type(optimizer).__name__


def has_minimum(optimizer: Any) -> bool:
    """Returns whether the loss scale shrinks down to 1 and not below."""
    if isinstance(optimizer, LossScaleWrapper):
        return bool(optimizer.dynamic)
    if isinstance(optimizer, LossScaleOptimizer):
        return isinstance(optimizer._loss_scale_manager, ExponentialUpdateLossScaleManager)
    return isinstance(optimizer._loss_scale, DynamicLossScale)


_SCOPE = "tf_lossscale_monitor/"
_SIZE = 7
_NONE = -1


class Values(NamedTuple):
    """What the counters hold.

    Attributes:
      steps: number of steps.
      skipped: number of skipped steps.
      in_a_row: skipped steps in a row, up to the last step.
      longest: the most skipped steps in a row.
      bad: number of the first variable with a gradient that was not finite, in the last skipped
        step; None if there was none.
      all_bad: the number of variables of that step, if none of several had a finite gradient;
        otherwise 0.
    """

    steps: int
    skipped: int
    in_a_row: int
    longest: int
    bad: Optional[int]
    all_bad: int


class Counters:
    """One variable with all counters of a graph or of eager mode.

    A finite step only increments it. It holds the number of steps, of skipped steps, of steps up to
    the last skipped one, of skipped steps in a row then, the most of them, and the last two of
    `Values`.

    Args:
      scale: called once, in the outermost graph; returns the loss scale to read along with the
        counters. Not called in eager mode.
    """

    def __init__(self, scale: Any) -> None:
        self._variable = RawVariable([_SIZE])
        self.scale: Any = None
        if not self.eager:
            with tf.init_scope():  # now, because the graph may be finalized later
                self.scale = scale()

    @property
    def eager(self) -> bool:
        """Whether they are read in eager mode, and not in a Session."""
        return self._variable.eager

    def prepare(self) -> List[Any]:
        """Returns what the operations of a step depend on."""
        return initialized(self._variable)

    def count_step(self) -> Any:
        """Counts a step; returns the operation, None in eager mode."""
        return self._variable.assign_add([1] + [0] * (_SIZE - 1))

    def count_skip(self, bad: Any, all_bad: Any) -> Any:
        """Counts a skipped step, before `count_step`; returns the operation, None in eager mode.

        Args:
          bad: int64 tensor of shape `[]`, the number of a variable, or negative.
          all_bad: int64 tensor of shape `[]`, see `Values`.
        """
        one = tf.constant(1, tf.int64)
        before = self._variable.read()
        steps, skipped, last, in_a_row, longest, _, _ = tf.unstack(before)
        in_a_row = where(tf.equal(last, steps), in_a_row + one, one)
        longest = where(in_a_row > longest, in_a_row, longest)
        after = tf.stack([steps, skipped + one, steps + one, in_a_row, longest, bad, all_bad])
        # Not assigned: another thread may count a step meanwhile.
        return self._variable.assign_add(after - before)

    def values(self, session: Any = None) -> Values:
        """Reads the counters."""
        numbers = self._variable.value(session)
        steps, skipped, last, in_a_row, longest, bad, all_bad = [int(each) for each in numbers]
        return Values(
            steps,
            skipped,
            in_a_row if skipped and last == steps else 0,
            longest,
            bad if skipped and bad > _NONE else None,
            all_bad,
        )


class StepCounter(Watcher):
    """Has counters for eager mode, and for each graph of a Session."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = weakref.ref(optimizer)
        self._counters: Dict[Any, Counters] = {}
        self._names: List[str] = []
        self._first: Dict[Tuple[str, ...], int] = {}

    def begin(self, step: Step) -> Optional[WatchedStep]:
        """Begins a step: `Watcher`."""
        if step.is_unconditional:
            return None
        graph = outermost_graph()
        counters = self._counters.get(graph)
        with unnoticed(_SCOPE):
            if counters is None:
                counters = self._counters[graph] = Counters(self._scale)
            if not counters.eager and in_xla_context():
                raise NotImplementedError(
                    "tf_lossscale.monitoring.Monitor cannot count the steps that XLA compiles in a "
                    "Session. Remove the Monitor, or compile a tf.function in eager mode."
                )
            ready = counters.prepare()
        return _CountedStep(self, counters, step, ready)

    def number_of(self, variables: Sequence[Any]) -> int:
        """Returns the number of the first of `variables`; those of the others follow."""
        names = tuple(variable_name(each) for each in variables)
        if names not in self._first:
            self._first[names] = len(self._names)
            self._names.extend(names)
        return self._first[names]

    def name(self, number: int) -> str:
        """Returns the name of a variable by its number."""
        return self._names[number]

    def counters(self, graph: Any) -> Optional[Counters]:
        """Returns the counters of a graph (None: of eager mode), or None before its first step."""
        return self._counters.get(graph)

    def graphs(self) -> List[Any]:
        """Returns the graphs with steps; None stands for eager mode."""
        return list(self._counters)

    def _scale(self) -> Any:
        return current_scale(self._optimizer())


class _CountedStep(WatchedStep):
    def __init__(
        self,
        watcher: StepCounter,
        counters: Counters,
        step: Step,
        ready: Sequence[Any],
    ) -> None:
        self._watcher = watcher
        self._counters = counters
        self._step = step
        self._ready = ready

    @property
    def skipped(self) -> Callable[[], Any]:
        return self._count_skip

    def _count_skip(self) -> Any:
        first = self._watcher.number_of(self._step.variables)
        with unnoticed(_SCOPE), tf1.control_dependencies(self._ready):
            number = len(self._step.tested)
            count, zero, none = [tf.constant(each, tf.int64) for each in (number, 0, _NONE)]
            bad = bad_gradients(self._step.tested)
            position = where(tf.less(bad.first, count), bad.first + first, none)
            all_bad = where(bad.are_all, count, zero) if number > 1 else zero
            return self._counters.count_skip(position, all_bad)

    def finished(self, operation: Any, applied: Any) -> Any:
        in_graph = operation is not None and not tf.executing_eagerly()
        after = [operation] if in_graph else []
        with unnoticed(_SCOPE), tf1.control_dependencies([*self._ready, *after]):
            return self._counters.count_step()
