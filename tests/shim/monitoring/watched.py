"""Steps with known overflows, for each of our classes, in each mode.

The gradient of each of three variables is a factor times ones. A step is finite if its factors are;
the first infinite factor names the first bad variable. `expected` derives from this what a monitor
must report, and from what the optimizer itself did what the tests compare it with.
"""

import tempfile

import numpy as np
import recorded
import support
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1
INF, NAN = float("inf"), float("nan")

# Two variables of one shape, which are tested together, and one of another; one is sparse.
SHAPES = [("first", [2]), ("second", [2]), ("third", [3, 2])]
FACTORS = [
    (1.0, 1.0, 1.0),
    (1.0, INF, 1.0),
    (1.0, 1.0, NAN),
    (1.0, 1.0, 1.0),
    (1.0, -INF, INF),
    (NAN, 1.0, INF),
    (INF, 1.0, 1.0),
    (1.0, 2.0, 1.0),
]


def v1():
    return support.v1_optimizer(tf1.train.MomentumOptimizer(0.5, 0.5), 16.0, 3)[0]


def contrib():
    return support.contrib_optimizer(tf1.train.AdamOptimizer(0.5), 16.0, 3, 1, 2, 0.5)[0]


TF1_FAMILIES = {"v1": v1, "contrib": contrib}


def keras(kind, **arguments):
    inner = kind.optimizers.SGD(learning_rate=0.5, momentum=0.5, name="inner", **arguments)
    cls = tfls.keras.mixed_precision.LossScaleOptimizer
    return cls(inner, initial_scale=16.0, dynamic_growth_steps=3)


KIND = recorded.kinds()[-1]
KERAS_KINDS = {kind.name: kind for kind in recorded.kinds()}


def expected(factors=FACTORS):
    """Of each step: its number, skipped steps so far, in a row, the name of the first bad."""
    rows, skipped, in_a_row, bad = [], 0, 0, None
    for number, each in enumerate(factors, 1):
        finite = [bool(np.isfinite(factor)) for factor in each]
        if all(finite):
            in_a_row = 0
        else:
            skipped, in_a_row = skipped + 1, in_a_row + 1
            bad = SHAPES[finite.index(False)][0]
        rows.append((number, skipped, in_a_row, bad))
    return rows


def reading(monitor):
    return (*monitor.counts(), monitor.first_bad)


def gradients(variables, factors, sparse=False):
    found = [tf.ones(shape) * factors[i] for i, (_, shape) in enumerate(SHAPES)]
    if sparse:
        found[2] = tf.IndexedSlices(found[2][:1], tf.constant([1]), tf.constant([3, 2]))
    return list(zip(found, variables))


class Run:
    """What one run did.

    Attributes:
      readings: what the monitor reported after each step; empty without a monitor.
      skips: whether each step left the weights unchanged.
      scales: the loss scale after each step, as the program reads it.
      weights: the final weights.
      names: the names of the operations that are not the monitor's.
      collections: the collections of the graph.
      random: random numbers that are drawn by operations created after the step.
    """

    def __init__(self):
        self.readings, self.skips, self.scales, self.monitored_scales = [], [], [], []
        self.weights = self.names = self.collections = self.random = None

    def note(self, before, after, scale, monitor):
        self.skips.append(all(np.array_equal(a, b) for a, b in zip(before, after)))
        self.scales.append(float(scale))
        if monitor is not None:
            self.readings.append(reading(monitor))
            self.monitored_scales.append(monitor.loss_scale)
        self.weights = [each.tobytes() for each in after]


def own(name):
    return "tf_lossscale_monitor" not in name


