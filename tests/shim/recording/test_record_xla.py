"""Recording of steps that XLA compiles: what is recorded, gaps, and what is refused."""

import os
import sys

import numpy as np
import pytest
import tensorflow as tf
from processes import run_program
from recordings import Recording, v1_optimizer, v1_variable

import tf_lossscale as tfls
from tf_lossscale._recording.reading import read_record

_SHIM = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(_SHIM, "tf1"), os.path.join(_SHIM, "keras")]

import recorded  # noqa: E402 - after the path is set
import support  # noqa: E402 - after the path is set

tf1 = tf.compat.v1

if recorded.TF < (2, 0):
    pytest.skip("tf.function of TensorFlow 1.15 has no jit_compile", allow_module_level=True)

JIT = {"jit_compile": True} if recorded.TF >= (2, 5) else {"experimental_compile": True}
LONG = os.environ.get("TFLS_TEST_SIZE") == "long"
INF = float("inf")
SHAPES = [("first", [2]), ("second", [3, 2]), ("third", [])]
# The factor of each variable's square in the loss of each step.
STEPS = [(1.0, 1.0, 1.0), (1.0, INF, 1.0), (1.0, 2.0, 1.0), (0.5, 1.0, 1.0), (INF, 1.0, 0.1)]


def loss_of(variables, factors):
    return sum(factors[i] * tf.reduce_sum(tf.square(v)) for i, v in enumerate(variables))


class KerasSteps:
    """Steps of a Keras optimizer."""

    def __init__(self, subject):
        self.subject = subject
        kind = subject.kind
        self.variables = [
            recorded.make_variable(kind, np.ones(shape, "float32"), name) for name, shape in SHAPES
        ]
        inner = subject.inner("SGD", learning_rate=0.5, momentum=0.5)
        self.optimizer = subject.dynamic(inner, 1024.0, 2)
        for each in (inner, self.optimizer):
            if kind.name != "legacy" and hasattr(each, "build"):
                each.build(self.variables)

    def scale(self):
        return recorded.number(self.subject.scale_and_counter(self.optimizer)[0])

    def step(self, factors):
        optimizer, is_3 = self.optimizer, self.subject.api == "keras3"
        sources = [recorded.gradient_source(each) for each in self.variables]
        with tf.GradientTape() as tape:
            loss = loss_of(sources, factors)
            scaled = optimizer.scale_loss(loss) if is_3 else optimizer.get_scaled_loss(loss)
        gradients = tape.gradient(scaled, sources)
        if is_3:
            optimizer.apply(gradients, self.variables)
        else:
            gradients = optimizer.get_unscaled_gradients(gradients)
            optimizer.apply_gradients(list(zip(gradients, self.variables)))
        return loss


class V1Steps:
    """Steps of a v1 optimizer."""

    def __init__(self, namespace):
        self.variables = [tf.Variable(tf.ones(shape), name=name) for name, shape in SHAPES]
        inner = tf1.train.MomentumOptimizer(0.5, 0.5)
        self.loss_scale = namespace.DynamicLossScale(1024.0, 2)
        self.optimizer = namespace.MixedPrecisionLossScaleOptimizer(inner, self.loss_scale)

    def scale(self):
        return float(self.loss_scale())

    def step(self, factors):
        loss = []

        def noted():
            loss.append(loss_of(self.variables, factors))
            return loss[0]

        self.optimizer.apply_gradients(self.optimizer.compute_gradients(noted, self.variables))
        return loss[0]


MAKERS = {
    **{
        str(each): lambda each=each: KerasSteps(each)
        for each in recorded.ours()
        if each.api == "final"  # the experimental class makes the same steps
    },
    **{
        str(each): lambda each=each: KerasSteps(each)
        for each in recorded.originals()[0 if LONG else -1 :]  # or the newest
    },
    **{
        "v1 " + name: lambda namespace=namespace: V1Steps(namespace)
        for name, namespace in support.v1_namespaces().items()
    },
}


def train(make, with_xla=True):
    """Returns what the program sees of each step, and the last weights."""
    steps, rows = make(), []
    compiled = tf.function(steps.step, **JIT) if with_xla else steps.step
    for factors in STEPS:
        before, scale = weights(steps), steps.scale()
        loss = float(compiled(tf.constant(factors)))
        rows.append((loss, scale, weights(steps) != before))
    return rows, weights(steps)


