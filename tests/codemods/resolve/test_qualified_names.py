"""What an expression can mean: the paths that its names were imported from."""

import textwrap

import libcst as cst
import pytest
from tf_lossscale_codemods.resolve.qualified_names import (
    CALL,
    LOCAL,
    PARAMETER,
    STAR,
    Origins,
    is_path,
)
from tf_lossscale_codemods.resolve.scopes import ScopeBuilder


def meanings(source: str) -> set:
    """What the value of the last assignment to `it` can be."""
    builder = ScopeBuilder()
    builder.add(cst.parse_module(textwrap.dedent(source)))
    last = [
        binding
        for scope in builder.all
        for bindings in scope.bindings.values()
        for binding in bindings
        if binding.name == "it"
    ][-1]
    return set(Origins().of_expression(last.value, last.scope))


class TestNoPath:
    @pytest.mark.parametrize(
        ("source", "meaning"),
        [
            ("it = 1", LOCAL),
            ("it = 'a.b'", LOCAL),
            ("it = print", LOCAL),
            ("def a(): pass\nit = a", LOCAL),
            ("class a: pass\nit = a", LOCAL),
            ("for a in b: it = a", LOCAL),
            ("import a\nit = a()", CALL),
            ("import a\nit = a.b().c", CALL),
            ("def f(a):\n    it = a.b", PARAMETER),
            ("from b import *\nit = a", STAR),
        ],
    )
    def test_one_meaning(self, source, meaning):
        assert meanings(source) == {meaning}
        assert not is_path(meaning)

    def test_none_is_no_meaning(self):
        assert meanings("it = None") == set()

    def test_a_name_that_is_its_own_value(self):
        assert meanings("a = a\nit = a") == set()
        assert meanings("a = b\nb = a\nit = b") == set()


class TestPaths:
    @pytest.mark.parametrize(
        ("source", "path"),
        [
            ("import a\nit = a", "a"),
            ("import a.b\nit = a.c", "a.c"),
            ("import a.b as c\nit = c.d", "a.b.d"),
            ("from a import b\nit = b.c", "a.b.c"),
            ("from .a import b\nit = b", ".a.b"),
            ("import a\nb = a.c\nit = b.d", "a.c.d"),
            ("import a\nb = c = a\nit = c", "a"),
            ("import a\nb, c = a.d, a.e\nit = c", "a.e"),
            ("import a\nit = (b := a.c)", "a.c"),
            ("import a\ndef f():\n    it = a.b", "a.b"),
            ("a = None\ntry:\n    import a\nexcept ImportError:\n    pass\nit = a", "a"),
        ],
    )
    def test_one_path(self, source, path):
        assert meanings(source) == {path}
        assert is_path(path)

    def test_all_bindings_count(self):
        source = "if x:\n    import a as c\nelse:\n    import b as c\nit = c.d"
        assert meanings(source) == {"a.d", "b.d"}

    def test_both_arms_of_a_conditional_expression(self):
        assert meanings("import a, b\nit = a if x else b.c") == {"a", "b.c"}

    def test_a_path_and_something_else(self):
        assert meanings("import a\nif x:\n    a = f()\nit = a.b") == {"a.b", CALL}

    def test_a_shadowing_parameter(self):
        assert meanings("import a\ndef f(a):\n    it = a") == {PARAMETER}

    def test_an_answer_from_inside_a_circle_is_not_kept(self):
        builder = ScopeBuilder()
        builder.add(cst.parse_module("import m\na = b\nb = a\nb = m\n"))
        origins = Origins()
        for name in ("a", "b", "a"):
            assert set(origins.of_name(name, builder.module_scope)) == {"m"}
