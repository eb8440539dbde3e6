"""Version guards: a legacy arm whose other arm is final is left as a whole, and reported.

The programs are the product of what the arms bind, how the guard is written, and the target.
"""

import itertools
import textwrap

import pytest
from tf_lossscale_codemods.engine.transform import transform
from tf_lossscale_codemods.model import Options, Safety, Target

KERAS = "tf.keras.mixed_precision"
TARGETS = {
    "final, Keras 2": Options(),
    "final, Keras 3": Options(keras=3),
    "shim": Options(target=Target.SHIM),
}
BINDINGS = {
    "import as": (
        "import tensorflow.keras.mixed_precision.experimental as mp",
        "import tensorflow.keras.mixed_precision as mp",
        "opt = mp.LossScaleOptimizer(opt, 'dynamic')",
    ),
    "from import": (
        "from tensorflow.keras.mixed_precision import experimental as mp",
        "from tensorflow.keras import mixed_precision as mp",
        "mp.set_policy('mixed_float16')",
    ),
    "module": (
        f"mp = {KERAS}.experimental",
        f"mp = {KERAS}",
        "opt = mp.LossScaleOptimizer(opt)\nprint(isinstance(opt, mp.LossScaleOptimizer))",
    ),
    "name": (
        "from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer as LSO",
        "from tensorflow.keras.mixed_precision import LossScaleOptimizer as LSO",
        "opt = LSO(opt)",
    ),
    "class": (
        f"LSO = {KERAS}.experimental.LossScaleOptimizer",
        f"LSO = {KERAS}.LossScaleOptimizer",
        "opt = LSO(opt)\nscale = opt.loss_scale()",
    ),
    "renamed function": (
        f"set_policy = {KERAS}.experimental.set_policy",
        f"set_policy = {KERAS}.set_global_policy",
        "set_policy('mixed_float16')",
    ),
    "call": (
        f"opt = {KERAS}.experimental.LossScaleOptimizer(opt, 'dynamic')",
        f"opt = {KERAS}.LossScaleOptimizer(opt)",
        "opt.minimize(loss, variables)",
    ),
    "module by a string": (
        "mp = importlib.import_module('tensorflow.keras.mixed_precision.experimental')",
        "mp = importlib.import_module('tensorflow.keras.mixed_precision')",
        "mp.set_policy('mixed_float16')",
    ),
    "other symbols in the legacy arm": (
        f"opt = {KERAS}.experimental.LossScaleOptimizer(\n"
        "    opt, tf.mixed_precision.experimental.DynamicLossScale(8, 2))\n"
        f"{KERAS}.experimental.set_policy('mixed_float16')",
        f"opt = {KERAS}.LossScaleOptimizer(opt, initial_scale=8, dynamic_growth_steps=2)\n"
        f"{KERAS}.set_global_policy('mixed_float16')",
        "opt.minimize(loss, variables)",
    ),
}
STATEMENTS = {
    "if older": "if tf.__version__ < '2.4':\n    {legacy}\nelse:\n    {final}",
    "if newer": "if version.parse(tf.__version__) >= version.parse('2.4'):\n    {final}\n"
    "else:\n    {legacy}",
    "elif": "if tf.__version__ < '2':\n    raise ImportError\nelif tf.__version__ < '2.4':\n"
    "    {legacy}\nelse:\n    {final}",
    "except": "try:\n    {final}\nexcept (ImportError, AttributeError):\n    {legacy}",
    "try": "try:\n    {legacy}\nexcept ImportError:\n    {final}",
    "imported flag": "if IS_TF_2_3:\n    {legacy}\nelse:\n    {final}",
    "attribute flag": "if compat.OLD:\n    {legacy}\nelse:\n    {final}",
    "flag": "OLD = LooseVersion(tf.__version__) < '2.4'\nif OLD:\n    {legacy}\nelse:\n    {final}",
    "feature": "if hasattr(tf.keras.mixed_precision, 'experimental'):\n    {legacy}\n"
    "else:\n    {final}",
    "default": "{final}\nif tf.__version__ < '2.4':\n    {legacy}",
    "return": "def wrap(opt):\n    if tf.__version__ < '2.4':\n        {legacy}\n"
    "        return opt\n    {final}\n    return opt",
}
EXPRESSIONS = {
    "conditional": "{name} = {legacy} if tf.__version__ < '2.4' else {final}",
    "conditional feature": "{name} = ({final}\n    if hasattr(tf.keras.mixed_precision, "
    "'set_global_policy')\n    else {legacy})",
}
HEAD = """\
import importlib
import tensorflow as tf
from distutils.version import LooseVersion
from packaging import version
from . import compat
from .compat import IS_TF_2_3

"""


