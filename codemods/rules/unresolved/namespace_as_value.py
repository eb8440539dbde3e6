"""Renames legacy modules that are used as values, and reports names that they never had.

`mp = tf.keras.mixed_precision.experimental`, with `mp` passed on or read by other files, becomes
the shim's module, which has the same names. A module of `tf.contrib` that also holds other things
cannot be renamed as a whole; where it is passed on, that is reported. A name that
`tf.contrib.mixed_precision` never had is an error in every TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...resolve.guards import depends_on_version
from ...resolve.legacy_symbols import is_of_shim, legacy_of, namespace_of, root_of
from ...resolve.mentions import names_bound
from ...resolve.places import NamespaceUse
from ...resolve.scopes import dotted
from ...rewrite.proposal import SHIM, needs_of_place, shown_path
from ..rule import Program, Proposal, Rule, Safety

__all__ = ["RULE", "is_whole"]

_WHOLE = (
    "contrib.mixed_precision",
    "keras.mixed_precision.experimental",
    "mixed_precision.experimental",
)
"""The modules of which everything is legacy."""
_VALUE = "the module is used as a value, so what is read from it cannot be seen"
_PASSED = "the module {} is passed on: its attributes cannot be tracked from here"
_ABSENT = "{} has no such name in any current TensorFlow, and nothing replaces it: do without it"
_LEFT = (
    "this import fails from TensorFlow {} on: remove it, or move it to the branch for older "
    "versions, if only this needs it"
)


def is_whole(program: Program, path: str) -> bool:
    """Whether `path` is a module of which everything is legacy, and that the shim has, too."""
    root = root_of(path)
    module = namespace_of(path)
    if root is None or module is None or is_of_shim(path):
        return False
    is_in_v1 = root.name == "v1" and module.name == "mixed_precision.experimental"
    return module.name in _WHOLE and not is_in_v1  # TensorFlow still has that one


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the shim's module for each use as a value; reports what has no twin."""
    for use in program.namespaces:
        parent = program.parents.get(use.node)
        name = parent.attr.value if isinstance(parent, cst.Attribute) else ""
        if is_whole(program, use.path) and name and not name.startswith("__"):
            yield Proposal.report(parent or use.node, "LS909", name, _ABSENT.format(use.path))
        elif is_whole(program, use.path) and not _is_followed(program, use):
            yield from needs_of_place(program, use, "LS909", _VALUE)
            yield _to_shim(program, use)
        elif _is_legacy_on_shim(program, use) and not name and not _is_followed(program, use):
            yield from needs_of_place(program, use, "LS909", _VALUE)
        elif _is_passed(program, use) and not name:
            yield Proposal.report(use.node, "LS909", use.path, _PASSED.format(use.path))
    yield from _imports(program)


def _is_legacy_on_shim(program: Program, use: NamespaceUse) -> bool:
    module = namespace_of(use.path)
    return is_of_shim(use.path) and module is not None and not module.is_final


def _to_shim(program: Program, use: NamespaceUse) -> Proposal:
    module = namespace_of(use.path)
    assert module is not None
    path = f"{SHIM}.{module.name}"
    made = Proposal(use.node, "LS909", use.path, Safety.SAFE, f"use {shown_path(path)}")
    return made._replace(moves=((use, path),))


def _is_passed(program: Program, use: NamespaceUse) -> bool:
    """Whether a module of `tf.contrib` that also has other contents is a value of its own."""
    root = root_of(use.path)
    is_of_contrib = root is not None and root.rest.startswith("contrib.")
    is_other = is_of_contrib and not is_whole(program, use.path)
    return is_other and use.root is not None and not _is_followed(program, use)


def _is_followed(program: Program, use: NamespaceUse) -> bool:
    """Whether the module is bound to names of which every read is a place of its own.

    The reads of `self.mp` are not, and a name that nothing here reads is there for other files, or
    left over.
    """
    known = program.cached(_known_reads)
    parent = program.parents.get(use.node)
    targets = [one.target for one in parent.targets] if isinstance(parent, cst.Assign) else []
    names = names_bound(program, use)
    if not names or not all(isinstance(target, cst.Name) for target in targets):
        return False
    for name in names:
        owner = use.scope.owner(name)
        reads = program.loads_of(owner, name) if owner is not None else []
        if owner is not None and program.is_read_elsewhere(owner, name):
            return False
        if not reads or not all(read in known for read in reads):
            return False
    return True


def _known_reads(program: Program) -> frozenset[cst.Name]:
    """The first names of all chains that lead to one symbol or module."""
    return frozenset(place.root for place in program.places() if place.root is not None)


def _imports(program: Program) -> Iterator[Proposal]:
    """Reports names that a module never had, and imports of legacy modules for their effect."""
    for binding in program.imports():
        alias = binding.node
        statement = program.parents.get(alias)
        if not isinstance(alias, cst.ImportAlias):
            continue
        is_plain = isinstance(statement, cst.Import) and alias.asname is None
        path = dotted(alias.name) if is_plain else binding.path
        if is_plain and is_whole(program, path):
            reads = [one.node for one in program.places() if one.root is not None]
            if not any(program.code(one).startswith(path) for one in reads):
                version = "2.0" if path.startswith("tensorflow.contrib") else "2.9"
                yield Proposal.report(alias, "LS909", path, _LEFT.format(version))
        module, _, name = path.rpartition(".")
        is_known = legacy_of(path) is not None or namespace_of(path) is not None
        if is_known or not is_whole(program, module):
            continue
        if not depends_on_version(program, alias):
            yield Proposal.report(alias, "LS909", name, _ABSENT.format(module))


RULE = Rule(
    codes={"LS909": "a legacy module used as a value, or a name that it never had"},
    summary="legacy modules used as values",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.0.0 (tf.contrib removed)",
    check=check,
    cases="""
        # an import of a name that the module never had
        > manual: no such name
          from tensorflow.keras.mixed_precision.experimental import DynamicLossScale

        # a module that is passed on
        - import tensorflow as tf
        + import tf_lossscale as tfls

        - setup(tf.keras.mixed_precision.experimental)
        + setup(tfls.keras.mixed_precision.experimental)
    """,
)
