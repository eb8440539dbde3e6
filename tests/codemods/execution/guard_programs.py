"""Programs with version guards: how the guard is written x what its arms do x how names are bound.

Each program runs on TensorFlow below 2.4 through one arm and on later ones through the other, so
that it can be executed on both before and after a migration. The module `guard_flags`, from which
they import flags, is in `tests/shim/programs/test_guards.py`, which executes them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple


class GuardProgram(NamedTuple):
    """One program.

    Attributes:
      name: its parts.
      source: the program; its last line prints what happened.
      legacy: the code of the legacy arm, line by line.
      is_guard: whether the condition is about the version of TensorFlow.
      is_left: whether the migration can see both arms, and must leave them as they are.
    """

    name: str
    source: str
    legacy: tuple[str, ...]
    is_guard: bool
    is_left: bool


_IMPORTS = {
    "tf": ("import tensorflow as tf", "tf.keras.mixed_precision"),
    "keras": (
        "import tensorflow as tf\nfrom tensorflow import keras",
        "keras.mixed_precision",
    ),
    "module": (
        "import tensorflow as tf\nfrom tensorflow.keras import mixed_precision",
        "mixed_precision",
    ),
    "v2": ("import tensorflow.compat.v2 as tf", "tf.keras.mixed_precision"),
}

_CONTENTS = {
    "call": (
        "opt = {K}.experimental.LossScaleOptimizer(opt, 'dynamic')",
        "opt = {K}.LossScaleOptimizer(opt)",
        "",
    ),
    "policy": (
        "{K}.experimental.set_policy('mixed_float16')",
        "{K}.set_global_policy('mixed_float16')",
        "",
    ),
    "class": (
        "LSO = {K}.experimental.LossScaleOptimizer",
        "LSO = {K}.LossScaleOptimizer",
        """\
opt = wrap(LSO, opt)
done.append(isinstance(opt, LSO))""",
    ),
    "module": (
        "mp = {K}.experimental",
        "mp = {K}",
        """\
opt = wrap(mp.LossScaleOptimizer, opt)
done.append(isinstance(opt, mp.LossScaleOptimizer))""",
    ),
    "import as": (
        "import tensorflow.keras.mixed_precision.experimental as mp",
        "import tensorflow.keras.mixed_precision as mp",
        "opt = wrap(mp.LossScaleOptimizer, opt)",
    ),
    "from": (
        "from tensorflow.keras.mixed_precision import experimental as mp",
        "from tensorflow.keras import mixed_precision as mp",
        """\
done.append(mp.global_policy().name)
mp.Policy('mixed_float16')""",
    ),
    "from name as": (
        "from tensorflow.keras.mixed_precision.experimental import set_policy as setter",
        "from tensorflow.keras.mixed_precision import set_global_policy as setter",
        "setter('mixed_float16')",
    ),
    "import_module": (
        "mp = importlib.import_module('tensorflow.keras.mixed_precision.experimental')",
        "mp = importlib.import_module('tensorflow.keras.mixed_precision')",
        "opt = wrap(mp.LossScaleOptimizer, opt)",
    ),
    "two statements": (
        """\
{K}.experimental.set_policy('mixed_float16')
opt = {K}.experimental.LossScaleOptimizer(opt, 'dynamic')""",
        """\
{K}.set_global_policy('mixed_float16')
opt = {K}.LossScaleOptimizer(opt)""",
        "",
    ),
    "loss scale": (
        """\
scale = tf.mixed_precision.experimental.DynamicLossScale(8, 2)
opt = {K}.experimental.LossScaleOptimizer(opt, scale)""",
        "opt = {K}.LossScaleOptimizer(opt, initial_scale=8, dynamic_growth_steps=2)",
        "",
    ),
    "graph rewrite": (
        "rewrite = tf.train.experimental.enable_mixed_precision_graph_rewrite",
        "rewrite = tf.compat.v1.mixed_precision.enable_mixed_precision_graph_rewrite",
        """\