def weights(steps):
    return [each.numpy().tolist() for each in steps.variables]


@pytest.mark.parametrize("name", MAKERS)
def test_compiled_steps_are_recorded(name, tmp_path):
    with Recording(tmp_path) as recording:
        rows, last = train(MAKERS[name])
    record = recording.record
    np.testing.assert_equal(list(zip(record.loss, record.scales, record.applied)), rows)
    assert record.finite == [True, False, True, True, False]
    assert record.bad == [None, 1, None, None, 0]
    assert [each is None for each in record.norm] == [not each for each in record.finite]
    assert record.norm[0] == 6.0
    assert record.initial_weights is not None
    assert recording.header.xla is True
    # Not bit by bit: XLA may fuse operations.
    np.testing.assert_allclose(flat(last), flat(train(MAKERS[name], False)[1]), rtol=1e-6)


def flat(arrays):
    return np.concatenate([np.ravel(each) for each in arrays])


SIMPLE = next(name for name in MAKERS if name.startswith("ours-final"))


def test_many_steps_in_one_call_leave_a_gap(tmp_path):
    with Recording(tmp_path) as recording:
        steps = MAKERS[SIMPLE]()
        compiled = tf.function(steps.step, **JIT)

        @tf.function
        def many():
            for _ in tf.range(1500):
                compiled(tf.constant(STEPS[0]) * 0.0)

        many()
        many()
    record = recording.record
    assert record.steps == [*range(476, 1500), *range(1976, 3000)]
    assert record.scale.initial_scale is None
    assert [(each.first, each.end) for each in record.gaps] == [(1500, 1976)]


def test_many_calls_leave_no_gap(tmp_path):
    with Recording(tmp_path) as recording:
        steps = MAKERS[SIMPLE]()
        compiled = tf.function(steps.step, **JIT)
        for _ in range(1100):
            compiled(tf.constant(STEPS[0]) * 0.0)
    assert recording.record.steps == list(range(1100))


def test_compiled_and_other_steps_are_in_order_and_calls_are_as_before_after_stop(tmp_path):
    call = type(tf.function(lambda: None)).__call__
    with Recording(tmp_path) as recording:
        steps = MAKERS[SIMPLE]()
        compiled = tf.function(steps.step, **JIT)
        losses = []
        for number in range(6):
            step = compiled if number % 3 else steps.step
            losses.append(float(step(tf.constant(STEPS[0]) * 0.01)))
        assert type(compiled).__call__ is not call
    assert recording.record.loss == losses
    assert len(set(losses)) == 6
    compiled(tf.constant(STEPS[0]))
    assert type(compiled).__call__ is call
    assert len(read_record(recording.path).optimizers[0].steps) == 6


SCRIPT = """
import json
import sys

import tensorflow as tf

import tf_lossscale as tfls

tfls.recording.start(sys.argv[1])
namespace = tfls.compat.v1.mixed_precision
weight = tf.Variable([1.0, 2.0])
optimizer = namespace.MixedPrecisionLossScaleOptimizer(
    tf.compat.v1.train.GradientDescentOptimizer(0.5), namespace.DynamicLossScale(8.0)
)

def step(factor):
    optimizer.minimize(lambda: tf.reduce_sum(weight) * factor, var_list=[weight])
    return tf.reduce_sum(weight)

step = tf.function(step, **{jit})
print(json.dumps([float(step(tf.constant(each))) for each in (1.0, float("inf"), 2.0)]))
"""


def test_the_last_steps_are_recorded_when_the_process_ends(tmp_path):
    path = str(tmp_path / "record.jsonl")
    (tmp_path / "script.py").write_text(SCRIPT.replace("{jit}", repr(JIT)))
    assert run_program(str(tmp_path / "script.py"), path) == [2.0, 2.0, 0.0]
    (record,) = read_record(path).optimizers
    assert record.applied == [True, False, True]
    assert record.loss == [3.0, INF, 4.0]


def test_steps_that_xla_compiles_in_a_session_are_refused(tmp_path):
    refusal = pytest.raises(tfls.recording.RecordingError, match="jit_compile=False")
    with refusal, Recording(tmp_path), tf.Graph().as_default():
        pairs = [(tf.constant(1.0), v1_variable())]
        tf.xla.experimental.compile(lambda: v1_optimizer().apply_gradients(pairs))
