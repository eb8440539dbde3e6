"""Programs that subclass, wrap and copy the public classes run as with the originals.

Each program is run with the original and with ours, over each kind of inner optimizer, and must
give the same result. What differs on purpose is in `DIFFERENCES`, and in docs/known-differences.md.
"""

import abc
import contextlib
import copy
import os
import pickle
import re
import tempfile
import types
import warnings
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import numpy as np
import pytest
import recorded
import tensorflow as tf
from recorded import Subject

import tf_lossscale as tfls

SCALE = 64.0
Program = Callable[[Subject], Any]
PROGRAMS: Dict[str, Program] = {}


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


class Difference(NamedTuple):
    """A difference on purpose, from some originals: why it is there, and what ours gives."""

    program: str
    subjects: Callable[[Subject], bool]
    reason: str
    ours: Any


def sgd(subject: Subject) -> Any:
    return subject.inner("SGD", learning_rate=0.5)


def arguments(subject: Subject) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """What a constructor is given after the inner optimizer."""
    if subject.api == "experimental":
        return (subject.dynamic_loss_scale(SCALE, 2000),), {}
    return (), {"initial_scale": SCALE, "dynamic_growth_steps": 2000}


def make(cls: Any, subject: Subject) -> Any:
    args, kwargs = arguments(subject)
    return cls(sgd(subject), *args, **kwargs)


def base(subject: Subject) -> Any:
    """The class that a program subclasses: the public one, if it can be subclassed.

    From TensorFlow 2.9 on that of Keras 2 cannot: what it returns is of one of two others.
    """
    if subject.who == "original" and subject.kind.name != "keras3" and recorded.TF >= (2, 9):
        return type(make(subject.cls, subject))
    return subject.cls


def variable(subject: Subject) -> Any:
    return recorded.make_variable(subject.kind, 1.0, "v")


def step(subject: Subject, optimizer: Any, weight: Any, factor: float = 1.0):
    """One step of a custom training loop, in the style of Keras 3 on Keras 3."""
    style = "keras3" if subject.kind.name == "keras3" else "keras2"
    subject.minimize(optimizer, [weight], lambda sources: tf.identity(sources[0]) * factor, style)


def trained(subject: Subject, optimizer: Any) -> List[float]:
    """The weight after a step, after one that overflows, and the loss scale then."""
    weight = variable(subject)
    found = []
    for factor in (1.0, float("inf")):
        step(subject, optimizer, weight, factor)
        found.append(recorded.number(weight))
    scale, _ = subject.scale_and_counter(optimizer)
    return [*found, recorded.number(scale)]


def recording(names: Tuple[str, ...], cls: Any, calls: List[str]) -> Any:
    """A subclass that records calls of methods."""

    def recorder(name: str) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            calls.append(name)
            return getattr(super(Recording, self), name)(*args, **kwargs)

        return tf.autograph.experimental.do_not_convert(method)

    Recording: Any = type(cls)("Recording", (cls,), {name: recorder(name) for name in names})
    return Recording


STEPS = ("apply_gradients", "get_scaled_loss", "get_unscaled_gradients", "minimize")
STEPS_3 = ("apply", "apply_gradients", "scale_loss", "build")


def apply_name(subject: Subject) -> str:
    """The method that a step ends with."""
    return "apply" if subject.kind.name == "keras3" else "apply_gradients"


# The programs.


@program
def makes_the_inner_optimizer_itself(subject: Subject) -> Any:
    args, kwargs = arguments(subject)

    class Scaled(base(subject)):
        def __init__(self, rate: float):
            super().__init__(subject.inner("SGD", learning_rate=rate), *args, **kwargs)
            self.rate = rate

    optimizer = Scaled(0.25)
    return type(optimizer) is Scaled, optimizer.rate, trained(subject, optimizer)


