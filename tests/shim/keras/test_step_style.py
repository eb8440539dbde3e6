"""On Keras 3, `apply_gradients` divides the gradients of a step of Keras 3, and no others.

Each program is a step in one of the two styles, or several, split as users write them. The expected
result: the last call divides its gradients, leaves them as they are, or raises an error.
"""

import concurrent.futures
import gc
from typing import Any, Callable, Dict, List, Optional, Tuple

import pytest
import recorded
import tensorflow as tf

from tf_lossscale._keras.step_style import Call, StepCalls

pytestmark = pytest.mark.skipif(recorded.TF < (2, 4), reason="only Keras 3 needs it")

K2, K3, UNSCALE = Call.GET_SCALED_LOSS, Call.SCALE_LOSS, Call.UNSCALE
READ, COMPUTE = Call.READ_DYNAMIC_SCALE, Call.COMPUTE
APPLY, APPLY_3, FIT = "apply_gradients", "apply", "the loss of fit"
APPLY_TO_OTHERS = "apply_gradients of other variables"
WEIGHT, OTHER_WEIGHT = object(), object()


class Program:
    """An optimizer's calls, each eager or in a `tf.function` of its own."""

    def __init__(self, *calls: Any):
        self.calls = StepCalls()
        self.functions: Dict[str, Any] = {}
        for call in calls:
            self.call(call)

    def call(self, call: Any) -> Any:
        """Calls a method, or a function of several; returns whether the last one divides."""
        if isinstance(call, tuple):
            return self.compiled(*call)
        if call == APPLY:
            return self.calls.divides([tf.constant(1.0)], [WEIGHT])
        if call == APPLY_TO_OTHERS:
            return self.calls.divides([tf.constant(1.0)], [OTHER_WEIGHT])
        if call == APPLY_3:
            self.calls.check_apply([WEIGHT])
            return True
        if call == FIT:
            return self.calls.note(K3, by_keras=True)
        return self.calls.note(call)

    def compiled(self, name: str, *methods: Any) -> Any:
        """Calls the methods in a function called `name`, which is traced the first time only."""

        def body(x: Any) -> Any:
            result.extend(self.call(method) for method in methods)
            return x + 1.0

        if name not in self.functions:
            result: list = []
            body.__name__ = name
            self.functions[name] = (tf.function(body, autograph=False), result)
        function, result = self.functions[name]
        function(tf.constant(1.0))
        return result[-1]


IN_FUNCTION = pytest.mark.parametrize("in_function", [False, True], ids=["eager", "function"])

DIVIDES, LEAVES, REFUSES = True, False, None
# The calls of some parts of a step, each of them a function.
GRADIENTS = ("gradients", K2, UNSCALE)
UPDATE = ("update", APPLY)
LOSS = ("loss", K2)
LOSS_3 = ("loss of keras 3", K3)
UNSCALING = ("unscale", UNSCALE)
TRAIN_STEP = ("train_step", FIT, APPLY)

