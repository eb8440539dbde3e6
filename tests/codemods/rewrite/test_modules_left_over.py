"""Legacy modules whose uses are all rewritten: what binds them is renamed or reported, too."""

import pytest
from tf_lossscale_codemods.model import Options, Safety, Target
from verbs import transformed

TARGETS = {
    "shim": Options(target=Target.SHIM),
    "final": Options(),
    "final, Keras 3": Options(keras=3),
}
HEAD = "import tensorflow as tf\n"
EXPERIMENTAL = "tf.keras.mixed_precision.experimental"
MIXED = "tf.contrib.mixed_precision"
SET = "a.set_policy('mixed_float16')\n"
WRAP = "x = a.LossScaleOptimizer(x, m)\n"
OWN = "x = contrib.mixed_precision.LossScaleOptimizer(x, m)\n"
USE = "x = c.mixed_precision.LossScaleOptimizer(x, m)\n"
LEFT = "TensorFlow 2 has no tf.contrib"


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def _migrated(source: str, options: Options) -> tuple:
    """The rewritten source and the findings at its lines; a second run finds no other edit."""
    result = transformed(source, options)
    after = result.source.decode()
    again = transformed(after, options)
    assert again.source.decode() == after
    manual = {finding.message for finding in result.findings if finding.outcome is Safety.MANUAL}
    left = {finding.message for finding in again.findings if finding.outcome is Safety.MANUAL}
    assert {message for message in manual if LEFT in message} <= left
    return after, result.findings


def _manual(findings) -> list:
    return [finding.line for finding in findings if finding.outcome is Safety.MANUAL]


WHOLE = {
    "chain": f"a = b = {EXPERIMENTAL}\n{SET}",
    "chain, the other name": f"b = a = {EXPERIMENTAL}\n{SET}",
    "chain, both names": f"b = a = {EXPERIMENTAL}\n{SET}b.Policy('float32')\n",
    "three names": f"a = b = c = {EXPERIMENTAL}\n{SET}",
    "contrib": f"a = b = {MIXED}\n{WRAP}",
    "v1": "a = b = tf.mixed_precision.experimental\nx = a.FixedLossScale(8)\n",
    "in a function": "def f(x, m):\n" + _indented(f"a = b = {MIXED}\n{WRAP}"),
    "in a class": "class A:\n" + _indented(f"a = b = {MIXED}\n{WRAP}"),
    "chain of its name": "class A:\n"
    + _indented(f"a = mixed_precision = {MIXED}\nx = mixed_precision.LossScaleOptimizer(a)\n"),
    "global": f"def f():\n    global a\n    a = b = {MIXED}\n\n{WRAP}",
    "of an import": "from tensorflow.keras.mixed_precision import experimental as t\n"
    f"a = b = t\n{SET}",
    "of a name": f"t = {EXPERIMENTAL}\na = b = t\n{SET}",
    "of itself, imported": f"from tensorflow.contrib import mixed_precision as a\na = a\n{WRAP}",
    "of itself": f"a = {EXPERIMENTAL}\na = a\n{SET}",
    "of each other": f"a = {EXPERIMENTAL}\nb = a\na = b\n{SET}",
    "one of two bindings": f"if y:\n    a = {MIXED}\nelse:\n    b = a = {MIXED}\n{WRAP}",
    "imported or assigned": "if y:\n    from tensorflow.contrib import mixed_precision as a\n"
    f"else:\n    a = {MIXED}\n{WRAP}",
    "in __all__": f"__all__ = ['a']\na = {MIXED}\n{WRAP}",
    "in an annotation": f"a = {MIXED}\ndef f(x: 'a.LossScaleOptimizer', m):\n    {WRAP}",
    "attribute": f"self.a = a = {MIXED}\n{WRAP}",
    "tuple": f"a, b = {MIXED}, 1\n{WRAP}",
}


