"""Which variable a tensor of a file belongs to, where names do not say it: never by a guess."""

from typing import Any, List

import pytest
import support
import tensorflow as tf

from tf_lossscale._restore.matching import Match, contradict
from tf_lossscale._restore.stored import Node, Stored, Tensor, add_node


class Net:
    """A part of a program, whose attributes have other names than in the file."""

    def __init__(self, *shapes: List[int]):
        for number, shape in enumerate(shapes):
            setattr(self, f"mine_{number}", tf.Variable(tf.zeros(shape), name="w"))


def matched(net: Any, *shapes: List[int]) -> Match:
    """The match with a file whose variables have these shapes, and all one name."""
    nodes = [Node()]
    for number, shape in enumerate(shapes):
        tensor = Tensor(str(number), tuple(shape), "float32", "net/w")
        add_node(nodes, 0, f"old_{number}", tensor)
    return Match(Stored("file", "checkpoint", nodes, lambda tensors: []), 0, set()).walk(net)


def test_the_only_one_of_a_name_and_a_shape_belongs_to_the_only_one():
    with support.eager():
        net = Net([2], [3])
        match = matched(net, [3], [2])
    assert match.variables[1] is net.mine_1
    assert match.variables[2] is net.mine_0
    assert match.unused() == []


@pytest.mark.parametrize(("in_program", "in_file"), [(1, 2), (2, 1), (2, 2)])
def test_of_several_none_is_chosen(in_program: int, in_file: int):
    with support.eager():
        net = Net(*[[2]] * in_program)
        match = matched(net, *[[2]] * in_file)
    assert match.variables == {}
    assert len(match.unused()) == in_file


ORDERS = [
    (["dense", "conv"], ["dense", "conv"], False),
    (["dense_4", "dense_7"], ["dense", "dense_1"], False),
    (["mine", "conv"], ["other", "conv"], False),
    (["dense_7", "dense_4"], ["dense", "dense_1"], True),
    (["dense", "conv"], ["conv", "dense"], True),
    (["conv", "mine"], ["dense", "conv"], True),
]


@pytest.mark.parametrize(("in_file", "in_program", "expected"), ORDERS)
def test_names_can_contradict_an_order(in_file: List[str], in_program: List[str], expected: bool):
    assert contradict(in_file, in_program) is expected
