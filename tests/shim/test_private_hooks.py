"""An override of a private method is called as by TensorFlow's class, or the class is refused.

The table `PRIVATE_HOOKS` is read again from each installed class: which methods it calls on itself.
Then a subclass of it and one of ours log the calls of these methods.
"""

import contextlib
import dis
import inspect
import sys
import types
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Set

import pytest
import recorded
import support
import tensorflow as tf

import tf_lossscale as tfls
from tf_lossscale._versions.base import has
from tf_lossscale._versions.files import Trackable
from tf_lossscale._versions.private_hooks import PRIVATE_HOOKS

tf1 = tf.compat.v1
Log = List[str]


class Subject(NamedTuple):
    """A class of TensorFlow, and ours.

    Attributes:
      name: of the test.
      hooks: the name of its methods in the table.
      original: TensorFlow's class.
      ours: our class, from which programs derive.
      make: makes an object of a subclass.
      run: takes all steps with it, and logs their names.
    """

    name: str
    hooks: str
    original: Any
    ours: Any
    make: Callable[[Any], Any]
    run: Callable[[Any, Log], None]


def sgd() -> Any:
    return tf1.train.GradientDescentOptimizer(0.5)


def no_constant(value: float) -> Any:
    """A conditional on a constant would be decided when the graph is built."""
    return tf.random.uniform([2], value, value, seed=1)


def train_v1(optimizer: Any, log: Log):
    variable = tf1.Variable([1.0, 2.0], name="v", use_resource=True)
    other = tf1.Variable([1.0, 2.0], name="w", use_resource=True)

    def loss() -> Any:
        return tf.reduce_sum(variable) * no_constant(1.0)[0]

    given = loss if tf.executing_eagerly() else loss()
    log.append("- compute_gradients, apply_gradients")
    pairs = optimizer.compute_gradients(given, [variable])
    if isinstance(optimizer, tf1.tpu.CrossShardOptimizer):
        return  # TensorFlow's class can apply gradients on a TPU only
    optimizer.apply_gradients(pairs)
    log.append("- with a name; one without a gradient")
    if not isinstance(optimizer, tfls.contrib.mixed_precision.LossScaleOptimizer):  # C1
        pairs.append((None, other))
    optimizer.apply_gradients(pairs, None, "mine")
    log.append("- minimize")
    optimizer.minimize(given, var_list=[variable])


def use_loss_scale(loss_scale: Any, log: Log):
    log.append("- update, repr, get_config, from_config")
    loss_scale.update([no_constant(1.0)])
    repr(loss_scale)
    type(loss_scale).from_config(loss_scale.get_config())


def use_manager(manager: Any, log: Log):
    for factor in (1.0, float("inf")):
        log.append(f"- times {factor}")
        finite = tf.reduce_all(tf1.is_finite(no_constant(1.0) * factor))
        manager.update_loss_scale(finite)


def train_keras(kind: Any) -> Callable[[Any, Log], None]:
    def train(optimizer: Any, log: Log):
        variable = recorded.make_variable(kind, [1.0, 2.0], "v")
        other = recorded.make_variable(kind, [1.0, 2.0], "w")
        for factor in (1.0, float("inf")):
            log.append(f"- apply_gradients, times {factor}")
            if kind.name == "keras3":
                optimizer.scale_loss(tf.constant(1.0))
            optimizer.apply_gradients([(no_constant(1.0) * factor, variable)])
        if kind.name == "keras3":
            return
        log.append("- one without a gradient")
        if recorded.TF >= (2, 5):
            optimizer.apply_gradients([(no_constant(1.0), variable), (None, other)])
        log.append("- minimize")
        optimizer.minimize(lambda: tf.reduce_sum(variable), [variable])
        if recorded.TF >= (2, 0):  # the original of 1.15 has none
            optimizer.get_config()

    return train


