"""`loss_scale()` of an optimizer that another file may make is reported, and left."""

import pytest
from several_files import migrate

OPTIM = """\
import tensorflow as tf


def build(fp16=True):
    opt = tf.keras.optimizers.SGD()
    if fp16:
        opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
    return opt
"""
LOG = "def show(opt, step=0):\n    print(step, opt.loss_scale())\n"
MAIN = (
    "from log import show\nfrom optim import build\n\nopt = build()\nshow(opt)\nshow(opt, step=1)\n"
)
FILES = {
    "the result of a function": {
        "use.py": "from optim import build\n\nprint(build().loss_scale())\n",
    },
    "an argument": {"log.py": LOG, "use.py": MAIN},
    "a function that nothing calls": {"log.py": LOG, "use.py": "import optim\nimport log\n"},
}
"""The files beside the one that makes the optimizer; one of them calls `loss_scale()`."""


@pytest.mark.parametrize("options", [("--to", "shim"), ("--keras", "2"), ("--keras", "3")])
@pytest.mark.parametrize("case", FILES)
def test_an_optimizer_of_another_file(case, options, command_line):
    done = migrate(command_line, {"optim.py": OPTIM, **FILES[case]}, *options)
    assert sum("loss_scale()" in text for text in done.sources.values()) == 1
    (left,) = [one for one in done.findings if "LS302" in one]
    assert left.endswith("manual")


def test_without_a_loss_scale_optimizer_nothing_is_reported(command_line):
    optim = "import tensorflow as tf\n\n\ndef build():\n    return tf.keras.optimizers.SGD()\n"
    done = migrate(command_line, {"optim.py": optim, "log.py": LOG, "use.py": MAIN})
    assert done.findings == []
