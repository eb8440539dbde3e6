"""Finds the places of a program that name legacy symbols, or may name them."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Optional, Union

import libcst as cst

from ..facts import Decision
from ..model import Group
from .legacy_symbols import (
    Legacy,
    Namespace,
    groups_named,
    is_of_shim,
    is_of_tensorflow,
    is_whole,
    legacy_of,
    namespace_of,
    root_of,
)
from .module_paths import below
from .qualified_names import CALL, COMPUTED, LOCAL, PARAMETER, STAR, Origins, is_path
from .scopes import Binding, BindingKind, Scope, ScopeBuilder
from .tree import is_stored, last_name
from .vocabulary import CLASS, COMMON, DISTINCTIVE, LOOK_ALIKES, MODULE, NAMES, SEGMENTS, TPU

__all__ = [
    "NamespaceUse",
    "Place",
    "Places",
    "Reference",
    "Unclear",
    "Why",
    "code_of",
    "imports_of",
]

_MODULES = (MODULE, TPU)
_ABOVE = {"experimental": (*_MODULES, "train"), MODULE: ("contrib",)}
"""Modules of legacy symbols, with what they are read from."""
_NAMES = NAMES | {*_ABOVE}
_FINAL = "keras.mixed_precision"
_KERAS = (Group.KERAS_OPTIMIZERS, Group.POLICIES)
_OF_TENSORFLOW = re.compile(rf"(?:\.(?:{'|'.join(sorted(SEGMENTS))}))+$")
"""Modules of TensorFlow at the end of a path through a module of the project."""
_FINAL_MODULE = re.compile(rf"(?<!contrib\.){MODULE}$")


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

    @property
    def symbol(self) -> str:
        """The symbol as findings show it."""
        return self.legacy.name

    @property
    def groups(self) -> tuple[Group, ...]:
        """The group of the symbol."""
        return (self.legacy.group,)


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

    @property
    def module(self) -> Namespace:
        """The module."""
        module = namespace_of(self.path)
        assert module is not None, self.path
        return module

    @property
    def is_on_shim(self) -> bool:
        """Whether it is a module of the shim."""
        return is_of_shim(self.path)

    @property
    def is_whole(self) -> bool:
        """Whether TensorFlow has removed the module, and the shim has everything in it."""
        return is_whole(self.path)

    @property
    def keeps_names(self) -> bool:
        """Whether it is a module of the shim, or becomes one that has the same names."""
        return self.is_on_shim or self.is_whole

    @property
    def is_final(self) -> bool:
        """Whether it is TensorFlow's module of the final Keras API, also under a private path."""
        return self.module.name == _FINAL and not self.is_on_shim

    def moves_as_final(self, decision: Decision) -> bool:
        """Whether it is the final module, and goes to the shim with the final class."""
        is_tf_keras = self.path.startswith("tf_keras")
        return self.is_final and decision.optimizers_on_shim and not is_tf_keras

    def is_renamed_whole(self, decision: Decision) -> bool:
        """Whether it is a module of the shim, or becomes one, where it is used as a value."""
        return self.keeps_names or self.moves_as_final(decision)

    @property
    def symbol(self) -> str:
        """The module as findings show it."""
        module = namespace_of(self.path)
        return module.name if module is not None else self.path

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of symbols that the module has."""
        module = namespace_of(self.path)
        return module.groups if module is not None else _KERAS


Place = Union[Reference, NamespaceUse]
"""What a rule can give a new path."""


class Why(enum.Enum):
    """Why the origin of a name cannot be resolved."""

    STAR = "only a star import can bind it"
    CALL = "it is read from what a call returned or a caller passed"
    RE_EXPORT = "it comes through another module"
    SEVERAL = "it can mean several symbols"


class Unclear(NamedTuple):
    """A place with the name of a legacy symbol whose origin cannot be resolved statically.

    Attributes:
      node: the place.
      scope: the scope that contains it.
      name: the name.
      why: why its origin cannot be resolved.
      through: the module or expression that the name comes from.
      legacy: the symbols that it refers to on some paths, if it refers to others on the rest.
      may_be_final: whether it can be the final class, which need not move.
      origin: the path that the name has in another file, if a function returned its module, or only
        one star import can bind it; otherwise empty.
    """

    node: cst.CSTNode
    scope: Scope
    name: str
    why: Why
    through: str
    legacy: tuple[Legacy, ...] = ()
    may_be_final: bool = False
    origin: str = ""

    @property
    def module(self) -> str:
        """The module of the project that a name comes through, without those of TensorFlow."""
        return _OF_TENSORFLOW.sub("", self.through) or self.through

    @property
    def symbol(self) -> str:
        """The name, as findings show it."""
        return self.name

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups that have a symbol of this name, of each of which it may be."""
        named = groups_named(self.name)
        return tuple(group for group in Group if group in named)

    @property
    def path(self) -> str:
        """The path of a name that comes through another module."""
        return self.origin or below(self.through, self.name)


