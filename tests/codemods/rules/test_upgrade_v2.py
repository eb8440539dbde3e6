"""Both orders of `tf_upgrade_v2` and `migrate`, with the tool of the TensorFlow that is here."""

import ast
import importlib.util
import json
import pathlib

import pytest
from execution.leftovers import imported, path_of
from processes import run_forked, run_program
from tf_lossscale_codemods.engine.transform import transform
from tf_lossscale_codemods.model import Options, Target
from tf_lossscale_codemods.resolve.legacy_symbols import legacy_of

from tf_lossscale import _paths

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None,
    reason="TensorFlow is in some environments of the codemods only",
)

RUN_BLOCKS = str(pathlib.Path(__file__).parents[2] / "claims" / "run_blocks.py")
MODES = ("DEFAULT", "SAFETY")
ORDERS = ("upgrade, migrate", "migrate, upgrade")
TARGETS = {
    "shim": Options(target=Target.SHIM),
    "final2": Options(keras=2),
    "final3": Options(keras=3),
}
PROGRAMS = {
    "contrib": """\
import tensorflow as tf

manager = tf.contrib.mixed_precision.ExponentialUpdateLossScaleManager(2.0**15, 2000)
optimizer = tf.contrib.mixed_precision.LossScaleOptimizer(tf.train.AdamOptimizer(1e-3), manager)
""",
    "contrib_tpu": """\
import tensorflow as tf

optimizer = tf.contrib.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(1e-3))
""",
    "tpu": """\
import tensorflow as tf

optimizer = tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(1e-3))
total = tf.tpu.cross_replica_sum(tf.ones([]))
""",
    "train_experimental": """\
import tensorflow as tf

scale = tf.train.experimental.DynamicLossScale(initial_loss_scale=1024.0)
optimizer = tf.train.experimental.MixedPrecisionLossScaleOptimizer(
    tf.train.AdamOptimizer(1e-3), scale
)
""",
    "graph_rewrite": """\
import tensorflow as tf

optimizer = tf.train.AdamOptimizer(1e-3)
optimizer = tf.train.experimental.enable_mixed_precision_graph_rewrite(optimizer)
""",
    "keras_experimental": """\
import tensorflow as tf

tf.keras.mixed_precision.experimental.set_policy("mixed_float16")
optimizer = tf.keras.mixed_precision.experimental.LossScaleOptimizer(
    tf.keras.optimizers.SGD(1e-3), "dynamic"
)
print(float(optimizer.loss_scale()))
""",
}
CHAINS = {
    "compat.v1.compat.v1": "compat.v1.",
    "compat.v1.compat.v2": "",
    "compat.v1.keras": "keras.",
}
"""What `import tensorflow.compat.v1 as tf` makes of a path; the same objects."""

CROSS = {
    "contrib_tpu": ["CrossShardOptimizer"],
    "tpu": ["CrossShardOptimizer", "cross_replica_sum"],
}


def migrated(source, target):
    result = transform(source.encode(), TARGETS[target])
    assert result.error is None, result.error
    return result.source.decode(), result.findings


def used(source):
    """The full names of the shim's symbols that the program uses, and of TensorFlow's."""
    tree = ast.parse(source)
    names, found = imported(tree), set()
    for node in ast.walk(tree):
        path = path_of(node, names)
        if path:
            for chain, meant in CHAINS.items():
                path = path.replace(f"tensorflow.{chain}.", f"tensorflow.{meant}")
            if legacy_of(path) or _is_in_shim(path) or path.endswith(".set_global_policy"):
                found.add(path)
    return found


def _is_in_shim(path):
    namespace, _, name = path.partition(".")[2].rpartition(".")
    return path.startswith("tf_lossscale.") and name in _paths.NAMESPACES.get(namespace, ())


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory):
    """`upgraded[mode][name]` and `[mode][f"{target}-{name}"]`: one run of the tool for all."""
    folder = tmp_path_factory.mktemp("upgrade")
    (folder / "in").mkdir()
    for name, source in PROGRAMS.items():
        (folder / "in" / f"{name}.py").write_text(source)
        for target in TARGETS:
            (folder / "in" / f"{target}-{name}.py").write_text(migrated(source, target)[0])
    (folder / "upgrade.py").write_text(
        "import os, sys\n"
        "os.chdir(os.path.dirname(sys.argv[0]))\n"
        "from tensorflow.tools.compatibility import tf_upgrade_v2_main as tool\n"
        "for mode in sys.argv[1:]:\n"
        "    sys.argv = ['tf_upgrade_v2', '--intree', 'in', '--outtree', mode,\n"
        "                '--reportfile', mode + '.txt', '--mode', mode]\n"
        "    tool.main()\n"
    )
    ran = run_forked(str(folder / "upgrade.py"), *MODES)
    assert ran.returncode == 0, ran.stderr
    return {
        mode: {path.stem: path.read_text() for path in (folder / mode).glob("*.py")}
        for mode in MODES
    }


def test_the_tool_does_what_these_tests_are_about(upgraded):
    assert "tf.compat.v1.tpu.CrossShardOptimizer(" in upgraded["DEFAULT"]["contrib_tpu"]
    assert "import tensorflow.compat.v1 as tf\n" in upgraded["SAFETY"]["contrib_tpu"]
    assert "tf.contrib.tpu.CrossShardOptimizer(" in upgraded["SAFETY"]["contrib_tpu"]


def test_the_results_run_and_only_the_final_sum_needs_a_tpu(upgraded, tmp_path):
    """All but the Keras program: the tool writes `optimizers.legacy`, which Keras 3 refuses."""
    sources = {
        f"{target}, {order}, {mode}, {name}": in_order(upgraded, target, order, mode, name)[0]
        for target in TARGETS
        for order in ORDERS
        for mode in MODES
        for name in PROGRAMS
        if name != "keras_experimental"
    }
    pieces = [{"place": place, "setup": "", "code": code} for place, code in sources.items()]
    (tmp_path / "pieces.json").write_text(json.dumps(pieces))
    errors = run_program(RUN_BLOCKS, str(tmp_path / "pieces.json"))
    tpu_only = {name for name in sources if name.startswith("final") and name.endswith(", tpu")}
    assert set(errors) == tpu_only, errors
    assert all("CrossReplicaSum" in error for error in errors.values()), errors


def in_order(upgraded, target, order, mode, name):
    """The program after both tools, and what `migrate` found."""
    if order == "upgrade, migrate":
        return migrated(upgraded[mode][name], target)
    return upgraded[mode][f"{target}-{name}"], migrated(PROGRAMS[name], target)[1]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("target", TARGETS)
def test_both_orders_end_at_the_same_symbols(upgraded, target, order, mode, name):
    result, findings = in_order(upgraded, target, order, mode, name)
    assert findings
    assert not [finding for finding in findings if finding.is_left]
    alone = used(migrated(PROGRAMS[name], target)[0])
    assert alone
    assert {_object(path) for path in used(result)} == {_object(path) for path in alone}
    if name in CROSS:
        word = "CPUs" if target == "shim" else "needs a TPU"
        assert [finding.symbol for finding in findings if word in finding.message] == CROSS[name]
    again, later = migrated(result, target)
    assert again == result
    assert not [finding for finding in later if finding.applied or finding.is_left]


def _object(path):
    """The symbol behind one of the shim's paths; TensorFlow's stand for themselves."""
    first, _, rest = path.partition(".")
    namespace, _, name = rest.rpartition(".")
    return _paths.NAMESPACES[namespace][name] if first == "tf_lossscale" else path
