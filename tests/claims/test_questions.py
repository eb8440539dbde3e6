"""Rows of the pages that answer questions, whose programs the pages do not show."""

import contextlib
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from documents import ROOT, Text, blocks

tf = pytest.importorskip("tensorflow")

import tf_lossscale as tfls  # noqa: E402 - needs TensorFlow
from tf_lossscale._cli.main import main  # noqa: E402 - below what needs TensorFlow

tf1 = tf.compat.v1


def averages(optimizer, gradients):
    """The average of a weight after each step."""
    weight = tf.Variable(1.0)
    found = []
    for gradient in gradients:
        optimizer.apply_gradients([(tf.constant(gradient), weight)])
        inner = getattr(optimizer, "inner_optimizer", optimizer)
        found += [float(variable) for variable in inner.variables if "average" in variable.name]
    return found


def after_a_step(optimizer, gradient):
    """A weight of 1 after one step."""
    weight = tf.Variable(1.0)
    optimizer.apply_gradients([(tf.constant(gradient), weight)])
    return float(weight)


def test_a_skipped_step_does_not_change_the_average_of_use_ema():
    """`docs/wrappers.md`; the option is one of the inner optimizer."""

    def sgd():
        return tf.keras.optimizers.SGD(0.5, use_ema=True, ema_momentum=0.5)

    first, second = averages(sgd(), [1.0, 1.0])
    optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(sgd())
    seen = averages(optimizer, [1.0, float("inf"), 1.0, float("nan")])
    assert seen == [first, first, second, second]
    with pytest.raises((TypeError, ValueError), match="use_ema"):
        tfls.keras.mixed_precision.LossScaleOptimizer(sgd(), use_ema=True)


def test_auto_mixed_precision_of_the_configuration_scales_nothing():
    """`docs/is-it-scaled.md`: the graph rewrite, which sets the same option, also scales."""
    tf.config.optimizer.set_experimental_options({"auto_mixed_precision": True})
    try:
        model = tf.keras.Sequential([tf.keras.layers.Input([3]), tf.keras.layers.Dense(1)])
        model.compile(tf.keras.optimizers.SGD(0.1), "mse")
        assert type(model.optimizer) is tf.keras.optimizers.SGD
    finally:
        tf.config.optimizer.set_experimental_options({"auto_mixed_precision": False})
    plain = tf1.train.GradientDescentOptimizer(0.1)
    wrapped = tf1.mixed_precision.enable_mixed_precision_graph_rewrite(plain)
    tf1.mixed_precision.disable_mixed_precision_graph_rewrite()
    assert isinstance(wrapped, tfls.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer)


def test_auto_mixed_precision_of_a_session_skips_no_step():
    """`docs/is-it-scaled.md`; a step that is not scaled is not tested, either."""
    config = tf1.ConfigProto()
    config.graph_options.rewrite_options.auto_mixed_precision = 1
    finals = {}
    for name, wrap in (("plain", lambda optimizer: optimizer), ("scaled", scaled_by_contrib)):
        with tf.Graph().as_default(), tf1.Session(config=config) as session:
            weight = tf1.get_variable("weight", initializer=1.0, use_resource=True)
            optimizer = wrap(tf1.train.GradientDescentOptimizer(0.5))
            step = optimizer.apply_gradients([(tf.constant(float("inf")), weight)])
            session.run(tf1.global_variables_initializer())
            session.run(step)
            finals[name] = session.run(weight)
    assert finals == {"plain": -float("inf"), "scaled": 1.0}


def scaled_by_contrib(optimizer):
    mixed_precision = tfls.contrib.mixed_precision
    return mixed_precision.LossScaleOptimizer(optimizer, mixed_precision.FixedLossScaleManager(8.0))


def test_compile_on_another_backend_uses_the_class_of_keras_3(monkeypatch):
    """`docs/drop-in.md`: our class needs TensorFlow."""
    tfls.keras.mixed_precision.set_global_policy("mixed_float16")
    monkeypatch.setattr(sys.modules["keras"].config, "backend", lambda: "jax")
    made = tfls.keras.mixed_precision.wrap(tf.keras.optimizers.SGD(0.5))
    tf.keras.mixed_precision.set_global_policy("float32")
    assert type(made) is tf.keras.mixed_precision.LossScaleOptimizer


