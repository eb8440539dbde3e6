"""What all wrappers share: the constructor, the loss scale, and access to the inner optimizer.

There is one wrapper for each kind of inner optimizer: `OptimizerV2Wrapper`, `Keras2Wrapper` and
`Keras3Wrapper`. Each adds how that kind makes a step, and how it is saved.
"""

import functools
from typing import Any, Callable, Dict, List, Optional, Tuple, Union, cast

import numpy as np

from tf_lossscale._core.loss_scales import DynamicLossScale, FixedLossScale, is_standard
from tf_lossscale._core.minimum import MINIMUM, minimum_of, takes_minimum_scale
from tf_lossscale._core.scaling import scale_loss, unscale_gradients
from tf_lossscale._core.shown_names import methods_shown_as
from tf_lossscale._core.state import dynamic_update
from tf_lossscale._core.watching import report_loss, report_unscaled
from tf_lossscale._keras.arguments import (
    MARK,
    check_inner,
    final_loss_scale,
    take_arguments_of_keras_3,
)
from tf_lossscale._keras.config import from_config, to_config
from tf_lossscale._keras.step_style import Call
from tf_lossscale._keras.steps import StepArguments
from tf_lossscale._keras.strategies import refuse_unsupported
from tf_lossscale._types import (
    Config,
    CustomObjects,
    DynamicLossScaleObject,
    Gradient,
    Gradients,
    GradsAndVars,
    KerasOptimizer,
    LearningRate,
    Loss,
    LossScaleObject,
    Method,
    Nest,
    Operation,
    Optimizer,
    SavedObject,
    ScaleState,
    Tape,
    Tensor,
    Variable,
    VarList,
)
from tf_lossscale._versions.base import do_not_convert, tf, tf1
from tf_lossscale._versions.callers import called_from_compile
from tf_lossscale._versions.files import Trackable
from tf_lossscale._versions.keras import KerasFamily, KerasKind
from tf_lossscale._versions.private_hooks import count_of_positions, last_arguments_of_step


def is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


class Forward:
    """Descriptor of an attribute that is read from and set on the inner optimizer."""

    def __init__(self, name: str, owner: str = "_optimizer") -> None:
        self.name = name
        self.owner = owner

    def __get__(self, wrapper: Any, owner: Any = None) -> Any:
        if wrapper is None:
            return self
        return getattr(getattr(wrapper, self.owner), self.name)

    def __set__(self, wrapper: Any, value: Any) -> None:
        setattr(getattr(wrapper, self.owner), self.name, value)


class ForwardedMethod(Forward):
    """Descriptor of a method of the inner optimizer, which can also be called on the class."""

    def __init__(self, name: str, function: Method) -> None:
        super().__init__(name)
        functools.update_wrapper(self, function, updated=())  # `ABC` marks methods in `__dict__`

    def __call__(self, wrapper: Any, *args: object, **kwargs: object) -> Any:
        return self.__get__(wrapper)(*args, **kwargs)


def _takes_arguments_of_keras_3(init: Callable[..., None]) -> Callable[..., None]:
    """Accepts what the constructor of Keras 3's class takes as well, for its optimizers."""

    @functools.wraps(init)
    def with_arguments(self: Any, *args: object, **kwargs: object) -> None:
        inner = args[0] if args else kwargs.get("inner_optimizer")
        name = take_arguments_of_keras_3(inner, kwargs)
        if name is not None:
            self.__dict__["_given_name"] = name
        init(self, *args, **kwargs)

    return with_arguments


