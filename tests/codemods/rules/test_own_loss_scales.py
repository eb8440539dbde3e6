"""Loss scales of the program's own, and `_loss_scale`, are left to a person."""

import pytest
from tf_lossscale_codemods.model import Options, Safety, Target
from verbs import transformed

SHIM = Options(target=Target.SHIM)
FINAL = (Options(), Options(keras=3))
HEAD = """\
import tensorflow as tf
from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer
from model import build, Other

"""
SGD = "tf.keras.optimizers.SGD()"
BASES = (
    "tf.mixed_precision.experimental.DynamicLossScale",
    "tf.train.experimental.LossScale",
    "tf.compat.v1.mixed_precision.FixedLossScale",
)
CLASSES = {
    "update": "class Own({b}):\n    def update(self, grads):\n        return None, True\n",
    "call": "class Own({b}):\n    def __call__(self):\n        return 8.0\n",
    "inherited": (
        "class Base({b}):\n    def update(self, grads):\n        return None, True\n\n\n"
        "class Own(Base):\n    pass\n"
    ),
    "a base of another file": "class Own(build.Base):\n    pass\n",
}
PASSED = {
    "made there": "opt = LossScaleOptimizer({o}, Own())\n",
    "by keyword": "opt = LossScaleOptimizer(optimizer={o}, loss_scale=Own())\n",
    "by name": "scale = Own()\nopt = LossScaleOptimizer({o}, scale)\n",
    "on one path": "scale = Own() if build.flag else 8\nopt = LossScaleOptimizer({o}, scale)\n",
    "from a function": (
        "def make():\n    return Own()\n\n\nopt = LossScaleOptimizer({o}, make())\n"
    ),
}
PERHAPS = {
    "a parameter": "def wrap(scale):\n    return LossScaleOptimizer({o}, scale)\n",
    "of another file": "opt = LossScaleOptimizer({o}, build())\n",
    "from a config": "opt = LossScaleOptimizer({o}, Own.from_config(build()))\n",
}
MOVED = {
    "a string": "opt = LossScaleOptimizer({o}, 'dynamic')\n",
    "a number": "opt = LossScaleOptimizer({o}, 128)\n",
    "TensorFlow's": (
        "opt = LossScaleOptimizer({o}, tf.mixed_precision.experimental.DynamicLossScale(8))\n"
    ),
}


def check_left(source: str, code: str) -> None:
    for options in FINAL:
        result = transformed(source, options)
        assert result.source.decode() == source
        assert (code, Safety.MANUAL) in {(one.code, one.outcome) for one in result.findings}
        assert not any(one.applied for one in result.findings)
    shim = transformed(source, SHIM)
    assert (code, Safety.MANUAL) in {(one.code, one.outcome) for one in shim.findings}
    assert transformed(shim.source.decode(), SHIM).source == shim.source


def check_moved(source: str) -> None:
    for options in FINAL:
        result = transformed(source, options)
        after = result.source.decode()
        assert "keras.mixed_precision.experimental" not in after
        assert {one.outcome for one in result.findings} == {Safety.SAFE}
        assert transformed(after, options).source == result.source


@pytest.mark.parametrize("definition", CLASSES.values(), ids=CLASSES)
@pytest.mark.parametrize("passed", PASSED.values(), ids=PASSED)
def test_own_loss_scale_is_left(definition, passed):
    for base in BASES:
        check_left(HEAD + definition.format(b=base) + passed.format(o=SGD), "LS301")


@pytest.mark.parametrize("passed", PERHAPS.values(), ids=PERHAPS)
def test_loss_scale_that_may_be_the_own_one_is_left(passed):
    definition = CLASSES["update"].format(b=BASES[0])
    check_left(HEAD + definition + passed.format(o=SGD), "LS301")


def test_class_of_another_file_is_left():
    check_left(f"{HEAD}opt = LossScaleOptimizer({SGD}, Other(8))\n", "LS301")


@pytest.mark.parametrize("passed", MOVED.values(), ids=MOVED)
def test_loss_scales_of_tensorflow_move(passed):
    check_moved(HEAD + passed.format(o=SGD))
    definition = "class Own:\n    def update(self, grads):\n        return None\n\n\n"
    check_moved(HEAD + definition + passed.format(o=SGD))
    check_moved(HEAD + CLASSES["update"].format(b=BASES[2]) + passed.format(o=SGD))


USES = {
    "a read": "print(opt._loss_scale)\n",
    "a call": "print(opt._loss_scale())\n",
    "a method": "opt._loss_scale.update(build())\n",
    "a write": "opt._loss_scale = build()\n",
    "by its name": "print(getattr(opt, '_loss_scale'))\n",
    "set by its name": "setattr(opt, '_loss_scale', 1.0)\n",
    "on a parameter": "def log(opt):\n    print(opt._loss_scale)\n",
    "on an attribute": "print(build.model.optimizer._loss_scale)\n",
    "on an attribute of self": (
        "class Trainer:\n    def log(self):\n        print(self.optimizer._loss_scale)\n"
    ),
    "on an optimizer bound again": "opt = build(opt)\nprint(opt._loss_scale)\n",
    "on an element": "opts = [opt]\nprint(opts[0]._loss_scale)\n",
}
OTHERS = {
    "of self": "class Own:\n    def log(self):\n        print(self._loss_scale)\n",
    "of a class of the program": (
        "class Own:\n    _loss_scale = 1\n\n\nown = Own()\nprint(own._loss_scale)\n"
    ),
    "of an inner optimizer": "print(opt.inner_optimizer._loss_scale)\n",
    "another name": "print(opt._loss_scale_value)\n",
    "a string": "print('_loss_scale')\n",
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_private_loss_scale_holds_the_optimizer_back(use):
    check_left(f"{HEAD}opt = LossScaleOptimizer({SGD}, 'dynamic')\n{use}", "LS305")


@pytest.mark.parametrize("use", OTHERS.values(), ids=OTHERS)
def test_other_loss_scales_are_not_reported(use):
    check_moved(f"{HEAD}opt = LossScaleOptimizer({SGD}, 'dynamic')\n{use}")