v1 = rewrite(tf.compat.v1.train.GradientDescentOptimizer(0.1))
done.append(type(v1).__name__)""",
    ),
}

_OLD_TESTS = {
    "string": "tf.__version__ < '2.4'",
    "split": "[int(n) for n in tf.__version__.split('.')[:2]] < [2, 4]",
    "tuple": "tuple(map(int, tf.__version__.split('.')[:2])) < (2, 4)",
    "VERSION": "tuple(map(int, tf.version.VERSION.split('.')[:2])) <= (2, 3)",
    "packaging": "version.parse(tf.__version__) < version.parse('2.4')",
    "flipped": "version.parse('2.4') > version.parse(tf.__version__)",
    "LooseVersion": "LooseVersion(tf.__version__) < LooseVersion('2.4.0')",
    "startswith": "tf.__version__.startswith(('2.0', '2.1.', '2.2', '2.3'))",
    "minor": "int(tf.__version__.split('.')[1]) < 4",
    "in": "tf.__version__.split('.')[1] in ('1', '2', '3')",
    "no attribute": "not hasattr({K}, 'set_global_policy')",
    "no class": "not hasattr({K}, 'LossScaleOptimizer')",
    "dir": "'set_global_policy' not in dir({K})",
    "getattr": "getattr({K}, 'set_global_policy', None) is None",
    "flag": "OLD_TF",
    "number": "TF_MINOR < 4",
    "unpacked": "(major, minor) < (2, 4)",
    "function": "is_old_tf()",
    "class flag": "Config.old",
    "imported flag": "IS_TF_2_3",
    "imported renamed": "old_one",
    "attribute flag": "guard_flags.OLD",
    "imported function": "guard_flags.is_old()",
    "imported version": "guard_flags.TF_VERSION < (2, 4)",
    "and": "always and tf.__version__.split('.')[1] in ('1', '2', '3')",
    "or": "int(tf.__version__.split('.')[1]) < 4 or not always",
    "walrus": "(numbers := [int(n) for n in tf.__version__.split('.')[:2]]) < [2, 4]",
    "parsed": "parsed < version.parse('2.4')",
}

_OTHER_TESTS = {
    "python": "sys.version_info < (3, 5)",
    "python string": "platform.python_version() < '3'",
    "python major": "sys.version_info.major == 2",
    "windows": "platform.system() == 'Windows'",
    "numpy": "version.parse(np.__version__) < version.parse('0.2')",
    "setting": "not always",
}
_HEAD = """\
import importlib
import json
import platform
import sys

import guard_flags
import numpy as np
from guard_flags import IS_TF_2_3
from guard_flags import IS_TF_2_3 as old_one
{distutils}{packaging}{imports}

OLD_TF = [int(n) for n in tf.__version__.split('.')[:2]] < [2, 4]
TF_MINOR = int(tf.__version__.split('.')[1])
major, minor = (int(n) for n in tf.__version__.split('.')[:2])
{parsed}always = True
done = []


def is_old_tf():
    return OLD_TF


class Config:
    old = OLD_TF


def wrap(kind, inner):
    try:
        return kind(inner)
    except TypeError:
        return kind(inner, 'dynamic')


opt = tf.keras.optimizers.SGD(0.5)
"""
_TAIL = """\
kinds = [kind.__name__ for kind in type(opt).__mro__]
policy = getattr(tf.keras.layers.Dense(1), '_dtype_policy', None)
policy = policy or getattr(tf.keras.layers.Dense(1), 'dtype_policy', None)
print(json.dumps([done, 'LossScaleOptimizer' in ' '.join(kinds), policy.name]))
"""

_GLOBALS = "global opt, LSO, mp, setter, LossScaleOptimizer, scale, rewrite"

_STATEMENTS = {
    "if older": """\
if {old}:
    {legacy}
else:
    {final}""",
    "if newer": """\
if not ({old}):
    {final}
else:
    {legacy}""",
    "elif": """\
if always is None:
    raise ImportError('2')
elif {old}:
    {legacy}