_RUN_LATER = (cst.ClassDef, cst.FunctionDef, cst.Lambda)
"""What runs the names in it when it is called, or has names of its own."""
_SETTING = ("delattr", "object", "setattr")
"""Functions that set an attribute of their first argument; `object` is `mock.patch.object`."""


class Places:
    """The places of one file, found once; `Program` describes the attributes."""

    def __init__(self, scopes: ScopeBuilder, origins: Origins) -> None:
        self._scopes = scopes
        self._parents = scopes.parents
        self._origins = origins
        self.references: list[Reference] = []
        self.namespaces: list[NamespaceUse] = []
        self.written: list[Place] = []
        self.mixed: list[Reference] = []
        self.unclear: list[Unclear] = []
        self.common: list[Unclear] = []
        self.migrated: list[tuple[cst.CSTNode, str]] = []
        for name, scope in scopes.loads.items():
            self._resolve_name(name, scope)
        for binding in imports_of(scopes):
            self._resolve_import(binding)
        self._resolve_by_name()
        for scope in scopes.all:
            self._resolve_stars(scope)

    def _resolve_name(self, name: cst.Name, scope: Scope) -> None:
        """Resolves the chain of attributes that begins with a name."""
        meanings = self._origins.of_name(name.value, scope)
        if any(map(is_of_tensorflow, meanings)):
            binding = self._binding_around(name, scope)
            before = meanings if binding is None else self._origins.before(binding)
            self._resolve(name, scope, before)
        elif name.value in DISTINCTIVE and STAR in meanings:
            self._unclear(name, scope, Why.STAR, _stars_of_others(scope))
        elif name.value in COMMON and STAR in meanings:
            origin = _origin_of_star(name, scope)
            if origin:
                through = _stars_of_others(scope)
                self.common.append(_unclear_as(name, scope, Why.STAR, through, origin))

    def _binding_around(self, name: cst.Name, scope: Scope) -> Optional[Binding]:
        """The binding in whose value a name reads itself: `tpu = tpu.CrossShardOptimizer`."""
        bindings = scope.bindings_of(name.value)
        values: dict[cst.CSTNode, Binding] = {
            binding.value: binding for binding in bindings if binding.value is not None
        }
        if len(bindings) < 2 or not values:
            return None
        node: Optional[cst.CSTNode] = name
        while node is not None and not isinstance(node, _RUN_LATER):
            if node in values:
                return values[node]
            node = self._parents.get(node)
        return None

    def _would_leave_import(self, name: cst.Name, scope: Scope) -> bool:
        """Whether `tpu = tpu.CrossShardOptimizer` follows an import that newer versions lack.

        If the value were rewritten alone, the import would stay: nothing but imports may bind a
        name whose import goes.
        """
        if self._binding_around(name, scope) is None:
            return False
        imported = [binding.path for binding in scope.bindings_of(name.value)]
        paths = [path for path in imported if is_of_tensorflow(path) and not is_of_shim(path)]
        modules = [module for module in map(namespace_of, paths) if module is not None]
        is_in_contrib = any("contrib" in path.split(".") for path in paths)
        return is_in_contrib or not all(module.is_current for module in modules)

    def _resolve_stars(self, scope: Scope) -> None:
        """Adds the star imports of legacy modules."""
        for statement, path in scope.stars:
            space = namespace_of(path)
            if space is not None and not (is_of_shim(path) and space.is_final):
                self.unclear.append(Unclear(statement, scope, "*", Why.STAR, path))

    def _resolve_by_name(self) -> None:
        """Looks at the attributes that are named like a symbol, but resolved to nothing."""
        known = {place.node for place in [*self.references, *self.mixed, *self.written]}
        known |= {place.node for place in self.unclear} | {node for node, _ in self.migrated}
        for attribute in self._named_like_legacy():
            if attribute not in known:
                self._maybe_legacy(attribute)

    def _add(self, place: Place) -> None:
        """Adds a place, unless it is written."""
        parent = self._parents.get(place.node)
        call = self._parents.get(parent) if isinstance(parent, cst.Arg) else None
        is_set = (
            isinstance(place, NamespaceUse)
            and isinstance(call, cst.Call)
            and call.args[0] is parent
            and last_name(call.func) in _SETTING
        )
        if is_set or is_stored(place.node, self._parents):
            self.written.append(place)
        elif isinstance(place, Reference):
            self.references.append(place)
        else:
            self.namespaces.append(place)

    def _named_like_legacy(self) -> list[cst.Attribute]:
        """All attributes with the name of a legacy symbol, in the order of the source."""
        found = [node for name in _NAMES for node in self._scopes.attributes.get(name, ())]
        if not found:
            return []
        order = {node: number for number, node in enumerate(self._parents)}
        return sorted(found, key=order.__getitem__)

    def _resolve(self, name: cst.Name, scope: Scope, meanings: frozenset[str]) -> None:
        """Adds the first legacy symbol of the chain that a name begins, or else its last module.

        A chain that ends at a name of the shim without a legacy twin, such as the final class, is
        migrated already, unless a module of twins, such as `tfls.contrib.mixed_precision`, is in
        it. A module is mixed if the chain is another one, or none, on some paths.
        """
        space: Optional[NamespaceUse] = None
        is_mixed = False
        chain = list(self._chain(name, meanings))
        if scope.is_unsure(name.value) or self._would_leave_import(name, scope):
            self._several_of_chain(chain, scope)
            return
        for at, (node, paths) in enumerate(chain):
            symbols = _symbols_of(paths)
            if any(symbols.values()):
                is_one = all(map(symbols.get, paths))
                if is_one or not self._several_of_chain(chain[at + 1 :], scope):
                    self._symbol(name, node, scope, symbols, paths)
                return
            modules = _modules_of(paths)
            if any(modules.values()):
                names_of_modules = {_name_of(module) for module in modules.values()}
                is_mixed = len(names_of_modules) > 1
                space = NamespaceUse(node, scope, _oldest(modules), name)
        self._resolve_end(chain[-1], space, is_mixed)

    def _several_of_chain(
        self, chain: Sequence[tuple[cst.CSTNode, frozenset[str]]], scope: Scope
    ) -> bool:
        """Adds the first legacy symbol of a chain, or else its last module, as one of several.

        Returns whether there is one. A name that only some of its bindings make a symbol is the
        last resort: what is read from it can be a symbol through the other ones.
        """
        name_alone: list[tuple[cst.CSTNode, frozenset[str]]] = []
        modules: list[tuple[cst.CSTNode, frozenset[str]]] = []
        for node, paths in chain:
            symbols = _symbols_of(paths)
            if any(symbols.values()):
                if isinstance(node, cst.Attribute) or all(map(symbols.get, paths)):
                    self._several_symbols(node, scope, paths)
                    return True
                name_alone = [(node, paths)]
            elif isinstance(node, cst.Attribute) and any(_modules_of(paths).values()):
                modules = [(node, paths)]
        for node, paths in modules:
            known = filter(None, _modules_of(paths).values())
            self._several(node, scope, min(map(_name_of, known)), paths)
        for node, paths in name_alone if not modules else ():
            self._several_symbols(node, scope, paths)
        return bool(modules or name_alone)

    def _several_symbols(self, node: cst.CSTNode, scope: Scope, meanings: frozenset[str]) -> None:
        """Adds a place of which some meanings are legacy symbols as one of several."""
        symbols = sorted(_symbols_of(meanings).items())
        found = [legacy for _, legacy in symbols if legacy is not None]
        self._several(node, scope, found[0].name, meanings, tuple(found))

    def _resolve_end(
        self,
        end: tuple[cst.CSTNode, frozenset[str]],
        space: Optional[NamespaceUse],
        is_mixed: bool,
    ) -> None:
        """Adds a chain without a legacy symbol: as migrated, or as its last legacy module."""
        last, meanings = end
        names = _names_in_shim(meanings)
        has_module_of_twins = space is not None and is_of_shim(space.path)
        if names and not has_module_of_twins:
            self.migrated.append((last, min(names)))
        elif space is not None:
            self._module(space, meanings, is_mixed)

    def _chain(
        self, name: cst.Name, meanings: frozenset[str]
    ) -> Iterator[tuple[cst.CSTNode, frozenset[str]]]:
        """A name and the attributes that are read from it, up to a class of the shim."""
        node: cst.CSTNode = name
        yield node, meanings
        while _names_in_shim(meanings).isdisjoint(DISTINCTIVE):
            parent = self._attribute_of(node)
            if parent is None:
                return
            node, meanings = parent, self._origins.below(meanings, parent.attr.value)
            yield node, meanings

    def _attribute_of(self, node: cst.CSTNode) -> Optional[cst.Attribute]:
        """The attribute that is read from a node."""
        parent = self._parents.get(node)
        return parent if isinstance(parent, cst.Attribute) and parent.value is node else None

    def _module(self, space: NamespaceUse, meanings: frozenset[str], is_mixed: bool) -> None:
        """Adds the use of a module; `is_mixed` if it is another one, or none, on some paths.

        What binds a name that is a module on some paths is rewritten, and not its uses.
        """
        is_chain = isinstance(space.node, cst.Attribute)
        if space.root is not None and is_chain:
            is_mixed |= not self._can_be_replaced(space.root, space.scope)
        if not is_mixed:
            self._add_chain(space)
        elif is_chain:
            self._several(space.node, space.scope, _name_of(namespace_of(space.path)), meanings)

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
        is_one = _is_read_from_roots(node, found)
        is_same = len({(legacy.name, legacy.family) for legacy in found}) == 1
        is_chain = isinstance(node, cst.Attribute)
        if is_chain and not self._can_be_replaced(name, scope):
            self._several(node, scope, found[0].name, meanings, tuple(found))
        elif _is_mixed(symbols, meanings, is_one):
            by_group = {legacy.group: legacy for legacy in found}
            self.mixed += [Reference(node, scope, mixed, name) for mixed in by_group.values()]
        elif is_same and all(map(symbols.get, meanings)):
            oldest = min(found, key=lambda legacy: legacy.is_current)
            place = Reference(node, scope, oldest if is_one else found[-1], name)
            self._add_chain(place)
        else:
            self._several(node, scope, found[0].name, meanings, tuple(found))

    def _add_chain(self, place: Place) -> None:
        """Adds a place; as unclear if a function imports its first name for the one around it.

        An import beside that one would bind its name in the function alone: nothing can be added
        to `nonlocal tf`, as it can to `global tf`.
        """
        root, node = place.root, place.node
        bindings = place.scope.bindings_of(root.value) if root is not None else []
        redirections = (binding.scope.imported_inside.get(binding.node) for binding in bindings)
        is_inside = any(isinstance(statement, cst.Nonlocal) for statement in redirections)
        if is_inside and isinstance(node, cst.Attribute):
            self.unclear.append(_unclear_as(node, place.scope, Why.CALL, code_of(node.value)))
        else:
            self._add(place)

    def _can_be_replaced(self, name: cst.Name, scope: Scope) -> bool:
        """Whether an import can stand in the place of a first name, whichever way it is bound.

        Beside each import that binds it, another import can be added. After `tf = tf.compat.v1`,
        the import before it has run. After other assignments, none may have.
        """
        paths = [path for path in self._origins.of_name(name.value, scope) if is_path(path)]
        return len(paths) < 2 or all(
            binding.kind is BindingKind.IMPORT or _is_of_itself(binding)
            for binding in scope.bindings_of(name.value)
        )

    def _several(
        self,
        node: cst.CSTNode,
        scope: Scope,
        name: str,
        meanings: frozenset[str],
        legacy: tuple[Legacy, ...] = (),
    ) -> None:
        through = ", ".join(sorted(meaning.strip("<>") for meaning in meanings))
        self.unclear.append(Unclear(node, scope, name, Why.SEVERAL, through, legacy))

    def _maybe_legacy(self, node: cst.Attribute) -> None:
        """Adds a place with the name of a legacy symbol, unless it is known to be another one.

        What is read from something that is called like a module of legacy symbols is likely one.
        For objects such as `self`, `modules["tf"]` or what a loop binds, which can be anything,
        nothing else counts. What comes through another file, a star import, a call or a parameter
        is likely one also if only legacy symbols have its name. An attribute of another file with a
        common name counts only if that file turns out to import it from TensorFlow.
        """
        name, through = node.attr.value, code_of(node.value)
        is_below_module = self._is_below_module(node, through.rpartition(".")[2])
        may_be_final = name == CLASS and bool(_FINAL_MODULE.search(through))
        root = _first_name(node)
        scope = self._scopes.loads.get(root) if root is not None else None
        if root is None or scope is None or root.value in ("self", "cls"):
            if is_below_module:
                self._unclear(node, self._scopes.module_scope, Why.CALL, through, may_be_final)
            return
        if _is_of_look_alike(self._origins.of_name(root.value, scope)):
            return
        meanings = self._origins.of_expression(node, scope)
        path = min(filter(is_path, meanings), default="")
        is_likely = name in DISTINCTIVE or is_below_module
        if path and root_of(path) is not None:
            return  # another path of TensorFlow
        if path:
            self._of_project(node, scope, path.rpartition(".")[0], is_likely)
        elif is_likely and _may_be_foreign(node, meanings, is_below_module):
            self._without_path(node, scope, meanings, through, may_be_final)

    def _of_project(self, node: cst.Attribute, scope: Scope, module: str, is_likely: bool) -> None:
        """Adds an attribute of another file, which may have imported it from TensorFlow."""
        if is_likely:
            self._unclear(node, scope, Why.RE_EXPORT, module)
        elif node.attr.value in COMMON:
            self.common.append(_unclear_as(node, scope, Why.RE_EXPORT, module))

    def _without_path(
        self,
        node: cst.Attribute,
        scope: Scope,
        meanings: frozenset[str],
        through: str,
        may_be_final: bool,
    ) -> None:
        """Adds an attribute of what comes through a star import, a call, a parameter or an item."""
        if STAR in meanings:
            self._unclear(node, scope, Why.STAR, _stars_of_others(scope), may_be_final)
        else:
            origin = self._origin_of_returned(node, scope)
            self._unclear(node, scope, Why.CALL, through, may_be_final, origin)

    def _is_below_module(self, node: cst.Attribute, above: str) -> bool:
        """Whether an attribute is read from what is called like a module of legacy symbols."""
        name = node.attr.value
        if name in _ABOVE:  # the module itself, which is bound or passed on
            return above in _ABOVE[name] and self._attribute_of(node) is None
        return above == "experimental" or (above in _MODULES and name in DISTINCTIVE)

    def _origin_of_returned(self, node: cst.Attribute, scope: Scope) -> str:
        """The path of an attribute of what a function of another file returns; empty for others.

        tensorflow/tensor2tensor reads `contrib.mixed_precision().LossScaleOptimizer`.
        """
        if not isinstance(node.value, cst.Call):
            return ""
        paths = self._origins.of_expression(node.value.func, scope)
        path = min(paths) if len(paths) == 1 else ""
        is_of_project = is_path(path) and root_of(path) is None
        return f"{path}().{node.attr.value}" if path and is_of_project else ""

    def _unclear(
        self,
        node: cst.CSTNode,
        scope: Scope,
        why: Why,
        through: str,
        may_be_final: bool = False,
        origin: str = "",
    ) -> None:
        """Notes a name that may be legacy, and what it comes through, if that is known."""
        if through:
            if why is Why.STAR:
                origin = _origin_of_star(node, scope)
            found = _unclear_as(node, scope, why, through, origin)
            self.unclear.append(found._replace(may_be_final=may_be_final))

    def _resolve_import(self, binding: Binding) -> None:
        """Adds an import of a legacy symbol, of a module of such symbols, or of a name like one."""
        legacy = legacy_of(binding.path)
        if legacy is not None:
            self.references.append(Reference(binding.node, binding.scope, legacy))
            return
        if namespace_of(binding.path) is not None:
            self.namespaces.append(NamespaceUse(binding.node, binding.scope, binding.path))
            return
        module, _, name = binding.path.rpartition(".")
        known = root_of(binding.path) is not None or _is_of_look_alike(frozenset([binding.path]))
        if name not in NAMES or known:
            return
        through = module if module.strip(".") else f"{module}."  # of `from .. import name`
        found = Unclear(binding.node, binding.scope, name, Why.RE_EXPORT, through)
        (self.unclear if name in DISTINCTIVE else self.common).append(found)