@pytest.mark.parametrize("options", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("body", WHOLE.values(), ids=WHOLE)
def test_a_whole_module_is_renamed_with_its_reads(body, options):
    after, findings = _migrated(HEAD + body, options)
    assert "tf_lossscale" in after
    for path in (EXPERIMENTAL, MIXED, "tf.mixed_precision", "from tensorflow."):
        assert path not in after.replace("tfls.", "shim.")
    assert "LS909" in {finding.code for finding in findings}
    assert not _manual(findings)


NONE = "if not y:\n    a = None\n"
MAY_BE_NONE = {
    "plain": f"a = {MIXED}\n{NONE}",
    "chain": f"a = b = {MIXED}\n{NONE}",
    "chain, the other name": f"b = a = {MIXED}\n{NONE}",
    "chain, global": f"a = b = {MIXED}\ndef f():\n    global a\n    a = None\n",
    "chain with an attribute": f"self.a = a = {MIXED}\n{NONE}",
    "chain, handled": f"try:\n    a = b = {EXPERIMENTAL}\nexcept AttributeError:\n    a = None\n",
    "chain, silenced": f"a = b = {MIXED}  # lossscale: ignore\n{NONE}",
    "tuple": f"a, b = {MIXED}, 1\n{NONE}",
    "walrus": f"if (a := {MIXED}):\n    pass\n{NONE}",
    "choice": f"a = {EXPERIMENTAL} if y else None\n",
    "and": f"a = y and {MIXED}\n",
    "imported": f"from tensorflow.contrib import mixed_precision as a\n{NONE}",
    "imported, then a choice": "from tensorflow.contrib import mixed_precision as a\n"
    "a = a if y else None\n",
    "imported or assigned": "from tensorflow.contrib import mixed_precision as a\n"
    f"if z:\n    a = {MIXED}\n{NONE}",
}


@pytest.mark.parametrize("options", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("body", MAY_BE_NONE.values(), ids=MAY_BE_NONE)
def test_test_of_a_name_that_may_be_none_reads_this_name(body, options):
    test = f"if a is not None:\n    {WRAP}print(a)\n"
    after, _ = _migrated(HEAD + body + test, options)
    assert "if a is not None:\n" in after
    assert after.endswith("print(a)\n")
    assert "tf_lossscale" in after
    if "ignore" not in body:
        for path in (EXPERIMENTAL, MIXED, "from tensorflow."):
            assert path not in after.replace("tfls.", "shim.")


CHAINS = {
    "two names": (f"a = b = {EXPERIMENTAL}\n", f"{SET}b.Policy('float32')\n"),
    "the name of the module": (f"a = experimental = {EXPERIMENTAL}\n", f"{SET}"),
    "three names": (f"a = b = c = {MIXED}\n", f"{WRAP}c.FixedLossScaleManager(b)\n"),
    "one has two values": (f"b = a = {MIXED}\na = {MIXED}\n", f"{WRAP}b.LossScaleManager\n"),
}


@pytest.mark.parametrize("options", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("case", CHAINS.values(), ids=CHAINS)
def test_names_of_a_chain_mean_its_new_module(case, options):
    chain, uses = case
    after, _ = _migrated(HEAD + chain + uses, options)
    assert after == "import tf_lossscale as tfls\n" + chain.replace("tf.", "tfls.") + uses


NOT_WHOLE = {
    "chain": "a = b = tf.contrib.tpu\nx = a.CrossShardOptimizer(x)\n",
    "chain with other reads": "a = b = tf.contrib.tpu\nx = a.CrossShardOptimizer(b.TPUConfig())\n",
    "of itself": "a = tf.contrib.tpu\na = a\nx = a.CrossShardOptimizer(x)\n",
    "in __all__": "a = tf.contrib.tpu\n__all__ = ['a']\nx = a.CrossShardOptimizer(x)\n",
}


@pytest.mark.parametrize("options", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("body", NOT_WHOLE.values(), ids=NOT_WHOLE)
def test_a_module_with_other_things_is_reported(body, options):
    after, findings = _migrated(HEAD + body, options)
    assert "= tf.contrib.tpu\n" in after
    assert 2 in _manual(findings)


def test_a_chain_of_the_current_final_module_stays():
    source = HEAD + "a = b = tf.keras.mixed_precision\na.experimental.set_policy('float32')\n"
    after, findings = _migrated(source, TARGETS["final"])
    assert "a = b = tf.keras.mixed_precision\na.set_global_policy('float32')" in after
    assert not _manual(findings)


@pytest.mark.parametrize("options", TARGETS.values(), ids=TARGETS)
def test_a_plain_assignment_still_moves_with_its_reads(options):
    after, findings = _migrated(HEAD + f"a = {MIXED}\n{WRAP}", options)
    assert after.endswith(f"a = tfls.contrib.mixed_precision\n{WRAP}")
    assert [finding.code for finding in findings] == ["LS103"]


@pytest.mark.parametrize("options", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("path", [MIXED, EXPERIMENTAL])
def test_attribute_of_a_class_can_have_the_name_of_its_module(path, options):
    name = path.rpartition(".")[2]
    body = f"class A:\n    {name} = {path}\n    x = {name}.LossScaleOptimizer\n"
    after, findings = _migrated(HEAD + body, options)
    assert after == "import tf_lossscale as tfls\n" + body.replace("tf.", "tfls.")
    assert not _manual(findings)


RENAMED = {
    "plain": f"c = tf.contrib\n{USE}",
    "compat.v1": f"c = tf.compat.v1.contrib\n{USE}",
    "walrus": f"(c := tf.contrib)\n{USE}",
    "walrus in a test": f"if (c := tf.contrib):\n    {USE}",
    "or": f"c = None or tf.contrib\n{USE}",
    "choice": f"c = tf.contrib if y else tf.contrib\n{USE}",
    "tuple": f"c, d = tf.contrib, 1\n{USE}",
    "annotated": f"c: object = tf.contrib\n{USE}",
    "loop": "for y in z:\n" + _indented(f"c = tf.contrib\n{USE}"),
    "with": "with y:\n" + _indented(f"c = tf.contrib\n{USE}"),
    "closure": "def f(x, m):\n    c = tf.contrib\n    def g():\n" + _indented(f"    {USE}"),
    "global": f"def f():\n    global c\n    c = tf.contrib\n\n{USE}",
    "class": "class A:\n" + _indented(f"c = tf.contrib\n{USE}"),
    "class, its name": "class A:\n" + _indented(f"contrib = tf.contrib\n{OWN}"),
    "class, two names": "class A:\n"
    + _indented(f"contrib = tf.contrib\na = contrib.mixed_precision\n{WRAP}"),
    "two classes": "class A:\n"
    + _indented(f"contrib = tf.contrib\n{OWN}")
    + "class B:\n"
    + _indented(f"contrib = tf.contrib\n{OWN}"),
    "chain": f"c = d = tf.contrib\n{USE}",
    "two names": f"d = tf.contrib\nc = d\n{USE}",
    "modules": "c = tf.contrib\nt = c.tpu\na = c.mixed_precision\n"
    f"x = t.CrossShardOptimizer(x)\n{WRAP}",
    "chain of a module": f"c = tf.contrib\na = b = c.mixed_precision\n{WRAP}",
    "imported": f"from tensorflow import contrib\nc = contrib\n{USE}",
    "imported by its path": f"import tensorflow.contrib\nc = tensorflow.contrib\n{USE}",
}


@pytest.mark.parametrize("options", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("body", RENAMED.values(), ids=RENAMED)
def test_contrib_is_renamed_with_the_last_of_its_reads(body, options):
    after, findings = _migrated(HEAD + body, options)
    assert "tf.contrib" not in after
    assert "tensorflow.contrib" not in after
    assert "from tensorflow import contrib" not in after
    assert "tf.compat.v1.contrib" not in after
    assert not _manual(findings)


REPORTED = {
    "attribute, too": (f"self.e = c = tf.contrib\n{USE}", [2]),
    "in __all__": (f"c = tf.contrib\n__all__ = ['c']\n{USE}", [2]),
    "in an annotation": (f"c = tf.contrib\nd: 'c.tpu'\n{USE}", [2]),
    "unread": (f"c = tf.contrib\n{USE.replace('c.', 'tf.contrib.')}", [2]),
    "unread, in a class": (f"class A: contrib = tf.contrib\n{OWN.replace('c', 'tf.c', 1)}", [2]),
    "deleted": (f"c = tf.contrib\ndel c\n{USE.replace('c.', 'tf.contrib.')}", [2]),
    "imported": (f"from tensorflow import contrib\nself.e = c = contrib\n{USE}", [2, 3]),
    "imported by its path": (
        f"import tensorflow.contrib\nself.e = c = tensorflow.contrib\n{USE}",
        [2, 3],
    ),
    "of a name": (f"d = tf.contrib\nself.e = c = d\n{USE}", [2, 3]),
    "imported and assigned": (f"from tensorflow import contrib as c\nc = c\n{USE}", [2]),
}


@pytest.mark.parametrize("options", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("case", REPORTED.values(), ids=REPORTED)
def test_contrib_is_reported_where_it_is_left_over(case, options):
    body, lines = case
    after, findings = _migrated(HEAD + body, options)
    assert _manual(findings) == lines
    assert all(LEFT in finding.message for finding in findings if finding.outcome is Safety.MANUAL)
    assert set(body.splitlines()[: len(lines) - 1]) <= set(after.splitlines())


NEEDED = {
    "other reads": f"c = tf.contrib\n{USE}c.layers.dense(x)\n",
    "passed on": f"c = tf.contrib\n{USE}f(c)\n",
    "returned": f"def f(x, m):\n    c = tf.contrib\n    {USE}    return c\n",
    "in a list": f"c = tf.contrib\nd = [c]\n{USE}",
    "in a dictionary": f"d['c'] = c = tf.contrib\n{USE}",
    "compared": f"c = tf.contrib\n{USE}if c is None:\n    pass\n",
    "read by attribute": f"self.e = c = tf.contrib\n{USE}self.e.layers.dense(x)\n",
    "read from an object": "class A:\n"
    + _indented(f"contrib = tf.contrib\n{OWN}")
    + "A().contrib.layers.dense(x)\n",
    "of a name": f"d = tf.contrib\nc = d\n{USE}d.layers.dense(x)\n",
    "tested": f"c = tf.contrib\nhasattr(c, 'layers')\n{USE}",
    "other names of a module": f"c = tf.contrib\n{USE}c.tpu.TPUConfig()\n",
    "silenced": f"c = tf.contrib\n{USE[:-1]}  # lossscale: ignore\n",
    "handled": f"try:\n    c = tf.contrib\nexcept AttributeError:\n    c = None\n{USE}",
    "handled import": "try:\n    from tensorflow import contrib as d\nexcept ImportError:\n"
    f"    d = tf.contrib\ntry:\n    c = d\nexcept NameError:\n    pass\n{USE}d.layers\n",
}


@pytest.mark.parametrize("options", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("body", NEEDED.values(), ids=NEEDED)
def test_contrib_stays_where_something_else_needs_it(body, options):
    after, findings = _migrated(HEAD + body, options)
    assert "tf.contrib" in after.replace("tfls.", "shim.")
    assert not [finding for finding in findings if LEFT in finding.message]


def test_contrib_stays_if_another_rule_is_selected():
    source = HEAD + f"c = tf.contrib\n{USE}"
    options = Options(target=Target.SHIM, select=("LS909",))
    assert transformed(source, options).source.decode() == source
