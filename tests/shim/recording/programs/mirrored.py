"""Trains under a `MirroredStrategy` over two logical CPUs, with and without recording.

Usage: mirrored.py MODE FOLDER; MODE is `session`, or `eager` for eager mode, functions and `fit`.
Prints for each way, class and inner optimizer: what the program saw of each step (its loss, the
scale before it, whether weights changed), what the record says of it, and the names of what differs
from the run without recording.
"""

import json
import os
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
_SHIM = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [_SHIM, os.path.join(_SHIM, "tf1"), os.path.join(_SHIM, "keras")]

import tensorflow as tf

tf1 = tf.compat.v1
MODE, FOLDER = sys.argv[1:3]
LONG = os.environ.get("TFLS_TEST_SIZE") == "long"
if MODE == "session":
    tf1.disable_eager_execution()
elif tf.__version__.startswith("1."):
    tf1.enable_v2_behavior()

import numpy as np
import recorded
import support

import tf_lossscale as tfls
from tf_lossscale._recording.reading import read_record

_logical = getattr(tf.config, "set_logical_device_configuration", None)
_cpu = tf.config.experimental.list_physical_devices("CPU")[0]
if _logical is None:
    _make = tf.config.experimental.VirtualDeviceConfiguration
    tf.config.experimental.set_virtual_device_configuration(_cpu, [_make(), _make()])
