"""Finds the variables of the program that belong to the tensors of a file.

A file and a program are walked together, from the model: where the file has a child, the program
has an attribute, a layer or an element of a list. Layers of functional and sequential models have
numbers in files, and are matched by their names if all of them fit, else in their order. What is
left over is matched by name and shape where only one variable fits.
"""

import collections
import re
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from tf_lossscale._restore.program import (
    child_of,
    is_variable,
    layers_of,
    layers_with_weights,
    name_of,
    own_variables,
    shape_of,
    weights_of,
)
from tf_lossscale._restore.stored import RestoreError, Stored

# Children of Keras objects that refer to what has other names as well, or to nothing that trains.
_ALIASES = {
    *("keras_api", "signatures", "variables", "trainable_variables", "non_trainable_variables"),
    *("regularization_losses", "losses", "metrics", "layers", "root", "_tracked"),
    *("_trainable_variables", "_non_trainable_variables", "_layers", "_operations"),
}
_NUMBERED = re.compile(r"layer-\d+$")
_WITH_WEIGHTS = re.compile(r"layer_with_weights-(\d+)$")
# Lists of the layers of a model in files of Keras 3.
_LISTS_OF_LAYERS = ("_operations", "_layers")


class Conflict(NamedTuple):
    """A tensor of the file, and the variable at its place in the program, which differ."""

    node: int
    variable: Any
    what: str


class Match:
    """The variables of the program by the nodes of a file, and what does not fit."""

    def __init__(self, stored: Stored, start: int, without: Set[int]) -> None:
        self.stored = stored
        self.start = start
        self.variables: Dict[int, Any] = {}
        self.conflicts: List[Conflict] = []
        self._without = without
        self._objects: Dict[int, Any] = {}
        self._taken: Dict[int, int] = {}  # nodes by the id of the variable

    def walk(self, program: Any) -> "Match":
        """Matches the node `start` and what is below it with an object of the program."""
        self._waiting = collections.deque([(self.start, program)])
        while self._waiting:
            number, value = self._waiting.popleft()
            if number in self._without or number in self._objects:
                continue
            self._objects[number] = value
            if is_variable(value):
                self._take(number, value)
            else:
                self._waiting.extend(self._pairs(number, value))
        self._match_what_is_left(program)
        return self

    def missing(self, program: Any) -> List[Any]:
        """Returns the variables of the program that no tensor was found for."""
        return [variable for variable in weights_of(program) if id(variable) not in self._taken]

    def unused(self) -> List[int]:
        """Returns the nodes with tensors below the start that no variable was found for."""
        below = self.stored.below(self.start, self._without)
        return sorted(
            number
            for number in below
            if self.stored.nodes[number].tensor and number not in self.variables
        )

    def bind(self, number: int, variable: Any) -> None:
        """Takes note of a variable that was found in another way, as by the optimizer's list."""
        if number not in self.variables and id(variable) not in self._taken:
            self._take(number, variable)

    def _take(self, number: int, variable: Any) -> None:
        tensor = self.stored.nodes[number].tensor
        if tensor is None:
            return
        if id(variable) in self._taken:
            self.conflicts.append(Conflict(number, variable, "it belongs to another tensor, too"))
            return
        if tensor.shape != shape_of(variable):
            self.conflicts.append(Conflict(number, variable, "the shapes differ"))
            return
        self.variables[number] = variable
        self._taken[id(variable)] = number

    def _pairs(self, number: int, value: Any) -> Iterator[Tuple[int, Any]]:
        children = self.stored.nodes[number].children
        numbered = [name for name in children if _WITH_WEIGHTS.match(name)]
        numbered.sort(key=lambda name: int(name.rpartition("-")[2]))
        nodes = [children[name] for name in numbered]
        if nodes:
            yield from self._paired_layers(nodes, layers_with_weights(value))
        for name, child in children.items():
            if name in _ALIASES or _NUMBERED.match(name) or name in numbered:
                continue
            found = self._child(value, name)
            if found is not None:
                yield child, found
        for name in _LISTS_OF_LAYERS:
            if name in children:
                yield from self._listed_layers(children[name], value)

    def _child(self, value: Any, name: str) -> Optional[Any]:
        kind, _, rest = name.partition(":")
        if kind in _BY_FORMAT:
            return _BY_FORMAT[kind](value, rest)
        return child_of(value, name)

    def _listed_layers(self, number: int, value: Any) -> Iterator[Tuple[int, Any]]:
        children = self.stored.nodes[number].children
        elements = sorted((name for name in children if name.isdigit()), key=int)
        nodes = [children[name] for name in elements]
        known = [node for node in nodes if self.stored.has_tensors(node, self._without)]
        layers = layers_with_weights(value)
        if len(known) == len(layers):
            yield from self._paired_layers(known, layers)

    def _paired_layers(
        self, nodes: Sequence[int], layers: Sequence[Any]
    ) -> Iterator[Tuple[int, Any]]:
        if len(nodes) != len(layers):
            return  # an order would be a guess; what fits only one variable is found later
        by_name = self._paired_by_name(nodes, layers)
        yield from by_name or zip(nodes, layers)

    def _paired_by_name(
        self, nodes: Sequence[int], layers: Sequence[Any]
    ) -> Optional[List[Tuple[int, Any]]]:
        """Pairs layers by their names if each one is in the names of one layer's variables."""
        pairs = []
        labels = [self._segments(node) for node in nodes]
        for layer in layers:
            fitting = [node for node, label in zip(nodes, labels) if layer.name in label]
            if len(fitting) != 1:
                return None
            pairs.append((fitting[0], layer))
        return pairs if len({node for node, _ in pairs}) == len(nodes) else None

    def _segments(self, number: int) -> Set[str]:
        """Returns the names of layers in the name of the first variable of a layer."""
        for node in self.stored.below(number, self._without):
            tensor = self.stored.nodes[node].tensor
            if tensor is not None:
                return set(tensor.name.split("/")[:-1])
        return set()

    def _match_what_is_left(self, program: Any) -> None:
        """Matches a tensor and a variable whose last name and shape no other one has."""
        if self.conflicts:
            return
        tensors = collections.defaultdict(list)
        variables = collections.defaultdict(list)
        for number in self.unused():
            tensor: Any = self.stored.nodes[number].tensor
            name = tensor.name or self.stored.path_of(number)
            tensors[name.split("/")[-1], tensor.shape].append(number)
        for variable in self.missing(program):
            name = name_of(variable)
            variables[name.split("/")[-1], shape_of(variable)].append(variable)
        for kind, numbers in tensors.items():
            if len(numbers) == 1 and len(variables.get(kind, ())) == 1:
                self._take(numbers[0], variables[kind][0])


