"""`optimizer.loss_scale` of the experimental class, read as in TensorFlow 2.3 and as in 2.4.

Up to 2.3 it is the object of the original, and ours is also read as a tensor. Later it is a tensor,
and ours can also be called: `test_loss_scale_both_ways` has more uses.
"""

import copy
import operator
import pickle
from typing import Any, Callable, Dict, Tuple

import numpy as np
import pytest
import recorded
import tensorflow as tf

LEGACY = recorded.TF < (2, 4)
CASES = recorded.with_loss_scales(recorded.experimental())
# What the originals can be read as, too: from 2.4 on as a tensor.
TENSORS = [case for case in CASES if not LEGACY or case.values[0].who == "ours"]
MAKE: Dict[str, Callable[[Any], Any]] = {
    "dynamic": lambda scales: scales.DynamicLossScale(8.0, 2),
    "fixed": lambda scales: scales.FixedLossScale(8.0),
    "number": lambda scales: 8.0,
}
made = pytest.mark.parametrize("loss_scale", sorted(MAKE))

READS: Dict[str, Tuple[Callable[[Any], Any], Any]] = {
    "convert_to_tensor": (tf.convert_to_tensor, 8.0),
    "cast": (lambda scale: tf.cast(scale, tf.float16), 8.0),
    "sqrt": (tf.sqrt, np.sqrt(np.float32(8.0))),
    "stack": (lambda scale: tf.stack([scale, 1.0])[0], 8.0),
    "condition": (lambda scale: tf.cond(scale > 1.0, lambda: scale * 2.0, lambda: 0.0), 16.0),
    "tensor on the left": (lambda scale: tf.constant(2.0) * scale, 16.0),
    "array on the left": (lambda scale: np.float32(2.0) * scale, 16.0),
    "negative": (lambda scale: -scale, -8.0),
    "absolute": (abs, 8.0),
    "float": (float, 8.0),
    "int": (int, 8),
    "format": (lambda scale: float(f"{scale:.2f}"), 8.0),
    "numpy()": (lambda scale: scale.numpy(), 8.0),
    "np.array": (np.array, 8.0),
    "np.sqrt": (np.sqrt, np.sqrt(np.float32(8.0))),
    "dtype": (lambda scale: float(scale.dtype == tf.float32), 1.0),
    "shape": (lambda scale: float(len(scale.shape)), 0.0),
    "function": (lambda scale: tf.function(lambda: scale * 2.0)(), 16.0),
    "output of a function": (lambda scale: tf.function(lambda: scale)(), 8.0),
    "argument of a function": (lambda scale: tf.function(lambda given: given + 1.0)(scale), 9.0),
}
OPERATORS = {
    "add": (10.0, 10.0),
    "sub": (6.0, -6.0),
    "mul": (16.0, 16.0),
    "truediv": (4.0, 0.25),
    "floordiv": (4.0, 0.0),
    "mod": (0.0, 2.0),
    "pow": (64.0, 256.0),
    "gt": (1.0, 0.0),
    "ge": (1.0, 0.0),
    "lt": (0.0, 1.0),
    "le": (0.0, 1.0),
}
if recorded.TF >= (2, 0):  # before, tensors are compared by identity
    OPERATORS.update(eq=(0.0, 0.0), ne=(1.0, 1.0))


def make(subject, loss_scale: Any) -> Any:
    return subject.cls(subject.inner("SGD", learning_rate=0.5), loss_scale)


@made
@pytest.mark.parametrize(("subject", "scales"), CASES)
def test_it_is_called(subject, scales: Any, loss_scale: str):
    given = MAKE[loss_scale](scales)
    optimizer = make(subject, given)
    scale = optimizer.loss_scale
    if subject.who == "original" and not LEGACY:
        with pytest.raises(TypeError, match="object is not callable"):
            scale()
        return
    assert float(scale()) == 8.0
    if not LEGACY:
        return
    if loss_scale != "number":
        assert scale is given
        assert isinstance(scale, scales.LossScale)
        assert type(scale).__doc__ == getattr(scales, type(scale).__name__).__doc__
    kind = "DynamicLossScale" if loss_scale == "dynamic" else "FixedLossScale"
    assert type(scale).__name__ == kind
    assert str(scale).startswith(kind)
    assert 8.0 in scale.get_config().values()
    assert scale == given if loss_scale != "number" else scale == optimizer.loss_scale
    assert scale != None  # noqa: E711 - not `is not`: the operator is tested
    assert scale != "dynamic"
    assert scale != MAKE["dynamic"](scales)
    assert {scale: 1}[scale] == 1
    assert float(copy.deepcopy(scale)()) == 8.0
    if loss_scale == "fixed":
        assert float(pickle.loads(pickle.dumps(scale))()) == 8.0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("read", sorted(READS))
@pytest.mark.parametrize(("subject", "scales"), TENSORS)
def test_it_is_read_as_a_tensor(subject, scales: Any, read: str):
    function, expected = READS[read]
    for name in sorted(MAKE):
        found = function(make(subject, MAKE[name](scales)).loss_scale)
        assert recorded.number(found) == expected, name


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", sorted(OPERATORS))
@pytest.mark.parametrize(("subject", "scales"), TENSORS)
def test_operators(subject, scales: Any, name: str):
    function = getattr(operator, name)
    for kind in sorted(MAKE):
        scale = make(subject, MAKE[kind](scales)).loss_scale
        found = recorded.number(function(scale, 2.0)), recorded.number(function(2.0, scale))
        assert found == OPERATORS[name], kind


@pytest.mark.sampled(2)
@pytest.mark.skipif(recorded.TF < (2, 0), reason="the summaries of TensorFlow 2")
@pytest.mark.parametrize(("subject", "scales"), TENSORS)
def test_in_a_summary_and_in_the_logs_of_fit(subject, scales: Any, tmp_path: Any):
    keras = subject.kind.keras
    optimizer = make(subject, scales.DynamicLossScale(8.0, 1))

    class Scale(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None):
            logs["scale"] = self.model.optimizer.loss_scale

    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(optimizer, "mse")
    data = np.ones((2, 2), np.float32), np.ones((2, 1), np.float32)
    history = model.fit(*data, epochs=1, batch_size=2, verbose=2, callbacks=[Scale()]).history
    assert float(history["scale"][0]) == 16.0
    if recorded.TF < (2, 16):  # later versions need the package tensorboard
        with tf.summary.create_file_writer(str(tmp_path)).as_default():
            tf.summary.scalar("scale", optimizer.loss_scale, step=0)


IN_GRAPHS = [case for case in TENSORS if case.values[0].kind.name == "legacy"]


@pytest.mark.skipif(not IN_GRAPHS, reason="Keras 3 has no graph mode")
@pytest.mark.parametrize(("subject", "scales"), IN_GRAPHS)
def test_in_a_session_whose_graph_is_finalized(subject, scales: Any):
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        optimizer = make(subject, scales.DynamicLossScale(8.0, 1))
        scale = optimizer.loss_scale
        doubled = scale * 2.0
        session.run(tf.compat.v1.global_variables_initializer())
        graph.finalize()
        assert session.run(scale) == 8.0
        assert session.run({"scale": scale, "doubled": doubled}) == {"scale": 8.0, "doubled": 16.0}
