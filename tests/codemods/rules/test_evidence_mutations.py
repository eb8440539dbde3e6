"""Removes the evidence from each safe example of the rules, mechanically: nothing may stay safe.

There are two kinds of evidence. A *name* leads to TensorFlow: the mutations import it from another
library, or bind it again. A *value* is made in the source: the mutations replace what a variable
is assigned by a call of another library, choose it by a flag, wrap it, or make it a parameter. If
an edit stays right without one of them, `STILL_RIGHT` or `STILL_RIGHT_BY_VALUE` says why.
"""

import ast
import re
import textwrap
from typing import Optional

import pytest
from tf_lossscale_codemods.model import Options, Safety, Target
from tf_lossscale_codemods.rules.registry import rules
from tf_lossscale_codemods.rules.rule import Example
from verbs import transformed

LIBRARIES = ("tensorflow", "tensorflow_core", "keras", "tf_keras")
SAFE = [
    (rule.slug, example)
    for rule in rules()
    for example in rule.examples
    if example.outcome is Safety.SAFE and example.after is not None
]
IDS = [f"{slug}: {example.id}" for slug, example in SAFE]

STILL_RIGHT = {
    ("bound again", "contrib-fixed-loss-scale-manager: a lazy import stays in its function"): (
        "the function imports the name itself"
    ),
    (
        "perhaps bound again",
        "contrib-fixed-loss-scale-manager: a lazy import stays in its function",
    ): ("the function imports the name itself"),
    ("bound again", "star-import: the only star import, for the shim"): (
        "the names of a star import are not those that the mutation binds"
    ),
    ("perhaps bound again", "star-import: the only star import, for the shim"): (
        "the names of a star import are not those that the mutation binds"
    ),
    ("bound again", "unused-module: a dotted import"): (
        "the import fails on TensorFlow 2.9, whatever is done with the package afterwards"
    ),
    ("perhaps bound again", "unused-module: a dotted import"): (
        "the import fails on TensorFlow 2.9, whatever is done with the package afterwards"
    ),
}


def imported(source: str) -> list[str]:
    """The names that imports of TensorFlow and Keras bind, without those of a star import."""
    names: dict[str, None] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for each in node.names:
                if each.name.split(".")[0] in LIBRARIES:
                    names[each.asname or each.name.split(".")[0]] = None
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in LIBRARIES:
            names.update((each.asname or each.name, None) for each in node.names)
    return [name for name in names if name != "*"]


def after_imports(source: str, added: list[str]) -> str:
    ends = [0]
    for node in ast.parse(source).body:
        is_import = any(isinstance(one, (ast.Import, ast.ImportFrom)) for one in ast.walk(node))
        if is_import and not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            ends.append(node.end_lineno or 0)
    lines = source.splitlines()
    return "\n".join([*lines[: max(ends)], *added, *lines[max(ends) :], ""])


def of_another_library(source: str) -> str:
    return re.sub(rf"(?m)^(\s*(?:import|from) )({'|'.join(LIBRARIES)})\b", r"\1another.\2", source)


def bound_again(source: str) -> str:
    return after_imports(source, [f"{name} = patched({name})" for name in imported(source)])


def perhaps_bound_again(source: str) -> str:
    lines = [f"    {name} = another({name})" for name in imported(source)]
    return after_imports(source, ["if flag():", *lines] if lines else [])


NAMES = {
    "of another library": of_another_library,
    "bound again": bound_again,
    "perhaps bound again": perhaps_bound_again,
}


@pytest.mark.parametrize("mutation", NAMES)
@pytest.mark.parametrize(("slug", "example"), SAFE, ids=IDS)
def test_name_without_evidence_is_not_edited(slug, example, mutation):
    source = textwrap.dedent(example.before)
    mutated = NAMES[mutation](source)
    applied = [one for one in transformed(mutated, example.options).findings if one.applied]
    if mutated == source:
        assert not imported(source)
        assert example.id in NOTHING_TO_MUTATE
    elif (mutation, f"{slug}: {example.id}") in STILL_RIGHT:
        assert applied, "the exception is no longer needed"
    else:
        assert not applied, mutated


NOTHING_TO_MUTATE = {"the only star import, for the shim"}


# What an edit depends on, besides the name: what the object at its place is.
BY_VALUE = {
    "LS205": r"graph_rewrite\(\s*(?:opt=)?{0}\b",
    "LS302": r"(?<![\w.]){0}\.loss_scale\b",
    "LS303": r"(?<![\w.]){0}\._optimizer\b",
}
TESTS = r"isinstance\(\s*{0}\b|type\({0}\)|{0}\.__class__"
VALUES = {
    "made elsewhere": "another.build()",
    "chosen by a flag": "({value}) if another.flag() else another.build()",
    "wrapped by another library": "another.wrap({value})",
    "a parameter": "given",
}

STILL_RIGHT_BY_VALUE = {
    "v1-graph-rewrite: an optimizer that is used as one of tf.train": (
        "what it is used for is the evidence, not what it is made of"
    ),
    "keras-loss-scale-call: under an isinstance check, for the shim": (
        "the check is the evidence for the call"
    ),
}


