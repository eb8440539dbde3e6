"""`tfls.accumulate` makes the steps of a plain optimizer that gets the means, or skips them."""

from typing import Any, Callable, List, Tuple

import numpy as np
import processes
import pytest
import recorded
import support
import tensorflow as tf

import tf_lossscale as tfls

INF = float("inf")
SUBJECTS = [subject for subject in recorded.ours() if subject.api == "final"]
by_subject = pytest.mark.parametrize("subject", SUBJECTS, ids=str)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("replicas", ["1", "2"])
@pytest.mark.slow
def test_every_optimizer_in_every_mode(replicas: str):
    program = "core/programs/accumulating.py"
    found = processes.run_program(program, replicas, timeout=600, keras=True)
    assert len(found) >= 12
    assert {name: difference for name, difference in found.items() if difference} == {}


def made(subject, micro_batches: int = 2, **options: Any) -> Any:
    """A variable, the optimizer, and the optimizer with accumulated gradients."""
    variable = recorded.make_variable(subject.kind, [1.0, 2.0], "v")
    optimizer = subject.dynamic(subject.inner("SGD", learning_rate=0.5, **options), 8.0, 100)
    return variable, optimizer, tfls.accumulate(optimizer, micro_batches)


def made_with_another(subject, missing: Callable[[], Any]) -> Tuple[Any, Any, Callable]:
    """Two variables, and a step in a function that has a gradient of the second, or `missing()`."""
    variable, _, accumulated = made(subject)
    other = recorded.make_variable(subject.kind, 1.0, "other")

    @tf.function
    def step(has_both: bool) -> None:
        gradient = tf.constant(1.0) if has_both else missing()
        accumulated.apply_gradients([(tf.constant([1.0, 1.0]), variable), (gradient, other)])

    return variable, other, step


def value(variable: Any) -> List[float]:
    return np.asarray(variable.numpy()).tolist()


@by_subject
def test_one_infinite_micro_batch_skips_the_step_and_halves_the_scale_once(subject):
    with support.eager():
        variable, optimizer, accumulated = made(subject, 3)
        for gradient in (INF, 1.0, -INF):
            assert recorded.number(subject.scale_and_counter(optimizer)[0]) == 8.0
            accumulated.apply_gradients([(tf.constant([gradient, 1.0]), variable)])
        assert value(variable) == [1.0, 2.0]
        assert recorded.number(subject.scale_and_counter(optimizer)[0]) == 4.0
        for _ in range(3):
            accumulated.apply_gradients([(tf.constant([1.0, 1.0]), variable)])
        assert value(variable) == [0.5, 1.5]


def test_around_the_cross_shard_optimizer():
    with support.eager():
        variable = tf.compat.v2.Variable(1.0)
        inner = tf.compat.v1.train.GradientDescentOptimizer(0.5)
        accumulated = tfls.accumulate(tfls.tpu.CrossShardOptimizer(inner), 2)
        for gradient in (1.0, 3.0):
            accumulated.apply_gradients([(tf.constant(gradient), variable)])
        assert value(variable) == 0.0


@by_subject
def test_a_schedule_counts_steps(subject):
    """It halves the rate after each step, so that a step of a skipped micro-batch counts, too."""
    schedules = subject.kind.keras.optimizers.schedules
    schedule = schedules.ExponentialDecay(0.5, decay_steps=1, decay_rate=0.5)
    with support.eager():
        variable = recorded.make_variable(subject.kind, 4.0, "v")
        optimizer = subject.dynamic(subject.inner("SGD", learning_rate=schedule), 8.0, 100)
        accumulated = tfls.accumulate(optimizer, 2)
        for gradient in (1.0, 1.0, 1.0, 1.0, INF, 1.0, 1.0, 1.0):
            accumulated.apply_gradients([(tf.constant(gradient), variable)])
        assert value(variable) == 4.0 - 0.5 - 0.25 - 0.0625


@by_subject
def test_the_inner_optimizer_clips_the_mean(subject):
    with support.eager():
        variable, _, accumulated = made(subject, clipnorm=1.0)
        for gradient in (8.0, -6.0):
            accumulated.apply_gradients([(tf.constant([gradient, 0.0]), variable)])
        assert value(variable) == [0.5, 2.0]  # the norm of the mean is 1


@by_subject
def test_zeros_in_place_of_a_first_none(subject):
    with support.eager():
        _, other, step = made_with_another(subject, missing=lambda: tf.zeros([]))
        step(False)
        step(True)
        assert value(other) == 0.75


