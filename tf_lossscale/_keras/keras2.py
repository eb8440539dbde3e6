"""The base class of the wrappers of Keras 2 optimizers, and that for TensorFlow 2.11 and later."""

import inspect
from typing import Any, Collection, Dict, Iterator, List, Optional, Sequence, Tuple

from tf_lossscale._core.refusals import refuse_updates
from tf_lossscale._core.scaling import as_pairs, gradients_of, require_replica_context, tape_for
from tf_lossscale._core.shown_names import methods_shown_as
from tf_lossscale._keras.arguments import are_summed
from tf_lossscale._keras.steps import StepArguments, StepRequest, step
from tf_lossscale._keras.wrapper import Forward, ForwardedMethod, LossScaleWrapper, is_special
from tf_lossscale._replicas.agreement import replica_count
from tf_lossscale._types import (
    Class,
    Gradients,
    GradsAndVars,
    Loss,
    NewKeras2Optimizer,
    Optimizer,
    Pairs,
    SavedObject,
    ScaleState,
    Tape,
    Variable,
    VarList,
)
from tf_lossscale._versions.base import do_not_convert, has, tf
from tf_lossscale._versions.files import Trackable
from tf_lossscale._versions.keras_optimizers import overrides
from tf_lossscale._versions.releases import Since
from tf_lossscale._versions.update_methods import UPDATE_METHODS


def forwards(base: Class, own: Sequence[Class]) -> Dict[str, Any]:
    """Returns a `Forward` for every name of the Keras class `base` that our classes do not define.

    The wrapper is an instance of `base` because Keras requires it, but no method of `base` may run
    on it: the slots, hyperparameters and counters belong to the inner optimizer.

    The methods that checkpoints use are again the methods of `Trackable`. Up to TensorFlow 2.10 the
    wrapper is also an instance of an installed wrapper, which would delegate them to the inner
    optimizer and so miss our loss scale.
    """
    bases = [base for cls in own for base in cls.__mro__]
    our_bases = [cls for cls in bases if cls.__module__.startswith("tf_lossscale.")]
    defined = set().union(*map(vars, our_bases))
    # A mixin of the installed wrapper delegates them, which is not trackable itself.
    delegated = set().union(*[vars(cls) for cls in bases if not issubclass(cls, Trackable)])
    restored = delegated.difference(defined, _OF_TENSORS)
    namespace = {
        name: value
        for name, value in vars(Trackable).items()
        if name in restored and not is_special(name)
    }
    for cls in base.__mro__:
        if _is_of_optimizers(cls, base):
            namespace.update(_forwarded(cls, defined))
    return namespace


def _forwarded(cls: Class, defined: Collection[str]) -> Iterator[Tuple[str, Forward]]:
    """Yields a `Forward` for each method and property that our classes do not define, by name."""
    for name, value in vars(cls).items():
        if name in defined or is_special(name) or not hasattr(value, "__get__"):
            continue
        is_method = inspect.isfunction(value)
        yield name, ForwardedMethod(name, value) if is_method else Forward(name)


# Checkpoints take a class that defines these for one that has tensors of its own.
_OF_TENSORS = ("_restore_from_tensors", "_serialize_to_tensors")


def _is_of_optimizers(cls: Class, base: Class) -> bool:
    """Returns whether a base of Keras's class `base` belongs to the optimizers of this Keras."""
    keras = base.__module__.split(".")[0]
    return cls.__module__.split(".")[0] == keras and "optimizer" in cls.__module__