def keras_subjects() -> Iterator[Subject]:
    for subject in recorded.originals():
        kind, original = subject.kind, subject.cls
        if recorded.TF >= (2, 9) and kind.name != "keras3":
            # The public class has no methods. It makes objects of two others.
            name = "LossScaleOptimizerV3" if kind.name == "new" else "LossScaleOptimizer"
            original = getattr(sys.modules[original.__module__], name)

        def make(cls: Any, subject=subject) -> Any:
            argument = "dynamic" if subject.api == "experimental" else None
            inner = subject.inner("SGD", learning_rate=0.5)
            return cls(inner) if argument is None else cls(inner, argument)

        ours = subject.counterpart().cls
        yield Subject(str(subject), kind.name, original, ours, make, train_keras(kind))


def v1_subjects() -> Iterator[Subject]:
    original, ours = (support.v1_namespaces()[who] for who in ("original", "ours"))
    for name, loss_scale in (("dynamic", "dynamic"), ("fixed", 8.0)):
        yield Subject(
            f"v1-{name}",
            "v1",
            original.MixedPrecisionLossScaleOptimizer,
            ours.MixedPrecisionLossScaleOptimizer,
            lambda cls, loss_scale=loss_scale: cls(sgd(), loss_scale),
            train_v1,
        )
    for name in ("DynamicLossScale", "FixedLossScale"):
        classes = (getattr(owner, name) for owner in (original, ours))
        yield Subject(name, "loss scale", *classes, lambda cls: cls(8.0), use_loss_scale)
    cross_shard = (owner.CrossShardOptimizer for owner in (tf1.tpu, tfls.tpu))
    yield Subject("cross-shard", "cross-shard", *cross_shard, lambda cls: cls(sgd()), train_v1)
    if support.IS_TF1:
        theirs, ours = (support.contrib_namespaces()[who] for who in ("original", "ours"))
        yield Subject(
            "contrib",
            "contrib",
            theirs.LossScaleOptimizer,
            ours.LossScaleOptimizer,
            lambda cls: cls(sgd(), ours.ExponentialUpdateLossScaleManager(8.0, 2)),
            train_v1,
        )
        yield Subject(
            "contrib-manager",
            "contrib manager",
            theirs.ExponentialUpdateLossScaleManager,
            ours.ExponentialUpdateLossScaleManager,
            lambda cls: cls(8.0, 1, 1),
            use_manager,
        )


SUBJECTS = [*v1_subjects(), *keras_subjects()]
every = pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)


# What TensorFlow's class calls on itself.


def code_objects(code: Any) -> Iterator[Any]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from code_objects(constant)


def functions_of(cls: Any) -> Iterator[Any]:
    """The functions of a class, and those of its bases in the same module."""
    for base in cls.__mro__:
        if base.__module__ != cls.__module__:
            continue
        for value in vars(base).values():
            if isinstance(value, property):
                yield from filter(None, (value.fget, value.fset))
            elif inspect.isfunction(value):
                yield inspect.unwrap(value)


def attributes_of_self(function: Any) -> Iterator[str]:
    """The attributes that a function reads of its first argument."""
    if not function.__code__.co_varnames:
        return
    own = function.__code__.co_varnames[0]
    for code in code_objects(function.__code__):
        loaded = None
        for instruction in dis.get_instructions(code):
            if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and loaded == own:
                yield instruction.argval
            if instruction.opname.startswith(("LOAD_FAST", "LOAD_DEREF")):
                value = instruction.argval
                loaded = value[-1] if isinstance(value, tuple) else value
            elif instruction.opname not in ("CACHE", "EXTENDED_ARG"):
                loaded = None


def methods_that_it_calls(cls: Any, known: Set[str]) -> Set[str]:
    found = {name for function in functions_of(cls) for name in attributes_of_self(function)}
    # `minimize` of `OptimizerV2` calls it, and the loss-scale optimizer overrides it.
    found |= {"_compute_gradients"} & {function.__name__ for function in functions_of(cls)}
    return {
        name
        for name in found
        if inspect.isfunction(inspect.getattr_static(cls, name, None))
        and (name.startswith("_") or name in known)
        and not hasattr(Trackable, name)
    }


# Of `stateless_apply`, which the backend of TensorFlow does not support, and our class refuses.
STATELESS = {"_stateless_handle_finite_grads", "_stateless_handle_non_finite_grads"}


