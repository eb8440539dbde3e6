"""The models, variables and optimizers below an object of the program, by their paths."""

from typing import Dict, Iterator, Mapping, NamedTuple, Optional, Set, Tuple

from tf_lossscale._restore.optimizers import children_of, is_optimizer
from tf_lossscale._restore.program import is_variable, weights_of
from tf_lossscale._restore.stored import Stored
from tf_lossscale._types import Checkpoint, Model, Optimizer, SavedObject
from tf_lossscale._versions.base import tf
from tf_lossscale._versions.files import Trackable

CHECKPOINTS = (tf.train.Checkpoint, tf.compat.v1.train.Checkpoint)
_COLLECTIONS = (list, tuple, dict)


class Parts(NamedTuple):
    """What restore() takes apart, by the paths in the file, such as `trainer/net`."""

    models: Dict[str, Model]
    optimizers: Dict[str, Optimizer]


def parts_of_checkpoint(stored: Stored, checkpoint: Checkpoint) -> Parts:
    """Returns the parts of a `tf.train.Checkpoint`.

    The counter of its saves is one of the variables, so that the next save is a new file.
    """
    found = _parts(stored, "", checkpoint, set())
    if "save_counter" in stored.nodes[0].children:
        found.models["save_counter"] = checkpoint.save_counter
    return found


def parts_of_mapping(stored: Stored, named: Mapping[str, SavedObject]) -> Parts:
    """Returns the parts of a dictionary that the program passes, which names all that it has."""
    found = Parts({}, {})
    for name, value in named.items():
        below = _parts(stored, name, value, set())
        if not below.models and not below.optimizers:
            below.models[name] = value  # for the error that it has no variables
        found.models.update(below.models)
        found.optimizers.update(below.optimizers)
    return found


def _parts(stored: Stored, path: str, value: SavedObject, seen: Set[int]) -> Parts:
    """Returns the parts below an object; the object itself if its own list of variables has all.

    A `tf.Module` on Keras 3 does not list the variables of Keras models that it holds.
    """
    if id(value) in seen:
        return Parts({}, {})
    seen.add(id(value))
    if is_optimizer(value):
        return Parts({}, {path: value})
    if is_variable(value) or _is_of_keras(value):
        is_left_out = not weights_of(value) and _has_no_values(stored, path)
        return Parts({} if is_left_out else {path: value}, {})  # such as an activation
    found = Parts({}, {})
    for name, child in _children(stored, path, value):
        below = _parts(stored, f"{path}/{name}" if path else name, child, seen)
        found.models.update(below.models)
        found.optimizers.update(below.optimizers)
    return Parts({path: value}, {}) if _is_whole(value, found) else found


def _is_whole(value: SavedObject, found: Parts) -> bool:
    """Whether an object is restored by its own list of variables, and not by the parts below it."""
    if found.optimizers:
        return False
    if not found.models and hasattr(value, "variables"):
        return not isinstance(value, _COLLECTIONS)
    listed = {id(variable) for variable in weights_of(value)}
    below_it = {id(variable) for variable in weights_of(list(found.models.values()))}
    return bool(listed) and below_it <= listed


def _is_of_keras(value: SavedObject) -> bool:
    """Whether an object is a model or a layer. What TensorFlow makes of lists has weights, too."""
    has_weights = isinstance(getattr(type(value), "weights", None), property)
    return has_weights and not isinstance(value, _COLLECTIONS)


def _children(stored: Stored, path: str, value: SavedObject) -> Iterator[Tuple[str, SavedObject]]:
    """Yields what a checkpoint saves below an object, by name."""
    if not isinstance(value, Trackable):
        if isinstance(value, dict):
            yield from ((str(name), child) for name, child in value.items())
        elif isinstance(value, (list, tuple)):
            yield from ((str(number), child) for number, child in enumerate(value))
        return
    children = children_of(value)
    root = vars(value).get("_root") if isinstance(value, CHECKPOINTS) else None
    if root is not None:  # the file has the children of it, and it as a child of itself
        children = {name: own for name, own in children.items() if own is not root}
        yield from ((("", root),) if _is_of_keras(root) else _children(stored, path, root))
    yield from children.items()
    if not children and root is None:
        yield from _unlisted(stored, path, value)


def _unlisted(stored: Stored, path: str, value: SavedObject) -> Iterator[Tuple[str, SavedObject]]:
    """Yields children that are found by their names only: of TensorFlow's loss scales, from 2.9."""
    node = node_at(stored, path)
    if node is None:
        return
    for name in stored.nodes[node].children:
        child = value._lookup_dependency(name)
        if child is not None:
            yield name, child


def _has_no_values(stored: Stored, path: str) -> bool:
    """Whether the file has an object at a path, and no values in it or below it."""
    number = node_at(stored, path)
    return number is not None and not stored.has_tensors(number)


def node_at(stored: Stored, path: str) -> Optional[int]:
    """Returns the node at a path of the file, or None. The names in it can have slashes."""
    waiting = [(0, path)]
    while waiting:
        number, left = waiting.pop()
        if not left:
            return number
        for name, child in stored.nodes[number].children.items():
            if left == name:
                return child
            if name and left.startswith(name + "/"):
                waiting.append((child, left[len(name) + 1 :]))
    return None
