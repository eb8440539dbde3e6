"""What each module of `resolve/` answers about small sources."""

import ast
import gc
import textwrap
import weakref

import libcst as cst
import pytest
from tf_lossscale_codemods.resolve.classes import Kind
from tf_lossscale_codemods.resolve.conditions import dependence_of
from tf_lossscale_codemods.resolve.links import links_of
from tf_lossscale_codemods.resolve.places import Why
from tf_lossscale_codemods.resolve.program import Program
from tf_lossscale_codemods.resolve.releases import value_on_newest
from tf_lossscale_codemods.resolve.syntax import Syntax
from tf_lossscale_codemods.resolve.tree import (
    ancestors,
    body_of,
    is_stored,
    last_name,
    rebuilt,
    root_name,
    string_of,
    walk,
)
from tf_lossscale_codemods.resolve.values import Values

IMPORTS = """\
import tensorflow as tf
import tensorflow.keras.mixed_precision.experimental as mp
from tensorflow.keras import optimizers
"""
TRIED = """\
try:
    tf.keras.mixed_precision.global_policy()
    is_old = False
except {error}:
    is_old = True
it = is_old
"""
OLD = "mp.LossScaleOptimizer(optimizers.SGD(), 'dynamic')"


def program_of(source):
    return Program([cst.parse_module(IMPORTS + textwrap.dedent(source))])


def named(program, name):
    """The last node of the program that is this name."""
    nodes = [node for node in walk(program.modules[0]) if isinstance(node, cst.Name)]
    return [node for node in nodes if node.value == name][-1]


def codes(program, nodes):
    return [program.code(node) for node in nodes]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("it = mp.LossScaleOptimizer", True),
        ("it = tf.keras.mixed_precision.experimental.LossScaleOptimizer", True),
        ("from tf_lossscale.keras.mixed_precision import LossScaleOptimizer as it\nit", True),
        ("it = optimizers.SGD", False),
        ("it = tf.train.LossScaleOptimizer", False),
    ],
)
def test_is_loss_scale_class(source, expected):
    program = program_of(source)
    node = program.modules[0].body[-1].body[0].value
    assert program.classes.is_loss_scale_class(node) is expected


OPTIMIZERS = [
    # source, whether it is one, can be one, may be one, and the kind of it
    (f"it = {OLD}\nit", True, True, True, Kind.KERAS),
    (f"it = {OLD} if flag else optimizers.SGD()\nit", True, True, True, Kind.KERAS),
    (f"it = {OLD} if flag else make()\nit", False, True, True, Kind.UNKNOWN),
    ("it = optimizers.SGD()\nit", False, False, False, Kind.KERAS),
    ("it = tf.compat.v1.train.MomentumOptimizer(1, 1)\nit", False, False, False, Kind.V1),
    ("class Own: pass\nit = Own()\nit", False, False, False, Kind.UNKNOWN),
    ("def f(it):\n    it", False, False, True, Kind.UNKNOWN),
]


@pytest.mark.parametrize(("source", "is_one", "can_be", "may_be", "kind"), OPTIMIZERS)
def test_optimizers(source, is_one, can_be, may_be, kind):
    program = program_of(source)
    node = named(program, "it")
    assert program.classes.is_loss_scale_optimizer(node) is is_one
    assert program.classes.can_be_made_here(node) is can_be
    assert program.classes.may_be_loss_scale_optimizer(node) is may_be
    assert program.classes.kind_of_optimizer(node) is kind


@pytest.mark.parametrize(
    ("source", "makes", "sets", "names"),
    [
        ("", False, False, False),
        (OLD, True, False, False),
        ("mp.set_policy('mixed_float16')", False, True, False),
        ("tf.keras.mixed_precision.LossScaleOptimizer(opt)", True, False, True),
    ],
)
def test_what_a_file_does(source, makes, sets, names):
    program = program_of(source)
    assert (program.classes.makes_optimizers(), program.classes.sets_policy()) == (makes, sets)
    assert program.classes.names_final_class() is names


