"""Finds the variables of the program that belong to the tensors of a file.

A file and a program are walked together, from the model: where the file has a child, the program
has an attribute, a layer or an element of a list. Layers of functional and sequential models have
numbers in files, and are matched by their names if all of them fit, else in their order. What is
left over is matched by name and shape where only one variable fits.
"""

import collections
import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from tf_lossscale._restore.program import (
    child_of,
    direct_variables,
    is_variable,
    layers_with_weights,
    name_of,
    numbered_weights,
    own_variables,
    shape_of,
    weights_of,
)
from tf_lossscale._restore.stored import RestoreError, Stored
from tf_lossscale._types import Layer, SavedObject, Variable

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
    variable: Variable
    what: str


class Match:
    """The variables of the program by the nodes of a file, and what does not fit."""

    def __init__(self, stored: Stored, start: int, without: Set[int]) -> None:
        self.stored = stored
        self.start = start
        self.variables: Dict[int, Variable] = {}
        self.conflicts: List[Conflict] = []
        self._without = without
        self._objects: Dict[int, SavedObject] = {}
        self._taken: Dict[int, int] = {}  # nodes by the id of the variable

    def walk(self, program: object) -> "Match":
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
        self._match_what_is_left()
        return self

    def missing(self, program: object) -> List[Variable]:
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

    def bind(self, number: int, variable: Variable) -> None:
        """Takes note of a variable that was found in another way, as by the optimizer's list."""
        if number not in self.variables and id(variable) not in self._taken:
            self._take(number, variable)

    def _take(self, number: int, variable: Variable) -> None:
        """Gives a tensor of the file to a variable, or notes the conflict why it cannot have it."""
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

    def _pairs(self, number: int, value: object) -> Iterator[Tuple[int, SavedObject]]:
        """Pairs the children of a node and of an object: layers, attributes, weights."""
        children = self.stored.nodes[number].children
        # Sequential models that were built after they were made lack the first names on 1.15.
        numbered = [name for name in children if _WITH_WEIGHTS.match(name)] or [
            name
            for name, child in children.items()
            if _NUMBERED.match(name) and self.stored.has_tensors(child, self._without)
        ]
        numbered.sort(key=lambda name: int(name.rpartition("-")[2]))
        nodes = [children[name] for name in numbered]
        if nodes:
            yield from self._paired_layers(nodes, layers_with_weights(value))
        for name, child in children.items():
            if name in _ALIASES or _NUMBERED.match(name) or name in numbered:
                continue
            found = child_of(value, name)
            if found is not None:
                yield child, found
        yield from self._numbered_weights(number, value)
        for name in _LISTS_OF_LAYERS:
            if name in children:
                yield from self._listed_layers(children[name], value)

    def _numbered_weights(self, number: int, value: object) -> Iterator[Tuple[int, Variable]]:
        """Pairs the weights of a layer in an HDF5 file, where they have numbers."""
        children = self.stored.nodes[number].children
        for kind, weights in (("legacy:", numbered_weights), ("own:", own_variables)):
            nodes = [child for name, child in children.items() if name.startswith(kind)]
            if not nodes:
                continue
            found = weights(value)
            tensors = [self.stored.nodes[node].tensor for node in nodes]
            names = [tensor.name for tensor in tensors if tensor is not None]
            if len(nodes) == len(found) and _same_order(names, list(map(name_of, found))):
                yield from zip(nodes, found)

    def _listed_layers(self, number: int, value: object) -> Iterator[Tuple[int, Layer]]:
        children = self.stored.nodes[number].children
        elements = sorted((name for name in children if name.isdigit()), key=int)
        nodes = [children[name] for name in elements]
        known = [node for node in nodes if self.stored.has_tensors(node, self._without)]
        layers = layers_with_weights(value)
        if len(known) == len(layers):
            yield from self._paired_layers(known, layers)

    def _paired_layers(
        self, nodes: Sequence[int], layers: Sequence[Layer]
    ) -> Iterator[Tuple[int, Layer]]:
        if len(nodes) != len(layers):
            return  # an order would be a guess; what fits only one variable is found later
        by_name = self._paired_by_name(nodes, layers)
        if by_name:
            yield from by_name
        elif not contradict(list(map(self._label, nodes)), [layer.name for layer in layers]):
            yield from zip(nodes, layers)

    def _label(self, number: int) -> str:
        """Returns the name of a layer in the file, or "" if the file does not show it."""
        node = self.stored.nodes[number]
        if node.label:
            return node.label
        tensors = (self.stored.nodes[child].tensor for child in node.children.values())
        return next((names_in(tensor.name)[0] for tensor in tensors if tensor is not None), "")

    def _paired_by_name(
        self, nodes: Sequence[int], layers: Sequence[Layer]
    ) -> Optional[List[Tuple[int, Layer]]]:
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

    def _match_what_is_left(self) -> None:
        """Matches the variables of a layer whose attributes have other names in the file.

        Each one needs a last name and a shape that no other one of the same layer has.
        """
        unused = set(self.unused())
        for number, value in list(self._objects.items()):
            tensors = self._left_tensors(number, unused)
            variables = self._left_variables(value) if tensors else {}
            for kind, numbers in tensors.items():
                fitting = variables.get(kind, [])
                if len(numbers) == 1 and len(fitting) == 1:
                    self._take(numbers[0], fitting[0])

    def _left_tensors(self, number: int, unused: Set[int]) -> Dict[Any, List[int]]:
        """Returns the nodes of a layer's own tensors, by last name and shape."""
        found = collections.defaultdict(list)
        for attribute, child in self.stored.nodes[number].children.items():
            tensor = self.stored.nodes[child].tensor
            if child in unused and tensor is not None:
                name = (tensor.name or attribute).split("/")[-1]
                found[name, tensor.shape].append(child)
        return found

    def _left_variables(self, layer: Layer) -> Dict[Any, List[Variable]]:
        """Returns a layer's own variables, by last name and shape."""
        found = collections.defaultdict(list)
        for variable in direct_variables(layer):
            if id(variable) not in self._taken:
                name = name_of(variable).split("/")[-1]
                found[name, shape_of(variable)].append(variable)
        return found


