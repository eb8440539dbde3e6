"""Reports uses of a class of which the result depends on which class an object has exactly.

Class tests agree between the shim's classes and TensorFlow's, as do subclasses. `type(optimizer) is
LossScaleOptimizer` and a table with classes as keys do not, and a method that is replaced in one
class is not replaced in the other.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...facts import Decision
from ...resolve.program import Program
from ...resolve.tree import last_name
from ...resolve.vocabulary import DISTINCTIVE
from ...rewrite.proposal import Proposal

__all__ = ["reports_of_class"]

_PATCHED = (
    "this replaces a method or attribute of the class, but an optimizer that compile wraps has the "
    "class of the installed Keras: write a subclass, and wrap the optimizer in it"
)
_EXACT = (
    "an optimizer can have the shim's class, TensorFlow's, or a subclass, so its type may differ: "
    "use isinstance"
)
_COMPARED = (
    "a file that reads `{}` compares types of objects, and an optimizer can have the shim's class, "
    "TensorFlow's, or a subclass: use isinstance there"
)
_NAME = "LossScaleOptimizer"
_PATCHES = ("setattr", "delattr", "object")


def reports_of_class(program: Program, code: str, decision: Decision) -> Iterator[Proposal]:
    """Reports such uses of the classes of one rule."""
    for reference in program.references_to(code):
        if reference.scope is program.scopes.module_scope:
            names = set(program.mentions.names_bound(reference)) & decision.compared - DISTINCTIVE
            for name in sorted(names):
                yield Proposal.report(reference.node, code, _NAME, _COMPARED.format(name))
    nodes = [reference.node for reference in program.references if reference.legacy.rule == code]
    if code == "LS401":  # also where the shim's final class is there already
        nodes += [node for node, name in program.migrated if name == _NAME]
    for node in nodes:
        guidance = _guidance(program, node)
        if guidance:
            yield Proposal.report(node, code, _NAME, guidance)


def _guidance(program: Program, node: cst.CSTNode) -> str:
    """The message for a use of the class that a final class would change; empty for others."""
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
    compares = program.mentions.compares_type(node) or _is_in_table_beside_type(program, node)
    return _EXACT if compares else ""


def _is_in_table_beside_type(program: Program, node: cst.CSTNode) -> bool:
    """Whether the class is in a table with a name, in a file that also reads types of objects."""
    is_element = isinstance(program.parents.get(node), cst.Element)
    is_named = is_element and program.mentions.names_assigned(node)
    types = (name.value for name in program.scopes.loads)
    return bool(is_named) and ("type" in types or bool(program.attributes("__class__")))