else:
    _logical(_cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
run_replicas = getattr(strategy, "run", None) or strategy.experimental_run_v2

INF = float("inf")
SHAPES = [("first", [2]), ("second", [3, 2]), ("third", [])]
# For each step, for each replica, for each variable: the gradient of each element.
STEPS = [
    ([1.0, 1.0, 1.0], [1.0, 2.0, 1.0]),
    ([1.0, INF, 1.0], [1.0, 1.0, 1.0]),
    ([1.0, 1.0, 1.0], [INF, 1.0, INF]),
    ([1.0, 0.5, 1.0], [3.0, 1.0, -1.0]),
    ([2.0, 1.0, 1.0], [1.0, 1.0, 1.0]),
]


def tensorflow_1_optimizers():
    inner = {"momentum": lambda: tf1.train.MomentumOptimizer(0.5, 0.5)}
    if LONG:
        inner["sgd"] = lambda: tf1.train.GradientDescentOptimizer(0.5)
    for label, new in inner.items():
        for which, namespace in support.v1_namespaces().items():
            yield (
                f"v1 {which} {label}",
                lambda cls=namespace, new=new: cls.MixedPrecisionLossScaleOptimizer(
                    new(), cls.DynamicLossScale(1024.0, 2)
                ),
            )
        for which, namespace in support.contrib_namespaces().items():
            if which == "original":
                continue  # it fails under a strategy, with or without a recording
            yield (
                f"contrib {which} {label}",
                lambda cls=namespace, new=new: cls.LossScaleOptimizer(
                    new(), cls.ExponentialUpdateLossScaleManager(1024.0, 2, 1)
                ),
            )


def keras_optimizers():
    inner = {"momentum": {"momentum": 0.5}}
    if LONG:
        inner["sgd"] = {}
    ours = recorded.ours() if LONG else recorded.with_own_step()
    for subject in [*ours, *recorded.originals()]:
        for label, options in inner.items():
            yield (
                f"{subject} {label}",
                subject,
                lambda subject=subject, options=options: subject.dynamic(
                    subject.inner("SGD", learning_rate=0.5, **options), 1024.0, 2
                ),
            )


def loss_of(variables, factors):
    return sum(factors[i] * tf.reduce_sum(each) for i, each in enumerate(variables))


def own_factors(factors):
    context = tf.distribute.get_replica_context()
    return tf.gather(factors, context.replica_id_in_sync_group)


def values(variables):
    return [each.numpy().tolist() for each in variables]


def in_session(make):
    with tf.Graph().as_default() as graph, strategy.scope():
        tf1.set_random_seed(3)
        variables = [
            tf1.get_variable(name, initializer=np.ones(shape, np.float32)) for name, shape in SHAPES
        ]
        fed = tf1.placeholder(tf.float32, [2, 3])
        optimizer = make()
        global_step = tf1.train.get_or_create_global_step()

        def replica():
            loss = loss_of(variables, own_factors(fed))
            pairs = optimizer.compute_gradients(loss, variables)
            return loss, optimizer.apply_gradients(pairs, global_step)

        losses, steps = map(strategy.experimental_local_results, run_replicas(replica))
        step = tf.group(*steps)
        scale = tf.identity(scale_of(optimizer))
        noise = tf1.random.normal([2])
        everything = tf1.global_variables()
        rows = []
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for factors in STEPS:
                before = float(session.run(scale))
                loss, _ = session.run([losses, step], {fed: factors})
                rows.append((sum(map(float, loss)), before, int(session.run(global_step))))
            counts = [0, *(row[2] for row in rows)]
            kept = {
                "values": [each.tolist() for each in session.run(everything)],
                "variables": [each.name for each in everything],
                "noise": session.run(noise).tolist(),
                "names": own_names(graph),
                "collections": sorted(map(str, graph.get_all_collection_keys())),
            }
        kept["rows"] = [(*row[:2], b > a) for row, a, b in zip(rows, counts, counts[1:])]
        return kept


def own_names(graph):
    return [each.name for each in graph.get_operations() if "tf_lossscale_rec" not in each.name]


def scale_of(optimizer):
    if hasattr(optimizer, "_loss_scale_manager"):
        return optimizer._loss_scale_manager.get_loss_scale()
    return optimizer._loss_scale()


def eagerly(make, compiled, subject=None):
    with strategy.scope():
        tf1.set_random_seed(3)
        kind = recorded.kinds()[0] if subject is None else subject.kind
        variables = [
            recorded.make_variable(kind, np.ones(shape, np.float32), name) for name, shape in SHAPES
        ]
        optimizer = make()
        if subject is not None and kind.name == "keras3":
            optimizer.build(variables)

    def replica(factors):
        own = own_factors(factors)
        if subject is None:
            pairs = optimizer.compute_gradients(lambda: loss_of(variables, own), variables)
            optimizer.apply_gradients(pairs)
            return loss_of(variables, own)
        sources = [each.value for each in variables] if kind.name == "keras3" else variables
        with tf.GradientTape() as tape:
            loss = loss_of(sources, own)
            is_3 = subject.api == "keras3"
            scaled = optimizer.scale_loss(loss) if is_3 else optimizer.get_scaled_loss(loss)
        gradients = tape.gradient(scaled, sources)
        if is_3:
            optimizer.apply(gradients, variables)
        else:
            gradients = optimizer.get_unscaled_gradients(gradients)
            optimizer.apply_gradients(list(zip(gradients, variables)))
        return loss

    def step(factors):
        return run_replicas(replica, args=(factors,))

    step = tf.function(step) if compiled else step
    rows = []
    for factors in STEPS:
        before = values(variables)
        if subject is None:
            scale = float(scale_of(optimizer).numpy())
            with np.errstate(invalid="ignore"):
                loss = float(np.sum(np.array(factors, np.float64), 0) @ sums(before))
            step(tf.constant(factors))
        else:
            scale = recorded.number(subject.scale_and_counter(optimizer)[0])
            loss = sum(
                float(each)
                for each in strategy.experimental_local_results(step(tf.constant(factors)))
            )
        rows.append((loss, scale, values(variables) != before))
    state = [] if subject is None else optimizer_variables(optimizer)
    return {
        "rows": rows,
        "values": values(variables),
        "state": values(state),
        "state names": [each.name for each in state],
        "noise": tf.random.normal([2]).numpy().tolist(),
    }


def sums(arrays):
    return np.array([np.sum(each) for each in arrays])


def optimizer_variables(optimizer):
    inner = getattr(optimizer, "inner_optimizer", None) or optimizer._optimizer
    return inner.variables() if callable(inner.variables) else inner.variables


def fit(subject, make):
    keras = subject.kind.keras
    keras.backend.clear_session()
    tf1.set_random_seed(3)
    with strategy.scope():
        model = keras.Sequential(
            [
                keras.layers.Dense(3, kernel_initializer=keras.initializers.Constant(0.1)),
                keras.layers.Dense(1, kernel_initializer=keras.initializers.Constant(0.1)),
            ]
        )
        model.build([None, 2])
        optimizer = make()
        options = {"jit_compile": False} if subject.kind.name == "keras3" else {}
        model.compile(optimizer, "mse", **options)
    rows = []

    class Rows(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            model.reset_metrics()  # the loss is a mean over the batches since then
            self.before = model.get_weights()
            self.scale = recorded.number(subject.scale_and_counter(model.optimizer)[0])

        def on_train_batch_end(self, batch, logs=None):
            changed = not same(self.before, model.get_weights())
            rows.append((float(logs["loss"]), self.scale, changed))

    images = np.linspace(0.1, 1.0, 40, dtype=np.float32).reshape([20, 2])
    images[6, 0] = images[9, 1] = INF
    data = tf.data.Dataset.from_tensor_slices((images, images[:, :1])).batch(4)
    model.fit(data, epochs=1, shuffle=False, verbose=0, callbacks=[Rows()])
    return {
        "rows": rows,
        "values": [each.tolist() for each in model.get_weights()],
        "noise": tf.random.normal([2]).numpy().tolist(),
    }


def main():
    tasks = {}
    for name, make in tensorflow_1_optimizers():
        if MODE == "session":
            tasks["session " + name] = lambda make=make: in_session(make)
        elif name.endswith("momentum") and (LONG or " ours " in name):
            tasks["function " + name] = lambda make=make: eagerly(make, True)
    newest = recorded.kinds()[-1]
    for name, subject, make in keras_optimizers() if MODE != "session" else ():
        if subject.api == "experimental" and subject.who == "ours":
            continue  # a constructor of the class under test
        ways = ["function"] if name.endswith("sgd") else ["eager", "fit"]
        if subject.kind != newest or (subject.who == "original" and not LONG):
            ways = ways[:1]
        for way in ways:
            if way == "fit":
                tasks["fit " + name] = lambda make=make, subject=subject: fit(subject, make)
            else:
                tasks[f"{way} {name}"] = lambda make=make, way=way, subject=subject: eagerly(
                    make, way != "eager", subject
                )
    found = {}
    for number, (name, run) in enumerate(tasks.items()):
        path = os.path.join(FOLDER, f"{number}.jsonl")
        tfls.recording.start(path)
        try:
            kept = run()
        finally:
            tfls.recording.stop()
        bare = run()
        (record,) = read_record(path).optimizers
        found[name] = {
            "seen": kept["rows"],
            "recorded": list(zip(record.loss, record.scales, record.applied, record.finite)),
            "norm": record.norm,
            "bad": record.bad,
            "shapes": record.shapes,
            "replicas": read_record(path).header.replicas,
            "weights are known": record.initial_weights is not None,
            "changed": [key for key in kept if not same(kept[key], bare[key])],
        }
    print(json.dumps(found))


def same(one, other):
    try:
        np.testing.assert_equal(one, other)
    except AssertionError:
        return False
    return True


main()
