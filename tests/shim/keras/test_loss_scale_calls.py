"""Calls of `optimizer.loss_scale` of our experimental class, and more that it does as a tensor.

Up to TensorFlow 2.3 the property returns the `LossScale` that was passed, as TensorFlow's class
does; it converts to a tensor of its current value. What one line does is in `tensor_uses`.
"""

import copy
import pickle
from typing import Any, Callable, List, Tuple

import processes
import pytest
import recorded
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1
IS_OBJECT = recorded.TF < (2, 4)
IS_TENSOR = pytest.mark.skipif(IS_OBJECT, reason="up to TensorFlow 2.3 it is the `LossScale`")
SUBJECTS = [subject for subject in recorded.ours() if subject.api == "experimental"]
LEGACY = [subject for subject in SUBJECTS if subject.kind.name == "legacy"]
all_kinds = pytest.mark.parametrize("subject", SUBJECTS, ids=str)
in_graphs = pytest.mark.parametrize("subject", LEGACY, ids=str)


def make(subject) -> Any:
    """An optimizer whose scale is 8, and doubles with every finite step."""
    return subject.dynamic(subject.inner("SGD", learning_rate=0.5), 8.0, 1)


def make_with_step(subject) -> Tuple[Any, Callable[[], None]]:
    """The same, with a function that makes such a step."""
    optimizer = make(subject)
    variable = recorded.make_variable(subject.kind, 1.0, "v")

    def step():
        gradients = optimizer.get_unscaled_gradients([tf.constant(8.0)])
        optimizer.apply_gradients(list(zip(gradients, [variable])))

    return optimizer, step


@all_kinds
def test_a_call_returns_the_current_scale(subject):
    optimizer, step = make_with_step(subject)
    scale = optimizer.loss_scale
    assert callable(scale)
    for expected in (8.0, 16.0, 32.0):
        assert float(optimizer.loss_scale()) == expected
        assert float(scale()) == expected  # as up to TensorFlow 2.3
        assert isinstance(scale(), tf.Tensor)
        if not IS_OBJECT:
            assert float(scale) == 8.0
        step()
    with pytest.raises(TypeError):
        scale(1.0)


@all_kinds
def test_calls_in_a_function(subject):
    optimizer, step = make_with_step(subject)
    scale = optimizer.loss_scale

    @tf.function
    def read() -> Any:
        inside = optimizer.loss_scale
        if inside() > 1.0:
            called = inside() + 0.0
        else:
            called = tf.constant(0.0)
        return [called, scale(), optimizer.loss_scale(), inside * 1.0, (lambda: inside())()]

    assert [float(value) for value in read()] == [8.0] * 5
    step()
    assert [float(value) for value in read()] == [16.0] * 5


@in_graphs
def test_calls_in_a_session(subject):
    with tf.Graph().as_default(), tf1.Session() as session:
        optimizer = make(subject)
        weight = tf1.get_variable("w", initializer=1.0, use_resource=True)
        scale = optimizer.loss_scale
        read = [scale() * 1.0, optimizer.loss_scale() * 1.0, scale * 1.0]
        train = optimizer.apply_gradients([(tf.constant(1.0), weight)])
        session.run(tf1.global_variables_initializer())
        assert session.run(read) == [8.0, 8.0, 8.0]
        session.run(train)
        assert session.run(read) == [16.0, 16.0, 16.0]


@all_kinds
def test_a_program_for_both(subject):
    """It calls what can be called, and uses as a tensor what cannot."""
    scale = make(subject).loss_scale
    assert float(scale() if callable(scale) else scale) == 8.0
    assert round(scale) == 8
    assert round(scale, 1) == 8.0


@all_kinds
def test_fixed_and_own_loss_scales(subject):
    for given, expected in [
        (4.0, 4.0),
        ("dynamic", 2.0**15),
        (recorded.below_100(tfls.compat.v1.train.experimental)(), 4.0),
        (tf1.train.experimental.FixedLossScale(4.0), 4.0),
    ]:
        optimizer = subject.cls(subject.inner("SGD", learning_rate=0.5), given)
        found = [optimizer.loss_scale(), optimizer.loss_scale, optimizer.loss_scale * 1.0]
        assert [float(value) for value in found] == [expected] * 3
        inside = tf.function(lambda optimizer=optimizer: [optimizer.loss_scale * 1.0])
        assert float(inside()[0]) == expected


