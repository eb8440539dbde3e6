"""Rewrites `optimizer._optimizer` to `optimizer.inner_optimizer`; `_loss_scale` needs the shim.

The experimental class kept the wrapped optimizer and the loss scale in private attributes;
TensorFlow 2.4 made `inner_optimizer` public, and Keras 3 only has the public one. The shim's
classes have both attributes on every version. So a program goes to the final API only if it reads
no `_loss_scale`, and `_optimizer` only of objects that are certain to be loss-scale optimizers.
Other private attributes of these, and their configs, need the shim, too. Other classes have
attributes of these names, which are left.

Assignments such as `optimizer.momentum = 0.5` need the shim, too. Up to TensorFlow 2.10, and with
the shim's classes, they set the hyperparameter of the wrapped optimizer. From 2.11 on, the final
class of Keras 2 keeps the value to itself, without an error, and the wrapped optimizer goes on with
the old one. Where `compile` wraps the optimizer of a model, or a version guard chooses the class,
this is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from ...resolve import vocabulary
from ...resolve.tree import string_of
from ...rewrite.arguments import renamed_attribute
from ..rule import Decision, Obstacle, Options, Program, Proposal, Rule, When

__all__ = ["RULE"]

_PUBLIC = "use inner_optimizer, which is public since TensorFlow 2.4"
_PRIVATE = "the final class has no `{}` of this meaning on every Keras"
_DICTIONARY = (
    "the dictionary of an optimizer has other names in each Keras, and in the shim's class: read "
    "the attributes of the optimizer itself"
)
_SET = (
    "from TensorFlow 2.11 on, the final class of Keras 2 does not pass `{}` on to the wrapped "
    "optimizer when it is set"
)
_CONFIGS = ("from_config", "get_config")
_UNWRAPPED = ("inner_optimizer", "_optimizer")
_OTHERS = re.compile(r"layer|norm|\Abn|\A[hlm]\Z|\Aema|averag", re.IGNORECASE)
"""In the names of layers and averages, whose hyperparameters have the same names."""
_PARSERS = re.compile(r"pars|options", re.IGNORECASE)
_LOST = (
    "the optimizers of Keras 3 ignore lr when it is set, so the learning rate stays: write "
    "{}.learning_rate = ..."
)


def needs(program: Program, options: Options) -> Iterator[Obstacle]:
    """The attributes that the final class does not have, or does not pass on when they are set."""
    if not options.for_keras_3:
        for node, name in _values_set(program):
            yield _obstacle(node, name, _SET)
    for name in program.scopes.attributes:
        is_private = name.startswith("_") and not name.startswith("__")
        if is_private or name in _CONFIGS:
            yield from _obstacles_of_attribute(program, name)
    for call, name in program.mentions.accesses(vocabulary.PRIVATE):
        if program.classes.may_be_loss_scale_optimizer(call.args[0].value):
            yield _obstacle(call, name, _PRIVATE, When.IF_EXPERIMENTAL)


def _obstacles_of_attribute(program: Program, name: str) -> Iterator[Obstacle]:
    """The uses of a private attribute or a config that `check` does not rename."""
    for attribute in program.attributes(name):
        is_certain = program.classes.is_loss_scale_optimizer(attribute.value)
        if is_certain and name == "_optimizer" and not program.is_stored(attribute):
            continue
        if is_certain or (name in vocabulary.PRIVATE and _may_be_wrapper(program, attribute.value)):
            yield _obstacle(attribute, name, _PRIVATE, When.IF_EXPERIMENTAL)


def _may_be_wrapper(program: Program, node: cst.BaseExpression) -> bool:
    is_self = isinstance(node, cst.Name) and node.value in ("self", "cls")
    return not is_self and program.classes.may_be_loss_scale_optimizer(node)


def check(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Proposes the public name for each read of a Keras loss-scale optimizer's attribute."""
    if decision.optimizers_on_shim:
        return
    if not any(reference.legacy.is_experimental_optimizer for reference in program.references):
        return
    for attribute in program.attributes("_optimizer"):
        is_wrapper = program.classes.is_loss_scale_optimizer(attribute.value)
        if program.is_stored(attribute) or not is_wrapper:
            continue
        edits = ((attribute, renamed_attribute("inner_optimizer")),)
        yield Proposal.edited(attribute, "LS303", "LossScaleOptimizer._optimizer", _PUBLIC, edits)


