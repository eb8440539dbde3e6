"""`tf-lossscale run --monitor`: two lines about an unmodified script, and no file."""

import json
import os

import pytest
import tensorflow as tf
from processes import run_python

pytestmark = pytest.mark.by_file

TF1 = tf.__version__.startswith("1.")
SCRIPT = """
import json
import os
import subprocess
import sys

import tensorflow.compat.v1 as tf
from tensorflow.contrib.mixed_precision import FixedLossScaleManager, LossScaleOptimizer

with tf.Graph().as_default():
    first = tf.get_variable("first", initializer=[1.0, 2.0], use_resource=True)
    second = tf.get_variable("second", initializer=[1.0, 2.0], use_resource=True)
    factor = tf.placeholder(tf.float32, [])
    optimizer = LossScaleOptimizer(tf.train.GradientDescentOptimizer(0.5), FixedLossScaleManager(8))
    loss = tf.reduce_sum(first * 3.0) + tf.reduce_sum(tf.sqrt(second * factor))
    pairs = optimizer.compute_gradients(loss, [first, second])
    gradients, _ = tf.clip_by_global_norm([gradient for gradient, _ in pairs], 1.0)
    step = optimizer.apply_gradients(list(zip(gradients, [first, second])))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for value in (1.0, 0.0, 0.0, 0.0):
            session.run(step, {factor: value})
print("done", flush=True)
THEN
"""


def script(tmp_path, then=""):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.replace("THEN", then))
    return str(path)


def run(*arguments):
    return run_python("-m", "tf_lossscale._cli.main", "run", *arguments)


def lines(done):
    return [line for line in done.stderr.splitlines() if line.startswith("tf-lossscale: ")]


SUMMARY = "tf-lossscale: 4 steps: 3 skipped (from step 1 on), first in second, loss scale 8."


def test_two_lines_and_no_file(tmp_path):
    path = script(tmp_path)
    done = run("--monitor", path)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    summary, advice = lines(done)
    assert summary == SUMMARY
    assert "only the gradient of second was not finite, so look at its backward pass" in advice
    assert os.listdir(str(tmp_path)) == ["script.py"]


OF_KERAS = """
import tensorflow as tf

if tf.__version__.startswith("1."):
    tf.compat.v1.enable_v2_behavior()
namespace, weight = tf.keras.mixed_precision, tf.Variable(1.0, name="weight")
inner = tf.keras.optimizers.SGD(0.1)
if hasattr(tf.keras, "Operation"):  # Keras 3, whose public names are the shim's class here
    from keras.src.optimizers.loss_scale_optimizer import LossScaleOptimizer
    optimizer = LossScaleOptimizer(inner)
elif hasattr(namespace, "LossScaleOptimizer"):
    optimizer = namespace.LossScaleOptimizer(inner)
else:
    optimizer = namespace.experimental.LossScaleOptimizer(inner, "dynamic")
for gradient in (1.0, float("inf"), 1.0):
    optimizer.apply_gradients([(tf.constant(gradient), weight)])
print(type(optimizer).__module__.partition(".")[0])
"""


@pytest.mark.slow
def test_the_class_of_the_installed_keras_is_counted():
    done = run("--monitor", "-c", OF_KERAS)
    assert done.stdout.strip() in ("keras", "tensorflow", "tensorflow_core"), done.stderr
    assert lines(done)[0].startswith("tf-lossscale: 3 steps: 1 skipped (in step 1), first in ")


@pytest.mark.slow
def test_the_module_has_the_option_too(tmp_path):
    done = run_python("-m", "tf_lossscale", "--monitor", script(tmp_path))
    assert lines(done)[0] == SUMMARY


@pytest.mark.slow
def test_with_a_record_it_is_the_record_that_is_summed_up(tmp_path):
    record = str(tmp_path / "record.jsonl")
    done = run("--monitor", "--record", record, script(tmp_path))
    assert lines(done)[-2].startswith(f"tf-lossscale: recorded 4 steps in {record}: 3 skipped")


ENDINGS = {
    "an error": ("raise ValueError('on purpose')", 1),
    "os._exit": ("os._exit(5)", 5),
    "SIGTERM": ("import signal, time; os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", -15),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ENDINGS)
def test_however_the_script_ends(tmp_path, name):
    then, status = ENDINGS[name]
    done = run("--monitor", script(tmp_path, then))
    assert done.returncode == status
    assert lines(done)[0] == SUMMARY


@pytest.mark.slow
def test_each_process_that_makes_steps_prints_its_own(tmp_path):
    then = "if len(sys.argv) == 1: subprocess.call([sys.executable, __file__, 'child'])"
    done = run("--monitor", script(tmp_path, then))
    found = lines(done)
    assert len(found) == 4
    assert found[0].startswith("tf-lossscale: process ")
    assert found[0].endswith(SUMMARY.replace("tf-lossscale: ", ""))
    assert found[2] == SUMMARY


