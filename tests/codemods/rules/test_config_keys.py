"""Keys of configs: found where the config is a loss-scale optimizer's, and nowhere else."""

import pytest
from tf_lossscale_codemods.model import Options, Safety, Target
from verbs import transformed

HEAD = """\
import tensorflow as tf
from tensorflow.keras.mixed_precision import LossScaleOptimizer

sgd = tf.keras.optimizers.SGD()
opt = LossScaleOptimizer(sgd)
"""
REPORTED = {
    "an item": "print(opt.get_config()['loss_scale'])",
    "an item of a name": "config = opt.get_config()\nprint(config['loss_scale'])",
    "get": "config = opt.get_config()\nprint(config.get('loss_scale'))",
    "pop": "config = opt.get_config()\nconfig.pop('optimizer')",
    "in": "config = opt.get_config()\nprint('loss_scale' in config)",
    "stored": "config = opt.get_config()\nconfig['loss_scale'] = 8",
    "the inner optimizer": "print(opt.get_config()['optimizer']['class_name'])",
    "serialized": "print(tf.keras.optimizers.serialize(opt)['config']['loss_scale'])",
    "a parameter": "def f(it):\n    return it.get_config()['loss_scale']",
    "its parts": "def f(config):\n    return config['loss_scale']['config']['multiplier']",
    "a class name": (
        "def f(config):\n    return config['class_name'] in ['LossScaleOptimizer', 'SGD']"
    ),
}
NOT_REPORTED = {
    "a setting": "def f(config):\n    return config['loss_scale']",
    "arguments": "def f(args):\n    return args.get('loss_scale', 1) if 'optimizer' in args else 1",
    "a new key": "print(opt.get_config()['initial_scale'])",
    "another optimizer": "print(sgd.get_config()['optimizer'])",
    "a layer": "print(tf.keras.layers.Dense(1).get_config()['loss_scale'])",
    "a state": "state = {'loss_scale': 8, 'optimizer': sgd}\nprint(state['loss_scale'])",
    "another class name": "def f(config):\n    return config['class_name'] == 'SGD'",
}


def found(source, options):
    result = transformed(HEAD + source + "\n", options)
    assert all(one.outcome is Safety.MANUAL for one in result.findings if one.code == "LS306")
    return [one.code for one in result.findings if one.code == "LS306"]


@pytest.mark.parametrize("source", REPORTED.values(), ids=REPORTED)
def test_reported(source):
    assert found(source, Options()) == ["LS306"]
    assert found(source, Options(keras=3)) == ["LS306"]


@pytest.mark.parametrize("source", NOT_REPORTED.values(), ids=NOT_REPORTED)
def test_not_reported(source):
    for options in (Options(), Options(keras=3), Options(target=Target.SHIM)):
        assert not found(source, options)


def test_config_written_out_is_reported_for_keras_3():
    source = "tf.keras.optimizers.deserialize({'class_name': 'LossScaleOptimizer', 'config': {}})"
    assert found(source, Options(keras=3)) == ["LS306"]
    assert not found(source, Options())


def test_class_in_custom_objects_is_unsafe_on_keras_2():
    """From TensorFlow 2.9 on, Keras can construct no optimizer with the final class itself."""
    source = HEAD.replace("precision import", "precision.experimental import")
    source = source.replace("(sgd)", "(sgd, 'dynamic')")
    source += "tf.keras.models.load_model('x', custom_objects={'LSO': LossScaleOptimizer})\n"
    outcomes = {one.outcome for one in transformed(source, Options()).findings}
    assert Safety.UNSAFE in outcomes
    for options in (Options(keras=3), Options(keras=None), Options(target=Target.SHIM)):
        assert {one.outcome for one in transformed(source, options).findings} == {Safety.SAFE}
