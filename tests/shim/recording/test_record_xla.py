"""Recording of steps that XLA compiles: what is recorded, gaps, and what is refused."""

import pytest
import recorded
import replicated
import tensorflow as tf
from processes import LONG, run_program
from recordings import Recording, check_steps, v1_optimizer, v1_variable

import tf_lossscale as tfls
from tf_lossscale._records.reading import read_record

tf1 = tf.compat.v1
INF = float("inf")

if recorded.TF < (2, 0):
    pytest.skip("tf.function of TensorFlow 1.15 has no jit_compile", allow_module_level=True)

JIT = replicated.JIT
# The experimental class makes the same steps as the final one.
SUBJECTS = [subject for subject in recorded.ours() if subject.api == "final"]
SUBJECTS += recorded.originals()[0 if LONG else -1 :]  # or the newest


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["v1-ours", "v1-original", *map(str, SUBJECTS)])
def test_compiled_steps_are_recorded(name):
    run = replicated.of_one(name + ":xla", "record")
    check_steps(run, name + ":xla", 1)
    if "original" not in name:
        replicated.check({"momentum": run}, name, 1, 1)


def step_of_one():
    """A step, which returns its loss, of an optimizer and a weight of its own."""
    weight, optimizer = tf.Variable([1.0, 2.0]), v1_optimizer()

    def step(factor):
        losses = []

        def loss():
            losses.append(tf.reduce_sum(tf.square(weight)) * factor)
            return losses[0]

        optimizer.minimize(loss, var_list=[weight])
        return losses[0]

    return step


def test_many_steps_in_one_call_leave_a_gap(tmp_path):
    with Recording(tmp_path) as recording:
        plain = step_of_one()
        compiled = tf.function(plain, **JIT)

        @tf.function
        def many():
            for _ in tf.range(1500):
                compiled(tf.constant(0.0))

        many()
        many()
    record = recording.record
    assert record.steps == [*range(476, 1500), *range(1976, 3000)]
    assert record.scale.initial_scale is None
    assert [(gap.first, gap.end) for gap in record.gaps] == [(1500, 1976)]


def test_many_calls_leave_no_gap(tmp_path):
    with Recording(tmp_path) as recording:
        plain = step_of_one()
        compiled = tf.function(plain, **JIT)
        for _ in range(1100):
            compiled(tf.constant(0.0))
    assert recording.record.steps == list(range(1100))


def test_compiled_and_other_steps_are_in_order_and_calls_are_as_before_after_stop(tmp_path):
    call = type(tf.function(lambda: None)).__call__
    with Recording(tmp_path) as recording:
        plain = step_of_one()
        compiled = tf.function(plain, **JIT)
        losses = []
        for number in range(6):
            step = compiled if number % 3 else plain
            losses.append(float(step(tf.constant(0.01))))
        assert type(compiled).__call__ is not call
    assert recording.record.loss == losses
    assert len(set(losses)) == 6
    compiled(tf.constant(1.0))
    assert type(compiled).__call__ is call
    assert len(read_record(recording.path).optimizers[0].steps) == 6


def test_the_norm_of_sparse_gradients_is_unknown(tmp_path):
    with Recording(tmp_path) as recording:
        table, optimizer = tf.Variable([[3.0], [4.0]]), v1_optimizer()

        @tf.function(**JIT)
        def step():
            gradient = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([1]), tf.constant([2, 1]))
            optimizer.apply_gradients([(gradient, table)])

        step()
    assert (recording.record.applied, recording.record.norm) == ([True], [None])


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
