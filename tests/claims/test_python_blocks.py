"""Every block of Python in the documentation runs, with the names that its page has explained."""

import json
import subprocess
import sys
from typing import Dict, List

import pytest
from documents import ROOT, Block, Text, blocks, markdown

SETUPS: Dict[str, List[str]] = {
    "README.md": [
        """
import tensorflow as tf
optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)
"""
    ],
    "docs/drop-in.md": [""],
    "docs/prove.md": [
        """
import os
import tempfile
os.chdir(tempfile.mkdtemp())
"""
    ],
    "docs/tf1.md": [
        """
import tensorflow as tf
graph = tf.Graph().as_default()
graph.__enter__()
global_step = tf.compat.v1.train.get_or_create_global_step()
loss = tf.compat.v1.get_variable("w", [], use_resource=True) ** 2
""",
        """
import tensorflow as tf
import tf_lossscale as tfls
""",
        """
import os
import tempfile
import tensorflow as tf
folder = tempfile.TemporaryDirectory()
path = os.path.join(folder.name, "model")
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    with tf.name_scope("cond"):  # as with control flow v1
        powers = [tf.compat.v1.Variable(0.5, name=n) for n in ("beta1_power", "beta2_power")]
    session.run([each.initializer for each in powers])
    tf.compat.v1.train.Saver(powers).save(session, path)
graph = tf.Graph().as_default()
graph.__enter__()
for n in ("beta1_power", "beta2_power"):
    tf.compat.v1.Variable(0.0, name=n)
session = tf.compat.v1.Session()
""",
    ],
    "docs/monitoring.md": [
        "",
        """
import tempfile
import tensorflow as tf
import tf_lossscale as tfls
images, labels, folder = tf.ones([2, 3]), tf.zeros([2, 1]), tempfile.mkdtemp()
model = tf.keras.Sequential([tf.keras.layers.Input([3]), tf.keras.layers.Dense(1)])
inner = tf.keras.optimizers.SGD(0.1)
model.compile(tfls.keras.mixed_precision.LossScaleOptimizer(inner), "mse")
""",
        """
import tensorflow as tf
import tf_lossscale as tfls
graph = tf.Graph().as_default()
graph.__enter__()
loss = tf.compat.v1.get_variable("w", [], use_resource=True) ** 2
manager = tfls.contrib.mixed_precision.FixedLossScaleManager(8.0)
inner = tf.compat.v1.train.GradientDescentOptimizer(0.1)
optimizer = tfls.contrib.mixed_precision.LossScaleOptimizer(inner, manager)
""",
        """
import tensorflow as tf
import tf_lossscale as tfls
x, y = tf.Variable(0.0, name="x"), tf.Variable(0.0, name="y")
""",
    ],
    "docs/keras.md": [
        "import tensorflow as tf",
        """
import tensorflow as tf
import tf_lossscale as tfls
""",
        """
import tensorflow as tf
import tf_lossscale as tfls
images, labels = tf.ones([2, 3]), tf.zeros([2, 1])
model = tf.keras.Sequential([tf.keras.layers.Input([3]), tf.keras.layers.Dense(1)])
loss_fn = tf.keras.losses.MeanSquaredError()
optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))
""",
        """
import tensorflow as tf
import tf_lossscale
optimizer = tf.keras.optimizers.SGD(0.1)
""",
        """
import tensorflow as tf
import tf_lossscale as tfls
loss = "mse"
model = tf.keras.Sequential([tf.keras.layers.Input([3]), tf.keras.layers.Dense(1)])
model.compile(tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1)), loss)
model.optimizer.build(model.trainable_variables)
""",
    ],
}
"""For each page, in the order of its blocks, what stands before a block in a program."""