def _filled(guard, **arms):
    for name, arm in arms.items():
        lines = [line for line in guard.split("\n") if f"{{{name}}}" in line]
        indent = " " * (len(lines[0]) - len(lines[0].lstrip())) if lines else ""
        guard = guard.replace(f"{{{name}}}", arm.replace("\n", "\n" + indent))
    return guard


def _programs():
    for (binds, (legacy, final, use)), (form, guard) in itertools.product(
        BINDINGS.items(), STATEMENTS.items()
    ):
        inside = guard.startswith("def")
        yield (
            f"{binds}, {form}",
            legacy,
            _filled(guard, legacy=legacy, final=final) + ("" if inside else "\n" + use),
        )
    for (binds, (legacy, final, use)), (form, guard) in itertools.product(
        BINDINGS.items(), EXPRESSIONS.items()
    ):
        name, is_assignment, value = legacy.partition(" = ")
        if is_assignment and "\n" not in legacy:
            arms = {"legacy": value, "final": final.partition(" = ")[2], "name": name}
            yield f"{binds}, {form}", value, guard.format(**arms) + "\n" + use
    for number, guard in enumerate(
        [
            f"mp = getattr({KERAS}, 'experimental', {KERAS})",
            f"mp = getattr({KERAS}, 'experimental', None) or {KERAS}",
        ]
    ):
        yield f"getattr {number}", "'experimental'", guard + "\nopt = mp.LossScaleOptimizer(opt)"


PROGRAMS = {name: (legacy, HEAD + body + "\n") for name, legacy, body in _programs()}


def transformed(source, options):
    return transform(textwrap.dedent(source).encode(), options)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_legacy_arm_is_left_and_reported(name, target):
    legacy, source = PROGRAMS[name]
    result = transformed(source, TARGETS[target])
    assert result.error is None
    edited = [one for one in result.findings if one.applied]
    if target == "final, Keras 3":  # where the final arm is a class that moves to the shim
        assert {one.code for one in edited} <= {"LS401"}
        for line in legacy.split("\n"):
            assert line in result.source.decode()
    else:
        assert result.source.decode() == source
    assert all(one.outcome is Safety.MANUAL for one in result.findings if not one.applied)
    lines = source.split("\n")
    places = {lines[one.line - 1] for one in result.findings if one.code in ("LS902", "LS908")}
    first = legacy.split("\n")[0]
    assert any(first in line for line in places), result.findings
    assert not any("never existed" in one.message for one in result.findings)
    assert len(set(result.findings)) == len(result.findings)
    again = transform(result.source, TARGETS[target])
    assert again.source == result.source


REWRITTEN = {
    "the other arm chooses by a setting": f"""
        if args.dynamic:
            opt = {KERAS}.experimental.LossScaleOptimizer(opt, "dynamic")
        else:
            opt = {KERAS}.LossScaleOptimizer(opt, dynamic=False, initial_scale=8)
        """,
    "there is no other arm": f"""
        if tf.__version__ >= "2.1":
            {KERAS}.experimental.set_policy("mixed_float16")
        """,
    "the other arm does something else": f"""
        try:
            {KERAS}.experimental.set_policy("mixed_float16")
        except AttributeError:
            pass
        """,
    "the final symbol is another one": f"""
        if version.parse(tf.__version__) >= version.parse("2.1"):
            {KERAS}.experimental.set_policy("mixed_float16")
        else:
            print({KERAS}.LossScaleOptimizer)
        """,
}


@pytest.mark.parametrize("name", REWRITTEN)
def test_what_is_no_guard_is_rewritten(name):
    result = transformed(HEAD + textwrap.dedent(REWRITTEN[name]), Options())
    assert b"experimental" not in result.source
    assert all(one.outcome is Safety.SAFE for one in result.findings)