else:
    {final}""",
    "nested": """\
if always:
    if {old}:
        {legacy}
    else:
        {final}""",
    "two tests": """\
if {old}:
    {legacy}
if not ({old}):
    {final}""",
    "class body": """\
class Made:
    opt = opt
    if {old}:
        {legacy}
    else:
        {final}
globals().update({k: v for k, v in vars(Made).items() if k[0] != '_'})""",
    "one line": """\
if {old}: {legacy}
else: {final}""",
    "loop": """\
for _ in range(1):
    if {old}:
        {legacy}
        continue
    {final}""",
    "match": """\
match {old}:
    case True:
        {legacy}
    case _:
        {final}""",
    "lazy": """\
def legacy_way():
    {globals}
    {legacy}

def final_way():
    {globals}
    {final}

if {old}:
    legacy_way()
else:
    final_way()""",
    "lazy value": """\
def legacy_way():
    {globals}
    {legacy}

def final_way():
    {globals}
    {final}

way = legacy_way if {old} else final_way
way()""",
}

_FREE = {
    "except": """\
try:
    {final}
except (ImportError, AttributeError):
    {legacy}""",
    "bare except": """\
try:
    {final}
except:
    {legacy}""",
    "two excepts": """\
try:
    {final}
except ImportError:
    {legacy}
except AttributeError:
    {legacy}""",
    "try old": """\
try:
    {legacy}
except (ImportError, AttributeError):
    {final}""",
    "else": """\
try:
    {K}.set_global_policy
except AttributeError:
    {legacy}
else:
    {final}""",
    "flag from try": """\
try:
    from tensorflow.keras.mixed_precision import set_global_policy
    HAS_FINAL = True
except ImportError:
    HAS_FINAL = False
if HAS_FINAL:
    {final}
else:
    {legacy}""",
    "function": """\
def make():
    {globals}
    if {old}:
        {legacy}
        return
    {final}

make()""",
    "function newer": """\
def make():
    {globals}
    if not ({old}):
        {final}
        return
    {legacy}

make()""",
    "suppress": """\
import contextlib
with contextlib.suppress(AttributeError, ImportError):
    {legacy}
with contextlib.suppress(AttributeError, ImportError):
    {final}""",
}
_EXPRESSIONS = {
    "conditional": "{name} = {legacy} if {old} else {final}",
    "conditional newer": """\
{name} = ({final} if not ({old})
        else {legacy})""",
    "dict": "{name} = {True: lambda: {legacy}, False: lambda: {final}}[bool({old})]()",
    "and or": "{name} = ({old}) and {legacy} or {final}",
    "lambda": "{name} = (lambda: {legacy} if {old} else {final})()",
    "two returns": """\
def choose():
    if {old}:
        return {legacy}
    return {final}

{name} = choose()""",
    "attribute": """\
class Holder:
    value = {legacy} if {old} else {final}

{name} = Holder.value""",
    "tuple": "{name}, _ = ({legacy}, 1) if {old} else ({final}, 2)",
}
_DYNAMIC = {
    "getattr": "mp = getattr({K}, 'experimental', {K})",
    "getattr none": "mp = getattr({K}, 'experimental', None) or {K}",
    "import_module conditional": """\
mp = importlib.import_module(
    'tensorflow.keras.mixed_precision'
    + ('.experimental' if {old} else ''))""",
    "hasattr if": """\
mp = {K}
if hasattr(mp, 'experimental'):
    mp = mp.experimental""",
    "default old": """\
mp = {K}
if {old}:
    mp = {K}.experimental""",
    "vars": "mp = vars({K}).get('experimental', {K})",
    "import fails newer": """\
try:
    from tensorflow.keras.mixed_precision import LossScaleOptimizer, Policy
except ImportError:
    from tensorflow.keras.mixed_precision.experimental import (
        LossScaleOptimizer, Policy)
