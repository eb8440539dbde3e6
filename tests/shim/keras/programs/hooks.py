"""Logs which methods of an inner optimizer each step calls: `hooks.py SUBJECT...`, prints JSON.

The recording class is made from the optimizer's class, not written method by method: every public
method and every protected one that has a docstring, whatever class defines it, is logged and then
called. So a method that a later TensorFlow adds is logged, too. Steps are taken by one replica, and
by two on logical CPU devices.
"""

import inspect
import json
import sys
from typing import Any, Callable, Dict, List, Sequence

import numpy as np
import recorded
import replicas
import tensorflow as tf
from processes import LONG

from tf_lossscale._versions.replicas import replica_id

# First: a TensorFlow 1.15 that was asked for its devices before is not eager within functions.
tf.compat.v1.enable_v2_behavior()
TWO = replicas.mirrored(2)

X = np.ones((2, 1), "float32")
Y = np.zeros((2, 1), "float32")
LOSS_SCALE = 8.0


class Log:
    """The calls, one list for each replica, in the order in which they begin."""

    def __init__(self):
        self.calls: Dict[str, List[str]] = {}

    def add(self, call: str):
        who = "all"
        if tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context():
            who = f"replica {replica_id()}"
        self.calls.setdefault(who, []).append(call)


def probed(cls: Any) -> List[str]:
    """The methods to record."""
    found = []
    for name in dir(cls):
        if name.startswith("__"):
            continue
        method = inspect.getattr_static(cls, name)
        if not inspect.isfunction(method):
            continue
        if name.startswith("_") and not any(
            name in vars(base) and inspect.getdoc(vars(base)[name])
            for base in cls.__mro__
            if base.__module__.split(".")[0] in ("keras", "tf_keras")
            or ".keras." in base.__module__
        ):
            continue
        found.append(name)
    return found


def recording(cls: Any, log: Log) -> Any:
    """A subclass of `cls` that logs its calls."""

    def recorder(name: str) -> Callable[..., Any]:
        signature = inspect.signature(getattr(cls, name))

        @tf.autograph.experimental.do_not_convert
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            log.add(describe(name, signature, (self, *args), kwargs))
            return getattr(super(Recording, self), name)(*args, **kwargs)

        return method

    Recording = type(cls.__name__, (cls,), {name: recorder(name) for name in probed(cls)})
    return Recording


def describe(name: str, signature: Any, args: Any, kwargs: Dict[str, Any]) -> str:
    """`method(argument, flag=True, pairs[2])`: names of arguments, values of flags, pairs.

    After `apply_gradients`, which programs override, are the arguments that are passed by name.
    """
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return f"{name}(cannot be called like this: {sorted(kwargs)})"
    shown = []
    for argument, value in list(bound.items())[1:]:
        if isinstance(value, dict) and argument == "kwargs":
            shown += [f"{key}={value[key]!r}" for key in sorted(value)]
        elif value is None or isinstance(value, (bool, str)):
            shown.append(f"{argument}={value!r}")
        elif isinstance(value, (list, tuple)):
            shown.append(f"{argument}[{len(value)}]")
        else:
            shown.append(argument)
    by_name = f" {sorted(kwargs)}" if name == "apply_gradients" else ""
    return f"{name}({', '.join(shown)}){by_name}"


def make(subject, log: Log, inner: str) -> Any:
    cls = recording(getattr(subject.kind.optimizers, inner), log)
    return subject.dynamic(cls(0.5), LOSS_SCALE, 100)


def scaled_ones(subject, optimizer: Any, count: int) -> List[Any]:
    if subject.kind.name != "keras3":
        return [no_constant(1.0)] * count
    optimizer.scale_loss(tf.constant(1.0))
    return [no_constant(LOSS_SCALE)] * count


def no_constant(value: float) -> Any:
    """A conditional on a constant would be decided when the graph is built."""
    return tf.random.uniform([], value, value, seed=1)


def apply_gradients(subject, optimizer: Any, variables: Any, **arguments: Any):
    gradients = scaled_ones(subject, optimizer, len(variables))
    optimizer.apply_gradients(list(zip(gradients, variables)), **arguments)


def minimize(subject, optimizer: Any, variables: Any, with_tape: bool):
    def loss() -> Any:
        return sum(tf.square(variable) for variable in variables)

    if with_tape:
        with tf.GradientTape() as tape:
            value = loss()
        optimizer.minimize(value, variables, tape=tape)
    else:
        optimizer.minimize(loss, variables)


