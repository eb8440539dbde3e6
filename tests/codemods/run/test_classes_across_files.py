"""One file reads a class, another makes its instances: both move, or neither.

What reads a class is a test, a key of a table, or code that replaces a method. Where it keeps the
old class, the constructors in every program with it do, too.
"""

import json

import pytest
from several_files import migrate

CONTRIB = "tf.contrib.mixed_precision"
V1 = "tf.train.experimental"
EXPERIMENTAL = "tf.keras.mixed_precision.experimental"
FAMILIES = {
    "contrib optimizer": (
        f"{CONTRIB}.LossScaleOptimizer",
        f"{CONTRIB}.LossScaleOptimizer(opt, {CONTRIB}.FixedLossScaleManager(8))",
    ),
    "contrib manager": (
        f"{CONTRIB}.LossScaleManager",
        f"{CONTRIB}.FixedLossScaleManager(8)",
    ),
    "v1 optimizer": (
        f"{V1}.MixedPrecisionLossScaleOptimizer",
        f"{V1}.MixedPrecisionLossScaleOptimizer(opt, 8)",
    ),
    "graph rewrite": (
        f"{V1}.MixedPrecisionLossScaleOptimizer",
        f"{V1}.enable_mixed_precision_graph_rewrite(opt, 8)",
    ),
    "loss scale": (f"{V1}.LossScale", f"{V1}.FixedLossScale(8)"),
    "cross shard": (
        "tf.contrib.tpu.CrossShardOptimizer",
        "tf.contrib.tpu.CrossShardOptimizer(opt)",
    ),
    "Keras": (
        f"{EXPERIMENTAL}.LossScaleOptimizer",
        f"{EXPERIMENTAL}.LossScaleOptimizer(opt, 8)",
    ),
    "Keras graph rewrite": (
        f"{EXPERIMENTAL}.LossScaleOptimizer",
        f"{V1}.enable_mixed_precision_graph_rewrite(opt, 8)",
    ),
    "policy": (f"{EXPERIMENTAL}.Policy", f"{EXPERIMENTAL}.Policy('mixed_float16')"),
}
READS = {
    "isinstance": "def seen(one):\n    return isinstance(one.part, {name})\n",
    "an alias": "KIND = {name}\n\n\ndef seen(one):\n    return isinstance(one.part, KIND)\n",
    "a table": "KINDS = ({name}, int)\n\n\ndef seen(one):\n    return type(one.part) in KINDS\n",
}
MAKER = "import tensorflow as tf\n\n\ndef make(opt):\n    return {made}\n"
MAIN = "from maker import make\nfrom reader import seen\n\nprint(seen(make(None)))\n"


def program(name, made, read="isinstance", **others):
    files = {
        "reader.py": "import tensorflow as tf\n\n\n" + READS[read].format(name=name),
        "maker.py": MAKER.format(made=made),
        "main.py": MAIN,
    }
    return {**files, **others}


def notebook(source):
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": source}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4})


def uses_shim(source):
    return "tf_lossscale" in source


@pytest.mark.sampled(3)
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("family", FAMILIES)
def test_constructor_stays_with_a_test_that_stays(command_line, family, read):
    files = program(*FAMILIES[family], read)
    ran = migrate(command_line, files, "--to", "shim")
    assert ran.sources == files
    assert "resolve reader.py first" in ran.messages
    assert ran.status == 1


@pytest.mark.parametrize("family", FAMILIES)
def test_both_move_with_unsafe(command_line, family):
    ran = migrate(command_line, program(*FAMILIES[family]), "--to", "shim", "--unsafe")
    assert uses_shim(ran.sources["reader.py"])
    assert uses_shim(ran.sources["maker.py"])


@pytest.mark.parametrize("family", FAMILIES)
def test_constructor_of_another_program_moves(command_line, family):
    files = program(
        *FAMILIES[family], **{"main.py": "import maker\n", "other.py": "import reader\n"}
    )
    ran = migrate(command_line, files, "--to", "shim")
    assert ran.sources["reader.py"] == files["reader.py"]
    assert uses_shim(ran.sources["maker.py"])


@pytest.mark.parametrize("family", FAMILIES)
def test_constructor_stays_with_a_suppressed_test(command_line, family):
    name, made = FAMILIES[family]
    files = program(name, made)
    silent = files["reader.py"].replace(f"{name})", f"{name})  # tf-lossscale: ignore")
    assert silent != files["reader.py"]
    files["reader.py"] = silent
    ran = migrate(command_line, files, "--to", "shim")
    assert ran.sources == files
    assert "resolve reader.py first" in ran.messages


