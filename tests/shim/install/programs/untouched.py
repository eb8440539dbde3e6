"""Prints what becomes different in TensorFlow's and Keras's classes and modules, as JSON.

For each of several uses of the shim: the attributes that are no longer the same object, and those
that were added. A module that an import has loaded, below another one, is not an addition.
"""

import contextlib
import functools
import gc
import importlib
import inspect
import json
import os
import sys
import tempfile
import threading
from types import ModuleType

import numpy as np
import tensorflow as tf

import tf_lossscale
from tf_lossscale import _paths

tf1 = tf.compat.v1
tf1.enable_v2_behavior()  # without it TensorFlow 1.15 takes no policy
ROOTS = ("tensorflow", "tensorflow_core", "keras", "tf_keras")
WORDS = ("mixed_precision", "loss_scale", "polic", "engine", "trainer", "optimizer", "experimental")
STATE = (
    *("_global_policy", "_logged_compatibility_check"),
    *("non_mixed_precision_session_created", "_non_mixed_precision_session_created"),
    "using_default_mixed_precision_policy",
)
"""What Keras 2 itself sets when a program sets a policy, and TensorFlow when it makes a Session."""


def modules():
    """The loaded modules that have something to do with optimizers, policies or models."""
    return {
        name: module
        for name, module in list(sys.modules.items())
        if isinstance(module, ModuleType)
        and name.split(".")[0] in ROOTS
        and (name.count(".") == 0 or any(word in name for word in WORDS))
    }


def classes():
    """The classes in these modules, and those that they derive from."""
    found = {
        f"{base.__module__}.{base.__qualname__}": base
        for module in modules().values()
        for value in list(vars(module).values())
        if inspect.isclass(value)
        for base in value.__mro__
        if base.__module__.split(".")[0] in ROOTS
    }
    return {name: cls for name, cls in found.items() if "tf_lossscale" not in repr(cls)}


def load_everything():
    """What a program of Keras loads in any case: else the uses below would load it."""
    keras = tf.keras
    keras.Model, keras.Sequential, keras.optimizers.SGD, keras.mixed_precision, keras.layers.Dense
    for name in [*_paths.PRIVATE, "keras.src.trainers.trainer", "keras.engine.training_v1"]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for module in list(modules().values()):
        for name in dir(module):  # fills the caches of lazy modules
            with contextlib.suppress(AttributeError, ImportError):
                getattr(module, name)


def snapshot():
    # The values themselves are kept, so that no other object gets the `id` of one.
    owners = {f"module {name}": module for name, module in modules().items()}
    owners.update({f"class {name}": cls for name, cls in classes().items()})
    owners.update({f"class {cls.__name__}": cls for cls in (tf.Graph, *tf1.Session.__mro__[:-1])})
    return {name: dict(vars(owner)) for name, owner in owners.items()}


def differences(before):
    after = snapshot()
    found = []
    for owner, attributes in before.items():
        now = after.get(owner, {})
        for name in attributes.keys() - now.keys():
            found.append(f"{owner}.{name} is gone")
        for name in attributes.keys() & now.keys():
            if attributes[name] is not now[name] and name not in STATE:
                found.append(f"{owner}.{name} is another")
        for name in now.keys() - attributes.keys():
            if not is_unrelated(owner, name, now[name]):
                found.append(f"{owner}.{name} is new")
    return sorted(found)


def is_unrelated(owner, name, value):
    is_module = isinstance(value, ModuleType) and value.__name__ in sys.modules
    # What Python and TensorFlow remember of a class or a module that was used.
    return is_module or name in ("__annotations__", "__warningregistry__", "_tfmw_attr_map")


def sgd():
    return tf.keras.optimizers.SGD(0.5)


def import_everything():
    for namespace in ("compat.v1", "compat.v2"):
        importlib.import_module("tf_lossscale." + namespace)
    for namespace, names in _paths.NAMESPACES.items():
        module = importlib.import_module("tf_lossscale." + namespace)
        for name in names:
            getattr(module, name)