def test_apply_gradients_without_scaling():
    """`docs/is-it-scaled.md`: only the class of Keras 3 divides what was never multiplied."""
    theirs = tf.keras.mixed_precision.LossScaleOptimizer(
        tf.keras.optimizers.SGD(1.0), initial_scale=4.0
    )
    ours = tfls.keras.mixed_precision.LossScaleOptimizer(
        tf.keras.optimizers.SGD(1.0), initial_scale=4.0
    )
    assert (after_a_step(theirs, 0.5), after_a_step(ours, 0.5)) == (0.875, 0.5)


def test_an_average_after_a_skipped_step_counts_the_same_weights_again():
    """`docs/wrappers.md`, `tf.train.ExponentialMovingAverage`."""
    weight = tf.Variable(1.0)
    optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(1.0))
    average = tf.train.ExponentialMovingAverage(0.5)
    found = []
    for gradient in (1.0, float("inf")):
        average.apply([weight])
        optimizer.apply_gradients([(tf.constant(gradient), weight)])
        average.apply([weight])
        found.append(float(average.average(weight)))
    assert float(weight) == 0.0
    assert found == [0.5, 0.125]


def test_new_style_optimizers_of_keras_2_have_no_get_weights():
    """`docs/keras.md`, TensorFlow 2.11 to 2.15."""
    tf_keras = pytest.importorskip("tf_keras")
    new, legacy = tf_keras.optimizers.SGD, tf_keras.optimizers.legacy.SGD
    ours, theirs = tfls.keras.mixed_precision, tf_keras.mixed_precision
    for made_by, inner, has in ((ours, new, False), (theirs, new, False), (ours, legacy, True)):
        optimizer = made_by.LossScaleOptimizer(inner(0.1))
        assert [hasattr(optimizer, name) for name in ("weights", "get_weights")] == [has, has]
        assert hasattr(optimizer, "variables")


def test_an_average_of_a_keras_3_model_takes_its_values():
    """`docs/wrappers.md`: TensorFlow does not know the variables of a Keras 3 model."""
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
    model.build((None, 1))
    average = tf.train.ExponentialMovingAverage(0.5)
    with pytest.raises(AttributeError, match="base_dtype"):
        average.apply(model.trainable_variables)
    values = [variable.value for variable in model.trainable_variables]
    average.apply(values)
    model.layers[0].kernel.assign([[3.0]])
    average.apply(values)
    assert float(average.average(values[0])[0, 0]) == 2.0


def test_keras_3_counts_accumulated_gradients_that_are_finite():
    """`docs/accumulate.md`: what `gradient_accumulation_steps` does with an infinite one."""
    weight = tf.Variable(1.0)
    inner = tf.keras.optimizers.SGD(1.0, gradient_accumulation_steps=2)
    optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(inner, initial_scale=4.0)
    counts = []
    for gradient in (1.0, float("inf"), 0.5):
        optimizer.apply_gradients([(tf.constant(gradient), weight)])
        counts.append(int(optimizer.iterations))
    assert (float(weight), float(optimizer.loss_scale)) == (0.25, 2.0)
    assert counts == [0, 0, 1]  # other skipped steps count


def test_checkpoints_do_not_contain_accumulated_sums(tmp_path):
    """`docs/accumulate.md`: so save after a step."""
    weight = tf.Variable(1.0)
    optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.5))
    tfls.accumulate(optimizer, 2).apply_gradients([(tf.constant(1.0), weight)])
    path = tf.train.Checkpoint(optimizer=optimizer, weight=weight).save(str(tmp_path / "c"))
    names = [name for name, _ in tf.train.list_variables(path)]
    assert any(name.startswith("weight/") for name in names)
    assert [name for name in names if "accumulated" in name] == []


def test_a_saver_restores_a_file_from_before_accumulation(tmp_path):
    """`docs/accumulate.md`, in a Session; `docs/troubleshooting.md` has the message."""

    def program(count, restored=lambda: None):
        """One call of a program that accumulates `count` gradients, after a restore."""
        with tf.Graph().as_default(), tf1.Session() as session:
            weight = tf1.get_variable("w", initializer=1.0, use_resource=True)
            optimizer = scaled_by_contrib(tf1.train.MomentumOptimizer(0.5, 0.5))
            pairs = optimizer.compute_gradients(weight * 3.0)
            if count > 1:
                optimizer = tfls.accumulate(optimizer, count)
            step = optimizer.apply_gradients(pairs)
            session.run(tf1.global_variables_initializer())
            if count > 1:
                tf1.train.Saver(restored()).restore(session, before)
            session.run(step)
            sums = [v for v in tf1.global_variables() if v.name.startswith("accumulated/")]
            saved = tf1.train.Saver().save(session, str(tmp_path / f"after-{count}"))
            return saved, session.run({v.op.name: v for v in sums})

    before, _ = program(1)
    with pytest.raises(tf.errors.NotFoundError, match="Key accumulated/count not found"):
        program(2)
    _, sums = program(
        2,
        lambda: [v for v in tf1.global_variables() if not v.name.startswith("accumulated/")],
    )
    assert sums == {"accumulated/count": 1, "accumulated/w": 3.0}
    before = str(tmp_path / "after-2")
    assert program(2)[1] == {"accumulated/count": 0, "accumulated/w": 0.0}, "the second of two"


