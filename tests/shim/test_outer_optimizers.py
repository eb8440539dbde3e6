"""No optimizer around ours can make a step without the loss scale, as around TensorFlow's class.

Such an optimizer calls methods of the optimizer inside it. Those that update variables raise an
error; the others work, as they do on TensorFlow's class.
"""

import inspect
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

import numpy as np
import pytest
import recorded
import support
import tensorflow as tf

from tf_lossscale._versions.update_methods import UPDATE_METHODS

tf1 = tf.compat.v1
INFINITE = float("inf")
KINDS = {kind.name: kind for kind in recorded.kinds()}


def optimizer_of(kind: Any, name: str = "SGD", **options: Any) -> Any:
    cls = getattr(kind.optimizers, name)
    return cls(0.5, **options)


def built(inner: Any, variables: List[Any]) -> Any:
    """Creates the slots of an optimizer."""
    if hasattr(inner, "build"):
        inner.build(variables)
    else:
        inner._create_hypers()
        inner._create_slots(variables)
    return inner


# Every method of the optimizers, called on both classes.


def arguments(method: Any, variable: Any) -> Dict[str, Any]:
    """Arguments for a method, by the names of its parameters; a KeyError if one is not known."""
    gradient = tf.constant([1.0, INFINITE])
    strategy = tf.distribute.get_strategy()
    known = {
        "distribution": strategy,
        "grads_and_vars": [(gradient, variable)],
        "strategy": strategy,
        "hyper_name": "learning_rate",
        "i": tf.constant([0]),
        "indices": tf.constant([0, 1]),
        "initializer": "zeros",
        "learning_rate": 0.5,
        "loss": lambda: tf.reduce_sum(recorded.gradient_source(variable)),
        "name": "name",
        "slot_name": "m",
        "v": tf.constant([5.0]),
    }
    for name in ("grad", "gradient"):
        known[name] = gradient
    for name in ("grads", "acc_grads"):
        known[name] = [gradient]
    for name in ("handle", "model_variable", "var", "variable", "x"):
        known[name] = variable
    for name in ("trainable_variables", "variables", "var_list"):
        known[name] = [variable]
    found = {}
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        is_optional = parameter.default is not parameter.empty
        if parameter.name in known:
            found[parameter.name] = known[parameter.name]
        elif not is_optional and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            raise KeyError(parameter.name)
    return found


def methods_of(kind: Any) -> Iterator[str]:
    cls = kind.optimizers.Adam
    for name in sorted({name for base in cls.__mro__ for name in vars(base)}):
        method = inspect.unwrap(getattr(cls, name, None))
        if name.startswith("__") or not inspect.isfunction(method):
            continue
        try:
            arguments(method, None)
        except KeyError:
            continue
        yield name


class Outcome(NamedTuple):
    """What a call did: the type of the error, the variable, and the loss scale."""

    error: str
    variable: List[float]
    scale: float


def call(subject, name: str) -> Outcome:
    cls = subject.kind.optimizers.Adam
    decays = "weight_decay" in inspect.signature(cls.__init__).parameters
    inner = optimizer_of(subject.kind, "Adam", **({"weight_decay": 0.5} if decays else {}))
    variable = recorded.make_variable(subject.kind, [1.0, 2.0], "v")
    optimizer = subject.dynamic(built(inner, [variable]), 8.0, 2)
    if subject.kind.name == "keras3":
        optimizer.build([variable])
    error = ""
    try:
        getattr(optimizer, name)(**arguments(inspect.unwrap(getattr(cls, name)), variable))
    except Exception as raised:
        error = type(raised).__name__
    state = recorded.number(subject.scale_and_counter(optimizer)[0])
    return Outcome(error, np.asarray(variable.numpy()).tolist(), float(state))


ORIGINALS = [
    subject
    for subject in recorded.originals()
    if subject.api != "experimental" or recorded.TF < (2, 4)
]
UNCHANGED = [1.0, 2.0]


