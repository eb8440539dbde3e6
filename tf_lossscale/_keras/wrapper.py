"""The base class of the wrappers for both kinds of Keras 2 optimizers."""

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from tf_lossscale._core.scaling import scale_loss, tape_for, unscale_gradients
from tf_lossscale._core.steps import report_loss
from tf_lossscale._core.wrapper import as_pairs, require_replica_context
from tf_lossscale._keras.config import to_config
from tf_lossscale._keras.constructor import Constructor
from tf_lossscale._keras.state import make_state
from tf_lossscale._keras.steps import step
from tf_lossscale._keras.strategies import refuse_unsupported
from tf_lossscale._keras.transformed import LateCheck
from tf_lossscale._versions.base import do_not_convert
from tf_lossscale._versions.checkpoints import Trackable, TrackableReference
from tf_lossscale._versions.keras_optimizers import called_from_compile

__all__ = ["DelegatingWrapper", "Forward", "forwards"]


class Forward:
    """Descriptor of an attribute that is read from and set on the inner optimizer."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, wrapper: Any, owner: Any = None) -> Any:
        if wrapper is None:
            return self
        return getattr(wrapper._optimizer, self.name)

    def __set__(self, wrapper: Any, value: Any) -> None:
        setattr(wrapper._optimizer, self.name, value)


def forwards(base: Any, own: Sequence[Any]) -> Dict[str, Any]:
    """Returns a `Forward` for every name of the Keras class `base` that our classes do not define.

    The wrapper is an instance of `base` because Keras requires it, but no method of `base` may run
    on it: the slots, hyperparameters and counters are those of the inner optimizer.

    The methods that checkpoints use are restored to those of `Trackable`. Up to TensorFlow 2.10 the
    wrapper is also an instance of an installed wrapper, which would delegate them to the inner
    optimizer and so miss our loss scale.

    Args:
      base: the base class of the inner optimizer's family.
      own: the bases of the class that gets the attributes.
    """
    ours = {
        name
        for each in own
        for cls in each.__mro__
        if cls.__module__.startswith("tf_lossscale.")
        for name in vars(cls)
    }
    delegated = {
        name
        for each in own
        for cls in each.__mro__
        if cls.__name__.endswith("DelegatingTrackableMixin")
        for name in vars(cls)
    }
    trackable = {
        name: value
        for name, value in vars(Trackable).items()
        if name in delegated
        # Checkpoints take a class that defines these for one that has tensors of its own.
        and name not in ("_restore_from_tensors", "_serialize_to_tensors")
        and not (name.startswith("__") and name.endswith("__"))
        and name not in ours
    }
    keras = base.__module__.split(".")[0]
    forwarded = {
        name: Forward(name)
        for cls in base.__mro__
        if cls.__module__.split(".")[0] == keras and "optimizer" in cls.__module__
        for name, value in vars(cls).items()
        if not (name.startswith("__") and name.endswith("__"))
        and hasattr(value, "__get__")  # plain class attributes are not forwarded
        and name not in ours
    }
    return dict(trackable, **forwarded)


class DelegatingWrapper(Constructor):
    """The API of the final class, for an inner optimizer of Keras 2.

    Attributes that it does not define are read from the inner optimizer. If the inner optimizer has
    an attribute, it is also set there.
    """

    _optimizer: Any

    def _set_up(self, inner: Any, loss_scale: Any) -> None:
        self.__dict__.update(_optimizer=inner, _state=make_state(loss_scale))
        inner._maybe_initialize_trackable()  # a checkpoint may need it before the first step

    @property
    def inner_optimizer(self) -> Any:
        """The wrapped optimizer."""
        return self._optimizer

    @property
    def dynamic(self) -> bool:
        """Whether the loss scale is dynamic."""
        return self._state.dynamic

    @property
    def loss_scale(self) -> Any:
        """The current loss scale: a float32 tensor of shape `[]`."""
        if called_from_compile():
            return self._state.saved
        return self._state()

    @property
    def dynamic_counter(self) -> Optional[Any]:
        """The int64 variable that counts finite steps since the last change; None if fixed."""
        return self._state.counter

    @property
    def initial_scale(self) -> Any:
        """The initial loss scale; None if it is of a user's own class."""
        return self._state.initial_scale

    @property
    def dynamic_growth_steps(self) -> Optional[int]:
        """Consecutive finite steps after which the loss scale doubles; None if it is fixed."""
        return self._state.growth_steps

    @property
    def iterations(self) -> Any:
        """The int64 variable that counts steps, including skipped ones."""
        return self._optimizer.iterations

    @iterations.setter
    def iterations(self, variable: Any) -> None:
        self._optimizer.iterations = variable

    @property
    def learning_rate(self) -> Any:
        """The learning rate of the inner optimizer."""
        return self._optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self._optimizer.learning_rate = value

    @property
    def lr(self) -> Any:
        """The learning rate of the inner optimizer."""
        return self._optimizer.lr

    @lr.setter
    def lr(self, value: Any) -> None:
        self._optimizer.lr = value

    @property
    def name(self) -> str:
        """The name of the inner optimizer."""
        return getattr(self._optimizer, "name", self._optimizer._name)

    @name.setter
    def name(self, value: str) -> None:
        setattr(self._optimizer, "name" if hasattr(self._optimizer, "name") else "_name", value)

    @do_not_convert
    def get_scaled_loss(self, loss: Any) -> Any:
        """Returns the loss multiplied by the loss scale.

        Args:
          loss: a float tensor, or a callable that returns one.

        Returns:
          The product, in the dtype of the loss. If `loss` is a callable, the result is a callable
          that reads the loss scale when it is called.
        """
        return scale_loss(report_loss(self, loss), self._effective_scale)

    @do_not_convert
    def get_unscaled_gradients(self, grads: Sequence[Any]) -> List[Any]:
        """Returns the gradients divided by the loss scale.

        Args:
          grads: a list of float tensors, `IndexedSlices` (which remain sparse) and None (which
            remains None).
        """
        return unscale_gradients(list(grads), self._effective_scale())

    def _effective_scale(self) -> Any:
        """Returns the scale for losses and gradients: a subclass may override the property."""
        # The original classes read the property since 2.4, where it became a tensor.
        is_own = type(self).loss_scale is DelegatingWrapper.loss_scale
        if is_own or self._family.installed_final is None:
            return self._state()
        return self.loss_scale

    def _scaled_on_tape(self, loss: Any, tape: Optional[Any]) -> Tuple[Any, Any]:
        """Returns the scaled loss (for a callable, a callable) and the tape that records it.

        Args:
          loss: a callable that returns the loss, or a tensor, which requires `tape`.
          tape: the tape that recorded the loss tensor, or None.
        """
        tape = tape_for(loss, tape)
        with tape:
            return self.get_scaled_loss(loss), tape

    def _unscaled_pairs(self, grads_and_vars: Any) -> List[Tuple[Any, Any]]:
        """Returns pairs of the unscaled gradient, or None, and the variable."""
        pairs = list(grads_and_vars)
        variables = [variable for _, variable in pairs]
        gradients = [gradient for gradient, _ in pairs]
        del pairs, grads_and_vars  # frees each scaled gradient as soon as it is unscaled
        return list(zip(self.get_unscaled_gradients(gradients), variables))

    def _pairs_with_gradient(self, grads_and_vars: Any) -> List[Tuple[Any, Any]]:
        """Returns the pairs that have a gradient; an empty list for an empty iterable.

        The iterable is consumed once.

        Raises:
          ValueError: every gradient is None, the call is not in a replica context, or the current
            strategy is not supported.
        """
        require_replica_context()
        refuse_unsupported()
        pairs = list(grads_and_vars)
        if not pairs:
            return []
        return [
            pair for pair in as_pairs(pairs, type(self).__name__, _names) if pair[0] is not None
        ]

    def _step(
        self,
        gradients: Sequence[Any],
        apply: Callable[..., Any],
        *args: Any,  # the last one is a `StepArguments`
        same_on_replicas: bool = True,
        late_check: Optional[LateCheck] = None,
    ) -> Any:
        return step(
            self._state,
            lambda: self.iterations,
            gradients,
            apply,
            args,
            same_on_replicas,
            late_check,
            self,
            args[-1].variables,
        )

    def get_config(self) -> Dict[str, Any]:
        """Returns the constructor arguments of the final class; the optimizer is serialized."""
        return to_config(self)

    def __getattr__(self, name: str) -> Any:
        inner = self.__dict__.get("_optimizer")
        if inner is None or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        try:
            return getattr(inner, name)
        except AttributeError as error:
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(message) from error

    # `OptimizerV2` overrides this to look up hyperparameters.
    __getattribute__ = object.__getattribute__

    def __setattr__(self, name: str, value: Any) -> None:
        inner = self.__dict__.get("_optimizer")
        if (
            inner is None
            or name.startswith("_")
            or name in self.__dict__
            or hasattr(type(self), name)
            or not hasattr(inner, name)
        ):
            object.__setattr__(self, name, value)
        else:
            setattr(inner, name, value)

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)

    def __dir__(self) -> List[str]:
        return sorted(set(object.__dir__(self)) | set(dir(self._optimizer)))

    # Checkpoints have the layout of the inner optimizer, with `loss_scale` added.

    @property
    def _trackable(self) -> Any:
        return self._optimizer

    @property
    def _checkpoint_dependencies(self) -> List[Any]:
        mine = TrackableReference(name="loss_scale", ref=self._state.saved)
        return [*self._optimizer._checkpoint_dependencies, mine]

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> Dict[str, Any]:
        children = dict(self._optimizer._trackable_children(save_type, **kwargs))
        children["loss_scale"] = self._state.saved
        return children

    def _lookup_dependency(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "loss_scale":
            return self._state.saved
        if name == "base_optimizer":  # files of TensorFlow 1.14 to 2.2
            return self._optimizer
        return self._optimizer._lookup_dependency(name, *args, **kwargs)

    # Values of variables that do not exist yet are deferred by the inner optimizer.

    @property
    def _deferred_dependencies(self) -> Any:
        self._optimizer._maybe_initialize_trackable()
        return self._optimizer._deferred_dependencies

    @property
    def _unconditional_deferred_dependencies(self) -> Any:
        self._optimizer._maybe_initialize_trackable()
        return self._optimizer._unconditional_deferred_dependencies


def _names(variables: Sequence[Any]) -> Any:
    return ([variable.name for variable in variables],)  # as Keras shows them