# Each call is eager, or a function: its name and the calls in it.
PROGRAMS: Dict[str, Tuple[Optional[bool], List[Any]]] = {
    "keras 2 step": (LEAVES, [K2, UNSCALE, APPLY]),
    "keras 3 step": (DIVIDES, [K3, APPLY]),
    "keras 3 step with apply": (DIVIDES, [K3, APPLY_3]),
    "keras 2 step, compiled": (LEAVES, [("step", K2, UNSCALE, APPLY)]),
    "keras 3 step, compiled": (DIVIDES, [("step", K3, APPLY)]),
    "nothing scaled, nothing unscaled": (LEAVES, [APPLY]),
    "nothing scaled, compiled": (LEAVES, [UPDATE]),
    "micro-batches": (LEAVES, [K2, UNSCALE, K2, UNSCALE, K2, UNSCALE, APPLY]),
    "micro-batches of keras 3": (DIVIDES, [K3, K3, K3, APPLY]),
    "two updates after one unscaling": (LEAVES, [K2, UNSCALE, APPLY, APPLY]),
    "a second update belongs to another step": (LEAVES, [K3, APPLY, APPLY]),
    "a second update after apply": (LEAVES, [K3, APPLY_3, APPLY]),
    "a second update of micro-batches": (LEAVES, [K3, K3, APPLY, APPLY]),
    "other variables in the next step": (LEAVES, [K3, APPLY, APPLY_TO_OTHERS]),
    "other variables after apply": (LEAVES, [K3, APPLY_3, APPLY_TO_OTHERS]),
    "other gradients of one loss, with apply": (DIVIDES, [K3, APPLY_TO_OTHERS, APPLY_3]),
    "other variables, after a step of keras 2": (LEAVES, [K3, APPLY, APPLY, APPLY_TO_OTHERS]),
    "other variables, after eager fit": (LEAVES, [FIT, APPLY, APPLY_TO_OTHERS]),
    "unscaled by hand": (LEAVES, [K2, APPLY]),
    "unscaled by hand, in parts": (LEAVES, [LOSS, UPDATE]),
    "minimize": (LEAVES, [COMPUTE, APPLY]),
    "scaled by hand with a name of keras 3": (DIVIDES, [READ, APPLY]),
    "scaled by hand, with apply": (DIVIDES, [READ, APPLY_3]),
    "dynamic_scale is read in a step of keras 2": (LEAVES, [READ, K2, UNSCALE, APPLY]),
    "dynamic_scale is logged in a step of keras 2": (LEAVES, [K2, UNSCALE, READ, APPLY]),
    "keras 2 in parts": (LEAVES, [GRADIENTS, UPDATE]),
    "keras 2 in smaller parts": (LEAVES, [LOSS, UNSCALING, UPDATE]),
    "keras 3 in parts": (DIVIDES, [LOSS_3, UPDATE]),
    "keras 3 in parts, twice": (DIVIDES, [LOSS_3, UPDATE, LOSS_3, UPDATE]),
    "keras 3 in parts, with apply": (DIVIDES, [LOSS_3, APPLY_3, LOSS_3, APPLY_3]),
    "compiled loss of keras 3, eager update": (DIVIDES, [LOSS_3, APPLY, LOSS_3, APPLY]),
    "compiled gradients, eager update": (LEAVES, [GRADIENTS, APPLY]),
    "eager gradients, compiled update": (LEAVES, [K2, UNSCALE, UPDATE]),
    "eager loss, compiled unscaling": (LEAVES, [K2, UNSCALING, APPLY]),
    "fit after an eager loop": (DIVIDES, [K2, UNSCALE, APPLY, TRAIN_STEP]),
    "an eager loop after fit": (LEAVES, [TRAIN_STEP, K2, UNSCALE, APPLY]),
    "a step without scaling after fit": (LEAVES, [TRAIN_STEP, APPLY]),
    "a step without scaling after eager fit": (LEAVES, [FIT, APPLY, APPLY]),
    "eager fit after an eager loop": (DIVIDES, [K2, UNSCALE, APPLY, FIT, APPLY]),
    "eager fit after a validation": (DIVIDES, [K2, FIT, APPLY]),
    "eager fit after gradients that were only looked at": (DIVIDES, [K2, UNSCALE, FIT, APPLY]),
    "eager fit after a loop in parts": (DIVIDES, [LOSS, UNSCALING, UPDATE, FIT, APPLY]),
    "keras 3 after a validation": (DIVIDES, [K2, K3, APPLY]),
    "a loop in parts after fit": (LEAVES, [TRAIN_STEP, GRADIENTS, UPDATE]),
    "fit after a loop in parts": (DIVIDES, [GRADIENTS, UPDATE, TRAIN_STEP]),
    "keras 3 after a loop in parts": (DIVIDES, [LOSS, UNSCALING, UPDATE, K3, APPLY]),
    "eager unscaling left over, then keras 3": (DIVIDES, [*[K2, UNSCALE, UPDATE] * 2, K3, APPLY]),
    "steps of keras 2 in functions beside keras 3 in parts": (
        DIVIDES,
        [LOSS_3, APPLY_3, ("step", K2, UNSCALE, APPLY), K3, APPLY],
    ),
    "scaled as in keras 3, unscaled as in keras 2": (REFUSES, [K3, UNSCALE, APPLY]),
    "the same with apply": (REFUSES, [K3, UNSCALE, APPLY_3]),
    "scaled twice": (REFUSES, [K3, K2, APPLY]),
    "half of the gradients unscaled": (REFUSES, [K2, UNSCALE, K3, APPLY]),
    "unscaled, then apply": (REFUSES, [K2, UNSCALE, APPLY_3]),
    "unscaled in a function, then apply": (REFUSES, [GRADIENTS, APPLY_3]),
    "parts of both styles": (REFUSES, [GRADIENTS, LOSS_3, UPDATE]),
    "scaled eagerly, unscaled in a function": (REFUSES, [K3, UNSCALING, APPLY]),
    "a part scales for apply, another step calls nothing": (REFUSES, [LOSS_3, APPLY_3, APPLY]),
    "a part scales for another part": (REFUSES, [LOSS_3, UPDATE, APPLY]),
    "left over from a step in parts": (REFUSES, [*[K2, UNSCALE, UPDATE] * 2, READ, APPLY]),
}


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_gradients_are_divided_in_steps_of_keras_3(name: str):
    expected, calls = PROGRAMS[name]
    program = Program()
    for call in calls[:-1]:
        program.call(call)
    if expected is REFUSES:
        with pytest.raises(RuntimeError, match=r" (Write|Call|Read) "):
            program.call(calls[-1])
        # Nothing of a refused step is left.
        assert not program.calls._here().last
    else:
        assert program.call(calls[-1]) is expected


