"""The namespaces: every path of the table resolves, to one object, and nothing loads too early."""

import importlib

import pytest
from processes import run_python

from tf_lossscale import _paths

PATHS = [
    (namespace, name) for namespace, names in _paths.NAMESPACES.items() for name in sorted(names)
]


def test_every_symbol_is_one_object_under_all_its_paths():
    by_symbol = {}
    for namespace, names in _paths.NAMESPACES.items():
        module = importlib.import_module("tf_lossscale." + namespace)
        for name, symbol in names.items():
            value = getattr(module, name)
            assert by_symbol.setdefault(symbol.implementation, value) is value, (namespace, name)
    assert len(by_symbol) == len(_paths.SYMBOLS)


@pytest.mark.parametrize("namespace", sorted(_paths.NAMESPACES))
def test_a_namespace_lists_its_symbols_and_nothing_private(namespace):
    module = importlib.import_module("tf_lossscale." + namespace)
    assert set(_paths.NAMESPACES[namespace]) <= set(module.__all__)
    assert set(dir(module)) == set(module.__all__)
    assert not [name for name in module.__all__ if name.startswith("_")]


@pytest.mark.parametrize(("namespace", "name"), PATHS)
def test_the_implementation_has_the_symbol(namespace, name):
    symbol = _paths.NAMESPACES[namespace][name]
    module, _, attribute = symbol.implementation.partition(":")
    assert hasattr(importlib.import_module("tf_lossscale." + module), attribute)


def test_compat_namespaces_reach_the_same_modules():
    import tf_lossscale as tfls

    assert tfls.compat.v1.keras is tfls.keras
    assert tfls.compat.v2.keras is tfls.keras
    assert tfls.compat.v2.train is tfls.train


def test_every_namespace_is_an_attribute_of_the_one_above():
    # In a process of its own: a module that was imported by its path is an attribute anyway.
    lines = [f"tf_lossscale.{namespace}" for namespace in sorted(_paths.NAMESPACES)]
    done = run_python("-c", "import tf_lossscale\n" + "\n".join(lines))
    assert done.returncode == 0, done.stderr


def test_each_name_of_the_package_is_there():
    import tf_lossscale as tfls

    assert all(hasattr(tfls, name) for name in tfls.__all__)
    assert set(dir(tfls)) == set(tfls.__all__)


@pytest.mark.parametrize("name", ["checkpoints", "monitoring", "recording"])
def test_each_name_of_a_module_that_only_we_have_is_there(name):
    module = importlib.import_module("tf_lossscale." + name)
    assert set(module.__all__) <= set(dir(module))
    for attribute in module.__all__:
        assert getattr(module, attribute).__name__ == attribute


def test_an_unknown_name_is_refused_with_what_there_is():
    import tf_lossscale as tfls

    with pytest.raises(AttributeError, match="FixedLossScaleManager"):
        tfls.contrib.mixed_precision.FixedScaleManager
    with pytest.raises(AttributeError, match="contrib"):
        tfls.contribb


def test_importing_the_package_and_its_namespaces_leaves_tensorflow_alone():
    done = run_python(
        "-c",
        "import sys, tf_lossscale as tfls, tf_lossscale.keras.mixed_precision.experimental\n"
        "tfls.contrib.mixed_precision, tfls.compat.v1.tpu, dir(tfls.keras.mixed_precision)\n"
        "assert not {'tensorflow', 'keras', 'tf_keras', 'numpy'} & set(sys.modules)",
    )
    assert done.returncode == 0, done.stderr


def test_without_tensorflow_the_first_use_says_what_to_install():
    done = run_python(
        "-c",
        "import sys\n"
        "sys.modules['tensorflow'] = None\n"
        "import tf_lossscale as tfls\n"
        "try: tfls.contrib.mixed_precision.LossScaleManager\n"
        "except ImportError as error: print(error)",
    )
    assert done.returncode == 0, done.stderr
    assert "pip install" in done.stdout, done.stdout


@pytest.mark.slow
def test_warnings_are_off_by_default_and_come_once_a_symbol_when_asked_for():
    code = (
        "import warnings\n"
        "import tf_lossscale as tfls\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "  warnings.simplefilter('always')\n"
        "  for _ in range(2): tfls.contrib.mixed_precision.FixedLossScaleManager\n"
        "  tfls.compat.v1.mixed_precision.DynamicLossScale\n"
        "  tfls.train.experimental.DynamicLossScale\n"
        "  tfls.keras.mixed_precision.from_loss_scale\n"
        "ours = [w for w in caught if 'tf_lossscale' in str(w.message)]\n"
        "print([(w.lineno, str(w.message)) for w in ours])"
    )
    assert run_python("-c", code, env={"TF_LOSSSCALE_WARN": ""}).stdout.splitlines()[-1] == "[]"
    loud = run_python("-c", code, env={"TF_LOSSSCALE_WARN": "1"}).stdout.splitlines()[-1]
    assert loud.count("tf-lossscale migrate") == 2, loud
    assert "(5, 'tf_lossscale.contrib" in loud, loud  # the line that uses the symbol
    assert "(6, 'tf_lossscale.compat" in loud, loud
    assert "LS101" in loud
    assert "LS203" in loud


def test_each_api_is_in_the_releases_that_start_here_names():
    """The table of docs/index.md: in which TensorFlow an API was; and docs/cross-shard.md."""
    import tensorflow as tf

    version = tuple(int(part) for part in tf.__version__.split(".")[:2])

    def has(path):
        found = tf
        for name in path.split("."):
            try:
                found = getattr(found, name)
            except (AttributeError, ImportError):
                return False
        return True

    is_keras_3 = hasattr(tf.keras, "Operation")
    keras = "keras.mixed_precision."
    expected = {
        "contrib.mixed_precision": version < (2, 0),
        "contrib.tpu.CrossShardOptimizer": version < (2, 0),
        "train.experimental.DynamicLossScale": version < (2, 9),
        "mixed_precision.experimental.DynamicLossScale": (2, 0) < version < (2, 9),
        keras + "experimental.LossScaleOptimizer": version < (2, 9),
        keras + "LossScaleOptimizer": version >= (2, 4),
        "compat.v1.estimator.tpu.TPUEstimator": version < (2, 16),
    }
    if version >= (2, 4):
        expected["compat.v1.mixed_precision.DynamicLossScale"] = True
        # From 2.9 on, the public name is that of a base, and makes objects of other classes.
        final = tf.keras.mixed_precision.LossScaleOptimizer
        made = type(final(tf.keras.optimizers.SGD()))
        for name in ("get_scaled_loss", "get_unscaled_gradients", "minimize", "loss_scale"):
            assert hasattr(made, name) is (not is_keras_3), name
    assert {path: has(path) for path in expected} == expected
    if version < (2, 0):
        assert tf.contrib.tpu.TPUEstimator is tf.compat.v1.estimator.tpu.TPUEstimator
