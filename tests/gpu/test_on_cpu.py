"""Runs the GPU checks on CPUs, to test the checks themselves."""

import os

import pytest
from processes import run_forked

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = """
import sys, warnings
warnings.simplefilter("ignore")
sys.path[:0] = [{tests!r}]
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from gpu.checks import CHECKS
from gpu.table import Setting, print_table, run_checks
print_table(run_checks(CHECKS, Setting(["/CPU:0", "/CPU:1"], large=False)))
"""


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    program = tmp_path_factory.mktemp("gpu") / "program.py"
    program.write_text(PROGRAM.format(tests=os.path.dirname(HERE)))
    ran = run_forked(str(program))
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert "TensorFlow" in lines[0]
    assert lines[2:4] == ["| check | result | detail |", "|---|---|---|"]
    table = {}
    for line in lines[4:]:
        name, result, detail = line.strip("| ").split(" | ")
        table[name] = (result, detail)
    assert table, ran.stderr
    return table


@pytest.mark.slow
def test_every_check_passes_on_two_logical_cpus(rows):
    not_ok = {name: row for name, row in rows.items() if row[0] != "ok"}
    assert set(not_ok) == {"peak memory of a v1 step"}, not_ok
    assert not_ok["peak memory of a v1 step"][0] == "not run"


def test_without_a_gpu_one_line_says_that_nothing_was_tested():
    ran = run_forked(HERE)
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) == 1
    assert ran.stdout.startswith("Nothing was tested: TensorFlow")