def test_a_function_that_unscales_is_seen_where_it_is_called_again():
    program = Program()
    unscale: Callable[..., Any] = tf.function(
        lambda x: (program.call(UNSCALE), x * 0.5)[-1], autograph=False
    )
    program.call(K3)
    unscale(tf.constant(1.0))  # traced here, so that a call of it in `step` leaves no note
    program.calls.begin()

    @tf.function(autograph=False)
    def step(x: Any) -> Any:
        program.call(K3)
        x = unscale(x)
        program.call(APPLY)
        return x

    with pytest.raises(RuntimeError, match="may have been unscaled"):
        step(tf.constant(1.0))


@IN_FUNCTION
def test_a_loss_is_not_scaled_twice(in_function: bool):
    variable, calls = tf.Variable(8.0), StepCalls()

    def scale():
        calls.note(K2)
        scaled = tf.constant(2.0) * tf.convert_to_tensor(variable)
        calls.note_scaled(K2, scaled)
        calls.refuse_scaled(tf.constant(3.0))
        calls.refuse_scaled(scaled)

    with pytest.raises(RuntimeError, match="scaled twice"):
        (tf.function(scale, autograph=False) if in_function else scale)()


class TwoOptimizers:
    """Two optimizers in one function: the first scales a loss; the second applies gradients."""

    def __init__(self):
        self.first, self.second = StepCalls(), StepCalls()
        self.weights = tf.Variable(1.0), tf.Variable(2.0)
        self.scale = tf.Variable(8.0)

    def gradients(self, scales: bool = True, in_function: bool = False) -> Any:
        scale = tf.function(self.scaled, autograph=False) if in_function else self.scaled
        with tf.GradientTape() as tape:
            loss = self.weights[0] * self.weights[1]
            if scales:
                loss = scale(loss)
        return tape.gradient(loss, self.weights)

    def scaled(self, loss: Any) -> Any:
        self.first.note(K3)
        scaled = loss * tf.convert_to_tensor(self.scale)
        self.first.note_scaled(K3, scaled)
        return scaled


