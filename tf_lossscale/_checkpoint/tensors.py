"""Reads TensorFlow checkpoints: the index, single numbers and the graph of objects."""

from typing import Any, Dict, List, Optional, Union

from tf_lossscale._checkpoint.errors import CheckpointError
from tf_lossscale._checkpoint.names import Entry
from tf_lossscale._checkpoint.objects import Node

__all__ = ["OBJECT_GRAPH", "Reader"]

# The key that TensorFlow stores the graph of objects under.
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VALUE = "VARIABLE_VALUE"


class Reader:
    """A TensorFlow checkpoint. Only what is asked for is read.

    Attributes:
      prefix: its path, without the suffixes of its files.
      tensors: what its index says of each tensor, by key.
    """

    def __init__(self, prefix: str) -> None:
        from tf_lossscale._versions import tf

        self.prefix = prefix
        self._errors = (tf.errors.OpError, ValueError, RuntimeError)
        try:
            self._reader: Any = tf.train.load_checkpoint(prefix)
            shapes = self._reader.get_variable_to_shape_map()
            dtypes = self._reader.get_variable_to_dtype_map()
        except self._errors as error:
            raise CheckpointError(
                f"{prefix}: TensorFlow cannot read this checkpoint; is it whole? {_brief(error)}"
            ) from error
        self.tensors: Dict[str, Entry] = {
            key: Entry(tf.as_dtype(dtypes[key]).name, tuple(shape)) for key, shape in shapes.items()
        }

    @property
    def has_objects(self) -> bool:
        """Whether it is a checkpoint of objects, and not one of variables by name."""
        return OBJECT_GRAPH in self.tensors

    def number(self, key: str) -> Optional[Union[int, float]]:
        """Returns the value of a scalar, None for what is no single number."""
        entry = self.tensors[key]
        if entry.shape or not entry.dtype.startswith(("float", "bfloat", "int", "uint")):
            return None
        value = self._tensor(key)
        return int(value) if "int" in entry.dtype else float(value)

    def nodes(self) -> List[Node]:
        """Returns the graph of its objects."""
        return [
            Node(
                {child.local_name: child.node_id for child in node.children},
                next(
                    (each.checkpoint_key for each in node.attributes if each.name == _VALUE), None
                ),
            )
            for node in self.object_graph().nodes
        ]

    def object_graph(self) -> Any:
        """Returns the graph of its objects as TensorFlow's protocol buffer."""
        from tf_lossscale._versions import ObjectGraph

        graph = ObjectGraph()
        graph.ParseFromString(self._tensor(OBJECT_GRAPH))
        return graph

    def _tensor(self, key: str) -> Any:
        try:
            return self._reader.get_tensor(key)
        except self._errors as error:
            raise CheckpointError(
                f"{self.prefix}: TensorFlow cannot read {key}; is the checkpoint whole? "
                f"{_brief(error)}"
            ) from error


def _brief(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