def _obstacle(node: cst.CSTNode, name: str, why: str, when: When = When.ALWAYS) -> Obstacle:
    code = "LS303" if name == "_optimizer" else "LS305"
    symbol = f"LossScaleOptimizer.{name}"
    return Obstacle.of_optimizers(node, code, symbol, why.format(name), when)


def _values_set(program: Program) -> Iterator[tuple[cst.CSTNode, str]]:
    """Each place that sets a hyperparameter of what is or may be a wrapper."""
    for name in vocabulary.HYPERPARAMETERS:
        for attribute in program.attributes(name):
            if program.is_stored(attribute) and _is_wrapper(program, attribute.value):
                yield attribute, name
    calls = [program.call_of(load) for load in program.scopes.loads if load.value == "setattr"]
    for call in filter(None, calls):
        name = _name_set(program, call)
        if name:
            yield call, name


def _name_set(program: Program, call: cst.Call) -> str:
    """The hyperparameter that `setattr(optimizer, name, value)` sets; a variable can be any."""
    if len(call.args) < 2 or call.args[0].star:
        return ""
    owner, second = call.args[0].value, call.args[1].value
    text = string_of(second)
    if text in vocabulary.HYPERPARAMETERS and _is_wrapper(program, owner):
        return str(text)
    is_any = isinstance(second, cst.Name) and program.classes.can_be_made_here(owner)
    return second.value if is_any and isinstance(second, cst.Name) else ""


def _is_wrapper(program: Program, node: cst.CSTNode) -> bool:
    """Whether `node` is a loss-scale optimizer on some path, or may be one of another file."""
    if program.classes.is_loss_scale_optimizer(node) or program.classes.can_be_made_here(node):
        return True
    if not program.classes.may_be_loss_scale_optimizer(node):
        return False
    name = node.attr.value if isinstance(node, cst.Attribute) else program.code(node)
    is_inner = program.code(node) in program.cached(_code_of_wrapped)
    sources = program.values.sources_of(node)
    return not (
        is_inner or _OTHERS.search(name) or any(_is_other(program, source) for source in sources)
    )


def _code_of_wrapped(program: Program) -> set[str]:
    return set(map(program.code, _wrapped(program)))


def _wrapped(program: Program) -> list[cst.BaseExpression]:
    """What the program gives to wrappers as the inner optimizer."""
    wrappers = [
        reference.node for reference in program.references if reference.legacy.is_keras_optimizer
    ]
    wrappers += [node for node, name in program.migrated if name == vocabulary.CLASS]
    calls = [program.call_of(wrapper) for wrapper in wrappers]
    return [call.args[0].value for call in calls if call is not None and call.args]


def _is_other(program: Program, source: cst.CSTNode) -> bool:
    """Whether a value is an inner optimizer, or parsed options, which are often called `opt`."""
    if isinstance(source, cst.Attribute):
        return source.attr.value in _UNWRAPPED
    if not isinstance(source, cst.Call):
        return False
    names = [string_of(argument.value) for argument in source.args]
    return bool(_PARSERS.search(program.code(source.func))) or not set(names).isdisjoint(_UNWRAPPED)