def contradict(in_file: Sequence[str], in_program: Sequence[str]) -> bool:
    """Returns whether names say that a file and a program do not have the same order.

    They do if the layer at a place of the file has another name, numbers aside, than that of the
    program, which has that name elsewhere, or if the numbers of one name are in another order. A
    name that the program does not have at all says nothing.

    Keras 2 and Keras 3 list layers in lists and dictionaries in different orders, and the weights
    of a frozen layer have another order. Keras numbers the names of layers in the order in which
    they are created, from a number that differs between processes.
    """
    of_file = list(map(_stem_and_number, in_file))
    of_program = list(map(_stem_and_number, in_program))
    stems = {stem for stem, _ in of_program}
    numbers = collections.defaultdict(list)
    for (stem, number), (program_stem, program_number) in zip(of_file, of_program):
        if stem == program_stem:
            numbers[stem].append((number, program_number))
        elif stem in stems:
            return True
    return any(map(_change_order, numbers.values()))


def _change_order(pairs: Sequence[Tuple[int, int]]) -> bool:
    """Returns whether the second numbers of pairs are in another order than the first ones."""
    return any(first[0] < second[0] and first[1] > second[1] for first in pairs for second in pairs)


def _stem_and_number(name: str) -> Tuple[str, int]:
    stem, _, number = name.rpartition("_")
    return (stem, int(number)) if stem and number.isdigit() else (name, 0)


def names_in(path: str) -> Tuple[str, str]:
    """Returns the name of the layer in the name of a variable, and its own."""
    words = path.split("/")
    return (words[-2] if len(words) > 1 else ""), words[-1]


def _same_order(in_file: Sequence[str], in_program: Sequence[str]) -> bool:
    """Returns whether no names of layers and no names of variables contradict an order."""
    of_file, of_program = (list(map(names_in, paths)) for paths in (in_file, in_program))
    return not any(
        contradict([names[part] for names in of_file], [names[part] for names in of_program])
        for part in (0, 1)
    )


def best_match(stored: Stored, program: object, starts: Sequence[int], without: Set[int]) -> Match:
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
    return _best_of(matches)


def _best_of(matches: List[Match]) -> Match:
    """Returns the match that has most variables.

    Raises:
      RestoreError: another object of the file has as many, so that partial=True would be a guess.
    """
    best = max(matches, key=lambda match: (len(match.variables), -len(match.unused())))
    stored = best.stored
    for match in matches:
        same = set(match.variables) == set(best.variables)
        if len(match.variables) == len(best.variables) and not same:
            paths = " and ".join(stored.path_of(found.start) for found in (best, match))
            raise RestoreError(
                f"{stored.path}: {paths} of the file fit the model equally well. Pass "
                "model={name: model} with its name in the file."
            )
    return best