def test_sparse_gradients_become_dense():
    seen = []

    class Noting(tf.compat.v1.train.GradientDescentOptimizer):
        def apply_gradients(self, pairs: Any, *args: Any, **kwargs: Any) -> Any:
            pairs = list(pairs)
            seen.extend(type(gradient) is tf.IndexedSlices for gradient, _ in pairs)
            return super().apply_gradients(pairs, *args, **kwargs)

    with support.eager():
        variable = tf.compat.v2.Variable([1.0, 1.0])
        optimizer, _ = support.contrib_optimizer(Noting(0.5))
        sparse = tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]), tf.constant([2]))
        optimizer.apply_gradients([(sparse, variable)])
        accumulated = tfls.accumulate(optimizer, 1)
        accumulated.apply_gradients([(sparse, variable)])
        assert seen == [True, False]
        assert value(variable) == [0.0, 1.0]


@by_subject
@pytest.mark.parametrize("style", ["keras 2", "keras 3"])
def test_loops_of_both_kinds(subject, style: str):
    if style == "keras 3" and subject.kind.name != "keras3":
        style = "keras 2"
    with support.eager():
        variable, optimizer, accumulated = made(subject)
        source = recorded.gradient_source(variable)

        @tf.function
        def step(factor: Any):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(source * factor)
                scale = optimizer.get_scaled_loss if style == "keras 2" else optimizer.scale_loss
                scaled = scale(loss)
            gradients = tape.gradient(scaled, [source])
            if style == "keras 2":
                gradients = optimizer.get_unscaled_gradients(gradients)
            accumulated.apply_gradients(zip(gradients, [variable]))

        for factor in (1.0, 3.0):
            step(tf.constant(factor))
        assert value(variable) == [0.0, 1.0]


@pytest.mark.parametrize("around", [False, True], ids=["eager", "in a function"])
@pytest.mark.parametrize("parts", ["gradients", "update", "both"])
@pytest.mark.parametrize("subject", [e for e in SUBJECTS if e.kind.name == "keras3"], ids=str)
def test_loops_of_keras_3_in_parts(subject, parts: str, around: bool):
    with support.eager():
        variable, optimizer, accumulated = made(subject)
        source = recorded.gradient_source(variable)

        def gradients(factor: Any) -> Any:
            with tf.GradientTape() as tape:
                scaled = optimizer.scale_loss(tf.reduce_sum(source * factor))
            return tape.gradient(scaled, [source])

        def update(gradients: Any):
            accumulated.apply_gradients(zip(gradients, [variable]))

        first = gradients if parts == "update" else tf.function(gradients)
        second = update if parts == "gradients" else tf.function(update)

        def step(factor: Any):
            second(first(factor))

        call = tf.function(step) if around else step
        for factor in (1.0, 3.0):
            call(tf.constant(factor))
        assert value(variable) == [0.0, 1.0]


@pytest.mark.parametrize("mode", ["eager", "one function", "parts", "two functions"])
@pytest.mark.parametrize("style", ["keras 2", "keras 3"])
@pytest.mark.parametrize("subject", [e for e in SUBJECTS if e.kind.name == "keras3"], ids=str)
def test_several_accumulators_of_one_optimizer(subject, style: str, mode: str):
    """Each makes its own steps, in whatever order; the scale changes while others accumulate."""
    with support.eager():
        optimizer = subject.dynamic(subject.inner("SGD", learning_rate=0.5), 8.0, 1)
        names = ["first", "second"]
        variables = [recorded.make_variable(subject.kind, 0.0, name) for name in names]
        optimizer.build(variables)
        accumulated = [tfls.accumulate(optimizer, count) for count in (2, 3)]
        scale = optimizer.get_scaled_loss if style == "keras 2" else optimizer.scale_loss

        def gradients(index: int, factor: Any) -> Any:
            source = recorded.gradient_source(variables[index])
            with tf.GradientTape() as tape:
                scaled = scale(source * factor)
            found = tape.gradient(scaled, [source])
            return found if style == "keras 3" else optimizer.get_unscaled_gradients(found)

        def update(index: int, found: Any):
            accumulated[index].apply_gradients(zip(found, [variables[index]]))

        compute = tf.function(gradients) if mode == "parts" else gradients
        updates = [tf.function(update) if mode == "parts" else update for _ in range(2)]

        def step(index: int, factor: Any):
            updates[index](index, compute(index, factor))

        is_compiled = mode == "two functions"
        steps = [tf.function(step) if is_compiled else step for _ in range(2)]

        def both(factors: Any):
            for index in range(2):
                steps[index](index, factors[index])

        call = tf.function(both) if mode == "one function" else both
        # Means of the first: 1, 2, 0; of the second: infinite, 2. So the scale changes 5 times.
        if (style, mode) == ("keras 3", "parts"):
            with pytest.raises(RuntimeError, match="not all steps apply such gradients here"):
                call(tf.constant([0.0, 6.0]))
            return
        for factors in ((0.0, 6.0), (2.0, INF), (1.0, 1.0), (3.0, 3.0), (0.0, 0.0), (0.0, 3.0)):
            call(tf.constant(factors))
        assert [value(variable) for variable in variables] == [-1.5, -1.0]
        assert recorded.number(subject.scale_and_counter(optimizer)[0]) == 8.0 * 2**4 / 2


