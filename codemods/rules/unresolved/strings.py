"""Reports strings that name what a migration moves; strings are never rewritten.

- `"loss_scale:0"`, the name of a tensor, which sessions fetch (LS905). The variables of the classes
  have different names: contrib's manager has `loss_scale`, `DynamicLossScale` has
  `current_loss_scale`. On TensorFlow 2, variables are resource variables, and such a name is a
  handle, not the value.
- `type(opt).__name__ == "LossScaleOptimizer"`, the name of a class (LS906). The final class is
  called `LossScaleOptimizerV3` from TensorFlow 2.11 to 2.15. The experimental one was called
  `LossScaleOptimizerV1` from 2.4 to 2.8. The classes of the shim have the names of the installed
  ones. So the result of such a test depends on the version; that of `isinstance` does not.
- `mock.patch("tensorflow.keras.mixed_precision.experimental.Policy")`, `operator.attrgetter`,
  `pydoc.locate`, `eval`, defaults of flags: a legacy path that is used as a path or run as code,
  also through a name, fails once the module is gone (LS912). Documentation, messages and help texts
  do not count. A module that only `getattr` or `import_module` names hides all that is read from it
  (LS902).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from ...model import Safety, Target
from ...resolve.legacy_symbols import Family
from ...resolve.program import Program
from ...resolve.tree import string_of
from ...rewrite.proposal import Proposal
from ..findings import report
from ..names import names_assigned
from ..rule import Example, Rule
from ._strings import completed_paths, paths_in_strings

__all__ = ["RULE"]

_TENSOR = re.compile(r"""["'](?:[\w.\-/]+/)?((?:loss_scale|bad_steps)(?:/read)?:0)["']$""")
_CLASS = re.compile(r"LossScale(?:Optimizer(?:V[13])?)?")
_OF_V1 = "MixedPrecisionLossScaleOptimizer"
"""A name that TensorFlow's class and the shim's have in every version."""
_ASKED = re.compile(r"__name__|__qualname__|\b(?:str|repr)\(type\(|__class__")
_ASKING = (cst.Call, cst.Comparison, cst.Subscript)
_FETCHED = (
    "only a contrib manager, or the program itself, makes a tensor of this name, and on TensorFlow "
    "2 a manager's is a handle, not the value: fetch the tensor (manager.get_loss_scale())"
)
_COMPARED = "the name of the class depends on the TensorFlow version: use isinstance"
_PATH = (
    "this string names {}, and strings are never rewritten: write the new path in it, or import "
    "the name with a statement"
)
_MODULE = "only a string names this module: import it with a statement, then migrate again"


def check(program: Program) -> Iterator[Proposal]:
    """Reports each such string."""
    yield from _tensors(program)
    yield from _class_names(program)
    completed = completed_paths(program)
    for string, path in completed.items():
        yield report(string, "LS902", path.rpartition(".")[2], _MODULE)
    for string, path in paths_in_strings(program):
        if string not in completed:
            yield report(string, "LS912", path.rpartition(".")[2], _PATH.format(path))


def _tensors(program: Program) -> Iterator[Proposal]:
    """The tensor names in a program that may have what makes a tensor of that name."""
    others = (Family.CROSS_SHARD, Family.FINAL)
    has_loss_scale = any(one.legacy.family not in others for one in program.references)
    migrated = [name for _, name in program.migrated]
    has_loss_scale |= any(one.endswith(("LossScale", "LossScaleManager")) for one in migrated)
    if has_loss_scale or program.guarded or program.unclear:
        for string in program.scopes.strings:
            named = _TENSOR.search(string.value)
            if named is not None:
                yield report(string, "LS905", named[1], _FETCHED)


def _class_names(program: Program) -> Iterator[Proposal]:
    """The expressions with such a name, also through a variable, that read a class's name."""
    to_shim = program.options.target is Target.SHIM
    for string in program.scopes.strings:
        name = string_of(string) or ""
        if _CLASS.fullmatch(name) or (name == _OF_V1 and not to_shim):
            names = names_assigned(program, string)
            for node in [string, *(one for one in program.scopes.loads if one.value in names)]:
                asking = (one for one in program.ancestors(node) if isinstance(one, _ASKING))
                place = next((one for one in asking if _ASKED.search(program.code(one))), None)
                if place is not None:
                    yield report(place, "LS906", "__name__", _COMPARED)
                    break


RULE = Rule(
    codes={
        "LS905": "a string that names a loss-scale tensor",
        "LS906": "a test of a class's name",
        "LS912": "a legacy path in a string",
    },
    summary="tensors, classes and paths that strings name, reported",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.9.0",
    check=check,
    examples=(
        Example(
            "not documentation, messages and help texts",
            '''\
            """tf.keras.mixed_precision.experimental.Policy is deprecated."""
            import logging
            import tensorflow as tf

            logging.warning("tf.keras.mixed_precision.experimental.Policy")
            parser.add_argument("--policy", help="tf.keras.mixed_precision.experimental.Policy")
            raise ValueError("tf.keras.mixed_precision.experimental is not there")
            ''',
        ),
        Example(
            "a path to patch",
            """\
            from unittest import mock

            with mock.patch("tensorflow.keras.mixed_precision.experimental.Policy"):
                pass
            """,
            None,
            Safety.MANUAL,
            message_contains="strings are never rewritten",
        ),
        Example(
            "a comparison with the name of the class",
            """\
            import tensorflow as tf

            if type(opt).__name__ in ["LossScaleOptimizer", "LossScaleOptimizerV1"]:
                opt = opt.inner_optimizer
            """,
            None,
            Safety.MANUAL,
            message_contains="isinstance",
        ),
    ),
)
