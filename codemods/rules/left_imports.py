"""Says which other file keeps an import of `tf.contrib` that a symbol was reached through.

`compat.contrib.tpu.CrossShardOptimizer` is rewritten where it is used. But `compat.py` keeps its
`from tensorflow import contrib`, which other names may need, and which fails on TensorFlow 2.
"""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from ..resolve.neighbors import is_in_run
from ..resolve.program import Program, Reference
from ..rewrite.proposal import Proposal

__all__ = ["with_left_import"]

_MOVED = "contrib.mixed_precision"
_LEFT = "{}; {} still reads tf.contrib, which TensorFlow 2 lacks"


def with_left_import(program: Program, proposal: Proposal) -> Proposal:
    """The proposal, whose message names the file if there is one."""
    if not program.neighbors.names:
        return proposal
    for reference, _ in proposal.moves:
        if reference.legacy.namespace.startswith("contrib."):
            file = _source_of(program, reference)
            if file:
                return proposal._replace(message=_LEFT.format(proposal.message, file))
    return proposal


def _source_of(program: Program, reference: Reference) -> str:
    """The file, or the module as it is imported, that leads to the symbol; empty if none does."""
    node = reference.node
    while isinstance(node, cst.Attribute):
        meanings = program.origins.of_expression(node, reference.scope)
        node = node.value
        below = program.origins.of_expression(node, reference.scope)
        files = sorted(path for path in below if is_in_run(path))
        if files:
            return files[0][len("./") :] if _is_left(program, meanings) else ""
    if not isinstance(node, cst.Name):
        return ""
    for binding in reference.scope.bindings_of(node.value):
        statement = program.parents.get(binding.node)
        is_followed = binding.node in program.scopes.followed
        if is_followed and isinstance(statement, cst.ImportFrom) and statement.module is not None:
            is_left = _is_left(program, [binding.path])
            return program.code(statement.module) if is_left else ""
    return ""


def _is_left(program: Program, meanings: Iterable[str]) -> bool:
    """Whether what another file binds is neither a symbol nor a module that is rewritten there."""
    for meaning in meanings:
        space = program.namespace_of(meaning)
        if program.legacy_of(meaning) is not None or (space is not None and space.name == _MOVED):
            return False
    return True
