"""Reports legacy names that come through another module, which may be TensorFlow's or not.

Projects have their own `compat` modules (`from lingvo import compat as tf`); this file does not
show what their names mean. Migrate that module instead. There is one finding for each module, at
its first import, however many names come through it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Optional

import libcst as cst

from ...model import Safety
from ...resolve.program import Program, Unclear
from ...resolve.scopes import Scope, dotted
from ...rewrite.proposal import Proposal
from ..findings import report
from ..rule import Example, Rule

__all__ = ["RULE"]

_MESSAGE = (
    "{names} through `{through}`: migrate that module if it re-exports TensorFlow's; otherwise "
    "silence this line (# lossscale: ignore[LS903])"
)
_SHOWN = 4
_DEPTH = 8


class _Module(NamedTuple):
    """The import through which a name comes, and the path of what it imports."""

    place: cst.CSTNode
    path: str


def check(program: Program) -> Iterator[Proposal]:
    """Reports each module once."""
    places: dict[str, cst.CSTNode] = {}
    names: dict[str, dict[str, None]] = {}
    for unclear in program.unclear:
        if unclear.why == "re-export":
            module = _module_of(program, unclear)
            places.setdefault(module.path, module.place)
            names.setdefault(module.path, {})[unclear.name] = None
    for path, place in places.items():
        found = list(names[path])
        message = _MESSAGE.format(names=_words(found), through=path)
        yield report(place, "LS903", found[0], message)


def _words(names: list[str]) -> str:
    """`A` comes; `A` and `B` come; `A`, `B`, `C`, `D` and 2 more come."""
    shown = [f"`{name}`" for name in names[:_SHOWN]]
    if len(names) > _SHOWN:
        shown.append(f"{len(names) - _SHOWN} more")
    if len(shown) == 1:
        return f"{shown[0]} comes"
    return f"{', '.join(shown[:-1])} and {shown[-1]} come"


def _module_of(program: Program, unclear: Unclear) -> _Module:
    alias = _import_of(program, unclear.node, unclear.scope, _DEPTH)
    if alias is None:
        return _Module(unclear.node, unclear.through)
    path = dotted(alias.name)
    statement = program.parents.get(alias)
    if isinstance(statement, cst.ImportFrom):
        module = "." * len(statement.relative)
        module += dotted(statement.module) if statement.module else ""
        if path == unclear.name:
            path = module
        else:
            path = f"{module}{'' if module.endswith('.') else '.'}{path}"
    return _Module(alias, path)


def _import_of(
    program: Program, node: Optional[cst.CSTNode], scope: Scope, depth: int
) -> Optional[cst.ImportAlias]:
    """The first import that binds the first name of a chain, or of the value of that name."""
    if isinstance(node, cst.ImportAlias):
        return node
    while isinstance(node, (cst.Attribute, cst.Call)):
        node = node.value if isinstance(node, cst.Attribute) else node.func
    if not isinstance(node, cst.Name) or depth == 0:
        return None
    for binding in scope.bindings_of(node.value):
        found = binding.node if binding.kind == "import" else binding.value
        alias = _import_of(program, found, binding.scope, depth - 1)
        if alias is not None:
            return alias
    return None


RULE = Rule(
    codes={"LS903": "a legacy name that comes through another module"},
    summary="names through other modules, reported",
    upstream="https://github.com/tensorflow/lingvo/blob/master/lingvo/compat.py",
    check=check,
    examples=(
        Example(
            "not from a library with its own class",
            """\
            from smdistributed.modelparallel.tensorflow import LossScaleOptimizer
            from paddle.fluid.contrib import mixed_precision

            opt = LossScaleOptimizer(opt)
            """,
        ),
        Example(
            "not a relative import of another name",
            """\
            from .optimizers import AutomaticLossScaler

            opt = AutomaticLossScaler(opt)
            """,
        ),
        Example(
            "not from the shim, which is the target",
            """\
            import tf_lossscale as tfls
            from tf_lossscale.keras.mixed_precision import LossScaleOptimizer

            opt = LossScaleOptimizer(opt)
            manager = tfls.contrib.mixed_precision.FixedLossScaleManager(128.0)
            """,
            keras=3,
        ),
        Example(
            "a module of the project that re-exports TensorFlow",
            """\
            from lingvo import compat as tf

            y = tf.tpu.cross_replica_sum(x)
            """,
            None,
            Safety.MANUAL,
            message_contains="through `lingvo.compat`",
        ),
        Example(
            "a relative import of the same name",
            """\
            from .optimizers import LossScaleOptimizer

            opt = LossScaleOptimizer(opt, 'dynamic')
            """,
            None,
            Safety.MANUAL,
            message_contains="`.optimizers`",
        ),
        Example(
            "another module of the same project",
            """\
            from . import optimizers

            opt = optimizers.LossScaleOptimizer(opt, 'dynamic')
            """,
            None,
            Safety.MANUAL,
            message_contains="`.optimizers`",
        ),
        Example(
            "several names through one module",
            """\
            from lingvo import compat as tf

            y = tf.tpu.cross_replica_sum(x)
            opt = tf.tpu.CrossShardOptimizer(opt)
            scale = tf.train.experimental.DynamicLossScale()
            """,
            None,
            Safety.MANUAL,
            message_contains="`CrossShardOptimizer` and `DynamicLossScale` come through",
        ),
    ),
)
