"""Every block of Python in the documentation runs, with the names that its page has explained."""

import json
import pathlib
from typing import Dict, List

import pytest
from documents import ROOT, Block, blocks, markdown
from processes import run_program

IN_A_FOLDER = "import os, tempfile\nos.chdir(tempfile.mkdtemp())"
SETUPS: Dict[str, List[str]] = {
    "docs/drop-in.md": [""],
    "docs/prove.md": [IN_A_FOLDER],
    "docs/tf1.md": ["", ""],
    "docs/monitoring.md": ["", "", "", ""],
    "docs/keras.md": [
        "",
        "",
        "",
        "",
        IN_A_FOLDER
        + """
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Input([3]), tf.keras.layers.Dense(1)])
model.compile(tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1)), "mse")
model.fit(tf.ones([2, 3]), tf.zeros([2, 1]), verbose=0)
model.save("model.keras")
""",
    ],
}
"""For each page, in the order of its blocks, the files that a block needs: else it stands alone."""

ENDINGS = {
    ("docs/drop-in.md", 0): "tf_lossscale.uninstall()",
    ("docs/tf1.md", 0): "assert train_op.graph is loss.graph",
    ("docs/tf1.md", 1): """
scale = Halving()
assert float(scale()) == 2.0**15
assert [bool(scale.update([tf.constant(each)])[1]) for each in (1.0, float("inf"))] == [True, False]
assert float(scale()) == 2.0**14
""",
    ("docs/monitoring.md", 0): "assert (*monitor.counts(), monitor.first_bad, monitor.loss_scale)"
    " == (3, 2, 2, 'weight', 8192.0)",
    ("docs/monitoring.md", 1): "assert history.history['skipped_steps'] == [0, 0]\n"
    "assert history.history['loss_scale'] == [32768.0, 32768.0]",
    ("docs/monitoring.md", 3): "assert bad == ['x', 'y']",
    ("docs/keras.md", 1): "assert int(optimizer.iterations) == 1",
    ("docs/keras.md", 2): "assert isinstance(Scaled(0.1).inner_optimizer, tf.keras.Optimizer)",
    ("docs/keras.md", 3): "tf.keras.mixed_precision.set_global_policy('float32')",
    ("docs/keras.md", 4): "assert float(optimizer.loss_scale) == 2.0**15\n"
    "assert int(optimizer.dynamic_counter) == 1",
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


def run(pieces: List[Dict[str, str]], file: pathlib.Path) -> Dict[str, str]:
    """Place to traceback, of the pieces that fail."""
    file.write_text(json.dumps(pieces), encoding="utf-8")
    return dict(run_program(str(ROOT / "tests" / "claims" / "run_blocks.py"), str(file)))


@pytest.fixture(scope="module")
def errors(tmp_path_factory) -> Dict[str, str]:
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
    return run([*pieces, wrong], tmp_path_factory.mktemp("blocks") / "pieces.json")


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