OLD = [
    "tf.__version__ < '2.4'",
    "tf.version.VERSION <= '2.3'",
    "'2.4.0' > tf.__version__",
    "not tf.__version__ >= '2.4'",
    "LooseVersion(tf.__version__) < LooseVersion('2.4.0')",
    "tuple(map(int, tf.__version__.split('.')[:2])) < (2, 4)",
    "tf.__version__.startswith('2.3')",
    "tf.__version__.startswith('1.')",
    "gpu and tf.__version__ < '2.2'",
    "IS_TF_2_3",
    "major == 2 and minor < 4",
    "major < 2",
    "hasattr(tf.keras.mixed_precision, 'experimental')",
    "gpu and hasattr(tf.keras.mixed_precision, 'experimental')",
]
NEW = [
    "tf.__version__ >= '2.1'",
    "tf.__version__ < '2.9'",
    "not tf.__version__ < '2.1'",
    "gpu or tf.__version__ < '2.4'",
    "major == 2",
    "minor < 9",
    "tf.__version__.startswith('2.')",
    "IS_NOT_TF_2_3",
    "IS_TF_2_4",
    "gpu",
    "not hasattr(tf.keras.mixed_precision, 'set_global_policy')",
]


@pytest.mark.parametrize("test", OLD)
def test_arm_that_runs_only_on_old_versions_is_left(test):
    source = f"{HEAD}if {test}:\n    {KERAS}.experimental.set_policy('mixed_float16')\n"
    result = transformed(source, Options())
    assert result.source.decode() == source
    (finding,) = [one for one in result.findings if one.code == "LS908"]
    assert "no other arm" in finding.message


@pytest.mark.parametrize("test", NEW)
def test_arm_that_may_run_on_new_versions_is_rewritten(test):
    source = f"{HEAD}if {test}:\n    {KERAS}.experimental.set_policy('mixed_float16')\n"
    result = transformed(source, Options())
    assert f"    {KERAS}.set_global_policy('mixed_float16')\n" in result.source.decode()


def test_two_kerases_are_not_merged_into_one_import():
    source = """\
try:
    from tf_keras import mixed_precision
except ImportError:
    from tensorflow.keras import mixed_precision

mixed_precision.set_policy("mixed_float16")
"""
    for options in TARGETS.values():
        result = transformed(source, options)
        assert result.source.decode() == source
        assert [one.outcome for one in result.findings] == [Safety.MANUAL]


def test_legacy_default_before_a_final_arm_is_reported():
    source = f"""\
import tensorflow as tf

mp = {KERAS}.experimental
if tf.__version__ >= "2.4":
    mp = {KERAS}
opt = mp.LossScaleOptimizer(opt)
"""
    for options in TARGETS.values():
        result = transformed(source, options)
        assert result.source.decode() == source
        assert [one.line for one in result.findings] == [3]


UNSAFE = {
    "Keras 2": Options(keras=2, unsafe=True),
    "Keras 3": Options(keras=3, unsafe=True),
}
REMOVED = {
    "if, with comments": (
        f"""
        # which API
        if tf.__version__ < "2.4":  # old
            {KERAS}.experimental.set_policy("mixed_float16")
        else:
            # the final one
            {KERAS}.set_global_policy("mixed_float16")  # new
            print("done")
        """,
        f"""
        # which API
        # the final one
        {KERAS}.set_global_policy("mixed_float16")  # new
        print("done")
        """,
    ),
    "try, with an import that nothing else reads": (
        """
        try:
            from tensorflow.keras.mixed_precision import set_global_policy
        except ImportError:
            from tensorflow.keras.mixed_precision.experimental import (
                set_policy as set_global_policy,
            )
        set_global_policy("mixed_float16")
        """,
        """
        from tensorflow.keras.mixed_precision import set_global_policy
        set_global_policy("mixed_float16")
        """,
    ),
    "return": (
        f"""
        def start():
            if IS_TF_2_3:
                {KERAS}.experimental.set_policy("mixed_float16")
                return
            {KERAS}.set_global_policy("mixed_float16")
        """,
        f"""
        def start():
            {KERAS}.set_global_policy("mixed_float16")
        """,
    ),
    "inside another guard": (
        f"""
        if tf.__version__ >= "2.0":
            if tf.__version__ < "2.4":
                setter = {KERAS}.experimental.set_policy
            else:
                setter = {KERAS}.set_global_policy
            setter("mixed_float16")
        """,
        f"""
        if tf.__version__ >= "2.0":
            setter = {KERAS}.set_global_policy
            setter("mixed_float16")
        """,
    ),
    "conditional expression in another": (
        f"""
        setter = None if args.no else ({KERAS}.experimental.set_policy if IS_TF_2_3
                                       else {KERAS}.set_global_policy)
        setter("mixed_float16")
        """,
        f"""
        setter = None if args.no else ({KERAS}.set_global_policy)
        setter("mixed_float16")
        """,
    ),
    "getattr": (
        f"""
        mp = getattr({KERAS}, "experimental", {KERAS})
        print(mp.Policy("mixed_float16"))
        """,
        f"""
        mp = {KERAS}
        print(mp.Policy("mixed_float16"))
        """,
    ),
}