@methods_shown_as("LossScaleOptimizer")
class LossScaleWrapper:
    """Base class of the wrappers, with the API that does not depend on the inner optimizer.

    Attributes that a wrapper does not define are read from the inner optimizer. An attribute that
    the inner optimizer has is also set there.
    """

    role = "final"  # or "experimental": the class whose constructor arguments it takes
    _family: KerasFamily
    _state: ScaleState
    _optimizer: KerasOptimizer
    compute_gradients: Any  # of newer optimizers
    # Returns the class of an instance that wraps an optimizer of this family.
    _class_for: Callable[[KerasFamily], type]
    # Stores the inner optimizer, and the state of its scale.
    _set_up: Callable[[Optimizer, ScaleState], None]
    _is_not_forwarded: Any = staticmethod(is_special)  # if the wrapper lacks an attribute

    @takes_minimum_scale
    @_takes_arguments_of_keras_3
    def __init__(
        self,
        inner_optimizer: Optimizer,
        dynamic: bool = True,
        initial_scale: Optional[float] = None,
        dynamic_growth_steps: Optional[int] = None,
    ) -> None:
        self._raise_if_strategy_unsupported()
        family = check_inner(inner_optimizer)
        minimum = self.__dict__.pop("_minimum_scale", MINIMUM)
        scale = final_loss_scale(dynamic, initial_scale, dynamic_growth_steps, minimum)
        self._wrap(inner_optimizer, family, scale)

    def _wrap(
        self, inner: Optimizer, family: KerasFamily, loss_scale: Union[float, LossScaleObject]
    ) -> None:
        """Wraps `inner`, after changing the class of `self` to the one for its family."""
        # Not in `__new__`: the `__init__` of a subclass may create the inner optimizer.
        cls = type(self)._class_for(family)
        if cls is not type(self):
            object.__setattr__(self, "__class__", cls)
        self._set_up(inner, _state_of(loss_scale))
        object.__setattr__(inner, MARK, True)

    # The methods that the original classes call on themselves, so that programs override them.

    def _raise_if_strategy_unsupported(self) -> None:
        refuse_unsupported()

    def _pairs_to_minimize(
        self, loss: Loss, var_list: VarList, tape: Optional[Tape]
    ) -> GradsAndVars:
        """Returns the pairs that `minimize` applies, except around an `OptimizerV2`."""
        kwargs = {} if tape is None else {"tape": tape}  # an override for TensorFlow 2.3 has none
        return self._compute_gradients(loss, var_list=var_list, grad_loss=None, **kwargs)

    def _compute_gradients(
        self,
        loss: Loss,
        var_list: VarList,
        grad_loss: Optional[Tensor] = None,
        tape: Optional[Tape] = None,
    ) -> GradsAndVars:
        """Computes the gradients of a loss, for `minimize` around newer optimizers.

        They have `compute_gradients` in its place. A class that was written for `OptimizerV2`
        overrides this method.
        """
        if grad_loss is not None:
            raise NotImplementedError(
                f"{type(self.inner_optimizer).__name__} takes no grad_loss: multiply the loss by "
                "it, or use an optimizer of tf.keras.optimizers.legacy."
            )
        return self.compute_gradients(loss, var_list, tape)

    def _apply_in_replica(
        self, gradients: Gradients, arguments: StepArguments
    ) -> Optional[Operation]:
        """Calls `_apply_gradients`, which a program may override; returns an operation."""
        # Its last arguments differ between the versions for which an override may be written.
        hook = self._apply_gradients
        is_legacy = self._family.kind is KerasKind.LEGACY
        count = count_of_positions(hook, usual=2 + last_arguments_of_step(is_legacy))
        last: Tuple[Any, ...] = (arguments.name, arguments.aggregate)[: count - 2]
        return hook(gradients, arguments, *last)

    def _apply_gradients(
        self,
        grads: Gradients,
        wrapped_vars: StepArguments,
        name: Optional[str] = None,
        experimental_aggregate_gradients: Optional[bool] = None,
    ) -> Optional[Operation]:
        """Applies gradients to the variables `wrapped_vars.value`, in one replica."""
        arguments = StepArguments.passed(wrapped_vars, name, experimental_aggregate_gradients)
        return self._apply(grads, arguments)

    def _apply(self, gradients: Gradients, arguments: StepArguments) -> Optional[Operation]:
        """Lets the inner optimizer apply gradients; returns an operation."""
        raise NotImplementedError

    def _counter_of_skipped(self) -> Optional[Variable]:
        """Returns the variable that counts skipped steps, too; None if none does."""
        return self._optimizer.iterations

    @property
    def inner_optimizer(self) -> Optimizer:
        """The wrapped optimizer."""
        return self._optimizer

    @property
    def dynamic(self) -> bool:
        """Whether the loss scale is dynamic."""
        return self._state.dynamic

    @property
    def minimum_scale(self) -> float:
        """The smallest value that a dynamic loss scale shrinks to; 1 by default."""
        return minimum_of(self._state)

    @property
    def loss_scale(self) -> Tensor:
        """The current loss scale: a float32 tensor of shape `[]`."""
        return self._state.saved if called_from_compile() else self._state()

    @property
    def _loss_scale(self) -> ScaleState:
        """The loss scale, under the name that programs read it by."""
        return self._state

    @property
    def dynamic_counter(self) -> Optional[Variable]:
        """The int64 variable that counts finite steps since the last change; None if fixed."""
        return self._state.counter

    @property
    def learning_rate(self) -> LearningRate:
        """The learning rate of the inner optimizer."""
        return self._optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: LearningRate) -> None:
        self._set_learning_rate(value)

    def _set_learning_rate(self, value: LearningRate) -> None:
        self._optimizer.learning_rate = value

    @property
    def lr(self) -> LearningRate:
        """The learning rate of the inner optimizer."""
        # A subclass may override the property, which `OptimizerV2` does not read for this one.
        if self._family.kind is not KerasKind.LEGACY:
            return self.learning_rate
        optimizer: Any = self._optimizer
        return optimizer.lr

    @lr.setter
    def lr(self, value: LearningRate) -> None:
        self.learning_rate = value

    @do_not_convert
    def get_scaled_loss(self, loss: Loss) -> Loss:
        """Returns the loss multiplied by the loss scale.

        Args:
          loss: a float tensor, or a callable that returns one.

        Returns:
          The product, in the dtype of the loss. If `loss` is a callable, the result is a callable
          that reads the loss scale when it is called.
        """
        self._note(Call.GET_SCALED_LOSS)
        return scale_loss(report_loss(self, loss), self._effective_scale)

    @do_not_convert
    def get_unscaled_gradients(self, grads: Gradients) -> List[Optional[Gradient]]:
        """Returns the gradients divided by the loss scale.

        Args:
          grads: a list of float tensors, `IndexedSlices` (which remain sparse) and None (which
            remains None).
        """
        self._note(Call.UNSCALE)
        unscaled = unscale_gradients(list(grads), self._effective_scale())
        report_unscaled(self, unscaled)
        return unscaled

    def _note(self, call: Call) -> None:
        """Notes a call of this step, for wrappers whose `apply_gradients` depends on it."""

    def _effective_scale(self) -> Tensor:
        """Returns the scale for losses and gradients: a subclass may override the property."""
        # The original classes read the property since 2.4, where it became a tensor.
        is_ours = type(self).loss_scale is LossScaleWrapper.loss_scale
        if is_ours or self._family.installed_final is None:
            return self._state()
        return self.loss_scale

    def get_config(self) -> Config:
        """Returns the constructor arguments of the final class; the optimizer is serialized."""
        return to_config(self)

    @classmethod
    def from_config(
        cls, config: Config, custom_objects: Optional[CustomObjects] = None
    ) -> Optimizer:
        """Makes an optimizer from the result of `get_config`, of any version.

        Args:
          config: the configuration; it is not changed.
          custom_objects: maps names to classes, for inner optimizers that Keras does not know.

        Raises:
          ValueError: the configuration holds a loss scale that only older classes accept.
        """
        return from_config(cls, config, custom_objects)

    def __getattr__(self, name: str) -> Any:
        inner = self.__dict__.get("_optimizer")
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        if inner is None or self._is_not_forwarded(name):
            raise AttributeError(message)
        try:
            return getattr(inner, name)
        except AttributeError as error:
            raise AttributeError(message) from error

    def _is_set_on_inner(self, name: str) -> bool:
        """Whether an attribute is set on the inner optimizer."""
        inner = self.__dict__.get("_optimizer")
        return not (
            inner is None
            or name.startswith("_")
            or name in self.__dict__
            or hasattr(type(self), name)
            # `OptimizerV2` makes the variables of all hyperparameters when one is read.
            or not (name in vars(inner).get("_hyper", {}) or hasattr(inner, name))
        )

    def _set_on_inner(self, name: str, value: Any) -> None:
        """Sets an attribute on the inner optimizer; logs if traced functions do not see it.

        Newer optimizers hold hyperparameters as numbers, which functions read when they are traced.
        `OptimizerV2` holds those that are set in training as variables.
        """
        inner = self._optimizer
        old = vars(inner).get(name)
        if self.__dict__.get("_is_traced") and _is_changed(old, value):
            tf1.logging.warning(
                f"{name} of {type(inner).__name__} was {old}, and is {value} from now on. "
                "Functions that are traced already, such as that of fit(), go on with the old "
                "number: set or restore it before the first step, or call compile() again."
            )
        setattr(inner, name, value)

    def _restore_on_inner(self, name: str, value: float) -> None:
        """Sets a number to that of a file, which holds it as float32."""
        if float(np.float32(getattr(self._optimizer, name))) == float(value):
            setattr(self._optimizer, name, value)
        else:
            self._set_on_inner(name, value)

    def __repr__(self) -> str:
        inner = self.__dict__.get("_optimizer")
        if inner is None:  # within the constructor
            return object.__repr__(self)
        return (
            f"<tf_lossscale {type(self).__name__} loss_scale={_shown_scale(self)} "
            f"inner_optimizer={inner!r}>"
        )


