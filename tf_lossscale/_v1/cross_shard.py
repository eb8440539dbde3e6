"""`CrossShardOptimizer`."""

from typing import Callable, Dict, List, Optional, Sequence

from tf_lossscale._core import scaling
from tf_lossscale._core.same_class import SameClass, stands_for
from tf_lossscale._replicas.collectives import collective_sums
from tf_lossscale._replicas.shards import (
    Shards,
    current_shards,
    groups_of,
    has_several_workers,
    this_call,
    workers_are_checked,
)
from tf_lossscale._types import (
    CheckpointPosition,
    Class,
    Gradient,
    GradsAndVars,
    Loss,
    Operation,
    Optimizer,
    Pairs,
    PerReplica,
    SavedObject,
    Strategy,
    Tensor,
    Variable,
    Variables,
    VarList,
)
from tf_lossscale._v1.scaled_loss import ScaledLossOptimizer
from tf_lossscale._v1.step_gradients import chain_of, leaves_sum_to_tensorflow
from tf_lossscale._v1.sums import sum_packed
from tf_lossscale._versions import replicas
from tf_lossscale._versions.base import do_not_convert, has, tf, tf1
from tf_lossscale._versions.callers import called_from_checkpoint
from tf_lossscale._versions.interventions import overridden
from tf_lossscale._versions.originals import original
from tf_lossscale._versions.releases import Since

Reduction: Class = tf1.losses.Reduction

_installed: Optional[Class] = original(tf1.tpu, "CrossShardOptimizer")
_Base: Class = tf1.train.Optimizer if _installed is None else _installed


