"""What a file holds, in one form for all formats: a graph of named objects, some with a tensor.

`object_files` and `hdf5_files` read files into it. `matching` finds the variables of the program
that belong to its tensors.
"""

from typing import Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple

from tf_lossscale._types import Array, Config

Shape = Tuple[int, ...]


class RestoreError(ValueError):
    """A file does not fit the program, or cannot be read; nothing of the program was changed.

    The message is one line: the file, and the first difference with the names of both sides.
    """


class Tensor(NamedTuple):
    key: str  # under which the file has it
    shape: Shape
    dtype: str
    name: str = ""  # of the variable, if the file has it


class Slot(NamedTuple):
    """A slot of `OptimizerV2`, which belongs to a variable; both are numbers of nodes."""

    name: str
    variable: int
    slot: int


class Node:
    """An object in a file: its children by their names, its tensor, slots, and a layer's name."""

    def __init__(self) -> None:
        self.children: Dict[str, int] = {}
        self.tensor: Optional[Tensor] = None
        self.slots: List[Slot] = []
        self.label = ""


class Stored:
    """The contents of a file; node 0 is the root."""

    def __init__(
        self, path: str, format: str, nodes: List[Node], read: Callable[[List[Tensor]], List[Array]]
    ) -> None:
        self.path = path
        self.format = format
        self.nodes = nodes
        self.read = read
        self.config: Config = {}  # of the inner optimizer, in HDF5 files of Keras 2
        self.others: List[Tensor] = []  # values of tables and of Python objects
        self.lacks_scale = False  # whether files of this format never have a loss scale
        self.is_of_keras_3 = False  # known of HDF5 files only
        self.of_optimizers: Set[int] = set()  # nodes
        self._paths: Optional[Dict[int, str]] = None
        self._by_name: Optional[Dict[str, List[int]]] = None

    def path_of(self, number: int) -> str:
        """Returns the shortest path of a node from the root, for messages."""
        if self._paths is None:
            self._paths = {0: ""}
            waiting = [0]
            for parent in waiting:
                for name, child in self.nodes[parent].children.items():
                    if child not in self._paths:
                        start = self._paths[parent]
                        self._paths[child] = f"{start}/{name}" if start else name
                        waiting.append(child)
        return self._paths.get(number, f"object {number}")

    def named(self, name: str) -> List[int]:
        """Returns the nodes of the variables of a name that belong to no optimizer."""
        if self._by_name is None:
            self._by_name = {}
            for number, node in enumerate(self.nodes):
                own = "" if node.tensor is None else node.tensor.name
                if own and number not in self.of_optimizers:
                    self._by_name.setdefault(own, []).append(number)
        return self._by_name.get(name, [])

    def below(self, number: int, without: Iterable[int] = ()) -> Iterator[int]:
        """Yields the numbers of a node and of what is below it, but not of nodes of `without`."""
        seen: Set[int] = set(without)
        waiting = [number]
        while waiting:
            number = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            yield number
            waiting += reversed(list(self.nodes[number].children.values()))

    def has_tensors(self, number: int, without: Iterable[int] = ()) -> bool:
        return any(self.nodes[found].tensor for found in self.below(number, without))


def add_node(nodes: List[Node], parent: int, name: str, tensor: Optional[Tensor] = None) -> int:
    """Appends a node as a child of another one, and returns its number."""
    node = Node()
    node.tensor = tensor
    nodes.append(node)
    nodes[parent].children[name] = len(nodes) - 1
    return len(nodes) - 1
