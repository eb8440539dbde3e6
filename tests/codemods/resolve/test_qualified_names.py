"""What an expression can mean: the paths that its names were imported from."""

import textwrap

import libcst as cst
import pytest
from tf_lossscale_codemods.resolve.qualified_names import (
    CALL,
    COMPUTED,
    LOCAL,
    PARAMETER,
    STAR,
    Origins,
    attribute_path,
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


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("it = 1", {LOCAL}),
        ("it = 'a.b'", {LOCAL}),
        ("it = print", {LOCAL}),
        ("def a(): pass\nit = a", {LOCAL}),
        ("class a: pass\nit = a", {LOCAL}),
        ("for a in b: it = a", {COMPUTED}),
        ("with b as a: it = a", {COMPUTED}),
        ("it = a[0]", {COMPUTED}),
        ("import a\nit = a()", {CALL}),
        ("import a\nit = a.b().c", {CALL}),
        ("def f(a):\n    it = a.b", {PARAMETER}),
        ("import a\ndef f(a):\n    it = a", {PARAMETER}),
        ("from b import *\nit = a", {STAR}),
        # None, and a name that is its own value, have no meaning.
        ("it = None", set()),
        ("a = a\nit = a", set()),
        ("a = b\nb = a\nit = b", set()),
        # Paths
        ("import a\nit = a", {"a"}),
        ("import a.b\nit = a.c", {"a.c"}),
        ("import a.b as c\nit = c.d", {"a.b.d"}),
        ("from a import b\nit = b.c", {"a.b.c"}),
        ("from .a import b\nit = b", {".a.b"}),
        ("import a\nb = a.c\nit = b.d", {"a.c.d"}),
        ("import a\nb = c = a\nit = c", {"a"}),
        ("import a\nb, c = a.d, a.e\nit = c", {"a.e"}),
        ("import a\nit = (b := a.c)", {"a.c"}),
        ("import a\ndef f():\n    it = a.b", {"a.b"}),
        ("a = None\ntry:\n    import a\nexcept ImportError:\n    pass\nit = a", {"a"}),
        # All bindings count.
        ("if x:\n    import a as c\nelse:\n    import b as c\nit = c.d", {"a.d", "b.d"}),
        ("import a, b\nit = a if x else b.c", {"a", "b.c"}),
        ("import a\nif x:\n    a = f()\nit = a.b", {"a.b", CALL}),
        ("import a, b\nit = a or b.c", {"a", "b.c"}),
        ("import a, b\nit = x < y and a.c or b", {"a.c", "b"}),
        ("import a\nclass b:\n    a = a.c\n    it = a.d", {"a.c.d"}),
    ],
)
def test_meanings(source, expected):
    assert meanings(source) == expected
    no_paths = {LOCAL, CALL, COMPUTED, PARAMETER, STAR}
    assert {meaning for meaning in expected if is_path(meaning)} == expected - no_paths


@pytest.mark.parametrize("source", ["a = b\nb = a\nb = m\nc = m\n", "a = b\nb = c\nb = m\nc = a\n"])
def test_an_answer_from_inside_a_circle_is_not_kept(source):
    builder = ScopeBuilder()
    builder.add(cst.parse_module(f"import m\n{source}"))
    origins = Origins()
    for name in ("a", "b", "c", "a"):
        assert set(origins.of_name(name, builder.module_scope)) == {"m"}


POLICY = "tensorflow.keras.mixed_precision.Policy"
SUM = "tensorflow.compat.v1.tpu.cross_replica_sum"


@pytest.mark.parametrize(
    ("path", "target", "attributes"),
    [
        (POLICY, POLICY, ""),
        ("tensorflow", POLICY, "keras.mixed_precision.Policy"),
        ("tensorflow.keras", POLICY, "mixed_precision.Policy"),
        ("keras", POLICY, "mixed_precision.Policy"),
        ("tensorflow.compat.v2", POLICY, "keras.mixed_precision.Policy"),
        ("tensorflow.compat.v1", POLICY, "compat.v2.keras.mixed_precision.Policy"),
        ("tensorflow.compat.v1", SUM, "tpu.cross_replica_sum"),
        ("tensorflow", SUM, "compat.v1.tpu.cross_replica_sum"),
        # Only the root of a namespace has `compat`, and not each version lets it be imported.
        ("tensorflow.keras", SUM, None),
        ("tensorflow.compat.v1.keras", POLICY, None),
        ("tensorflow.compat", SUM, None),
        ("tensorflow.ker", POLICY, None),
        ("torch", POLICY, None),
    ],
)
def test_the_attributes_between_two_paths(path, target, attributes):
    assert attribute_path(path, target) == attributes