class CrossShardOptimizer(_Base, metaclass=SameClass):
    """An optimizer that sums the gradients of all shards before an inner one applies them.

    Stands for `tf.contrib.tpu.CrossShardOptimizer` and `tf.compat.v1.tpu.CrossShardOptimizer`,
    TensorFlow 1.15 and 2.21, which work on TPUs only.

    `compute_gradients` divides the loss by the number of shards for `Reduction.MEAN`.
    `apply_gradients` sums each gradient over the shards of its group, and the inner optimizer
    applies the sums. In a TPU program it builds the same operations as the originals; in the
    replicas of a `tf.distribute.Strategy` it sums on GPUs and CPUs; with one shard it passes the
    gradients on. The mean is taken of the *loss*: as with the original, code that calls
    `tf.gradients` and then `apply_gradients` gets sums, whatever `reduction` is.

    State: none of its own; slots are those of `opt`.

    Examples:
      >>> import tensorflow as tf
      >>> import tf_lossscale as tfls
      >>> weight = tf.Variable(1.0)
      >>> optimizer = tfls.tpu.CrossShardOptimizer(tf.compat.v1.train.GradientDescentOptimizer(0.5))
      >>> step = optimizer.apply_gradients([(tf.constant(1.0), weight)])  # here there is one shard
      >>> float(weight.numpy())
      0.5

    Args:
      opt: a `tf.compat.v1.train.Optimizer`.
      reduction: `tf.compat.v1.losses.Reduction.MEAN` or `SUM`.
      name: name of this optimizer.
      group_assignment: lists of shard numbers, groups of equal size in which each shard stands
        once; gradients are summed within each group. None or empty: one group of all shards.

    Raises:
      ValueError: `reduction` is neither `MEAN` nor `SUM`.
      TypeError: `opt` is not a `tf.compat.v1.train.Optimizer`.
    """

    def __init__(
        self,
        opt: Optimizer,
        reduction: str = Reduction.MEAN,
        name: str = "CrossShardOptimizer",
        group_assignment: Optional[Sequence[Sequence[int]]] = None,
    ) -> None:
        known = (Reduction.SUM, Reduction.MEAN)
        if reduction not in known:
            raise ValueError(
                f"Argument `reduction` should be one of {known}. Received: {reduction}"
            )
        if not isinstance(opt, tf1.train.Optimizer):
            raise TypeError(
                "CrossShardOptimizer only works with tf.training.Optimizer and not Keras "
                f"Optimizer. Received: {opt}, of type {type(opt)}. Under a tf.distribute strategy "
                "a Keras optimizer sums the gradients of the replicas by itself."
            )
        # Not `super()`: TensorFlow's class is a base for class tests only.
        tf1.train.Optimizer.__init__(self, use_locking=False, name=name)
        self._opt = opt
        self._reduction = reduction
        self._group_assignment = group_assignment
        # Distinguishes optimizers that are called on the same line, equally on all workers.
        made_at = this_call("CrossShardOptimizer").site
        self._made = f"CrossShardOptimizer({type(opt).__name__}) made at {made_at}"

    @do_not_convert
    def compute_gradients(
        self, loss: Loss, var_list: Optional[VarList] = None, **kwargs: object
    ) -> Pairs:
        """Computes this shard's gradients; for MEAN, of the loss divided by the number of shards.

        Args:
          loss: float tensor of shape `[]`, or a callable that returns it.
          var_list: the variables; None for all trainable variables of the graph.
          **kwargs: passed to the inner optimizer's `compute_gradients`.

        Returns:
          Pairs of a gradient, or None, and its variable.

        Raises:
          ValueError: the group assignment is no equal partition of the shards.
          RuntimeError: the call is made outside the replicas of a strategy that has several.
        """
        shards = current_shards("CrossShardOptimizer")
        size = self._verify_and_get_subgroup_size(self._group_assignment, shards.number)
        if shards.number > 1 and self._reduction == Reduction.MEAN:
            loss = _scaled(loss, 1.0 / (size or shards.number))
        if shards.strategy is not None and replicas.estimator_scales_loss():
            loss = _scaled(loss, shards.number)  # the inner optimizer is about to divide by it
        return self._opt.compute_gradients(loss, var_list=var_list, **kwargs)

    def _verify_and_get_subgroup_size(
        self, group_assignment: Optional[Sequence[Sequence[int]]], num_shards: int
    ) -> Optional[int]:
        """Returns the number of shards in a group; None if all shards are one group.

        The original calls it, so that programs override it.
        """
        groups = groups_of(group_assignment, num_shards)
        return len(groups[0]) if group_assignment else None

    @do_not_convert
    def apply_gradients(
        self,
        grads_and_vars: GradsAndVars,
        global_step: Optional[Variable] = None,
        name: Optional[str] = None,
    ) -> Optional[Operation]:
        """Sums the gradients over the shards and applies the sums with the inner optimizer.

        Args:
          grads_and_vars: an iterable of pairs of a gradient of this shard, or None, and its
            variable. `IndexedSlices` are converted to dense tensors, as in the original.
          global_step: integer variable that the step advances by one, or None.
          name: name for the operation, or None.

        Returns:
          What the inner optimizer returns.

        Raises:
          ValueError: there are no pairs or no gradients, or the group assignment is no equal
            partition of the shards.
          RuntimeError: the call is made outside the replicas of a strategy that has several.
        """
        pairs = scaling.as_pairs(grads_and_vars, type(self).__name__)
        shards = current_shards("cross_replica_sum", self._group_assignment)
        if shards.tpu:
            sums = _sums_on_tpu(scaling.gradients_of(pairs), shards.groups)
            pairs = scaling.with_gradients(pairs, sums)
            return self._opt.apply_gradients(pairs, global_step, name)
        dense = [tf.convert_to_tensor(gradient) for gradient in scaling.gradients_of(pairs)]
        pairs = scaling.with_gradients(pairs, dense)
        if shards.number == 1:
            return self._opt.apply_gradients(pairs, global_step, name)
        call = this_call(self._made)
        if self._strategy_can_sum(dense, shards):
            if has_several_workers(shards.strategy):
                with tf.control_dependencies(collective_sums([], shards, call, dense)):
                    pairs = scaling.with_gradients(pairs, map(tf.identity, dense))
            return self._opt.apply_gradients(pairs, global_step, name)
        pairs = scaling.with_gradients(pairs, sum_packed(dense, shards, call))
        # Each replica applies its own sum to its own copy of the variables. With subgroups, the
        # copies of different groups therefore diverge, as on a TPU. An optimizer that assigns takes
        # one step for all replicas of a process, although each calls it.
        chain = chain_of(self._opt)
        assigning = [inner for inner in chain if _assigns(inner)]
        if assigning:
            _check_one_sum(assigning[0], shards)
        with replicas.already_summed(chain), overridden(assigning, "apply_gradients", _apply_once):
            return self._opt.apply_gradients(pairs, global_step, name)

    def _strategy_can_sum(self, gradients: Sequence[Gradient], shards: Shards) -> bool:
        """Returns whether the strategy's own sum, with which a v1 step begins, gives what we need.

        Otherwise the gradients are summed here, and the inner optimizer's step sums nothing.
        """
        # TensorFlow sums all gradients in one call, and some versions fail if these have several
        # dtypes. 16-bit gradients are more exact when summed as float32.
        dtypes = {gradient.dtype.base_dtype for gradient in gradients}
        if dtypes not in ({tf.float32}, {tf.float64}):
            return False
        if len(shards.groups) > 1 or not leaves_sum_to_tensorflow(self._opt):
            return False
        if not has_several_workers(shards.strategy):
            return True
        survives = has(Since.STRATEGY_SURVIVES_RETRACING)
        return survives or not workers_are_checked(shards.strategy)

    def get_slot(self, *args: object, **kwargs: object) -> Optional[Variable]:
        """Returns a slot of the inner optimizer.

        Args:
          *args: the variable that the slot belongs to, and the name of the slot.
          **kwargs: the same by name: `var` and `name`.

        Returns:
          A variable with the shape and, as a rule, the dtype of `var`; None if it does not exist.
        """
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: object, **kwargs: object) -> List[str]:
        """Returns the names of the slots of the inner optimizer.

        Args:
          *args: passed on to the inner optimizer, as with the original.
          **kwargs: likewise.
        """
        wraps = isinstance(self._opt, ScaledLossOptimizer)
        if wraps and called_from_checkpoint("get_slot_names", self):
            return []  # the slots are saved with the optimizer that the inner one wraps
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> List[Variable]:
        """Returns the variables of the inner optimizer."""
        return self._opt.variables()

    # Object checkpoints hold the slots under this object, as with TensorFlow's class. They also
    # hold what TensorFlow's class loses: variables of the inner optimizer that are not slots, under
    # the keys that the inner optimizer itself would use. All values are restored into the inner
    # one.

    @property
    def _checkpoint_dependencies(self) -> List[SavedObject]:
        self._maybe_initialize_trackable()
        mine = list(super()._checkpoint_dependencies)
        if hasattr(tf1.train.Optimizer, "_trackable_children"):
            return mine  # TensorFlow calls the method below
        names = {dependency.name for dependency in mine}
        self._opt._maybe_initialize_trackable()
        inner = self._opt._checkpoint_dependencies
        return mine + [dependency for dependency in inner if dependency.name not in names]

    def _trackable_children(self, *args: object, **kwargs: object) -> Dict[str, SavedObject]:
        self._opt._maybe_initialize_trackable()
        children = dict(self._opt._trackable_children(*args, **kwargs))
        children.update(super()._trackable_children(*args, **kwargs))
        return children

    def _lookup_dependency(
        self, name: str, *args: object, **kwargs: object
    ) -> Optional[SavedObject]:
        self._opt._maybe_initialize_trackable()
        found = super()._lookup_dependency(name, *args, **kwargs)
        return found if found is not None else self._opt._lookup_dependency(name, *args, **kwargs)

    @property
    def _deferred_dependencies(self) -> Dict[str, List[CheckpointPosition]]:
        # Values that are restored before the inner optimizer has created their variables.
        self._opt._maybe_initialize_trackable()
        return self._opt._deferred_dependencies

    def _create_or_restore_slot_variable(
        self, *args: object, **kwargs: object
    ) -> Optional[Variable]:
        return self._opt._create_or_restore_slot_variable(*args, **kwargs)


