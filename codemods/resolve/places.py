"""Finds the places of a program that name legacy symbols, or may name them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple, Optional, Union

import libcst as cst

from ..model import Options, Target
from .legacy_symbols import DISTINCTIVE, Legacy, is_of_shim, legacy_of, namespace_of, root_of
from .qualified_names import CALL, PARAMETER, STAR, Origins, is_path
from .scopes import Binding, Scope, ScopeBuilder

__all__ = [
    "LOOK_ALIKES",
    "Branch",
    "NamespaceUse",
    "Place",
    "Places",
    "Reference",
    "Unclear",
    "code_of",
    "imports_of",
]

LOOK_ALIKES = frozenset(
    [
        "apex", "deepspeed", "fairseq", "flax", "horovod", "jmp", "mindspore", "mxnet",
        "npu_bridge", "npu_device", "optax", "paddle", "smdistributed", "tensorlayer",
        "tf_lossscale", "torch", "transformers", "xformers",
    ]
)  # fmt: skip
"""Libraries that have classes with the same names, which are never migrated.

The shim is one of them: only a path that leads to one of its legacy symbols is migrated.
"""

_FINAL = "LossScaleOptimizer"
_MODULES = ("mixed_precision", "tpu")
_NAMES = DISTINCTIVE | {"experimental", "LossScale", "Policy", "global_policy", "set_policy"}
_FINAL_MODULE = re.compile(r"(?<!contrib\.)mixed_precision$")


class Reference(NamedTuple):
    """A place that refers to one legacy symbol, under any name.

    Attributes:
      node: the name, the attribute chain, or the import alias.
      scope: the scope that contains it.
      legacy: the symbol.
      root: the first name of the chain; None for an import.
    """

    node: cst.CSTNode
    scope: Scope
    legacy: Legacy
    root: Optional[cst.Name] = None


class NamespaceUse(NamedTuple):
    """A chain that ends at a module of legacy symbols, or an import of one.

    Attributes:
      node: the chain, as in `mp = tf.contrib.mixed_precision`, or the import alias.
      scope: the scope that contains it.
      path: the path of the module.
      root: the first name of the chain; None for an import.
    """

    node: cst.CSTNode
    scope: Scope
    path: str
    root: Optional[cst.Name] = None


Place = Union[Reference, NamespaceUse]
"""What a rule can give a new path."""


class Unclear(NamedTuple):
    """A place with the name of a legacy symbol whose origin cannot be resolved statically.

    Attributes:
      node: the place.
      scope: the scope that contains it.
      name: the name.
      why: `star`, `call`, `re-export` or `several`.
      through: the module or expression that the name comes from.
      legacy: the symbols that it refers to on some paths, if it refers to others on the rest.
    """

    node: cst.CSTNode
    scope: Scope
    name: str
    why: str
    through: str
    legacy: tuple[Legacy, ...] = ()


class Branch(NamedTuple):
    """A branch with legacy names that only some versions of TensorFlow take.

    Attributes:
      places: the legacy places in it, in the order of the source.
      has_final: whether another branch uses the current API.
      imports: whether it is taken wherever what it imports exists.
      others: the other branches.
    """

    places: tuple[Place, ...]
    has_final: bool
    imports: bool = False
    others: tuple[cst.CSTNode, ...] = ()


class Places:
    """The places of one program, found once; the attributes are those of `Program`."""

    def __init__(self, scopes: ScopeBuilder, origins: Origins, options: Options) -> None:
        self._scopes = scopes
        self._parents = scopes.parents
        self._origins = origins
        self._options = options
        self.references: list[Reference] = []
        self.namespaces: list[NamespaceUse] = []
        self.guarded: list[Reference] = []
        self.unclear: list[Unclear] = []
        self.migrated: list[tuple[cst.CSTNode, str]] = []
        suspects = self._named_like_legacy()
        for name, scope in scopes.loads.items():
            meanings = origins.of_name(name.value, scope)
            if name in suspects or any(map(_may_be_known, meanings)):
                self._resolve(name, scope, meanings)
        for binding in imports_of(scopes):
            self._resolve_import(binding)
        self._reached_through_objects()
        for scope in scopes.all:
            for statement, path in scope.stars:
                space = namespace_of(path)
                if space is not None and not (is_of_shim(path) and space.is_final):
                    self.unclear.append(Unclear(statement, scope, "*", "star", path))

    def _named_like_legacy(self) -> set[cst.Name]:
        """The first names of all chains that contain the name of a legacy symbol."""
        found = {name for name in self._scopes.loads if name.value in DISTINCTIVE}
        for symbol in DISTINCTIVE:
            for attribute in self._scopes.attributes.get(symbol, []):
                node: cst.CSTNode = attribute
                while isinstance(node, (cst.Attribute, cst.Call)):
                    node = node.value if isinstance(node, cst.Attribute) else node.func
                if isinstance(node, cst.Name):
                    found.add(node)
        return found

    def _resolve(self, name: cst.Name, scope: Scope, meanings: frozenset[str]) -> None:
        """Follows the chain that begins with a name to its first symbol or its last module."""
        if not meanings:
            return
        node: cst.CSTNode = name
        last = name.value
        space: Optional[NamespaceUse] = None
        while True:
            symbols = {meaning: legacy_of(meaning) for meaning in meanings if is_path(meaning)}
            if any(symbols.values()):
                self._symbol(name, node, scope, symbols, meanings)
                return
            if last in DISTINCTIVE and self._maybe_legacy(node, meanings, scope, name, last):
                return
            paths = [one for one in meanings if is_path(one) and namespace_of(one) is not None]
            if paths:
                space = NamespaceUse(node, scope, min(paths), name)
            parent = self._parents.get(node)
            is_of_class = last in DISTINCTIVE and any(map(is_of_shim, meanings))
            if is_of_class or not isinstance(parent, cst.Attribute) or parent.value is not node:
                break
            last = parent.attr.value
            meanings = self._origins.below(meanings, last)
            node = parent
        is_left = space is None or not is_of_shim(space.path)
        if is_left and any(meaning.startswith("tf_lossscale.") for meaning in meanings):
            self.migrated.append((node, last))
        elif space is not None:
            self.namespaces.append(space)
        elif not _foreign(meanings):
            self._called(node, scope)

    def _called(self, node: cst.CSTNode, scope: Scope) -> None:
        """Finds `module().CrossShardOptimizer`, where a call returns what may be a module."""
        call = self._parents.get(node)
        if not isinstance(call, cst.Call) or call.func is not node:
            return
        above = self._parents.get(call)
        if isinstance(above, cst.Attribute) and above.attr.value in DISTINCTIVE:
            through = code_of(node) + "()"
            self.unclear.append(Unclear(above, scope, above.attr.value, "call", through))

    def _reached_through_objects(self) -> None:
        """Finds `self.mp.experimental.LossScaleOptimizer`, `modules["tf"].contrib.tpu...`."""
        known = {one.node for one in [*self.references, *self.guarded]}
        known |= {one.node for one in self.unclear} | {node for node, _ in self.migrated}
        for attribute, scope, stars in self._of_objects():
            name, module = attribute.attr.value, attribute.value
            above = code_of(module).rpartition(".")[2]
            is_legacy = above == "experimental" or (above in _MODULES and name in DISTINCTIVE)
            if name == "experimental":  # the module itself, which is bound or passed on
                is_read = isinstance(self._parents.get(attribute), cst.Attribute)
                is_legacy = above in _MODULES and not is_read
            if name == _FINAL and not self._final_moves(module):
                continue
            if is_legacy and attribute not in known:
                why, through = ("star", stars) if stars else ("call", code_of(module))
                self.unclear.append(Unclear(attribute, scope, name, why, through))

    def _of_objects(self) -> Iterator[tuple[cst.Attribute, Scope, str]]:
        """The attributes with the name of a legacy symbol that no name of a module leads to.

        Those below a name that a star import may bind come with the modules of such imports.
        """
        for name in _NAMES:
            for attribute in self._scopes.attributes.get(name, []):
                node: cst.CSTNode = attribute
                while isinstance(node, cst.Attribute):
                    node = node.value
                if not isinstance(node, cst.Name) or node.value in ("self", "cls"):
                    yield attribute, self._scopes.module_scope, ""
                elif node in self._scopes.loads:
                    scope = self._scopes.loads[node]
                    stars = _stars_of_others(scope)
                    if stars and STAR in self._origins.of_name(node.value, scope):
                        yield attribute, scope, stars

    def _final_moves(self, module: cst.BaseExpression) -> bool:
        """Whether a chain names a class that is not the final one, or that moves, too."""
        for_all = self._options.for_keras_3 or self._options.target is Target.SHIM
        return for_all or not _FINAL_MODULE.search(code_of(module))

    def _symbol(
        self,
        name: cst.Name,
        node: cst.CSTNode,
        scope: Scope,
        symbols: Mapping[str, Optional[Legacy]],
        meanings: frozenset[str],
    ) -> None:
        """Adds a place of which at least one meaning is a legacy symbol."""
        found = [legacy for _, legacy in sorted(symbols.items()) if legacy is not None]
        others = [meaning for meaning in meanings if not symbols.get(meaning)]
        # The shim's symbols run on every TensorFlow, so beside TensorFlow's they are a guard.
        is_mixed = len({legacy.is_final_path for legacy in found}) > 1
        is_mixed |= len(set(map(is_of_shim, symbols))) > 1
        reference = Reference(node, scope, found[-1], name)
        if is_mixed:
            self.guarded.append(reference)
        elif not others and len({(one.name, one.family) for one in found}) == 1:
            self.references.append(reference)
        else:
            through = ", ".join(sorted(meaning.strip("<>") for meaning in meanings))
            self.unclear.append(
                Unclear(node, scope, found[0].name, "several", through, tuple(found))
            )

    def _maybe_legacy(
        self,
        node: cst.CSTNode,
        meanings: frozenset[str],
        scope: Scope,
        name: cst.Name,
        last: str,
    ) -> bool:
        """Adds a place with the name of a legacy symbol, unless it is known to be another one."""
        if _foreign(meanings):
            return False
        if STAR in meanings:
            stars = _stars_of_others(scope)
            is_left = isinstance(node, cst.Attribute) and not self._final_moves(node.value)
            if stars and not (last == _FINAL and is_left):
                self.unclear.append(Unclear(node, scope, last, "star", stars))
            return bool(stars)
        if node is name:
            return False  # a name that the program defines or imports
        paths = sorted(meaning for meaning in meanings if is_path(meaning))
        if paths and root_of(paths[0]) is None:
            module = paths[0].rpartition(".")[0]
            self.unclear.append(Unclear(node, scope, last, "re-export", module))
            return True
        if CALL in meanings or (PARAMETER in meanings and name.value not in ("self", "cls")):
            through = code_of(node).rpartition(".")[0]
            self.unclear.append(Unclear(node, scope, last, "call", through))
            return True
        return False

    def _resolve_import(self, binding: Binding) -> None:
        legacy = legacy_of(binding.path)
        if legacy is not None:
            self.references.append(Reference(binding.node, binding.scope, legacy))
            return
        if namespace_of(binding.path) is not None:
            self.namespaces.append(NamespaceUse(binding.node, binding.scope, binding.path))
            return
        module, _, name = binding.path.rpartition(".")
        known = root_of(binding.path) is not None or _foreign(frozenset([binding.path]))
        if name in DISTINCTIVE and not known:
            self.unclear.append(
                Unclear(binding.node, binding.scope, name, "re-export", module or ".")
            )


def _stars_of_others(scope: Scope) -> str:
    """The modules of the star imports around; empty if one is of a library with such names."""
    paths = [path for around in scope.chain() for _, path in around.stars]
    if any(path.partition(".")[0] in LOOK_ALIKES for path in paths):
        return ""
    return ", ".join(paths)


def imports_of(scopes: ScopeBuilder) -> Iterator[Binding]:
    """Every binding that an import creates."""
    for scope in scopes.all:
        for bindings in scope.bindings.values():
            for binding in bindings:
                if binding.kind == "import":
                    yield binding


def code_of(node: cst.CSTNode) -> str:
    """The source of `node`."""
    return cst.Module([]).code_for_node(node)


@functools.lru_cache(maxsize=4096)
def _may_be_known(meaning: str) -> bool:
    """Whether a chain that begins with `meaning` can end at a symbol of TensorFlow or the shim."""
    return root_of(meaning) is not None or meaning.partition(".")[0] == "tf_lossscale"


def _foreign(meanings: frozenset[str]) -> bool:
    return any(is_path(part) and part.split(".")[0] in LOOK_ALIKES for part in meanings)
