"""The host's side of a monitor: readings, warnings, the callback, the hook, event files, errors."""

import collections
import copy
import glob
import os
import threading
import warnings

import numpy as np
import pytest
import recorded
import replicated
import support
import tensorflow as tf
import watched
from processes import run_program

import tf_lossscale as tfls

tf1 = tf.compat.v1
INF = float("inf")
KIND = watched.KIND


def scalars(folder):
    """(tag, step) to value, of the only event file; tags without the optimizer's name."""
    (path,) = glob.glob(os.path.join(str(folder), "events*"))
    found = {}
    last = None
    for event in tf1.train.summary_iterator(path):
        for value in event.summary.value:
            name, tag = value.tag.split("/")
            assert name in ("Adam", "Momentum", "inner")
            found[tag, event.step] = value.simple_value
        written = (event.step, [(value.tag, value.simple_value) for value in event.summary.value])
        assert written != last, "the same values twice for one step"
        last = written
    return found


@pytest.fixture(autouse=True)
def _eager():
    with support.eager():
        yield


class Steps:
    """Eager steps of one weight, which are skipped on demand."""

    def __init__(self, scale=8.0, **arguments):
        self.weight = tf.Variable(1.0, name="weight")
        self.optimizer, _ = support.v1_optimizer(support.sgd(), scale, 1)
        self.monitor = tfls.monitoring.Monitor(self.optimizer, **arguments)

    def run(self, skips):
        for skip in skips:
            gradient = tf.constant(INF if skip else 0.0)
            self.optimizer.apply_gradients([(gradient, self.weight)])

    def warnings(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.monitor.counts()
        return [str(warning.message) for warning in caught if warning.category is RuntimeWarning]


SERIES = (2.0**30, {"warn_after_skips": 3})


@pytest.mark.parametrize(
    ("scale", "arguments", "readings"),
    [
        pytest.param(
            *(2.0**99, {}),
            [([0], []), ([0], ["has grown to 2^101 without a skipped step"]), ([0], [])],
            id="a scale that grows without a skipped step, once",
        ),
        pytest.param(2.0**103, {}, [([1], [])], id="not a large scale that skips steps"),
        pytest.param(
            *SERIES,
            [
                ([1, 1], []),
                ([1], ["last 3 steps were skipped (3 of 3", "weight"]),
                ([1], []),
                ([0], []),
                ([1, 1, 1], ["last 3 steps"]),
            ],
            id="each series of skipped steps, once",
        ),
        pytest.param(
            *(2.0**30, {}),
            [([1] * 9, []), ([1], ["last 10 steps were skipped (10 of 10"])],
            id="ten skipped steps, by default",
        ),
        pytest.param(
            *SERIES,
            [([0, 1, 1, 1, 1, 0], ["4 steps in a row", "weight"]), ([], [])],
            id="a series between two readings",
        ),
        pytest.param(
            *(2.0, {}),
            [
                ([1], ["at its minimum, 1, after 1 of 1", "weight"]),
                ([], []),
                ([0], []),
                ([1], ["at its minimum"]),
            ],
            id="a scale at its minimum, each time it gets there",
        ),
        pytest.param(
            *(2.0, {"warn_after_skips": None, "warn_at_minimum": False}),
            [([1] * 20, [])],
            id="nothing, where warnings are turned off",
        ),
    ],
)
def test_what_is_warned_of(scale, arguments, readings):
    steps = Steps(scale, **arguments)
    for skips, words in readings:
        steps.run(skips)
        messages = steps.warnings()
        assert len(messages) == bool(words)
        assert all(word in messages[0] for word in words), messages


def test_gradients_none_of_which_are_finite_are_not_blamed_on_one_variable():
    steps = Steps(2.0**30, warn_after_skips=2)
    others = [tf.Variable([1.0, 2.0]), tf.Variable(3.0)]

    def step(*factors):
        variables = [steps.weight, *others]
        gradients = [variable * factor for variable, factor in zip(variables, factors)]
        steps.optimizer.apply_gradients(list(zip(gradients, variables)))

    step(1.0, INF, INF)
    step(INF, INF, 1.0)
    (message,) = steps.warnings()
    assert "First variable with a non-finite gradient" in message
    assert "step: weight." in message
    step(1.0, 1.0, 1.0)
    assert steps.warnings() == []
    step(INF, INF, INF)
    step(INF, INF, INF)
    (message,) = steps.warnings()
    assert "No gradient was finite in a skipped step, so look at the forward" in message
    assert steps.monitor.first_bad == "weight"
    assert steps.monitor.advice.startswith("no gradient was finite in a skipped step, so")
    step(1.0, INF, 1.0)
    assert steps.monitor.advice.startswith("only the gradient of Variable was not finite, so look")
    step(INF, INF, 1.0)
    words = (
        "2 of 3 gradients were not finite, from weight to Variable, so look at the backward pass"
    )
    assert steps.monitor.advice.startswith(words)


def test_what_the_advice_says_of_the_scale():
    steps = Steps(2.0, warn_at_minimum=False)
    steps.run([0])
    assert steps.monitor.advice.startswith("no loss was scaled through the optimizer")
    steps.optimizer.compute_gradients(lambda: steps.weight * 1.0, [steps.weight])
    assert steps.monitor.advice == ""
    steps.run([1, 1, 1])
    expected = "the loss scale is stuck at its minimum, 1: look at the backward pass of weight"
    assert steps.monitor.advice.startswith(expected)
    large = Steps(2.0**101)
    large.run([0])
    with pytest.warns(RuntimeWarning, match="either the loss is not"):
        advice = large.monitor.advice
    assert advice.startswith("the loss scale has grown to 2^102 without a skipped step")


def test_the_advice_after_more_skipped_steps_than_a_dynamic_scale_explains():
    steps = Steps(2.0**30)
    steps.optimizer.compute_gradients(lambda: steps.weight * 1.0, [steps.weight])
    update = steps.optimizer._loss_scale
    update._increment_period = 2000
    steps.monitor = tfls.monitoring.Monitor(steps.optimizer)
    steps.run([1, 1, 1, 1, 0, 1, 0, 1, 0, 1, 0])  # it came down from its initial value
    assert steps.monitor.advice == ""
    steps.run([1, 0])
    expected = "8 of 13 steps were skipped: look at the backward pass of weight"
    assert steps.monitor.advice.startswith(expected)
    update._increment_period = 10
    assert tfls.monitoring.Monitor(steps.optimizer).advice == ""  # it may have grown


def test_a_minimum_that_the_program_has_lowered():
    inner = KIND.optimizers.SGD(0.1)
    cls = tfls.keras.mixed_precision.LossScaleOptimizer
    optimizer = cls(inner, initial_scale=1.0, minimum_scale=0.25)
    weight = recorded.make_variable(KIND, np.ones([1], "float32"), "weight")
    monitor = tfls.monitoring.Monitor(optimizer)
    if hasattr(optimizer, "build"):
        optimizer.build([weight])
    optimizer.apply_gradients([(tf.constant([INF]), weight)])
    assert monitor.advice.startswith("look at the backward pass of ")  # the scale is 0.5
    optimizer.apply_gradients([(tf.constant([INF]), weight)])
    with pytest.warns(RuntimeWarning, match="is at its minimum, 0.25, after 2 of 2 steps"):
        advice = monitor.advice
    assert advice.startswith("the loss scale is stuck at its minimum, 0.25: look at the backward")


FAMILIES = [(family, "graph") for family in watched.TF1_FAMILIES]
for family_of_any in [*watched.TF1_FAMILIES, *watched.KERAS_KINDS]:
    FAMILIES += [(family_of_any, mode) for mode in ("eager", "function")]


@pytest.mark.sampled(2, each="family")
@pytest.mark.parametrize(("family", "mode"), FAMILIES)
def test_each_family_notes_that_a_loss_is_scaled(family, mode):
    with support.graph() if mode == "graph" else support.eager() as session:
        if family in watched.TF1_FAMILIES:
            weight = tf1.get_variable("w", initializer=[1.0], use_resource=True)
            optimizer = watched.TF1_FAMILIES[family]()
        else:
            kind = watched.KERAS_KINDS[family]
            weight = recorded.make_variable(kind, np.ones([1], "float32"), "weight")
            optimizer = watched.keras(kind)
        monitor = tfls.monitoring.Monitor(optimizer)
        if hasattr(optimizer, "build"):
            optimizer.build([weight])

        def loss():
            return tf.reduce_sum(tf.convert_to_tensor(weight) * 1.0)

        if mode == "graph":
            operation = optimizer.minimize(loss(), var_list=[weight])
            session.run(tf1.global_variables_initializer())
            session.run(operation)
        else:

            def minimize():
                optimizer.minimize(loss, var_list=[weight])

            (tf.function(minimize) if mode == "function" else minimize)()
        assert monitor.counts(session) == (1, 0, 0)
        if mode != "graph":
            assert monitor.advice == ""


def test_a_scale_that_begins_at_its_minimum_is_fine():
    optimizer, _ = support.contrib_optimizer(support.sgd(), 1.0, 9)
    monitor = tfls.monitoring.Monitor(optimizer)
    optimizer.apply_gradients([(tf.constant(1.0), tf.Variable(1.0))])
    assert monitor.loss_scale == 1.0  # a warning would be an error


def test_after_step_reads_now_and_then():
    steps = Steps(2.0**30, every=3)
    read = []
    for skip in (0, 1, 1, 0, 0, 0):
        steps.run([skip])
        read.append(steps.monitor.after_step())
    assert [status and tuple(status) for status in read] == [
        None,
        None,
        (3, 2, 2),
        None,
        None,
        (6, 2, 0),
    ]
    assert not steps.monitor.last_step_skipped
    assert steps.monitor.first_bad == "weight"


def test_a_function_that_is_traced_again_with_other_variables():
    steps = Steps(2.0**10)
    other = tf.Variable([1.0, 2.0], name="other")

    @tf.function
    def step(both, gradient):
        pairs = [(gradient, steps.weight)]
        if both:
            pairs = [(gradient[0] * [1.0, 1.0], other), (tf.constant(1.0), steps.weight)]
        steps.optimizer.apply_gradients(pairs)

    step(False, tf.constant(INF))
    assert steps.monitor.first_bad == "weight"
    step(True, tf.constant([INF]))
    assert steps.monitor.first_bad == "other"
    step(False, tf.constant(INF))
    assert steps.monitor.first_bad == "weight"
    assert steps.monitor.counts() == (3, 3, 3)


def test_readings_within_a_graph_and_a_function():
    steps = Steps()
    steps.run([1])
    with tf.Graph().as_default():
        assert steps.monitor.counts() == (1, 1, 1)
        assert (steps.monitor.loss_scale, steps.monitor.first_bad) == (4.0, "weight")
    with pytest.raises(RuntimeError, match="Read them after the call"):
        tf.function(lambda: steps.monitor.loss_scale, autograph=False)()


def test_threads_that_train_one_optimizer_lose_no_step():
    steps = Steps(2.0**30, warn_after_skips=None)

    @tf.function
    def step(factor):
        steps.optimizer.apply_gradients([(factor, steps.weight)])

    step(tf.constant(0.0))

    def train():
        with support.eager():
            for number in range(40):
                step(tf.constant(INF if number % 2 else 0.0))

    threads = [threading.Thread(target=train) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert steps.monitor.counts().steps == 81
    assert 0 < steps.monitor.counts().skipped <= 40


def test_gradients_that_are_none_and_sparse():
    variables = [recorded.make_variable(KIND, np.ones([3, 1], "float32"), name) for name in "abc"]
    optimizer = watched.keras(KIND)
    monitor = tfls.monitoring.Monitor(optimizer)
    if hasattr(optimizer, "build"):
        optimizer.build(variables)
    for dense, expected in ((1.0, "c"), (INF, "b")):
        rows = tf.IndexedSlices(tf.constant([[INF]]), tf.constant([1]), tf.constant([3, 1]))
        gradients = [None, tf.fill([3, 1], dense), rows]
        optimizer.get_unscaled_gradients([])
        optimizer.apply_gradients(list(zip(gradients, variables)))
        assert monitor.first_bad == expected
    assert monitor.counts() == (2, 2, 2)


def test_a_monitor_is_no_part_of_the_optimizer(tmp_path):
    """A monitor changes no config or copy; a restored optimizer counts from zero."""
    for name in ("saved", "restored"):
        variable = recorded.make_variable(KIND, np.ones([2], "float32"), "weight")
        optimizer = watched.keras(KIND)
        config = optimizer.get_config()
        monitor = tfls.monitoring.Monitor(optimizer)
        if hasattr(optimizer, "build"):
            optimizer.build([variable])
        checkpoint = tf.train.Checkpoint(optimizer=optimizer, variable=variable)
        if name == "restored":
            checkpoint.restore(tf.train.latest_checkpoint(str(tmp_path)))
        for factor in (1.0, INF):
            optimizer.get_unscaled_gradients([])
            optimizer.apply_gradients([(tf.fill([2], factor), variable)])
        checkpoint.save(str(tmp_path / name))
        assert optimizer.get_config() == config
        assert monitor.counts() == (2, 1, 1)
        assert monitor.last_step_skipped
        assert monitor.loss_scale == float(optimizer.loss_scale)
        assert tfls.monitoring.Monitor(copy.copy(optimizer)) is not None
    assert monitor.loss_scale == 4.0  # 16, halved in each run


def test_the_warnings_of_two_monitors_are_their_own():
    steps = Steps(2.0**30, warn_after_skips=2)
    other = tfls.monitoring.Monitor(steps.optimizer, warn_after_skips=3)
    steps.run([1, 1])
    assert len(steps.warnings()) == 1
    other.counts()  # a warning would be an error
    steps.run([1])
    with pytest.warns(RuntimeWarning, match="last 3 steps"):
        other.counts()


def monitored_session(make, folder, every):
    """Trains, and returns what the program itself saw: its skips and its scales."""
    with tf.Graph().as_default():
        weight = tf1.get_variable("w", initializer=[1.0, 1.0], use_resource=True)
        fed = tf1.placeholder(tf.float32, [2])
        optimizer = make()
        monitor = tfls.monitoring.Monitor(optimizer, every=every)
        global_step = tf1.train.get_or_create_global_step()
        step = optimizer.apply_gradients([(fed, weight)], global_step)
        scale = tf.identity(optimizer._current_loss_scale())
        hook, scales, skips, before = monitor.session_hook(folder), [], [], 0
        with tf1.train.MonitoredSession(hooks=[hook]) as session:
            for factor in (1.0, INF, INF, 1.0, 1.0):
                session.run(step, {fed: [1.0, factor]})
                after = session.run(global_step)
                skips.append(after == before)
                before = after
                scales.append(session.run(scale))
    return monitor, skips, scales


@pytest.mark.parametrize("family", watched.TF1_FAMILIES)
def test_the_session_hook(family, tmp_path):
    make = watched.TF1_FAMILIES[family]
    monitor, skips, scales = monitored_session(make, str(tmp_path), 3)  # of three runs for a step
    assert skips == [False, True, True, False, False]
    assert monitor.counts() == (5, 2, 0)  # as of the end: there is no Session any more
    assert monitor.first_bad == "w"
    written = scalars(tmp_path)
    # By global step, which a skipped step does not increment; the last value of each.
    at = {1: 2, 2: 3, 3: 4}
    assert {step for _, step in written} == set(at)
    for step, index in at.items():
        assert written["loss_scale", step] == scales[index], (step, written, scales)
        assert written["skipped_steps", step] == sum(skips[: index + 1])


def test_the_keras_callback(tmp_path):
    monitors, seen = [], []

    class Scales(KIND.keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            seen.append((float(self.model.optimizer.loss_scale), dict(logs)))

    def callbacks(optimizer):
        monitors.append(tfls.monitoring.Monitor(optimizer, every=2))
        return [monitors[0].keras_callback(str(tmp_path)), Scales()]

    history, weights, _ = watched.fit(callbacks)
    bare_history, bare, _ = watched.fit(lambda optimizer: [])
    assert [weight.tobytes() for weight in weights] == [weight.tobytes() for weight in bare]
    assert set(history) - set(bare_history) == {"loss_scale", "skipped_steps"}
    assert history["skipped_steps"] == [1, 2]
    assert history["loss_scale"] == [scale for scale, _ in seen]
    assert [logs["skipped_steps"] for _, logs in seen] == [1, 2]
    assert monitors[0].counts() == (8, 2, 0)
    assert "kernel" in monitors[0].first_bad
    written = scalars(tmp_path)
    assert {key: value for key, value in written.items() if key[0] == "skipped_steps"} == {
        ("skipped_steps", 2): 1.0,
        ("skipped_steps", 4): 1.0,
        ("skipped_steps", 6): 2.0,
        ("skipped_steps", 8): 2.0,
    }
    assert written["loss_scale", 8] == seen[-1][0]


def test_a_fit_that_is_not_counted_is_noticed():
    def callbacks(optimizer):
        return [tfls.monitoring.Monitor(watched.keras(KIND)).keras_callback()]

    with pytest.warns(RuntimeWarning, match="counted no step"):
        watched.fit(callbacks, epochs=1)


class Mixed:
    """A model that computes in float16, its own `train_step`, and what `fit` warns of."""

    def __init__(self, kind, scaled):
        keras = kind.keras

        class Model(keras.Model):
            def __init__(self):
                super().__init__()
                policy = getattr(keras.mixed_precision, "Policy", None)
                policy = policy or keras.mixed_precision.experimental.Policy
                self.last = keras.layers.Dense(1, dtype=policy("mixed_float16"))

            def call(self, values):
                return self.last(values)

            def train_step(self, data):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.cast(self(tf.cast(data[0], tf.float32)), tf.float32))
                    scaled_loss = self.optimizer.get_scaled_loss(loss) if scaled else loss
                variables = self.trainable_variables
                gradients = tape.gradient(scaled_loss, variables)
                if scaled:
                    gradients = self.optimizer.get_unscaled_gradients(gradients)
                self.optimizer.apply_gradients(list(zip(gradients, variables)))
                return {"loss": loss}

        self.model = Model()

    def fit(self, optimizer, monitored):
        self.model.compile(optimizer, "mse")
        callback = tfls.monitoring.Monitor(monitored).keras_callback()
        x, y = np.ones((2, 3), "float32"), np.ones((2, 1), "float32")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.model.fit(x, y, verbose=0, callbacks=[callback])
        warned = [warning for warning in caught if warning.category is RuntimeWarning]
        messages = [str(warning.message) for warning in warned]
        return [message for message in messages if "loss" in message]


@pytest.mark.sampled(3)
@pytest.mark.skipif(recorded.TF < (2, 2), reason="train_step is of TensorFlow 2.2 and later")
@pytest.mark.parametrize("kind", watched.KERAS_KINDS.values(), ids=lambda kind: kind.name)
def test_float16_without_a_scaled_loss(kind):
    (message,) = Mixed(kind, scaled=False).fit(kind.optimizers.SGD(0.1), watched.keras(kind))
    assert message.startswith("mixed_float16 is on and nothing scales the loss, so small")
    optimizer = watched.keras(kind)
    (message,) = Mixed(kind, scaled=False).fit(optimizer, optimizer)
    assert message.startswith("The model computes in float16, but no loss was scaled through the")
    optimizer = watched.keras(kind)
    assert Mixed(kind, scaled=True).fit(optimizer, optimizer) == []


def test_an_optimizer_that_does_not_scale_under_mixed_float16():
    # TensorFlow 1.15 has no such policy for all layers by default.
    words = "takes a loss-scale opt" if support.IS_TF1 else "mixed_float16 is on and nothing scales"
    with watched.mixed_float16(KIND.keras), pytest.raises(TypeError, match=words):
        tfls.monitoring.Monitor(KIND.optimizers.SGD())


def test_graph_mode_keras():
    """In a process of its own, because Keras keeps its graph and its Session."""
    if KIND.name == "keras3":
        pytest.skip("Keras 3 has no graph mode")
    assert run_program("monitoring/programs/graph_keras.py") == [8, 2, 0, [1, 2]]


@pytest.mark.parametrize("mode", ["eager", "function", "graph"])
def test_find_nonfinite(mode):
    def find(variables):
        gradients = [
            tf.constant([1.0, INF]),
            None,
            tf.constant([1.0, 1.0]),
            tf.IndexedSlices(tf.constant([[float("nan")]]), tf.constant([0]), tf.constant([2, 1])),
        ]
        return tfls.monitoring.find_nonfinite(zip(gradients, variables))

    def make():
        return [tf1.Variable([1.0, 1.0], name=name, use_resource=True) for name in "abcd"]

    if mode == "graph":
        with support.graph() as session:
            assert list(session.run(find(make()))) == [b"a", b"d"]
            assert session.run(tfls.monitoring.find_nonfinite([])).shape == (0,)
        return
    variables = make()
    if mode == "eager":
        assert find(variables) == ["a", "d"]
        assert tfls.monitoring.find_nonfinite([]) == []
    else:
        assert list(tf.function(lambda: find(variables))().numpy()) == [b"a", b"d"]


@pytest.mark.skipif(
    KIND.name != "keras3", reason="only variables of Keras 3 have a path besides the name"
)
def test_a_variable_of_keras_3_has_its_path():
    layer = tf.keras.layers.Dense(1, name="head")
    layer.build([None, 2])
    pairs = [(tf.constant([[INF], [1.0]]), layer.kernel)]
    assert tfls.monitoring.find_nonfinite(pairs) == ["head/kernel"]


V1 = "MixedPrecisionLossScaleOptimizer"
REFUSED = {
    "original": (TypeError, r"own class.*--replace"),
    "other": (TypeError, "takes a loss-scale optimizer"),
    "fixed": (ValueError, "find_nonfinite"),  # it skips no step
}


def refused(what):
    namespaces, inner = support.v1_namespaces(), support.sgd()
    if what == "original":
        yield getattr(namespaces["original"], V1)(inner, "dynamic")
        for subject in recorded.originals():
            yield subject.dynamic(subject.inner("SGD", learning_rate=0.1))
    elif what == "other":
        yield from (inner, KIND.optimizers.SGD(), None)
    else:
        yield getattr(namespaces["ours"], V1)(inner, 8)
        cls = tfls.keras.mixed_precision.LossScaleOptimizer
        yield cls(KIND.optimizers.SGD(), dynamic=False, initial_scale=8)


@pytest.mark.parametrize("what", REFUSED)
def test_optimizers_that_are_refused(what):
    error, words = REFUSED[what]
    found = list(refused(what))
    assert len(found) >= 2
    for optimizer in found:
        with pytest.raises(error, match=words):
            tfls.monitoring.Monitor(optimizer)


def test_the_fixed_scale_of_contrib_skips_steps():
    namespace = tfls.contrib.mixed_precision
    weight = tf.Variable(1.0, name="weight")
    optimizer = namespace.LossScaleOptimizer(support.sgd(), namespace.FixedLossScaleManager(1))
    monitor = tfls.monitoring.Monitor(optimizer)
    optimizer.apply_gradients([(tf.constant(INF), weight)])
    assert monitor.counts() == (1, 1, 1)  # and there is no warning: 1 is not a minimum
    assert monitor.loss_scale == 1.0


def test_numbers_are_checked():
    for arguments in ({"every": 0}, {"warn_after_skips": 0}):
        with pytest.raises(ValueError, match="must be at least 1"):
            Steps(**arguments)
    with pytest.raises(TypeError, match="integer"):
        Steps(every=1.5)


def test_readings_that_are_not_possible():
    with support.graph() as session:
        weight = tf1.get_variable("w", initializer=1.0)
        optimizer = watched.v1()
        monitor = tfls.monitoring.Monitor(optimizer)
        with pytest.raises(RuntimeError, match="no step was built"):
            monitor.counts()
        with pytest.raises(TypeError, match="session_hook"):
            monitor.keras_callback()
        step = optimizer.apply_gradients([(tf.constant(1.0), weight)])
        session.run(tf1.global_variables_initializer())
        assert monitor.counts() == (0, 0, 0)
        session.run(step)
        assert monitor.counts() == (1, 0, 0)
    fresh = tfls.monitoring.Monitor(optimizer)
    with tf.Graph().as_default(), pytest.raises(RuntimeError, match=r"counts\(session\)"):
        fresh.counts()


def test_steps_that_were_built_before_are_not_counted():
    weight = tf.Variable(1.0, name="weight")
    optimizer, _ = support.v1_optimizer(support.sgd(), 8.0, 9)

    @tf.function
    def step():
        optimizer.apply_gradients([(tf.constant(INF), weight)])

    step()
    monitor = tfls.monitoring.Monitor(optimizer)
    step()
    with pytest.raises(RuntimeError, match="no step was built since it was created"):
        monitor.counts()
    optimizer.apply_gradients([(tf.constant(1.0), weight)])
    step()
    assert monitor.counts() == (1, 0, 0)


def test_a_fit_before_the_monitor_has_built_the_step():
    optimizer = watched.keras(KIND)
    model = watched.model(KIND, optimizer)
    data = np.ones((1, 2), "float32"), np.zeros((1, 1), "float32")
    model.fit(*data, verbose=0)
    monitor = tfls.monitoring.Monitor(optimizer)
    with pytest.warns(RuntimeWarning, match="Create it before the first fit"):
        model.fit(*data, verbose=0, callbacks=[monitor.keras_callback()])


@pytest.mark.parametrize("family", watched.TF1_FAMILIES)
def test_a_finite_step_only_increments_a_counter(family):
    """What else is in the function is in the branch of skipped steps."""
    found = []
    for is_monitored in (False, True):
        weight = tf.Variable(1.0, name="weight")
        optimizer = watched.TF1_FAMILIES[family]()
        if is_monitored:
            tfls.monitoring.Monitor(optimizer)

        @tf.function
        def step(gradient, optimizer=optimizer, weight=weight):
            optimizer.apply_gradients([(gradient, weight)])

        graph = step.get_concrete_function(tf.TensorSpec([])).graph
        found.append(collections.Counter(operation.type for operation in graph.get_operations()))
    plain, monitored = found
    assert monitored - plain == {"AssignAddVariableOp": 1, "Const": 1, "Placeholder": 1}
    assert plain - monitored == {}


def test_steps_that_xla_compiles_in_a_session_are_refused():
    with support.graph(True):
        weight = tf1.get_variable("w", initializer=1.0, use_resource=True)
        optimizer = watched.v1()
        tfls.monitoring.Monitor(optimizer)
        with pytest.raises(NotImplementedError, match="XLA"):
            tf.xla.experimental.compile(
                lambda: optimizer.apply_gradients([(tf.constant(1.0), weight)])
            )


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="log_dir"):
        Steps().monitor.session_hook(str(tmp_path / "file" / "below"))


def test_a_custom_loss_scale_that_skips():
    class Halving(tfls.compat.v1.mixed_precision.LossScale):
        def __call__(self):
            return tf.constant(2.0)

        def update(self, grads):
            return None, tf.math.reduce_all(tf.math.is_finite(grads[0]))

        def get_config(self):
            return {}

    weight = tf.Variable(1.0, name="weight")
    cls = tfls.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer
    optimizer = cls(support.sgd(), Halving())
    monitor = tfls.monitoring.Monitor(optimizer)
    for gradient in (INF, 1.0):
        optimizer.apply_gradients([(tf.constant(gradient), weight)])
    assert (*monitor.counts(), monitor.first_bad) == (2, 1, 0, "weight")
    assert monitor.loss_scale == 2.0


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["graph", *([] if support.IS_TF1 else ["eager"])])
def test_mirrored_replicas(mode):
    """Any replica's gradient, and a sum that overflows, can be the bad one."""
    if mode == "graph":
        cases = ["v1-ours:graph", "contrib-ours:graph"]
    else:
        # What is eager is decided in the monitor; the optimizers differ in where it is called.
        keras = [f"ours-final-{name}" for name in watched.KERAS_KINDS]
        cases = ["v1-ours:eager", f"ours-final-{KIND.name}:eager"]
        cases += [f"{case}:function" for case in ["v1-ours", "contrib-ours", *keras]]
    for what, runs in run_program(
        replicated.PROGRAM, "2", "monitor", *cases, timeout=600, keras=True
    ).items():
        assert set(runs) == set(replicated.MOMENTA)
        replicated.check(runs, what.split(":")[0], 2, 2)
        for name, run in runs.items():
            replicated.check_readings(run, what, 2, replicated.MOMENTA[name])