def reports(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Reports the dictionary of an optimizer, and what Keras 3's inner optimizers ignore."""
    calls = [program.call_of(load) for load in program.scopes.loads if load.value == "vars"]
    found = [(call, call.args[0].value) for call in calls if call is not None and call.args]
    read = [(attribute, attribute.value) for attribute in program.attributes("__dict__")]
    for node, owner in [*found, *read]:
        if program.classes.is_loss_scale_optimizer(owner):
            yield Proposal.report(node, "LS305", "LossScaleOptimizer.__dict__", _DICTIONARY)
    if not options.for_keras_3:
        return
    for attribute in program.attributes("lr"):
        if program.is_stored(attribute) and _is_inner(program, attribute.value):
            message = _LOST.format(program.code(attribute.value))
            yield Proposal.report(attribute, "LS408", "inner_optimizer.lr", message)


def _is_inner(program: Program, node: cst.BaseExpression) -> bool:
    """Whether a node is what a Keras loss-scale optimizer wraps, also under the name it had."""
    if not isinstance(node, cst.Attribute) or node.attr.value not in _UNWRAPPED:
        is_wrapper = program.classes.can_be_made_here(node)  # `opt = LossScaleOptimizer(opt)`
        sources = program.values.sources_of(node)
        return not is_wrapper and not program.cached(_sources_of_wrapped).isdisjoint(sources)
    return program.classes.may_be_loss_scale_optimizer(node.value)


def _sources_of_wrapped(program: Program) -> frozenset[cst.CSTNode]:
    """The expressions that make the optimizers which the program wraps, and its parameters."""
    return frozenset(
        source for node in _wrapped(program) for source in program.values.sources_of(node)
    )


RULE = Rule(
    codes={
        "LS303": "_optimizer of a Keras LossScaleOptimizer",
        "LS305": "private and set attributes, and configs, of a Keras LossScaleOptimizer",
        "LS408": "lr of an inner optimizer, which Keras 3 ignores when it is set",
    },
    summary="optimizer._optimizer to optimizer.inner_optimizer",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.4.0",
    needs=needs,
    check=check,
    reports=reports,
    cases="""
        # not a loop that unwraps any optimizer
          from tensorflow.keras.mixed_precision import LossScaleOptimizer

          def unwrap(optimizer):
              while hasattr(optimizer, "_optimizer"):
                  optimizer = optimizer._optimizer
              return optimizer

        # not a loss-scale optimizer that has the name of what it wraps
        > --keras 3
          import tensorflow as tf
          import tf_lossscale as tfls

          opt = tf.keras.optimizers.SGD(0.5)
          opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)
          opt.lr = 0.25

        # the learning rate of an inner optimizer
        > manual, --keras 3
          import tf_lossscale as tfls

          opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)
          opt.inner_optimizer.lr = 0.5

        # the learning rate of an inner optimizer, in a schedule
        > manual, --keras 3
          import tf_lossscale as tfls

          opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)

          def halve():
              opt.inner_optimizer.lr *= 0.5

        # the learning rate of an optimizer that is wrapped
        > manual, --to shim, --keras 3
          import tensorflow as tf
          import tf_lossscale as tfls

          inner = tf.keras.optimizers.SGD(0.5)
          opt = tfls.keras.mixed_precision.experimental.LossScaleOptimizer(inner, "dynamic")
          inner.lr = 0.25

        # the inner optimizer
          import tensorflow as tf

          opt = tf.keras.optimizers.Adam(1e-3)
        - opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
        - print(opt._optimizer.learning_rate)
        + opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
        + print(opt.inner_optimizer.learning_rate)

        # the inner optimizer of one that comes from elsewhere
        - import tensorflow as tf
        + import tf_lossscale as tfls

        - opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(make(), "dynamic")
        + opt = tfls.keras.mixed_precision.experimental.LossScaleOptimizer(make(), "dynamic")

          def rate(optimizer):
              return optimizer._optimizer.learning_rate

        # the private loss scale
        - import tensorflow as tf
        + import tf_lossscale as tfls

        - opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(make(), "dynamic")
        + opt = tfls.keras.mixed_precision.experimental.LossScaleOptimizer(make(), "dynamic")
          print(opt._loss_scale)

        # a hyperparameter that is set through the wrapper
        > safe: when it is set
          import tensorflow as tf
        + import tf_lossscale as tfls

        - opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1, 0.9))
        + opt = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1, 0.9))
          opt.momentum = 0.5
    """,
)
