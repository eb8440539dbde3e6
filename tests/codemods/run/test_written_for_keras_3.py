"""Whether a program is written for Keras 3's class is decided once, for all of its files."""

import pytest
from several_files import migrate

MAKE = """\
import tensorflow as tf


def make(opt):
    return tf.keras.mixed_precision.LossScaleOptimizer(opt)
"""
SUBCLASS = """\
import make
import tensorflow as tf


class Logged(tf.keras.mixed_precision.LossScaleOptimizer):
    pass
"""
KERAS_3 = """\
import make
import tensorflow as tf

opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())


def step(loss):
    return opt.scale_loss(loss)
"""
KERAS_2 = "import make\n\n\ndef step(opt, loss):\n    return opt.get_scaled_loss(loss)\n"
TARGETS = [["--to", "shim"], ["--keras", "2"], ["--keras", "3"]]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", TARGETS)
def test_the_final_class_stays_in_every_file(command_line, options):
    files = {"make.py": MAKE, "logged.py": SUBCLASS, "train.py": KERAS_3}
    result = migrate(command_line, files, *options)
    assert (result.sources, result.findings) == (files, [])


@pytest.mark.parametrize("options", [["--to", "shim"], ["--keras", "3"]])
def test_the_shims_class_has_the_methods_of_both(command_line, options):
    files = {"make.py": MAKE, "train.py": KERAS_3, "old.py": KERAS_2}
    result = migrate(command_line, files, *options)
    for name in ("make.py", "train.py"):
        assert "tfls.keras.mixed_precision.LossScaleOptimizer" in result.sources[name]
    assert all(finding.endswith("safe") for finding in result.findings)


@pytest.mark.parametrize("options", [["--to", "shim"], ["--keras", "3"]])
def test_files_without_a_legacy_name_connect_a_program(command_line, options):
    """A method of Keras 2 is right if another file makes the optimizer, however far away."""
    used, made = KERAS_2.replace("import make\n\n\n", ""), MAKE
    apart = migrate(command_line, {"old.py": used, "make.py": made}, *options)
    assert [text for text in apart.findings if text.startswith("old.py")]
    ways = {"main.py": "import a, b\n", "a.py": "import old\n", "b.py": "import make\n"}
    together = migrate(command_line, {"old.py": used, "make.py": made, **ways}, *options)
    assert not [text for text in together.findings if text.startswith("old.py")]


@pytest.mark.parametrize("options", [["--to", "shim"], ["--keras", "3"]])
def test_another_program_of_the_run_is_decided_on_its_own(command_line, options):
    alone = MAKE.replace("make(opt)", "wrap(opt)")
    files = {"make.py": MAKE, "train.py": KERAS_3, "alone.py": alone}
    result = migrate(command_line, files, *options)
    assert result.sources["train.py"] == KERAS_3
    assert result.sources["make.py"] == MAKE
    assert "tfls" in result.sources["alone.py"]
