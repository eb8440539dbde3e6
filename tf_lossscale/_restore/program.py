"""The program's side: the children of its models and layers under the names that files have."""

from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Set

from tf_lossscale._restore.stored import Shape
from tf_lossscale._types import Layer, Model, SavedObject, Variable

# Attributes of layers that have one name on Keras 2, and another one on Keras 3.
_OTHER_NAMES = {
    "depthwise_kernel": "kernel",
    "kernel": "depthwise_kernel",
    "mean": "adapt_mean",
    "variance": "adapt_variance",
    "adapt_mean": "mean",
    "adapt_variance": "variance",
    "u": "vector_u",
    "vector_u": "u",
}

# What a file of Keras 3 calls the model itself, as a child of the model.
_SAME_OBJECT = ("_functional",)


def is_variable(value: object) -> bool:
    return hasattr(value, "assign") and hasattr(value, "shape") and hasattr(value, "dtype")


def is_of_keras(value: object) -> bool:
    """Returns whether a value is a model or layer of Keras, and no `tf.Module` or variable."""
    return hasattr(value, "trainable_weights")


def name_of(variable: Variable) -> str:
    """Returns the name of a variable as the program shows it."""
    name = getattr(variable, "path", None) or getattr(variable, "name", "") or "variable"
    return str(name).split(":")[0]


def shape_of(variable: Variable) -> Shape:
    return tuple(int(size) for size in variable.shape)


def dtype_of(variable: Variable) -> str:
    dtype = variable.dtype
    return str(getattr(dtype, "name", dtype)).replace("_ref", "")


def weights_of(value: object) -> List[Variable]:
    """Returns the variables of a model, module, variable, or of a list or dictionary of them."""
    if is_variable(value):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return distinct(weight for part in value for weight in weights_of(part))
    weights = getattr(value, "weights", None)
    if isinstance(weights, (list, tuple)):
        return distinct([*weights, *_unlisted(value)])
    variables = getattr(value, "variables", None)
    return distinct(variables) if isinstance(variables, (list, tuple)) else []


def _unlisted(model: Model) -> List[Variable]:
    """Returns the attributes that are variables of TensorFlow, which Keras 3 does not list."""
    attributes = vars(model)
    if "_trainable_variables" not in attributes:
        return []
    variables = [attribute for attribute in attributes.values() if is_variable(attribute)]
    return [
        variable
        for variable in variables
        if not hasattr(variable, "path") and not _is_seed(variable)
    ]


def trained_by(value: object) -> List[Variable]:
    """Returns the trainable variables of a model, or of a list or dictionary of models."""
    if is_variable(value):
        # `tf.Variable(0)` counts steps or epochs, and is trainable by default.
        is_counter = "int" in dtype_of(value)
        return [] if is_counter or not getattr(value, "trainable", True) else [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return distinct(variable for part in value for variable in trained_by(part))
    return distinct(getattr(value, "trainable_variables", ()))


def _is_seed(variable: Variable) -> bool:
    return "seed_generator" in name_of(variable)


def distinct(variables: Iterable[Variable]) -> List[Variable]:
    seen: Set[int] = set()
    found = []
    for variable in variables:
        if id(variable) not in seen:
            seen.add(id(variable))
            found.append(variable)
    return found


def layers_of(value: object) -> List[Layer]:
    """Returns the layers in a model, or in another layer, in its order."""
    layers = getattr(value, "layers", None)
    if isinstance(layers, (list, tuple)):
        return list(layers)
    flatten = getattr(value, "_flatten_layers", None)
    if flatten is None:
        return []
    return list(flatten(include_self=False, recursive=False))


def layers_below(values: Iterable[object]) -> Iterator[Layer]:
    """Yields the layers of models, and the layers in them."""
    waiting = list(values)
    seen: Set[int] = set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        waiting += layers_of(value)


def layers_with_weights(value: object) -> List[Layer]:
    return [layer for layer in layers_of(value) if getattr(layer, "weights", None)]


def numbered_weights(layer: Layer) -> List[Variable]:
    """Returns the weights of a layer in the order of HDF5 files of Keras 2."""
    weights = [*layer.trainable_weights, *layer.non_trainable_weights]
    return [weight for weight in weights if not _is_seed(weight)]


def own_variables(layer: Layer) -> List[Variable]:
    """Returns the variables of a layer itself, without the variables of layers in it."""
    attributes = vars(layer)
    found: List[Variable] = []
    for keras_3, keras_2 in (
        ("_trainable_variables", "_trainable_weights"),
        ("_non_trainable_variables", "_non_trainable_weights"),
    ):
        variables = attributes.get(keras_3, attributes.get(keras_2, ()))
        found += [variable for variable in variables if not _is_seed(variable)]
    return found


def direct_variables(value: object) -> List[Variable]:
    """Returns the variables that are attributes of an object, or that a layer made itself."""
    attributes = getattr(value, "__dict__", {})
    found = [attribute for attribute in attributes.values() if is_variable(attribute)]
    return distinct([*found, *(own_variables(value) if attributes else ())])


def child_of(value: object, name: str) -> Optional[SavedObject]:
    """Returns the object that a program has where a file has the child `name`, or None."""
    if isinstance(value, (list, tuple)):
        return _element(value, name)
    if isinstance(value, dict):
        return value.get(name, value.get(int(name)) if name.isdigit() else None)
    if name in _SAME_OBJECT:
        return value
    for candidate in _names(name):
        found = _attribute(value, candidate)
        if _is_an_object(found):
            return found
    stem, _, number = name.rpartition("-")
    if stem == "cell" and number.isdigit():  # of `StackedRNNCells`
        return _element(_attribute(value, "cells") or (), number)
    return None


def _names(name: str) -> Iterator[str]:
    bare = name.lstrip("_")
    for candidate in (name, bare, _OTHER_NAMES.get(bare)):
        if candidate:
            yield from (candidate, "_" + candidate)


def _element(values: Sequence[SavedObject], number: str) -> Optional[SavedObject]:
    if not number.isdigit() or int(number) >= len(values):
        return None
    return values[int(number)]


def _attribute(value: object, name: str) -> Optional[Any]:
    try:
        attributes: Dict[str, Any] = vars(value)
    except TypeError:
        return None
    return attributes.get(name)


def _is_an_object(value: object) -> bool:
    if value is None or isinstance(value, (str, bytes, int, float, bool, type)):
        return False
    if hasattr(value, "dtype") and hasattr(value, "numpy") and not is_variable(value):
        return False  # the mean of a `Normalization`, which it computes from `adapt_mean`
    return (
        is_variable(value) or isinstance(value, (list, tuple, dict)) or hasattr(value, "__dict__")
    )
