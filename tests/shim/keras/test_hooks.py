"""Each step calls the same methods of the inner optimizer as the original, in the same order.

`programs/hooks.py` records the calls: with which arguments, which values of flags, and how many
pairs. What differs on purpose is in `DIFFERENCES`, and in docs/known-differences.md.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import numpy as np
import processes
import pytest
import recorded
import tensorflow as tf

import tf_lossscale as tfls

Calls = Dict[str, List[str]]
LossScaleOptimizer = tfls.keras.mixed_precision.LossScaleOptimizer


def over(*names: str) -> Any:
    """The kinds of these names that are installed."""
    kinds = [kind for kind in recorded.kinds() if kind.name in names]
    return pytest.mark.parametrize("kind", kinds, ids=[kind.name for kind in kinds])


class Difference(NamedTuple):
    """A difference on purpose.

    Attributes:
      reason: why it is there.
      subjects: in which logs of the original.
      steps: in which steps.
      rewrite: what is left of a log to be compared.
    """

    reason: str
    subjects: Callable[[str], bool]
    steps: Callable[[str], bool]
    rewrite: Callable[[Calls], Calls]


def pairs_with_gradient(calls: Calls) -> Calls:
    old, new = (f"apply_gradients(grads_and_vars[{count}]" for count in (2, 1))
    return {who: [call.replace(old, new) for call in made] for who, made in calls.items()}


def without(*starts: str) -> Callable[[Calls], Calls]:
    """Leaves out the calls that begin so, and replicas that made no others."""

    def rewrite(calls: Calls) -> Calls:
        kept = {
            who: [call for call in made if not call.startswith(starts)]
            for who, made in calls.items()
        }
        return {who: made for who, made in kept.items() if made}

    return rewrite


DIFFERENCES: List[Difference] = [
    Difference(
        "on Keras 3 the original skips an override of apply_gradients, and only calls apply",
        lambda subject: subject.endswith("-keras3"),
        lambda step: True,
        without("apply_gradients("),
    ),
    Difference(
        "K6: on 1.15 the original does not count a skipped step",
        lambda subject: recorded.TF < (2, 2),
        lambda step: "bad" in step,
        without("add_weight(name='iter'"),
    ),
    Difference(
        "2.11 to 2.13 do not build the inner optimizer before its step; later versions do",
        lambda subject: subject.endswith("-new") and recorded.TF < (2, 14),
        lambda step: True,
        without("build(", "_build_index_dict(", "_var_key(", "add_variable_from_reference("),
    ),
    Difference(
        "K16: ours passes no empty list to the newer optimizers, of which some cannot take it",
        lambda subject: subject.endswith("-new"),
        lambda step: "empty" in step,
        without("aggregate_gradients(", "apply_gradients(", "build("),
    ),
    Difference(
        "up to 2.4 pairs without a gradient reach apply_gradients of the inner optimizer",
        lambda subject: recorded.TF < (2, 5),
        lambda step: "bad" in step or "None" in step,
        pairs_with_gradient,
    ),
]


class Refusal(NamedTuple):
    """Steps that the original cannot take, so that there is no log to be compared with.

    Attributes:
      reason: why it cannot.
      error: the type of its error, and a part of the message.
      subjects: which originals.
      steps: which steps.
      ours: what ours does: takes the step, or the type of its error if that is another one.
    """

    reason: str
    error: Tuple[str, str]
    subjects: Callable[[str], bool]
    steps: Callable[[str], bool]
    ours: str = ""


REFUSALS: List[Refusal] = [
    Refusal(
        "only Keras 3 has the method",
        ("AttributeError", "has no attribute 'apply'"),
        lambda subject: not subject.endswith("-keras3"),
        lambda step: step.startswith("apply;"),
    ),
    Refusal(
        "Keras 3 does not have this method of Keras 2; ours does",
        ("AttributeError", "has no attribute 'minimize'"),
        lambda subject: subject.endswith("-keras3"),
        lambda step: step.startswith("minimize"),
        ours="takes it",
    ),
    Refusal(
        "Keras 3 does not have these arguments of Keras 2; ours does",
        ("TypeError", "got an unexpected keyword argument"),
        lambda subject: subject.endswith("-keras3"),
        lambda step: (
            step
            in (
                "apply_gradients, name; eager",
                "apply_gradients, not aggregated; eager",
                "apply_gradients, not aggregated; function",
                "apply_gradients, skip_gradients_aggregation; eager",
            )
        ),
        ours="takes it",
    ),
    Refusal(
        "and the recording class, which overrides all there is, adds gradients up itself",
        ("TypeError", "got an unexpected keyword argument"),
        lambda subject: subject.endswith("-keras3"),
        lambda step: step.startswith("apply_gradients, not aggregated; two"),
        ours="ValueError",
    ),
    Refusal(
        "K16: from 2.14 on, the originals of the newer kinds cannot take an empty list",
        ("ValueError", "not enough values to unpack"),
        lambda subject: not subject.endswith("-legacy") and recorded.TF >= (2, 14),
        lambda step: "empty" in step,
        ours="takes it",
    ),
    Refusal(
        "for no gradients, a function on replicas returns an operation, which is no value",
        ("TypeError", "Could not build a TypeSpec"),
        lambda subject: subject.endswith("-legacy") and recorded.TF >= (2, 0),
        lambda step: step == "apply_gradients, empty; two, function",
        ours="takes it",
    ),
    Refusal(
        "TensorFlow 1.15 cannot merge the calls of replicas that pass no gradients",
        ("IndexError", "list index out of range"),
        lambda subject: recorded.TF < (2, 0),
        lambda step: step.startswith("apply_gradients, empty; two"),
    ),
    Refusal(
        "an argument of the newer Keras 2 optimizers, TensorFlow 2.11 and later",
        ("TypeError", "skip_gradients_aggregation"),
        lambda subject: subject.endswith("-legacy"),
        lambda step: "skip_gradients_aggregation" in step,
    ),
    Refusal(
        "an argument of TensorFlow 2.2 and later; ours takes it everywhere",
        ("TypeError", "experimental_aggregate_gradients"),
        lambda subject: recorded.TF < (2, 2),
        lambda step: "not aggregated" in step,
        ours="takes it",
    ),
    Refusal(
        "an argument of TensorFlow 2.4 and later; ours takes it everywhere",
        ("TypeError", "tape"),
        lambda subject: recorded.TF < (2, 4),
        lambda step: "minimize, tensor" in step,
        ours="takes it",
    ),
]


def pairs() -> List[Tuple[str, str]]:
    """The original and our class, for each kind of inner optimizer."""
    found = []
    for subject in recorded.originals():
        if subject.api == "experimental" and recorded.TF >= (2, 4):
            continue  # the same steps as the final one
        found.append((str(subject), str(subject.counterpart())))
    return found


PAIRS = pairs()


@pytest.fixture(scope="module")
def logs(request: Any) -> Dict[str, Any]:
    subjects = [subject for pair in recorded.chosen(request, "pair") for subject in pair]
    return processes.run_program("keras/programs/hooks.py", *subjects, timeout=1500, keras=True)


@pytest.mark.slow
@pytest.mark.by_value("pair")
@pytest.mark.parametrize("pair", PAIRS, ids=[original for original, _ in PAIRS])
def test_the_inner_optimizers_methods_are_called(logs: Dict[str, Any], pair: Any):
    original, ours = (logs[subject] for subject in pair)
    assert set(original) == set(ours)
    works = {step: calls for step, calls in original.items() if "raises" not in calls}
    for step, calls in works.items():
        own = ours[step]
        for difference in DIFFERENCES:
            if difference.subjects(pair[0]) and difference.steps(step):
                calls, own = difference.rewrite(calls), difference.rewrite(own)
        assert own == calls, step
    # The log is made from the class: it has also what only some kinds of optimizers call.
    called = {"legacy": "apply_gradients(", "new": "aggregate_gradients(", "keras3": "update_step("}
    assert called[pair[0].rpartition("-")[2]] in str(works)


@pytest.mark.slow
@pytest.mark.by_value("pair")
@pytest.mark.parametrize("pair", PAIRS, ids=[original for original, _ in PAIRS])
def test_no_step_is_left_out_without_a_reason(logs: Dict[str, Any], pair: Any):
    """Steps that the original cannot take are in `REFUSALS`, and each row of it is needed."""
    original, ours = (logs[subject] for subject in pair)
    rows = [refusal for refusal in REFUSALS if refusal.subjects(pair[0])]
    expected = {step: row for row in rows for step in original if row.steps(step)}
    raising = {step for step, calls in original.items() if "raises" in calls}
    assert raising == set(expected), {step: original[step] for step in raising ^ set(expected)}
    for step, row in expected.items():
        name, message = original[step]["raises"]
        assert (name, row.error[1] in message) == (row.error[0], True), (step, message)
        if row.ours == "takes it":
            assert "raises" not in ours[step], step
        else:
            assert ours[step]["raises"][0] == (row.ours or name), step


HOOKS: Dict[str, List[str]] = {
    "legacy": ["apply_gradients"],
    "new": ["aggregate_gradients", "apply_gradients", "_clip_gradients"],
    "keras3": ["apply", "apply_gradients", "_backend_update_step", "_clip_gradients"],
}
if recorded.TF >= (2, 2):
    HOOKS["legacy"].append("_aggregate_gradients")
if recorded.TF >= (2, 4):
    HOOKS["legacy"] += ["_transform_gradients", "gradient_aggregator", "gradient_transformers"]
ARGUMENTS = ("gradient_aggregator", "gradient_transformers")
CHANGED_BEFORE = ("apply", "apply_gradients", "_backend_update_step")  # others: what they return


def hooked(kind: Any, change: Callable[[Any], Any], where: str, **options: Any) -> Any:
    """An inner optimizer that changes gradients in one way; it overrides the other methods, too."""

    def changed(gradients: Any) -> Any:
        """Gradients, or pairs with their variables."""
        return [
            (change(gradient[0]), gradient[1]) if isinstance(gradient, tuple) else change(gradient)
            for gradient in gradients
        ]

    if where in ARGUMENTS:
        options[where] = changed if where == "gradient_aggregator" else [changed]

    def override(name: str) -> Any:
        def method(self: Any, gradients: Any, *args: Any, **kwargs: Any) -> Any:
            if name == where and name in CHANGED_BEFORE:
                gradients = changed(gradients)
            result = getattr(super(Hooked, self), name)(gradients, *args, **kwargs)
            return changed(result) if name == where and name not in CHANGED_BEFORE else result

        return method

    methods = {name: override(name) for name in HOOKS[kind.name] if name not in ARGUMENTS}
    Hooked: Any = type("Hooked", (kind.optimizers.SGD,), methods)
    return Hooked(0.5, **options)


def apply(optimizer: Any, kind: Any, gradient: Any, variable: Any):
    if kind.name == "keras3":
        optimizer.scale_loss(tf.constant(1.0))
        optimizer.apply([gradient * optimizer.loss_scale], [variable])
    else:
        optimizer.apply_gradients([(gradient, variable)])


IN_FUNCTION = pytest.mark.parametrize("in_function", [False, True], ids=["eager", "function"])


def stepper(optimizer: Any, kind: Any, gradient: Any, variable: Any, in_function: bool) -> Any:
    """A function that applies what `gradient` gives then."""
    if kind.name == "keras3":
        optimizer.build([variable])

    def step():
        apply(optimizer, kind, gradient(), variable)

    return tf.function(step, autograph=False) if in_function else step


def ones() -> Any:
    return tf.ones([])


def rows_after_changes(subject, where: str, in_function: bool) -> List[Any]:
    """The state after three steps; a hook makes the finite gradient of the second infinite."""
    kind = subject.kind
    factor = tf.compat.v2.Variable(2.0)
    inner = hooked(kind, lambda gradient: gradient * factor, where)
    optimizer = subject.dynamic(inner, 8.0)
    variable = recorded.make_variable(kind, 1.0, "v")
    if kind.name == "keras3":
        optimizer.build([variable])

    def step():
        subject.step(optimizer, [variable], [tf.ones([])])

    run = tf.function(step, autograph=False) if in_function else step
    rows = []
    for value in (2.0, float("inf"), 2.0):
        factor.assign(value)
        run()
        state = subject.read(optimizer)
        # Up to Keras 3.7, Keras's class counts in a variable that it does not return.
        seen = state[:-1] if kind.name == "keras3" else state
        rows.append((recorded.number(variable), *seen))
    return rows


ORIGINALS = [
    subject
    for subject in recorded.originals()
    if subject.api != "experimental" or recorded.TF < (2, 4)
]


@pytest.mark.parametrize(
    ("original", "where"),
    [
        pytest.param(original, where, id=f"{original}-{where}")
        for original in ORIGINALS
        for where in HOOKS[original.kind.name]
        # Keras 3's class skips an override of apply_gradients; ours calls it.
        if not (original.kind.name == "keras3" and where == "apply_gradients")
    ],
)
@IN_FUNCTION
def test_what_a_hook_makes_of_finite_gradients_is_applied(
    original: Any, where: str, in_function: bool
):
    """As by the original, which tests the gradients before the inner optimizer gets them."""
    expected = rows_after_changes(original, where, in_function)
    found = rows_after_changes(original.counterpart(), where, in_function)
    assert repr(found) == repr(expected)  # NaN equals NaN
    assert found[0][0] == 0.0  # changed once


def takes(optimizer: Any, kind: Any, way: str):
    """One step, or an epoch of one."""
    variable = recorded.make_variable(kind, 1.0, "v")
    if way == "apply":
        apply(optimizer, kind, tf.ones([]), variable)
    elif way == "minimize":
        optimizer.minimize(lambda: variable * 1.0, [variable])
    elif way == "fit":
        model = kind.keras.Sequential([kind.keras.layers.Dense(1)])
        model.compile(optimizer, "mse", run_eagerly=True)
        model.fit(np.ones((2, 1)), np.ones((2, 1)), verbose=0)
    else:
        optimizer.get_unscaled_gradients([optimizer.get_scaled_loss(tf.ones([]))])
        optimizer.apply_gradients([(tf.ones([]), variable)])


@pytest.mark.parametrize("way", ["apply", "apply_gradients", "minimize", "fit"])
@over("new", "keras3")
@pytest.mark.parametrize("api", ["final", "experimental"])
def test_an_override_for_keras_2_is_called_once_by_each_step(api: str, kind: Any, way: str):
    """As a program of Keras 2 expects; without a wrapper, `fit` of Keras 3 does so as well."""
    calls = []

    class AllReduce(kind.optimizers.SGD):
        def apply_gradients(self, grads_and_vars: Any, **kwargs: Any) -> Any:
            pairs = list(grads_and_vars)
            calls.append([gradient is not None for gradient, _ in pairs])
            return super().apply_gradients(pairs, **kwargs)

    takes(recorded.Subject(kind, api, "ours").dynamic(AllReduce(0.5)), kind, way)
    assert calls == [[True] * (2 if way == "fit" else 1)]


def defining(kind: Any, *names: str) -> Any:
    def method(self: Any, *args: Any) -> Any:
        raise NotImplementedError

    return type("Hooked", (kind.optimizers.SGD,), dict.fromkeys(names, method))


def reported(log: List[str]) -> List[str]:
    return [message.partition(",")[0] for message in log if " defines " in message]


@over("legacy", "new", "keras3")
def test_a_hook_that_is_never_called_is_reported(kind: Any, log: List[str]):
    for old in ("_aggregate_gradients", "_resource_apply_dense", "_compute_gradients"):
        LossScaleOptimizer(defining(kind, "apply_gradients", old)(0.5))
        assert reported(log) == ([] if kind.name == "legacy" else [f"Hooked defines {old}"])
        log.clear()
    # Classes for both kinds, and Keras's own.
    own = {"legacy": "_aggregate_gradients", "new": "aggregate_gradients", "keras3": "apply"}
    LossScaleOptimizer(defining(kind, "_aggregate_gradients", own[kind.name])(0.5))
    LossScaleOptimizer(kind.optimizers.Adam(0.5))
    assert reported(log) == []


@pytest.mark.parametrize(
    "name", ["get_scaled_loss", "get_unscaled_gradients", "minimize", "_compute_gradients"]
)
@over("keras3")
def test_a_method_that_fit_on_keras_3_never_calls_is_reported(kind: Any, name: str, log: List[str]):
    inner = kind.optimizers.SGD
    public: Any = tfls.keras.mixed_precision.experimental.LossScaleOptimizer
    base: Any = type(public(inner(), 8.0))  # derived from the public one, if tf.keras is tf_keras

    def method(self: Any, *args: Any) -> Any:
        return getattr(base, name)(self, *args)

    for used in (base(inner(), 8.0), type("Both", (base,), {name: method, "apply": base.apply})):
        optimizer = used if not isinstance(used, type) else used(inner(), 8.0)
        optimizer.scale_loss(tf.constant(1.0))
        base.get_scaled_loss(optimizer, tf.constant(1.0))
    assert reported(log) == []
    subclass = type("Mine", (base,), {name: method})(inner(), 8.0)
    patched = base(inner(), 8.0)
    setattr(patched, name, lambda *args: None)
    for optimizer in (subclass, patched):
        optimizer.scale_loss(tf.constant(1.0))
        optimizer.scale_loss(tf.constant(1.0))
    assert reported(log) == [f"Mine defines {name}", f"{base.__name__} defines {name}"]


@over("keras3")
def test_an_override_that_fit_on_keras_3_passes_scaled_gradients_is_reported(
    kind: Any, log: List[str]
):
    base: Any = type(LossScaleOptimizer(kind.optimizers.SGD(), False, 8.0))
    norms: List[float] = []

    class Mine(base):
        def apply_gradients(self, pairs: Any, **kwargs: Any) -> Any:
            pairs = list(pairs)
            norms.append(float(pairs[0][0]))
            return super().apply_gradients(pairs, **kwargs)

    variable = tf.Variable(1.0)
    optimizer = Mine(kind.optimizers.SGD(0.5), False, 8.0)
    with tf.GradientTape() as tape:  # as `fit` does
        loss = optimizer.scale_loss(variable * 1.0)
    optimizer.apply_gradients([(tape.gradient(loss, variable), variable)])
    assert norms == [8.0]
    assert float(variable.numpy()) == 0.5
    assert reported(log) == ["Mine defines apply_gradients"]