@IN_FUNCTION
@pytest.mark.parametrize("applied_first", [False, True])
def test_gradients_that_another_optimizer_scaled_are_refused(
    in_function: bool, applied_first: bool
):
    both = TwoOptimizers()

    def step():
        one, two = both.gradients()
        if applied_first:
            assert both.first.divides([one], both.weights[:1])
        both.second.divides([tf.clip_by_value(two, -1.0, 1.0)], both.weights[1:])

    with pytest.raises(RuntimeError, match="of another optimizer"):
        (tf.function(step, autograph=False) if in_function else step)()


def test_gradients_that_another_optimizer_scaled_in_a_part_are_refused():
    both = TwoOptimizers()
    gradients = tf.function(both.gradients, autograph=False)
    one, two = gradients()
    with pytest.raises(RuntimeError, match="of another optimizer"):
        both.second.divides([two], both.weights[1:])
    gradients()
    assert both.first.divides([one], both.weights[:1])
    with pytest.raises(RuntimeError, match="of another optimizer"):
        both.second.divides([two], both.weights[1:])


def test_gradients_of_another_loss_in_the_same_function_are_applied():
    both = TwoOptimizers()

    @tf.function(autograph=False)
    def step():
        one, _ = both.gradients()
        assert both.first.divides([one], both.weights[:1])
        _, two = both.gradients(scales=False)
        assert not both.second.divides([two], both.weights[1:])

    step()


@pytest.mark.parametrize(
    ("calls", "warnings"),
    [
        ([K3, APPLY, APPLY], 0),
        ([K3, APPLY, APPLY_TO_OTHERS], 1),
        ([K3, APPLY, K3, APPLY_TO_OTHERS], 0),
        ([K2, APPLY, APPLY_TO_OTHERS], 0),
        ([FIT, APPLY, APPLY_TO_OTHERS], 0),
        ([K3, APPLY, APPLY, APPLY_TO_OTHERS], 0),
        ([K3, K3, APPLY, APPLY], 1),
        ([*[K3, APPLY, APPLY_TO_OTHERS] * 2], 1),
        ([K3, APPLY_3, APPLY_TO_OTHERS], 1),
        ([K3, UPDATE, ("others", APPLY_TO_OTHERS)], 1),
        ([K3, UPDATE, APPLY_TO_OTHERS], 1),
        ([K3, APPLY, ("others", APPLY_TO_OTHERS)], 1),
        ([K3, UPDATE, ("again", APPLY)], 0),
        ([K3, UPDATE, K2, UNSCALE, ("others", APPLY_TO_OTHERS)], 0),
    ],
    ids=str,
)
def test_other_gradients_of_one_loss_are_logged(
    calls: List[Any], warnings: int, caplog: pytest.LogCaptureFixture
):
    """Eagerly nothing tells whether they are: they count as those of the next step."""
    Program(*calls)
    found = [record for record in caplog.records if "of the loss that was" in record.message]
    assert len(found) == warnings


@pytest.mark.parametrize("with_apply", [False, True])
@pytest.mark.parametrize("in_function", [False, True], ids=["here", "in an inner function"])
def test_a_function_tells_other_gradients_of_one_loss(with_apply: bool, in_function: bool):
    both = TwoOptimizers()

    @tf.function(autograph=False)
    def step():
        one, two = both.gradients(in_function=in_function)
        if with_apply:
            both.first.check_apply(both.weights[:1])
        else:
            assert both.first.divides([one], both.weights[:1])
        for _ in range(2):
            assert both.first.divides([two], both.weights[1:])
        one, two = both.gradients(scales=False)
        assert not both.first.divides([one, two], both.weights)

    step()


