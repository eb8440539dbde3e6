"""Reads TensorFlow checkpoints: the index, single numbers and the object graph."""

from typing import Dict, Iterable, Iterator, List, Optional, Tuple, Union

from tf_lossscale._checkpoint import dtypes, object_graph, scalars, storage
from tf_lossscale._checkpoint.bundle import INDEX, Bundle, Record, slice_key, split_slice_key
from tf_lossscale._checkpoint.errors import CheckpointError, DamagedError
from tf_lossscale._checkpoint.names import Entry
from tf_lossscale._checkpoint.object_graph import ObjectGraph
from tf_lossscale._checkpoint.objects import Node
from tf_lossscale._checkpoint.one_file import OneFile
from tf_lossscale._checkpoint.wire import read_varint

__all__ = ["OBJECT_GRAPH", "Reader"]

# The key under which TensorFlow stores the object graph.
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VALUE = "VARIABLE_VALUE"
_LARGEST_NUMBER = 16
_LARGEST_GRAPH = 2**26

Stored = Tuple[bytes, Record, Iterable[bytes]]


class Reader:
    """A TensorFlow checkpoint, which reads tensors only on request.

    Attributes:
      prefix: its path, without the suffixes of its files.
      tensors: the index entries, by key.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._files: Union[Bundle, OneFile] = (
            Bundle(prefix) if storage.exists(prefix + INDEX) else OneFile(prefix)
        )
        self._slices: Dict[bytes, List[bytes]] = {}
        self.tensors: Dict[str, Entry] = {}
        for key, record in self._files.records.items():
            if key.startswith(b"\0"):
                try:
                    self._slices.setdefault(split_slice_key(key)[0], []).append(key)
                except DamagedError as error:
                    raise CheckpointError(f"{prefix}{INDEX}: damaged: {error}") from error
            else:
                self.tensors[_text(key)] = Entry(dtypes.name_of(record.dtype), record.shape)

    @property
    def has_objects(self) -> bool:
        """Whether it is an object checkpoint rather than one by variable names."""
        return OBJECT_GRAPH in self.tensors

    def number(self, key: str) -> Optional[Union[int, float]]:
        """Returns the value of a scalar; None for any other tensor."""
        entry = self.tensors[key]
        if entry.shape or not scalars.is_number(entry.dtype):
            return None
        return scalars.decode(self._files.read(_bytes(key), _LARGEST_NUMBER), entry.dtype)

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

    def object_graph(self) -> ObjectGraph:
        """Returns the graph of its objects."""
        if self.tensors[OBJECT_GRAPH] != Entry("string", ()):
            raise CheckpointError(f"{self.prefix}: damaged: its object graph is not a string")
        data = self._files.read(_bytes(OBJECT_GRAPH), _LARGEST_GRAPH)
        try:
            return object_graph.parse(_only_string(data))
        except DamagedError as error:
            raise CheckpointError(f"{self.prefix}: its object graph is damaged: {error}") from error

    def stored(self, key: str, new_key: str) -> Iterator[Stored]:
        """Yields a tensor, and its slices if it is partitioned, for `bundle.write`.

        Args:
          key: its key in this checkpoint.
          new_key: its key in the new checkpoint.
        """
        old, new = _bytes(key), _bytes(new_key)
        record = self._files.records[old]
        if not record.slices:
            yield new, record, self._files.chunks(old)
            return
        yield new, record, ()
        for each in self._slices.get(old, []):
            _, extents = split_slice_key(each)
            yield slice_key(new, extents), self._files.records[each], self._files.chunks(each)


def _only_string(data: bytes) -> bytes:
    """Returns the string of a scalar, which follows its length and a checksum of four bytes."""
    return data[read_varint(data, 0)[1] + 4 :]


def _text(key: bytes) -> str:
    return key.decode("utf-8", "surrogateescape")


def _bytes(key: str) -> bytes:
    return key.encode("utf-8", "surrogateescape")
