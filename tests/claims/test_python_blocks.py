"""Every block of Python in the documentation runs, with the names that its page has explained."""

import json
from typing import Dict, Tuple

import pytest
from documents import ROOT, Block, blocks, markdown
from processes import run_program

IN_A_FOLDER = "import os, tempfile\nos.chdir(tempfile.mkdtemp())"
MODEL = """
import tensorflow as tf
import KERAS
import tf_lossscale as tfls
model = KERAS.Sequential([KERAS.layers.Input([3]), KERAS.layers.Dense(4), KERAS.layers.Dense(1)])
optimizer = OWNER.keras.mixed_precision.LossScaleOptimizer(KERAS.optimizers.Adam(0.1))
model.compile(optimizer, "mse")
"""
SAVER = """
import tensorflow as tf
import keras
import tf_lossscale as tfls
tf1 = tf.compat.v1
v1 = tfls.compat.v1.mixed_precision
with tf.Graph().as_default(), tf1.Session() as session:
    old = [tf1.get_variable("w", [3, 1]), tf1.get_variable("layer/bias", [1])]
    optimizer = v1.MixedPrecisionLossScaleOptimizer(
        tf1.train.AdamOptimizer(), v1.DynamicLossScale(64.0)
    )
    optimizer.minimize(tf.reduce_sum(old[0]) + tf.reduce_sum(old[1]))
    session.run(tf1.global_variables_initializer())
    tf1.train.Saver().save(session, "run/model.ckpt", 7)
model = keras.Sequential([keras.layers.Input([3]), keras.layers.Dense(1, name="dense")], name="net")
optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())
"""
SETUPS = {
    ("docs/monitoring.md", 0): """
import warnings
caught = []
warnings.showwarning = lambda message, *_, **__: caught.append(str(message))
""",
    ("docs/prove.md", 0): IN_A_FOLDER,
    ("docs/accumulate.md", 3): IN_A_FOLDER
    + """
import tensorflow as tf
session = tf.compat.v1.InteractiveSession(graph=tf.Graph())
weight = tf.compat.v1.get_variable("weight", initializer=2.0)
session.run(weight.initializer)
path = tf.compat.v1.train.Saver().save(session, "run/model")
tf.compat.v1.get_variable("accumulated/weight", initializer=0.0)
""",
    ("docs/checkpoints.md", 0): IN_A_FOLDER
    + MODEL.replace("OWNER.keras", "KERAS").replace("KERAS", "tf_keras")
    + """
model.fit(tf.ones([2, 3]), tf.zeros([2, 1]), verbose=0)
tf.train.Checkpoint(model=model, optimizer=model.optimizer).save("run/c")
"""
    + MODEL.replace("OWNER", "tfls").replace("KERAS", "keras"),
    ("docs/checkpoints.md", 1): IN_A_FOLDER + SAVER,
    ("docs/checkpoints.md", 2): IN_A_FOLDER
    + """
import keras
import tensorflow as tf
import tf_keras

def network(kind=tf_keras):
    return kind.Sequential([kind.layers.Input([3]), kind.layers.Dense(1)])

old = network()
tf.train.Checkpoint(net=old).save("run/c")
""",
    ("docs/keras.md", 4): IN_A_FOLDER
    + """
import tensorflow as tf
tf.keras.mixed_precision.set_global_policy("mixed_float16")
dense = tf.keras.layers.Dense(1, kernel_initializer="zeros")  # no gradient overflows
model = tf.keras.Sequential([tf.keras.layers.Input([3]), dense])
model.compile(tf.keras.optimizers.SGD(0.1), "mse")  # which it wraps
model.fit(tf.ones([2, 3]), tf.zeros([2, 1]), verbose=0)
model.save("model.keras")
tf.keras.mixed_precision.set_global_policy("float32")
""",
}
"""The files that a block needs, by its page and its number there."""

