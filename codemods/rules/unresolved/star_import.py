"""Reports legacy names that only a star import can bind.

`from module import *` hides where a name comes from. In public code, most loss-scale managers with
these names come from `from npu_bridge.npu_init import *`, which is not TensorFlow. So no name is
rewritten because of its spelling.

`from tensorflow.contrib.mixed_precision import *` exports four names, and the shim's module exports
the same four. It is rewritten if it is the only star import of the file, at the top level and
outside any branch. Then every such name comes from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

import libcst as cst

from ...model import Group, Safety, Target
from ...resolve.legacy_symbols import legacy_of, root_of
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ...rewrite.rename import SHIM
from ..findings import needs_shim, report
from ..rule import Example, Rule

__all__ = ["RULE"]

_MESSAGE = "names from `import *` ({}) cannot be resolved: import them by name, then migrate again"
_MODULE = "contrib.mixed_precision"
_MOVED = f"use tfls.{_MODULE}; the module exports the same names as tf.{_MODULE}"
_STAR = "names from a star import cannot be told apart"


def check(program: Program) -> Iterator[Proposal]:
    """Reports each such place, or moves the star import that they all come through."""
    for scope in program.all_scopes():
        for star, path in scope.stars:
            if path == f"{SHIM}.{_MODULE}" and not program.goes_to_shim(Group.CONTRIB):
                yield needs_shim(star, "LS901", "*", Group.CONTRIB, _STAR)
    statement = _movable(program)
    if statement is None:
        for unclear in program.unclear:
            if unclear.why == "star":
                guidance = _MESSAGE.format(unclear.through)
                yield report(unclear.node, "LS901", unclear.name, guidance)
    elif not program.goes_to_shim(Group.CONTRIB):
        yield needs_shim(statement, "LS901", "*", Group.CONTRIB, _STAR)
    else:
        made = Proposal(statement, "LS901", "*", Safety.SAFE, _MOVED)
        yield made._replace(edits=((statement, _from_shim),))


def _movable(program: Program) -> Optional[cst.ImportFrom]:
    """The only star import, if it is that of `tf.contrib.mixed_precision` at the top level."""
    stars = [star for scope in program.all_scopes() for star in scope.stars]
    if len(stars) != 1:
        return None
    statement, path = stars[0]
    root = root_of(path)
    if root is None or root.rest != _MODULE:
        return None
    if not isinstance(program.parents.get(program.parents[statement]), cst.Module):
        return None  # in a branch, a `try` or a function
    names = {unclear.name for unclear in program.unclear if unclear.why == "star"} - {"*"}
    exported = all(legacy_of(f"tensorflow.{_MODULE}.{name}") for name in names)
    return statement if exported else None


def _from_shim(node: cst.CSTNode) -> object:
    assert isinstance(node, cst.ImportFrom)
    return node.with_changes(module=cst.parse_expression(f"{SHIM}.{_MODULE}"))


RULE = Rule(
    codes={"LS901": "a legacy name that only a star import can bind"},
    summary="names from star imports, reported",
    upstream="https://docs.python.org/3/tutorial/modules.html#importing-from-a-package",
    check=check,
    examples=(
        Example(
            "not from npu_bridge",
            """\
            from npu_bridge.npu_init import *

            manager = ExponentialUpdateLossScaleManager(2**32, 1000)
            """,
        ),
        Example(
            "a module that a star import binds",
            """\
            from tensorflow.keras import *

            mixed_precision.experimental.set_policy("mixed_float16")
            """,
            None,
            Safety.MANUAL,
            message_contains="tensorflow.keras",
        ),
        Example(
            "the only star import, for the shim",
            """\
            import tensorflow as tf
            from tensorflow.contrib.mixed_precision import *

            manager = FixedLossScaleManager(8)
            opt = LossScaleOptimizer(tf.train.AdamOptimizer(), manager)
            """,
            """\
            import tensorflow as tf
            from tf_lossscale.contrib.mixed_precision import *

            manager = FixedLossScaleManager(8)
            opt = LossScaleOptimizer(tf.train.AdamOptimizer(), manager)
            """,
            Safety.SAFE,
            target=Target.SHIM,
            message_contains="same names",
        ),
    ),
)
