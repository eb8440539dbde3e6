"""`loss_scale()` of an optimizer that another file makes: safe only if every value is known."""

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
TRAINER = """\
class Trainer:
    def __init__(self, opt):
        self.opt = opt

    def show(self):
        print(self.opt.loss_scale())
"""
MAIN = (
    "from log import show\nfrom optim import build\n\nopt = build()\nshow(opt)\nshow(opt, step=1)\n"
)
SEEN = {
    "the result of a function": {
        "use.py": "from optim import build\n\nprint(build().loss_scale())\n",
    },
    "a name of another module": {
        "made.py": "from optim import build\n\nopt = build()\n",
        "use.py": "import made\n\nprint(made.opt.loss_scale())\n",
    },
    "an argument": {"log.py": LOG, "use.py": MAIN},
    "an attribute of a class": {
        "trainer.py": TRAINER,
        "use.py": "import optim\nimport trainer\n\ntrainer.Trainer(optim.build()).show()\n",
    },
}
"""The files beside the one that makes the optimizer; one of them calls `loss_scale()`."""
NOT_SEEN = {
    "an argument that one caller takes from elsewhere": {
        "log.py": LOG,
        "use.py": MAIN,
        "third.py": "from log import show\nfrom theirs import opt\n\nshow(opt)\n",
    },
    "a function that nothing calls": {"log.py": LOG, "use.py": "import optim\nimport log\n"},
    "a function that a table holds": {
        "log.py": LOG,
        "use.py": MAIN,
        "third.py": "from log import show\n\nhooks = [show]\n",
    },
    "an attribute that another file sets": {
        "trainer.py": TRAINER,
        "use.py": (
            "from optim import build\nfrom trainer import Trainer\n\n"
            "trainer = Trainer(build())\ntrainer.opt = Scaler()\ntrainer.show()\n"
        ),
    },
    "an attribute that a file sets by name": {
        "trainer.py": TRAINER,
        "use.py": (
            "from optim import build\nfrom trainer import Trainer\n\n"
            "trainer = Trainer(build())\nsetattr(trainer, 'opt', Scaler())\ntrainer.show()\n"
        ),
    },
    "a function with another result": {
        "other.py": "from optim import build\n\ndef make(s):\n    return s or build()\n",
        "use.py": "from other import make\n\nprint(make(0).loss_scale())\n",
    },
}


@pytest.mark.parametrize("options", [("--to", "shim"), ("--keras", "2"), ("--keras", "3")])
@pytest.mark.parametrize("case", SEEN)
def test_an_optimizer_of_another_file(case, options, command_line):
    files = {"optim.py": OPTIM, **SEEN[case]}
    done = migrate(command_line, files, *options)
    assert not any("loss_scale()" in text for text in done.sources.values())
    assert not [one for one in done.findings if not one.endswith(" safe")]


@pytest.mark.parametrize("options", [("--to", "shim"), ("--keras", "2"), ("--keras", "3")])
@pytest.mark.parametrize("case", NOT_SEEN)
def test_an_optimizer_that_may_be_another(case, options, command_line):
    files = {"optim.py": OPTIM, **NOT_SEEN[case]}
    done = migrate(command_line, files, *options)
    assert sum("loss_scale()" in text for text in done.sources.values()) == 1
    (left,) = [one for one in done.findings if "LS302" in one]
    assert left.endswith("manual")


def test_without_a_loss_scale_optimizer_nothing_is_reported(command_line):
    optim = "import tensorflow as tf\n\n\ndef build():\n    return tf.keras.optimizers.SGD()\n"
    done = migrate(command_line, {"optim.py": optim, "log.py": LOG, "use.py": MAIN})
    assert done.findings == []