ENDINGS = {
    ("docs/drop-in.md", 0): "tf_lossscale.uninstall()",
    (
        "docs/accumulate.md",
        0,
    ): "assert (float(weight), float(optimizer.loss_scale)) == (0.0, 2.0**14)",
    ("docs/accumulate.md", 1): "assert int(model.optimizer.iterations.numpy()) == 2",
    ("docs/accumulate.md", 2): """
with tf.compat.v1.Session(graph=loss.graph) as session:
    session.run([variable.initializer for variable in tf.compat.v1.global_variables()])
    for _ in range(8):
        session.run(train_op)
    assert session.run(step) == 2
""",
    (
        "docs/accumulate.md",
        3,
    ): "assert session.run(weight) == 2.0 and len(others) == 1\nsession.close()",
    ("docs/is-it-scaled.md", 0): "assert float(plain[1][0]) == 0.0 < float(unscaled[1][0])\n"
    "tf.keras.mixed_precision.set_global_policy('float32')",
    ("docs/scale-at-1.md", 0): "assert float(optimizer.loss_scale) == 2.0**-8",
    ("docs/scale-at-1.md", 1): "assert stopped and monitor.counts().steps == 8",
    ("docs/wrappers.md", 0): "assert int(optimizer.iterations) == 2\n"
    "assert int(optimizer.inner_optimizer.applied) == 1",
    ("docs/checkpoints.md", 0): "assert int(model.optimizer.iterations) == 1",
    ("docs/checkpoints.md", 1): "assert float(optimizer.loss_scale) == 64.0",
    ("docs/checkpoints.md", 2): "new = network(keras)\n"
    "new.load_weights('run.h5')\n"
    "assert float(tf.reduce_max(abs(new.weights[0] - old.weights[0]))) == 0.0",
    ("docs/tf1.md", 0): "assert train_op.graph is loss.graph",
    ("docs/tf1.md", 1): """
scale = Halving()
assert float(scale()) == 2.0**15
assert [bool(scale.update([tf.constant(each)])[1]) for each in (1.0, float("inf"))] == [True, False]
assert float(scale()) == 2.0**14
""",
    ("docs/monitoring.md", 0): """
(message,) = [text for text in caught if "in a row were skipped, so the next" in text]
start = "3 steps in a row were skipped, so the next one was looked at. The output of layer log "
assert message.startswith(start + "(Activation) is the first that is not finite: 4 infinite of 4")
assert monitor.advice.startswith("no gradient was finite in a skipped step, so look at the ")
assert history.history["skipped_steps"] == [8] and history.history["loss_scale"] == [2.0**15 / 2**8]
""",
    ("docs/monitoring.md", 1): "assert (*monitor.counts(), monitor.first_bad, monitor.loss_scale)"
    " == (3, 2, 2, 'weight', 8192.0)",
    ("docs/monitoring.md", 3): "assert bad == ['x', 'y']",
    ("docs/keras.md", 0): "assert int(optimizer.iterations) == 1",
    ("docs/keras.md", 1): "assert isinstance(Scaled(0.1).inner_optimizer, tf.keras.Optimizer)",
    ("docs/keras.md", 2): "assert float(optimizer.loss_scale) == 2.0**15\n"
    "tf.keras.mixed_precision.set_global_policy('float32')",
    ("docs/keras.md", 3): "tf.keras.mixed_precision.set_global_policy('float32')",
    ("docs/keras.md", 4): "assert float(optimizer.loss_scale) == 2.0**15\n"
    "assert int(optimizer.dynamic_counter) == 1\n"
    "tf.keras.mixed_precision.set_global_policy('float32')",
}
"""What makes sure of its effect, or takes it back."""

COMPILED_ONLY = {
    "docs/migrate.md": "a line of a program for TensorFlow 1.15; test_commands.py migrates it",
    "CONTRIBUTING.md": "parts of files, which tests/codemods/rules/test_new_rule.py runs",
}
"""Pages whose blocks of Python are compiled and not run, and why."""


def python_blocks() -> Dict[Tuple[str, int], Block]:
    found = {}
    for text in markdown():
        # The pages on rules are made from the rules' examples, which their own tests migrate.
        if not text.file.startswith("docs/rules/"):
            those = [block for block in blocks(text) if block.language == "python"]
            found.update({(text.file, number): block for number, block in enumerate(those)})
    return found


def test_every_block_runs(tmp_path):
    wrong = "import tf_lossscale\ntf_lossscale.instal()"
    pieces = [{"place": "made-up", "setup": "", "code": wrong}]
    for place, block in python_blocks().items():
        if place[0] in COMPILED_ONLY:
            compile(block.code, place[0], "exec")
            continue
        code = block.code + "\n" + ENDINGS.get(place, "")
        pieces.append({"place": str(place), "setup": SETUPS.get(place, ""), "code": code})
    file = tmp_path / "pieces.json"
    file.write_text(json.dumps(pieces), encoding="utf-8")
    errors = run_program(str(ROOT / "tests" / "claims" / "run_blocks.py"), str(file))
    assert "AttributeError" in errors.pop("made-up")
    assert not errors, "\n".join(errors.values())


def test_the_optimizer_that_counts_its_own_steps_does_so_on_keras_2():
    """Its `build` is called in each step there, and must not set the count back."""
    pytest.importorskip("tf_keras")
    code = python_blocks()["docs/wrappers.md", 0].code
    assert code.count("tf.keras.optimizers.SGD") == 1
    found = {}
    exec(code.replace("tf.keras.optimizers.SGD", "__import__('tf_keras').optimizers.SGD"), found)
    optimizer = found["optimizer"]
    assert [int(optimizer.iterations), int(optimizer.inner_optimizer.applied)] == [2, 1]


def test_every_place_is_that_of_a_block():
    found = python_blocks()
    assert {*SETUPS, *ENDINGS} <= set(found)
    assert set(COMPILED_ONLY) <= {page for page, _ in found}
