"""The order in which Keras 2 lists the trainable variables of a model that Keras 3 has made.

Both Kerases list the layers of functional and sequential models in the same order. Of a subclassed
model, Keras 3 lists layers in the order in which it got them. Keras 2 lists them attribute by
attribute: a list where its attribute was first set, and a dictionary in the order of its keys.
Variables of a model itself come last on Keras 2, and those of a layer first.
"""

from typing import Iterator, List, Set

from tf_lossscale._restore.program import (
    distinct,
    is_of_keras,
    is_variable,
    layers_of,
    own_variables,
    trained_by,
)
from tf_lossscale._types import Layer, Model, Variable

_OF_KERAS = ("_layers", "_operations", "_functional", "_tracker")
"""Attributes of Keras 3 that repeat the layers, in its own order."""
_OF_TENSORFLOW = "_self_"
"""The beginning of TensorFlow's attributes, some of which have the layers by their names."""


def order_of_keras_2(model: Model) -> List[Variable]:
    """Returns the trainable variables of a model, layer or variable in the order of Keras 2."""
    trained = set(map(id, trained_by(model)))
    return [variable for variable in distinct(_variables(model)) if id(variable) in trained]


def is_graph(model: Model) -> bool:
    """Returns whether a model, and each model in it, is functional or sequential."""
    layers = layers_of(model)
    return not layers or (_lists_its_layers(model) and all(map(is_graph, layers)))


def _lists_its_layers(model: Model) -> bool:
    return bool({"Functional", "Sequential"} & {base.__name__ for base in type(model).__mro__})


def _variables(value: Model) -> Iterator[Variable]:
    if is_variable(value):
        yield value
        return
    own = own_variables(value) if is_of_keras(value) else []
    is_model = hasattr(value, "train_step")
    yield from () if is_model else own
    for layer in _layers(value):
        yield from _variables(layer)
    yield from own if is_model else ()


def _layers(model: Model) -> Iterator[Layer]:
    """Yields the layers in a model or layer in the order of Keras 2."""
    layers = layers_of(model)
    if not _lists_its_layers(model):
        known = set(map(id, layers))
        for name, value in vars(model).items():
            if name not in _OF_KERAS and not name.startswith(_OF_TENSORFLOW):
                yield from _layers_in(value, known)
    yield from layers


def _layers_in(value: object, known: Set[int]) -> Iterator[Layer]:
    """Yields the layers in an attribute: one, or those in a list or dictionary."""
    if id(value) in known:
        yield value
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from _layers_in(value[key], known)
    elif isinstance(value, (list, tuple)):
        for element in value:
            yield from _layers_in(element, known)
