"""What is lost where TensorFlow restores a checkpoint of Keras 2 into a program on Keras 3.

TensorFlow finds a variable by the attributes that lead to it. Those of a `tf.Module` are the same
on each Keras, as the program chooses them. Keras 3 has others than Keras 2 for its layers.

A value that no object has taken is not lost by this alone: the program may have left out a part on
purpose, such as a counter or one of two models. It is lost if a variable of the program has no
value instead, or if a layer has the attribute of this name but TensorFlow does not see it.
"""

from typing import Any, Dict, Iterable, Iterator, List, Sequence, Set

from tf_lossscale._versions.base import tf
from tf_lossscale._versions.keras import is_keras_object


class Restored:
    """What TensorFlow knows of a restore: the objects of the file, and of the program.

    Args:
      checkpoint: of a file of Keras 2.
      later: the same of files of Keras 3 that the program has restored after it.
    """

    def __init__(self, checkpoint: Any, later: Sequence[Any]) -> None:
        self.nodes: Sequence[Any] = checkpoint.object_graph_proto.nodes
        # Objects that live no longer, such as a counter of a function, are matched, too.
        self.matched: Set[int] = checkpoint.matched_proto_ids
        self._objects = _living(checkpoint)
        self._later = [found for other in later for found in _living(other).values()]
        self._unused = self._unused_values()

    def lost_values(self, trained: Sequence[Any]) -> List[str]:
        """Returns the names of values of models that are lost.

        Args:
          trained: the variables that the optimizer trains; none if this is not known yet.
        """
        lost = self._unused
        if lost and not self.has_variables_without_value(trained):
            lost = lost & self._below_hidden_attributes()
        attributes = (self.nodes[number].attributes[0] for number in sorted(lost))
        return [attribute.full_name or attribute.checkpoint_key for attribute in attributes]

    def unmatched_slots(self, holders: Iterable[Any]) -> List[str]:
        """Returns the names of slots whose variables the program does not have."""
        slots = (slot for holder in holders for slot in holder.slot_variables)
        return [
            slot.slot_name for slot in slots if slot.original_variable_node_id not in self.matched
        ]

    def has_variables_without_value(self, trained: Sequence[Any]) -> bool:
        """Returns whether a variable is not in the file, though on Keras 2 it could be.

        What the program has added to its own `tf.Module` would not be, either.
        """
        incomplete = self._incomplete_layers()
        added = self._added(incomplete)
        wanted = self._named_by_keras(incomplete)
        wanted += [variable for variable in trained if id(variable) not in added]
        restored = {id(found) for found in [*self._objects.values(), *self._later]}
        return any(
            not {id(variable), id(getattr(variable, "value", variable))} & restored
            for variable in wanted
        )

    def _named_by_keras(self, incomplete: Set[int]) -> List[Any]:
        """Returns the variables of incomplete layers, and those that a container has by name."""
        found: List[Any] = []
        for value in self._objects.values():
            if id(value) in incomplete:
                found += _variables_of(value)
            elif not is_keras_object(value) and not isinstance(value, (tf.Module, list)):
                found += filter(_is_variable_of_keras, _children_of(value))
        return found

    def _added(self, incomplete: Set[int]) -> Set[int]:
        """Returns the ids of variables of restored objects, whose names the program chooses.

        Those of layers are among them, if the file has no other value for the layer.
        """
        return {
            id(variable)
            for number, found in self._objects.items()
            if number != 0 or isinstance(found, tf.Module)
            for value in _below(found)
            if id(value) not in incomplete
            for variable in _variables_of(value)
        }

    def _incomplete_layers(self) -> Set[int]:
        """Returns the ids of the layers that the file has unused values for."""
        return {
            id(found)
            for number, found in self._objects.items()
            if is_keras_object(found) and self._unused & _with_all_below(self.nodes, [number])
        }

    def _unused_values(self) -> Set[int]:
        others = _nodes_of_optimizers(self.nodes) | _save_counters(self.nodes) | self.matched
        return {
            number
            for number, node in enumerate(self.nodes)
            if node.attributes and number not in others
        }

    def _below_hidden_attributes(self) -> Set[int]:
        """Returns what is below attributes of layers that TensorFlow does not see on Keras 3.

        Keras 3 keeps `embeddings` in another attribute, and hides lists. A part that the program
        has left out has no attribute.
        """
        later = {id(found) for found in self._later}
        hidden = [
            child.node_id
            for number, found in self._objects.items()
            if is_keras_object(found) and id(found) not in later
            for child in self.nodes[number].children
            if child.node_id not in self.matched and hasattr(found, child.local_name)
        ]
        return _with_all_below(self.nodes, hidden)


def _living(checkpoint: Any) -> Dict[int, Any]:
    """Returns the objects of the program, by their numbers in the file."""
    found = list(checkpoint.object_by_proto_id.items())
    return {number: value for number, value in found if number >= 0}


def _below(found: Any) -> Iterator[Any]:
    """Yields an object and all that it leads to, but nothing within layers or optimizers."""
    waiting, seen = [found], set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen or hasattr(value, "apply_gradients"):
            continue
        seen.add(id(value))
        yield value
        if not is_keras_object(value):
            waiting += _children_of(value)


def _children_of(value: Any) -> List[Any]:
    is_optimizer = hasattr(value, "apply_gradients")
    return [] if is_optimizer else list(value._trackable_children().values())


def _is_variable_of_keras(value: Any) -> bool:
    return is_keras_object(value) and hasattr(value, "assign")


def _variables_of(value: Any) -> Sequence[Any]:
    """Returns the variables of a layer, or a variable itself; none of other objects."""
    if hasattr(value, "assign"):
        return [value]
    return list(getattr(value, "weights", ())) if is_keras_object(value) else []


def _with_all_below(nodes: Sequence[Any], numbers: Iterable[int]) -> Set[int]:
    found: Set[int] = set()
    waiting = [*numbers]
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting += [child.node_id for child in nodes[number].children]
    return found


def _nodes_of_optimizers(nodes: Sequence[Any]) -> Set[int]:
    """Returns the numbers of the nodes of all optimizers, with what is below them, and slots.

    The slots of another optimizer may not exist yet.
    """
    slots = {slot.slot_variable_node_id for node in nodes for slot in node.slot_variables}
    optimizers = [number for number, node in enumerate(nodes) if _is_of_optimizer(node)]
    return slots | _with_all_below(nodes, optimizers)


def _is_of_optimizer(node: Any) -> bool:
    children = {child.local_name for child in node.children}
    return "iter" in children or {"_iterations", "_variables"} <= children


def _save_counters(nodes: Sequence[Any]) -> Set[int]:
    """Returns the number of the save counter, which lives only as long as the `Checkpoint`."""
    return {child.node_id for child in nodes[0].children if child.local_name == "save_counter"}
