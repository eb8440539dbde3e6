"""Reports keys of an optimizer's config that the classes name differently.

Up to TensorFlow 2.3, the config of a loss-scale optimizer had the keys `optimizer` and
`loss_scale`. Since 2.4, every class writes `inner_optimizer`, `dynamic`, `initial_scale` and
`dynamic_growth_steps`, and Keras 3 has no `dynamic`. Under `class_name`, the experimental class was
`LossScaleOptimizerV1` from 2.4 on, and the final one is `LossScaleOptimizerV3` from 2.11 to 2.15.
Keras 3 reads none of the older configs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

import libcst as cst

from ...model import Safety, Target
from ...resolve.possible_values import possible_values
from ...resolve.program import Program
from ...resolve.tree import string_of
from ...rewrite.proposal import Proposal
from ..findings import report
from ..rule import Example, Rule
from ._keras3_loops import to_shim_class
from ._loss_scale_receivers import may_be_loss_scale_optimizer

__all__ = ["RULE"]

_OLD_KEYS = {"optimizer": "inner_optimizer", "loss_scale": "initial_scale and dynamic_growth_steps"}
_OF_SERIALIZED = frozenset(["class_name", "config"])
_NAMES = frozenset(["LossScaleOptimizer", "LossScaleOptimizerV1", "LossScaleOptimizerV3"])
_LOOKUPS = frozenset(["get", "pop", "setdefault"])
_KEY = (
    "the config of a loss-scale optimizer has no key {key!r} since TensorFlow 2.4: use {new} "
    "instead"
)
_DYNAMIC = "the config of Keras 3's class has no key 'dynamic': its loss scale is always dynamic"
_CLASS_NAME = (
    "the class name in a config depends on the TensorFlow version (V1 from 2.4 to 2.8, V3 from "
    "2.11 to 2.15): accept each name that starts with LossScaleOptimizer"
)
_WRITTEN_CONFIG = (
    "Keras 3 reads no config of an earlier loss-scale optimizer: construct the optimizer instead"
)


def check(program: Program) -> Iterator[Proposal]:
    """Reports each such key, class name and config."""
    for string in program.scopes.strings:
        key = string_of(string)
        if key in _OLD_KEYS and _is_key_of_config(program, string):
            yield _reported(string, _KEY.format(key=key, new=_OLD_KEYS[key]))
        elif key == "dynamic" and _to_installed(program) and _is_key_of_config(program, string):
            yield _reported(string, _DYNAMIC)
        elif key in _NAMES:
            place = _compared_with_class_name(program, string)
            if place is not None and program.options.target is not Target.SHIM:
                yield _reported(place, _CLASS_NAME)
            elif _is_in_config(program, string) and program.options.for_keras_3:
                yield _reported(string, _WRITTEN_CONFIG)


def _to_installed(program: Program) -> bool:
    is_final = program.options.target is Target.FINAL
    return is_final and program.options.for_keras_3 and not to_shim_class(program)


def _reported(node: cst.CSTNode, message: str) -> Proposal:
    return report(node, "LS306", "get_config", message)


def _is_key_of_config(program: Program, string: cst.SimpleString) -> bool:
    """Whether a dict is read with this key: `config["loss_scale"]`, `config.get("loss_scale")`."""
    looked_up = _looked_up_in(program, string)
    if looked_up is None:
        return False
    table, result = looked_up
    if string_of(string) == "loss_scale" and _is_read_as_serialized(program, result):
        return True
    return any(_is_config(program, value) for value in possible_values(program, table))


def _looked_up_in(
    program: Program, string: cst.SimpleString
) -> Optional[tuple[cst.BaseExpression, cst.CSTNode]]:
    """The dict that a key is looked up in, and the expression that does so."""
    parent = program.parents.get(string)
    if isinstance(parent, cst.Index):
        element = program.parents.get(parent)
        subscript = program.parents.get(element) if element is not None else None
        return (subscript.value, subscript) if isinstance(subscript, cst.Subscript) else None
    if isinstance(parent, cst.Comparison) and len(parent.comparisons) == 1:
        only = parent.comparisons[0]
        is_member = isinstance(only.operator, (cst.In, cst.NotIn))
        return (only.comparator, parent) if is_member else None
    call = program.parents.get(parent) if isinstance(parent, cst.Arg) else None
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute):
        is_lookup = call.func.attr.value in _LOOKUPS and call.args[0] is parent
        return (call.func.value, call) if is_lookup else None
    return None


def _is_read_as_serialized(program: Program, node: cst.CSTNode) -> bool:
    """Whether `node["class_name"]` or `node["config"]` is read."""
    parent = program.parents.get(node)
    if isinstance(parent, cst.Subscript) and parent.value is node:
        index = parent.slice[0].slice
        return isinstance(index, cst.Index) and string_of(index.value) in _OF_SERIALIZED
    return False


def _is_config(program: Program, value: cst.CSTNode) -> bool:
    """Whether `value` is `optimizer.get_config()`, or the config in `serialize(optimizer)`."""
    if isinstance(value, cst.Subscript):
        index = value.slice[0].slice
        is_inner = isinstance(index, cst.Index) and string_of(index.value) == "config"
        return is_inner and any(
            _is_serialized(program, each) for each in possible_values(program, value.value)
        )
    if not isinstance(value, cst.Call) or not isinstance(value.func, cst.Attribute):
        return False
    is_call = value.func.attr.value == "get_config"
    return is_call and may_be_loss_scale_optimizer(program, value.func.value)


def _is_serialized(program: Program, value: cst.CSTNode) -> bool:
    is_call = isinstance(value, cst.Call) and value.args
    if not isinstance(value, cst.Call) or not is_call:
        return False
    name = program.code(value.func).rpartition(".")[2]
    return name in ("serialize", "serialize_keras_object") and may_be_loss_scale_optimizer(
        program, value.args[0].value
    )


def _compared_with_class_name(
    program: Program, string: cst.SimpleString
) -> Optional[cst.Comparison]:
    for above in program.ancestors(string):
        if isinstance(above, cst.Comparison):
            return above if "class_name" in program.code(above) else None
        if not isinstance(above, (cst.ComparisonTarget, cst.Element, cst.List, cst.Set, cst.Tuple)):
            return None
    return None


def _is_in_config(program: Program, string: cst.SimpleString) -> bool:
    """Whether it is in `{"class_name": "LossScaleOptimizer", "config": ...}`."""
    element = program.parents.get(string)
    if not isinstance(element, cst.DictElement) or element.value is not string:
        return False
    display = program.parents.get(element)
    elements = display.elements if isinstance(display, cst.Dict) else ()
    keys = {string_of(one.key) for one in elements if isinstance(one, cst.DictElement)}
    return string_of(element.key) == "class_name" and "config" in keys


RULE = Rule(
    codes={"LS306": "a key of the config of a loss-scale optimizer"},
    summary="keys and class names in configs, reported",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.4.0",
    check=check,
    examples=(
        Example(
            "not a setting of the program",
            """\
            import tensorflow as tf

            scale = settings["loss_scale"]
            opt = tf.keras.mixed_precision.LossScaleOptimizer(opt, initial_scale=scale)
            """,
        ),
        Example(
            "not the config of another optimizer",
            """\
            import tensorflow as tf

            rate = tf.keras.optimizers.SGD().get_config()["learning_rate"]
            opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
            """,
        ),
        Example(
            "a key of the old config",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())
            config = opt.get_config()
            print(config["loss_scale"])
            """,
            None,
            Safety.MANUAL,
            message_contains="initial_scale",
        ),
        Example(
            "a serialized loss scale",
            """\
            import tensorflow as tf

            mp = tf.keras.mixed_precision

            def kind(config):
                return config["loss_scale"]["class_name"]
            """,
            None,
            Safety.MANUAL,
            message_contains="no key 'loss_scale'",
        ),
        Example(
            "the class name in a config",
            """\
            import tensorflow as tf

            mp = tf.keras.mixed_precision
            wrapped = config["class_name"] == "LossScaleOptimizer"
            """,
            None,
            Safety.MANUAL,
            message_contains="V3 from",
        ),
    ),
)
