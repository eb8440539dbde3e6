"""Prints what becomes different in TensorFlow's and Keras's classes and modules, as JSON.

For each of several uses of the shim: the attributes that are no longer the same object, and those
that were added. A module that an import has loaded, below another one, is not an addition. Hooks
of the interpreter and handlers of signals count, too.
"""

import builtins
import contextlib
import functools
import gc
import importlib
import inspect
import json
import os
import signal
import sys
import tempfile
import threading
import warnings
from types import ModuleType

import numpy as np
import tensorflow as tf

import tf_lossscale
from tf_lossscale import _import_hook, _paths
from tf_lossscale._recorder import session as recorder_session
from tf_lossscale._records.destination import Destination
from tf_lossscale._records.format import Disturbance
from tf_lossscale._versions.base import has
from tf_lossscale._versions.interventions import still_replaced
from tf_lossscale._versions.releases import Since

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


@functools.lru_cache(maxsize=None)
def hooked_classes():
    """Classes whose methods run in every program, wherever they are defined."""
    function = tf.function(lambda: tf.constant(1.0))
    functions = [type(function), type(function.get_concrete_function())]
    return [
        *(tf.Graph, tf1.Session, tf1.Session._Callable, tf.keras.layers.Dense),
        *(type(tf.Variable(1.0)), *functions),
    ]


def hooked_modules():
    """Modules whose functions run in every program."""
    names = ("eager.tape", "ops.gen_resource_variable_ops")
    for root in ("tensorflow", "tensorflow_core"):
        for name in names:
            if f"{root}.python.{name}" in sys.modules:
                yield sys.modules[f"{root}.python.{name}"]


def hooks():
    """What a program can hook in the interpreter, and has as long as somebody does."""
    handlers = {f"signal {number}": signal.getsignal(number) for number in (1, 2, 15)}
    # Our finder stays as long as a class of ours waits for a Keras, from its first import on.
    others = [finder for finder in sys.meta_path if finder is not _import_hook._finder]
    finders = {f"finder {type(finder).__name__}": finder for finder in others}
    return {
        **handlers,
        **finders,
        "os._exit": os._exit,
        "import": builtins.__import__,
        "excepthook": sys.excepthook,
        "thread excepthook": getattr(threading, "excepthook", None),
        "trace": sys.gettrace(),
        "profile": sys.getprofile(),
        "showwarning": warnings.showwarning,
        "path hooks": len(sys.path_hooks),
    }


def snapshot():
    # The values themselves are kept, so that no other object gets the `id` of one.
    owners = {f"module {name}": module for name, module in modules().items()}
    owners.update({f"class {name}": cls for name, cls in classes().items()})
    for cls in hooked_classes():
        for base in cls.__mro__[:-1]:
            owners[f"class {base.__module__}.{base.__name__}"] = base
    owners.update({f"module {module.__name__}": module for module in hooked_modules()})
    found = {name: dict(vars(owner)) for name, owner in owners.items()}
    left = {"left": "", **dict.fromkeys(still_replaced())}
    return {**found, "the interpreter": hooks(), "interventions": left}


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


def record_disturbed(during):
    """Records steps within the graph of a Session, and disturbs the weights."""
    with tempfile.TemporaryDirectory() as folder:
        destination = Destination(os.path.join(folder, "record.jsonl"), False)
        destination.hold()
        disturbance = Disturbance("0", 1, 1e-7, 1.0)
        recorder_session.start(destination, disturbed=disturbance)
        watch()
        during()
        tf_lossscale.recording.stop()


def look_at_layers(during):
    """Looks at the layers of a model, by itself and within `fit`."""
    model = network()
    seen = tf.keras.layers.Lambda(lambda value: (during(), value)[1])
    inputs = tf.keras.layers.Input((1,))
    outer = tf.keras.Model(inputs, seen(model(inputs)))
    tf_lossscale.monitoring.find_nonfinite_layer(outer, np.zeros((2, 1), "float32"))


def explain():
    """Explains skipped steps in `fit`, which ends before the next batch, and after it."""
    if not has(Since.FIT_READS_TRAIN_FUNCTION):
        return
    for steps in (1, 2):
        model = network()
        optimizer = tf_lossscale.keras.mixed_precision.LossScaleOptimizer(sgd())
        monitor = tf_lossscale.monitoring.Monitor(optimizer)
        callback = monitor.keras_callback(explain=True, explain_after=1)
        model.compile(optimizer, "mse")
        inputs = np.full((2 * steps, 1), np.nan, "float32")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(inputs, inputs, batch_size=2, verbose=0, callbacks=[callback])


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
    record_disturbed(lambda: found.update(disturbed=differences(before)))
    found["disturbed recorded"] = without_graphs(before)
    look_at_layers(lambda: found.update(layers=differences(before)))
    found["looked at layers"] = without_graphs(before)
    explain()
    found["explained"] = without_graphs(before)
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
