"""Which binding a name sees, against Python's own rules."""

import symtable
import textwrap

import libcst as cst
import pytest
from tf_lossscale_codemods.resolve.scopes import ScopeBuilder
from tf_lossscale_codemods.resolve.tree import dotted


def built(*sources: str) -> ScopeBuilder:
    builder = ScopeBuilder()
    for source in sources:
        builder.add(cst.parse_module(textwrap.dedent(source)))
    return builder


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        ("f(x=1)", []),
        ("a.x", []),
        ("a.x = 1", []),
        ("a[x] = 1", []),
        ("'x'", []),
        ("# x", []),
        ("del x", []),
        ("import a.x", []),
        ("[x for x in y]", []),
        ("import x", ["import"]),
        ("import a as x", ["import"]),
        ("from a import x", ["import"]),
        ("from a import b as x", ["import"]),
        ("x = 1", ["value"]),
        ("y = x = 1", ["value"]),
        ("x: int = 1", ["value"]),
        ("(x := 1)", ["value"]),
        ("[(x := i) for i in y]", ["value"]),
        ("x, y = 1, 2", ["value"]),
        ("x, y = z", ["other"]),
        ("x, *y = 1, 2", ["other"]),
        ("x += 1", ["other"]),
        ("for x in y: pass", ["other"]),
        ("with a as x: pass", ["other"]),
        ("try: pass\nexcept A as x: pass", ["other"]),
        ("def x(): pass", ["function"]),
        ("class x: pass", ["class"]),
        ("match a:\n    case [x]: pass", ["other"]),
        ("match a:\n    case {**x}: pass", ["other"]),
        ("def h():\n    global x\n    x = 3", ["value"]),
        ("x = 1\nif a:\n    import x\nelse:\n    def x(): pass", ["value", "import", "function"]),
    ],
)
def test_kinds_of_the_bindings_of_a_name(source, kinds):
    bindings = built(source).module_scope.bindings
    assert [binding.kind.value for binding in bindings.get("x", [])] == kinds


def test_values_of_the_names_of_a_tuple():
    bindings = built("x, (y, z) = a, (b, c)").module_scope.bindings
    assert [bindings[name][0].value.value for name in "xyz"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("import a.b as x", "a.b"),
        ("import x.b", "x"),
        ("from a.b import c as x", "a.b.c"),
        ("from . import x", ".x"),
        ("from ..a import x", "..a.x"),
    ],
)
def test_path_of_an_import(source, path):
    (binding,) = built(source).module_scope.bindings["x"]
    assert binding.path == path


def test_a_star_binds_no_name_but_is_kept():
    scope = built("from a.b import *").module_scope
    assert scope.bindings == {}
    assert [path for _, path in scope.stars] == ["a.b"]


NESTED = """
    def f():
        x = 1
        def g():
            nonlocal x
            x = 2
            return x
        def h():
            global x
            x = 3
            return x
    """


@pytest.mark.parametrize(
    ("source", "owners"),
    [
        ("print(x)", ["None"]),
        ("x = 1\nclass A:\n x = 2\n y = x\n def f(self): return x", ["class", "module"]),
        (NESTED, ["function", "module"]),
        # defaults and decorators are read outside
        ("x = 1\n@x\ndef f(x=x, y: x = 2) -> x: return x", ["function", *["module"] * 4]),
        ("x = 1\n[x for x in y]", ["comprehension"]),
    ],
)
def test_scope_whose_binding_a_load_sees(source, owners):
    found = [scope.owner("x") for node, scope in built(source).loads.items() if node.value == "x"]
    kinds = [None if scope is None else scope.kind.value for scope in found]
    assert sorted(map(str, kinds)) == owners


def test_keywords_and_attributes_are_no_loads():
    assert [name.value for name in built("f(x=y).z").loads] == ["f", "y"]


def test_cells_share_the_module_scope():
    builder = built("import a\n", "a.b\n")
    assert [scope.owner("a") for scope in builder.loads.values()] == [builder.module_scope]


@pytest.mark.parametrize(
    "source",
    [
        "",
        "a = 1\ndef f(b, *c, d=1, **e):\n    g = a\n    return lambda h: h + b\n",
        "class A:\n    b = 1\n    def c(self): return b\n",
        "import a, b.c\nfrom d import e as f\nwith a as g: h = g\n",
        "def f():\n    global a\n    a = 1\n    for b in c: d = 2\n",
    ],
)
def test_the_module_binds_what_python_says(source):
    table = symtable.symtable(source, "m", "exec")
    assigned = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
    }
    declared = {
        symbol.get_name()
        for inner in table.get_children()
        for symbol in inner.get_symbols()
        if symbol.is_declared_global() and symbol.is_assigned()
    }
    assert set(built(source).module_scope.bindings) == assigned | declared


def test_dotted():
    assert dotted(cst.parse_expression("a.b.c")) == "a.b.c"
