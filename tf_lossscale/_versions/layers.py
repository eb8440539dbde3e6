"""Looks into the calls of Keras layers, and runs functions eagerly while somebody looks.

There is no public hook for the calls of all layers of a model, including the layers of nested
models and of other layers. All of them go through one method of the base class, so that is
replaced while somebody looks, and only then.
"""

import contextlib
import functools
import threading
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from tf_lossscale._types import Class, Layer, Method, Model, Nest, Tensor, Variable
from tf_lossscale._versions.base import first_module, tf
from tf_lossscale._versions.interventions import CALLS_OF_LAYERS, Replacements, replace_in_object
from tf_lossscale._versions.keras import layers_of

Called = Callable[[Sequence[Layer], Nest, Nest], None]
"""Is called with the layers around a call, from the outermost one to the called one; with all of
its arguments; and with what it returned."""


def base_layers(model: Model) -> List[Class]:
    """Returns the base classes of a model that define how layers are called; none if it has none.

    In Keras 3, a functional model also consists of operations that are no layers, such as `ops.log`
    of a symbolic tensor. They share a base class with the layers.
    """
    packages = ("keras", "tf_keras", "tensorflow", "tensorflow_core")
    return [
        cls
        for cls in type(model).__mro__
        if cls.__name__ in ("Layer", "Operation")
        and cls.__module__.split(".")[0] in packages
        and "__call__" in vars(cls)
    ]


@contextlib.contextmanager
def watched_calls(model: Model, called: Called, only_within: bool = True) -> Iterator[None]:
    """Calls `called` after each call of a layer, in any thread.

    With `only_within`, only after calls within one of `model`; otherwise, also where the program
    calls single layers of it.
    """
    around = threading.local()
    replacements = Replacements(CALLS_OF_LAYERS)
    for cls in base_layers(model):
        root = model if only_within else None
        watch = _Watch(root, called, around, cls.__name__ == "Layer", replacements)
        replacements.replace(cls, "__call__", _watched(vars(cls)["__call__"], watch))
    try:
        yield
    finally:
        replacements.undo()


class _Watch(NamedTuple):
    root: Optional[Layer]  # only calls within one of it count; all if it is None
    called: Called
    around: Any  # has the layers that are being called in this thread
    is_of_layers: bool  # whether the method belongs to layers, not to all operations
    replacements: Replacements


def _watched(original: Method, watch: _Watch) -> Method:
    """Returns Keras's method, which also calls what `watch` says with arguments and results."""

    # `wraps` also gives it the module of Keras, by which AutoGraph leaves it alone.
    @functools.wraps(original)
    def __call__(layer: Layer, *args: object, **kwargs: object) -> Any:
        outer: Tuple[Layer, ...] = getattr(watch.around, "layers", ())
        is_within = bool(outer) or watch.root is None or layer is watch.root
        # A layer of Keras 3 calls the method of operations within its own.
        is_same = bool(outer) and outer[-1] is layer and not watch.is_of_layers
        if not (is_within and watch.replacements.is_active) or is_same:
            return original(layer, *args, **kwargs)
        watch.around.layers = layers = (*outer, layer)
        try:
            outputs = original(layer, *args, **kwargs)
        finally:
            watch.around.layers = outer
        watch.called(layers, (args, kwargs), outputs)
        return outputs

    return __call__


def untrained_variables(model: Model) -> List[Variable]:
    """Returns the variables that a call may change: averages, seeds, states between batches."""
    # The states of stateful RNN layers are not among the variables of a model.
    states = [tf.nest.flatten(getattr(layer, "states", None)) for layer in layers_of(model)]
    candidates = [*model.variables, *(state for some in states for state in some)]
    known = {id(variable) for variable in model.trainable_variables}
    found = []
    for variable in candidates:
        # Layers of Keras 2 that look up words list their tables there.
        if hasattr(variable, "assign") and id(variable) not in known:
            known.add(id(variable))
            found.append(variable)
    return found


def tensors_in(value: Any) -> List[Tensor]:
    """Returns the float tensors in a structure, the values of sparse and ragged ones too."""
    parts = tf.nest.flatten(value, expand_composites=True)
    # Not the symbolic ones that a model is built of.
    return [part for part in parts if isinstance(part, tf.Tensor) and part.dtype.is_floating]


@contextlib.contextmanager
def functions_run_eagerly() -> Iterator[None]:
    """Runs what is within a `tf.function` eagerly, so that the results of layers can be read."""
    module = first_module("tensorflow.python.eager.def_function")
    if hasattr(module, "functions_run_eagerly"):
        before = module.functions_run_eagerly()
    else:  # TensorFlow 1.15
        before = module.RUN_FUNCTIONS_EAGERLY
    module.run_functions_eagerly(True)
    try:
        yield
    finally:
        module.run_functions_eagerly(before)


class NextBatch:
    """Watches the calls of layers in the next batch of a `fit` that is running.

    That batch runs eagerly. Whatever it raises, nothing stays replaced.

    Attributes:
      has_run: whether it was trained on.
    """

    def __init__(self, model: Model, called: Called) -> None:
        self.has_run = False
        self._model = model
        self._original = model.train_function
        self._called = called
        self._undo = replace_in_object(model, "train_function", self._train)

    def _train(self, *args: object, **kwargs: object) -> Any:
        self.cancel()
        with functions_run_eagerly(), watched_calls(self._model, self._called, only_within=False):
            result = self._original(*args, **kwargs)
        self.has_run = True
        return result

    def cancel(self) -> None:
        """Restores the function of the model, if there was no such batch."""
        self._undo()