@pytest.mark.parametrize("subject", ORIGINALS, ids=str)
def test_no_method_updates_a_variable_that_does_not_with_the_original(subject):
    refused = set()
    with support.eager():
        for name in methods_of(subject.kind):
            found = call(subject.counterpart(), name)
            if found.error == "" and found.variable != UNCHANGED:
                original = call(subject, name)
                assert found.variable == original.variable, name
            if found.error == "NotImplementedError":
                refused.add(name)
                original = call(subject, name)
                assert (original.error != "", original.variable) == (True, UNCHANGED), name
    listed = set(UPDATE_METHODS[subject.kind.name])
    tried = set(methods_of(subject.kind))
    assert refused & listed == listed & tried
    assert len(refused & listed) >= 3


# What optimizers around another one do.


def average_legacy(kind: Any) -> Any:
    class Average(kind.optimizers.Optimizer):
        """Keeps a mean of each variable, as MovingAverage of tensorflow-addons does."""

        def __init__(self, inner: Any):
            super().__init__("Average")
            self._inner = inner

        def _create_slots(self, variables: Any):
            self._inner._create_slots(variables)
            for variable in variables:
                self.add_slot(variable, "mean")

        def _create_hypers(self):
            self._inner._create_hypers()

        def _prepare(self, variables: Any) -> Any:
            return self._inner._prepare(variables)

        def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any = None) -> Any:
            return self._inner._resource_apply_dense(grad, var, apply_state)

        def _resource_apply_sparse(
            self, grad: Any, var: Any, indices: Any, apply_state: Any = None
        ) -> Any:
            return self._inner._resource_apply_sparse(grad, var, indices, apply_state)

        def get_config(self) -> Dict[str, Any]:
            return {}

    return Average


def average_new(kind: Any) -> Any:
    class Average(kind.optimizers.Optimizer):
        """Passes each update on, for all Keras optimizers that have `update_step`."""

        def __init__(self, inner: Any):
            options = {"learning_rate": 0.5} if kind.name == "keras3" else {}
            super().__init__(name="Average", **options)
            self._learning_rate = getattr(self, "_learning_rate", 0.5)
            self._inner = inner

        def build(self, variables: Any):
            super().build(variables)
            self._inner.build(variables)

        def update_step(self, gradient: Any, variable: Any, *learning_rate: Any) -> Any:
            return self._inner.update_step(gradient, variable, *learning_rate)

        def get_config(self) -> Dict[str, Any]:
            return {}

    return Average


MAKE: Dict[str, Callable[[Any], Any]] = {
    "legacy": average_legacy,
    "new": average_new,
    "keras3": average_new,
}


def wrapped(subject) -> Any:
    return subject.dynamic(optimizer_of(subject.kind), 8.0)


every = pytest.mark.parametrize("subject", [*recorded.originals(), *recorded.ours()], ids=str)


def step_of(outer: Any, gradient: Any, variable: Any, in_function: bool):
    def step():
        outer.apply_gradients([(gradient, variable)])

    if hasattr(outer, "build"):
        outer.build([variable])
    (tf.function(step, autograph=False) if in_function else step)()


@pytest.mark.parametrize("in_function", [False, True], ids=["eager", "function"])
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@every
def test_updates_of_an_optimizer_outside_are_refused(subject, is_sparse: bool, in_function: bool):
    with support.eager():
        variable = recorded.make_variable(subject.kind, [1.0, 2.0], "v")
        scaled = wrapped(subject)
        outer = MAKE[subject.kind.name](subject.kind)(scaled)
        gradient: Any = tf.constant([1.0, INFINITE])
        if is_sparse:
            gradient = tf.IndexedSlices(gradient, tf.constant([0, 1]), tf.constant([2]))
        if is_sparse and subject.kind.name == "legacy":
            method = "_resource_apply_sparse"
        else:
            method = "update_step" if subject.kind.name != "legacy" else "_resource_apply_dense"
        with pytest.raises(Exception) as caught:
            step_of(outer, gradient, variable, in_function)
        assert np.asarray(variable.numpy()).tolist() == [1.0, 2.0]
    if subject.who == "ours":
        text = str(caught.value)
        assert f"{method}() of a loss-scale optimizer would apply gradients" in text
        assert "outside of it, as in LossScaleOptimizer(TheOtherOptimizer(SGD(...)))" in text


