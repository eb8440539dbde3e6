"""Finds chains such as `mixed_precision.experimental.Policy` that begin at a star import.

`from tensorflow.keras import *` binds `mixed_precision`, and so does a star import of a module of
the project that does this.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from .legacy_symbols import root_of
from .scopes import Scope, ScopeBuilder

__all__ = ["StarChain", "star_chains"]

_TENSORFLOW = ("tensorflow", "tensorflow.keras", "tensorflow.contrib", "tensorflow.train")
"""Modules of TensorFlow that a module of a project may import everything from."""
_FIRST = frozenset(
    ["compat", "contrib", "experimental", "keras", "mixed_precision", "tpu", "train"]
)
"""The names in these modules through which legacy symbols are reached."""


class StarChain(NamedTuple):
    """A chain of names.

    Attributes:
      node: the chain.
      scope: the scope that reads it.
      paths: the paths that it may have.
      sources: the modules of the star imports.
    """

    node: cst.CSTNode
    scope: Scope
    paths: tuple[str, ...]
    sources: tuple[str, ...]


def star_chains(scopes: ScopeBuilder) -> Iterator[StarChain]:
    """Every such chain, also as a part of a longer one; the shorter ones first."""
    if not any(scope.stars for scope in scopes.all):
        return
    for name, scope in scopes.loads.items():
        if name.value not in _FIRST or scope.owner(name.value) is not None:
            continue
        sources = tuple(path for around in scope.chain() for _, path in around.stars)
        if not sources:
            continue
        tops = [path for path in sources if root_of(path) is not None] or _TENSORFLOW
        node: cst.CSTNode = name
        rest, parent = name.value, scopes.parents.get(name)
        while isinstance(parent, cst.Attribute) and parent.value is node:
            node, rest = parent, f"{rest}.{parent.attr.value}"
            parent = scopes.parents.get(node)
            yield StarChain(node, scope, tuple(f"{top}.{rest}" for top in tops), sources)
