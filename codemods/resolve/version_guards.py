"""Finds version guards: branches with the legacy API in one arm and the final API in another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Optional

import libcst as cst

from .legacy_symbols import Family
from .program import Program, Reference

__all__ = ["removable_arms", "version_arms"]

_VERSION = re.compile(r"version|VERSION|hasattr|parse_version|tf2|TF2|is_tf|_tf_")


def removable_arms(program: Program) -> frozenset[Reference]:
    """The legacy references in arms of version guards whose other arm is already migrated."""
    found: set[Reference] = set()
    for reference in program.references:
        if reference.legacy.family is Family.FINAL or reference.legacy.is_in_compat_v1:
            continue
        for arm, others in version_arms(program, reference.node):
            del arm
            if any(_final_twin(program, reference, other) for other in others):
                found.add(reference)
                break
    return frozenset([*found, *_assigned_to_names_in(program, found)])


def _assigned_to_names_in(program: Program, references: Iterable[Reference]) -> set[Reference]:
    """The references that are assigned to names in `references`, as in `LSO = tf.keras...`."""
    found: set[Reference] = set()
    left = list(references)
    while left:
        reference = left.pop()
        root = reference.root
        for binding in reference.scope.bindings_of(root.value) if root is not None else ():
            assigned = program.by_node.get(binding.value) if binding.value is not None else None
            if assigned is not None and assigned not in found:
                found.add(assigned)
                left.append(assigned)
    return found


def version_arms(
    program: Program, node: cst.CSTNode
) -> Iterator[tuple[cst.CSTNode, Sequence[cst.CSTNode]]]:
    """The arms of version guards that contain `node`, each with the other arms of its guard."""
    below = node
    for above in program.ancestors(node):
        arms: list[Optional[cst.CSTNode]] = []
        if isinstance(above, (cst.If, cst.IfExp)):
            if _VERSION.search(program.code(above.test)):
                arms = [above.body, above.orelse]
        elif isinstance(above, cst.Try) and any(
            _catches_absence(program, handler) for handler in above.handlers
        ):
            arms = [above.body, *above.handlers]
        if below in arms:
            yield below, [arm for arm in arms if arm is not None and arm is not below]
        below = above


def _catches_absence(program: Program, handler: cst.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    names = program.code(handler.type)
    return any(name in names for name in ("ImportError", "ModuleNotFound", "AttributeError"))


def _final_twin(program: Program, reference: Reference, arm: cst.CSTNode) -> bool:
    """Whether `arm` refers to the symbol that would replace `reference`."""
    legacy = reference.legacy
    for other in program.references:
        if other is reference or not _inside(program, other.node, arm):
            continue
        if legacy.family is Family.EXPERIMENTAL:
            if other.legacy.family is Family.FINAL and _same_use(legacy.name, other.legacy.name):
                return True
        elif other.legacy.name == legacy.name and other.legacy.is_in_compat_v1:
            return True
    return any(
        _same_use(legacy.name, name) and _inside(program, node, arm)
        for node, name in program.migrated
    )


def _same_use(old: str, new: str) -> bool:
    return new == ("set_global_policy" if old == "set_policy" else old)


def _inside(program: Program, node: cst.CSTNode, arm: cst.CSTNode) -> bool:
    return node is arm or any(above is arm for above in program.ancestors(node))
