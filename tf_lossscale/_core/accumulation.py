"""Gradient accumulation: one step of an optimizer for several micro-batches."""

import functools
from typing import Any, Dict, List, Optional, Sequence, Tuple

from tf_lossscale._core.conditional import branch
from tf_lossscale._replicas.agreement import call_in_replicas, merge, replica_count
from tf_lossscale._types import (
    DType,
    Gradient,
    Gradients,
    GradsAndVars,
    Operation,
    Optimizer,
    PerReplica,
    ReadScale,
    Strategy,
    Tensor,
    ToOperation,
    Variable,
    Variables,
)
from tf_lossscale._versions.base import do_not_convert, tf, tf1

_16_BIT = (tf.float16, tf.bfloat16)


def accumulate(optimizer: Optimizer, micro_batches: int) -> "Accumulator":
    """Returns an object whose `apply_gradients` makes a step for every few micro-batches.

    Each call adds gradients to sums; the last of `micro_batches` calls passes the means to
    `apply_gradients` of the optimizer, and sets the sums to 0. If a gradient of any micro-batch is
    not finite, neither is its mean: a loss-scale optimizer skips the whole step, and halves the
    scale once. The scale does not change between the micro-batches of a step.

    It works with every optimizer of the shim, in eager mode, a `tf.function`, the `train_step` of
    `fit`, a Session's graph, and the replicas of `MirroredStrategy`. (A `tf.cond` of your own
    around `apply_gradients` raises an error there.)

    State: a sum for each variable (float32 for 16-bit gradients), and the number of micro-batches.
    In a graph, they are global variables, which a `Saver` saves. A `tf.train.Checkpoint` does not
    save them: save after a step.

    Examples:
      >>> import tensorflow as tf
      >>> import tf_lossscale as tfls
      >>> weight = tf.Variable(1.0)
      >>> optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.5))
      >>> accumulated = tfls.accumulate(optimizer, 2)
      >>> for gradient in (0.5, 1.5):
      ...     accumulated.apply_gradients([(tf.constant(gradient), weight)])
      ...     print(float(weight.numpy()), int(optimizer.iterations))
      1.0 0
      0.5 1

    Args:
      optimizer: an optimizer of the shim, or another one with `apply_gradients`.
      micro_batches: the number of calls of `apply_gradients` for each step.

    Raises:
      TypeError: `optimizer` has no `apply_gradients`.
      ValueError: `micro_batches` is not a whole number of at least 1.
    """
    return Accumulator(optimizer, micro_batches)