@pytest.mark.parametrize(
    ("calls", "does"),
    [
        ([K2, UNSCALE, UPDATE, K3, UPDATE], "applies its gradients as they are"),
        ([GRADIENTS, UPDATE, LOSS_3, UPDATE], "applies its gradients as they are"),
        ([K3, UPDATE, K2, UNSCALE, UPDATE], "divides its gradients"),
        ([LOSS_3, UPDATE, GRADIENTS, UPDATE], "divides its gradients"),
        ([UPDATE, K2, UNSCALE, UPDATE], None),
        ([K3, UPDATE, K3, UPDATE], None),
        ([K3, UPDATE, K3, APPLY, UPDATE], None),
        ([("step", K2, UNSCALE, APPLY), K3, APPLY], None),
        ([TRAIN_STEP, K2, UNSCALE, APPLY], None),
        ([UPDATE, FIT, APPLY], None),
    ],
    ids=str,
)
def test_a_function_that_is_kept_from_a_step_of_the_other_style_is_logged(
    calls: List[Any], does: Optional[str], caplog: pytest.LogCaptureFixture
):
    """It is called again, but not traced, so nothing shows whether this step uses it."""
    Program(*calls)
    assert was_logged(caplog, "which was traced before, ") is (does is not None)
    assert does is None or was_logged(caplog, does)


def test_gradients_of_a_loss_that_a_branch_scaled_are_refused():
    both = TwoOptimizers()

    @tf.function(autograph=False)
    def step(flag: Any):
        with tf.GradientTape() as tape:
            loss = both.weights[0] * both.weights[1]
            loss = tf.cond(flag, lambda: both.scaled(loss), lambda: both.scaled(loss))
        one, two = tape.gradient(loss, both.weights)
        assert both.first.divides([one], both.weights[:1])
        both.first.divides([two], both.weights[1:])

    with pytest.raises(RuntimeError, match="cannot tell whether its gradients are scaled"):
        step(tf.constant(True))


def test_a_second_optimizer_may_follow_fit():
    """Whose loss is scaled by the first one, in a function or eagerly."""
    for call in (("train_step", FIT, APPLY), FIT):
        program = Program()
        second = StepCalls()
        program.call(call)
        if call == FIT:
            program.call(APPLY)
        assert not second.divides([tf.constant(1.0)], [WEIGHT])


def test_an_optimizer_of_an_earlier_program_does_not_count():
    earlier = Program(K3, LOSS_3)
    assert not StepCalls().divides([tf.constant(1.0)], [WEIGHT])
    assert earlier.functions


def test_graphs_are_not_kept_alive():
    program = Program(("step", K2, UNSCALE, APPLY))
    assert len(program.calls._steps) == 1
    program.functions.clear()
    gc.collect()
    assert not program.calls._steps


def test_calls_do_not_pile_up():
    """Where a function applies the gradients, nothing ends an eager step."""
    program = Program(*[K2, UNSCALE, UPDATE] * 20)
    assert len(program.calls._here().last) <= 2


def test_the_calls_of_each_thread_count_for_itself():
    """Two threads share an optimizer: one takes Keras 2 steps, the other Keras 3 steps."""
    calls = StepCalls()
    first, second = (concurrent.futures.ThreadPoolExecutor(1) for _ in range(2))
    gradients = [tf.constant(1.0)]
    with first, second:
        for _ in range(2):
            first.submit(calls.note, K3).result()
            second.submit(calls.note, K2).result()
            second.submit(calls.note, UNSCALE).result()
            assert first.submit(calls.divides, gradients, [WEIGHT]).result() is True
            first.submit(calls.note, K3).result()
            assert second.submit(calls.divides, gradients, [WEIGHT]).result() is False
            first.submit(calls.check_apply, [WEIGHT]).result()


def test_a_loss_that_another_thread_scaled_is_refused():
    calls = StepCalls()
    calls.note(K3)
    with concurrent.futures.ThreadPoolExecutor(1) as other:
        result = other.submit(calls.divides, [tf.constant(1.0)], [WEIGHT])
    with pytest.raises(RuntimeError, match="in another function or thread"):
        result.result()


