"""`tf-lossscale checkpoint inspect`: reads the loss-scale state at a path, in any format."""

from typing import List, Tuple

from tf_lossscale._checkpoint import isolated, names, objects
from tf_lossscale._checkpoint.errors import CheckpointError
from tf_lossscale._checkpoint.layouts import Contents, State, Variable
from tf_lossscale._checkpoint.locate import HDF5, KERAS, Place, locate
from tf_lossscale._checkpoint.names import Found
from tf_lossscale._checkpoint.tensors import Reader

__all__ = ["contents_of", "read", "states_of"]


def read(path: str) -> Contents:
    """Returns the loss-scale state at a path.

    Args:
      path: a path for `locate`.

    Raises:
      CheckpointError: nothing can be read from the path.
    """
    place = locate(path)
    if place.format in (HDF5, KERAS):
        return isolated.read(place)
    return contents_of(place, Reader(place.path))


def contents_of(place: Place, reader: Reader) -> Contents:
    """Returns the loss-scale state in a TensorFlow checkpoint."""
    keys = "objects (tf.train.Checkpoint)" if reader.has_objects else "names (tf.train.Saver)"
    return Contents(place.path, f"{place.format}, keys by {keys}", states_of(reader))


def states_of(reader: Reader) -> Tuple[State, ...]:
    """Returns the loss scales in a TensorFlow checkpoint."""
    found: List[Found]
    if reader.has_objects:
        found = objects.find(reader.nodes(), reader.tensors)
    else:
        found = names.find(reader.tensors)
    return tuple(_state(each, reader) for each in found)


def _state(found: Found, reader: Reader) -> State:
    missing = sorted(set(found.keys.values()) - set(reader.tensors))
    if missing:
        raise CheckpointError(
            f"{reader.prefix}: damaged: its object graph refers to {missing[0]!r}, which is not in "
            "its index"
        )
    variables = tuple(
        Variable(key, role, reader.tensors[key].dtype, reader.number(key))
        for key, role in (
            (found.keys[name], role)
            for name, role in found.layout.roles.items()
            if name in found.keys
        )
    )
    return State(found.layout, variables)
