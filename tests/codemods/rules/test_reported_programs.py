"""Programs that the command once split, missed or broke, with forms like them."""

import pytest
from tf_lossscale_codemods.model import Options, Target
from verbs import transformed

TARGETS = {"shim": Options(target=Target.SHIM), "2": Options(), "3": Options(keras=3)}
FINAL = "tf_lossscale.keras.mixed_precision import LossScaleOptimizer"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "imports",
    [
        "from keras.mixed_precision import experimental as mp",
        "import keras.mixed_precision.experimental as mp",
        "import keras\n\nmp = keras.mixed_precision.experimental",
    ],
)
def test_the_experimental_names_of_keras_alone_are_renamed(imports, target):
    source = (
        f"{imports}\nmp.set_policy('mixed_float16')\nopt = mp.LossScaleOptimizer(o, 'dynamic')\n"
    )
    result = transformed(source, TARGETS[target])
    assert {finding.outcome.value for finding in result.findings} == {"safe"}
    assert b"experimental" not in result.source or b"tf_lossscale" in result.source


@pytest.mark.parametrize("target", ["shim", "3"])
@pytest.mark.parametrize(
    "error", ["ImportError", "(ImportError, AttributeError)", "ModuleNotFoundError", "Exception"]
)
def test_the_new_branch_of_a_ladder_gets_the_class_with_the_methods_of_keras_2(error, target):
    source = (
        "try:\n"
        "    from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer\n"
        f"except {error}:\n"
        "    from tensorflow.keras.mixed_precision import LossScaleOptimizer\n"
        "big = LossScaleOptimizer(opt).get_scaled_loss(loss)\n"
    )
    assert FINAL in transformed(source, TARGETS[target]).source.decode()


@pytest.mark.parametrize("target", ["shim", "3"])
@pytest.mark.parametrize(
    "made",
    ["optimizer", "self._get_optimizer(one)", "trainer.optimizer", "make()", "self.optimizers[0]"],
)
def test_methods_of_keras_2_on_an_optimizer_from_elsewhere_are_reported(made, target):
    source = (
        "import tensorflow as tf\n\n\ndef step(self, optimizer, trainer, loss, one):\n"
        f"    found = {made}\n    return found.get_scaled_loss(loss)\n"
    )
    codes = {finding.code for finding in transformed(source, TARGETS[target]).findings}
    assert codes & {"LS406", "LS407"}


@pytest.mark.parametrize("statement", ["{} = Mine", "setattr({0}, {1!r}, Mine)", "del {}"])
def test_a_place_that_assigns_to_a_legacy_name_is_reported_and_not_renamed(statement):
    owner, name = "tf.keras.mixed_precision.experimental", "LossScaleOptimizer"
    line = (
        statement.format(owner, name)
        if "setattr" in statement
        else statement.format(f"{owner}.{name}")
    )
    result = transformed(f"import tensorflow as tf\n\n{line}\n", TARGETS["shim"])
    assert line in result.source.decode()
    assert [finding.outcome.value for finding in result.findings] == ["manual"]