@pytest.mark.parametrize("target", UNSAFE)
@pytest.mark.parametrize("name", REMOVED)
def test_unsafe_removes_the_legacy_arm(name, target):
    before, after = (textwrap.dedent(text).lstrip() for text in REMOVED[name])
    head = "import tensorflow as tf\nfrom .compat import IS_TF_2_3\n\n"
    if "IS_TF_2_3" not in before:
        head = head.replace("from .compat import IS_TF_2_3\n", "")
    result = transformed(head + before, UNSAFE[target])
    assert result.source.decode() == head.replace("from .compat import IS_TF_2_3\n", "") + after
    assert all(one.code == "LS908" and one.applied for one in result.findings)
    again = transform(result.source, UNSAFE[target])
    assert again.source == result.source
    assert not again.findings


def test_unsafe_rewrites_what_follows_the_guard():
    source = f"""\
import tensorflow as tf
from packaging import version

if version.parse(tf.__version__) < version.parse("2.4"):
    mp = {KERAS}.experimental
else:
    mp = {KERAS}
opt = mp.LossScaleOptimizer(opt)
"""
    result = transformed(source, Options(keras=None, unsafe=True))
    assert "if " not in result.source.decode()
    assert "packaging" not in result.source.decode()
    assert "experimental" not in result.source.decode()
    assert {one.code for one in result.findings if one.applied} == {"LS401", "LS908"}


KEPT = {
    "elif": f"""
        if args.cpu:
            pass
        elif tf.__version__ < "2.4":
            {KERAS}.experimental.set_policy("mixed_float16")
        else:
            {KERAS}.set_global_policy("mixed_float16")
        """,
    "finally": f"""
        try:
            {KERAS}.set_global_policy("mixed_float16")
        except AttributeError:
            {KERAS}.experimental.set_policy("mixed_float16")
        finally:
            print("done")
        """,
    "assignment in the condition": f"""
        if (numbers := tf.__version__.split(".")) < ["2", "4"]:
            {KERAS}.experimental.set_policy("mixed_float16")
        else:
            {KERAS}.set_global_policy("mixed_float16")
        """,
    "comment between the arms": f"""
        if tf.__version__ < "2.4":
            {KERAS}.experimental.set_policy("mixed_float16")
        # from 2.4 on
        else:
            {KERAS}.set_global_policy("mixed_float16")
        """,
    "comment before the legacy arm": f"""
        if tf.__version__ >= "2.4":
            {KERAS}.set_global_policy("mixed_float16")
        # below 2.4
        else:
            {KERAS}.experimental.set_policy("mixed_float16")
        """,
    "suppressed": f"""
        if tf.__version__ < "2.4":
            {KERAS}.experimental.set_policy("mixed_float16")  # lossscale: ignore[LS908]
        else:
            {KERAS}.set_global_policy("mixed_float16")
        """,
    "legacy arm after the guard": f"""
        def start():
            if tf.__version__ >= "2.4":
                {KERAS}.set_global_policy("mixed_float16")
                return
            {KERAS}.experimental.set_policy("mixed_float16")
        """,
}


@pytest.mark.parametrize("name", KEPT)
def test_unsafe_leaves_what_takes_a_person(name):
    source = textwrap.dedent(KEPT[name]).lstrip()
    source = f"import tensorflow as tf\n\n{source}"
    result = transformed(source, UNSAFE["Keras 2"])
    assert result.source.decode() == source
    assert not any(one.applied for one in result.findings)
    assert name == "suppressed" or any(one.code == "LS908" for one in result.findings)


def test_shim_keeps_both_arms():
    source = f"""\
import tensorflow as tf

if tf.__version__ < "2.4":
    {KERAS}.experimental.set_policy("mixed_float16")
else:
    {KERAS}.set_global_policy("mixed_float16")
"""
    result = transformed(source, Options(target=Target.SHIM, unsafe=True))
    assert result.source.decode() == source
