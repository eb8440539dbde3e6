"""Finds the first layer of a Keras model whose output is not finite, in one forward pass."""

import contextlib
import inspect
import threading
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tf_lossscale._core.finite import all_finite, first_true
from tf_lossscale._types import Layer, Model, Nest, Tensor
from tf_lossscale._versions.base import do_not_convert, tf, tf1
from tf_lossscale._versions.layers import (
    base_layers,
    functions_run_eagerly,
    tensors_in,
    untrained_variables,
    watched_calls,
)
from tf_lossscale._versions.unnoticed import unnoticed
from tf_lossscale._versions.variables import first_copy, variable_name

INPUTS = "the inputs"
_LARGEST_FLOAT16 = 65504.0
_SCOPE = "tf_lossscale_monitor/"


class NonfiniteLayer(NamedTuple):
    """The first layer whose output was not finite; its text is a sentence that says what to do.

    Attributes:
      name: its name, after the names of the models and layers around it: `encoder/dense_1`. It is
        `the inputs` if the inputs of the model are not finite.
      kind: the name of its class.
      dtype: the dtype of its output.
      infinities: how many values of its output are infinite.
      nans: how many are NaN.
      size: how many values its output has.
      largest_input: the largest absolute value of what it was called with; 0.0 without any.
      has_finite_inputs: whether all of that was finite.
      bad_weights: the names of its weights that are not finite.

    Examples:
      >>> from tf_lossscale.monitoring import NonfiniteLayer
      >>> layer = NonfiniteLayer("out", "Dense", "float16", 2, 0, 8, 300.0, True, ())
      >>> str(layer).split(": ")[1].split(". ")[0]
      '2 infinite of 8 float16 values'
    """

    name: str
    kind: str
    dtype: str
    infinities: int
    nans: int
    size: int
    largest_input: float
    has_finite_inputs: bool
    bad_weights: Tuple[str, ...]

    def __str__(self) -> str:
        values = f"{_values(self.infinities, self.nans)} of {self.size} {self.dtype} values"
        if self.name == INPUTS:
            return (
                f"The inputs of the model are not finite: {values}. Look at the data and at what "
                "prepares them."
            )
        return (
            f"The output of layer {self.name} ({self.kind}) is the first that is not finite: "
            f"{values}. {self._cause()}"
        )

    def _cause(self) -> str:
        """Returns why the output is not finite, and what to do, as far as the values tell."""
        if self.bad_weights:
            return (
                f"Its weight {self.bad_weights[0]} is not finite itself: an earlier step has "
                "spoiled it, so go back to a checkpoint from before."
            )
        if not self.has_finite_inputs:
            return (
                "It was called with values that were not finite already, so look at the "
                "operations outside of layers that come before it."
            )
        largest = f"Its inputs are finite, at most {self.largest_input:.4g}"
        if self.dtype == "float16" and self.infinities:
            return (
                f"{largest}, and float16 ends at {_LARGEST_FLOAT16:.0f}: make them smaller, or "
                "give this layer dtype='float32'."
            )
        return (
            f"{largest}, so look at what it computes: a division by 0, a root or logarithm, or a "
            "sum that is too large."
        )


def _values(infinities: int, nans: int) -> str:
    counts = ((infinities, "infinite"), (nans, "NaN"))
    return " and ".join(f"{count} {what}" for count, what in counts if count)