@pytest.mark.parametrize("subject", recorded.ours(), ids=str)
def test_what_the_message_says_to_write_works(subject):
    """The other way around: an overflow is skipped, and the scale halves."""
    with support.eager():
        variable = recorded.make_variable(subject.kind, [1.0, 2.0], "v")
        inner = MAKE[subject.kind.name](subject.kind)(optimizer_of(subject.kind))
        scaled = subject.dynamic(inner, 8.0)
        for value, expected in ((1.0, [0.5, 1.5]), (INFINITE, [0.5, 1.5]), (1.0, [0.0, 1.0])):
            scaled.apply_gradients([(tf.constant([1.0, value]), variable)])
            assert np.asarray(variable.numpy()).tolist() == expected
        assert float(recorded.scale_of(scaled)) == 4.0


@pytest.mark.parametrize("subject", recorded.ours(), ids=str)
def test_an_optimizer_outside_that_calls_apply_gradients_works(subject):
    """It sums two gradients, as those that accumulate do, and leaves the step to ours."""

    class Accumulating:
        def __init__(self, inner: Any):
            self.inner, self.sums = inner, None

        def apply_gradients(self, pairs: Any):
            gradients = [gradient for gradient, _ in pairs]
            if self.sums is None:
                self.sums = gradients
                return
            sums = [old + new for old, new in zip(self.sums, gradients)]
            self.sums = None
            self.inner.apply_gradients([(total, pair[1]) for total, pair in zip(sums, pairs)])

    with support.eager():
        variable = recorded.make_variable(subject.kind, [1.0], "v")
        scaled = wrapped(subject)
        outer = Accumulating(scaled)
        for value in (1.0, 1.0, 1.0, INFINITE):
            outer.apply_gradients([(tf.constant([value]), variable)])
        assert np.asarray(variable.numpy()).tolist() == [0.0]
        assert float(recorded.scale_of(scaled)) == 4.0


# Optimizers of TensorFlow 1.


class Outer(tf1.train.Optimizer):
    """Passes each update on."""

    def __init__(self, inner: Any):
        super().__init__(use_locking=False, name="Outer")
        self._inner = inner

    def _prepare(self):
        self._inner._prepare()

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return self._inner._apply_dense(grad, var)

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        return self._inner._resource_apply_dense(grad, handle)

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        return self._inner._resource_apply_sparse(grad, handle, indices)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._inner._apply_sparse(grad, var)


def v1_optimizers() -> Dict[str, Tuple[Callable[[], Any], Any]]:
    """What makes each, and the type of its error."""
    made: Dict[str, Tuple[Callable[[], Any], Any]] = {}
    for who in support.v1_namespaces():
        made[f"v1-{who}"] = (
            lambda who=who: support.v1_optimizer(support.sgd(), whose=who)[0],
            RuntimeError,
        )
    for who in support.contrib_namespaces():
        made[f"contrib-{who}"] = (
            lambda who=who: support.contrib_optimizer(support.sgd(), whose=who)[0],
            NotImplementedError,
        )
    return made


V1 = v1_optimizers()


@pytest.mark.parametrize("resource", [False, True], ids=["reference", "resource"])
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", list(V1))
def test_updates_of_a_v1_optimizer_outside_are_refused(name: str, is_sparse: bool, resource: bool):
    make, error = V1[name]
    with support.graph():
        variable = tf1.get_variable("v", initializer=[1.0, 2.0], use_resource=resource)
        loss = tf.reduce_sum(tf.gather(variable, [1]) if is_sparse else variable)
        with pytest.raises(error) as caught:
            Outer(make()).minimize(loss)
    assert type(caught.value) is error
    if name.endswith("-ours"):
        text = str(caught.value)
        assert "() of a loss-scale optimizer would apply gradients" in text
        assert "LossScaleOptimizer(TheOtherOptimizer(GradientDescentOptimizer(...)))" in text


@pytest.mark.parametrize("method", UPDATE_METHODS["v1"])
@pytest.mark.parametrize("name", [name for name in V1 if name.endswith("-ours")])
def test_a_v1_method_that_is_called_directly_is_refused(name: str, method: str):
    make, error = V1[name]
    with pytest.raises(error, match=r"never update the loss scale: call apply_gradients\(\)"):
        getattr(make(), method)(None, None)
