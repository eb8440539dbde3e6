"""Each step calls the same methods of the inner optimizer as the original, in the same order.

`programs/hooks.py` records the calls: with which arguments, which values of flags, and how many
pairs. What differs on purpose is in `DIFFERENCES`, and in docs/known-differences.md.
"""

import logging
import os
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np
import processes
import pytest
import recorded
import tensorflow as tf

import tf_lossscale as tfls

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "hooks.py")
Calls = Dict[str, List[str]]


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
    return {
        who: [
            each.replace("apply_gradients(grads_and_vars[2]", "apply_gradients(grads_and_vars[1]")
            for each in made
        ]
        for who, made in calls.items()
    }


def without_build(calls: Calls) -> Calls:
    building = ("build(", "_build_index_dict(", "_var_key(", "add_variable_from_reference(")
    return {
        who: [each for each in made if not each.startswith(building)] for who, made in calls.items()
    }


def without_count(calls: Calls) -> Calls:
    kept = {
        who: [each for each in made if not each.startswith("add_weight(name='iter'")]
        for who, made in calls.items()
    }
    return {who: made for who, made in kept.items() if made}


def without_apply_gradients(calls: Calls) -> Calls:
    return {
        who: [each for each in made if not each.startswith("apply_gradients(")]
        for who, made in calls.items()
    }


