"""One program (a file, or the cells of a notebook) with its names resolved."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Callable, NamedTuple, Optional, TypeVar

import libcst as cst

from ..model import Options, Target
from .cut import NOTHING_CUT, Cut, take_out
from .legacy_symbols import (
    DISTINCTIVE,
    Family,
    Legacy,
    Namespace,
    is_final,
    is_namespace,
    is_of_shim,
    legacy_of,
    namespace_of,
    root_of,
)
from .neighbors import NOBODY, Kept, Neighbors, is_in_run
from .qualified_names import CALL, PARAMETER, STAR, Origins, is_path
from .scopes import Binding, Scope, ScopeBuilder
from .star_chains import star_chains
from .tree import ancestors, string_of

__all__ = ["DynamicRead", "NamespaceUse", "Program", "Reference", "Unclear"]

LOOK_ALIKES = frozenset(
    [
        "apex",
        "deepspeed",
        "fairseq",
        "flax",
        "horovod",
        "jmp",
        "mindspore",
        "mxnet",
        "npu_bridge",
        "npu_device",
        "optax",
        "paddle",
        "smdistributed",
        "tensorlayer",
        "tf_lossscale",
        "torch",
        "transformers",
        "xformers",
    ]
)
"""Libraries that have classes with the same names, which are never migrated.