@pytest.mark.parametrize(
    ("source", "is_certain", "names"),
    [
        ("it = tf.__version__ < '2.4'", True, set()),
        ("version = tf.__version__\nit = version.split('.')[0]", True, set()),
        ("it = hasattr(tf, 'contrib')", True, set()),
        ("from flags import IS_OLD\nit = IS_OLD", False, {"flags.IS_OLD"}),
        ("it = 1 + 1", False, set()),
        # A call can fail for other reasons than a missing part, unless the handler says which.
        (TRIED.format(error="AttributeError"), True, set()),
        (TRIED.format(error="ValueError"), False, set()),
        ("def f(x):\n    it = x", False, {"=x", "(f"}),
    ],
)
def test_dependence_on_the_version(source, is_certain, names):
    program = program_of(source)
    found = dependence_of(program, program.parents[program.parents[named(program, "it")]].value)
    assert (found.is_certain, found.names) == (is_certain, names)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 + 1", None),
        ("(1, 2)[0]", 1),
        ("'a' in ('a', 'b')", True),
        ("hasattr(tf, 'contrib')", False),
        ("tf.__version__.startswith('1.')", False),
        ("int(tf.__version__.split('.')[0]) >= 2", True),
        ("not 0", True),
        ("unknown", None),
        ("f(1)", None),
    ],
)
def test_value_on_the_newest_release(expression, expected):
    program = program_of(f"it = {expression}")
    found = value_on_newest(program, program.modules[0].body[-1].body[0].value, {})
    assert found == (None if expected is None else (expected,))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (OLD, []),
        (f"if hasattr(tf, 'contrib'):\n    {OLD}", ["{}"]),
        (f"if not hasattr(tf, 'contrib'):\n    {OLD}", []),
        (f"if flag:\n    {OLD}", []),
    ],
)
def test_branches_that_the_newest_release_does_not_take(source, expected):
    found = program_of(source).guards.branches({}, frozenset())
    assert [branch.is_never_taken for branch in found] == [True for _ in expected]


def test_the_names_of_other_files_that_decide():
    source = f"from flags import IS_OLD\nif IS_OLD:\n    {OLD}"
    assert program_of(source).guards.conditions() == {"flags.IS_OLD"}
    assert program_of(OLD).guards.conditions() == frozenset()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("opt.get_scaled_loss(loss)", [("get_scaled_loss", False, False)]),
        ("hasattr(opt, 'get_scaled_loss')", [("get_scaled_loss", False, True)]),
        (f"opt = {OLD}\nopt.get_scaled_loss(loss)", []),
        ("if hasattr(opt, 'get_scaled_loss'):\n    opt.get_scaled_loss(1)", None),
        ("opt.get_config()", []),
    ],
)
def test_uses_of_methods_of_keras_2(source, expected):
    uses = program_of(source).keras_2_methods.foreign_uses
    found = [(use.name, use.is_compiled, use.is_test) for use in uses]
    if expected is None:  # the call is guarded by the test, which is a use of its own
        expected = [("get_scaled_loss", False, True)]
    assert found == expected


@pytest.mark.parametrize(
    ("source", "imports", "reads", "stars"),
    [
        ("import a.b", {"a.b"}, {}, set()),
        ("from a import b", {"a"}, {"a": {"b"}}, set()),
        ("from a import *", {"a"}, {}, {"a"}),
        ("x = 1", set(), {}, set()),
    ],
)
def test_links(source, imports, reads, stars):
    links = links_of([ast.parse(source)])
    assert imports <= links.imports
    assert {module: set(links.reads.get(module, ())) for module in reads} == reads
    assert (links.stars, links.is_known) == (stars, True)


@pytest.mark.parametrize(
    ("source", "reads"),
    [
        ("other.wrap.x", {"wrap", "x"}),
        ("import tensorflow as tf\ntf.keras.x", set()),
        ("import tf_lossscale as tfls\ntfls.keras.x", set()),
        ("from tensorflow import keras as k\nmp = k.x\nmp.y\ngetattr(mp, name)", set()),
        ("try:\n    import keras\nexcept ImportError:\n    keras = None\nkeras.x", set()),
        ("import keras\nkeras = load(name)\nkeras.x", {"x"}),
        ("import pkg as p\nmp = p.x\nmp.y", {"x", "y"}),
        ("other = other.x\nother.y", {"x", "y"}),
        ("other = None\nother.y", {"y"}),
        ("getattr(other, 'x')", {"x"}),
        ("getattr(other, name)", {"*"}),
    ],
)
def test_reads_of_files_that_are_loaded_by_computed_names(source, reads):
    """Not what is read of TensorFlow or the shim, whatever the path is called."""
    links = links_of([ast.parse(f"{source}\n__import__(computed)")])
    assert links.reads_of_loaded == reads


@pytest.mark.parametrize(
    ("source", "loads"),
    [
        ("from importlib import import_module as load", True),
        ("from unittest.mock import patch as replace", True),
        ("import importlib\nload = importlib.import_module", True),
        ("from importlib import import_module\nlist(map(import_module, names))", True),
        ("from importlib import import_module\nimport_module('pkg.amp')", False),
        ("import importlib as i\ni.import_module('pkg.amp')", False),
        ("from pkg import wrap as load\nload('pkg.amp')", False),
    ],
)
def test_a_function_that_loads_files_may_have_another_name(source, loads):
    assert links_of([ast.parse(source)]).loads is loads