@IS_TENSOR
@all_kinds
def test_the_tensor_of_a_users_loss_scale_is_left_alone(subject):
    """A user's `LossScale` may return the same tensor every time."""

    class Constant(tfls.compat.v1.train.experimental.LossScale):
        def __call__(self) -> Any:
            if not hasattr(self, "tensor"):
                self.tensor = tf.constant(4.0)
            return self.tensor

        def update(self, grads: Any) -> Any:
            return tf.no_op(), True

        def get_config(self) -> Any:
            return {}

    given = Constant()
    optimizer = subject.cls(subject.inner("SGD"), given)

    @tf.function
    def function() -> Any:
        product = optimizer.loss_scale * optimizer.loss_scale()
        assert not callable(given.tensor)
        return product

    assert float(function()) == 16.0


# Copies.


@IS_TENSOR
@all_kinds
@pytest.mark.parametrize("protocol", range(5))
def test_copies(subject, protocol: int):
    optimizer, step = make_with_step(subject)
    scale = optimizer.loss_scale
    step()
    of_the_optimizer = copy.copy(scale)
    others = [copy.deepcopy(scale), pickle.loads(pickle.dumps(scale, protocol))]
    step()
    assert [float(value) for value in [scale, of_the_optimizer, *others]] == [8.0] * 4
    assert float(of_the_optimizer()) == 32.0
    # As a copied `LossScale`, of which no optimizer is left.
    assert [float(value()) for value in others] == [16.0, 16.0]
    assert type(others[1]) is type(scale)


# Functions that take it.


@IS_TENSOR
@all_kinds
def test_one_trace_for_all_values(subject):
    traced = []

    def function(value: Any, *rest: Any, scale: Any = 1.0) -> Any:
        traced.append(1)
        return [value * 1.0, scale * 1.0, [item * 1.0 for item in tf.nest.flatten(rest)]]

    optimizer, step = make_with_step(subject)
    traces = tf.function(function)
    for expected in (8.0, 16.0, 32.0):
        scale = optimizer.loss_scale
        found = traces(scale, {"nested": [scale]}, scale=scale)
        assert [float(value) for value in tf.nest.flatten(found)] == [expected] * 3
        step()
    plain_one = tf.constant(1.0)
    traces(plain_one, {"nested": [plain_one]}, scale=plain_one)
    assert len(traced) == 1


@all_kinds
@pytest.mark.skipif(recorded.TF < (2, 0), reason="tf.function of 1.15 cannot be compiled")
def test_compiled_by_xla(subject):
    compiled = {"jit_compile" if recorded.TF >= (2, 5) else "experimental_compile": True}
    optimizer, step = make_with_step(subject)
    scale = optimizer.loss_scale

    @tf.function(**compiled)
    def function(given: Any) -> Any:
        return [optimizer.loss_scale * 1.0, optimizer.loss_scale(), scale * 1.0, given * 1.0]

    step()
    assert [float(value) for value in function(scale)] == (
        [16.0] * 4 if IS_OBJECT else [16.0, 16.0, 8.0, 8.0]
    )


@all_kinds
def test_a_step_reads_no_object_that_can_be_called(subject):
    """The operations of a step are those of the final class."""

    def operations(optimizer: Any) -> List[str]:
        variable = recorded.make_variable(subject.kind, 1.0, "v")

        @tf.function
        def train():
            scaled = optimizer.get_scaled_loss(tf.constant(1.0))
            gradients = optimizer.get_unscaled_gradients([scaled])
            optimizer.apply_gradients(list(zip(gradients, [variable])))

        graph = train.get_concrete_function().graph.as_graph_def()
        bodies = [graph.node, *[function.node_def for function in graph.library.function]]
        return sorted(node.op for body in bodies for node in body)

    final = subject._replace(api="final")
    assert operations(make(subject)) == operations(make(final))


# Sessions.


