"""Renames legacy modules that are used as values, and reports names that they never had.

`mp = tf.keras.mixed_precision.experimental`, with `mp` passed on or read by other files, becomes
the shim's module, which has the same names. A module that also holds other things, such as
`tf.contrib.tpu`, cannot be renamed as a whole; where it is passed on, that is reported. A name that
`tf.contrib.mixed_precision` never had is an error in every TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...resolve.guards import depends_on_version
from ...resolve.legacy_symbols import is_of_shim, legacy_of, namespace_of
from ...resolve.mentions import names_bound
from ...resolve.places import NamespaceUse
from ...resolve.scopes import dotted
from ...resolve.tree import last_name
from ...resolve.values import reads_of_value
from ...rewrite.proposal import SHIM, needs_of_place, shown_path
from ..rule import Program, Proposal, Rule, Safety

__all__ = ["RULE", "keeps_names"]

_WHOLE = (
    "contrib.mixed_precision",
    "keras.mixed_precision.experimental",
    "mixed_precision.experimental",
)
"""The modules of which everything is legacy."""
_VALUE = "the module is used as a value, so what is read from it cannot be seen"
_PASSED = "{} is used as a value: import by name what is read from it, then migrate again"
_LAZY = "the shim's modules have their names only once they are read: use dir and getattr"
_ABSENT = "{} has no such name in any current TensorFlow, and nothing replaces it: do without it"
_LEFT = (
    "this import fails from TensorFlow {} on: remove it, or move it to the branch for older "
    "versions, if only this needs it"
)


def _is_whole(path: str) -> bool:
    """Whether `path` is a removed module of which everything is legacy, and that the shim has."""
    module = namespace_of(path)
    if module is None or module.is_current or is_of_shim(path):
        return False
    return module.name in _WHOLE


def keeps_names(use: NamespaceUse) -> bool:
    """Whether a module is one of the shim, or becomes one that has the same names."""
    return is_of_shim(use.path) or _is_whole(use.path)


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the shim's module for each use as a value; reports what has no twin."""
    for use in program.namespaces:
        module = namespace_of(use.path)
        assert module is not None
        parent = program.parents.get(use.node)
        name = parent.attr.value if isinstance(parent, cst.Attribute) else ""
        call = program.parents.get(parent) if isinstance(parent, cst.Arg) else None
        function = last_name(call.func) if isinstance(call, cst.Call) else ""
        if (function == "vars" or name == "__dict__") and keeps_names(use):
            yield Proposal.report(parent or use.node, "LS909", "__dict__", _LAZY)
        if _is_whole(use.path) and name and not name.startswith("__"):
            yield Proposal.report(parent or use.node, "LS909", name, _ABSENT.format(use.path))
        elif _is_whole(use.path) and not _is_followed(program, use):
            yield from needs_of_place(program, use, "LS909", _VALUE)
            path = f"{SHIM}.{module.name}"
            made = Proposal(use.node, "LS909", use.path, Safety.SAFE, f"use {shown_path(path)}")
            yield made._replace(moves=((use, path),))
        elif name or function == "hasattr" or _is_followed(program, use):
            continue
        elif is_of_shim(use.path) and not module.is_final:
            yield from needs_of_place(program, use, "LS909", _VALUE)
        elif not is_of_shim(use.path) and not module.is_current and use.root is not None:
            yield Proposal.report(use.node, "LS909", use.path, _PASSED.format(use.path))
    yield from _imports(program)


def _is_followed(program: Program, use: NamespaceUse) -> bool:
    """Whether the module is bound to names of which every read is a place of its own.

    The reads of `self.mp` are not, and a name that nothing here reads is there for other files, or
    left over.
    """
    names = names_bound(program, use)
    owners = [(use.scope.owner(name) or use.scope, name) for name in names]
    reads = reads_of_value(program, use.node)
    is_read_here = bool(names and reads) and program.cached(_known_reads).issuperset(reads)
    return is_read_here and not any(program.is_read_elsewhere(*one) for one in owners)


def _known_reads(program: Program) -> frozenset[cst.CSTNode]:
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
        if is_plain and _is_whole(path):
            reads = [one.node for one in program.places() if one.root is not None]
            if not any(dotted(one).startswith(path) for one in reads):
                version = "2.0" if path.startswith("tensorflow.contrib") else "2.9"
                yield Proposal.report(alias, "LS909", path, _LEFT.format(version))
        module, _, name = path.rpartition(".")
        is_known = legacy_of(path) is not None or namespace_of(path) is not None
        if is_known or not _is_whole(module):
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
