"""Tests the class of objects that our classes and TensorFlow's made, against both.

Arguments: the order in which the classes are loaded, or `install`, `replace` or `uninstall`.
Prints a JSON list of the tests that do not give the answer of the original program.
"""

import copy
import functools
import inspect
import json
import pickle
import sys
import types

import tensorflow as tf

import tf_lossscale as tfls

MODE = sys.argv[1]
VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])
V1 = tf.compat.v1
wrong = []


def found(owner, path):
    """The attribute of this path, or None."""
    for name in path.split("."):
        owner = getattr(owner, name, None)
    return owner


class Symbol:
    """One class: ours, TensorFlow's (or None), and how an object of either is made."""

    def __init__(self, family, base, name, namespaces, make, attribute=None):
        ours, theirs = (found(namespace, attribute or name) for namespace in namespaces)
        self.family, self.name, self.make = family, name, make
        self.classes = [ours] if theirs is None else [ours, theirs]
        self.bases = {name, base}


def v1_inner():
    return V1.train.GradientDescentOptimizer(0.5)


def keras_inner():
    return tf.keras.optimizers.SGD(0.5)


def all_symbols():
    v1 = tfls.compat.v1.train.experimental, V1.train.experimental
    # TensorFlow's in 1.15 only.
    contrib = tfls.contrib.mixed_precision, VERSION < (2, 0) and tf.contrib.mixed_precision
    shard = tfls.compat.v1.tpu, V1.tpu
    final = tfls.keras.mixed_precision, found(original_keras, "mixed_precision")
    experimental = [cls and found(cls, "experimental") for cls in final]
    optimizer, manager = "LossScaleOptimizer", "LossScaleManager"
    for row in (
        ("scale", "LossScale", "LossScale", v1, None),
        ("scale", "LossScale", "FixedLossScale", v1, lambda cls: cls(8.0)),
        ("scale", "LossScale", "DynamicLossScale", v1, lambda cls: cls(8.0)),
        ("optimizer", "", "MixedPrecision" + optimizer, v1, lambda cls: cls(v1_inner(), 8.0)),
        ("manager", manager, manager, contrib, None),
        ("manager", manager, "FixedLossScaleManager", contrib, lambda cls: cls(8.0)),
        ("manager", manager, "ExponentialUpdateLossScaleManager", contrib, lambda cls: cls(8.0, 2)),
        (
            *("optimizer", "", optimizer, contrib),
            lambda cls: cls(v1_inner(), tfls.contrib.mixed_precision.FixedLossScaleManager(8.0)),
        ),
        ("shard", "", "CrossShardOptimizer", shard, lambda cls: cls(v1_inner())),
        # Up to 2.3 Keras has the experimental class only, which stands for both.
        ("keras", "final", "final", final, lambda cls: cls(keras_inner()), optimizer),
        (
            *("keras", "final", "experimental", experimental),
            *(lambda cls: cls(keras_inner(), "dynamic"), optimizer),
        ),
        ("policy", "", "Policy", experimental, lambda cls: cls("float32")),
    ):
        yield Symbol(*row)


def check(expected, answer, *what):
    if bool(answer) != expected:
        wrong.append([str(part) for part in what] + ["is", bool(answer)])


def dispatched(cls, value):
    function = functools.singledispatch(lambda value: False)
    function.register(cls)(lambda value: True)
    return function(value)


def check_pair(one, other):
    """Objects of one symbol, tested for another, in every mixture of our and TensorFlow's class."""
    expected = one.family == other.family and other.name in one.bases
    for cls in one.classes:
        for tested in other.classes:
            pair = (one.name, other.name)
            if pair == ("final", "experimental") and tested is not other.classes[0]:
                expected = VERSION < (2, 4)  # where Keras knows no other class
            check(expected, issubclass(cls, tested), "issubclass", cls, tested)
            user = type("User", (tested,), {})
            check(False, issubclass(cls, user), "issubclass", cls, "a subclass of", tested)
            derived = type("Derived", (cls,), {})
            check(expected, issubclass(derived, tested), "a subclass of", cls, tested)
            check(expected, issubclass(derived, tested), "again, a subclass of", cls, tested)
            if one.make is None:
                continue
            # From 2.9 on Keras's public class is a common base, which cannot be subclassed.
            for made_by in [cls] if cls.__init__ is object.__init__ else [cls, derived]:
                made = one.make(made_by)
                for _ in range(2):  # abstract classes remember answers
                    check(expected, isinstance(made, tested), "isinstance", made_by, tested)
                check(False, isinstance(made, user), "isinstance", made_by, "a subclass of", tested)
                check(expected, dispatched(tested, made), "singledispatch", made_by, tested)