@program
def has_attributes_of_later_names(subject: Subject) -> Any:
    class Scaled(base(subject)):
        def __init__(self, *args: Any, **kwargs: Any):
            super().__init__(*args, **kwargs)
            if recorded.TF < (2, 4):  # later they are properties
                self.dynamic, self.initial_scale = "own", [1.0]

    optimizer = make(Scaled, subject)
    own = (optimizer.dynamic, optimizer.initial_scale) if recorded.TF < (2, 4) else None
    return own, trained(subject, optimizer)


@program
def has_attributes_first(subject: Subject) -> Any:
    class Scaled(base(subject)):
        def __init__(self, *args: Any, **kwargs: Any):
            self.note = "first"
            super().__init__(*args, **kwargs)

    optimizer = make(Scaled, subject)
    return optimizer.note, trained(subject, optimizer)


@program
def wraps_an_optimizer_that_fails(subject: Subject) -> Any:
    """The loss scale is the same afterwards, too."""
    found = []
    for name in (apply_name(subject), "_resource_apply_dense", "update_step"):

        def fail(*args: Any, **kwargs: Any) -> Any:
            raise KeyError

        inner, (args, kwargs) = sgd(subject), arguments(subject)
        inner.__class__ = type("Failing", (type(inner),), {name: fail})
        optimizer, weight = subject.cls(inner, *args, **kwargs), variable(subject)
        with contextlib.suppress(KeyError):
            step(subject, optimizer, weight)
        state = [weight, *subject.scale_and_counter(optimizer)]
        found.append([recorded.number(variable) for variable in state])
    return found


@program
def overrides_the_learning_rate(subject: Subject) -> Any:
    found: List[float] = []

    class Constant(base(subject)):
        @property
        def learning_rate(self) -> float:
            return 7.0

        @learning_rate.setter
        def learning_rate(self, value: float):
            found.append(value)

    optimizer = make(Constant, subject)
    if subject.kind.name != "keras3":  # whose class has no `lr`
        found.append(recorded.number(optimizer.lr))
        optimizer.lr = 0.25
    return found


@program
def wraps_an_optimizer_whose_own_attributes_replace_methods(subject: Subject) -> Any:
    found: List[str] = []
    names = ("_distributed_apply", "_distributed_apply_gradients_fn", "_distributed_tf_update_step")
    inner, (args, kwargs) = sgd(subject), arguments(subject)
    inner.global_clipnorm = 1.0  # so that a step is tested late
    for name in names:
        method = getattr(inner, name, None)
        if method is not None:
            vars(inner)[name] = lambda *args, name=name, method=method: (
                found.append(name) or method(*args)
            )
    step(subject, subject.cls(inner, *args, **kwargs), variable(subject))
    return found, [name for name in names if name in vars(inner)]


def all_recorded(subject: Subject) -> Tuple[Any, List[str]]:
    """An optimizer of a subclass that records the calls of all steps."""
    calls: List[str] = []
    names = STEPS_3 if subject.kind.name == "keras3" else STEPS
    return make(recording(names, base(subject), calls), subject), calls


@program
def overrides_in_a_loop(subject: Subject) -> Any:
    optimizer, calls = all_recorded(subject)
    return trained(subject, optimizer), calls


@program
def overrides_in_fit(subject: Subject) -> Any:
    optimizer, calls = all_recorded(subject)
    keras = subject.kind.keras
    dense = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", input_shape=(1,))
    model = keras.Sequential([dense])
    model.compile(optimizer, "mse", run_eagerly=True)
    model.fit(np.ones((4, 1)), np.zeros((4, 1)), batch_size=2, epochs=1, verbose=0)
    return [float(weight) for weight in model.get_weights()[0]], calls, model.optimizer is optimizer


@program
def overrides_in_minimize(subject: Subject) -> Any:
    if subject.kind.name == "keras3":
        return None  # it has none
    optimizer, calls = all_recorded(subject)
    weight = variable(subject)
    optimizer.minimize(lambda: weight * 2.0, [weight])
    return recorded.number(weight), calls