@pytest.mark.parametrize("scaled_in", ["eager", "a function", "the function around"])
@pytest.mark.parametrize("is_inner", [False, True], ids=["outermost", "inner"])
def test_a_function_divides_again_when_it_is_traced_again(
    scaled_in: str, is_inner: bool, caplog: pytest.LogCaptureFixture
):
    """As TensorFlow does for other arguments, and if the function creates variables."""
    calls = StepCalls()
    divided, created = [], []

    @tf.function(autograph=False)
    def scale(x: Any) -> Any:
        calls.note(K3)
        return x + 1.0

    @tf.function(autograph=False)
    def update(x: Any, kind: str) -> Any:
        if scaled_in == "a function":
            scale(x)
        if not created:
            created.append(tf.Variable(1.0))  # so that the function is traced twice
        divided.append(calls.divides([x], [WEIGHT]))
        return x + 1.0

    @tf.function(autograph=False)
    def step(x: Any) -> Any:
        if scaled_in == "the function around":
            calls.note(K3)
        return update(x, "first")

    if scaled_in == "eager" or (scaled_in == "the function around" and not is_inner):
        calls.note(K3)
    if is_inner:
        step(tf.constant(1.0))
    else:
        update(tf.constant(1.0), "first")
    update(tf.constant(1.0), "second")
    assert len(divided) > 2
    assert all(divided)
    # The inner function shows why.
    assert was_logged(caplog, "earlier trace of it divided them") == (scaled_in != "a function")
    assert not StepCalls().divides([tf.constant(1.0)], [OTHER_WEIGHT])


def was_logged(caplog: pytest.LogCaptureFixture, message: str) -> bool:
    found = [record for record in caplog.records if message in record.message]
    assert len(found) < 2, "it is logged once only"
    return bool(found)


@pytest.mark.parametrize("remembers", ["name", "code"])
def test_another_function_of_the_same_name_does_not_divide_again(remembers: str):
    calls = StepCalls()
    divided = []

    def make_update(other_code: bool) -> Callable[..., Any]:
        def update(x: Any, kind: str) -> Any:
            divided.append(calls.divides([x], [WEIGHT]))
            return x + 1.0

        def other(x: Any, kind: str) -> Any:
            divided.append(calls.divides([x + 0.0], [WEIGHT]))
            return x + 1.0

        other.__name__ = "update"
        return tf.function(other if other_code else update, autograph=False)

    calls.note(K3)
    first, second = make_update(False), make_update(remembers == "name")
    first(tf.constant(1.0), "first")
    second(tf.constant(1.0), "first")
    first(tf.constant(1.0), "second")
    assert divided == [True, False, True]


class Method:
    """A step in a method, of which each instance has functions of its own."""

    def __init__(self, calls: StepCalls):
        self.calls = calls
        self.divided: List[bool] = []

    @tf.function(autograph=False)
    def update(self, x: Any, kind: str) -> Any:
        self.divided.append(self.calls.divides([x], [WEIGHT]))
        return x + 1.0


def test_methods_of_two_objects_do_not_divide_alike():
    calls = StepCalls()
    first, second = Method(calls), Method(calls)
    calls.note(K3)
    for kind in ("first", "second"):
        first.update(tf.constant(1.0), kind)
        second.update(tf.constant(1.0), kind)
    assert first.divided == [True, True]
    assert second.divided == [False, False]


# What inner functions call, as TensorFlow calls them again without their Python code: their names
# and calls. The last call is made by the function around them.
INNER = {
    "scaled": (DIVIDES, [("scale", K3)]),
    "unscaled, and scaled, by keras": (DIVIDES, [("gradients", K2, UNSCALE), ("loss", FIT)]),
    "scaled two functions further in": (DIVIDES, [("outer", ("scale", K3))]),
    "a whole step": (LEAVES, [("step", K3, APPLY)]),
    "a whole step of fit": (LEAVES, [("step", FIT, APPLY)]),
    "scaled, and updated": (LEAVES, [("scale", K3), ("update", APPLY)]),
    "updated, and scaled": (DIVIDES, [("update", APPLY), ("scale", K3)]),
    "unscaled": (LEAVES, [("gradients", K2, UNSCALE)]),
    "scaled, and unscaled": (REFUSES, [("scale", K3), ("unscale", UNSCALE)]),
}