stands_for(CrossShardOptimizer, _installed)


def _scaled(loss: Loss, scale: float) -> Loss:
    if callable(loss):
        return lambda: _scaled(loss(), scale)
    return loss * scale


def _sums_on_tpu(gradients: Sequence[Gradient], groups: Sequence[Sequence[int]]) -> List[Tensor]:
    """Returns the sums of the gradients within each group, each on the device of its gradient."""
    sums = []
    for gradient in gradients:
        with tf1.get_default_graph().colocate_with(gradient.op):
            sums.append(tf.raw_ops.CrossReplicaSum(input=gradient, group_assignment=groups))
    return sums


def _apply_once(
    apply: Callable[..., Optional[Operation]],
    grads_and_vars: GradsAndVars,
    global_step: Optional[Variable] = None,
    name: Optional[str] = None,
) -> Optional[Operation]:
    """Takes one step for all replicas of this process, each of which calls it with equal sums."""

    def once(
        strategy: Strategy, gradients: Sequence[PerReplica], variables: Variables
    ) -> Optional[Operation]:
        copies = [strategy.experimental_local_results(gradient) for gradient in gradients]
        return apply(list(zip(_first_copies(copies), variables)), global_step, name)

    gradients, variables = zip(*grads_and_vars)
    context = tf.distribute.get_replica_context()
    return context.merge_call(once, args=(list(gradients), list(variables)))


def _first_copies(copies: Sequence[Sequence[Optional[Tensor]]]) -> List[Optional[Tensor]]:
    """Returns the first replica's sum of each gradient, or None, once all replicas have it.

    The replicas wait for each other in the sums, and a Session runs only the operations that are
    needed: so each result depends on all of them.
    """
    sums = [copy for of_gradient in copies for copy in of_gradient if copy is not None]
    # Operations, because in TensorFlow 2.4 a branch does not wait for tensors from outside.
    needed = sums if tf.executing_eagerly() else [copy.op for copy in sums]
    with tf.control_dependencies(needed):
        first = [of_gradient[0] for of_gradient in copies]
        return [None if copy is None else tf.identity(copy) for copy in first]


def _check_one_sum(optimizer: Optimizer, shards: Shards) -> None:
    """Raises an error if an optimizer assigns to variables of replicas that have different sums."""
    first = replicas.replicas_of_workers_before(shards.strategy)
    local = range(first, first + len(shards.devices))
    if len({shards._replace(replica=replica).group for replica in local}) > 1:
        raise NotImplementedError(
            f"group_assignment={shards.groups} gives the replicas "
            f"{local[0]} to {local[-1]} of this process different sums, but "
            f"{type(optimizer).__name__}.apply_gradients assigns to the variables of all of them "
            "at once, and has no update of one variable that each replica could make. Give it a "
            "_resource_apply_dense(grad, handle) in place of apply_gradients (see "
            "examples/bert_style.py), put all replicas of a process into one group, or leave "
            "group_assignment out."
        )


def _assigns(optimizer: Optimizer) -> bool:
    """Returns whether an optimizer replaces the step and has no update for a single gradient."""
    cls, base = type(optimizer), tf1.train.Optimizer
    return (
        cls.apply_gradients is not base.apply_gradients
        and cls._resource_apply_dense is base._resource_apply_dense
        and not cls.__module__.startswith("tf_lossscale.")
    )