@by_subject
def test_sparse_gradients_none_and_half_precision(subject):
    with support.eager():
        variable, _, accumulated = made(subject)
        other = recorded.make_variable(subject.kind, 1.0, "other")
        sparse = tf.IndexedSlices(tf.constant([4.0, 4.0]), tf.constant([0, 0]), tf.constant([2]))
        accumulated.apply_gradients([(sparse, variable), (None, other)])
        accumulated.apply_gradients([(tf.constant([0.0, 2.0]), variable), (None, other)])
        assert (value(variable), value(other)) == ([-1.0, 1.5], 1.0)


@by_subject
def test_none_in_the_last_micro_batch_counts_as_0(subject):
    with support.eager():
        variable, _, accumulated = made(subject)
        other = recorded.make_variable(subject.kind, 1.0, "other")
        ones = tf.constant([1.0, 1.0])
        accumulated.apply_gradients([(ones, variable), (tf.constant(1.0), other)])
        accumulated.apply_gradients([(ones, variable), (None, other)])
        assert (value(variable), value(other)) == ([0.5, 1.5], 0.75)


@by_subject
def test_a_first_gradient_after_a_function_was_built_is_refused(subject):
    with support.eager():
        variable, other, step = made_with_another(subject, missing=lambda: None)
        step(False)
        with pytest.raises(ValueError, match=r"had no gradient when .* was built: 'other"):
            step(True)
        step(False)
        assert (value(variable), value(other)) == ([0.5, 1.5], 1.0)


@by_subject
def test_the_next_micro_batch_begins_a_step_after_an_error(subject):
    with support.eager():
        variable, _, accumulated = made(subject)
        pairs = [(tf.constant([1.0, 1.0]), variable)]
        accumulated.apply_gradients(pairs)
        with pytest.raises(TypeError, match="unknown_argument"):
            accumulated.apply_gradients(pairs, unknown_argument=True)
        accumulated.apply_gradients(pairs)
        assert value(variable) == [1.0, 2.0]
        accumulated.apply_gradients(pairs)
        assert value(variable) == [0.5, 1.5]


@by_subject
def test_sparse_gradients_without_a_shape(subject):
    with support.eager():
        variable, _, accumulated = made(subject)
        sparse = tf.IndexedSlices(tf.constant([1.0, 1.0]), tf.constant([1, 1]))
        for _ in range(2):
            accumulated.apply_gradients([(sparse, variable)])
        assert value(variable) == [1.0, 1.0]


def test_sums_of_16_bit_gradients_do_not_overflow():
    with support.eager():
        variable = tf.compat.v2.Variable(0.0, dtype=tf.float16)
        inner = tf.compat.v1.train.GradientDescentOptimizer(0.5)
        optimizer, _ = support.contrib_optimizer(inner)
        accumulated = tfls.accumulate(optimizer, 4)
        for _ in range(4):
            accumulated.apply_gradients([(tf.constant(60000.0, tf.float16), variable)])
        assert value(variable) == -30000.0


@by_subject
def test_what_is_refused(subject):
    with support.eager():
        variable, optimizer, accumulated = made(subject)
        with pytest.raises(TypeError, match="takes an optimizer"):
            tfls.accumulate("sgd", 2)
        for number in (0, 2.0, True, None):
            with pytest.raises(ValueError, match="whole number"):
                tfls.accumulate(optimizer, number)
        accumulated.apply_gradients([(tf.constant([1.0, 1.0]), variable)])
        other = recorded.make_variable(subject.kind, [1.0, 2.0], "other")
        with pytest.raises(ValueError, match="other variables"):
            accumulated.apply_gradients([(tf.constant([1.0, 1.0]), other)])
        assert accumulated.optimizer is optimizer


@pytest.mark.skipif(recorded.TF < (2, 3), reason="Keras has no train_step")
@by_subject
def test_train_step_of_fit(subject):
    keras = subject.kind.keras

    class Model(keras.Model):  # type: ignore[misc, name-defined]  # untyped base
        def train_step(self, data: Any) -> Any:
            images, labels = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self(images, training=True) - labels))
                scaled = self.optimizer.get_scaled_loss(loss)
            gradients = tape.gradient(scaled, self.trainable_weights)
            gradients = self.optimizer.get_unscaled_gradients(gradients)
            self.accumulated.apply_gradients(zip(gradients, self.trainable_weights))
            return {"loss": loss}

    inputs = keras.layers.Input((1,))
    dense = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    model = Model(inputs, dense(inputs))
    _, optimizer, _ = made(subject)
    model.compile(optimizer)
    model.accumulated = tfls.accumulate(model.optimizer, 2)
    ones = np.ones([4, 1], "float32")
    model.fit(ones, 0 * ones, batch_size=1, shuffle=False, verbose=0)
    assert recorded.number(optimizer.iterations) == 2
    assert np.ravel(model.get_weights()[0]).tolist() == [0.0]
