"""`wrap` returns what `compile` uses, under each policy and on each Keras.

`Model._get_optimizer`, the private method that programs call for this, is the oracle where a Keras
has it: it makes an object of the same class, with the same loss scale.
"""

from typing import Any, Callable, Dict, Iterator

import pytest
import recorded
import tensorflow as tf
from small_model import set_policy

import tf_lossscale as tfls

KERAS = tfls.keras.mixed_precision
KINDS = {kind.name: kind for kind in recorded.kinds()}
by_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def set_fixed(kind: Any, name: str):
    policy = KERAS.experimental.Policy(name, loss_scale=8.0)
    KERAS.experimental.set_policy(policy)


SETTERS: Dict[str, Callable[[Any, str], None]] = {
    "final": lambda kind, name: KERAS.set_global_policy(name),
    "experimental": lambda kind, name: KERAS.experimental.set_policy(name),
    "fixed": set_fixed,
    "installed": lambda kind, name: set_policy(kind.keras, name),
}
"""By whose name the policy is set."""


@pytest.fixture(autouse=True)
def _float32_before_and_after() -> Iterator[None]:
    for kind in KINDS.values():
        set_policy(kind.keras, "float32")
    yield
    for kind in KINDS.values():
        set_policy(kind.keras, "float32")


def shown(optimizer: Any) -> Any:
    """The class of an optimizer, and what its loss scale begins at."""
    names = ("inner_optimizer", "initial_scale", "dynamic")
    values = {name: getattr(optimizer, name, None) for name in names}
    return type(optimizer), type(values.pop("inner_optimizer")), values


def network(kind: Any) -> Any:
    inputs = kind.keras.layers.Input((1,))
    return kind.keras.Model(inputs, kind.keras.layers.Dense(1)(inputs))


def used_by_compile(kind: Any, optimizer: Any) -> Any:
    model = network(kind)
    model.compile(optimizer, "mse")
    return model.optimizer


def is_ours(optimizer: Any) -> bool:
    return KERAS.LossScaleOptimizer in type(optimizer).__mro__


@pytest.mark.parametrize("name", ["mixed_float16", "float32"])
@pytest.mark.parametrize("setter", SETTERS)
@by_kind
def test_it_returns_what_compile_uses(kind: Any, setter: str, name: str):
    SETTERS[setter](kind, name)
    given = kind.optimizers.SGD(0.5)
    found = KERAS.wrap(given)
    assert shown(found) == shown(used_by_compile(kind, kind.optimizers.SGD(0.5)))
    if hasattr(kind.keras.Model, "_get_optimizer"):
        assert shown(found) == shown(network(kind)._get_optimizer(kind.optimizers.SGD(0.5)))
    if kind.keras.Model is not tf.keras.Model:
        return  # the shim's names set the policy of `tf.keras`
    scales = name == "mixed_float16" or setter == "fixed"
    assert (found is given) == (not scales)
    assert is_ours(found) == (scales and setter != "installed")


@by_kind
def test_an_optimizer_that_scales_is_returned_as_it_is(kind: Any):
    KERAS.set_global_policy("mixed_float16")
    optimizer = KERAS.LossScaleOptimizer(kind.optimizers.SGD(0.5), initial_scale=4.0)
    assert KERAS.wrap(optimizer) is optimizer


def test_names_of_the_program_do_not_change():
    tf.keras.backend.clear_session()
    KERAS.wrap(tf.keras.optimizers.SGD(0.5))
    assert tf.keras.Sequential().name == "sequential"


def test_a_name_of_an_optimizer():
    KERAS.set_global_policy("mixed_float16")
    assert is_ours(KERAS.wrap("sgd"))


def test_in_the_scope_of_a_strategy():
    KERAS.set_global_policy("mixed_float16")
    with tf.compat.v2.distribute.MirroredStrategy(["/cpu:0"]).scope():
        found = KERAS.wrap(tf.keras.optimizers.SGD(0.5))
    assert is_ours(found)


def test_an_unknown_name_is_refused_as_by_compile():
    with pytest.raises(ValueError):
        KERAS.wrap("no such optimizer")