REFUSED = """
import tensorflow.compat.v1 as tf
import tf_lossscale as tfls

tf.disable_eager_execution()
namespace = tfls.compat.v1.mixed_precision
weight = tf.get_variable("weight", initializer=1.0, use_resource=True)
optimizer = namespace.MixedPrecisionLossScaleOptimizer(
    tf.train.GradientDescentOptimizer(0.5), namespace.DynamicLossScale()
)
tf.xla.experimental.compile(lambda: optimizer.apply_gradients([(tf.constant(1.0), weight)]))
"""


@pytest.mark.slow
def test_what_cannot_be_counted_is_refused():
    done = run("--monitor", "-c", REFUSED)
    assert done.returncode == 1
    words = (
        "cannot be counted. Run the program without --monitor, or count it with jit_compile=False"
    )
    assert words in done.stderr
    assert done.stderr.count("no step was counted") == 0


@pytest.mark.parametrize(
    "code", ["print(1)", pytest.param("import tensorflow", marks=pytest.mark.slow)]
)
def test_a_script_without_steps(code):
    done = run("--monitor", "-c", code)
    assert done.returncode == 0
    (line,) = lines(done)
    assert line.startswith("tf-lossscale: no step was counted: ")


LOOP = """
import numpy as np
import tensorflow as tf

if tf.__version__.startswith("1."):
    tf.compat.v1.enable_v2_behavior()
keras, namespace = tf.keras, tf.keras.mixed_precision
is_final = hasattr(namespace, "set_global_policy")
(namespace.set_global_policy if is_final else namespace.experimental.set_policy)("mixed_float16")
model = keras.Sequential([keras.layers.Dense(1, dtype="float32")])
optimizer = keras.optimizers.SGD(0.1)
WRAP
x = np.ones((4, 3), "float32")
for _ in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) ** 2)
        scaled = SCALED
    gradients = tape.gradient(scaled, model.trainable_variables)
    optimizer.apply_gradients(list(zip(gradients, model.trainable_variables)))
"""
WRAP = """
import tf_lossscale as tfls
optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(optimizer)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrap", "scaled", "expected"),
    [
        ("", "loss", "mixed_float16 is on and nothing scales the loss"),
        (WRAP, "loss", "no loss was scaled through the optimizer"),
        (WRAP, "optimizer.get_scaled_loss(loss)", "nothing points to a problem"),
    ],
)
def test_losses_that_are_not_scaled(tmp_path, wrap, scaled, expected):
    path = tmp_path / "script.py"
    path.write_text(LOOP.replace("WRAP", wrap).replace("SCALED", scaled))
    done = run("--monitor", str(path))
    assert done.returncode == 0, done.stderr
    assert lines(done)[-1].startswith(f"tf-lossscale: {expected}")


NAN = (
    LOOP.partition("optimizer =")[0]
    + """
model.compile("sgd", "mse")
x = np.ones((80, 3), "float32")
x[::8] = np.nan
model.fit(x, np.ones((80, 1)), batch_size=4, shuffle=False, verbose=0)
"""
)


@pytest.mark.slow
@pytest.mark.skipif(TF1, reason="compile does not wrap the optimizer")
def test_a_loss_that_is_nan_in_every_second_batch():
    summary, advice = lines(run("--monitor", "-c", NAN))
    assert "20 steps: 10 skipped (the first in step 0, the last in step 18)" in summary
    assert "the loss itself is not finite, so look at the forward pass" in advice


PREDICTS = LOOP.partition("WRAP")[0] + "model.predict(np.ones((4, 3), 'float32'))\n"
DIES = (
    LOOP.partition("WRAP")[0]
    + """
model.compile(optimizer, "mse")  # which wraps the optimizer, on Keras 3 and with TensorFlow 2.4
raise FileNotFoundError("no weights")
"""
)
DIES_IN_ITS_STEP = (
    LOOP.partition("for _")[0].replace("WRAP", WRAP)
    + """
@tf.function
def step():
    gradients = [tf.zeros_like(variable) for variable in model.trainable_variables]
    optimizer.apply_gradients(list(zip(gradients, model.trainable_variables)))
    raise FileNotFoundError("no weights")
model(x)
step()
"""
)


@pytest.mark.slow
@pytest.mark.parametrize("code", [PREDICTS, DIES, DIES_IN_ITS_STEP])
def test_a_program_that_makes_no_step_has_no_loss_to_scale(code):
    (line,) = lines(run("--monitor", "-c", code))
    assert line.startswith("tf-lossscale: no step was counted: ")


@pytest.mark.slow
def test_the_run_is_the_same(tmp_path):
    then = "print(json.dumps([float(value) for value in session.run(first)]))"
    source = SCRIPT.replace("THEN", "").replace(
        "            session.run(step, {factor: value})",
        "            session.run(step, {factor: value})\n        " + then,
    )
    path = tmp_path / "script.py"
    path.write_text(source)
    plain, monitored = (run(*options, str(path)) for options in ([], ["--monitor"]))
    assert plain.stdout == monitored.stdout
    assert len(json.loads(plain.stdout.splitlines()[0])) == 2


def test_options_of_a_record_need_one():
    done = run("--monitor", "--overwrite", "-c", "")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--overwrite needs --record FILE" in done.stderr