@methods_shown_as("LossScaleOptimizer")
class DelegatingWrapper(LossScaleWrapper):
    """Has the variables and checkpoints of the inner optimizer and of the loss scale."""

    _advances_first = True

    def _set_up(self, inner: Optimizer, state: ScaleState) -> None:
        self.__dict__.update(_optimizer=inner, _state=state)
        inner._maybe_initialize_trackable()  # creates its dicts of deferred values
        if has(Since.LEGACY_SAVES_ONE_OBJECT):
            # A checkpoint that was given the inner optimizer has the loss scale, too.
            inner._track_trackable(state.saved, "loss_scale", overwrite=True)

    @property
    def initial_scale(self) -> Optional[float]:
        """The initial loss scale; None if it is of a user's own class."""
        return self._state.initial_scale

    @property
    def dynamic_growth_steps(self) -> Optional[int]:
        """Consecutive finite steps after which the loss scale doubles; None if it is fixed."""
        return self._state.growth_steps

    @property
    def iterations(self) -> Variable:
        """The int64 variable that counts steps, including skipped ones."""
        return self._optimizer.iterations

    @iterations.setter
    def iterations(self, variable: Variable) -> None:
        self._optimizer.iterations = variable

    @property
    def name(self) -> str:
        """The name of the inner optimizer."""
        optimizer: Any = self._optimizer
        return getattr(optimizer, "name", optimizer._name)

    @name.setter
    def name(self, value: str) -> None:
        setattr(self._optimizer, "name" if hasattr(self._optimizer, "name") else "_name", value)

    def _scaled_on_tape(self, loss: Loss, tape: Optional[Tape]) -> Tuple[Loss, Tape]:
        tape = tape_for(loss, tape)
        with tape:
            return self.get_scaled_loss(loss), tape

    def _unscaled_pairs(self, grads_and_vars: GradsAndVars) -> Pairs:
        pairs = list(grads_and_vars)
        variables = [variable for _, variable in pairs]
        gradients = [gradient for gradient, _ in pairs]
        del pairs, grads_and_vars  # frees each scaled gradient as soon as it is unscaled
        return list(zip(self.get_unscaled_gradients(gradients), variables))

    def _pairs_with_gradient(self, grads_and_vars: GradsAndVars) -> Pairs:
        """Returns the pairs that have a gradient, where the step can be made."""
        require_replica_context()
        self._raise_if_strategy_unsupported()
        pairs = list(grads_and_vars)
        if pairs:  # an error shows the names as Keras does
            as_pairs(
                pairs, type(self).__name__, lambda given: ([variable.name for variable in given],)
            )
        return [pair for pair in pairs if pair[0] is not None]

    # `OptimizerV2` overrides this to look up hyperparameters.
    __getattribute__ = object.__getattribute__
    __delattr__ = object.__delattr__

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_set_on_inner(name):
            self._set_on_inner(name, value)
        else:
            object.__setattr__(self, name, value)

    def __dir__(self) -> List[str]:
        return sorted(set(object.__dir__(self)) | set(dir(self._optimizer)))

    # Checkpoints have the layout of the inner optimizer, which has `loss_scale` as a child.

    @property
    def _trackable(self) -> SavedObject:
        return self._optimizer

    _checkpoint_dependencies: Any = Forward("_checkpoint_dependencies")

    def _trackable_children(
        self, save_type: str = "checkpoint", **kwargs: object
    ) -> Dict[str, SavedObject]:
        return dict(self._optimizer._trackable_children(save_type, **kwargs))

    def _lookup_dependency(
        self, name: str, *args: object, **kwargs: object
    ) -> Optional[SavedObject]:
        if name == "loss_scale":
            return self._state.saved
        if name == "base_optimizer":  # files of TensorFlow 1.14 to 2.2
            return self._optimizer
        return self._optimizer._lookup_dependency(name, *args, **kwargs)

    # Values of variables that do not exist yet are deferred by the inner optimizer.

    _deferred_dependencies = Forward("_deferred_dependencies")
    _unconditional_deferred_dependencies = Forward("_unconditional_deferred_dependencies")


@methods_shown_as("LossScaleOptimizer")
@refuse_updates(UPDATE_METHODS["new"], NotImplementedError)
class Keras2Wrapper(DelegatingWrapper):
    """The API of the final class, for a newer Keras 2 optimizer."""

    _optimizer: NewKeras2Optimizer

    @do_not_convert
    def compute_gradients(
        self, loss: Loss, var_list: VarList, tape: Optional[Tape] = None
    ) -> Pairs:
        """Scales the loss, computes the gradients and unscales them.

        Args:
          loss: a callable that returns the loss, or a tensor, which requires `tape`.
          var_list: the variables, or a callable that returns them.
          tape: the tape that recorded the loss tensor.

        Returns:
          Pairs of the unscaled gradient, or None, and the variable.
        """
        scaled, tape = self._scaled_on_tape(loss, tape)
        return self._unscaled_pairs(self._optimizer.compute_gradients(scaled, var_list, tape=tape))

    @do_not_convert
    def minimize(self, loss: Loss, var_list: VarList, tape: Optional[Tape] = None) -> None:
        """Scales the loss, computes the gradients, unscales and applies them.

        Args:
          loss: a callable that returns the loss, or a tensor, which requires `tape`.
          var_list: the variables, or a callable that returns them.
          tape: the tape that recorded the loss tensor.
        """
        self.apply_gradients(self._pairs_to_minimize(loss, var_list, tape))

    @do_not_convert
    def apply_gradients(
        self,
        grads_and_vars: GradsAndVars,
        skip_gradients_aggregation: bool = False,
        **kwargs: Any,
    ) -> None:
        """Applies unscaled gradients if all of them are finite on all replicas.

        Args:
          grads_and_vars: an iterable of pairs of a gradient, or None, and its variable.
          skip_gradients_aggregation: whether the gradients are already summed over the replicas.
          **kwargs: `experimental_aggregate_gradients`, the opposite of
            `skip_gradients_aggregation`; and `name`, which is ignored, as in Keras's own class.

        Raises:
          ValueError: every gradient is None, or the call is not in a replica context.
        """
        if isinstance(skip_gradients_aggregation, str) and replica_count() > 1:
            raise TypeError(
                "The second argument of apply_gradients() is skip_gradients_aggregation, but got "
                f"{skip_gradients_aggregation!r}: pass the name as name=."
            )
        aggregate = not are_summed(skip_gradients_aggregation, **kwargs)
        pairs = list(grads_and_vars)
        variables = [variable for _, variable in pairs]
        pairs = self._pairs_with_gradient(pairs)
        inner = self._optimizer
        if variables:
            with tf.init_scope():
                # The variables of the inner optimizer cannot be created in a conditional.
                self.build(tuple(variables))
        own = gradients_of(pairs)  # not summed, for a loss scale that decides
        sums_itself = overrides(self._family, inner, "aggregate_gradients")
        if pairs and aggregate and (replica_count() > 1 or sums_itself):
            pairs = list(inner.aggregate_gradients(pairs))
        arguments = StepArguments([variable for _, variable in pairs])
        request = StepRequest(pairs, own, gradients_of(pairs), arguments, aggregate)
        step(self, request)

    def _apply(self, gradients: Gradients, arguments: StepArguments) -> None:
        if gradients:
            self._optimizer.apply_gradients(
                list(zip(gradients, arguments.variables)), skip_gradients_aggregation=True
            )