@pytest.fixture
def control_flow_v1():
    """What `disable_v2_behavior` sets; later tests find it as it was."""
    is_v2 = tf1.control_flow_v2_enabled()
    tf1.disable_control_flow_v2()
    yield
    if is_v2:
        tf1.enable_control_flow_v2()


def scaled(kind, inner):
    """A dynamic loss-scale optimizer of v1 or contrib."""
    if kind == "contrib":
        mp = tfls.contrib.mixed_precision
        return mp.LossScaleOptimizer(inner, mp.ExponentialUpdateLossScaleManager(8.0, 10))
    mp = tfls.compat.v1.mixed_precision
    return mp.MixedPrecisionLossScaleOptimizer(inner, mp.DynamicLossScale(8.0))


ACCUMULATE = (ROOT / "docs" / "accumulate.md").read_text(encoding="utf-8")
(RESTORE,) = (
    block.code
    for block in blocks(Text("docs/accumulate.md", 1, ACCUMULATE))
    if block.language == "python" and ".restore(session, path)" in block.code
)


@pytest.mark.usefixtures("control_flow_v1")
@pytest.mark.parametrize(
    ("kind", "scope", "has_cond", "key"),
    [
        ("contrib", "", False, "cond/cond/beta1_power"),
        ("v1", "", False, "cond/cond_1/beta1_power"),
        ("shards", "", False, "cond/beta1_power"),
        ("contrib", "train", False, "train/cond/cond/beta1_power"),
        ("contrib", "", True, "cond_1/cond/beta1_power"),
        ("v1", "", True, "cond_1/cond_1/beta1_power"),
    ],
)
def test_a_saver_restores_adam_from_before_accumulation(tmp_path, kind, scope, has_cond, key):
    """`docs/accumulate.md`, in a Session; `docs/troubleshooting.md` has the names."""
    path = str(tmp_path / "before")

    def program(count):
        """Returns the step of a program that accumulates `count` gradients."""
        weight = tf1.get_variable("w", initializer=1.0, use_resource=True)
        loss = weight * 3.0
        if has_cond:
            loss = tf.cond(weight > 0.0, lambda: loss, lambda: -loss)
        adam = tf1.train.AdamOptimizer(0.1)
        shards = tfls.contrib.tpu.CrossShardOptimizer
        optimizer = shards(adam) if kind == "shards" else scaled(kind, adam)
        pairs = optimizer.compute_gradients(loss)
        with tf1.variable_scope(scope) if scope else contextlib.nullcontext():
            accumulated = tfls.accumulate(optimizer, count) if count > 1 else optimizer
            return accumulated.apply_gradients(pairs)

    def values(session):
        return sorted(
            float(session.run(variable))
            for variable in tf1.global_variables()
            if "accumulated" not in variable.op.name
        )

    with tf.Graph().as_default(), tf1.Session() as session:
        step = program(1)
        session.run(tf1.global_variables_initializer())
        for _ in range(3):
            session.run(step)
        tf1.train.Saver().save(session, path)
        expected = values(session)
    with tf.Graph().as_default(), tf1.Session() as session:
        program(4)
        assert key in [variable.op.name for variable in tf1.global_variables()]
        session.run(tf1.global_variables_initializer())
        names = {"tf": tf, "session": session, "path": path}
        if kind == "v1" and has_cond:
            with pytest.raises(tf.errors.NotFoundError, match=f"Key {key} not found"):
                exec(RESTORE, names)
            powers = [name for name, _ in tf.train.list_variables(path) if "power" in name]
            assert powers == ["cond_2/beta1_power", "cond_2/beta2_power"]
            return
        exec(RESTORE, names)
        assert values(session) == expected