def check_copies(symbol):
    """Copies and pickles of ours pass the same tests, if the original can be copied, too."""
    for copied in (copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))):
        for cls in symbol.classes[::-1]:  # TensorFlow's class first
            try:
                made = copied(symbol.make(cls))
            except Exception as error:
                if cls is symbol.classes[-1] and symbol.family != "policy":
                    break  # TensorFlow's objects cannot be copied, either
                wrong.append(["a copy of", str(cls), repr(error)])
            else:
                for tested in symbol.classes:
                    check(True, isinstance(made, tested), "a copy", cls, tested)


def check_metaclasses(symbol):
    """A user's base with a metaclass of its own needs one that is merged with ours."""

    class Meta(type):
        pass

    mixin = Meta("Mixin", (), {})
    cls = symbol.classes[0]
    merged = type("Merged", (Meta, type(cls)), {})
    user = merged("User", (cls, mixin), {})
    made = symbol.make(user)
    for tested in (*symbol.classes, user, mixin):
        check(True, isinstance(made, tested), "of a merged metaclass,", user, tested)


def check_that_no_line_runs(ours, theirs, make):
    """TensorFlow's class is a base of ours in name only: forbids its methods, takes a step."""
    if theirs is None:
        return

    def forbidden(name):
        def method(*args, **kwargs):
            raise AssertionError(f"{theirs.__name__}.{name} was executed")

        return method

    before = ours.__mro__[: ours.__mro__.index(theirs)]
    for name, value in list(vars(theirs).items()):
        if not inspect.isfunction(value):
            continue
        is_ours = any(name in vars(cls) for cls in before)
        is_hook = not name.startswith("_")
        check(True, is_ours or not is_hook, "ours defines", theirs.__name__, name)
        setattr(theirs, name, forbidden(name))
    with tf.Graph().as_default():
        weight = V1.get_variable("weight", initializer=1.0)
        optimizer = make(ours, V1.train.MomentumOptimizer(0.5, 0.9))
        step = optimizer.minimize(weight * 1.0, global_step=V1.train.get_or_create_global_step())
        with V1.Session() as session:
            session.run(V1.global_variables_initializer())
            session.run(step)
            check(True, session.run(weight) == 0.5, "a step of", ours)
        check(True, optimizer.get_slot(weight, "momentum") is not None, "a slot of", ours)
        check(True, optimizer.get_slot_names() == ["momentum"], "slot names of", ours)
        check(True, len(optimizer.variables()) >= 1, "variables of", ours)
        check(True, optimizer.get_name(), "the name of", ours)
        tf.train.Checkpoint(optimizer=optimizer)


original_keras = tf.keras
if MODE == "originals first" and VERSION < (2, 0):
    tf.contrib.mixed_precision.LossScaleOptimizer
if MODE in ("install", "replace", "uninstall"):
    final = found(tf.keras, "mixed_precision.LossScaleOptimizer")
    experimental = found(tf.keras, "mixed_precision.experimental")
    # The classes as they were before `install()`, below the same names.
    original_keras = types.SimpleNamespace(
        mixed_precision=types.SimpleNamespace(
            LossScaleOptimizer=final,
            experimental=experimental
            and types.SimpleNamespace(
                LossScaleOptimizer=experimental.LossScaleOptimizer, Policy=experimental.Policy
            ),
        )
    )
    tfls.install(replace=MODE != "install")
    if MODE == "uninstall":
        tfls.uninstall()

symbols = list(all_symbols())
for symbol in symbols:
    for other in symbols:
        check_pair(symbol, other)
for symbol in symbols:
    if symbol.make is not None:
        check_metaclasses(symbol)
        check_copies(symbol)

policy = tfls.keras.mixed_precision.experimental.Policy("mixed_float16")
for scale in [
    policy.loss_scale,
    found(
        found(original_keras, "mixed_precision.experimental.Policy")
        and original_keras.mixed_precision.experimental.Policy("mixed_float16"),
        "loss_scale",
    ),
]:
    for tested in (
        tfls.train.experimental.DynamicLossScale,
        V1.train.experimental.DynamicLossScale,
    ):
        check(True, scale is None or isinstance(scale, tested), "the scale of a policy", tested)

ours = tfls.compat.v1.train.experimental.MixedPrecisionLossScaleOptimizer
theirs = V1.train.experimental.MixedPrecisionLossScaleOptimizer
if MODE != "replace":
    check_that_no_line_runs(ours, theirs, lambda cls, inner: cls(inner, 8.0))
    ours, theirs = tfls.compat.v1.tpu.CrossShardOptimizer, V1.tpu.CrossShardOptimizer
    check_that_no_line_runs(ours, theirs, lambda cls, inner: cls(inner))
    ours = tfls.contrib.mixed_precision
    made = ours.FixedLossScaleManager
    theirs = found(tf, "contrib.mixed_precision.LossScaleOptimizer") if VERSION < (2, 0) else None
    check_that_no_line_runs(
        ours.LossScaleOptimizer, theirs, lambda cls, inner: cls(inner, made(8.0))
    )

print(json.dumps(wrong))