def in_session(make, monitored, control_flow_v2=False):
    run = Run()
    with support.graph(control_flow_v2) as session:
        tf1.set_random_seed(7)
        variables = [
            tf1.get_variable(name, shape, initializer=tf1.random_normal_initializer())
            for name, shape in SHAPES
        ]
        fed = tf1.placeholder(tf.float32, [3])
        optimizer = make()
        monitor = tfls.monitoring.Monitor(optimizer, warn_at_minimum=False) if monitored else None
        global_step = tf1.train.get_or_create_global_step()
        step = optimizer.apply_gradients(gradients(variables, fed, sparse=True), global_step)
        noise = tf1.random.normal([4])
        scale = tf.identity(optimizer._current_loss_scale())
        initialize = tf1.global_variables_initializer()
        graph = tf1.get_default_graph()
        graph.finalize()
        session.run(initialize)
        run.random = session.run(noise).tobytes()
        for factors in FACTORS:
            before = session.run(variables)
            session.run(step, {fed: factors})
            run.note(before, session.run(variables), session.run(scale), monitor)
        run.names = [each.name for each in graph.get_operations() if own(each.name)]
        run.collections = {
            key: [str(each) for each in graph.get_collection(key)]
            for key in graph.get_all_collection_keys()
        }
    return run


JIT = {"jit_compile": True} if support.TF_VERSION >= (2, 5) else {"experimental_compile": True}


def eagerly(make, monitored, mode, sparse=False, kind=None):
    """In eager mode, a `tf.function`, or one that XLA compiles; of v1, or of a kind of Keras."""
    run = Run()
    with support.eager():
        tf.compat.v2.random.set_seed(7)
        if kind is None:
            variables = [tf.Variable(tf.ones(shape), name=name) for name, shape in SHAPES]
        else:
            ones = [(name, np.ones(shape, "float32")) for name, shape in SHAPES]
            variables = [recorded.make_variable(kind, value, name) for name, value in ones]
        optimizer = make()
        monitor = tfls.monitoring.Monitor(optimizer, warn_at_minimum=False) if monitored else None

        def step(factors):
            if kind is not None:
                optimizer.get_unscaled_gradients([])
            optimizer.apply_gradients(gradients(variables, factors, sparse))
            return tf1.random.normal([4]) if draws else tf.zeros([4])

        draws = mode == "function" and kind is None
        if hasattr(optimizer, "build"):
            optimizer.build(variables)
        if mode != "eager":
            step = tf.function(step, **(JIT if mode == "xla" else {}))
        for factors in FACTORS:
            before = [each.numpy() for each in variables]
            run.random = step(tf.constant(factors)).numpy().tobytes()
            after = [each.numpy() for each in variables]
            run.note(before, after, scale_of(optimizer), monitor)
        if draws:
            concrete = step.get_concrete_function(tf.TensorSpec([3], tf.float32))
            run.names = [each.name for each in concrete.graph.get_operations() if own(each.name)]
        if kind is None or kind.name != "keras3":
            run.keys = sorted(keys_of(tf.train.Checkpoint(optimizer=optimizer)))
        else:
            run.keys = [each.path for each in optimizer.variables]
    return run


def keys_of(checkpoint):
    with tempfile.TemporaryDirectory() as folder:
        path = checkpoint.save(folder + "/checkpoint")
        return [name for name, _ in tf.train.list_variables(path)]


def scale_of(optimizer):
    if hasattr(optimizer, "_current_loss_scale"):
        return tf.convert_to_tensor(optimizer._current_loss_scale())
    return optimizer.loss_scale


def keras_eagerly(kind, monitored, mode, **arguments):
    return eagerly(lambda: keras(kind, **arguments), monitored, mode, kind=kind)


def model(kind, optimizer):
    keras = kind.keras
    inputs = keras.layers.Input((2,))
    outputs = keras.layers.Dense(1, use_bias=False, name="dense", kernel_initializer="ones")(inputs)
    made = keras.Model(inputs, outputs)
    made.compile(optimizer, "mse")
    return made


def fit(callbacks, epochs=2, kind=KIND):
    """Four batches of one sample each, of which the second one is infinite."""
    x = np.ones((4, 2), "float32")
    x[1] = INF
    optimizer = keras(kind)
    made = model(kind, optimizer)
    arguments = {"batch_size": 1, "epochs": epochs, "shuffle": False, "verbose": 0}
    history = made.fit(x, np.zeros((4, 1), "float32"), callbacks=callbacks(optimizer), **arguments)
    return history.history, made.get_weights(), optimizer