ENDINGS = {
    ("docs/drop-in.md", 0): "tf_lossscale.uninstall()",
    ("docs/tf1.md", 0): "assert train_op.graph is loss.graph\ngraph.__exit__(None, None, None)",
    ("docs/tf1.md", 1): "assert Halving()() == 2.0**15",
    ("docs/tf1.md", 2): "assert {float(session.run(v)) for v in names.values()} == {0.5}\n"
    "graph.__exit__(None, None, None)",
    ("docs/monitoring.md", 0): "assert (*monitor.counts(), monitor.first_bad, monitor.loss_scale)"
    " == (3, 2, 2, 'weight', 8192.0)",
    ("docs/monitoring.md", 1): "assert history.history['skipped_steps'] == [0, 0]",
    ("docs/monitoring.md", 2): "assert monitor.counts() == (20, 0, 0)\n"
    "graph.__exit__(None, None, None)",
    ("docs/monitoring.md", 3): "assert bad == ['x', 'y']",
    ("docs/keras.md", 1): "assert isinstance(Scaled(0.1).inner_optimizer, tf.keras.Optimizer)",
    ("docs/keras.md", 2): "assert int(optimizer.iterations) == 1",
    ("docs/keras.md", 3): "tf.keras.mixed_precision.set_global_policy('float32')",
    ("docs/keras.md", 4): "assert float(optimizer.loss_scale) == 2.0**15",
}
"""What makes sure of its effect, or takes it back."""

COMPILED_ONLY = {
    "docs/migrate.md": "a line of a program for TensorFlow 1.15; test_commands.py migrates it",
    "CONTRIBUTING.md": "parts of files, which tests/codemods/rules/test_new_rule.py runs",
}
"""Pages whose blocks of Python are compiled and not run, and why."""


def python_blocks() -> Dict[str, List[Block]]:
    found: Dict[str, List[Block]] = {}
    for text in markdown():
        # The pages on rules are made from the rules' examples, which their own tests migrate.
        if not text.file.startswith("docs/rules/"):
            those = [block for block in blocks(text) if block.language == "python"]
            found.update({text.file: those} if those else {})
    return found


def run(pieces: List[Dict[str, str]]) -> Dict[str, str]:
    """Place to traceback, of the pieces that fail."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(ROOT / "tests" / "claims" / "run_blocks.py")],
        input=json.dumps(pieces),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def errors() -> Dict[str, str]:
    """Of all blocks, and of one that fails."""
    pieces = [
        {
            "place": f"{page} {number}",
            "setup": SETUPS[page][number],
            "code": block.code + "\n" + ENDINGS.get((page, number), ""),
        }
        for page, those in python_blocks().items()
        if page not in COMPILED_ONLY
        for number, block in enumerate(those)
    ]
    wrong = {"place": "made-up", "setup": "", "code": "import tf_lossscale\ntf_lossscale.instal()"}
    return run([*pieces, wrong])


def test_a_block_that_fails_is_found(errors):
    assert "AttributeError" in errors["made-up"]


@pytest.mark.parametrize("page", SETUPS)
def test_blocks_run(page, errors):
    failed = [error for place, error in errors.items() if place.startswith(page + " ")]
    assert not failed, "\n".join(failed)


def test_every_block_has_its_place_here():
    count = {page: len(those) for page, those in python_blocks().items()}
    for page in COMPILED_ONLY:
        for block in python_blocks()[page]:
            compile(block.code, page, "exec")
        del count[page]
    assert count == {page: len(setups) for page, setups in SETUPS.items()}


CHECKED_BY = {
    "": "test_commands.py: every line is a command, or what one prints",
    "python": "this file",
    "diff": "test_readme.py, and test_guides.py",
    "pycon": "make doctest",
    "json": "test_commands.py",
    "text": "test_troubleshooting.py",
    "toml": "test_commands.py",
    "yaml": "test_commands.py",
}
"""What checks the blocks of each language."""


def test_every_block_is_of_a_language_that_is_checked():
    for text in markdown():
        if not text.file.startswith("docs/rules/"):
            for block in blocks(text):
                assert block.language in CHECKED_BY, f"{text.file}:{block.line}"
                assert block.language != "pycon" or text.file == "README.md", text.file
            assert text.text.count("\n```") == 2 * len(blocks(text)), text.file


def test_a_page_has_no_example_outside_of_a_block():
    """`>>>` in running text is shown as a quotation."""
    for text in markdown():
        outside = set(text.text.split("\n"))
        for block in blocks(Text(text.file, 1, text.text)):
            outside -= set(block.code.split("\n"))
        assert not [line for line in outside if line.startswith(">>>")], text.file