def test_keys_of_a_loss_scale_that_a_saver_does_not_find(tmp_path, read_here):
    """`docs/troubleshooting.md`: files of the other class, and of a program without a scale."""
    paths = {kind: str(tmp_path / kind) for kind in ("contrib", "v1", "plain")}

    def program(kind, path=None, but=()):
        with tf.Graph().as_default(), tf1.Session() as session:
            weight = tf1.get_variable("w", initializer=1.0, use_resource=True)
            inner = tf1.train.MomentumOptimizer(0.5, 0.5)
            optimizer = inner if kind == "plain" else scaled(kind, inner)
            optimizer.minimize(weight * 3.0)
            session.run(tf1.global_variables_initializer())
            if path is None:
                tf1.train.Saver().save(session, paths[kind])
                return
            found = [v for v in tf1.global_variables() if v.op.name not in but]
            tf1.train.Saver(found).restore(session, path)

    for kind in paths:
        program(kind)
    for kind, other, key, own in (
        ("v1", "contrib", "current_loss_scale", ["current_loss_scale", "good_steps"]),
        ("contrib", "v1", "bad_steps", ["loss_scale", "good_steps", "bad_steps"]),
    ):
        for path in (paths[other], paths["plain"]):
            with pytest.raises(tf.errors.NotFoundError, match=f"Key {key} not found"):
                program(kind, path)
        program(kind, paths["plain"], but=own)
        new = str(tmp_path / f"for-{kind}")
        assert main(["checkpoint", "convert", paths[other], new, "--to", kind]) == 0
        program(kind, new)


def saver_program(kind, path, restore):
    """Makes a step with Adam, after a restore or not, and saves `path-later`."""
    with tf.Graph().as_default(), tf1.Session() as session:
        weight = tf1.get_variable("w", initializer=1.0, use_resource=True)
        optimizer = scaled(kind, tf1.train.AdamOptimizer(0.1))
        step = optimizer.minimize(weight * 3.0)
        session.run(tf1.global_variables_initializer())
        if restore:
            tf1.train.Saver().restore(session, path)
        session.run(step)
        tf1.train.Saver().save(session, path + "-later")


def test_keys_that_a_saver_does_not_find(tmp_path, read_here):
    """`docs/tf1.md`, restoring old files: the message, and the command that cures it."""
    page = (ROOT / "docs" / "tf1.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^tf-lossscale (checkpoint convert OLD NEW .*)$", page, re.MULTILINE)
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    is_v2 = tf1.control_flow_v2_enabled()
    try:
        tf1.disable_control_flow_v2()
        saver_program("contrib", old, restore=False)
        old += "-later"
        with pytest.raises(tf.errors.NotFoundError, match="Key cond_1/beta1_power not found"):
            saver_program("v1", old, restore=True)
        assert main(["checkpoint", "convert", old, new + "-v1", "--to", "v1"]) == 0
        saver_program("v1", new + "-v1", restore=True)
        tf1.enable_control_flow_v2()
        with pytest.raises(tf.errors.NotFoundError, match="Key beta1_power not found"):
            saver_program("contrib", old, restore=True)
        assert main(command.replace("OLD", old).replace("NEW", new).split()) == 0
        saver_program("contrib", new, restore=True)
        tf1.disable_control_flow_v2()
        with pytest.raises(tf.errors.NotFoundError, match="Key cond/beta1_power not found"):
            saver_program("contrib", new, restore=True)
        back = command.replace("OLD", new).replace("NEW", old + "-v1").replace("flow v2", "flow v1")
        assert main(back.split()) == 0
        saver_program("contrib", old + "-v1", restore=True)
    finally:
        (tf1.enable_control_flow_v2 if is_v2 else tf1.disable_control_flow_v2)()


def small_model(keras):
    """A compiled model after one step."""
    model = keras.Sequential([keras.layers.Input([3]), keras.layers.Dense(1)])
    model.compile(tfls.keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam(0.1)), "mse")
    model.fit(tf.ones([2, 3]), tf.zeros([2, 1]), verbose=0)
    return model


def test_weights_of_keras_2_under_the_name_of_keras_3_have_no_optimizer(tmp_path):
    """`docs/guide-keras.md`, step 5; up to TensorFlow 2.11, the file itself has none."""
    old = small_model(pytest.importorskip("tf_keras"))
    assert int(old.optimizer.iterations) == 1
    path = str(tmp_path / "model.weights.h5")
    old.save_weights(path)
    new = small_model(tf.keras)
    with pytest.raises(tfls.checkpoints.RestoreError):
        tfls.checkpoints.restore(path, new)
    new.optimizer.iterations.assign(0)
    new.load_weights(path)
    assert int(new.optimizer.iterations) == 0
    old.save_weights(str(tmp_path / "weights"))  # the format of TensorFlow
    tfls.checkpoints.restore(str(tmp_path / "weights"), new)
    assert int(new.optimizer.iterations) == 1