def _legacy_weight(layer: Any, rest: str) -> Optional[Any]:
    """Returns a weight by its number in an HDF5 file of Keras 2."""
    weights = [*layer.trainable_weights, *layer.non_trainable_weights]
    weights = [weight for weight in weights if "seed_generator" not in name_of(weight)]
    return weights[int(rest)] if int(rest) < len(weights) else None


def _own_weight(layer: Any, rest: str) -> Optional[Any]:
    """Returns a weight by its number in an HDF5 file of Keras 3."""
    variables = own_variables(layer)
    return variables[int(rest)] if int(rest) < len(variables) else None


def _layer_by_label(value: Any, label: str) -> Optional[Any]:
    """Returns a layer by the label of its class and its number: `dense`, `dense_1`."""
    layers = value if isinstance(value, (list, tuple)) else None
    if isinstance(value, dict):
        layers = list(value.values())
    if layers is None:
        layers = layers_of(value)
    counts: Dict[str, int] = {}
    for layer in layers:
        kind = snake_case(type(layer).__name__)
        count = counts.get(kind, 0)
        counts[kind] = count + 1
        if label == (f"{kind}_{count}" if count else kind):
            return layer
    return None


def snake_case(name: str) -> str:
    """Returns the name that Keras 3 gives the layers of a class in files."""
    name = re.sub(r"\W+", "", name)
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()


_BY_FORMAT: Dict[str, Callable[[Any, str], Optional[Any]]] = {
    "legacy": _legacy_weight,
    "vars": _own_weight,
    "label": _layer_by_label,
}


def best_match(stored: Stored, program: Any, starts: Sequence[int], without: Set[int]) -> Match:
    """Returns the match of the object in the file that is the program's model.

    Raises:
      RestoreError: several objects fit, and none is called "model".
    """
    matches = [Match(stored, start, without - {start}).walk(program) for start in starts]
    perfect = [
        match
        for match in matches
        if match.variables and not (match.unused() or match.conflicts or match.missing(program))
    ]
    named = [match for match in perfect if stored.path_of(match.start) == "model"]
    # Two children of the root may be the same object.
    distinct = {frozenset(match.variables): match for match in perfect}
    if named:
        return named[0]
    if len(distinct) > 1:
        paths = ", ".join(sorted(stored.path_of(match.start) or "the root" for match in perfect))
        raise RestoreError(
            f"{stored.path}: several objects of the file fit the model: {paths}. Pass "
            "model={name: model} with their names in the file."
        )
    if perfect:
        return perfect[0]
    return max(matches, key=lambda match: (len(match.variables), -len(match.unused())))
