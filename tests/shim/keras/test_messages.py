"""The type and the first sentence of each error are those of the original, where it raises one.

Each function provokes one error with the classes of a namespace: `tf` or our package.
"""

import re
from typing import Any, Callable, Dict, Iterator, Tuple

import pytest
import recorded
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1
Case = Callable[[Any], Any]


def v1(owner: Any) -> Any:
    return owner.compat.v1.train.experimental


def v1_optimizer(owner: Any, opt: Any = None, scale: Any = 8.0) -> Any:
    opt = opt or tf1.train.GradientDescentOptimizer(0.5)
    return v1(owner).MixedPrecisionLossScaleOptimizer(opt, scale)


def cross_shard(owner: Any, **arguments: Any) -> Any:
    arguments.setdefault("opt", tf1.train.GradientDescentOptimizer(0.5))
    return owner.compat.v1.tpu.CrossShardOptimizer(**arguments)


def grouped(owner: Any, groups: Any) -> Any:
    optimizer = cross_shard(owner, group_assignment=groups)
    return optimizer.compute_gradients(lambda: tf.constant(1.0), [tf.Variable(1.0)])


def repeated(owner: Any) -> Any:
    loss_scale = v1(owner).DynamicLossScale()
    loss_scale._add_weight("w", 1.0, tf.float32)
    return loss_scale._add_weight("w", 1.0, tf.float32)


def rewritten(owner: Any, *args: Any) -> Any:
    return v1(owner).enable_mixed_precision_graph_rewrite(*args)


V1 = {
    "fixed_string": lambda owner: v1(owner).FixedLossScale("8"),
    "fixed_below_1": lambda owner: v1(owner).FixedLossScale(0.5),
    "dynamic_string": lambda owner: v1(owner).DynamicLossScale("x"),
    "repeated_weight": repeated,
    "keras_optimizer": lambda owner: v1_optimizer(owner, tf.keras.optimizers.SGD(0.5)),
    "no_optimizer": lambda owner: v1_optimizer(owner, "sgd"),
    "identifier": lambda owner: v1_optimizer(owner, scale="static"),
    "none": lambda owner: v1_optimizer(owner, scale=None),
    "tensor_loss": lambda owner: v1_optimizer(owner).compute_gradients(tf.constant(1.0)),
    "no_pairs": lambda owner: v1_optimizer(owner).apply_gradients([]),
    "dense": lambda owner: v1_optimizer(owner)._apply_dense(None, None),
    "sparse": lambda owner: v1_optimizer(owner)._resource_apply_sparse(None, None, None),
    "rewrite_string": lambda owner: rewritten(owner, "sgd"),
    "rewrite_wrapped": lambda owner: rewritten(owner, v1_optimizer(owner)),
    "rewrite_none": lambda owner: rewritten(owner, tf1.train.GradientDescentOptimizer(0.5), None),
    "reduction": lambda owner: cross_shard(owner, reduction="mean"),
    "cross_shard_keras": lambda owner: cross_shard(owner, opt=tf.keras.optimizers.SGD(0.5)),
    "cross_shard_name": lambda owner: cross_shard(owner, name=""),
    "groups_tuple": lambda owner: grouped(owner, ((0,),)),
    "groups_range": lambda owner: grouped(owner, [[0, 1]]),
    "groups_sizes": lambda owner: grouped(owner, [[0], []]),
}


def wrapped(owner: Any, *args: Any, **kwargs: Any) -> Any:
    inner = kwargs.pop("inner", None) or tf.keras.optimizers.SGD(0.5)
    return owner.keras.mixed_precision.LossScaleOptimizer(inner, *args, **kwargs)


def twice(owner: Any) -> Any:
    inner = tf.keras.optimizers.SGD(0.5)
    return [wrapped(owner, inner=inner), wrapped(owner, inner=inner)]


def experimental(owner: Any, scale: Any) -> Any:
    inner = tf.keras.optimizers.SGD(0.5)
    return owner.keras.mixed_precision.experimental.LossScaleOptimizer(inner, scale)


def applied(owner: Any, gradients: Any) -> Any:
    variable = tf.Variable(1.0, name="v")
    return wrapped(owner).apply_gradients([(gradient, variable) for gradient in gradients])