def _is_changed(old: object, new: object) -> bool:
    """Whether a number is replaced by another, or by something else."""
    if not isinstance(old, (int, float)):  # also bool
        return False
    return not isinstance(new, (int, float)) or new != old


def _shown_scale(optimizer: Optimizer) -> str:
    state = optimizer._state
    if not state.dynamic:
        return f"{state.initial_scale:g} (fixed)"
    if tf.executing_eagerly():
        return f"{float(optimizer.loss_scale):g} (dynamic)"
    if state.initial_scale is None:
        return type(state.loss_scale).__name__
    return f"dynamic, from {state.initial_scale:g}"


def _state_of(loss_scale: Union[float, LossScaleObject]) -> ScaleState:
    """Returns the state for a float, or for a `LossScale` of the shim or of TensorFlow.

    Calling a state returns the current scale: a float32 tensor of shape `[]`. `saved` is what
    checkpoints save as `loss_scale`, and `decides` whether the loss scale itself decides which
    steps are applied.
    """
    if isinstance(loss_scale, float):
        return _FixedState(loss_scale)
    if is_standard(loss_scale, FixedLossScale):
        return _FixedState(float(loss_scale.get_config()["loss_scale_value"]), loss_scale)
    if is_standard(loss_scale, DynamicLossScale):
        return _DynamicState(cast(DynamicLossScaleObject, loss_scale))
    return _OwnState(loss_scale)


