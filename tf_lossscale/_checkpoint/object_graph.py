"""Parses and serializes the object graph of an object checkpoint.

Unknown fields, which later versions of TensorFlow may add, are preserved.
"""

import dataclasses
from typing import List, Tuple

from tf_lossscale._checkpoint import wire
from tf_lossscale._checkpoint.errors import DamagedError

__all__ = ["Attribute", "Child", "GraphNode", "ObjectGraph", "SlotVariable", "parse", "serialize"]


@dataclasses.dataclass
class Child:
    """A reference from one object to another, by attribute name."""

    local_name: str
    node_id: int


@dataclasses.dataclass
class Attribute:
    """A value that an object saves, and the key of its tensor."""

    name: str
    full_name: str
    checkpoint_key: str
    other: bytes = b""


@dataclasses.dataclass
class SlotVariable:
    """A slot that an optimizer keeps for a variable."""

    original_variable_node_id: int
    slot_name: str
    slot_variable_node_id: int
    other: bytes = b""


@dataclasses.dataclass
class GraphNode:
    """An object."""

    children: List[Child] = dataclasses.field(default_factory=list)
    attributes: List[Attribute] = dataclasses.field(default_factory=list)
    slot_variables: List[SlotVariable] = dataclasses.field(default_factory=list)
    other: bytes = b""


@dataclasses.dataclass
class ObjectGraph:
    """All objects; they refer to each other by their positions in the list."""

    nodes: List[GraphNode] = dataclasses.field(default_factory=list)


def parse(data: bytes) -> ObjectGraph:
    """Parses a graph.

    Raises:
      DamagedError: the bytes are not an object graph, or an object refers to a missing one.
    """
    graph = ObjectGraph([_node(wire.message(each)) for each in wire.grouped(data).get(1, [])])
    count = len(graph.nodes)
    for node in graph.nodes:
        numbers = [child.node_id for child in node.children]
        numbers += [slot.original_variable_node_id for slot in node.slot_variables]
        numbers += [slot.slot_variable_node_id for slot in node.slot_variables]
        if any(not 0 <= number < count for number in numbers):
            raise DamagedError("an object refers to one that is missing")
    return graph


def serialize(graph: ObjectGraph) -> bytes:
    """Returns the bytes of a graph."""
    return b"".join(wire.bytes_field(1, _node_bytes(node)) for node in graph.nodes)


def _node(data: bytes) -> GraphNode:
    node = GraphNode()
    for number, kind, value in wire.fields(data):
        if number == 1:
            values = wire.grouped(wire.message(value))
            node.children.append(Child(_text(values, 2), wire.signed(values, 1)))
        elif number == 2:
            content = wire.message(value)
            values = wire.grouped(content)
            node.attributes.append(
                Attribute(
                    _text(values, 1), _text(values, 2), _text(values, 3), _other(content, (1, 2, 3))
                )
            )
        elif number == 3:
            content = wire.message(value)
            values = wire.grouped(content)
            node.slot_variables.append(
                SlotVariable(
                    wire.signed(values, 1),
                    _text(values, 2),
                    wire.signed(values, 3),
                    _other(content, (1, 2, 3)),
                )
            )
        else:
            node.other += wire.any_field(number, kind, value)
    return node


def _text(values: wire.Values, number: int) -> str:
    try:
        return wire.message(values.get(number, [b""])[-1]).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DamagedError("a name in the object graph is not text") from error


def _other(data: bytes, known: Tuple[int, ...]) -> bytes:
    return b"".join(
        wire.any_field(number, kind, value)
        for number, kind, value in wire.fields(data)
        if number not in known
    )


def _node_bytes(node: GraphNode) -> bytes:
    parts = [
        wire.bytes_field(1, wire.varint_field(1, each.node_id) + _text_field(2, each.local_name))
        for each in node.children
    ]
    parts += [
        wire.bytes_field(
            2,
            _text_field(1, each.name)
            + _text_field(2, each.full_name)
            + _text_field(3, each.checkpoint_key)
            + each.other,
        )
        for each in node.attributes
    ]
    parts += [
        wire.bytes_field(
            3,
            wire.varint_field(1, each.original_variable_node_id)
            + _text_field(2, each.slot_name)
            + wire.varint_field(3, each.slot_variable_node_id)
            + each.other,
        )
        for each in node.slot_variables
    ]
    return b"".join(parts) + node.other


def _text_field(number: int, value: str) -> bytes:
    return wire.bytes_field(number, value.encode("utf-8")) if value else b""