KERAS = {
    "inner_string": lambda owner: wrapped(owner, inner="sgd"),
    "nested": lambda owner: wrapped(owner, inner=wrapped(owner)),
    "twice": twice,
    "dynamic_number": lambda owner: wrapped(owner, 1),
    "dynamic_string": lambda owner: wrapped(owner, "dynamic"),
    "fixed_without_scale": lambda owner: wrapped(owner, False),
    "fixed_with_steps": lambda owner: wrapped(owner, False, 8.0, 5),
    "no_gradients": lambda owner: applied(owner, [None]),
    "attribute": lambda owner: wrapped(owner).absent,
    "read_only": lambda owner: setattr(wrapped(owner), "loss_scale", 1.0),
}

EXPERIMENTAL = {
    "string": lambda owner: experimental(owner, "static"),
    "none": lambda owner: experimental(owner, None),
    "layer_policy": lambda o: o.keras.mixed_precision.experimental.get_layer_policy("layer"),
}


def contrib_optimizer(owner: Any) -> Any:
    manager = owner.contrib.mixed_precision.FixedLossScaleManager(8.0)
    opt = tf1.train.GradientDescentOptimizer(0.5)
    return owner.contrib.mixed_precision.LossScaleOptimizer(opt, manager)


CONTRIB = {
    "below_1": lambda owner: owner.contrib.mixed_precision.FixedLossScaleManager(0.5),
    "tensor_loss": lambda owner: contrib_optimizer(owner).compute_gradients(tf.constant(1.0)),
    "no_pairs": lambda owner: contrib_optimizer(owner).apply_gradients([]),
}


PRIVATE = re.compile(r"\w+(?:Wrapper|Implementation|Attributes)\b|ScaledLoss|OneKind|SameClass")


def public_objects() -> Dict[str, Any]:
    made = {"v1": v1_optimizer(tfls), "cross-shard": cross_shard(tfls)}
    made["contrib"] = contrib_optimizer(tfls)
    for subject in recorded.ours():
        made[str(subject)] = subject.dynamic(subject.inner("SGD", learning_rate=0.5))
    return made


def errors_for_wrong_arguments(made: Any) -> Iterator[str]:
    for method in dir(made):
        is_public = not method.startswith("_") or method in ("__init__", "_compute_gradients")
        if not is_public or not hasattr(made, method):
            continue
        for call in (getattr(made, method), getattr(type(made), method, None)):
            for arguments in ([], [object()] * 12):
                try:
                    call(*arguments, no_such_argument=1)
                except Exception as error:
                    yield f"{method}: {error}"


@pytest.mark.parametrize("name", list(public_objects()))
def test_errors_for_wrong_arguments_name_the_public_class(name: str):
    """Python's own errors name a method by the class that defines it, from 3.10 on."""
    made = public_objects()[name]
    errors = list(errors_for_wrong_arguments(made))
    assert len(errors) > 20
    shown = [*errors, repr(made), str(made), type(made).__name__]
    assert [text for text in shown if PRIVATE.search(text)] == []


def first_sentence(error: Exception) -> str:
    text = re.sub(r"<.*", "<", str(error).strip().split("\n")[0])  # without the repr of an object
    return re.split(r"\. |\.$", text)[0].strip()


def error_of(case: Case, owner: Any) -> Tuple[str, str]:
    with pytest.raises(Exception) as caught:
        case(owner)
    return caught.type.__name__, first_sentence(caught.value)


@pytest.mark.skipif(recorded.TF < (2, 8), reason="the messages are those of later versions")
@pytest.mark.parametrize("name", V1)
def test_v1_and_cross_shard(name: str):
    assert error_of(V1[name], tfls) == error_of(V1[name], tf)


@pytest.mark.skipif(
    recorded.TF < (2, 9) or hasattr(tf.keras, "Operation"),
    reason="the messages are those of Keras 2, from TensorFlow 2.9 on",
)
@pytest.mark.parametrize("name", KERAS)
def test_final(name: str):
    assert error_of(KERAS[name], tfls) == error_of(KERAS[name], tf)


@pytest.mark.skipif(
    not (2, 8) <= recorded.TF < (2, 9), reason="the messages are those of TensorFlow 2.8"
)
@pytest.mark.parametrize("name", EXPERIMENTAL)
def test_experimental(name: str):
    assert error_of(EXPERIMENTAL[name], tfls) == error_of(EXPERIMENTAL[name], tf)


@pytest.mark.skipif(recorded.TF > (1, 15), reason="TensorFlow has no contrib classes")
@pytest.mark.parametrize("name", CONTRIB)
def test_contrib(name: str):
    assert error_of(CONTRIB[name], tfls) == error_of(CONTRIB[name], tf)
