"""Policies: the final names are the installed Keras's; an experimental loss scale is never lost."""

from typing import Any, Iterator

import pytest
import recorded
import tensorflow as tf
from small_model import set_policy

import tf_lossscale as tfls

FINAL = tfls.keras.mixed_precision
EXPERIMENTAL = tfls.keras.mixed_precision.experimental
INSTALLED = tf.keras.mixed_precision
HAS_EXPERIMENTAL = hasattr(getattr(INSTALLED, "experimental", None), "Policy")


@pytest.fixture(autouse=True)
def _float32_before_and_after() -> Iterator[None]:
    with recorded.eagerly():
        set_policy(tf.keras, "float32")
        yield
        set_policy(tf.keras, "float32")


def test_the_final_names_are_the_installed_ones() -> None:
    for name, others in (
        ("Policy", ("Policy", "DTypePolicy")),
        ("set_global_policy", ("set_global_policy", "set_dtype_policy")),
        ("global_policy", ("global_policy", "dtype_policy")),
    ):
        installed = [getattr(INSTALLED, other) for other in others if hasattr(INSTALLED, other)]
        if not installed:  # before 2.4
            installed = [
                getattr(INSTALLED.experimental, other)
                for other in (name, name.replace("global_", ""))
                if hasattr(INSTALLED.experimental, other)
            ]
        assert getattr(FINAL, name) is installed[0], name


@pytest.mark.parametrize("name", ["float32", "mixed_float16", "mixed_bfloat16", "float64"])
def test_set_and_get(name: str) -> None:
    FINAL.set_global_policy(name)
    assert FINAL.global_policy().name == name
    assert EXPERIMENTAL.global_policy().name == name
    FINAL.set_global_policy("float32")
    EXPERIMENTAL.set_policy(name)
    assert FINAL.global_policy().name == name
    EXPERIMENTAL.set_policy(EXPERIMENTAL.Policy("float32"))
    assert FINAL.global_policy().name == "float32"


def test_the_policy_of_a_layer() -> None:
    layer = tf.keras.layers.Dense(1, dtype=EXPERIMENTAL.Policy("mixed_float16"))
    policy = EXPERIMENTAL.get_layer_policy(layer)
    assert policy.name == "mixed_float16"
    assert policy.compute_dtype == "float16"
    assert policy.variable_dtype == "float32"
    assert policy.loss_scale is not None
    plain = EXPERIMENTAL.get_layer_policy(tf.keras.layers.Dense(1))
    assert plain.name == "float32"
    assert getattr(plain, "loss_scale", None) is None  # a final policy of 2.4 to 2.8 has none
    with pytest.raises(ValueError, match="can only be called on a layer"):
        EXPERIMENTAL.get_layer_policy("layer")


def model_under(policy: Any) -> Any:
    EXPERIMENTAL.set_policy(policy)
    try:
        inputs = tf.keras.layers.Input((1,))
        return tf.keras.Model(inputs, tf.keras.layers.Dense(1)(inputs))
    finally:
        EXPERIMENTAL.set_policy("float32")


def scaled(optimizer: Any) -> Any:
    """The loss scale of a compiled model's optimizer; None if it scales nothing."""
    scale = getattr(optimizer, "loss_scale", None)
    if scale is None and hasattr(optimizer, "initial_scale"):  # Keras 3
        return float(optimizer.initial_scale)
    scale = scale() if callable(scale) else scale
    return None if scale is None else float(scale)


def test_a_dynamic_loss_scale_is_honored() -> None:
    arguments = {"initial_loss_scale": 2.0**15, "increment_period": 2000, "multiplier": 2.0}
    serialized = {"class_name": "DynamicLossScale", "config": arguments}
    # The class of 1.15 does not take a serialized one.
    for loss_scale in ["auto", "dynamic", serialized][: 2 if recorded.TF < (2, 0) else 3]:
        policy = EXPERIMENTAL.Policy("mixed_float16", loss_scale=loss_scale)
        assert policy.loss_scale is not None
        model = model_under(policy)
        model.compile(tf.keras.optimizers.SGD(0.5), "mse")
        assert scaled(model.optimizer) == 2.0**15


CASES = [("mixed_float16", 8), ("mixed_float16", None), ("float32", 8)]


@pytest.mark.parametrize(("name", "loss_scale"), CASES)
def test_any_other_is_honored_or_refused(name: str, loss_scale: Any) -> None:
    if HAS_EXPERIMENTAL:
        model = model_under(EXPERIMENTAL.Policy(name, loss_scale=loss_scale))
        model.compile(tf.keras.optimizers.SGD(0.5), "mse")
        assert scaled(model.optimizer) == loss_scale
        return
    with pytest.raises(ValueError, match="would be ignored") as refused:
        EXPERIMENTAL.Policy(name, loss_scale=loss_scale)
    # The two lines that take its place run, and make what the policy asked for.
    lines = [line.strip() for line in str(refused.value).splitlines()[-2:]]
    assert lines[0] == f"tf.keras.mixed_precision.set_global_policy({name!r})"
    assert lines[1].startswith("optimizer = tf_lossscale.keras.mixed_precision.LossScaleOptimizer(")
    names = {"tf": tf, "tf_lossscale": tfls, "optimizer": tf.keras.optimizers.SGD(0.5)}
    exec("\n".join(lines), names)
    assert float(names["optimizer"].loss_scale) == (loss_scale or 1)


def test_a_loss_scale_is_kept_itself_and_a_policy_that_is_set_comes_back() -> None:
    scale = tfls.compat.v1.mixed_precision.DynamicLossScale()
    policy = EXPERIMENTAL.Policy("mixed_float16", loss_scale=scale)
    assert policy.loss_scale is scale
    EXPERIMENTAL.set_policy(policy)
    assert EXPERIMENTAL.global_policy() is policy
    FINAL.set_global_policy("mixed_float16")
    assert getattr(EXPERIMENTAL.global_policy(), "loss_scale", None) is not scale


def test_wrong_names() -> None:
    with pytest.raises((ValueError, TypeError)):
        EXPERIMENTAL.Policy("no_such_policy")