@in_graphs
def test_fetched_and_fed(subject):
    with tf.Graph().as_default(), tf1.Session() as session:
        scale = make(subject).loss_scale
        doubled = scale * 2.0
        session.run(tf1.global_variables_initializer())
        assert session.run(scale) == 8.0
        assert session.run([scale, (scale, doubled)]) == [8.0, (8.0, 16.0)]
        assert session.run({"scale": scale})["scale"] == 8.0
        if not IS_OBJECT:  # of which each use is a tensor of its own
            assert session.run([scale, doubled], {scale: 4.0}) == [4.0, 8.0]
            assert session.make_callable(scale)() == 8.0
            assert scale.eval() == 8.0
            assert isinstance(scale, tf.Tensor)
            assert tf.gradients(scale * 3.0, scale)[0].eval() == 3.0


@IS_TENSOR
@in_graphs
def test_in_hooks_and_summaries_of_v1(subject):
    with tf.Graph().as_default():
        scale = make(subject).loss_scale
        tf1.train.create_global_step()
        summary = tf1.summary.scalar("scale", scale)
        hook = tf1.train.LoggingTensorHook({"scale": scale}, every_n_iter=1)
        with tf1.train.MonitoredSession(hooks=[hook]) as session:
            written = tf1.Summary.FromString(session.run(summary))
    assert written.value[0].simple_value == 8.0


# Subclasses.


@all_kinds
def test_a_property_of_a_subclass(subject):
    """It gets the object of the base class, and decides what is read."""

    class Doubled(subject.cls):  # type: ignore[name-defined, misc]
        @property
        def loss_scale(self) -> Any:
            return super().loss_scale() * 2.0

    class Same(subject.cls):  # type: ignore[name-defined, misc]
        @property
        def loss_scale(self) -> Any:
            return super().loss_scale

    doubled, same = (
        cls(subject.inner("SGD", learning_rate=0.5), subject.dynamic_loss_scale(8.0, 1))
        for cls in (Doubled, Same)
    )
    assert float(doubled.loss_scale) == 16.0
    assert float(same.loss_scale()) == float(same.loss_scale) == 8.0
    loss = tf.constant(1.0)
    # The originals have read the property since TensorFlow 2.4.
    assert float(doubled.get_scaled_loss(loss)) == (8.0 if IS_OBJECT else 16.0)
    assert float(same.get_scaled_loss(loss)) == 8.0
    scaled = tf.function(lambda: same.get_scaled_loss(loss))
    assert float(scaled()) == 8.0
    assert float(same.get_unscaled_gradients([tf.constant(8.0)])[0]) == 1.0


@all_kinds
def test_the_final_class_has_a_plain_tensor(subject):
    optimizer = make(subject._replace(api="final"))
    assert isinstance(optimizer.loss_scale, tf.Tensor)
    assert not callable(optimizer.loss_scale)
    assert not callable(tf.constant(1.0))
    with tf.Graph().as_default():
        assert not callable(tf.constant(1.0))


@IS_TENSOR
@all_kinds
def test_isinstance(subject):
    """In eager mode it is no `tf.Tensor`, whose objects TensorFlow passes to C."""
    optimizer = make(subject)
    assert not isinstance(optimizer.loss_scale, tf.Tensor)
    assert tf.is_tensor(optimizer.loss_scale)
    found = []
    tf.function(lambda: found.append(isinstance(optimizer.loss_scale, tf.Tensor)))()
    assert found == [True]


@pytest.fixture(scope="module")
def on_replicas() -> Any:
    """What `programs/loss_scale_of_replicas.py` gave, for each kind."""
    return processes.run_program(
        "keras/programs/loss_scale_of_replicas.py", *map(str, SUBJECTS), keras=True
    )


@all_kinds
def test_under_a_strategy(subject, on_replicas: Any):
    """In eager mode and in functions, within replicas and outside."""
    assert on_replicas[str(subject)] == {
        "outside": [8.0, 8.0, 8.0],
        "read": [8.0, 8.0],
        "called": [8.0, 8.0],
        "argument": [8.0, 8.0],
        "read in a function": [8.0, 8.0],
        "called in a function": [8.0, 8.0],
        "kept, and called in a function": [8.0, 8.0],
        "argument of a function": [8.0, 8.0],
    }