def test_links_of_a_file_that_cannot_be_parsed_are_not_known():
    assert not links_of([None]).is_known


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from tensorflow.contrib.mixed_precision import LossScaleManager", "import"),
        ("mp.LossScaleOptimizer(opt, 1)", "call"),
        ("Old = mp.LossScaleOptimizer", "alias"),
        ("isinstance(opt, mp.LossScaleOptimizer)", "test"),
        ("def f(opt: mp.LossScaleOptimizer): pass", "annotation"),
        ("class Mine(mp.LossScaleOptimizer): pass", "base"),
        ("mp.LossScaleOptimizer.get_config", "member"),
        ("f(mp.LossScaleOptimizer)", "value"),
    ],
)
def test_mentions(source, expected):
    program = program_of(source)
    (reference,) = program.references
    assert program.mentions.of(reference).value == expected


def test_names_that_an_assignment_binds():
    program = program_of("a = b = (f(it), 1)")
    call = program.parents[program.parents[named(program, "it")]]
    assert program.mentions.names_assigned(call) == ["a", "b"]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("from project import *\nLossScaleOptimizer(opt)", Why.STAR),
        ("import project.compat\nproject.compat.LossScaleOptimizer(opt)", Why.RE_EXPORT),
        ("modules()['tf'].experimental.LossScaleManager(opt)", Why.CALL),
        ("def f(tf):\n    tf.train.experimental.DynamicLossScale()", Why.CALL),
    ],
)
def test_why_places_are_unclear(source, why):
    program = Program([cst.parse_module(source + "\n")])
    assert [place.why for place in program.unclear] == [why]
    assert program.references == []


def test_a_program_that_is_freed_needs_no_collection():
    program = program_of(f"opt = {OLD}\nopt.get_scaled_loss(1)\nif old: {OLD}")
    assert program.guards.branches({}, frozenset()) == []
    assert program.keras_2_methods.foreign_uses == []
    parts = (program, program.scopes, program.scopes.module_scope, program.values)
    remaining = list(map(weakref.ref, parts))
    del parts
    gc.disable()
    try:
        program.free()
        del program
        assert [part() for part in remaining] == [None] * 4
    finally:
        gc.enable()


def test_an_analysis_of_values_needs_no_meaning_of_a_name():
    syntax = Syntax([cst.parse_module("a = b = f()\nc = a\nc\n")])
    read = syntax.modules[0].body[-1].body[0].value
    assert codes(syntax, Values(syntax).sources_of(read)) == ["f()"]


def test_a_program_has_the_places_of_all_its_sources():
    sources = ["import tensorflow as tf\n", "tf.contrib.tpu.CrossShardOptimizer(opt)\n"]
    program = Program([*map(cst.parse_module, sources), None])
    (reference,) = program.references_to("LS501")
    assert program.code(reference.node) == "tf.contrib.tpu.CrossShardOptimizer"
    assert program.code(program.call_of(reference.node)) == sources[1].strip()
    assert program.cached(lambda _, text: [text], "x") == ["x"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("it = f(1)\nit", ["f(1)"]),
        ("a = f()\nit = a\nit", ["f()"]),
        ("it = f() if x else g()\nit", ["f()", "g()"]),
        ("it = None\nit = f()\nit", ["f()"]),
        ("def f(it):\n    it", ["it"]),
        (
            "class C:\n    def a(self):\n        self.it = f()\n    def b(self):\n        self.it",
            None,
        ),
    ],
)
def test_sources_of_a_value(source, expected):
    program = program_of(source)
    node = named(program, "it")
    if expected is None:  # an attribute of `self`
        node, expected = program.parents[node], ["f()"]
    assert sorted(codes(program, program.values.sources_of(node))) == expected


def test_reads_of_a_value_and_the_class_of_a_name():
    program = program_of("class C: pass\nit = f(1)\ng(it)\nh(it)\nC")
    assert program.values.class_named(named(program, "C")).name.value == "C"
    assert program.values.class_named(named(program, "it")) is None
    value = program.parents[named(program, "f")]
    assert codes(program, program.values.reads_of(value)) == ["it", "it"]


def test_trees():
    program = program_of("def f():\n    a.b.c = g().d('text')\n")
    target = program.parents[named(program, "c")]
    assert (root_name(target).value, last_name(target)) == ("a", "c")
    assert root_name(program.parents[named(program, "d")]) is None
    assert is_stored(target, program.parents)
    assert not is_stored(target.value, program.parents)
    text = next(node for node in walk(program.modules[0]) if isinstance(node, cst.SimpleString))
    assert string_of(text) == "text"
    statement = next(
        node for node in ancestors(target, program.parents) if isinstance(node, cst.BaseStatement)
    )
    assert list(body_of(statement, program.parents)) == [statement]


def test_rebuilding_keeps_what_has_no_edit():
    program = program_of("a = 1\nb = 2\n")
    module, name = program.modules[0], named(program, "b")
    edits = {name: [lambda old: old.with_changes(value="c")]}
    changed = rebuilt(module, edits, program.parents)
    assert changed.code == module.code.replace("b = 2", "c = 2")
    assert changed.body[-2] is module.body[-2]
    assert rebuilt(module, {}, program.parents) is None
