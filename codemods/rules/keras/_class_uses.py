"""Reports uses of a class of which the result depends on which class an object has exactly.

Class tests agree between the shim's classes and TensorFlow's, as do subclasses. `type(optimizer) is
LossScaleOptimizer` and a table with classes as keys do not, and a method that is replaced in one
class is not replaced in the other. A test for the experimental class misses what `compile` makes.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...resolve.classes import is_made_here, may_compile
from ...resolve.legacy_symbols import DISTINCTIVE
from ...resolve.mentions import DISPLAYS, compares_type, names_assigned, names_bound, tested_object
from ...resolve.places import Reference
from ...resolve.program import Program
from ...resolve.tree import last_name, walk
from ...rewrite.proposal import Proposal

__all__ = ["missed_by_tests", "reports_of_class", "tests_compiled"]

_PATCHED = (
    "this replaces a method or attribute of the class, but an optimizer that compile wraps has the "
    "class of the installed Keras: write a subclass, and wrap the optimizer in it"
)
_EXACT = (
    "an optimizer can have the shim's class, TensorFlow's, or a subclass, so its type may differ: "
    "use isinstance"
)
_COMPARED = (
    "other files may read `{}`: if one compares it with the type of an object, which can be the "
    "shim's class, TensorFlow's, or a subclass, use isinstance there"
)
_TESTS_BOTH = (
    "from TensorFlow 2.4 on, compile makes optimizers of the final class, for which this test is "
    "False: test for both classes"
)
_NAME = "LossScaleOptimizer"
_PATCHES = ("setattr", "delattr", "object")


def reports_of_class(program: Program, code: str) -> Iterator[Proposal]:
    """Reports such uses of the classes of one rule."""
    for reference in program.references_to(code):
        for name in names_bound(program, reference):
            if program.is_read_elsewhere(reference.scope, name) and name not in DISTINCTIVE:
                yield Proposal.report(reference.node, code, _NAME, _COMPARED.format(name))
    nodes = [one.node for one in program.references if one.legacy.rule == code]
    if code == "LS401":  # also where the shim's final class is there already
        nodes += [node for node, name in program.migrated if name == _NAME]
    for node in nodes:
        guidance = _guidance(program, node)
        if guidance:
            yield Proposal.report(node, code, _NAME, guidance)


def _guidance(program: Program, node: cst.CSTNode) -> str:
    parent = program.parents.get(node)
    if isinstance(parent, cst.Attribute):
        return _PATCHED if program.is_stored(parent) else ""
    if isinstance(parent, cst.Arg):
        call = program.parents.get(parent)
        name = last_name(call.func) if isinstance(call, cst.Call) else ""
        is_first = isinstance(call, cst.Call) and call.args[0] is parent
        return _PATCHED if is_first and name in _PATCHES else ""
    if isinstance(parent, cst.DictElement):
        return _EXACT if parent.key is node else ""
    compares = compares_type(program, node) or _is_in_table_beside_type(program, node)
    return _EXACT if compares else ""


def _is_in_table_beside_type(program: Program, node: cst.CSTNode) -> bool:
    """Whether the class is in a table with a name, in a file that also reads types of objects."""
    is_named = isinstance(program.parents.get(node), cst.Element) and names_assigned(program, node)
    types = (name.value for name in program.scopes.loads)
    return bool(is_named) and ("type" in types or bool(program.attributes("__class__")))


def tests_compiled(program: Program, node: cst.CSTNode) -> bool:
    """Whether a place is a test that may get an optimizer that `compile` has made."""
    tested = tested_object(program, node)
    return tested is not None and not is_made_here(program, tested) and may_compile(program)


def missed_by_tests(program: Program) -> Iterator[Proposal]:
    """Reports the first test for the experimental class only, which `compile` does not make."""
    in_branches = {place.node for branch in program.guards for place in branch.places}
    for reference in program.references_to("LS301") if may_compile(program) else ():
        node = reference.node
        is_known = node in in_branches or _tests_final(program, node)
        if not is_known and _is_tested(program, reference):
            yield Proposal.report(node, "LS301", _NAME, _TESTS_BOTH)
            return


def _is_tested(program: Program, reference: Reference) -> bool:
    """Whether a test of what `compile` may have made reads a place, here or in another file."""
    uses: list[cst.CSTNode] = [reference.node]
    for name in names_bound(program, reference):
        if program.is_read_elsewhere(reference.scope, name) and name not in DISTINCTIVE:
            return True
        reads = [*program.loads_of(reference.scope, name), *program.attributes(name)]
        uses += [one for one in reads if one not in program.by_node]
    return any(tests_compiled(program, use) for use in uses)


def _tests_final(program: Program, node: cst.CSTNode) -> bool:
    """Whether the class test around `node` names the final class, too."""
    finals = {one.node for one in program.references if one.legacy.rule == "LS401"}
    finals |= {one for one, name in program.migrated if name == _NAME}
    return not finals.isdisjoint(walk(program.outside(node, DISPLAYS)[0]))