@do_not_convert
def find_nonfinite_layer(
    model: Model, inputs: Nest, training: bool = True, **kwargs: object
) -> Any:
    """Finds the first layer of a Keras model whose output holds an infinity or a NaN.

    It calls the model once and looks at the output of each layer, also of those in nested models
    and in other layers: the innermost one counts. In eager mode, functions within the model run
    eagerly meanwhile. Variables that the call changes, such as the averages of
    `BatchNormalization`, get their values back.

    Examples:
      >>> import tensorflow as tf
      >>> import tf_lossscale as tfls
      >>> layers = [tf.keras.layers.Dense(2, name="first"),
      ...           tf.keras.layers.Lambda(tf.math.log, name="log"), tf.keras.layers.Dense(1)]
      >>> model = tf.keras.Sequential(layers)
      >>> tfls.monitoring.find_nonfinite_layer(model, tf.zeros([4, 3])).name
      'log'

    Args:
      model: a Keras model or layer, of Keras 2 or Keras 3.
      inputs: what it is called with; a batch of the training data.
      training: what it is called with as `training`, if its `call` has such an argument.
      **kwargs: further arguments of the call.

    Returns:
      In eager mode, a `NonfiniteLayer`, or None if all outputs are finite: then the loss or the
      backward pass is to blame. In a `tf.function`, the name as a string tensor of shape `[]`, for
      `tf.print`, or an empty string. There, layers within loops and within functions of their own
      are not seen, but the layers around these are.

    Raises:
      TypeError: `model` is not of Keras.
      RuntimeError: it is called in a graph of a Session.
    """
    if not base_layers(model):
        raise TypeError(
            f"find_nonfinite_layer takes a Keras model or layer, but got: {type(model).__name__}. "
            "For other models, use tf.debugging.enable_check_numerics()."
        )
    if "training" in inspect.signature(model.call).parameters:
        kwargs["training"] = training
    if tf.executing_eagerly():
        return _find_eagerly(model, inputs, kwargs)
    if not tf1.get_default_graph().building_function:
        raise RuntimeError(
            "find_nonfinite_layer needs eager mode or a tf.function. In a Session, run "
            "tf.compat.v1.add_check_numerics_ops(), which names the first operation."
        )
    return _find_in_function(model, inputs, kwargs)


def _find_eagerly(model: Model, inputs: Nest, kwargs: Dict[str, Any]) -> Optional[NonfiniteLayer]:
    found = FirstNonfinite()
    with functions_run_eagerly():
        if not getattr(model, "built", True):
            model(inputs, **{**kwargs, **({"training": False} if "training" in kwargs else {})})
        with _kept_variables(model), watched_calls(model, found.called):
            model(inputs, **kwargs)
    return found.layer


@contextlib.contextmanager
def _kept_variables(model: Model) -> Iterator[None]:
    """Gives the variables that are not trained their values back."""
    variables = untrained_variables(model)
    before = [tf.identity(tf.convert_to_tensor(variable)) for variable in variables]
    yield
    for variable, value in zip(variables, before):
        variable.assign(value)


def _find_in_function(model: Model, inputs: Nest, kwargs: Dict[str, Any]) -> Any:
    """Builds the forward pass with a test of each output; returns the name, a string tensor."""
    graph = tf1.get_default_graph()
    names: List[str] = [INPUTS]
    flags: List[Tensor] = [all_finite(tensors_in(inputs))]

    def called(layers: Sequence[Layer], _: Any, outputs: Nest) -> None:
        tensors = [tensor for tensor in tensors_in(outputs) if tensor.graph is graph]
        if tensors:
            with unnoticed(_SCOPE):
                names.append(path_of(layers))
                flags.append(all_finite(tensors))

    with _kept_variables(model), watched_calls(model, called):
        model(inputs, **kwargs)
    with unnoticed(_SCOPE):
        position = first_true(tf.logical_not(tf.stack(flags)), len(flags))
        return tf.gather(tf.constant([*names, ""]), position)


def path_of(layers: Sequence[Layer]) -> str:
    """Returns the name of the last layer, after the names of the layers and models around it."""
    inner = layers[1:] if len(layers) > 1 else layers
    return "/".join(str(layer.name) for layer in inner)


