"""Our class and TensorFlow's class of the same name count as one class, in every mixture."""

import os

import processes
import pytest
import tensorflow as tf

PROGRAM = os.path.join(os.path.dirname(__file__), "programs", "class_tests.py")
MODES = ["ours first", "replace", "uninstall"]
if tf.__version__.startswith("1."):
    MODES.append("originals first")  # the program imports `tf.contrib` itself


@pytest.mark.parametrize("mode", MODES)
def test_each_test_gives_the_answer_of_the_original_program(mode):
    assert processes.run_program(PROGRAM, mode) == []