@program
def a_loss_scale_of_its_own(subject: Subject) -> Any:
    class Scaled(base(subject)):
        @property
        def loss_scale(self) -> Any:
            return tf.constant(2.0)

    optimizer = make(Scaled, subject)
    if subject.kind.name == "keras3":  # its own class has no such property
        return trained(subject, optimizer)[:2]
    scaled = optimizer.get_scaled_loss(tf.constant(3.0))
    (gradient,) = optimizer.get_unscaled_gradients([tf.constant(8.0)])
    return recorded.number(scaled), recorded.number(gradient)


@program
def a_mixin_before(subject: Subject) -> Any:
    calls: List[str] = []

    class Counting:
        name_of_mixin = "counting"

        def apply_gradients(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
            calls.append("apply_gradients")
            return super().apply_gradients(grads_and_vars, *args, **kwargs)

    def apply(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append("apply")
        return super(Counting, self).apply(*args, **kwargs)

    if subject.kind.name == "keras3":
        Counting.apply = apply

    class Scaled(Counting, base(subject)):
        pass

    optimizer = make(Scaled, subject)
    return trained(subject, optimizer), calls, optimizer.name_of_mixin


@program
def an_abstract_mixin(subject: Subject) -> Any:
    class Named(abc.ABC):
        @abc.abstractmethod
        def title(self) -> str: ...

    class Scaled(Named, base(subject)):
        def title(self) -> str:
            return "scaled"

    optimizer = make(Scaled, subject)
    return trained(subject, optimizer), optimizer.title(), isinstance(optimizer, Named)


class Registered(type):
    """A metaclass that knows nothing of optimizers, and counts the instances of its classes."""

    made = 0

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        cls.made += 1
        return super().__call__(*args, **kwargs)


class OfRegistered(metaclass=Registered):
    pass


@program
def a_mixin_with_a_metaclass(subject: Subject) -> Any:
    class Scaled(OfRegistered, base(subject)):
        pass

    return trained(subject, make(Scaled, subject)), Scaled.made


@program
def unbound_calls(subject: Subject) -> Any:
    cls = base(subject)
    optimizer, weight = make(cls, subject), variable(subject)
    source = recorded.gradient_source(weight)
    scale_loss = cls.scale_loss if subject.kind.name == "keras3" else cls.get_scaled_loss
    with tf.GradientTape() as tape:
        loss = scale_loss(optimizer, tf.identity(source))
    gradients = tape.gradient(loss, [source])
    if subject.kind.name == "keras3":
        cls.apply(optimizer, gradients, [weight])
    else:
        unscaled = cls.get_unscaled_gradients(optimizer, gradients)
        cls.apply_gradients(optimizer, zip(unscaled, [weight]))
    forwarded = {"legacy": "get_weights"}.get(subject.kind.name, "finalize_variable_values")
    is_method = callable(getattr(type(optimizer), forwarded))
    return recorded.number(weight), recorded.number(loss), is_method


@program
def overrides_that_get_arguments_by_name(subject: Subject) -> Any:
    args, kwargs = arguments(subject)
    names: List[List[str]] = []

    class Scaled(base(subject)):
        def _compute_gradients(self, loss: Any, **kwargs: Any) -> Any:
            names.append(sorted(kwargs))
            return super()._compute_gradients(loss, **kwargs)

    class Inner(subject.kind.optimizers.SGD):
        def apply(self, grads: Any, **kwargs: Any):
            names.append(sorted(kwargs))
            super().apply(grads, **kwargs)

    optimizer, weight = Scaled(Inner(0.5), *args, **kwargs), variable(subject)
    if subject.kind.name == "legacy":
        optimizer.minimize(lambda: tf.identity(weight), [weight])
    else:
        step(subject, optimizer, weight)
    return names, recorded.number(weight)


def horovod(subject: Subject, bases: Callable[[Any], Tuple[Any, ...]]) -> Any:
    """An optimizer in a class that is made at run time around its own."""
    calls: List[str] = []
    optimizer = make(subject.cls, subject)
    name = apply_name(subject)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        return getattr(super(self.__class__, self), name)(*args, **kwargs)

    wrapped = type(optimizer.__class__.__name__, bases(optimizer), {name: method})
    made: Any = wrapped.from_config(optimizer.get_config())
    return type(made) is wrapped, trained(subject, made), calls


@program
def wrapped_at_run_time(subject: Subject) -> Any:
    return horovod(subject, lambda optimizer: (optimizer.__class__,))


@program
def wrapped_at_run_time_by_bases(subject: Subject) -> Any:
    return horovod(subject, lambda optimizer: (*optimizer.__class__.__bases__,))


@program
def wrapped_at_run_time_with_named_arguments(subject: Subject) -> Any:
    def initialize(self: Any, **config: Any):
        super(self.__class__, self).__init__(**config)

    optimizer = make(subject.cls, subject)
    wrapped = type("Wrapped", (optimizer.__class__,), {"__init__": initialize})
    made: Any = wrapped.from_config(optimizer.get_config())
    return type(made) is wrapped, trained(subject, made)


@program
def copied(subject: Subject) -> Any:
    optimizer = make(subject.cls, subject)
    shallow = copy.copy(optimizer)
    return type(shallow) is type(optimizer), trained(subject, shallow)


@program
def pickled(subject: Subject) -> Any:
    optimizer = make(subject.cls, subject)
    try:
        pickled = pickle.dumps(optimizer)
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        # That of the bare inner optimizer, and no other.
        with pytest.raises(type(error), match=re.escape(str(error))):
            pickle.dumps(sgd(subject))
        return "cannot be pickled"
    again = pickle.loads(pickled)
    return type(again) is type(optimizer), trained(subject, again)


@program
def registered(subject: Subject) -> Any:
    keras = subject.kind.keras
    register = keras.utils.register_keras_serializable(f"tests_{subject.who}_{subject.api}")

    class Scaled(base(subject)):
        pass

    register(Scaled)
    optimizer = make(Scaled, subject)
    serialized = keras.utils.serialize_keras_object(optimizer)
    again = Scaled.from_config(optimizer.get_config())
    named = serialized.get("registered_name") or serialized["class_name"]
    found = keras.utils.get_registered_object(named)
    return found is Scaled, type(again) is Scaled, trained(subject, again)


@program
def own_argument_in_the_configuration(subject: Subject) -> Any:
    class Scaled(base(subject)):
        def __init__(self, *args: Any, extra: int = 0, **kwargs: Any):
            super().__init__(*args, **kwargs)
            self.extra = extra

        def get_config(self) -> Dict[str, Any]:
            return dict(super().get_config(), extra=self.extra)

    args, kwargs = arguments(subject)
    optimizer = Scaled(sgd(subject), *args, extra=7, **kwargs)
    again = Scaled.from_config(optimizer.get_config())
    return type(again) is Scaled, again.extra, trained(subject, again)


@program
def saved_in_a_checkpoint(subject: Subject) -> Any:
    class Scaled(base(subject)):
        pass

    names = []
    for cls in (subject.cls, Scaled):
        optimizer = make(cls, subject)
        step(subject, optimizer, variable(subject))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with tempfile.TemporaryDirectory() as folder:
                checkpoint = tf.train.Checkpoint(optimizer=optimizer)
                path = checkpoint.save(os.path.join(folder, "checkpoint"))
                names.append(sorted(name for name, _ in tf.train.list_variables(path)))
    # The model's variables are in the lists of both optimizers, but the wrapper of Keras 3.3 to 3.8
    # has no such list. A checkpoint is restored by its graph of objects, whatever the keys.
    inner, own = "inner_optimizer/_trainable_variables/", "_trainable_variables/"
    return names[0] == names[1], sorted(name.replace(inner, own) for name in names[1])


@program
def what_the_class_is(subject: Subject) -> Any:
    optimizer = make(subject.cls, subject)
    return (
        isinstance(optimizer, subject.kind.optimizers.Optimizer),
        isinstance(optimizer, subject.cls),
        type(optimizer) is subject.cls,
        type(optimizer).__name__,
        subject.cls.__doc__ is not None,
    )


@program
def public_names_on_the_class(subject: Subject) -> Any:
    """Those of the original; our class may have more."""
    theirs = next(
        original
        for original in recorded.originals()
        if subject in (original, original.counterpart())
    )
    cls, original = (type(make(owner.cls, owner)) for owner in (subject, theirs))
    return [name for name in dir(original) if not name.startswith("_") and hasattr(cls, name)]


TRAINED = [0.5, 0.5, SCALE / 2]

# The public class has the bases of one kind of optimizer. Over any other kind, an instance is of a
# class derived from it, and docs/keras.md says so.
DERIVED: Dict[str, Any] = {
    "makes_the_inner_optimizer_itself": (False, 0.25, [0.75, 0.75, SCALE / 2]),
    "own_argument_in_the_configuration": (False, 7, TRAINED),
    "registered": (True, False, TRAINED),
}

DIFFERENCES: List[Difference] = [
    Difference(
        "has_attributes_first",
        lambda subject: subject.kind.name == "legacy" and recorded.TF >= (2, 4),
        "from 2.4 on the original cannot have an attribute before its constructor has run",
        ("first", TRAINED),
    ),
    Difference(
        "what_the_class_is",
        lambda subject: subject.kind.name == "legacy" and (2, 9) <= recorded.TF < (2, 11),
        "from 2.9 on the original makes objects of a subclass, which ours does from 2.11 on",
        (True, True, True, "LossScaleOptimizer", True),
    ),
    Difference(
        "an_abstract_mixin",
        lambda subject: subject.kind.name != "keras3" and recorded.TF >= (2, 9),
        "from 2.9 on the original has a metaclass of its own, which ABC cannot be combined with",
        (TRAINED, "scaled", True),
    ),
    Difference(
        "a_mixin_with_a_metaclass",
        lambda subject: subject.kind.name == "keras3" or (2, 5) <= recorded.TF < (2, 9),
        "class tests need a metaclass; up to 2.4 and from 2.9 on the original has one, too",
        "TypeError",
    ),
    *(
        Difference(name, lambda _: recorded.TF < (2, 2), "it has no configuration (K3)", ours)
        for name, ours in (
            ("wrapped_at_run_time", (True, TRAINED, ["apply_gradients"] * 2)),
            ("wrapped_at_run_time_with_named_arguments", (True, TRAINED)),
            ("own_argument_in_the_configuration", (True, 7, TRAINED)),
        )
    ),
    Difference(
        "wrapped_at_run_time_by_bases",
        lambda subject: subject.api != "experimental" or recorded.TF < (2, 4),
        "the bases of the original do not hold what makes it a loss-scale optimizer",
        lambda subject: (True, TRAINED, [apply_name(subject)] * 2),
    ),
    *(
        Difference(
            name,
            lambda subject: subject.kind.name == "legacy" and recorded.TF >= (2, 11),
            "the public class is of the newer kind",
            ours,
        )
        for name, ours in DERIVED.items()
    ),
]

# Where there is a second Keras: over its optimizers, with the class of the other one.
KERAS_2_AS_SECOND = {**DERIVED, "has_attributes_first": "RuntimeError"}  # of the base of Keras 3
KERAS_3_AS_SECOND = {
    **DERIVED,
    "has_attributes_first": ("first", TRAINED),
    "unbound_calls": "AttributeError",  # of `apply` and `scale_loss`, which tf_keras does not have
    "what_the_class_is": (True, True, False, "LossScaleOptimizer", True),
}


def expected(name: str, original: Subject) -> Any:
    found = [
        difference
        for difference in DIFFERENCES
        if difference.program == name and difference.subjects(original)
    ]
    assert len(found) <= 1
    if found and callable(found[0].ours):
        return found[0].ours(original)
    return found[0].ours if found else None


def package(cls: Any) -> str:
    return cls.__module__.split(".")[0]


def is_of_tf_keras(original: Subject) -> bool:
    return package(original.kind.optimizers.SGD) == package(tf.keras.optimizers.SGD)


ORIGINALS = [subject for subject in recorded.originals() if is_of_tf_keras(subject)]
SECOND = [subject for subject in recorded.originals() if not is_of_tf_keras(subject)]

# It asks for the names of one Keras on the class of another.
PROGRAMS_OVER_SECOND = sorted(set(PROGRAMS) - {"public_names_on_the_class"})


def outcome(run: Program, subject: Subject) -> Any:
    try:
        return run(subject)
    except Exception as error:
        return type(error).__name__


def outcomes(name: str, original: Subject) -> Tuple[Any, Any]:
    """What a program gives with the original, and with ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the originals deprecate themselves
        return outcome(PROGRAMS[name], original), outcome(PROGRAMS[name], original.counterpart())


@pytest.mark.parametrize("original", ORIGINALS, ids=str)
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_the_program_runs_as_with_the_original(name: str, original: Subject):
    theirs, ours = outcomes(name, original)
    wanted = expected(name, original)
    if wanted is None:
        assert ours == theirs
    else:
        assert ours != theirs, "this is no difference"
        assert ours == wanted, theirs


@pytest.mark.skipif(not SECOND, reason="there is one Keras")
@pytest.mark.parametrize("name", PROGRAMS_OVER_SECOND)
def test_the_program_runs_over_a_second_keras(name: str):
    for original in SECOND:
        theirs, own = outcomes(name, original)
        in_keras_3 = original.kind.name == "keras3"
        second = KERAS_3_AS_SECOND if in_keras_3 else KERAS_2_AS_SECOND
        wanted = second.get(name, expected(name, original))
        assert own == (theirs if wanted is None else wanted), (str(original), theirs)


def test_the_public_class_of_keras_2():
    """From 2.9 on, that of the original cannot be subclassed."""
    for subject in recorded.originals() + recorded.ours():
        if subject.kind.name == "keras3":
            continue
        Mine = types.new_class("Mine", (subject.cls,))
        if subject.who == "original" and recorded.TF >= (2, 9):
            with pytest.raises(TypeError, match="takes no arguments"):
                make(Mine, subject)
        else:
            assert isinstance(make(Mine, subject), Mine)


# Tests of our public classes only, because the originals cannot run them.


@pytest.mark.parametrize("subject", recorded.ours(), ids=str)
def test_a_merged_metaclass(subject: Subject):
    """What to write for a second base that has a metaclass."""
    Merged = type("Merged", (Registered, type(subject.cls)), {})
    Scaled: Any = types.new_class("Scaled", (OfRegistered, subject.cls), {"metaclass": Merged})
    assert trained(subject, make(Scaled, subject)) == TRAINED
    assert Scaled.made == 1


@pytest.mark.parametrize("subject", recorded.ours(), ids=str)
def test_repr_and_type(subject: Subject):
    optimizer = make(subject.cls, subject)
    one_kind = subject.kind.name == "keras3" or recorded.TF < (2, 11)
    if issubclass(tfls.keras.mixed_precision.LossScaleOptimizer, subject.kind.optimizers.Optimizer):
        assert (type(optimizer) is subject.cls) is one_kind
    # From 2.12 on, Keras 2 writes the module of the class to files, so it is the installed one.
    written = recorded.TF >= (2, 12) and subject.kind.name != "keras3"
    assert type(optimizer).__module__.startswith("tf_lossscale.") is not written
    text = repr(optimizer)
    assert "tf_lossscale" in text
    assert "64" in text
    assert repr(optimizer.inner_optimizer) in text
