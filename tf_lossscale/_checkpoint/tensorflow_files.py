"""Reads TensorFlow checkpoints and writes their copies, with TensorFlow."""

import os
from typing import Any, Dict, Iterator, Optional

from tf_lossscale._checkpoint import finding
from tf_lossscale._checkpoint.finding import OBJECT_GRAPH, Entry, State, Variable
from tf_lossscale._checkpoint.locate import CheckpointError, sizes_of_files
from tf_lossscale._checkpoint.plans import Plan
from tf_lossscale._types import Array, CheckpointReader, ObjectGraph
from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.files import TrackableObjectGraph


class Checkpoint:
    """A TensorFlow checkpoint, which reads tensors only on request."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._reader: CheckpointReader = tf1.train.NewCheckpointReader(prefix)
        dtypes = self._reader.get_variable_to_dtype_map()
        self.tensors: Dict[str, Entry] = {
            key: Entry(tf.as_dtype(dtypes[key]).name, tuple(shape))
            for key, shape in self._reader.get_variable_to_shape_map().items()
        }
        self.has_objects = OBJECT_GRAPH in self.tensors  # its keys are not variable names
        self._check_data_files()

    def _check_data_files(self) -> None:
        """Compares the tensors with the size of the data files.

        TensorFlow skips a damaged block of an index of more than 256 KiB without an error, and so
        loses the tensors in it. Data files are the bytes of all tensors, without gaps.
        """
        sizes = sizes_of_files(self.prefix)
        if sizes.pop(self.prefix + ".index", None) is None:
            return  # a single-file checkpoint, which lists all tensors in its first entry
        stored, needed = sum(sizes.values()), sum(map(self._least_bytes, self.tensors))
        if needed <= stored:
            kinds = {entry.dtype for entry in self.tensors.values()}
            if kinds & {"variant", "resource"}:
                return  # whose size only their own code knows
            strings = [key for key, entry in self.tensors.items() if entry.dtype == "string"]
            needed += sum(self._string_bytes(key) - self._least_bytes(key) for key in strings)
        if needed != stored:
            what = "truncated or missing" if needed > stored else "larger than its index describes"
            raise CheckpointError(
                f"{self.prefix}: damaged: data files are {what}: they have {stored} bytes, and the "
                f"tensors in the index {needed}"
            )

    def _least_bytes(self, key: str) -> int:
        dtype, shape = self.tensors[key]
        size = {"string": 1, "variant": 0, "resource": 0}.get(dtype, tf.as_dtype(dtype).size)
        for dimension in shape:
            size *= dimension
        return int(size)

    def _string_bytes(self, key: str) -> int:
        """Returns the size of a tensor of strings: each with its length, and one checksum."""
        value: Array = self._reader.get_tensor(key)
        strings = [value] if isinstance(value, bytes) else value.ravel().tolist()
        lengths = map(len, strings)
        return 4 + sum(length + max(1, -(-length.bit_length() // 7)) for length in lengths)

    def read(self, key: str) -> Array:
        """Returns the value of a tensor."""
        return self._reader.get_tensor(key)

    def states(self) -> Iterator[State]:
        if self.has_objects:
            found = finding.by_object(self.object_graph(), self.tensors)
        else:
            found = finding.by_name(self.tensors)
        for layout, keys in found:
            roles = [(keys[name], role) for name, role in layout.roles.items() if name in keys]
            yield State(layout, tuple(self._variable(key, role) for key, role in roles))

    def _variable(self, key: str, role: str) -> Variable:
        if key not in self.tensors:
            raise CheckpointError(
                f"{self.prefix}: damaged: its object graph refers to {key!r}, which is not in its "
                "index"
            )
        dtype, shape = self.tensors[key]
        kind = tf.as_dtype(dtype)
        number: Any = float if kind.is_floating else int if kind.is_integer else None
        value = number(self._reader.get_tensor(key)) if number and not shape else None
        return Variable(key, role, dtype, value)

    def object_graph(self) -> Optional[ObjectGraph]:
        """Reads the object graph; raises CheckpointError if it refers to missing objects.

        A hostile or damaged file can have such a graph.
        """
        if self.tensors[OBJECT_GRAPH] != Entry("string", ()):
            raise CheckpointError(f"{self.prefix}: damaged: its object graph is not a string")
        value: Array = self._reader.get_tensor(OBJECT_GRAPH)
        graph = TrackableObjectGraph.FromString(value if isinstance(value, bytes) else value.item())
        for node in graph.nodes:
            numbers = [child.node_id for child in node.children]
            for slot in node.slot_variables:
                numbers += [slot.original_variable_node_id, slot.slot_variable_node_id]
            if any(not 0 <= number < len(graph.nodes) for number in numbers):
                raise CheckpointError(
                    f"{self.prefix}: its object graph is damaged: an object refers to one that is "
                    "missing"
                )
        return graph


def write(checkpoint: Checkpoint, plan: Plan, prefix: str) -> None:
    """Writes a planned checkpoint, and the file that names it as the latest of its directory."""
    # One thread, as threads need memory, which is limited, and holds all tensors at once.
    config = tf1.ConfigProto(
        intra_op_parallelism_threads=1,
        inter_op_parallelism_threads=1,
        use_per_session_threads=True,
        device_count={"GPU": 0},
    )
    sources = [tensor.source for tensor in plan.tensors if tensor.source is not None]
    with tf.Graph().as_default(), tf1.Session(config=config) as session:
        restored = tf.raw_ops.RestoreV2(
            prefix=checkpoint.prefix,
            tensor_names=sources,
            shape_and_slices=[""] * len(sources),
            dtypes=[checkpoint.tensors[source].dtype for source in sources],
        )
        old = dict(zip(sources, restored))
        values = [
            tf.constant(tensor.value, tensor.dtype)
            if tensor.source is None
            else tf.cast(old[tensor.source], tensor.dtype)  # does nothing to one of this type
            for tensor in plan.tensors
        ]
        save = tf.raw_ops.SaveV2(
            prefix=prefix,
            tensor_names=[tensor.key for tensor in plan.tensors],
            shape_and_slices=[""] * len(values),
            tensors=values,
        )
        try:
            session.run(save)
        except tf.errors.OpError as error:
            if error.op is not save:
                raise
            name, last = os.path.basename(prefix), error.message.rpartition("; ")[2]
            reason = last.partition("\n")[0]  # what follows names the operation
            raise CheckpointError(f"{name}: the copy cannot be written: {reason}") from error
    tf1.train.update_checkpoint_state(os.path.dirname(prefix), os.path.basename(prefix))