def test_a_file_of_weights_does_not_restore_an_optimizer(tmp_path):
    """`docs/checkpoints.md`."""
    path = str(tmp_path / "old.h5")
    small_model(pytest.importorskip("tf_keras")).save_weights(path)
    new = small_model(tf.keras)
    new.optimizer.iterations.assign(7)
    with pytest.raises(tfls.checkpoints.RestoreError, match="partial=True"):
        tfls.checkpoints.restore(path, new)
    tfls.checkpoints.restore(path, new, partial=True)
    assert int(new.optimizer.iterations) == 7


def test_what_float16_rounds_to_0():
    """`docs/is-it-scaled.md`, and the largest number of `docs/troubleshooting.md`."""
    assert np.float16(2.9e-8) == 0 < np.float16(3.0e-8)
    assert np.finfo(np.float16).max == 65_504


def test_gradients_that_are_not_finite_without_a_scale():
    """`docs/scale-at-1.md`: a `sqrt` or `log` at 0, a division by 0, and a large number."""

    def large(x):
        return tf.cast(tf.cast(x + 1.0, tf.float16) * 40_000.0 * 2.0, tf.float32)

    for function in (tf.sqrt, tf.math.log, lambda x: 1.0 / x, large):
        x = tf.Variable(0.0)
        with tf.GradientTape() as tape:
            loss = function(x)
        assert not np.isfinite(float(tape.gradient(loss, x)))


def test_a_sum_over_a_batch_that_needs_a_scale_below_1():
    """`docs/scale-at-1.md`: each gradient is 1, their sum in float16 is not finite."""

    def trained(**options):
        weight = tf.Variable(0.0)
        optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(
            tf.keras.optimizers.SGD(1.0), initial_scale=1.0, **options
        )
        for _ in range(4):
            with tf.GradientTape() as tape:
                outputs = tf.cast(weight, tf.float16) * tf.ones([100_000], tf.float16)
                loss = optimizer.get_scaled_loss(tf.reduce_sum(tf.cast(outputs, tf.float32)))
            gradients = optimizer.get_unscaled_gradients(tape.gradient(loss, [weight]))
            optimizer.apply_gradients(zip(gradients, [weight]))
        return float(weight), float(optimizer.loss_scale)

    assert trained() == (0.0, 1.0)
    weight, scale = trained(minimum_scale=2.0**-8)
    assert weight < -90_000
    assert scale == 0.5


def test_only_mixed_float16_makes_compile_wrap():
    """`docs/is-it-scaled.md`."""
    mixed_precision = tf.keras.mixed_precision
    wrapped = {}
    for policy in ("mixed_float16", "mixed_bfloat16", "float32"):
        mixed_precision.set_global_policy(policy)
        model = tf.keras.Sequential([tf.keras.layers.Input([3]), tf.keras.layers.Dense(1)])
        model.compile(tf.keras.optimizers.SGD(0.1), "mse")
        wrapped[policy] = isinstance(model.optimizer, mixed_precision.LossScaleOptimizer)
    mixed_precision.set_global_policy("float32")
    assert wrapped == {"mixed_float16": True, "mixed_bfloat16": False, "float32": False}


def test_what_is_left_after_the_guide_of_tensorflow_1():
    """`docs/guide-tf1.md`, "What else may be left"."""
    with tf.Graph().as_default() as graph:
        with pytest.raises(Exception, match="`dense` is not available with Keras 3"):
            tf1.layers.dense(tf.zeros([1, 3]), 2)
        with pytest.raises(Exception, match="`GRUCell` is not available with Keras 3"):
            tf1.nn.rnn_cell.GRUCell(2)
        tfls.contrib.mixed_precision.ExponentialUpdateLossScaleManager(8.0, 10)
        assert graph.get_tensor_by_name("loss_scale:0").dtype == tf.resource
    assert not any(hasattr(tf, name) for name in ("contrib", "estimator", "flags", "app"))
    assert tf1.flags.DEFINE_integer
    assert tf1.train.StopAtStepHook


LEGACY = """
import tensorflow as tf

assert tf.keras.layers.Layer.__module__.startswith("tf_keras.")
with tf.Graph().as_default():
    assert tf.compat.v1.layers.dense(tf.zeros([1, 3]), 2).shape == [1, 2]
    tf.compat.v1.nn.rnn_cell.GRUCell(2)
"""


