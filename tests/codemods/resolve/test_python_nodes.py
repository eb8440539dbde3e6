"""The nodes of a tree are those of `ast.walk`, but for operators and the contexts of names."""

import ast
import inspect
import sys

import pytest
from tf_lossscale_codemods.resolve.python_nodes import PythonNodes

LEFT_OUT = (ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)
SYNTAX = """
@decorated(1, *many, key=b"1", **more)
async def function(first, /, second: int = 2, *rest, last=None, **others) -> str:
    global name, other
    async with opened() as file, locked:
        return f"{first!r:>{second}}", {**others, 1: [*rest]}, (yield)
class Defined(Base, metaclass=Meta):
    field: int = 1 if -a < b <= c else not (d and e)
try:
    del x[1:2:3], y.z
except (A, B) as error:
    raise E from error
for i, (j, *k) in {n: m for n in o if p async for m in q}: break
else: assert (w := lambda v: ~v), "no"
while True: continue
"""
NEWER = {
    (3, 10): "match x:\n case {'a': 1, **rest} | [1, *more] | Point(x=None) as y if z: pass\n",
    (3, 12): "type Alias[T: int, *Ts, **P] = list[T]\n",
}
SOURCES = [SYNTAX, *(text for version, text in NEWER.items() if sys.version_info >= version)]


@pytest.mark.parametrize("source", [*SOURCES, inspect.getsource(ast), inspect.getsource(inspect)])
def test_each_node_is_found_once(source):
    tree = ast.parse(source)
    wanted = [node for node in ast.walk(tree) if not isinstance(node, LEFT_OUT)]
    found = PythonNodes([tree]).all()
    assert sorted(map(id, found)) == sorted(map(id, wanted))
    parents = {id(part): node for node in wanted for part in ast.iter_child_nodes(node)}
    assert PythonNodes([tree]).parents.items() >= {
        (number, parents[number]) for number in map(id, wanted) if number in parents
    }
    assert PythonNodes([tree]).of(ast.Name) == [node for node in found if type(node) is ast.Name]


def test_calls_and_attributes_by_name():
    nodes = PythonNodes([ast.parse("a.run(run(1), x[0]())\na.b.run\na.b = 1\n")])
    assert {name: len(calls) for name, calls in nodes.calls.items()} == {"run": 2, "": 1}
    assert len(nodes.calls_of(["run", "none"])) == 2
    assert {name: len(found) for name, found in nodes.attributes.items()} == {"run": 2, "b": 2}
