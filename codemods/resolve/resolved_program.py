"""One file (a source, or the cells of a notebook) with its names resolved."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Callable, Optional, TypeVar

import libcst as cst

from .evaluated_texts import EvaluatedTexts
from .legacy_symbols import is_of_tensorflow, root_of
from .mentions import Mentions
from .places import Place, Places, Reference, imports_of
from .qualified_names import Origins, is_path
from .scopes import Binding
from .syntax import Syntax
from .tree import root_name
from .values import Values

__all__ = ["ResolvedProgram"]

_T = TypeVar("_T")


class ResolvedProgram(Syntax):
    """The syntax trees of one file, resolved once for all rules. Nothing in it changes later.

    Attributes:
      values: what values come from, and what reads them.
      mentions: what places do with their symbols.
      origins: resolves expressions to dotted paths.
      evaluated_texts: the texts that read names of the file, or may.
      references: every place that refers to a legacy symbol, and to nothing else.
      namespaces: every chain that ends at a module of legacy symbols, and each import of one.
      written: places that put something else in the place of a symbol or module.
      mixed: places that mean a legacy symbol in one branch, and the final one or the shim's in
        another. What binds their names is rewritten, so they are right on both.
      unclear: places that might refer to a legacy symbol.
      common: places of which the name is common, such as `Policy`, that come through another
        module; they count only if that one is known to have a legacy symbol of this name.
      migrated: places that refer to a symbol of the shim, with its name.
    """

    def __init__(self, modules: Sequence[Optional[cst.Module]], texts: Sequence[str] = ()) -> None:
        """Resolves every name of the file."""
        super().__init__(modules, texts)
        self.values = Values(self)
        self.mentions = Mentions(self)
        self.origins = Origins()
        self.evaluated_texts = EvaluatedTexts(self, self.origins)
        found = Places(self.scopes, self.origins)
        self.references = found.references
        self.namespaces = found.namespaces
        self.written = found.written
        self.mixed = found.mixed
        self.unclear = found.unclear
        self.common = found.common
        self.migrated = found.migrated
        self.by_node = {reference.node: reference for reference in self.references}
        self._memo: dict[Hashable, Any] = {}
        """Results of pure functions of this program, by the function and its arguments."""

    def cached(self, compute: Callable[..., _T], *arguments: Hashable) -> _T:
        """Returns `compute(self, *arguments)`, which is computed only once."""
        key = (compute, *arguments)
        if key not in self._memo:
            self._memo[key] = compute(self, *arguments)
        result: _T = self._memo[key]
        return result

    def imports(self) -> Iterator[Binding]:
        """Every binding that an import creates."""
        return imports_of(self.scopes)

    def imports_tensorflow(self) -> bool:
        """Whether the file imports TensorFlow itself, not only a package of Keras."""
        roots = (root_of(binding.path) for binding in self.imports())
        return any(root is not None and root.name not in ("keras", "tf_keras") for root in roots)

    def places(self) -> list[Place]:
        """Every reference, and every use of a module of legacy symbols."""
        return [*self.references, *self.namespaces]

    def references_to(self, *codes: str) -> list[Reference]:
        """Every reference that the rule with these codes migrates."""
        return [reference for reference in self.references if reference.legacy.rule in codes]

    def paths_of(self, node: cst.CSTNode) -> frozenset[str]:
        """Every dotted path that a chain can mean; empty if one is unknown."""
        root = root_name(node)
        scope = self.scopes.loads.get(root) if root is not None else None
        if scope is None:
            return frozenset()
        meanings = self.origins.of_expression(node, scope)
        return frozenset() if not all(map(is_path, meanings)) else meanings

    def names_in_tensorflow(self, node: cst.CSTNode) -> list[str]:
        """The last names of the paths of a chain that lead into TensorFlow or Keras."""
        paths = [path for path in self.paths_of(node) if root_of(path) is not None]
        return [path.rpartition(".")[2] for path in paths]

    def is_of_tensorflow(self, node: cst.CSTNode) -> bool:
        """Whether a chain has a meaning, and none outside TensorFlow and Keras."""
        roots = [root_of(path) for path in self.paths_of(node)]
        return bool(roots) and None not in roots

    def may_be_of_object(self, read: cst.CSTNode) -> bool:
        """Whether a read may be that of an object, such as `self.contrib`, and no `tf.contrib`."""
        paths = self.paths_of(read) if isinstance(read, cst.Attribute) else ()
        return not paths or not all(map(is_of_tensorflow, paths))
