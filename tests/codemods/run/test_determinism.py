"""The output depends on the files alone: not on `--jobs`, their order, or the hash seed."""

import os
import subprocess
import sys

import pytest
from command_line import PROGRAM
from execution.bundle import read

FILES = {
    "compat.py": """\
import tensorflow as tf

tpu = tf.tpu
mp = tf.keras.mixed_precision.experimental
""",
    "amp.py": """\
try:
    from tensorflow.contrib.mixed_precision import FixedLossScaleManager
    from tensorflow.keras.mixed_precision.experimental import Policy
except ImportError:
    from npu_bridge.npu_init import FixedLossScaleManager
    from tensorflow.keras.mixed_precision import Policy
""",
    "cycle.py": "from other import *\nfrom compat import tpu\nimport use\n",
    "other.py": "from cycle import *\nfrom compat import mp\n",
    "use.py": """\
from amp import FixedLossScaleManager, Policy
from compat import mp, tpu
import cycle
import tensorflow as tf

manager = FixedLossScaleManager(8)
opt = tpu.CrossShardOptimizer(opt)
opt = cycle.tpu.CrossShardOptimizer(opt)
policy = Policy("mixed_float16", loss_scale=None)
it = manager or opt or policy
print(it.loss_scale())
scale = tf.train.experimental.DynamicLossScale(multiplier=3.0) if it else it
opt = mp.LossScaleOptimizer(tf.keras.optimizers.SGD(), scale)
opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(it)
print(opt.loss_scale(), "loss_scale:0", tf.contrib.mixed_precision)
""",
    "shared.py": """\
from tensorflow.keras.mixed_precision import experimental as mp
from tensorflow.keras.mixed_precision import experimental as left
from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer as Wrap
""",
    "first.py": "from shared import *\n\nmp.set_policy('a')\nopt = Wrap(make(), 8)\n",
    "second.py": "import shared\n\nshared.left.Policy('a', loss_scale=None)\nuse(shared)\n",
    "third.py": "import shared\n\nshared.left.Policy('a', loss_scale=None)\nuse(shared)\n",
    "final.py": """\
import tensorflow as tf
from unknown import *

opt = tf.keras.mixed_precision.LossScaleOptimizer(build())
if isinstance(model.optimizer, tf.keras.mixed_precision.LossScaleOptimizer):
    print(CrossShardOptimizer, model.optimizer.loss_scale)
""",
}
for line in read("files")[:4]:
    FILES.update({f"{line['name']}/{name}": text for name, text in line["files"].items()})
SEEDS = 20 if os.environ.get("TFLS_TEST_SIZE") == "long" else 3
OPTIONS = ("--report", "json:{}.json", "--report", "sarif:{}.sarif", "-v", "--allow-dirty")


@pytest.fixture
def tree(tmp_path):
    directory = tmp_path / "tree"
    directory.mkdir()
    for name, text in FILES.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(text)
    return directory


def outputs(tree, *options: str, seed: str = "0") -> dict:
    """Everything that a run writes."""
    reports = tree.parent / "report"
    argv = [option.format(reports) for option in OPTIONS]
    if not any(option.endswith(".py") for option in options):
        options = (*options, ".")
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, "migrate", *argv, *options],
        cwd=tree,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": seed, "SOURCE_DATE_EPOCH": "0", "NO_COLOR": "1"},
    )
    assert ran.returncode == 1, ran.stderr.decode()
    written = {path.name: path.read_bytes() for path in sorted(tree.parent.glob("report.*"))}
    return {"out": ran.stdout, "err": ran.stderr, **written}


def test_hash_seed_and_jobs(tree):
    first = outputs(tree, "--keras", "2", "--jobs", "1")
    assert b"go to the shim" in first["report.json"]
    for seed in range(1, SEEDS):
        again = outputs(tree, "--keras", "2", "--jobs", str(2 * seed), seed=str(seed))
        assert again == first, seed


def test_order_of_the_files(tree):
    """The edits, and the findings; the order of the report is the order of the files."""
    names = sorted(FILES)
    results, lines = [], []
    for order in (names, names[::-1]):
        for name, text in FILES.items():
            (tree / name).write_text(text)
        ran = outputs(tree, "--write", "--keras", "2", *order)
        lines.append(sorted((ran["out"] + ran["err"]).splitlines()))
        results.append({name: (tree / name).read_text() for name in names})
    assert lines[0] == lines[1]
    assert results[0] == results[1]
    assert results[0] != FILES
