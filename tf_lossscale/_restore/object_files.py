"""Reads the object graphs of TensorFlow checkpoints, and the tensors of their objects."""

from typing import List, Optional

import numpy as np

from tf_lossscale._checkpoint.locate import CheckpointError
from tf_lossscale._checkpoint.tensorflow_files import Checkpoint
from tf_lossscale._restore import saver_files
from tf_lossscale._restore.stored import Node, RestoreError, Slot, Stored, Tensor
from tf_lossscale._types import Array, ObjectGraph
from tf_lossscale._versions.base import tf

# What belongs to variables, and the configurations in files of TensorFlow 2.0 to 2.3.
_KNOWN_ATTRIBUTES = ("/VARIABLE_VALUE", "/OBJECT_CONFIG_JSON")


def read(prefix: str, names: Optional[saver_files.Names] = None) -> Stored:
    """Reads the objects of a checkpoint, or the names of a file of the Saver; no tensor yet."""
    checkpoint = _opened(prefix)
    if not checkpoint.has_objects:
        return saver_files.read(checkpoint, names, Reader(checkpoint))
    if names is not None:
        raise RestoreError(
            f"{prefix}: is no file of tf.train.Saver: its variables are found without names="
        )
    return stored_of(checkpoint)


def stored_of(checkpoint: Checkpoint) -> Stored:
    """Returns the objects of a checkpoint that has any."""
    nodes, reader = _nodes(checkpoint), Reader(checkpoint)
    stored = Stored(checkpoint.prefix, "checkpoint with objects", nodes, reader)
    stored.others = [
        Tensor(key, shape, dtype)
        for key, (dtype, shape) in sorted(checkpoint.tensors.items())
        if "/.ATTRIBUTES/" in key and not key.endswith(_KNOWN_ATTRIBUTES)
    ]
    return stored


def _nodes(checkpoint: Checkpoint) -> List[Node]:
    """Returns the objects of a checkpoint; the first one is the root."""
    nodes = []
    for proto in _graph(checkpoint).nodes:
        node = Node()
        node.children = {child.local_name: child.node_id for child in proto.children}
        node.slots = [
            Slot(slot.slot_name, slot.original_variable_node_id, slot.slot_variable_node_id)
            for slot in proto.slot_variables
        ]
        for attribute in proto.attributes:
            if attribute.name == "VARIABLE_VALUE":
                node.tensor = _tensor(checkpoint, attribute.checkpoint_key, attribute.full_name)
        nodes.append(node)
    return nodes


def _graph(checkpoint: Checkpoint) -> ObjectGraph:
    try:
        return checkpoint.object_graph()
    except (CheckpointError, tf.errors.OpError, ValueError, AttributeError) as error:
        raise RestoreError(str(error)) from error


def _opened(prefix: str) -> Checkpoint:
    try:
        return Checkpoint(prefix)
    except CheckpointError as error:
        raise RestoreError(str(error)) from error
    except (tf.errors.OpError, ValueError, RuntimeError, IndexError) as error:
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise RestoreError(f"{prefix}: cannot be read as a checkpoint: {line}") from error


def _tensor(checkpoint: Checkpoint, key: str, name: str) -> Tensor:
    if key not in checkpoint.tensors:
        raise RestoreError(
            f"{checkpoint.prefix}: damaged: its object graph refers to {key!r}, which is not in "
            "its index"
        )
    dtype, shape = checkpoint.tensors[key]
    return Tensor(key, shape, dtype, name)


class Reader:
    """Reads tensors of a checkpoint; an error names the first one that is damaged."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint

    def __call__(self, tensors: List[Tensor]) -> List[Array]:
        return [self._read(tensor) for tensor in tensors]

    def _read(self, tensor: Tensor) -> Array:
        try:
            return np.asarray(self._checkpoint.read(tensor.key))
        except (tf.errors.OpError, ValueError, RuntimeError, IndexError) as error:
            line = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise RestoreError(
                f"{self._checkpoint.prefix}: damaged at {tensor.key!r}: {line}"
            ) from error