def _may_be_foreign(node: cst.Attribute, meanings: frozenset[str], is_below_module: bool) -> bool:
    """Whether an attribute that resolves to no path may be TensorFlow's all the same.

    What the program has made or computed can hold a module: `Names.tf.contrib.mixed_precision`.
    """
    if not meanings.isdisjoint((CALL, PARAMETER, STAR)):
        return True
    is_held = LOCAL in meanings and isinstance(node.value, cst.Attribute)
    return is_below_module and (is_held or COMPUTED in meanings)


def _unclear_as(
    node: cst.CSTNode, scope: Scope, why: Why, through: str, origin: str = ""
) -> Unclear:
    """A place with the last name of a chain, or with a name of its own."""
    name = node.attr.value if isinstance(node, cst.Attribute) else code_of(node)
    return Unclear(node, scope, name, why, through, origin=origin)


def _is_mixed(
    symbols: Mapping[str, Optional[Legacy]], meanings: frozenset[str], is_one: bool
) -> bool:
    """Whether a place with a legacy symbol is right as it is, or once what binds it is rewritten.

    The shim's symbols run on every TensorFlow, so beside TensorFlow's they are a guard, and several
    of them are right as they are. So is a symbol beside its successor, unless it `is_one` of which
    only the place itself can be rewritten.
    """
    found = [legacy for legacy in symbols.values() if legacy is not None]
    if not is_one and len({legacy.is_current for legacy in found}) > 1:
        return True
    if len(set(map(is_of_shim, symbols))) > 1:
        return True
    return len(found) < len(meanings) and all(map(is_of_shim, meanings))