class Accumulator:
    """Adds up gradients, and makes a step of an optimizer for every few of them."""

    def __init__(self, optimizer: Optimizer, micro_batches: int) -> None:
        if not hasattr(optimizer, "apply_gradients"):
            raise TypeError(
                f"accumulate() takes an optimizer, but got: {optimizer!r}, which has no "
                "apply_gradients."
            )
        is_number = isinstance(micro_batches, int) and not isinstance(micro_batches, bool)
        if not is_number or micro_batches < 1:
            raise ValueError(
                "micro_batches must be a whole number of at least 1: the number of calls of "
                f"apply_gradients for each step. Got: {micro_batches!r}"
            )
        self._optimizer = optimizer
        self._micro_batches = micro_batches
        self._variables: Optional[List[Variable]] = None
        self._sums: List[Optional[Variable]] = []
        self._dtypes: List[DType] = []  # of the first gradient of each variable
        self._count: Variable = None
        self._is_in_graph = False  # whether a function or graph has a step of these sums

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer that makes the steps."""
        return self._optimizer

    @do_not_convert
    def apply_gradients(
        self, grads_and_vars: GradsAndVars, *args: object, **kwargs: object
    ) -> Optional[Operation]:
        """Adds gradients, and makes a step if this is the last micro-batch of it.

        Sparse gradients become dense. A None counts as 0 if another micro-batch has a gradient of
        this variable.

        Args:
          grads_and_vars: pairs of a gradient, or None, and its variable: those that the optimizer's
            own `apply_gradients` takes. The variables are the same in all calls.
          *args: further arguments for the optimizer, such as `global_step`.
          **kwargs: the same, by name.

        Returns:
          An operation to run, in a graph; None in eager mode.

        Raises:
          ValueError: the variables differ from the call before; or a variable has its first
            gradient after a function or graph was built without one.
        """
        pairs = list(grads_and_vars)
        gradients = [gradient for gradient, _ in pairs]
        variables = [variable for _, variable in pairs]
        read_scale = _scale_of(self._optimizer, gradients, variables)
        self._prepare(gradients, variables)
        self._is_in_graph |= not tf.executing_eagerly()
        added = self._add(gradients, read_scale)
        dtypes = [
            known if gradient is None else gradient.dtype
            for gradient, known in zip(gradients, self._dtypes)
        ]

        def finish(strategy: Strategy, added: Sequence[PerReplica]) -> Optional[Operation]:
            apply = functools.partial(self._apply, dtypes, read_scale, args, kwargs)
            return self._finish(strategy, added, apply)

        done = merge(finish, added)
        return None if tf.executing_eagerly() else tf.group(done)

    def _prepare(self, gradients: Gradients, variables: List[Variable]) -> None:
        """Creates the sums of the variables that have a gradient for the first time."""
        if self._variables is not None and not _are_same(self._variables, variables):
            raise ValueError(
                "apply_gradients() of an accumulated optimizer was called with other variables "
                "than before: pass the same list in each call, with None as a gradient if need be."
            )
        is_known = self._variables is not None
        missing = [
            position
            for position, gradient in enumerate(gradients)
            if gradient is not None and not (is_known and self._sums[position] is not None)
        ]
        if is_known and not missing:
            return
        if is_known and self._is_in_graph:
            # A step that was built before would neither apply this sum nor set it to 0.
            names = ", ".join(repr(variables[position].name) for position in missing)
            raise ValueError(
                f"Variables had no gradient when a tf.function or graph was built: {names}. Pass "
                "tf.zeros_like(variable) in place of None there."
            )
        merge(lambda strategy: self._create(strategy, missing, gradients, variables))

    def _create(
        self,
        strategy: Strategy,
        missing: Sequence[int],
        gradients: Gradients,
        variables: List[Variable],
    ) -> None:
        """Creates the counter and the missing sums, once for all replicas."""
        with tf.init_scope(), strategy.scope():
            if self._variables is None:
                self._variables = variables
                self._sums = [None] * len(variables)
                self._dtypes = [None] * len(variables)
                self._count = tf1.Variable(
                    0,
                    name="accumulated/count",
                    dtype=tf.int64,
                    trainable=False,
                    use_resource=True,
                    aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
                )
            for position in missing:
                gradient: Gradient = gradients[position]
                self._dtypes[position] = gradient.dtype
                self._sums[position] = _new_sum(variables[position], self._dtypes[position])

    def _add(self, gradients: Gradients, read_scale: Optional[ReadScale]) -> List[Operation]:
        """Adds unscaled gradients of this replica; returns operations, none in eager mode."""
        scale = None if read_scale is None else read_scale()
        added = []
        for gradient, total in zip(gradients, self._sums):
            if gradient is None or total is None:
                continue
            term = tf.cast(_dense(gradient, total), total.dtype)
            if scale is not None:
                # Not the sum, because other steps may change the scale between micro-batches.
                term = term / tf.cast(scale, term.dtype)
            added.append(total.assign_add(term))
        return [] if tf.executing_eagerly() else [tf.group(*added)]

    def _finish(
        self, strategy: Strategy, added: Sequence[PerReplica], apply: ToOperation
    ) -> Optional[Operation]:
        """Counts a micro-batch, and makes a step after the last one: for all replicas."""
        operations = [
            local for value in added for local in strategy.experimental_local_results(value)
        ]
        with tf.control_dependencies(operations):
            counted = self._count.assign_add(1, read_value=False)
        with tf.control_dependencies([] if counted is None else [counted]):
            is_last = self._count.read_value() >= self._micro_batches

        def step() -> Operation:
            # First, because the next micro-batch begins a step even if this one raises an error.
            begun = self._count.assign(0, read_value=False)
            done = call_in_replicas(strategy, apply, [])
            return tf.group(*done, *([] if begun is None else [begun]))

        return branch(is_last, step)

    def _apply(
        self,
        dtypes: Sequence[DType],
        read_scale: Optional[ReadScale],
        args: Tuple[Any, ...],
        kwargs: Dict[str, Any],
    ) -> Operation:
        """Sets the sums to 0, and lets the optimizer apply the means: in one replica."""
        means = self._means(dtypes, read_scale)
        with tf.control_dependencies([mean for mean in means if mean is not None]):
            sums = [total for total in self._sums if total is not None]
            cleared = [total.assign(tf.zeros_like(total)) for total in sums]
        pairs = list(zip(means, self._variables or ()))
        begin_step = getattr(type(self._optimizer), "_begin_accumulated_step", None)
        if begin_step is not None:
            begin_step(self._optimizer, read_scale is not None)
        done = self._optimizer.apply_gradients(pairs, *args, **kwargs)
        is_operation = isinstance(done, (tf.Operation, tf.Tensor))
        return tf.group(*cleared, *([done] if is_operation else []))

    def _means(
        self, dtypes: Sequence[DType], read_scale: Optional[ReadScale]
    ) -> List[Optional[Tensor]]:
        """Returns what the optimizer applies: means, which are scaled if it will divide them."""
        scale = None if read_scale is None else read_scale()
        means: List[Optional[Tensor]] = []
        for total, dtype in zip(self._sums, dtypes):
            if total is None:
                means.append(None)
                continue
            mean = tf.convert_to_tensor(total) / self._micro_batches
            if scale is not None:
                mean = mean * tf.cast(scale, mean.dtype)
            means.append(tf.cast(mean, dtype))
        return means


def _scale_of(
    optimizer: Optimizer, gradients: Gradients, variables: Variables
) -> Optional[ReadScale]:
    """Returns what reads the scale of a micro-batch's gradients; None if they are not scaled.

    They are scaled if `apply_gradients` of the optimizer would divide them by the scale.
    """
    # By the class, since an optimizer around our class may forward all attributes to it.
    end_micro_batch = getattr(type(optimizer), "_end_micro_batch", None)
    if end_micro_batch is None or not end_micro_batch(optimizer, gradients, variables):
        return None
    read_scale: ReadScale = optimizer._loss_scale
    return read_scale


def _are_same(variables: Variables, others: Variables) -> bool:
    pairs = zip(variables, others)
    return len(variables) == len(others) and all(variable is other for variable, other in pairs)


def _dense(gradient: Gradient, total: Variable) -> Tensor:
    """Returns a gradient as a tensor of the shape of its sum."""
    if isinstance(gradient, tf.IndexedSlices) and gradient.dense_shape is None:
        shape = tf.shape(total, out_type=gradient.indices.dtype)
        gradient = tf.IndexedSlices(gradient.values, gradient.indices, dense_shape=shape)
    return tf.convert_to_tensor(gradient)


def _new_sum(variable: Variable, dtype: DType) -> Variable:
    """Creates the sum of the gradients of a variable: one for each replica, which are not equal."""
    replicated = {
        "synchronization": tf.VariableSynchronization.ON_READ,
        "aggregation": tf.VariableAggregation.SUM,
    }
    shape = tf.TensorShape(variable.shape)
    dtype = tf.float32 if dtype in _16_BIT else dtype
    return tf1.Variable(
        tf.zeros(shape, dtype),
        name="accumulated/" + variable.name.partition(":")[0],
        trainable=False,
        use_resource=True,
        **(replicated if replica_count() > 1 else {}),
    )
