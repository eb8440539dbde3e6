"""A monitor reports what each step did, in every mode, and changes nothing in the run."""

import numpy as np
import pytest
import recorded
import replicated
import support
import tensorflow as tf
import watched

import tf_lossscale as tfls

tf1 = tf.compat.v1
# XLA compiles functions with optimizers on CPUs from 2.4 on in all environments of the matrix.
MODES = ["eager", "function"] + (["xla"] if support.TF_VERSION >= (2, 4) else [])
GRAPHS = ["graph-references-sparse", "graph-v2-sparse"]
KERAS = [f"ours-final-{name}:{mode}" for name in watched.KERAS_KINDS for mode in MODES]
CASES = KERAS + [
    f"{family}-ours:{mode}"
    for family in ("contrib", "v1")
    for mode in [*GRAPHS, "eager-sparse", *MODES[1:]]
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", CASES)
def test_steps(what):
    with support.eager():
        run = replicated.of_one(what, "monitor")
    replicated.check({"momentum": run}, what.split(":")[0], 1, 1)
    replicated.check_readings(run, what, 1)


@pytest.mark.skipif(recorded.TF < (2, 4), reason="this Keras has no global_clipnorm")
@pytest.mark.parametrize("mode", ["eager", "function"])
def test_gradients_that_the_inner_optimizer_transforms(mode):
    """Finite gradients can have an infinite norm: the step is applied, as by TensorFlow's class."""
    kind = watched.KERAS_KINDS[sorted(watched.KERAS_KINDS)[0]]
    shapes = replicated.SHAPES
    variables = [
        recorded.make_variable(kind, np.ones(shapes[name], "float32"), name) for name in shapes
    ]
    optimizer = watched.keras(kind, global_clipnorm=1.0)
    monitor = tfls.monitoring.Monitor(optimizer, warn_at_minimum=False)
    if hasattr(optimizer, "build"):
        optimizer.build(variables)

    def step(factors):
        optimizer.get_unscaled_gradients([])
        gradients = [tf.ones(shape) * factors[i] for i, shape in enumerate(shapes.values())]
        optimizer.apply_gradients(list(zip(gradients, variables)))

    step = tf.function(step) if mode == "function" else step
    readings = []
    for factors in ([1.0] * 3, [3e38] * 3, [1.0, float("inf"), 1.0]):
        step(tf.constant(factors))
        readings.append((*monitor.counts(), monitor.first_bad))
    assert readings == [(1, 0, 0, None), (2, 0, 0, None), (3, 1, 1, "second")]


@pytest.mark.parametrize("family", watched.TF1_FAMILIES)
def test_that_finite_steps_keep_no_scaled_gradient(family):
    """What else reads a scaled gradient keeps its memory, which unscaling would use again."""

    def readers(is_monitored):
        with support.graph():
            variables = [
                tf1.get_variable(name, initializer=[1.0, 2.0], use_resource=True)
                for name in ("one", "two")
            ]
            optimizer = watched.TF1_FAMILIES[family]()
            if is_monitored:
                tfls.monitoring.Monitor(optimizer)
            loss = tf.reduce_sum(tf.add_n([variable.read_value() ** 2.0 for variable in variables]))
            pairs = optimizer.compute_gradients(loss, variables)
            optimizer.apply_gradients(pairs)
            scaled = pairs[0][0].op.inputs[0]
            before = scaled.op.inputs[0] if scaled.op.type == "Identity" else scaled
            return [sorted(read.type for read in g.consumers()) for g in (scaled, before)]

    assert readers(is_monitored=True) == readers(is_monitored=False)