def _is_read_from_roots(node: cst.CSTNode, found: Sequence[Legacy]) -> bool:
    """Whether a chain means one symbol below several roots, of which none is renamed.

    As `tf.train.experimental.LossScale` after `import tensorflow.compat.v1 as tf` in a `try`, and
    `import tensorflow as tf` in its handler: the paths of the first name stay, so the chain moves.
    """
    symbols = {(legacy.namespace, legacy.name, legacy.is_private) for legacy in found}
    return isinstance(node, cst.Attribute) and len(symbols) == 1


def _is_of_itself(binding: Binding) -> bool:
    """Whether a name gets None, or what is read from the same name."""
    root = _first_name(binding.value) if binding.value is not None else None
    return root is not None and root.value in (binding.name, "None")


def _first_name(node: cst.CSTNode) -> Optional[cst.Name]:
    """The first name of a chain of attributes and calls; None if it begins with something else."""
    while isinstance(node, (cst.Attribute, cst.Call)):
        node = node.value if isinstance(node, cst.Attribute) else node.func
    return node if isinstance(node, cst.Name) else None


def _stars_of_others(scope: Scope) -> str:
    """The modules of the star imports around; empty if one is of a library with such names."""
    paths = [path for around in scope.chain() for _, path in around.stars]
    if any(path.partition(".")[0] in LOOK_ALIKES for path in paths):
        return ""
    return ", ".join(paths)