class _FixedState(Trackable):
    """A fixed scale, which has no variables and saves nothing."""

    dynamic = False
    decides = False
    counter: Optional[Variable] = None
    growth_steps: Optional[int] = None

    def __init__(self, scale: float, loss_scale: Optional[LossScaleObject] = None) -> None:
        self.initial_scale = scale
        self.loss_scale = loss_scale

    @property
    def saved(self) -> SavedObject:
        return self

    def __call__(self) -> Tensor:
        return tf.convert_to_tensor(self.initial_scale, dtype=tf.float32)

    def __float__(self) -> float:
        return float(self.initial_scale)

    @property
    def _loss_scale_value(self) -> float:
        return self.initial_scale

    def get_config(self) -> Dict[str, Any]:
        """The config of the `FixedLossScale` that scales like this."""
        return {"loss_scale_value": self.initial_scale}

    def update(self, grads: Nest) -> Tuple[Optional[Operation], bool]:
        """Returns the same pair as the original's `_loss_scale.update`: a no-op and True."""
        return tf.no_op(), True


class _OwnState:
    """A loss scale of a user's own class, which decides itself whether a step is applied.

    Its other attributes can be read here, too: programs read `optimizer._loss_scale`, which was the
    object up to TensorFlow 2.3.
    """

    dynamic = True
    decides = True
    counter: Optional[Variable] = None
    growth_steps: Optional[int] = None
    initial_scale: Optional[float] = None

    def __init__(self, loss_scale: LossScaleObject) -> None:
        self.loss_scale = self.saved = loss_scale

    def __getattr__(self, name: str) -> Any:
        if name == "loss_scale" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.loss_scale, name)

    def __call__(self) -> Tensor:
        return tf.cast(self.loss_scale(), tf.float32)


class InVariables:
    """The scale and the counter of finite steps are variables: float32 and int64."""

    decides = False
    current_loss_scale: Variable  # TensorFlow has this name from 2.4 on
    counter: Variable  # None if a scale of Keras 3 is fixed
    growth_steps: Any
    multiplier: float
    _minimum_scale: float

    def __call__(self) -> Tensor:
        return tf.convert_to_tensor(self.current_loss_scale)

    @do_not_convert
    def advance(self, finite: Tensor) -> Optional[Operation]:
        """Updates the scale after a step; returns the operation, None in eager mode."""
        return dynamic_update(
            self.current_loss_scale,
            self.counter,
            finite,
            self.growth_steps,
            self.multiplier,
            self._minimum_scale,
        )


class _DynamicState(InVariables, _OwnState):
    """A dynamic scale, held by a `DynamicLossScale` of the shim or of TensorFlow."""

    def __init__(self, loss_scale: DynamicLossScaleObject) -> None:
        super().__init__(loss_scale)
        self.initial_scale = float(loss_scale.initial_loss_scale)
        self.growth_steps = int(loss_scale.increment_period)
        self.multiplier = float(loss_scale.multiplier)
        self._minimum_scale = minimum_of(loss_scale)
        self.current_loss_scale = loss_scale._current_loss_scale
        self.counter = loss_scale._num_good_steps