STEPS: Dict[str, Callable[..., None]] = {
    "apply_gradients": apply_gradients,
    "apply_gradients, name": lambda *a: apply_gradients(*a, name="step"),
    "apply_gradients, not aggregated": lambda *a: apply_gradients(
        *a, experimental_aggregate_gradients=False
    ),
    "apply_gradients, skip_gradients_aggregation": lambda *a: apply_gradients(
        *a, skip_gradients_aggregation=True
    ),
    "apply_gradients, bad": lambda s, o, v: o.apply_gradients(
        [(scaled_ones(s, o, 1)[0] * float("nan"), v[0]), (None, v[1])]
    ),
    "apply_gradients, None": lambda s, o, v: o.apply_gradients(
        [(scaled_ones(s, o, 1)[0], v[0]), (None, v[1])]
    ),
    "apply_gradients, empty": lambda s, o, v: apply_gradients(s, o, []),
    "minimize, callable": lambda *a: minimize(*a, with_tape=False),
    "minimize, tensor": lambda *a: minimize(*a, with_tape=True),
    "apply": lambda s, o, v: o.apply(scaled_ones(s, o, len(v)), v),
}


def raised(error: Exception) -> Dict[str, Any]:
    return {"raises": [type(error).__name__, str(error)[:200]]}


def run_step(subject, step: str, mode: str, inner: str) -> Dict[str, Any]:
    log = Log()
    strategy = TWO if mode.startswith("two") else tf.distribute.get_strategy()
    with strategy.scope():
        optimizer = make(subject, log, inner)
        variables = [recorded.make_variable(subject.kind, 1.0, name) for name in "vw"]
        if subject.kind.name == "keras3":
            # The original makes variables at its first step, and so a function is traced twice.
            optimizer.build(variables)

    def one():
        STEPS[step](subject, optimizer, variables)

    def everywhere():
        replicas.run(strategy, one) if mode.startswith("two") else one()

    log.calls.clear()
    try:
        if mode.endswith("function"):
            tf.function(everywhere, autograph=False)()
        else:
            everywhere()
            everywhere()
    except Exception as error:
        return raised(error)
    values = [
        float(recorded.number(recorded.gradient_source(getattr(variable, "primary", variable))))
        for variable in variables
    ]
    log.calls["weights"] = [str(value) for value in values]
    return log.calls


def run_fit(subject, mode: str, inner: str) -> Dict[str, Any]:
    keras = subject.kind.keras
    log = Log()
    keras.backend.clear_session()
    strategy = TWO if mode.startswith("two") else tf.distribute.get_strategy()
    with strategy.scope():
        inputs = keras.layers.Input((1,))
        layer = keras.layers.Dense(1, kernel_initializer="ones")
        model = keras.Model(inputs, layer(inputs))
        optimizer = make(subject, log, inner)
        model.compile(optimizer, "mse", run_eagerly=mode.endswith("eager"))
    log.calls.clear()
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(2)
    try:
        model.fit(data, epochs=1, verbose=0)
    except Exception as error:
        return raised(error)
    log.calls["weights"] = [
        str(value) for weight in model.get_weights() for value in weight.ravel()
    ]
    return log.calls


MODES = ("eager", "function", "two, eager", "two, function")
FITS = ("graph", "eager", "two, graph", "two, eager")

# Steps that differ from others in an argument only, which the mode does not change.
ARGUMENTS = ("apply_gradients, name", "apply_gradients, skip_gradients_aggregation")
# Those that the quick tests take in every mode: the decision about a step depends on it.
EVERY_MODE = ("apply_gradients, bad",)
IN_A_FUNCTION = ("apply_gradients",)
# Those that they take in one: replicas make no difference to how gradients are computed.
ONE_MODE = (
    *("apply_gradients, None", "apply_gradients, empty"),
    *("minimize, callable", "minimize, tensor"),
)
QUICK = ("eager", "two, eager"), ("two, eager",)


def modes(step: str) -> Sequence[str]:
    """How a step is taken."""
    if step in ARGUMENTS:
        return MODES[:1]
    if LONG or step in EVERY_MODE:
        return MODES
    if step in IN_A_FUNCTION:
        return ("eager", "two, function")
    return QUICK[0][:1] if step in ONE_MODE else QUICK[0]


def run(subject) -> Dict[str, Any]:
    """Takes every step; which of them raise, and why, is a table of the test."""
    found: Dict[str, Any] = {}
    for step in STEPS:
        for mode in modes(step):
            inner = "Adam" if mode == "two, eager" else "SGD"
            found[f"{step}; {mode}"] = run_step(subject, step, mode, inner)
    for mode in FITS if LONG else QUICK[1]:
        found[f"fit; {mode}"] = run_fit(subject, mode, "Adam")
    return found


def main():
    subjects = {str(subject): subject for subject in recorded.ours() + recorded.originals()}
    print(json.dumps({name: run(subjects[name]) for name in sys.argv[1:]}))


if __name__ == "__main__":
    main()
