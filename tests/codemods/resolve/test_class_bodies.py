"""Which variable the body of a class reads, against what Python itself reads when it is run."""

import textwrap
import time

import libcst as cst
import pytest
from tf_lossscale_codemods.model import Options, Target
from tf_lossscale_codemods.resolve.scopes import ScopeBuilder
from verbs import transformed

SHIM = Options(target=Target.SHIM)

BODIES = {
    "never bound": ("see(x)", ["module"]),
    "before": ("see(x)\nx = 'class'", ["module"]),
    "after": ("x = 'class'\nsee(x)", ["class"]),
    "its own value": ("x = see(x) and 'class'\nsee(x)", ["module", "class"]),
    "a value after that": ("x = 'class'\nx = see(x)", ["class"]),
    "one line": ("see(x); x = 'class'; see(x)", ["module", "class"]),
    "an annotated value": ("x: str = see(x)", ["module"]),
    "an annotation": ("x: see(x) = 'class'", ["class module"]),
    "an annotation alone": ("x: str\nsee(x)", ["module"]),
    "a tuple": ("x, y = 'class', see(x)\nsee(x)", ["module", "class"]),
    "another name": ("y = see(x)\nx = y", ["module"]),
    "an augmented value": ("x += see(x)", ["module"] * 2),
    "a default": ("def x(self, a=see(x)): pass", ["module"]),
    "an annotation of a parameter": ("def x(self, a: see(x)) -> see(x): pass", ["module"] * 2),
    "a decorator": ("@see(x) and identity\ndef x(self): pass", ["module"]),
    "a base": ("class x(see(x) and object): pass", ["module"]),
    "after a method": ("def x(self): pass\nsee('class' if callable(x) else x)", ["class"] * 2),
    "a nested class": ("x = 'class'\nclass B:\n    see(x)\n    x = see(x)", ["module"] * 2),
    "a branch": ("if see(x):\n    x = 'class'\nsee(x)", ["class module"] * 2),
    "a branch that is not run": ("if not x:\n    x = 'class'\nsee(x)", ["class module"] * 2),
    "a branch without it": ("if a:\n    see(x)\nx = 'class'", ["module"]),
    "a branch, then always": ("if not a:\n    x = 1\nx = 'class'\nsee(x)", ["class"]),
    "a loop": ("for x in ['class']: see(x)\nsee(x)", ["class module"] * 2),
    "a loop without it": ("for a in 'ab':\n    see(x)\nx = 'class'", ["module"]),
    "a try": ("try:\n    x = 'class'\nexcept E:\n    pass\nsee(x)", ["class module"]),
    "a walrus": ("(see(x), (x := 'class'), see(x))", ["class module"] * 2),
    "an import": ("see(x)\nimport os as x", ["module"]),
    "deleted": ("x = 'class'\ndel x\nsee(x)", ["class module", "class module"]),
    "a method": ("x = 'class'\ndef f(self): see(x)\nf(0)", ["module"]),
    "a lambda": ("x = 'class'\nf = lambda: see(x)\nf()", ["module"]),
    "a comprehension": ("x = 'class'\n[see(x) for _ in 'a']", ["module"]),
    "the first loop of one": ("x = 'class'\n[y for y in [see(x)]]", ["class"]),
    "the second loop of one": ("x = 'class'\n[z for y in 'a' for z in [see(x)]]", ["module"]),
    "the first loop of one, before": ("[y for y in [see(x)]]\nx = 'class'", ["module"]),
    "a target of one": ("[x for x in [see(x)]]", ["comprehension", "module"]),
    "global": ("global x\nsee(x)\nx = 'module'", ["module"]),
}
AROUND = {
    "a class": "{}",
    "a class in a class": "class Outer:\n    x = 'outer'\n{}",
    "a class in a function": "def f():\n    x = 'function'\n{}\n    return x\nf()",
}


def loads(source: str) -> list:
    builder = ScopeBuilder()
    builder.add(cst.parse_module(source))
    return [(node, scope) for node, scope in builder.loads.items() if node.value == "x"]


@pytest.mark.parametrize("body", BODIES)
def test_variables_that_a_class_reads(body):
    text, expected = BODIES[body]
    source = f"x = 'module'\nclass A:\n{textwrap.indent(text, '    ')}\n"
    found = [
        " ".join(sorted(owner.kind.value for owner in scope.owners("x")))
        for _, scope in loads(source)
    ]
    if body == "deleted":
        found = found[-1:] * 2
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("body", BODIES)
def test_python_reads_one_of_these_variables(body, around):
    inside = f"class A:\n{textwrap.indent(BODIES[body][0], '    ')}\n"
    deep = around != "a class"
    source = AROUND[around].format(textwrap.indent(inside, "    " if deep else ""))
    source = f"x = 'module'\n{source}"
    seen = []

    def see(value):
        seen.append(value)
        return value

    exec(source, {"see": see, "identity": lambda f: f, "a": 1, "E": OSError})
    possible = {owner.kind.value for _, scope in loads(source) for owner in scope.owners("x")}
    assert possible.issuperset({"class" if value == "outer" else value for value in seen})