DIFFERENCES: List[Difference] = [
    Difference(
        "on Keras 3 the original skips an override of apply_gradients, and only calls apply",
        lambda subject: subject.endswith("-keras3"),
        lambda step: True,
        without_apply_gradients,
    ),
    Difference(
        "K6: on 1.15 the original does not count a skipped step",
        lambda subject: recorded.TF < (2, 2),
        lambda step: "bad" in step,
        without_count,
    ),
    Difference(
        "2.11 to 2.13 do not build the inner optimizer before its step; later versions do",
        lambda subject: subject.endswith("-new") and recorded.TF < (2, 14),
        lambda step: True,
        without_build,
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
    for each in recorded.originals():
        if each.api == "experimental" and recorded.TF >= (2, 4):
            continue  # the same steps as the final one
        api = "final" if each.api == "keras3" else each.api
        found.append((str(each), f"ours-{api}-{each.kind.name}"))
    return found


PAIRS = pairs()


@pytest.fixture(scope="module")
def logs() -> Dict[str, Any]:
    subjects = [each for pair in PAIRS for each in pair]
    return processes.run_program(PROGRAM, *subjects, timeout=1500, keras=True)


@pytest.mark.parametrize("pair", PAIRS, ids=[original for original, _ in PAIRS])
def test_the_inner_optimizers_methods_are_called(logs: Dict[str, Any], pair: Any) -> None:
    original, ours = (logs[each] for each in pair)
    assert set(original) == set(ours)
    works = {step: calls for step, calls in original.items() if "raises" not in calls}
    for step, calls in works.items():
        own = ours[step]
        for difference in DIFFERENCES:
            if difference.subjects(pair[0]) and difference.steps(step):
                calls, own = difference.rewrite(calls), difference.rewrite(own)
        assert own == calls, step


@pytest.mark.parametrize("pair", PAIRS, ids=[original for original, _ in PAIRS])
def test_no_step_is_left_out_without_a_reason(logs: Dict[str, Any], pair: Any) -> None:
    """Steps that the original cannot take are in `REFUSALS`, and each row of it is needed."""
    original, ours = (logs[each] for each in pair)
    rows = [each for each in REFUSALS if each.subjects(pair[0])]
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


@pytest.mark.skipif(not PAIRS, reason="there is no original here to be compared with")
def test_the_log_is_made_from_the_class(logs: Dict[str, Any]) -> None:
    """The recorded methods include those that users override."""
    hooks = {
        "legacy": {"apply_gradients"}
        | ({"_aggregate_gradients"} if recorded.TF >= (2, 2) else set()),
        "new": {"compute_gradients", "aggregate_gradients", "apply_gradients", "build"},
        "keras3": {"apply", "build", "update_step"},
    }
    for original, _ in PAIRS:
        seen = {
            call.partition("(")[0]
            for calls in logs[original].values()
            for who, made in calls.items()
            if who not in ("weights", "raises")
            for call in made
        }
        assert seen >= hooks[original.rpartition("-")[2]], seen


def legacy_hooked(kind: Any, change: Callable[[Any], Any], where: str) -> Any:
    """An inner `OptimizerV2` that changes gradients in the given way."""
    sgd = kind.optimizers.SGD

    def changed(grads_and_vars: Any) -> Any:
        return [(change(gradient), variable) for gradient, variable in grads_and_vars]

    if where == "gradient_aggregator":
        return sgd(0.5, gradient_aggregator=changed)
    if where == "gradient_transformers":
        return sgd(0.5, gradient_transformers=[changed])

    class Hooked(sgd):
        def _transform_gradients(self, grads_and_vars: Any) -> Any:
            if where == "_transform_gradients":
                return changed(super()._transform_gradients(grads_and_vars))
            return super()._transform_gradients(grads_and_vars)

        def _aggregate_gradients(self, grads_and_vars: Any) -> Any:
            result = super()._aggregate_gradients(grads_and_vars)
            if where != "_aggregate_gradients":
                return result
            return [change(each) for each in result] if recorded.TF < (2, 4) else changed(result)

        def apply_gradients(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
            if where == "apply_gradients":
                grads_and_vars = changed(grads_and_vars)
            return super().apply_gradients(grads_and_vars, *args, **kwargs)

    return Hooked(0.5)


def new_hooked(kind: Any, change: Callable[[Any], Any], where: str) -> Any:
    class Hooked(kind.optimizers.SGD):
        def aggregate_gradients(self, grads_and_vars: Any) -> Any:
            result = super().aggregate_gradients(grads_and_vars)
            if where != "aggregate_gradients":
                return result
            return [(change(gradient), variable) for gradient, variable in result]

        def apply_gradients(self, grads_and_vars: Any, **kwargs: Any) -> Any:
            if where == "apply_gradients":
                pairs = list(grads_and_vars)
                grads_and_vars = [(change(gradient), variable) for gradient, variable in pairs]
            return super().apply_gradients(grads_and_vars, **kwargs)

        def _clip_gradients(self, grads: Any) -> Any:
            grads = super()._clip_gradients(grads)
            return [change(each) for each in grads] if where == "_clip_gradients" else grads

    return Hooked(0.5)


def keras_3_hooked(kind: Any, change: Callable[[Any], Any], where: str, **options: Any) -> Any:
    class Hooked(kind.optimizers.SGD):
        def apply(self, grads: Any, trainable_variables: Any = None) -> None:
            if where == "apply":
                grads = [change(each) for each in grads]
            super().apply(grads, trainable_variables)

        def apply_gradients(self, grads_and_vars: Any) -> Any:
            if where == "apply_gradients":
                grads_and_vars = [(change(each), variable) for each, variable in grads_and_vars]
            return super().apply_gradients(grads_and_vars)

        def _backend_update_step(self, grads: Any, *args: Any) -> None:
            if where == "_backend_update_step":
                grads = [change(each) for each in grads]
            super()._backend_update_step(grads, *args)

        def _clip_gradients(self, grads: Any) -> Any:
            grads = super()._clip_gradients(grads)
            return [change(each) for each in grads] if where == "_clip_gradients" else grads

    return Hooked(0.5, **options)


def hooked() -> List[Tuple[Any, Any, str]]:
    found: List[Tuple[Any, Any, str]] = []
    for kind in recorded.kinds():
        if kind.name == "new":
            for where in ("aggregate_gradients", "apply_gradients", "_clip_gradients"):
                found.append((kind, new_hooked, where))
        if kind.name == "keras3":
            ways = ["apply", "apply_gradients", "_backend_update_step", "_clip_gradients"]
            found += [(kind, keras_3_hooked, where) for where in ways]
        if kind.name == "legacy":
            ways = ["apply_gradients"]
            if recorded.TF >= (2, 2):
                ways.append("_aggregate_gradients")
            if recorded.TF >= (2, 4):
                ways += ["_transform_gradients", "gradient_aggregator", "gradient_transformers"]
            found += [(kind, legacy_hooked, where) for where in ways]
    return found


HOOKED = hooked()


def apply(optimizer: Any, kind: Any, gradient: Any, variable: Any) -> None:
    if kind.name == "keras3":
        optimizer.scale_loss(tf.constant(1.0))
        optimizer.apply([gradient * optimizer.loss_scale], [variable])
    else:
        optimizer.apply_gradients([(gradient, variable)])


@pytest.mark.parametrize("how", HOOKED, ids=[f"{kind.name}-{where}" for kind, _, where in HOOKED])
@pytest.mark.parametrize("in_function", [False, True], ids=["eager", "function"])
def test_what_is_applied_is_tested(how: Any, in_function: bool) -> None:
    """A hook that makes finite gradients infinite cannot reach the weights."""
    kind, make, where = how
    with recorded.eagerly():
        factor = tf.compat.v2.Variable(2.0)
        inner = make(kind, lambda gradient: gradient * factor, where)
        optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(inner, initial_scale=8.0)
        variable = recorded.make_variable(kind, 1.0, "v")
        if kind.name == "keras3":
            optimizer.build([variable])

        def step() -> None:
            apply(optimizer, kind, tf.ones([]), variable)

        run = tf.function(step, autograph=False) if in_function else step
        run()
        assert recorded.number(variable) == 0.0  # changed once
        assert float(optimizer.loss_scale) == 8.0
        assert recorded.number(optimizer.dynamic_counter) == 1
        factor.assign(float("inf"))
        run()
        assert recorded.number(variable) == 0.0
        assert float(optimizer.loss_scale) == 4.0
        assert recorded.number(optimizer.dynamic_counter) == 0
        assert recorded.number(optimizer.iterations) == 2
        factor.assign(2.0)
        run()
        assert recorded.number(variable) == -1.0
        assert recorded.number(optimizer.iterations) == 3


CLIPS_NORM = [kind for kind in recorded.kinds() if kind.name != "legacy" or recorded.TF >= (2, 4)]


@pytest.mark.parametrize("kind", CLIPS_NORM, ids=[kind.name for kind in CLIPS_NORM])
@pytest.mark.parametrize("in_function", [False, True], ids=["eager", "function"])
def test_a_norm_that_overflows_reaches_no_weight(kind: Any, in_function: bool) -> None:
    """`global_clipnorm` makes NaNs of gradients that are finite, and whose norm is not."""
    decays = {} if kind.name == "legacy" else {"weight_decay": 0.5}
    inner = kind.optimizers.SGD(0.5, global_clipnorm=1.0, **decays)
    optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(inner, initial_scale=1.0)
    variable = recorded.make_variable(kind, [1.0, 2.0], "v")
    gradient = tf.Variable([1e30, 0.0])
    if kind.name == "keras3":
        optimizer.build([variable])

    def step() -> None:
        apply(optimizer, kind, gradient.read_value(), variable)

    run = tf.function(step, autograph=False) if in_function else step
    run()
    assert recorded.gradient_source(variable).numpy().tolist() == [1.0, 2.0]
    assert recorded.number(optimizer.dynamic_counter) == 0
    assert recorded.number(optimizer.iterations) == 1
    gradient.assign([2.0, 0.0])
    run()
    decayed = [1.0, 2.0] if kind.name == "legacy" else [0.75, 1.5]
    assert recorded.gradient_source(variable).numpy().tolist() == [decayed[0] - 0.5, decayed[1]]
    assert recorded.number(optimizer.dynamic_counter) == 1
    assert recorded.number(optimizer.iterations) == 2


KERAS_3 = [kind for kind in recorded.kinds() if kind.name == "keras3"]


class Progress(NamedTuple):
    """The state after a step of Keras 3.

    Attributes:
      weight: the weight.
      scale: the loss scale.
      average: the weight average, if the inner optimizer keeps one.
      accumulated: the gradients that wait for an update, if it accumulates.
    """

    weight: float
    scale: float
    average: Optional[float] = None
    accumulated: Optional[float] = None


def keras_3_progress(optimizer: Any, variable: Any) -> Progress:
    named: Dict[str, Optional[float]] = {"average": None, "accumulator": None}
    for each in optimizer.inner_optimizer.variables:
        for name in named:
            if each.path.endswith(name):
                named[name] = recorded.number(each)
    return Progress(
        recorded.number(variable),
        float(optimizer.loss_scale),
        named["average"],
        named["accumulator"],
    )


# Two steps, one that is stopped, and two more: 0.5 times a gradient of 1 is taken away each time.
AVERAGES: Dict[str, Any] = {"use_ema": True, "ema_momentum": 0.5}
AVERAGED = [
    Progress(0.5, 8.0, 0.5),
    Progress(0.0, 8.0, 0.25),
    Progress(0.0, 4.0, 0.25),
    Progress(-0.5, 4.0, -0.125),
    Progress(-1.0, 4.0, -0.5625),
]
STOPPED: List[Tuple[str, str, Dict[str, Any], List[Progress]]] = [
    (
        "averages",
        "apply",
        AVERAGES,
        AVERAGED,
    ),
    (
        "averages that overwrite",
        "_clip_gradients",
        {**AVERAGES, "ema_overwrite_frequency": 3},
        AVERAGED,
    ),
    (
        # The third step only accumulates: its gradient is left out of the sum.
        "accumulation",
        "apply",
        {"gradient_accumulation_steps": 2},
        [
            Progress(1.0, 8.0, None, 1.0),
            Progress(0.5, 8.0, None, 0.0),
            Progress(0.5, 4.0, None, 0.0),
            Progress(0.25, 4.0, None, 0.0),
            Progress(0.25, 4.0, None, 1.0),
        ],
    ),
    (
        # The third step is an update: the sum that it would have applied is dropped.
        "an update of accumulated gradients",
        "_clip_gradients",
        {**AVERAGES, "gradient_accumulation_steps": 3, "weight_decay": 0.5},
        [
            Progress(1.0, 8.0, 1.0, 1.0),
            Progress(1.0, 8.0, 1.0, 2.0),
            Progress(1.0, 4.0, 1.0, 0.0),
            Progress(1.0, 4.0, 1.0, 1.0),
            Progress(1.0, 4.0, 1.0, 2.0),
        ],
    ),
]


@pytest.mark.parametrize("case", STOPPED, ids=[name for name, *_ in STOPPED])
@pytest.mark.parametrize("kind", KERAS_3, ids=["keras3"] * len(KERAS_3))
@pytest.mark.parametrize("in_function", [False, True], ids=["eager", "function"])
def test_a_stopped_step_of_keras_3_changes_nothing(kind: Any, case: Any, in_function: bool) -> None:
    """The scale falls, and neither averages nor accumulators take part in such a step."""
    _, where, options, expected = case
    factor = tf.Variable(1.0)
    inner = keras_3_hooked(kind, lambda gradient: gradient * factor, where, **options)
    optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(inner, initial_scale=8.0)
    variable = recorded.make_variable(kind, 1.0, "v")
    optimizer.build([variable])

    def step() -> None:
        apply(optimizer, kind, tf.ones([]), variable)

    run = tf.function(step, autograph=False) if in_function else step
    found = []
    for value in (1.0, 1.0, float("inf"), 1.0, 1.0):
        factor.assign(value)
        run()
        found.append(keras_3_progress(optimizer, variable))
    assert found == expected


LEGACY = [kind for kind in recorded.kinds() if kind.name == "legacy"]


@pytest.mark.parametrize("kind", LEGACY, ids=["legacy"] * len(LEGACY))
@pytest.mark.parametrize("in_function", [False, True], ids=["eager", "function"])
def test_a_step_in_a_branch_of_the_inner_optimizer(kind: Any, in_function: bool) -> None:
    """Keras 2 optimizers that update in some steps only do so in a conditional of their own."""
    with recorded.eagerly():
        factor = tf.compat.v2.Variable(1.0)

        class Sometimes(kind.optimizers.SGD):
            def apply_gradients(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
                pairs = [(gradient * factor, variable) for gradient, variable in grads_and_vars]

                def update() -> Any:
                    parent.apply_gradients(pairs, *args, **kwargs)
                    return tf.constant(True)

                parent = super()
                return tf.group(tf.cond(factor > 0.0, update, lambda: tf.constant(True)))

        inner = Sometimes(0.5)
        optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(inner, initial_scale=8.0)
        variable = recorded.make_variable(kind, 1.0, "v")
        assert inner.iterations is not None  # made now: not in a conditional
        inner._create_hypers()

        def step() -> None:
            optimizer.apply_gradients([(tf.ones([]), variable)])

        run = tf.function(step, autograph=False) if in_function else step
        found = []
        for value in (1.0, 0.0, float("inf"), float("inf"), 1.0):
            factor.assign(value)
            run()
            found.append((recorded.number(variable), float(optimizer.loss_scale)))
        assert found == [(0.5, 8.0), (0.5, 8.0), (0.5, 4.0), (0.5, 2.0), (0.0, 2.0)]


NEWER = [kind for kind in recorded.kinds() if kind.name != "legacy"]


def takes(optimizer: Any, kind: Any, way: str) -> None:
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
@pytest.mark.parametrize("kind", NEWER, ids=[kind.name for kind in NEWER])
@pytest.mark.parametrize("api", ["final", "experimental"])
def test_an_override_for_keras_2_is_called_once_by_each_step(api: str, kind: Any, way: str) -> None:
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


@pytest.fixture
def messages() -> Iterator[List[str]]:
    """What TensorFlow logs of a class during a test."""
    found: List[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.extend(line for line in [record.getMessage()] if " defines " in line)

    handler = Handler()
    logging.getLogger("tensorflow").addHandler(handler)
    yield found
    logging.getLogger("tensorflow").removeHandler(handler)


@pytest.mark.parametrize("kind", recorded.kinds(), ids=[kind.name for kind in recorded.kinds()])
def test_a_hook_that_is_never_called_is_reported(kind: Any, messages: List[str]) -> None:
    wrap = tfls.keras.mixed_precision.LossScaleOptimizer
    for old in ("_aggregate_gradients", "_resource_apply_dense", "_compute_gradients"):
        wrap(defining(kind, "apply_gradients", old)(0.5))
        expected = [] if kind.name == "legacy" else [f"Hooked defines {old}, which"]
        assert [message[: len(start)] for message, start in zip(messages, expected)] == expected
        assert len(messages) == len(expected)
        messages.clear()
    # Classes for both kinds, and Keras's own.
    own = {"legacy": "_aggregate_gradients", "new": "aggregate_gradients", "keras3": "apply"}
    wrap(defining(kind, "_aggregate_gradients", own[kind.name])(0.5))
    wrap(kind.optimizers.Adam(0.5))
    assert messages == []


@pytest.mark.parametrize(
    "name", ["get_scaled_loss", "get_unscaled_gradients", "minimize", "_compute_gradients"]
)
def test_a_method_that_fit_on_keras_3_never_calls_is_reported(
    name: str, messages: List[str]
) -> None:
    kind = next((kind for kind in recorded.kinds() if kind.name == "keras3"), None)
    if kind is None:
        pytest.skip("Keras 3 is not installed here")
    inner = kind.optimizers.SGD
    public: Any = tfls.keras.mixed_precision.experimental.LossScaleOptimizer
    base: Any = type(public(inner(), 8.0))  # derived from the public one, if tf.keras is tf_keras

    def method(self: Any, *args: Any) -> Any:
        return getattr(base, name)(self, *args)

    for used in (base(inner(), 8.0), type("Both", (base,), {name: method, "apply": base.apply})):
        optimizer = used if not isinstance(used, type) else used(inner(), 8.0)
        optimizer.scale_loss(tf.constant(1.0))
        base.get_scaled_loss(optimizer, tf.constant(1.0))
    assert messages == []
    subclass = type("Mine", (base,), {name: method})(inner(), 8.0)
    patched = base(inner(), 8.0)
    setattr(patched, name, lambda *args: None)
    for optimizer in (subclass, patched):
        optimizer.scale_loss(tf.constant(1.0))
        optimizer.scale_loss(tf.constant(1.0))
    assert [message[: message.index(",")] for message in messages] == [
        f"Mine defines {name}",
        f"{base.__name__} defines {name}",
    ]


def test_an_override_that_fit_on_keras_3_passes_scaled_gradients_is_reported(
    messages: List[str],
) -> None:
    kind = next((kind for kind in recorded.kinds() if kind.name == "keras3"), None)
    if kind is None:
        pytest.skip("Keras 3 is not installed here")
    public: Any = tfls.keras.mixed_precision.LossScaleOptimizer
    base: Any = type(public(kind.optimizers.SGD(), False, 8.0))
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
    assert len(messages) == 1
    assert "gradients that are still scaled" in messages[0]
