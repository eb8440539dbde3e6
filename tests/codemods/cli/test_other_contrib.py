"""The files that use `tf.contrib` for what no rule migrates."""

import json
import time

import pytest
from command_line import CLEAN
from file_system import git
from tf_lossscale_codemods.engine.prefilter import uses_other_contrib


@pytest.mark.parametrize(
    "line",
    [
        "x = tf.contrib.layers.fully_connected(x, 2)",
        "import tensorflow.contrib.slim as slim",
        "from tensorflow.contrib import layers",
        "from tensorflow.contrib.tpu import TPUConfig",
        "contrib = tf.contrib",
        "tf.contrib.mixed_precision.FixedLossScaleManager(tf.contrib.layers.f(1))",
        'tf.contrib.layers.f("#")  # a comment',
        '"import tensorflow as tf\\ntf.contrib.layers.f()"',
        "from tensorflow.contrib.mixed_precision_of_others import f",
    ],
)
def test_other_uses_of_contrib_are_found(line):
    assert uses_other_contrib(f"import os\n{line}\n".encode())


@pytest.mark.parametrize(
    "line",
    [
        "",
        "# tf.contrib.layers",
        "x = 1  # from tf.contrib.layers",
        "from django.contrib import auth",
        "my_tf.contrib.layers",
        "self.tf.contrib.layers",
        "tf.contrib.mixed_precision.FixedLossScaleManager(128)",
        "from tensorflow.contrib import mixed_precision",
        "from tensorflow.contrib.mixed_precision.python import loss_scale_manager",
        "tf.contrib.tpu.CrossShardOptimizer(opt)",
        "from tensorflow.contrib.tpu import cross_replica_sum",
        "from tensorflow.contrib.tpu.python.tpu import tpu_optimizer",
        "from tensorflow.contrib.tpu.python.tpu.tpu_optimizer import CrossShardOptimizer",
    ],
)
def test_what_the_rules_migrate_does_not_count(line):
    assert not uses_other_contrib(f"import os\n{line}\n".encode())


@pytest.mark.parametrize(
    "part", [b"tf.contrib.mixed_precision ", b"tf.contrib.", b"tf.contrib import", b"\n" * 11]
)
def test_the_search_takes_time_in_proportion_to_the_size(part):
    for start in (b"", b"#"):
        source = start + b".contrib " + part * 300_000
        begin = time.process_time()
        uses_other_contrib(source)
        assert time.process_time() - begin < 20  # quadratic time would be hours


def test_the_summary_counts_the_files(command_line):
    other = b"import tensorflow as tf\n\nx = tf.contrib.layers.flatten(x)\n"
    command_line.write(a=other * 3, b=CLEAN, ignored=other)
    git("init", "-q")
    command_line.path(".gitignore").write_text("ignored.py\n")
    ran = command_line.run("migrate")
    assert ran.status == 0
    assert ran.out.decode().splitlines()[1:] == [
        "tf.contrib is still used in 1 file for other things; "
        "tf_upgrade_v2 rewrites or reports them, but not imports from it"
    ]
    command_line.write(c=other + b"opt = tf.contrib.tpu.CrossShardOptimizer(opt)\n")
    assert b"used in 2 files for other things" in command_line.run("migrate").out
    counts = json.loads(command_line.run("migrate", "--report", "json").out)["summary"]
    assert counts["other_contrib"] == 2
    assert "used in 2 files" in command_line.run("migrate", "--report", "github").out.decode()
    html = command_line.run("migrate", "--report", "html").out.decode()
    assert "<dt>with other uses of tf.contrib</dt><dd>2</dd>" in html
    assert "used in 1 file" in command_line.run("migrate", "-", stdin=other).err
    from_stdin = command_line.run("migrate", "-", "--report", "json", stdin=other).err
    assert '"other_contrib": 1}' in from_stdin


def test_an_import_that_the_run_rewrites_does_not_count(command_line):
    source = b"from tensorflow.contrib import tpu\n\nopt = tpu.CrossShardOptimizer(opt)\n"
    assert uses_other_contrib(source)
    command_line.write(a=source, b=source + b"c = tpu.TPUConfig()\n")
    assert "still used" in command_line.run("migrate", "--to", "shim").out.decode()
    command_line.path("b.py").unlink()
    ran = command_line.run("migrate", "--to", "shim")
    assert b"+" in ran.out
    assert "still used" not in ran.out.decode()