import types
mp = types.SimpleNamespace(LossScaleOptimizer=LossScaleOptimizer, Policy=Policy)""",
}
_UNSEEN_FORMS = ("two tests", "match", "lazy", "lazy value", "else", "suppress", "dict", "and or")
"""They do not show which arm is the other one."""
_UNSEEN_TESTS = ("class flag", "attribute flag", "imported function", "imported renamed")
"""They do not show that they are about the version."""

_USE = (
    "opt = wrap(mp.LossScaleOptimizer, opt)\n"
    "done.append([mp.Policy('mixed_float16').name, isinstance(opt, mp.LossScaleOptimizer)])"
)


def guard_programs(every: int = 1, start: int = 0) -> Iterator[GuardProgram]:
    """Every `every`-th program of the product, from number `start` on."""
    return itertools.islice(_all(), start, None, every)


def _all() -> Iterator[GuardProgram]:
    tests = [(name, test, True) for name, test in _OLD_TESTS.items()]
    tests += [(name, test, False) for name, test in _OTHER_TESTS.items()]
    forms = [*_STATEMENTS.items(), *_FREE.items()]
    for number, ((form, guard), (content, arms)) in enumerate(
        itertools.product(forms, _CONTENTS.items())
    ):
        uses_test = "{old}" in guard
        for test, old, is_guard in tests if uses_test else [("", "", True)]:
            for imports in _IMPORTS if number % 2 else [*_IMPORTS][:1]:
                names = (form, content, test, imports)
                yield _program(names, guard, arms, old, is_guard)
    values = [item for item in _CONTENTS.items() if _is_value(item[1][0])]
    for (form, guard), (content, arms), imports in itertools.product(
        _EXPRESSIONS.items(), values, _IMPORTS
    ):
        target, _, legacy = arms[0].partition(" = ")
        parts = (legacy, arms[1].partition(" = ")[2], arms[2])
        named = guard.replace("{name}", target)
        for test, old, is_guard in tests if "{old}" in guard else [("", "", True)]:
            names = (form, content, test, imports)
            yield _program(names, named, parts, old, is_guard)
    for (form, guard), imports in itertools.product(_DYNAMIC.items(), _IMPORTS):
        for test, old, is_guard in tests if "{old}" in guard else [("", "", True)]:
            names = (form, "module", test, imports)
            yield _program(names, guard, ("", "", _USE), old, is_guard)


def _is_value(code: str) -> bool:
    return "\n" not in code and " = " in code


def _program(
    names: tuple[str, str, str, str],
    guard: str,
    arms: tuple[str, str, str],
    old: str,
    is_guard: bool,
) -> GuardProgram:
    form, content, test, imports = names
    statements, module = _IMPORTS[imports]
    legacy, final, use = (part.replace("{K}", module) for part in arms)
    body = _filled(guard.replace("{old}", old).replace("{K}", module), legacy, final)
    body = body.replace("{K}", module).replace("{globals}", _GLOBALS)
    program = f"{body}\n{use}" if use else body
    head = _HEAD.format(
        imports=statements,
        distutils="from distutils.version import LooseVersion\n" if "Loose" in body else "",
        packaging="from packaging import version\n" if "version." in body else "",
        parsed="parsed = version.parse(tf.__version__)\n" if "parsed" in body else "",
    )
    is_seen = form not in _UNSEEN_FORMS and test not in _UNSEEN_TESTS
    return GuardProgram(
        ", ".join(names),
        f"{head}\n{program}\n{_TAIL}",
        tuple(legacy.split("\n")) if legacy else (),
        is_guard,
        is_guard and bool(legacy) and content != "import_module" and is_seen,
    )


def _filled(guard: str, legacy: str, final: str) -> str:
    for field, arm in (("{legacy}", legacy), ("{final}", final)):
        lines = []
        for line in guard.split("\n"):
            if field in line:
                indent = " " * (len(line) - len(line.lstrip()))
                joint = "; " if line.strip().startswith(("if", "else")) else "\n" + indent
                line = line.replace(field, arm.replace("\n", joint))
            lines.append(line)
        guard = "\n".join(lines)
    return guard