class FirstNonfinite:
    """Looks at the calls of layers in eager mode, and remembers the first bad one."""

    def __init__(self) -> None:
        self.layer: Optional[NonfiniteLayer] = None
        self.calls = 0
        self._layers: Sequence[Layer] = ()
        self._lock = threading.Lock()

    def called(self, layers: Sequence[Layer], inputs: Nest, outputs: Nest) -> None:
        """Looks at a call: see `watched_calls`."""
        self.calls += 1
        if self.layer is None:
            tensors = _eager_tensors(outputs)
            if not _are_finite(tensors):
                with self._lock:  # of the replicas of a strategy
                    self.layer = self.layer or _described(layers, inputs, tensors)
                    self._layers = layers
        is_around = list(layers) == list(self._layers[: len(layers)])
        if is_around and self.layer is not None and not self.layer.has_finite_inputs:
            self._look_at_inputs_of_outer(len(layers) == 1, _eager_tensors(inputs))

    def _look_at_inputs_of_outer(self, is_outermost: bool, given: Sequence[Tensor]) -> None:
        """Corrects what the first layer was called with by what the model was called with."""
        assert self.layer is not None
        if not _are_finite(given):
            if is_outermost:
                self.layer = _described_inputs(given)
            return
        largest = _largest(given)
        if self.layer.dtype == "float16" and largest > _LARGEST_FLOAT16:
            # A model of Keras 3 casts its inputs before its first layer gets them.
            self.layer = self.layer._replace(largest_input=largest, has_finite_inputs=True)


def _eager_tensors(value: Nest) -> List[Tensor]:
    arrays = tf.nest.map_structure(_as_tensor, value)
    return [tensor for tensor in tensors_in(arrays) if hasattr(tensor, "numpy")]


def _as_tensor(value: Nest) -> Tensor:
    is_floats = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return tf.convert_to_tensor(value) if is_floats else value


def _are_finite(tensors: Sequence[Tensor]) -> bool:
    return bool(all_finite(tensors))


def _described(layers: Sequence[Layer], inputs: Nest, outputs: Sequence[Tensor]) -> NonfiniteLayer:
    """Describes the last of `layers`, which are one within the other, in eager mode."""
    layer, given = layers[-1], _eager_tensors(inputs)
    nans, infinities, size = _counts(outputs)
    bad = [tensor for tensor in outputs if not _are_finite([tensor])]
    return NonfiniteLayer(
        name=path_of(layers),
        kind=type(layer).__name__,
        dtype=bad[0].dtype.name,
        infinities=infinities,
        nans=nans,
        size=size,
        largest_input=_largest(given),
        has_finite_inputs=_are_finite(given),
        bad_weights=tuple(_bad_weights(layer)),
    )


def _described_inputs(given: Sequence[Tensor]) -> NonfiniteLayer:
    nans, infinities, size = _counts(given)
    dtype, largest = given[0].dtype.name, _largest(given)
    return NonfiniteLayer(INPUTS, "", dtype, infinities, nans, size, largest, False, ())


def _arrays(tensors: Sequence[Tensor]) -> List[np.ndarray]:
    # In a dtype that NumPy knows: bfloat16 is not one.
    return [tf.cast(tensor, tf.float64).numpy() for tensor in tensors]


def _counts(tensors: Sequence[Tensor]) -> Tuple[int, int, int]:
    """Returns how many values are NaN, how many infinite, and how many there are."""
    arrays = _arrays(tensors)
    nans = sum(int(np.isnan(array).sum()) for array in arrays)
    infinities = sum(int(np.isinf(array).sum()) for array in arrays)
    return nans, infinities, sum(array.size for array in arrays)


def _largest(tensors: Sequence[Tensor]) -> float:
    absolute = [np.abs(array[np.isfinite(array)]) for array in _arrays(tensors)]
    return max((float(values.max()) for values in absolute if values.size), default=0.0)


def _bad_weights(layer: Layer) -> Iterator[str]:
    weights = [weight for weight in getattr(layer, "weights", ()) if hasattr(weight, "assign")]
    for variable in weights:
        value = tf.convert_to_tensor(first_copy(variable))
        if value.dtype.is_floating and not _are_finite([value]):
            yield variable_name(variable)