@pytest.mark.parametrize("family", ["contrib optimizer", "v1 optimizer", "cross shard"])
def test_held_file_holds_the_next(command_line, family):
    name, made = FAMILIES[family]
    made_and_seen = MAKER.format(made=made) + f"\n\nprint(isinstance(make(None), {name}))\n"
    last = MAKER.format(made=made)
    files = program(name, made, **{"maker.py": made_and_seen, "last.py": last})
    files["more.py"] = "import last\nimport maker\n"
    ran = migrate(command_line, files, "--to", "shim")
    assert ran.sources == files
    assert "resolve maker.py first" in ran.messages


@pytest.mark.parametrize("keras", ["2", "3"])
@pytest.mark.parametrize(
    "read",
    [
        "STEPS = {{{name}: 1}}\n\n\ndef seen(one):\n    return STEPS[type(one.part)]\n",
        "def seen(one):\n    {name}.apply_gradients = one\n",
        "def seen(one):\n    setattr({name}, 'apply_gradients', one)\n",
    ],
    ids=["key", "patch", "setattr"],
)
def test_constructor_stays_with_other_reads_of_a_keras_class(command_line, keras, read):
    name, made = FAMILIES["Keras"]
    files = program(name, made)
    files["reader.py"] = "import tensorflow as tf\n\n\n" + read.format(name=name)
    ran = migrate(command_line, files, "--keras", keras)
    assert ran.sources["maker.py"] == files["maker.py"]
    assert "resolve reader.py first" in ran.messages


@pytest.mark.parametrize("keras", ["2", "3"])
def test_policy_stays_with_a_test_that_changed(command_line, keras):
    files = program(*FAMILIES["policy"])
    ran = migrate(command_line, files, "--keras", keras)
    assert ran.sources == files


@pytest.mark.parametrize("family", ["v1 optimizer", "graph rewrite", "loss scale", "cross shard"])
def test_same_class_at_another_path_holds_nothing(command_line, family):
    name, made = FAMILIES[family]
    files = program(name, made.replace("(opt", "(tf.compat.v1.train.AdamOptimizer()"))
    ran = migrate(command_line, files, "--keras", "2")
    assert "tf.compat.v1" in ran.sources["reader.py"]
    assert ran.sources["maker.py"] != files["maker.py"]
    assert ran.status == 0


def test_contrib_goes_one_way_in_all_files(command_line):
    files = program(*FAMILIES["contrib optimizer"])
    ran = migrate(command_line, files, "--unsafe", "--keras", "2")
    assert "tfls.contrib.mixed_precision.LossScaleOptimizer" in ran.sources["reader.py"]
    assert "tfls.contrib.mixed_precision.LossScaleOptimizer" in ran.sources["maker.py"]


def test_test_of_another_class_holds_nothing(command_line):
    made = FAMILIES["cross shard"][1]
    files = program("tf.Variable", made)
    files["reader.py"] += f"\n\ndef wrapped(opt):\n    return {made}\n"
    ran = migrate(command_line, files, "--to", "shim")
    assert uses_shim(ran.sources["reader.py"])
    assert uses_shim(ran.sources["maker.py"])
    assert ran.status == 0


def test_rewrite_stays_with_a_test_in_the_same_file(command_line):
    name, made = FAMILIES["graph rewrite"]
    text = "import tensorflow as tf\n\n\n" + READS["isinstance"].format(name=name)
    files = {"one.py": text + f"\n\ndef make(opt):\n    return {made}\n"}
    ran = migrate(command_line, files, "--to", "shim")
    assert ran.sources == files


@pytest.mark.parametrize("family", ["contrib optimizer", "Keras", "cross shard"])
@pytest.mark.parametrize("cells", ["reader.py", "maker.py"])
def test_notebook_holds_and_is_held(command_line, family, cells):
    files = program(*FAMILIES[family])
    del files["main.py"]
    other = "maker" if cells == "reader.py" else "reader"
    files["cells.ipynb"] = notebook(f"import {other}\n" + files.pop(cells))
    ran = migrate(command_line, files, "--to", "shim")
    assert ran.sources == files
    assert f"resolve {'cells.ipynb' if other == 'maker' else 'reader.py'} first" in ran.messages


@pytest.mark.parametrize("others", [0, 1], ids=["the only one", "one of two"])
def test_import_that_no_directory_resolves(command_line, others):
    """A file of another directory counts if no other file of the run has its name."""
    name, made = FAMILIES["cross shard"]
    files = program(name, made)
    placed = {"a/reader.py": files["reader.py"], "b/maker.py": files["maker.py"]}
    for number in range(others):
        placed[f"other{number}/maker.py"] = "make = print\n"
    placed["c/main.py"] = f"import sys\n\nsys.path += ['a', 'b']\n{MAIN}"
    for file in placed:
        command_line.path(file).parent.mkdir(exist_ok=True)
    ran = migrate(command_line, placed, "--to", "shim")
    assert uses_shim(ran.sources["b/maker.py"]) == bool(others)