The shim is one of them. Only a path that leads to one of its legacy symbols is; see `ON_SHIM`.
"""

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
    """A chain that ends at a module of legacy symbols: `mp = tf.contrib.mixed_precision`."""

    node: cst.CSTNode
    scope: Scope
    root: cst.Name
    path: str


class Unclear(NamedTuple):
    """A place with the name of a legacy symbol whose origin cannot be resolved statically.

    Attributes:
      why: `star`, `call`, `re-export`, `several` or `namespace`.
      through: the module or expression that the name comes from.
      legacy: the symbol that it refers to on one path, if it refers to something else on another.
    """

    node: cst.CSTNode
    scope: Scope
    name: str
    why: str
    through: str
    legacy: Optional[Legacy] = None


class DynamicRead(NamedTuple):
    """A module or symbol that a string names: `getattr(module, "experimental")`.

    Attributes:
      node: the string.
      path: what it leads to.
    """

    node: cst.SimpleString
    path: str


class Program:
    """The syntax trees of one program, resolved once for all rules.

    Attributes:
      options: the options that affect the rewrite.
      neighbors: what the other files of the run tell about this one.
      modules: one tree per source; None if the source could not be parsed.
      cut: what an edit takes out; it is not in any of the following.
      unread: variables that only what is cut reads.
      scopes: the scopes, with the places where names are bound and read.
      origins: resolves expressions to dotted paths.
      references: every place that refers to a legacy symbol.
      namespaces: every chain that ends at a module of legacy symbols.
      guarded: places that refer to the legacy or the final symbol, depending on the version, and
        those in the legacy arm of a version guard. Rules do not edit them.
      guarded_names: variables that refer to the legacy or the final API, depending on the version.
      dynamic: strings that name a legacy or final symbol or module for `getattr` and `importlib`.
      unclear: places that might refer to a legacy symbol.
      migrated: places that refer to a symbol of the shim, with its name.
    """

    def __init__(
        self,
        modules: Sequence[Optional[cst.Module]],
        options: Options,
        neighbors: Neighbors = NOBODY,
        cut: Cut = NOTHING_CUT,
    ) -> None:
        self.options = options
        self.neighbors = neighbors
        self.modules = modules
        self.scopes = ScopeBuilder()
        for module in modules:
            if module is not None:
                self.scopes.add(module)
        if neighbors.names:
            self.scopes.resolve_imports(neighbors.meaning)
        if neighbors.starred:
            self.scopes.bind_starred(neighbors.starred)
        self.cut = cut
        self.unread = take_out(self.scopes, cut)
        self.parents = self.scopes.parents
        self.origins = Origins(neighbors, cut.values)
        self.references: list[Reference] = []
        self.namespaces: list[NamespaceUse] = []
        self.guarded: list[Reference] = []
        self.guarded_names: dict[tuple[Scope, str], None] = {}
        self.unclear: list[Unclear] = []
        self.migrated: list[tuple[cst.CSTNode, str]] = []
        self._memo: dict[object, object] = {}
        self._excluded: set[tuple[Scope, str]] = set()
        suspects = self._named_like_legacy()
        for name, scope in self.scopes.loads.items():
            meanings = self.origins.of_name(name.value, scope)
            if name in suspects or any(map(_may_be_known, meanings)):
                self._resolve(name, scope, meanings)
        self._find_below_stars()
        self._exclude_guarded_imports()
        for binding in self.imports():
            self._resolve_import(binding)
        for scope in self.all_scopes():
            for statement, path in scope.stars:
                space = self.namespace_of(path)
                if space is not None and not (is_of_shim(path) and space.is_final):
                    self.unclear.append(Unclear(statement, scope, "*", "star", path))
        self.by_node = {reference.node: reference for reference in self.references}
        self.dynamic = [
            DynamicRead(string, path)
            for string in self.scopes.strings
            for path in [self._path_named_by(string)]
            if path is not None
        ]

    def cached(self, compute: Callable[[Program], _T]) -> _T:
        """Returns `compute(self)`, which is computed only once."""
        if compute not in self._memo:
            self._memo[compute] = compute(self)
        return self._memo[compute]  # type: ignore[return-value]

    def legacy_of(self, path: str) -> Optional[Legacy]:
        """The symbol to migrate that `path` refers to, of TensorFlow or of the shim."""
        return legacy_of(path, self.options.from_shim)

    def namespace_of(self, path: str) -> Optional[Namespace]:
        """The module of such symbols that `path` means."""
        return namespace_of(path, self.options.from_shim)

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

    def is_used_elsewhere(self, scope: Scope, name: str) -> bool:
        """Whether other files of the run import the variable `name` of `scope`, or may do so."""
        is_used = scope is self.scopes.module_scope and name in self.neighbors.used
        return is_used or self.kept(scope, name) is not None

    def kept(self, scope: Scope, name: str) -> Optional[Kept]:
        """Why the variable `name` of `scope` must keep its meaning; None if it need not.

        What other files only may read is not kept with `--unsafe`.
        """
        kept = self.kept_name(scope, name)
        return None if kept is None or (self.options.unsafe and not kept.is_certain) else kept

    def kept_name(self, scope: Scope, name: str) -> Optional[Kept]:
        """The same, whatever the options are."""
        return self.neighbors.kept.get(name) if scope is self.scopes.module_scope else None

    def call_of(self, node: cst.CSTNode) -> Optional[cst.Call]:
        """The call of `node`; None if it is not called."""
        parent = self.parents.get(node)
        return parent if isinstance(parent, cst.Call) and parent.func is node else None

    def _named_like_legacy(self) -> set[cst.Name]:
        """The first names of all chains that contain the name of a legacy symbol."""
        found = {name for name in self.scopes.loads if name.value in DISTINCTIVE}
        for symbol in DISTINCTIVE:
            for attribute in self.attributes(symbol):
                node: cst.CSTNode = attribute
                while not isinstance(node, cst.Name):
                    if isinstance(node, cst.Attribute):
                        node = node.value
                    elif isinstance(node, cst.Call):
                        node = node.func
                    else:
                        break
                else:
                    found.add(node)
        return found

    def _resolve(self, name: cst.Name, scope: Scope, meanings: frozenset[str]) -> None:
        if not meanings:
            return
        node: cst.CSTNode = name
        last = name.value
        space: Optional[NamespaceUse] = None
        is_root = all(_is_root(meaning) for meaning in meanings)
        while True:
            symbols = {meaning: self.legacy_of(meaning) for meaning in meanings if is_path(meaning)}
            if any(symbols.values()):
                self._symbol(name, node, scope, symbols, meanings, is_root)
                return
            if last in DISTINCTIVE and self._maybe_legacy(node, meanings, scope, name, last):
                return
            paths = [one for one in meanings if is_path(one) and self.namespace_of(one) is not None]
            if paths:
                space = NamespaceUse(node, scope, name, min(paths))
            parent = self.parents.get(node)
            if isinstance(parent, cst.Attribute) and parent.value is node:
                last = parent.attr.value
                meanings = self.origins.below(meanings, last)
                node = parent
                continue
            break
        is_left = space is None or not is_of_shim(space.path)
        if is_left and any(meaning.startswith("tf_lossscale.") for meaning in meanings):
            self.migrated.append((node, last))
            return
        if space is not None:
            self.namespaces.append(space)
            return
        call = self.parents.get(node)
        if isinstance(call, cst.Call) and call.func is node:
            above = self.parents.get(call)
            if (
                isinstance(above, cst.Attribute)
                and above.attr.value in DISTINCTIVE
                and not _foreign(meanings)
            ):
                through = self.code(node) + "()"
                self.unclear.append(Unclear(above, scope, above.attr.value, "call", through))

    def _find_below_stars(self) -> None:
        for chain in star_chains(self.scopes):
            if any(path.split(".")[0] in LOOK_ALIKES for path in chain.sources):
                continue
            found = (self.legacy_of(path) for path in chain.paths)
            legacy = next((one for one in found if one is not None and one.rule), None)
            moves = self.options.for_keras_3 or self.options.target is Target.SHIM
            if legacy is not None and (moves or not legacy.is_final_path):
                through = ", ".join(chain.sources)
                self.unclear.append(Unclear(chain.node, chain.scope, legacy.name, "star", through))

    def _symbol(
        self,
        name: cst.Name,
        node: cst.CSTNode,
        scope: Scope,
        symbols: dict[str, Optional[Legacy]],
        meanings: frozenset[str],
        is_root: bool,
    ) -> None:
        found = [legacy for _, legacy in sorted(symbols.items()) if legacy is not None]
        kinds = {(legacy.name, legacy.family) for legacy in found}
        others = [meaning for meaning in meanings if not symbols.get(meaning)]
        reference = Reference(node, scope, found[0], name)
        if not is_root and len({legacy.is_final_path for legacy in found}) > 1:
            # a guard binds the name to the legacy or to the final module
            self.guarded.append(reference)
            self._exclude_imports_of(name, scope, guarded=True)
            return
        is_mixed = len(set(map(is_of_shim, symbols))) > 1 and all(symbols.values())
        if is_mixed or (others and all(map(is_of_shim, others))):
            # a guard binds the name to TensorFlow's symbol or to the shim's
            self.guarded.append(reference)
            self._exclude_imports_of(name, scope, guarded=True)
            return
        if not is_root and len({_package(meaning) for meaning in symbols}) > 1:
            # `tf_keras` or `tensorflow.keras`, which can be different Keras versions
            self.unclear.append(
                Unclear(node, scope, found[0].name, "several", self._words(meanings), found[0])
            )
            self._exclude_imports_of(name, scope)
            return
        if others and any(found_one.family is not Family.FINAL for found_one in found):
            self.unclear.append(
                Unclear(node, scope, found[0].name, "several", self._words(meanings), found[0])
            )
            self._exclude_imports_of(name, scope)
        elif others:  # the final class, which moves to the shim's for Keras 3 only
            self._exclude_imports_of(name, scope)
            moves = self.options.for_keras_3 or self.options.target is Target.SHIM
            if moves and any(one.rule for one in found):
                words = self._words(meanings)
                self.unclear.append(Unclear(node, scope, found[0].name, "several", words, found[0]))
        elif len(kinds) == 1:
            self.references.append(reference)
        elif Family.FINAL in {family for _, family in kinds}:
            self.guarded.append(reference)
            self._exclude_imports_of(name, scope, guarded=True)
        else:
            self.unclear.append(
                Unclear(node, scope, found[0].name, "several", self._words(meanings))
            )
            self._exclude_imports_of(name, scope)

    def _exclude_imports_of(self, name: cst.Name, scope: Scope, guarded: bool = False) -> None:
        """Excludes the imports of a name from the rewrite.

        Args:
          name: the name.
          scope: the scope that reads it.
          guarded: whether the reason is that a version guard binds it.
        """
        owner = scope.owner(name.value)
        if owner is not None:
            self._excluded.add((owner, name.value))
            if guarded:
                self.guarded_names[owner, name.value] = None

    def binds_several(self, reference: Reference) -> bool:
        """Whether a name is assigned the symbol, and elsewhere something with other parameters.

        Where it can be another function with the same parameters, only the assignment changes.
        """
        value, parent = reference.node, self.parents.get(reference.node)
        while isinstance(parent, cst.IfExp) and parent.test is not value:
            value, parent = parent, self.parents.get(parent)
        if not isinstance(parent, cst.Assign) or reference.legacy.is_final_path:
            return False
        converts = reference.legacy.is_experimental_optimizer
        excluded = self._excluded if converts else self.guarded_names
        names = [one.target for one in parent.targets if isinstance(one.target, cst.Name)]
        owners = [(reference.scope.owner(name.value), name.value) for name in names]
        return any((owner, name) in excluded for owner, name in owners if owner is not None)

    def _exclude_guarded_imports(self) -> None:
        """Keeps the imports that bind one name to the legacy and to the final API."""
        for scope in self.all_scopes():
            for name, bindings in scope.bindings.items():
                paths = [one.path for one in bindings if one.kind == "import"]
                if len(paths) > 1 and {True, False} <= {
                    is_final(path, self.options.from_shim) for path in paths
                }:
                    self._excluded.add((scope, name))
                    self.guarded_names[scope, name] = None

    def _words(self, meanings: frozenset[str]) -> str:
        return ", ".join(sorted(meaning.strip("<>") for meaning in meanings))

    def _maybe_legacy(
        self,
        node: cst.CSTNode,
        meanings: frozenset[str],
        scope: Scope,
        name: cst.Name,
        last: str,
    ) -> bool:
        if _foreign(meanings):
            return False
        if node is name:
            if STAR not in meanings:
                return False  # a name that the program defines or imports
            sources = [path for around in scope.chain() for _, path in around.stars]
            if any(path.split(".")[0] in LOOK_ALIKES for path in sources):
                return False
            self.unclear.append(Unclear(node, scope, last, "star", ", ".join(sources)))
            return True
        paths = [meaning for meaning in meanings if is_path(meaning)]
        if any(map(is_in_run, paths)):
            return False  # a name that another file of the run defines
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
        if (binding.scope, binding.name) in self._excluded:
            return
        if binding.node in self.scopes.followed:
            return  # another file imports the symbol; the uses of the name are references here
        if legacy is not None:
            self.references.append(Reference(binding.node, binding.scope, legacy))
            return
        module, _, name = binding.path.rpartition(".")
        known = (
            root_of(binding.path) is not None
            or is_in_run(binding.path)
            or _foreign(frozenset([binding.path]))
        )
        if name in DISTINCTIVE and not known:
            self.unclear.append(
                Unclear(binding.node, binding.scope, name, "re-export", module or ".")
            )

    def _path_named_by(self, string: cst.SimpleString) -> Optional[str]:
        """The legacy or final symbol or module that a string names for a call; None: none."""
        argument = self.parents.get(string)
        call = self.parents.get(argument) if isinstance(argument, cst.Arg) else None
        text = string_of(string)
        if not isinstance(call, cst.Call) or text is None:
            return None
        function = self.code(call.func).rpartition(".")[2]
        if function == "getattr" and len(call.args) > 1 and call.args[1] is argument:
            root: cst.CSTNode = call.args[0].value
            while isinstance(root, cst.Attribute):
                root = root.value
            scope = self.scopes.loads.get(root) if isinstance(root, cst.Name) else None
            if scope is None:
                return None
            paths = self.origins.of_expression(call.args[0].value, scope)
            path = f"{min(paths)}.{text}" if len(paths) == 1 else ""
        elif function in ("import_module", "__import__") and call.args[0] is argument:
            path = text
        else:
            return None
        return path if legacy_of(path) is not None or is_namespace(path) else None

    @staticmethod
    def code(node: cst.CSTNode) -> str:
        """The source of `node`."""
        return cst.Module([]).code_for_node(node)


@functools.lru_cache(maxsize=4096)
def _may_be_known(meaning: str) -> bool:
    """Whether a chain that begins with `meaning` can end at a symbol of TensorFlow or the shim."""
    is_library = root_of(meaning) is not None or meaning.partition(".")[0] == "tf_lossscale"
    return is_library or is_in_run(meaning)


def _is_root(meaning: str) -> bool:
    """Whether `meaning` is TensorFlow itself, or its `compat.v1`."""
    root = root_of(meaning)
    return root is not None and not root.rest and root.name in ("tf", "v1", "v2")


def _package(meaning: str) -> str:
    """Which Keras a path belongs to; TensorFlow's own includes it."""
    first = meaning.partition(".")[0]
    return first if first in ("keras", "tf_keras") else "tensorflow"


def _foreign(meanings: frozenset[str]) -> bool:
    return any(is_path(part) and part.split(".")[0] in LOOK_ALIKES for part in meanings)