@every
def test_the_table_has_what_the_original_calls(subject: Subject):
    hooks = [hook for hook in PRIVATE_HOOKS[subject.hooks] if hook.exists()]
    known = {hook.name for hook in hooks}
    found = methods_that_it_calls(subject.original, known) - STATELESS
    if subject.name == "FixedLossScale":
        known = set()  # it has no variables
    assert found == known


# The calls of both.

PUBLIC = {"minimize", "compute_gradients", "apply_gradients", "get_scaled_loss"}
PUBLIC |= {"get_unscaled_gradients", "get_config", "update", "get_loss_scale", "scale_loss"}
PUBLIC |= {"update_loss_scale", "apply", "get_name"}


def kind_of(value: Any) -> str:
    """What a method can do with an argument."""
    if value is None or isinstance(value, (bool, str)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return type(value).__name__ + str([kind_of(element) for element in value])
    if isinstance(value, (tf1.Variable, tf.Variable)) or hasattr(value, "overwrite_with_gradient"):
        return "variable"
    if isinstance(value, tf.Tensor):
        return "tensor"
    if isinstance(value, tf.distribute.Strategy):
        return "strategy"
    if hasattr(value, "value") and not callable(value.value):
        return f"with the value {kind_of(list(value.value))}"
    return "function" if callable(value) and not isinstance(value, type) else type(value).__name__


def logging(cls: Any, names: Set[str], log: Log) -> Any:
    """A subclass that logs the calls of these methods."""

    def override(name: str) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            named = [f"{key}={kind_of(kwargs[key])}" for key in sorted(kwargs)]
            log.append(f"{name}({', '.join([*map(kind_of, args), *named])})")
            return getattr(super(Logging, self), name)(*args, **kwargs)

        return tf.autograph.experimental.do_not_convert(method)

    Logging = type(cls)("Logging", (cls,), {name: override(name) for name in names})
    return Logging


@contextlib.contextmanager
def mode_of(name: str) -> Iterator[None]:
    with support.graph() if name == "graph" else support.eager():
        yield


def calls(subject: Subject, cls: Any, names: Set[str], mode: str) -> Log:
    log: Log = []
    with mode_of(mode):
        subject.run(subject.make(logging(cls, names, log)), log)
    return log


@pytest.mark.sampled(2, each="mode")
@pytest.mark.parametrize("mode", ["eager", "graph"])
@every
def test_overrides_are_called_as_by_the_original(subject: Subject, mode: str):
    if mode == "graph" and subject.hooks in ("new", "keras3"):
        pytest.skip("these optimizers have no graph mode")
    hooks = [hook for hook in PRIVATE_HOOKS[subject.hooks] if hook.exists()]
    own = {hook.name for hook in hooks if not hook.instead}
    # On Keras 3 it is called for skipped steps, too, as there.
    own -= {"_overwrite_variable_with_gradient"}
    names = {
        name
        for name in own | PUBLIC
        if inspect.isfunction(inspect.getattr_static(subject.original, name, None))
    }
    expected = calls(subject, subject.original, names, mode)
    found = calls(subject, subject.ours, names, mode)
    if subject.hooks == "contrib manager" and mode == "graph":
        # The original builds the reset in two branches of a conditional, ours in one.
        expected = sorted(set(expected))
        found = sorted(set(found))
    assert found == expected
    if subject.name == "v1-fixed":
        own -= {"_distributed_apply", "_apply_gradients"}  # of a dynamic loss scale only
    if subject.name == "FixedLossScale":
        own = set()
    assert {name for name in own if f"{name}(" in " ".join(found)} == own


# What a program can do with it.


def test_gradients_of_contrib_are_divided_by_an_override():
    """The method of the original, which no other class has."""
    seen = []

    class Logged(tfls.contrib.mixed_precision.LossScaleOptimizer):
        def _down_scale(self, grads_vars: Any, loss_scale: Any) -> Any:
            seen.append([float(gradient.numpy()[0]) for gradient, _ in grads_vars])
            return [(gradient / 4.0, variable) for gradient, variable in grads_vars]

    with support.eager():
        manager = tfls.contrib.mixed_precision.FixedLossScaleManager(8.0)
        variable = tf.compat.v2.Variable([1.0])
        optimizer = Logged(sgd(), manager)
        ((gradient, _),) = optimizer.compute_gradients(lambda: variable * 3.0, [variable])
        assert (seen, gradient.numpy().tolist()) == ([[24.0]], [6.0])


@pytest.mark.parametrize("in_class", [True, False])
def test_a_method_that_a_program_replaces_in_our_class_is_called(in_class: bool, monkeypatch: Any):
    v1 = tfls.compat.v1.train.experimental.MixedPrecisionLossScaleOptimizer
    own, calls = v1._scale_grad, []

    def replacement(self: Any, grad: Any, reciprocal: Any) -> Any:
        calls.append(float(reciprocal))
        return own(self, grad, reciprocal)

    with support.eager():
        variable = tf.compat.v2.Variable([1.0])
        optimizer = v1(sgd(), 8.0)
        if in_class:
            monkeypatch.setattr(v1, "_scale_grad", replacement)
        else:
            optimizer._scale_grad = types.MethodType(replacement, optimizer)
        optimizer.minimize(lambda: variable * 3.0, var_list=[variable])
        assert (calls, variable.numpy().tolist()) == ([0.125], [-0.5])


def keras_classes() -> List[Any]:
    mixed_precision = tfls.keras.mixed_precision
    return [mixed_precision.LossScaleOptimizer, mixed_precision.experimental.LossScaleOptimizer]


either = pytest.mark.parametrize("cls", keras_classes(), ids=["final", "experimental"])


def in_programs(cls: Any, name: str) -> Dict[str, Callable[[], Any]]:
    """The ways in which a program makes a class with a method of this name."""

    def method(self: Any, *args: Any) -> Any:
        return None

    mixin = type("Mixin", (), {name: method})
    return {
        "statement": lambda: types.new_class(
            "Mine", (cls,), {}, lambda body: body.update({name: method})
        ),
        "call": lambda: type(cls)("Mine", (cls,), {name: method}),
        "mixin": lambda: types.new_class("Mine", (mixin, cls)),
        "below": lambda: types.new_class("Mine", (mixin, types.new_class("Own", (cls,)))),
    }


REFUSED = {
    hook
    for kind in ("legacy", "new", recorded.default_kind())
    for hook in PRIVATE_HOOKS[kind]
    if hook.instead and has(hook.first)
}


@pytest.mark.parametrize("hook", sorted(REFUSED), ids=lambda hook: hook.name)
@either
def test_an_override_that_nothing_calls_is_refused(cls: Any, hook: Any):
    for way, make in in_programs(cls, hook.name).items():
        with pytest.raises(TypeError) as caught:
            make()
        text = str(caught.value)
        assert text.startswith(f"Mine overrides {hook.name}(), which "), way
        assert text.endswith(f"does not call: {hook.instead}."), way


@either
def test_other_methods_are_not_refused(cls: Any):
    called = {hook.name for hooks in PRIVATE_HOOKS.values() for hook in hooks if not hook.instead}
    later = {"check_finite"} if recorded.default_kind() != "keras3" else set()
    refused = {hook.name for hook in REFUSED}  # one can have the name of a method of a v1 class
    for name in {*called, *later, "_scale", "apply"} - refused:
        for make in in_programs(cls, name).values():
            make()


@pytest.mark.skipif(
    recorded.default_kind() == "keras3" or "keras3" not in {kind.name for kind in recorded.kinds()},
    reason="there is one Keras, or the class statement is refused already",
)
def test_a_method_of_keras_3_is_refused_where_its_optimizers_are_used():
    """A class that wraps optimizers of Keras 2 may have a method of the same name."""
    (kind,) = [kind for kind in recorded.kinds() if kind.name == "keras3"]
    cls = keras_classes()[0]

    class Mine(cls):  # type: ignore[misc,valid-type]
        def check_finite(self, grads: Any) -> bool:
            return True

    Mine(tf.keras.optimizers.SGD())
    with pytest.raises(TypeError, match="Mine overrides check_finite"):
        Mine(kind.optimizers.SGD())


class Applied(NamedTuple):
    """What `_apply_gradients` was called with."""

    gradients: List[float]
    variables: int
    count: int


def overriding(cls: Any, count: int, seen: List[Applied]) -> Any:
    """A subclass whose `_apply_gradients` has the arguments of some version, or any number (0)."""

    def apply(self: Any, grads: Any, wrapped_vars: Any, *last: Any) -> Any:
        values = [float(gradient.numpy()) for gradient in grads]
        seen.append(Applied(values, len(wrapped_vars.value), 2 + len(last)))
        return super(Mine, self)._apply_gradients(grads, wrapped_vars, *last)

    overrides: Dict[int, Any] = {
        0: apply,
        2: lambda self, grads, wrapped_vars: apply(self, grads, wrapped_vars),
        3: lambda self, grads, wrapped_vars, name: apply(self, grads, wrapped_vars, name),
        4: lambda self, grads, wrapped_vars, name, experimental_aggregate_gradients: apply(
            self, grads, wrapped_vars, name, experimental_aggregate_gradients
        ),
    }
    Mine: Any = type("Mine", (cls,), {"_apply_gradients": overrides[count]})
    return Mine


def wrapped(subject, cls: Any) -> Any:
    """A subclass of the class of a subject, around SGD, with a dynamic loss scale."""
    inner = subject.inner("SGD", learning_rate=0.5)
    return cls(inner, "dynamic") if subject.api == "experimental" else cls(inner)


ours = pytest.mark.parametrize("subject", recorded.ours(), ids=str)


@pytest.mark.parametrize("count", [0, 2, 3, 4])
@ours
def test_overrides_for_other_versions_are_called(subject, count: int):
    """`_apply_gradients` had three arguments in 1.15, four in 2.2 to 2.4, then three, or two."""
    seen: List[Applied] = []
    with support.eager():
        optimizer = wrapped(subject, overriding(subject.cls, count, seen))
        variable = recorded.make_variable(subject.kind, 1.0, "v")
        for value in (1.0, 2.0, float("inf")):
            optimizer.apply_gradients([(tf.constant(value), variable)])
        assert recorded.number(variable) == 1.0 - 0.5 * 1.0 - 0.5 * 2.0
    usual = {"legacy": 4 if (2, 2) <= recorded.TF < (2, 5) else 3}.get(subject.kind.name, 2)
    assert seen == [Applied([value], 1, count or usual) for value in (1.0, 2.0)]


@ours
def test_an_override_of_compute_gradients_is_called_by_minimize(subject):
    """That of `OptimizerV2`, also where the optimizer has another method in its place."""
    cls = subject.cls

    class Doubled(cls):  # type: ignore[misc,valid-type]
        def _compute_gradients(
            self, loss: Any, var_list: Any, grad_loss: Any = None, **kwargs: Any
        ) -> Any:
            pairs = super()._compute_gradients(loss, var_list, grad_loss, **kwargs)
            return [(gradient * 2.0, variable) for gradient, variable in pairs]

    with support.eager():
        optimizer = wrapped(subject, Doubled)
        variable = recorded.make_variable(subject.kind, 1.0, "v")
        optimizer.minimize(lambda: recorded.gradient_source(variable) * 1.0, [variable])
        assert recorded.number(variable) == 0.0


ORIGINALS = recorded.originals() if (2, 2) <= recorded.TF <= (2, 7) else []


@pytest.mark.parametrize("subject", [*ORIGINALS, *recorded.ours()], ids=str)
def test_an_override_of_the_strategy_check_is_called(subject):
    """As programs did it for the strategies that the class refuses, up to TensorFlow 2.7."""
    strategy = tf.distribute.experimental.CentralStorageStrategy(["cpu:0"])
    allowed = type("Allowed", (subject.cls,), {"_raise_if_strategy_unsupported": lambda self: None})
    with support.eager(), strategy.scope():
        if recorded.TF >= (2, 2):
            with pytest.raises(ValueError, match="CentralStorageStrategy"):
                wrapped(subject, subject.cls)
        assert float(recorded.scale_of(wrapped(subject, allowed))) == 2.0**15
