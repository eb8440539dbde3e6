"""Decides whether a class test that names a loss-scale class can move to the shim's class.

Under a `mixed_float16` policy, `compile` itself wraps the optimizer of a model that is not wrapped
yet, in the class of the installed Keras. Once a test names the shim's class, it is False for such
an optimizer: nothing is scaled. So a test is rewritten safely only if the source shows that the
program itself made the optimizer; the absence of `compile` shows nothing.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

import libcst as cst

from ...model import Safety
from ...resolve.instance_checks import CLASS_TESTS
from ...resolve.program import Program
from ._optimizer_sources import Atom, Found, Source, atoms, with_flows_resolved

__all__ = ["Risk", "atoms_of_test", "may_test_compiled", "object_of_test", "risk_of_test"]

_TABLES = (cst.Element, cst.Tuple, cst.List, cst.Set, cst.BinaryOperation)
_WRAPPED_BY_COMPILE = (
    "compile may have wrapped this optimizer in the class of the installed Keras (or load_model "
    "have made it), for which this test would be False: wrap the optimizer explicitly before "
    "compile, then migrate again"
)
_UNKNOWN = (
    "where this optimizer comes from cannot be determined statically: if compile has wrapped it in "
    "the class of the installed Keras, this test becomes False"
)


class Risk(NamedTuple):
    """Why a class test cannot be moved to the shim's class safely."""

    outcome: Safety
    message: str


def risk_of_test(program: Program, node: cst.CSTNode) -> Optional[Risk]:
    """Why the class test that names the class `node` is not safe to move to the shim's class.

    Safe are a place that is no test, and a test of an optimizer for which the source shows every
    value that it can have: the result of a loss-scale class, of another optimizer class, or None.
    """
    found = with_flows_resolved(program, atoms_of_test(program, node))
    if Source.COMPILED in found:
        return Risk(Safety.MANUAL, _WRAPPED_BY_COMPILE)
    if Source.UNKNOWN in found:
        return Risk(Safety.UNSAFE, _UNKNOWN)
    return None


def may_test_compiled(program: Program, node: cst.CSTNode) -> bool:
    """Whether the class test that names `node` can look at an optimizer that `compile` wrapped."""
    return Source.COMPILED in with_flows_resolved(program, atoms_of_test(program, node))


def atoms_of_test(program: Program, node: cst.CSTNode) -> Found:
    """The sources of what the class test that names `node` looks at, also those in other files."""
    found: set[Atom] = set()
    for place in [node, *_reads_of_table(program, node)]:
        tested = object_of_test(program, place)
        if tested is not None:
            found |= atoms(program, tested)
    return frozenset(found)


def _reads_of_table(program: Program, node: cst.CSTNode) -> list[cst.Name]:
    """The reads of a name that is bound to a tuple with the class in it: `KINDS = (A, B)`."""
    parent = program.parents.get(node)
    if not isinstance(parent, cst.Element):
        return []
    while isinstance(parent, _TABLES):
        parent = program.parents.get(parent)
    found = []
    for target in parent.targets if isinstance(parent, cst.Assign) else ():
        for name, scope in program.scopes.loads.items():
            bindings = scope.bindings_of(name.value)
            if any(binding.node is target.target for binding in bindings):
                found.append(name)
    return found


def object_of_test(program: Program, node: cst.CSTNode) -> Optional[cst.BaseExpression]:
    """The `x` of `isinstance(x, node)`, `type(x) is node` and `case node():`; otherwise None."""
    parent = program.parents.get(node)
    while isinstance(parent, _TABLES):
        node, parent = parent, program.parents.get(parent)
    if isinstance(parent, cst.MatchClass):
        return next(
            (above.subject for above in program.ancestors(parent) if isinstance(above, cst.Match)),
            None,
        )
    if isinstance(parent, cst.ComparisonTarget):
        comparison = program.parents.get(parent)
        return comparison.left if isinstance(comparison, cst.Comparison) else None
    if isinstance(parent, cst.Comparison):
        return parent.comparisons[0].comparator
    call = program.parents.get(parent) if isinstance(parent, cst.Arg) else None
    if not isinstance(call, cst.Call) or len(call.args) < 2 or call.args[1] is not parent:
        return None
    is_test = program.code(call.func).rpartition(".")[2] in CLASS_TESTS
    return call.args[0].value if is_test else None
