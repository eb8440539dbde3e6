"""Reports legacy names that come through another module, which may be TensorFlow's or not.

Projects have their own `compat` modules (`from lingvo import compat as tf`). A file that imports
one does not show what its names mean. If the module is in the run, its own names are rewritten
there, and the uses need no edit, so the command drops the finding. Otherwise that module must be
migrated. There is one finding for each module, at its first import, however many names come through
it.

A class test of what `compile` may have made is reported in any case. So is a comparison with
`type(optimizer)`. The module shows which class is named, but not which one the optimizer has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Optional

import libcst as cst

from ...model import Safety
from ...resolve.classes import is_made_here, may_compile
from ...resolve.mentions import compares_type, tested_object
from ...resolve.places import Unclear
from ...resolve.program import Program
from ...resolve.scopes import Scope, dotted
from ...rewrite.proposal import Proposal
from ..findings import report
from ..rule import Example, Rule

__all__ = ["RULE"]

_MESSAGE = (
    "{} through `{}`: migrate that module if it re-exports TensorFlow's; otherwise silence this "
    "line (# lossscale: ignore[LS903])"
)
_TESTED = (
    "compile makes optimizers of the installed Keras's final class: if `{}` is the experimental "
    "class, this test is False from TensorFlow 2.4 on; test for both classes"
)
_EXACT = "the type of an optimizer depends on the TensorFlow version: use isinstance"
_SHOWN = 4
_DEPTH = 8


class _Module(NamedTuple):
    """The import through which a name comes, and the path of what it imports."""

    place: cst.CSTNode
    path: str


def check(program: Program) -> Iterator[Proposal]:
    """Reports each module once."""
    places: dict[str, cst.CSTNode] = {}
    names: dict[str, dict[str, str]] = {}
    for unclear in program.unclear:
        if unclear.why == "re-export":
            module = _module_of(program, unclear)
            places.setdefault(module.path, module.place)
            through = (
                f"{unclear.through}{'' if unclear.through.endswith('.') else '.'}{unclear.name}"
            )
            names.setdefault(module.path, {})[unclear.name] = through
    for path, place in places.items():
        found = list(names[path])
        made = report(place, "LS903", found[0], _MESSAGE.format(_words(found), path))
        yield made._replace(through=tuple(names[path].values()))
    yield from _tests(program)


def _tests(program: Program) -> Iterator[Proposal]:
    for unclear in program.unclear:
        if unclear.why != "re-export" or unclear.name != "LossScaleOptimizer":
            continue
        tested = tested_object(program, unclear.node)
        if compares_type(program, unclear.node):
            yield report(unclear.node, "LS903", unclear.name, _EXACT)
        elif tested is not None and may_compile(program) and not is_made_here(program, tested):
            message = _TESTED.format(program.code(unclear.node))
            yield report(unclear.node, "LS903", unclear.name, message)


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
            "not from the shim, which is the target",
            """\
            import tf_lossscale as tfls
            from tf_lossscale.keras.mixed_precision import LossScaleOptimizer

            opt = LossScaleOptimizer(opt)
            manager = tfls.contrib.mixed_precision.FixedLossScaleManager(128.0)
            """,
            keras=3,
        ),
    ),
)