HEAD = "from tensorflow.contrib import tpu\n"
RIGHT = {
    "its own name": "class K:\n    tpu = tpu.CrossShardOptimizer\n",
    "in a list": "class K:\n    tpu = [tpu.CrossShardOptimizer]\n",
    "in a tuple": "class K:\n    tpu, a = tpu.CrossShardOptimizer, 1\n",
    "annotated": "class K:\n    tpu: type = tpu.CrossShardOptimizer\n",
    "before a number": "class K:\n    x = tpu.CrossShardOptimizer; tpu = 5\n",
    "before a method": (
        "class K:\n    x = tpu.CrossShardOptimizer\n    def tpu(self):\n        return 1\n"
    ),
    "a default": "class K:\n    def tpu(self, a=tpu.CrossShardOptimizer):\n        pass\n",
    "a decorator": (
        "class K:\n    @use(tpu.CrossShardOptimizer)\n    def tpu(self):\n        pass\n"
    ),
    "a base": "class K:\n    class tpu(tpu.CrossShardOptimizer):\n        pass\n",
    "nested": "class K:\n    class L:\n        tpu = tpu.CrossShardOptimizer\n",
    "a branch of its own": (
        "class K:\n    if a:\n        x = tpu.CrossShardOptimizer\n    tpu = 1\n"
    ),
    "in a function": "def f():\n    class K:\n        tpu = tpu.CrossShardOptimizer\n",
    "the first loop": "class K:\n    tpu = [x for x in [tpu.CrossShardOptimizer]]\n",
}
REPORTED = {
    "a branch": "class K:\n    if a:\n        tpu = 5\n    x = tpu.CrossShardOptimizer\n",
    "a branch with its own": "class K:\n    if a:\n        tpu = tpu.CrossShardOptimizer\n",
    "a loop": "class K:\n    for tpu in [tpu.CrossShardOptimizer]:\n        pass\n",
    "a handler": (
        "class K:\n    try:\n        tpu = 5\n    except E:\n        pass\n"
        "    x = tpu.CrossShardOptimizer\n"
    ),
    "deleted": "class K:\n    tpu = 5\n    del tpu\n    x = tpu.CrossShardOptimizer\n",
    "another symbol of the module": (
        "class K:\n    if a:\n        tpu = tpu.CrossShardOptimizer\n"
        "    x = tpu.CrossShardOptimizer\n"
    ),
}


@pytest.mark.parametrize("form", RIGHT)
def test_name_of_the_module_is_rewritten_where_a_class_binds_it_later(form):
    result = transformed(HEAD + RIGHT[form], SHIM)
    after = result.source.decode()
    assert after == "from tf_lossscale.contrib import tpu\n" + RIGHT[form]
    assert not [finding for finding in result.findings if finding.is_left]
    assert transformed(after, SHIM).source.decode() == after


@pytest.mark.parametrize("form", REPORTED)
def test_name_that_a_class_may_have_bound_is_reported(form):
    result = transformed(HEAD + REPORTED[form], SHIM)
    lines = [line for line in (HEAD + REPORTED[form]).splitlines() if ".CrossShard" in line]
    left = [finding for finding in result.findings if finding.is_left]
    assert len(left) == len(lines)
    assert result.source.decode().splitlines()[1:] == REPORTED[form].splitlines()


def test_root_of_tensorflow_is_rewritten_where_a_class_binds_its_name():
    source = """\
        import tensorflow as tf
        class K:
            tf = tf.contrib.mixed_precision.LossScaleOptimizer
            opt = tf
        class L: tf = tf.contrib.tpu; v = tf.CrossShardOptimizer
        class M:
            x = tf.tpu.cross_replica_sum; tf = x
        """
    result = transformed(textwrap.dedent(source), SHIM)
    after = textwrap.dedent(source).replace("tensorflow as tf", "tf_lossscale as tfls")
    for module in ("contrib.m", "contrib.t", "tpu.c"):
        after = after.replace(f"tf.{module}", f"tfls.{module}")
    assert result.source.decode() == after
    assert not [finding for finding in result.findings if finding.is_left]


def test_new_name_at_a_statement_is_none_of_the_class():
    source = textwrap.dedent("""\
        import tensorflow as tf
        class K:
            tfls = 5
            tf = tf.contrib.tpu.CrossShardOptimizer
        """)
    after = transformed(source, SHIM).source.decode()
    assert "    tf = tf_lossscale.contrib.tpu.CrossShardOptimizer" in after


def test_class_that_counts_takes_little_time():
    """Its body reads and binds one name thousands of times."""
    names = (f"    code = code + 1; A{number} = code\n" for number in range(3000))
    source = HEAD + "class K:\n    code = 0\n" + "".join(names) + "x = tpu.CrossShardOptimizer\n"
    begin = time.process_time()
    result = transformed(source, SHIM)
    assert time.process_time() - begin < 5  # quadratic time takes a minute
    assert [finding.code for finding in result.findings if finding.applied] == ["LS501"]