@pytest.mark.parametrize("name", sorted(INNER))
@pytest.mark.parametrize("last", [APPLY, APPLY_3])
def test_calls_in_inner_functions_count_again(
    name: str, last: str, caplog: pytest.LogCaptureFixture
):
    """In each trace of the function around them, also if that is a new function."""
    expected, calls = INNER[name]
    if last == APPLY_3 and name == "unscaled":
        expected = REFUSES
    program = Program()
    results = []

    def around(x: Any) -> Any:
        for call in calls:
            program.call(call)
        results.append(program.call(last))
        return x + 1.0

    for value in (tf.constant(1.0), tf.constant([1.0])):
        step: Callable[..., Any] = tf.function(around, autograph=False)
        if expected is REFUSES:
            with pytest.raises(RuntimeError, match=r" (Write|Call) "):
                step(value)
        else:
            step(value)
    expects = True if last == APPLY_3 else expected
    assert results == ([] if expected is REFUSES else [expects, expects])
    assert not was_logged(caplog, "earlier trace of it divided them")


@pytest.mark.parametrize("how", ["captured", "argument", "of another loss"])
def test_other_gradients_of_one_loss_in_an_inner_function(how: str):
    both = TwoOptimizers()

    @tf.function(autograph=False)
    def step() -> Any:
        one, two = both.gradients()
        assert both.first.divides([one], both.weights[:1])
        if how == "of another loss":
            _, two = both.gradients(scales=False)

        @tf.function(autograph=False)
        def update(gradient: Any) -> Any:
            divided = both.first.divides([gradient], both.weights[1:])
            assert divided is (how == "captured")
            return gradient + 1.0

        if how == "argument":
            return update(two)

        @tf.function(autograph=False)
        def update_captured() -> Any:
            return update.python_function(two)

        return update_captured()

    if how == "argument":
        with pytest.raises(RuntimeError, match="cannot tell whether its gradients are scaled"):
            step()
    else:
        step()


@IN_FUNCTION
@pytest.mark.parametrize("use", ["scales", "logs", "scales in an inner function"])
def test_a_read_of_dynamic_scale_counts_if_the_loss_is_scaled(
    in_function: bool, use: str, caplog: pytest.LogCaptureFixture
):
    """Eagerly nothing tells: it counts, and is logged."""
    weight, scale = tf.Variable(2.0), tf.Variable(8.0)
    calls = StepCalls(scale)
    divided = []

    def step():
        calls.note(READ)
        with tf.GradientTape() as tape:
            loss = weight * weight
            if use == "scales":
                loss = loss * scale
            elif use == "scales in an inner function":
                loss = tf.function(lambda x: x * scale, autograph=False)(loss)
        tf.debugging.check_numerics(scale, "the scale")
        divided.append(calls.divides(tape.gradient(loss, [weight]), [weight]))

    (tf.function(step, autograph=False) if in_function else step)()
    is_scaled = not (use == "logs" and in_function)
    assert divided == [is_scaled]
    assert was_logged(caplog, "because the step reads dynamic_scale") == is_scaled


def test_a_function_that_is_traced_again_in_a_step_of_keras_2():
    calls = StepCalls()
    divided = []

    @tf.function(autograph=False)
    def update(x: Any, kind: str) -> Any:
        divided.append(calls.divides([x], [WEIGHT]))
        return x + 1.0

    for kind, names in (("first", [K3]), ("second", [K2, UNSCALE])):
        for name in names:
            calls.note(name)
        update(tf.constant(1.0), kind)
    assert divided == [True, False]