def assignments(source: str) -> dict[str, list[ast.Assign]]:
    """The assignments of calls to each variable or attribute, by its text."""
    found: dict[str, list[ast.Assign]] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            made = ast.unparse(node.value)
            if len(node.targets) == 1 and "graph_rewrite(" not in made:
                found.setdefault(ast.unparse(node.targets[0]), []).append(node)
    return found


def replaced(source: str, nodes: list[ast.Assign], template: str) -> str:
    for node in sorted(nodes, key=lambda one: one.lineno, reverse=True):
        value = ast.get_source_segment(source, node.value) or ""
        starts = [match.start() for match in re.finditer(re.escape(value), source)]
        lines = source.splitlines(keepends=True)
        offset = sum(map(len, lines[: node.value.lineno - 1])) + len(
            lines[node.value.lineno - 1].encode()[: node.value.col_offset].decode()
        )
        assert offset in starts
        source = source[:offset] + template.format(value=value) + source[offset + len(value) :]
    return source


def in_function(source: str) -> Optional[str]:
    """The statements after the imports in a function with a parameter; None if there are none."""
    whole = after_imports(source, ["def run(given):"])
    head, _, body = whole.partition("def run(given):\n")
    if not body.strip() or "__future__" in body:
        return None
    return f"{head}def run(given):\n{textwrap.indent(body, '    ')}"


def depending(source: str, name: str, options: Options) -> list[str]:
    """The edits that depend on what the variable is: codes, with the lines."""
    lines = source.splitlines()
    moves_to_shim = options.target is Target.SHIM or options.keras != 2
    found = []
    for one in transformed(source, options).findings:
        text = "\n".join(lines[one.line - 1 : one.end_line])
        patterns = [TESTS] if moves_to_shim else []
        if one.code in BY_VALUE and not (one.code == "LS205" and options.target is Target.SHIM):
            patterns = [BY_VALUE[one.code]]
        if one.applied and any(re.search(each.format(re.escape(name)), text) for each in patterns):
            found.append(f"{one.code}: {text}")
    return found


KERAS = """
import tensorflow as tf
from tensorflow.keras.mixed_precision import experimental as mp

"""
V1 = """
import tensorflow as tf

"""
MORE = {
    "an attribute": KERAS
    + """
class Trainer:
    def __init__(self):
        self.opt = mp.LossScaleOptimizer(tf.keras.optimizers.SGD(), "dynamic")

    def scale(self):
        return self.opt.loss_scale()

    def inner(self):
        return self.opt._optimizer
""",
    "a function and a test": KERAS
    + """
def make():
    opt = mp.LossScaleOptimizer(tf.keras.optimizers.SGD(), 8)
    return opt


made = make()
if isinstance(made, mp.LossScaleOptimizer):
    print("scaled")
""",
    "a parameter whose call is seen": KERAS
    + """
def log(opt):
    if isinstance(opt, mp.LossScaleOptimizer):
        print("scaled")


made = mp.LossScaleOptimizer(tf.keras.optimizers.SGD(), 8)
log(made)
""",
    "the test of an attribute": KERAS
    + """
class Trainer:
    def __init__(self):
        self.opt = mp.LossScaleOptimizer(tf.keras.optimizers.SGD(), "dynamic")

    def is_scaled(self):
        return isinstance(self.opt, mp.LossScaleOptimizer)
""",
    "a v1 optimizer": V1
    + """
def build(rate):
    opt = tf.compat.v1.train.AdamOptimizer(rate)
    opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(opt)
    return opt
""",
    "a v1 optimizer that is an attribute": V1
    + """
class Trainer:
    def __init__(self):
        self.opt = tf.compat.v1.train.AdamOptimizer()

    def rewritten(self):
        return tf.train.experimental.enable_mixed_precision_graph_rewrite(self.opt)
""",
    "a v1 optimizer of one of two classes": V1
    + """
opt = tf.compat.v1.train.AdamOptimizer()
if tf.executing_eagerly():
    opt = tf.compat.v1.train.MomentumOptimizer(0.1, 0.9)
opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(opt)
""",
}
WITH_MORE = SAFE + [
    (f"{title}, {words}", Example(title, source, outcome=Safety.SAFE, **settings))
    for title, source in MORE.items()
    for words, settings in {
        "Keras 2": {"keras": 2},
        "Keras 3": {"keras": 3},
        "any Keras": {"keras": None},
        "shim": {"target": Target.SHIM},
    }.items()
]

CASES = [
    (slug, example, mutation, name)
    for slug, example in WITH_MORE
    for name in assignments(textwrap.dedent(example.before))
    if depending(textwrap.dedent(example.before), name, example.options)
    for mutation in VALUES
]


@pytest.mark.parametrize(
    ("slug", "example", "mutation", "name"),
    CASES,
    ids=[f"{slug}: {one.id}: {name} {mutation}" for slug, one, mutation, name in CASES],
)
def test_value_without_evidence_is_not_edited(slug, example, mutation, name):
    source = textwrap.dedent(example.before)
    mutated = replaced(source, assignments(source)[name], VALUES[mutation])
    if mutation == "a parameter":
        mutated = in_function(mutated) or mutated
    ast.parse(mutated)
    applied = depending(mutated, name, example.options)
    if f"{slug}: {example.id}" in STILL_RIGHT_BY_VALUE:
        return
    assert not applied, mutated


def test_enough_values_are_mutated():
    assert len({(slug, example.id) for slug, example, _, _ in CASES}) >= 25
