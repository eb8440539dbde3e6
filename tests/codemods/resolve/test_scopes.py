"""Which binding a name sees, against Python's own rules."""

import symtable
import textwrap

import libcst as cst
import pytest
from tf_lossscale_codemods.resolve.scopes import ScopeBuilder, dotted


def built(*sources: str) -> ScopeBuilder:
    builder = ScopeBuilder()
    for source in sources:
        builder.add(cst.parse_module(textwrap.dedent(source)))
    return builder


def owners(source: str, name: str) -> list:
    """For each load of `name`, in order: the kind of the scope whose binding it sees."""
    builder = built(source)
    found = [scope.owner(name) for node, scope in builder.loads.items() if node.value == name]
    return [None if scope is None else scope.kind for scope in found]


def kinds(source: str, name: str) -> list:
    return [binding.kind for binding in built(source).module_scope.bindings.get(name, [])]


class TestNothingIsBound:
    def test_an_empty_module(self):
        builder = built("")
        assert builder.module_scope.bindings == {}
        assert builder.loads == {}
        assert builder.all == [builder.module_scope]

    @pytest.mark.parametrize(
        "source", ["f(x=1)", "a.x", "a.x = 1", "a[x] = 1", "'x'", "# x", "del x", "import a.x"]
    )
    def test_what_only_looks_like_a_binding(self, source):
        assert kinds(source, "x") == []

    def test_a_builtin_has_no_owner(self):
        assert owners("print(1)", "print") == [None]

    def test_keywords_and_attributes_are_no_loads(self):
        assert [name.value for name in built("f(x=y).z").loads] == ["f", "y"]


class TestKinds:
    @pytest.mark.parametrize(
        ("source", "kind"),
        [
            ("import x", "import"),
            ("import a as x", "import"),
            ("from a import x", "import"),
            ("from a import b as x", "import"),
            ("x = 1", "value"),
            ("y = x = 1", "value"),
            ("x: int = 1", "value"),
            ("(x := 1)", "value"),
            ("[(x := i) for i in y]", "value"),
            ("x, y = 1, 2", "value"),
            ("x, y = z", "other"),
            ("x, *y = 1, 2", "other"),
            ("x += 1", "other"),
            ("for x in y: pass", "other"),
            ("with a as x: pass", "other"),
            ("try: pass\nexcept A as x: pass", "other"),
            ("def x(): pass", "function"),
            ("class x: pass", "class"),
            ("match a:\n    case [x]: pass", "other"),
            ("match a:\n    case {**x}: pass", "other"),
        ],
    )
    def test_one_binding(self, source, kind):
        assert kinds(source, "x") == [kind]

    def test_all_bindings_of_a_name_in_order(self):
        source = "x = 1\nif a:\n    import x\nelse:\n    def x(): pass\n"
        assert kinds(source, "x") == ["value", "import", "function"]

    def test_the_value_of_each_name_of_a_tuple(self):
        bindings = built("x, (y, z) = a, (b, c)").module_scope.bindings
        assert [bindings[name][0].value.value for name in "xyz"] == ["a", "b", "c"]


class TestPaths:
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
    def test_import(self, source, path):
        (binding,) = built(source).module_scope.bindings["x"]
        assert binding.path == path

    def test_a_star_binds_no_name_but_is_kept(self):
        scope = built("from a.b import *").module_scope
        assert scope.bindings == {}
        assert [path for _, path in scope.stars] == ["a.b"]


class TestOwners:
    def test_a_class_is_not_seen_from_its_methods(self):
        source = """
            x = 1
            class A:
                x = 2
                y = x
                def f(self):
                    return x
        """
        assert sorted(owners(source, "x")) == ["class", "module"]

    def test_global_and_nonlocal(self):
        source = """
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
        assert sorted(owners(source, "x")) == ["function", "module"]
        assert kinds(source, "x") == ["value"]

    def test_defaults_and_decorators_are_read_outside(self):
        source = "x = 1\n@x\ndef f(x=x, y: x = 2) -> x:\n    return x\n"
        assert sorted(owners(source, "x")) == ["function"] + ["module"] * 4

    def test_a_comprehension_has_a_scope_of_its_own(self):
        assert owners("x = 1\n[x for x in x]\n", "x").count("comprehension") >= 1
        assert kinds("[x for x in y]", "x") == []

    def test_cells_share_the_module_scope(self):
        builder = built("import a\n", "a.b\n")
        assert [scope.owner("a") for scope in builder.loads.values()] == [builder.module_scope]

    @pytest.mark.parametrize(
        "source",
        [
            "a = 1\ndef f(b, *c, d=1, **e):\n    g = a\n    return lambda h: h + b\n",
            "class A:\n    b = 1\n    def c(self): return b\n",
            "import a, b.c\nfrom d import e as f\nwith a as g: h = g\n",
            "def f():\n    global a\n    a = 1\n    for b in c: d = 2\n",
        ],
    )
    def test_the_module_binds_what_python_says(self, source):
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
