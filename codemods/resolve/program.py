"""One program (a file, or the cells of a notebook) with its names resolved."""

from __future__ import annotations

import copy
import enum
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Callable, NamedTuple, Optional, TypeVar, Union

import libcst as cst

from ..model import ALONE, Group, Options, Surroundings, Target
from .legacy_symbols import (
    DISTINCTIVE,
    Legacy,
    Namespace,
    is_of_shim,
    legacy_of,
    namespace_of,
    root_of,
)
from .qualified_names import CALL, PARAMETER, STAR, Origins, is_path
from .scopes import Binding, Scope, ScopeBuilder
from .tree import ancestors, root_name

__all__ = [
    "LOOK_ALIKES",
    "Branch",
    "NamespaceUse",
    "Place",
    "Program",
    "Reference",
    "Taken",
    "Unclear",
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

_TOPS = ["tensorflow", "tensorflow.keras", "tensorflow.contrib", "tensorflow.train"]
"""Modules of TensorFlow that a module of a project may import everything from."""

_T = TypeVar("_T")


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


class Taken(enum.Enum):
    """Which TensorFlow takes a branch."""

    OLD = "old"
    NEW = "new"
    SOME = "some"
    """Its condition depends on the version, but on which one is not known."""
    IMPORTING = "importing"
    """One that has what the branch imports."""


class Branch(NamedTuple):
    """A branch with legacy names that only some versions of TensorFlow take.

    Attributes:
      places: the legacy places in it, in the order of the source.
      taken: which TensorFlow takes it.
      has_final: whether another branch uses the current API.
      others: the other branches.
    """

    places: tuple[Place, ...]
    taken: Taken
    has_final: bool
    others: tuple[cst.CSTNode, ...] = ()


class Program:
    """The syntax trees of one program, resolved once for all rules.

    Attributes:
      options: the options that affect the rewrite.
      surroundings: what the search has seen in the other files of the run.
      modules: one tree per source; None if the source could not be parsed.
      on_shim: the groups of symbols that go to the shim, although the target is the final API.
      notes: the places that decide that, each with the proposal that says why.
      scopes: the scopes, with the places where names are bound and read.
      origins: resolves expressions to dotted paths.
      references: every place that refers to a legacy symbol, and to nothing else.
      namespaces: every chain that ends at a module of legacy symbols, and each import of one.
      guards: the branches with legacy names that only some versions of TensorFlow take.
      guarded: places that mean the legacy or the final symbol, depending on the version. They are
        right on both, and are not edited.
      unclear: places that might refer to a legacy symbol.
      migrated: places that refer to a symbol of the shim, with its name.
    """

    def __init__(
        self,
        modules: Sequence[Optional[cst.Module]],
        options: Options,
        surroundings: Surroundings = ALONE,
    ) -> None:
        self.options = options
        self.surroundings = surroundings
        self.modules = modules
        self.on_shim: frozenset[Group] = frozenset()
        self.notes: Mapping[cst.CSTNode, object] = {}
        self.scopes = ScopeBuilder()
        for module in modules:
            if module is not None:
                self.scopes.add(module)
        self.parents = self.scopes.parents
        self.origins = Origins()
        self.references: list[Reference] = []
        self.namespaces: list[NamespaceUse] = []
        self.guards: list[Branch] = []
        self.guarded: list[Reference] = []
        self.unclear: list[Unclear] = []
        self.migrated: list[tuple[cst.CSTNode, str]] = []
        self._memo: dict[object, object] = {}
        suspects = self._named_like_legacy()
        for name, scope in self.scopes.loads.items():
            meanings = self.origins.of_name(name.value, scope)
            if name in suspects or any(map(_may_be_known, meanings)):
                self._resolve(name, scope, meanings)
            elif STAR in meanings and isinstance(self.parents.get(name), cst.Attribute):
                self._resolve_star(name, scope)
        for binding in self.imports():
            self._resolve_import(binding)
        for scope in self.all_scopes():
            for statement, path in scope.stars:
                space = self.namespace_of(path)
                if space is not None and not (is_of_shim(path) and space.is_final):
                    self.unclear.append(Unclear(statement, scope, "*", "star", path))
        self.by_node = {reference.node: reference for reference in self.references}

    def cached(self, compute: Callable[[Program], _T]) -> _T:
        """Returns `compute(self)`, which is computed only once."""
        if compute not in self._memo:
            self._memo[compute] = compute(self)
        return self._memo[compute]  # type: ignore[return-value]

    def goes_to_shim(self, group: Group) -> bool:
        """Whether the symbols of a group go to the shim, and not to the final API."""
        return self.options.target is Target.SHIM or group in self.on_shim

    def with_on_shim(
        self, groups: Iterable[Group], notes: Optional[Mapping[cst.CSTNode, object]] = None
    ) -> Program:
        """The same program, of which more groups go to the shim; `notes` has the reasons."""
        program = copy.copy(self)
        program.on_shim = self.on_shim.union(groups)
        program.notes = {**self.notes, **(notes or {})}
        program._memo = {}
        return program

    def legacy_of(self, path: str) -> Optional[Legacy]:
        """The symbol to migrate that `path` refers to, of TensorFlow or of the shim."""
        return legacy_of(path, True)

    def namespace_of(self, path: str) -> Optional[Namespace]:
        """The module of such symbols that `path` means."""
        return namespace_of(path, True)

    def imports(self) -> Iterator[Binding]:
        """Every binding that an import creates."""
        for scope in self.all_scopes():
            for bindings in scope.bindings.values():
                for binding in bindings:
                    if binding.kind == "import":
                        yield binding

    def all_scopes(self) -> list[Scope]:
        """The module's scope and every scope in which something is read or bound."""
        return self.scopes.all

    def attributes(self, name: str) -> list[cst.Attribute]:
        """Every `something.name`."""
        return self.scopes.attributes.get(name, [])

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The ancestors of `node`, the nearest first."""
        return ancestors(node, self.parents)

    def is_read_elsewhere(self, scope: Scope, name: str) -> bool:
        """Whether other files of the run may read the variable `name` of `scope`."""
        return scope is self.scopes.module_scope and name in self.surroundings.reads

    def places(self) -> list[Place]:
        """Every reference, and every use of a module of legacy symbols."""
        return [*self.references, *self.namespaces]

    def call_of(self, node: cst.CSTNode) -> Optional[cst.Call]:
        """The call of `node`; None if it is not called."""
        parent = self.parents.get(node)
        return parent if isinstance(parent, cst.Call) and parent.func is node else None

    def loads_of(self, scope: Scope, name: str) -> list[cst.Name]:
        """Every place that reads the variable `name` of `scope`."""
        return self.cached(_loads).get((scope, name), [])

    def paths_of(self, node: cst.CSTNode) -> frozenset[str]:
        """Every dotted path that a chain can mean; empty if one is unknown."""
        root = root_name(node)
        scope = self.scopes.loads.get(root) if root is not None else None
        if scope is None:
            return frozenset()
        meanings = self.origins.of_expression(node, scope)
        return frozenset() if not all(map(is_path, meanings)) else meanings

    @staticmethod
    def code(node: cst.CSTNode) -> str:
        """The source of `node`."""
        return cst.Module([]).code_for_node(node)

    # How the places are found.

    def _named_like_legacy(self) -> set[cst.Name]:
        """The first names of all chains that contain the name of a legacy symbol."""
        found = {name for name in self.scopes.loads if name.value in DISTINCTIVE}
        for symbol in DISTINCTIVE:
            for attribute in self.attributes(symbol):
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
            symbols = {meaning: self.legacy_of(meaning) for meaning in meanings if is_path(meaning)}
            if any(symbols.values()):
                self._symbol(name, node, scope, symbols, meanings)
                return
            if last in DISTINCTIVE and self._maybe_legacy(node, meanings, scope, name, last):
                return
            paths = [one for one in meanings if is_path(one) and self.namespace_of(one) is not None]
            if paths:
                space = NamespaceUse(node, scope, min(paths), name)
            parent = self.parents.get(node)
            if not isinstance(parent, cst.Attribute) or parent.value is not node:
                break
            last = parent.attr.value
            meanings = self.origins.below(meanings, last)
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
        call = self.call_of(node)
        above = self.parents.get(call) if call is not None else None
        if isinstance(above, cst.Attribute) and above.attr.value in DISTINCTIVE:
            through = self.code(node) + "()"
            self.unclear.append(Unclear(above, scope, above.attr.value, "call", through))

    @staticmethod
    def _has_star_of_tensorflow(scope: Scope) -> bool:
        return any(root_of(path) is not None for one in scope.chain() for _, path in one.stars)

    def _resolve_star(self, name: cst.Name, scope: Scope) -> None:
        """Finds a chain such as `mixed_precision.Policy` after `from tensorflow.keras import *`."""
        sources = [path for around in scope.chain() for _, path in around.stars]
        if any(path.partition(".")[0] in LOOK_ALIKES for path in sources):
            return
        tops = [path for path in sources if root_of(path) is not None] or _TOPS
        node: cst.CSTNode = name
        rest = name.value
        while True:
            for top in tops:
                legacy = self.legacy_of(f"{top}.{rest}")
                moves = self.options.for_keras_3 or self.options.target is Target.SHIM
                is_left = legacy is not None and not legacy.is_in_compat_v1
                is_left &= legacy is not None and (moves or not legacy.is_final_path)
                if legacy is not None and legacy.rule and is_left:
                    through = ", ".join(sources)
                    self.unclear.append(Unclear(node, scope, legacy.name, "star", through))
                    return
            parent = self.parents.get(node)
            if not isinstance(parent, cst.Attribute) or parent.value is not node:
                return
            node, rest = parent, f"{rest}.{parent.attr.value}"

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
            if node is not name and self._has_star_of_tensorflow(scope):
                self._resolve_star(name, scope)
                return True
            sources = [path for around in scope.chain() for _, path in around.stars]
            if any(path.split(".")[0] in LOOK_ALIKES for path in sources):
                return False
            self.unclear.append(Unclear(node, scope, last, "star", ", ".join(sources)))
            return True
        if node is name:
            return False  # a name that the program defines or imports
        paths = sorted(meaning for meaning in meanings if is_path(meaning))
        if paths and root_of(paths[0]) is None:
            module = paths[0].rpartition(".")[0]
            self.unclear.append(Unclear(node, scope, last, "re-export", module))
            return True
        if CALL in meanings or (PARAMETER in meanings and name.value not in ("self", "cls")):
            through = self.code(node).rpartition(".")[0]
            self.unclear.append(Unclear(node, scope, last, "call", through))
            return True
        return False

    def _resolve_import(self, binding: Binding) -> None:
        legacy = self.legacy_of(binding.path)
        if legacy is not None:
            self.references.append(Reference(binding.node, binding.scope, legacy))
            return
        if self.namespace_of(binding.path) is not None:
            self.namespaces.append(NamespaceUse(binding.node, binding.scope, binding.path))
            return
        module, _, name = binding.path.rpartition(".")
        known = root_of(binding.path) is not None or _foreign(frozenset([binding.path]))
        if name in DISTINCTIVE and not known:
            self.unclear.append(
                Unclear(binding.node, binding.scope, name, "re-export", module or ".")
            )


def _loads(program: Program) -> dict[tuple[Scope, str], list[cst.Name]]:
    found: dict[tuple[Scope, str], list[cst.Name]] = {}
    for name, scope in program.scopes.loads.items():
        owner = scope.owner(name.value)
        if owner is not None:
            found.setdefault((owner, name.value), []).append(name)
    return found


@functools.lru_cache(maxsize=4096)
def _may_be_known(meaning: str) -> bool:
    """Whether a chain that begins with `meaning` can end at a symbol of TensorFlow or the shim."""
    return root_of(meaning) is not None or meaning.partition(".")[0] == "tf_lossscale"


def _foreign(meanings: frozenset[str]) -> bool:
    return any(is_path(part) and part.split(".")[0] in LOOK_ALIKES for part in meanings)