def _symbols_of(meanings: frozenset[str]) -> dict[str, Optional[Legacy]]:
    """The legacy symbol that each meaning with a path is, if it is one."""
    return {path: legacy_of(path) for path in meanings if is_path(path)}


def _modules_of(meanings: frozenset[str]) -> dict[str, Optional[Namespace]]:
    """The module of legacy symbols that each meaning is, if it is one."""
    return {path: namespace_of(path) if is_path(path) else None for path in meanings}


def _oldest(modules: Mapping[str, Optional[Namespace]]) -> str:
    """The path of a module that the newest TensorFlow lacks, if it lacks one of them."""
    found = {path: module for path, module in sorted(modules.items()) if module is not None}
    return min(found, key=lambda path: found[path].is_current)


def _name_of(module: Optional[Namespace]) -> str:
    return module.name if module is not None else ""


def _names_in_shim(meanings: frozenset[str]) -> set[str]:
    """The last names of those meanings that are paths in the shim."""
    paths = (path for path in meanings if is_of_shim(path) and "." in path)
    return {path.rpartition(".")[2] for path in paths}


def _origin_of_star(node: cst.CSTNode, scope: Scope) -> str:
    """The path of a name that only one star import can bind; empty if there are several."""
    paths = {path for around in scope.chain() for _, path in around.stars}
    if len(paths) != 1:
        return ""
    (path,) = paths
    if root_of(path) is not None:
        return ""  # a star import of TensorFlow
    return below(path, code_of(node))


def imports_of(scopes: ScopeBuilder) -> Iterator[Binding]:
    """Every binding that an import creates."""
    for scope in scopes.all:
        for bindings in scope.bindings.values():
            for binding in bindings:
                if binding.kind is BindingKind.IMPORT:
                    yield binding


def code_of(node: cst.CSTNode) -> str:
    """The source of `node`."""
    return cst.Module([]).code_for_node(node)


def _is_of_look_alike(meanings: frozenset[str]) -> bool:
    """Whether a meaning is a path in another library with such names."""
    return any(is_path(part) and part.split(".")[0] in LOOK_ALIKES for part in meanings)