def test_classes():
    ours = tf_lossscale.keras.mixed_precision
    installed = getattr(tf.keras.mixed_precision, "LossScaleOptimizer", None)
    made = [sgd(), ours.LossScaleOptimizer(sgd()), ours.experimental.LossScaleOptimizer(sgd(), 8)]
    if installed is not None:
        made.append(installed(sgd()))
    for optimizer in made:
        for cls in (ours.LossScaleOptimizer, ours.experimental.LossScaleOptimizer):
            isinstance(optimizer, cls), issubclass(type(optimizer), cls)
        hasattr(optimizer, "get_scaled_loss"), hasattr(optimizer, "no_such_name")


def take_steps():
    ours = tf_lossscale.keras.mixed_precision
    for factor in (1.0, float("nan")):
        optimizer = ours.LossScaleOptimizer(sgd(), initial_scale=8.0)
        variable = tf.Variable(1.0)
        with tf.GradientTape() as tape:
            scaled = optimizer.get_scaled_loss(variable * factor)
        gradients = optimizer.get_unscaled_gradients(tape.gradient(scaled, [variable]))
        optimizer.apply_gradients(zip(gradients, [variable]))
        v1 = tf_lossscale.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer(
            tf1.train.GradientDescentOptimizer(0.5), "dynamic"
        )
        loss = functools.partial(tf.multiply, variable, factor)
        v1.minimize(loss, var_list=[variable])


def watch():
    """Trains within functions and graphs whose steps the monitor watches."""
    ours = tf_lossscale.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer
    with tf.Graph().as_default(), tf1.Session() as session:
        variable = tf1.get_variable("v", initializer=1.0, use_resource=True)
        optimizer = ours(tf1.train.GradientDescentOptimizer(0.5), "dynamic")
        tf_lossscale.monitoring.find_nonfinite([(variable * 1.0, variable)])
        step = optimizer.minimize(variable * 2.0, var_list=[variable])
        session.run(tf1.global_variables_initializer())
        session.run([step, tf.random.uniform([])])


def record(during):
    """Records steps of all kinds; `during` is called before the recording ends."""
    with tempfile.TemporaryDirectory() as folder:
        tf_lossscale.recording.start(os.path.join(folder, "record.jsonl"))
        take_steps()
        fit(network())
        during()
        tf_lossscale.recording.stop()


def network():
    inputs = tf.keras.layers.Input((1,))
    return tf.keras.Model(inputs, tf.keras.layers.Dense(1)(inputs))


def fit(model):
    model.compile(sgd(), "mse")
    model.fit(np.zeros((2, 1), "float32"), np.zeros((2, 1), "float32"), verbose=0)


def installed_set_policy(name):
    mixed_precision = tf.keras.mixed_precision
    experimental = getattr(mixed_precision, "experimental", None)
    set_policy = getattr(mixed_precision, "set_global_policy", None) or experimental.set_policy
    set_policy(name)


def use_policies():
    ours = tf_lossscale.keras.mixed_precision
    model = None
    for set_policy, policy in (
        (ours.set_global_policy, "mixed_float16"),
        (ours.experimental.set_policy, "mixed_float16"),
        (ours.experimental.set_policy, ours.experimental.Policy("mixed_float16", loss_scale=128)),
    ):
        set_policy(policy)
        model = network()
        fit(model)
    installed_set_policy("float32")
    return model


def without_graphs(before):
    """Compares when models and graphs are gone: with policies, and operations not counted."""
    tf.keras.backend.clear_session()  # up to TensorFlow 2.3 a global graph keeps the models
    gc.collect()
    return differences(before)


def main():
    load_everything()
    fit(network())
    before = snapshot()
    found = {}
    import_everything()
    found["import"] = differences(before)
    test_classes()
    found["isinstance"] = differences(before)
    take_steps()
    found["steps"] = differences(before)
    watch()
    found["watched"] = without_graphs(before)
    record(lambda: found.update(recording=differences(before)))
    found["recorded"] = without_graphs(before)
    for replace in (False, True):
        tf_lossscale.install(replace=replace)
        fit(network())
        found["installed" if replace else "installed kept"] = differences(before)
        tf_lossscale.uninstall()
        found[f"uninstalled {replace}"] = differences(before)
    model = use_policies()
    found["policies"] = differences(before)
    thread = threading.Thread(target=fit, args=(model,))
    thread.start()
    thread.join()
    del model, thread
    found["policies ended"] = without_graphs(before)
    kept = use_policies()
    tf_lossscale.uninstall()
    found["policies uninstalled"] = differences(before)
    fit(kept)
    print(json.dumps(found))


main()
