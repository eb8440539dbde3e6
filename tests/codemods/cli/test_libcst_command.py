"""The rules through LibCST's own codemod runner."""

import pathlib
import subprocess
import sys

import libcst as cst
import pytest
from libcst.codemod import CodemodContext, SkipFile
from tf_lossscale_codemods.cli.libcst_command import MigrateCommand

BEFORE = "import tensorflow as tf\n\nopt = tf.contrib.tpu.CrossShardOptimizer(opt)\n"


def test_a_module_is_migrated():
    command = MigrateCommand(CodemodContext(), to="shim")
    after = command.transform_module(cst.parse_module(BEFORE))
    assert after.code == BEFORE.replace("tf.contrib", "tfls.contrib").replace(
        "tensorflow as tf", "tf_lossscale as tfls"
    )


@pytest.mark.parametrize(("keras", "name"), [(None, "tfls"), (3, "tfls"), (2, "tf")])
def test_without_a_keras_version_the_result_runs_on_both(keras, name):
    before = (
        "import tensorflow as tf\n\nopt = tf.keras.mixed_precision.{}LossScaleOptimizer(opt{})\n"
    )
    command = MigrateCommand(CodemodContext(), keras=keras)
    after = command.transform_module(
        cst.parse_module(before.format("experimental.", ", 'dynamic'"))
    )
    assert f"opt = {name}.keras.mixed_precision.LossScaleOptimizer(opt)\n" in after.code


def test_what_is_left_becomes_a_warning():
    context = CodemodContext()
    source = "from utilities import *\nopt = CrossShardOptimizer(opt)\n"
    after = MigrateCommand(context).transform_module(cst.parse_module(source))
    assert after.code == source
    assert any("LS901" in warning for warning in context.warnings)


def test_a_module_that_cannot_be_migrated_is_skipped():
    deep = cst.parse_module(BEFORE + "x = " + "(" * 1200 + "1" + ")" * 1200 + "\n")
    with pytest.raises(SkipFile, match="nested more than 200 deep"):
        MigrateCommand(CodemodContext()).transform_module(deep)


def test_the_tool_runs_it(tmp_path):
    file = tmp_path / "train.py"
    file.write_text(BEFORE)
    root = pathlib.Path(__file__).resolve().parents[3]
    program = (
        "import sys, runpy; sys.path[:0] = sys.argv[1:3]; import conftest; "
        "sys.argv = ['libcst.tool', 'codemod', '-x', "
        "'tf_lossscale_codemods.cli.libcst_command.MigrateCommand', '--no-format', sys.argv[3]]; "
        "runpy.run_module('libcst.tool', run_name='__main__')"
    )
    tests = str(root / "tests" / "codemods")
    done = subprocess.run(
        [sys.executable, "-c", program, str(root), tests, str(file)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "tf.compat.v1.tpu.CrossShardOptimizer" in file.read_text(), done.stderr