@pytest.mark.slow
def test_keras_2_brings_back_the_layers_of_tensorflow_1():
    pytest.importorskip("tf_keras")
    variables = {**os.environ, "TF_USE_LEGACY_KERAS": "1"}
    subprocess.run([sys.executable, "-c", LEGACY], env=variables, check=True)


def test_a_loop_of_the_shim_by_hand():
    """`docs/guide-keras.md`, "Optional: remove the shim": the loop clips after it has unscaled."""
    ours, theirs = tf.Variable([1.0, 2.0]), tf.Variable([1.0, 2.0])
    shim = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.5))
    with tf.GradientTape() as tape:
        loss = shim.get_scaled_loss(tf.reduce_sum(ours**2))
    (gradient,) = shim.get_unscaled_gradients(tape.gradient(loss, [ours]))
    clipped, _ = tf.clip_by_global_norm([gradient], 1.0)
    shim.apply_gradients(zip(clipped, [ours]))

    inner = tf.keras.optimizers.SGD(0.5, global_clipnorm=1.0)
    keras3 = tf.keras.mixed_precision.LossScaleOptimizer(inner)
    keras3.build([theirs])
    with tf.GradientTape() as tape:
        loss = keras3.scale_loss(tf.reduce_sum(theirs**2))
    keras3.apply_gradients(zip(tape.gradient(loss, [theirs]), [theirs]))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)
    assert float(keras3.dynamic_scale) == float(shim.loss_scale)


def test_gradients_at_0_that_a_small_number_makes_finite():
    """`docs/monitoring.md`, the gradient of one variable."""
    for function in (tf.sqrt, tf.norm, lambda x: x**0.5):
        found = []
        for added in (0.0, 1e-6):
            x = tf.zeros([2])
            with tf.GradientTape() as tape:
                tape.watch(x)
                result = tf.reduce_sum(function(x + added))
            found.append(np.isfinite(tape.gradient(result, x).numpy()).any())
        assert found == [False, True]


def test_compile_wraps_by_itself():
    """`docs/monitoring.md`; in a loop under mixed_float16, nothing does."""
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    model = tf.keras.Sequential([tf.keras.layers.Input([3]), tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.SGD(0.1)
    model.compile(optimizer, "mse")
    tf.keras.mixed_precision.set_global_policy("float32")
    assert model.optimizer.inner_optimizer is optimizer


def test_equal_seeds_give_other_numbers_on_another_version():
    """`docs/prove.md`; TensorFlow 2.8 gives these numbers."""
    tf.random.set_seed(1)
    assert not np.allclose(tf.random.normal([2]), [0.40308788, -1.0880208])


def test_gradients_that_are_never_unscaled_make_the_loss_nan():
    """`docs/troubleshooting.md`, the order in a loop."""
    weight = tf.Variable(1.0)
    optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(
        tf.keras.optimizers.SGD(0.1), dynamic=False, initial_scale=2.0**15
    )
    for _ in range(20):
        with tf.GradientTape() as tape:
            loss = weight**2.0
            scaled = optimizer.get_scaled_loss(loss)
        optimizer.apply_gradients([(tape.gradient(scaled, weight), weight)])
    assert np.isnan(float(weight))


def test_a_test_of_the_type_is_false_where_isinstance_is_true():
    """`docs/troubleshooting.md`: TensorFlow 2.11 has classes of its own for new optimizers."""
    keras = pytest.importorskip("tf_keras")
    cls = keras.mixed_precision.LossScaleOptimizer
    optimizer = cls(keras.optimizers.SGD(0.1))
    assert type(optimizer) is not cls
    assert isinstance(optimizer, cls)


def test_keras_3_takes_dynamic_as_the_initial_scale():
    """`docs/troubleshooting.md`: no error is raised."""
    inner = tf.keras.optimizers.SGD(0.1)
    optimizer = tf.keras.mixed_precision.LossScaleOptimizer(inner, "dynamic")
    assert optimizer.initial_scale == "dynamic"


def test_a_float16_loss_overflows_before_it_is_scaled():
    """`docs/troubleshooting.md`; the last layer in float32 keeps it."""
    found = []
    for dtype in ("mixed_float16", "float32"):
        last = tf.keras.layers.Activation("linear", dtype=dtype)
        found.append(float(tf.reduce_sum(last(tf.fill([2, 400], 100.0)))))
    assert found == [float("inf"), 80_000.0]
