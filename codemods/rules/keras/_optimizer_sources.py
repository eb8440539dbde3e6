"""Finds every value that an optimizer in a program can come from.

The search goes backwards from a use: through names, attributes, parameters, tables and the results
of functions, up to a class that the program calls. Where a value comes from another file of the
run, the search ends in a `Flow`, which `run/` follows.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Optional, Union

import libcst as cst

from ...resolve.hidden_stores import (
    classes_related_to,
    decorators_are_known,
    may_be_stored_unseen,
    values_in_body,
)
from ...resolve.neighbors import Flow, is_in_run
from ...resolve.program import Program
from ...resolve.qualified_names import is_path
from ...resolve.reaching_values import reaching_definition
from ...resolve.scopes import Binding
from ._attribute_stores import Store, stores_of
from ._compile_calls import COMPILED_NAME, given_to_compile, loads_models
from ._function_calls import (
    class_around,
    definitions,
    function_of,
    is_static,
    passed_for,
    passes_receiver,
    qualified_name,
    returned_values,
    uses_of,
)
from ._optimizer_type import is_loss_scale_class

__all__ = ["Atom", "Found", "Source", "atoms", "returned", "sources", "with_flows_resolved"]

_DEPTH = 8
_STEPS = 2000
"""The limits of a search, in depth and in steps; what lies beyond them is unknown."""
_FROM_LOSS_SCALE = "tf_lossscale.keras.mixed_precision.from_loss_scale"


class Source(enum.Enum):
    """Where an optimizer can come from."""

    WRAPPED = "a loss-scale class, called in this program"
    PLAIN = "another value that this program makes: an optimizer without loss scaling, or None"
    COMPILED = "a model, whose `compile` may have wrapped it, or which was loaded with it"
    UNKNOWN = "a parameter whose callers are not known, or something computed"


Atom = Union[Source, Flow]
"""A source in this file, or a value from another file of the run."""
Found = frozenset[Atom]
"""Everything that a value can come from."""
_WRAPPED: Found = frozenset([Source.WRAPPED])
_PLAIN: Found = frozenset([Source.PLAIN])
_COMPILED: Found = frozenset([Source.COMPILED])
_UNKNOWN_SOURCE: Found = frozenset([Source.UNKNOWN])


def sources(program: Program, node: Optional[cst.CSTNode]) -> frozenset[Source]:
    """Everything that the value of `node` can come from."""
    return with_flows_resolved(program, atoms(program, node))


def atoms(program: Program, node: Optional[cst.CSTNode]) -> Found:
    """The same, with the values that come from other files of the run as flows."""
    return _Search(program).of(node, _DEPTH)


def returned(program: Program, definition: cst.CSTNode) -> Found:
    """What a call of a function or class of this file returns."""
    return _Search(program).defined(definition, _DEPTH)


def with_flows_resolved(program: Program, found: Found) -> frozenset[Source]:
    """Replaces flows by the sources that the run has found for them."""
    known: set[Source] = set()
    for atom in found:
        if isinstance(atom, Source):
            known.add(atom)
        elif atom.kind == "constructed":
            known.add(Source.WRAPPED)
        else:
            names = program.neighbors.flows.get(atom, frozenset([Source.UNKNOWN.name]))
            known |= {Source[name] for name in names}
    return frozenset(known)


def _is_wrapped(atom: Atom) -> bool:
    return atom is Source.WRAPPED or (isinstance(atom, Flow) and atom.kind == "constructed")


class _Search:
    """One search. A value that depends on itself adds nothing (`opt = wrap(opt)`)."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.open: set[cst.CSTNode] = set()
        self.left = _STEPS

    def of(self, node: Optional[cst.CSTNode], depth: int) -> Found:
        self.left -= 1
        if node is None or depth <= 0 or self.left < 0:
            return _UNKNOWN_SOURCE
        if node in self.open:
            return frozenset()
        self.open.add(node)
        try:
            return self._of(node, depth - 1)
        finally:
            self.open.discard(node)

    def _of(self, node: cst.CSTNode, depth: int) -> Found:
        if isinstance(node, (cst.Name, cst.Attribute)):
            outside = self._outside("value", node)
            if outside:
                return outside
        if isinstance(node, cst.Call):
            return self._called(node, depth)
        if isinstance(node, cst.Name):
            return self._named(node, depth)
        if isinstance(node, cst.Attribute):
            return self._attribute(node, depth)
        if isinstance(node, cst.IfExp):
            return self.of(node.body, depth) | self.of(node.orelse, depth)
        if isinstance(node, cst.BooleanOperation):
            return self.of(node.left, depth) | self.of(node.right, depth)
        if isinstance(node, cst.NamedExpr):
            return self.of(node.value, depth)
        if isinstance(node, cst.Subscript):
            found = [self.of(each, depth) for each in _elements(self.program, node.value)]
            return frozenset().union(*found) if found else _UNKNOWN_SOURCE
        return _UNKNOWN_SOURCE

    def _outside(self, kind: str, node: cst.CSTNode) -> Found:
        """The flows of a name that other files of the run define; empty if it is another name."""
        paths = _paths(self.program, node)
        if kind == "value":
            computed = self.program.neighbors.values
            paths = {computed.get(path, path) for path in paths}
        if not paths or not all(map(is_in_run, paths)):
            return frozenset()
        return frozenset(Flow(kind, path) for path in paths)

    def _wrapped(self) -> Found:
        path = self.program.neighbors.path
        return frozenset([Flow("constructed", path)]) if path else _WRAPPED

    def _called(self, call: cst.Call, depth: int) -> Found:
        function = call.func
        if _text(function) == "type" and len(call.args) == 1:
            return self.of(call.args[0].value, depth)
        if _text(function) == "getattr" and len(call.args) > 1:
            name = call.args[1].value
            is_compiled = isinstance(name, cst.SimpleString) and COMPILED_NAME in name.value
            return _COMPILED if is_compiled else _UNKNOWN_SOURCE
        if isinstance(function, cst.Attribute) and function.attr.value == "from_config":
            function = function.value
        return self._made_by(function, depth)

    def _made_by(self, function: Optional[cst.CSTNode], depth: int) -> Found:
        """What a call of `function` returns: a class, a function, or a name or table of them."""
        program = self.program
        if function is None or depth <= 0:
            return _UNKNOWN_SOURCE
        if is_loss_scale_class(program, function):
            return self._wrapped()
        paths = _paths(program, function)
        if paths == {_FROM_LOSS_SCALE}:
            return self._wrapped()
        outside = self._outside("returns", function)
        if outside:
            return outside
        if paths and all(_makes_plain_optimizer(path) for path in paths):
            return _PLAIN
        if isinstance(function, cst.IfExp):
            return self._made_by_all([function.body, function.orelse], depth)
        if isinstance(function, cst.Subscript):
            return self._made_by_all(_elements(program, function.value), depth)
        if isinstance(function, cst.Call):
            is_partial = _text(function.func).rpartition(".")[2] == "partial" and function.args
            return self._made_by(function.args[0].value if is_partial else None, depth - 1)
        if isinstance(function, cst.Lambda):
            return self.of(function.body, depth)
        found: set[Atom] = set()
        for definition in definitions(program, function):
            if isinstance(definition, (cst.ClassDef, cst.FunctionDef)):
                found |= self.defined(definition, depth)
            elif isinstance(definition, cst.Param):
                found |= self._made_by_all([*self._passed_to(definition)], depth)
                found |= _UNKNOWN_SOURCE if self._callers_elsewhere(definition) else frozenset()
            else:
                found |= self._made_by(definition, depth - 1)
        return frozenset(found) if found else _UNKNOWN_SOURCE

    def defined(self, definition: cst.CSTNode, depth: int) -> Found:
        """What a call of this class or function returns."""
        is_plain = decorators_are_known(self.program, definition)
        if isinstance(definition, cst.ClassDef):
            bases = [base.value for base in definition.bases]
            is_wrapper = any(is_loss_scale_class(self.program, base) for base in bases)
            return self._wrapped() if is_wrapper and is_plain else _UNKNOWN_SOURCE
        found: set[Atom] = set()
        if isinstance(definition, cst.FunctionDef) and is_plain:
            for value in returned_values(definition):
                found |= self.of(value, depth)
        return frozenset(found) if found else _UNKNOWN_SOURCE

    def _made_by_all(self, functions: Sequence[Optional[cst.CSTNode]], depth: int) -> Found:
        made = [self._made_by(function, depth - 1) for function in functions]
        return frozenset().union(*made) if made else _UNKNOWN_SOURCE

    def _named(self, name: cst.Name, depth: int) -> Found:
        if name.value == "None":
            return _PLAIN
        binding = reaching_definition(self.program, name)
        if binding is not None and binding.value is not None:
            return self.of(binding.value, depth)
        scope = self.program.scopes.loads.get(name)
        bindings = scope.bindings_of(name.value) if scope is not None else []
        found: set[Atom] = set() if bindings else {Source.UNKNOWN}
        for each in bindings:
            found |= self._bound(each, depth)
        return frozenset(found)

    def _bound(self, binding: Binding, depth: int) -> Found:
        if binding.value is not None:
            return self.of(binding.value, depth)
        if binding.kind == "parameter" and isinstance(binding.node, cst.Param):
            return self._parameter(binding.node, depth)
        return _UNKNOWN_SOURCE

    def _parameter(self, parameter: cst.Param, depth: int) -> Found:
        """What the calls in this program pass; a function that nothing here calls is unknown."""
        if parameter in self.open:
            return frozenset()
        self.open.add(parameter)
        try:
            found: set[Atom] = set()
            for passed in self._passed_to(parameter):
                found |= self.of(passed, depth - 1)
            return frozenset(found | self._callers_elsewhere(parameter))
        finally:
            self.open.discard(parameter)

    def _callers_elsewhere(self, parameter: cst.Param) -> Found:
        """What other files pass for a parameter; empty if they cannot call its function."""
        program = self.program
        function = function_of(program, parameter)
        path = qualified_name(program, function) if function is not None else ""
        if not path or program.neighbors.is_closed:
            return frozenset()
        if not program.neighbors.path:  # a file alone: nobody else calls its private functions
            private = any(
                part.startswith("_") and not part.startswith("__") for part in path.split(".")
            )
            return frozenset() if private else _UNKNOWN_SOURCE
        assert function is not None
        positional = [*function.params.posonly_params, *function.params.params]
        is_method = "." in path and not is_static(function)
        names = tuple(each.name.value for each in positional[1 if is_method else 0 :])
        flow = Flow(
            "parameter",
            f"{program.neighbors.path}.{path}",
            parameter.name.value,
            names,
            parameter.default is not None,
            any(program.call_of(use) is not None for use in uses_of(program, function)),
        )
        default = self.of(parameter.default, 1) if parameter.default is not None else frozenset()
        return default | {flow}

    def _is_called_as_written(self, function: cst.FunctionDef) -> bool:
        """Whether no decorator, of the function or its class, can pass other arguments."""
        owner = class_around(self.program, function)
        is_known = owner is None or decorators_are_known(self.program, owner)
        return is_known and decorators_are_known(self.program, function)

    def _passed_to(self, parameter: cst.Param) -> list[Optional[cst.BaseExpression]]:
        """The arguments of every call in this program; one None if they are not known."""
        program = self.program
        function = function_of(program, parameter)
        if function is None or not self._is_called_as_written(function):
            return [None]
        passed: list[Optional[cst.BaseExpression]] = []
        for use in uses_of(program, function):
            call = program.call_of(use)
            if call is None:
                return [None]
            skipped = 1 if passes_receiver(function, use) else 0
            passed.append(passed_for(call, function, parameter, skipped))
        is_called_elsewhere = bool(program.neighbors.path) and qualified_name(program, function)
        return passed or ([] if is_called_elsewhere else [None])

    def _attribute(self, node: cst.Attribute, depth: int) -> Found:
        if node.attr.value == "__class__":
            return self.of(node.value, depth)
        program, name = self.program, node.attr.value
        stores = list(stores_of(program, name))
        owner = class_around(program, node) if _text(node.value) == "self" else None
        found: set[Atom] = set()
        if owner is not None:
            stores = self._stores_in(owner, stores) or stores
        owners = {owner} if owner is not None else {self._class_storing(one) for one in stores}
        if any(may_be_stored_unseen(program, name, each) for each in owners or {None}):
            found.add(Source.UNKNOWN)
        for value in [store.value for store in stores] + values_in_body(program, name, owner):
            found |= self.of(value, depth)
        if name in program.neighbors.changed_elsewhere:
            found.add(Source.UNKNOWN)
        if name == COMPILED_NAME and not (stores and all(map(self._is_plain_class, stores))):
            found |= self._compiled(depth)
        return frozenset(found) if found else _UNKNOWN_SOURCE

    def _stores_in(self, owner: cst.ClassDef, stores: Sequence[Store]) -> list[Store]:
        """The stores that instances of a class can see: not those of `self` in other classes."""
        related = classes_related_to(self.program, owner)
        return [
            store
            for store in stores
            if _text(store.place.value) != "self"
            or class_around(self.program, store.place) in related
        ]

    def _class_storing(self, store: Store) -> Optional[cst.ClassDef]:
        """The class whose method stores an attribute of `self`; None for other objects."""
        is_own = _text(store.place.value) == "self"
        return class_around(self.program, store.place) if is_own else None

    def _compiled(self, depth: int) -> Found:
        """What `compile` leaves in a model: what it was given, if that is always wrapped."""
        if "compile" in self.program.neighbors.changed_elsewhere or loads_models(self.program):
            return _COMPILED
        given = list(given_to_compile(self.program))
        found: set[Atom] = set()
        for each in given:
            found |= self.of(each, depth)
        return frozenset(found) if found and all(map(_is_wrapped, found)) else _COMPILED

    def _is_plain_class(self, store: Store) -> bool:
        """Returns whether `store` is in a class that cannot be a Keras model: it has no base."""
        owner = class_around(self.program, store.place)
        bases = [_text(base.value) for base in owner.bases] if owner is not None else [""]
        return all(base == "object" for base in bases)


def _elements(program: Program, table: cst.CSTNode) -> list[Optional[cst.BaseExpression]]:
    """The values of a list, tuple or dict that is written here, or that a name is bound to."""
    if isinstance(table, cst.Name):
        binding = reaching_definition(program, table)
        return _elements(program, binding.value) if binding and binding.value else []
    if isinstance(table, (cst.ListComp, cst.SetComp)):
        return [table.elt]
    if not isinstance(table, (cst.List, cst.Tuple, cst.Dict)):
        return []
    elements = (cst.Element, cst.DictElement)
    return [each.value if isinstance(each, elements) else None for each in table.elements]


def _paths(program: Program, node: cst.CSTNode) -> set[str]:
    root: cst.CSTNode = node
    while isinstance(root, cst.Attribute):
        root = root.value
    scope = program.scopes.loads.get(root) if isinstance(root, cst.Name) else None
    if scope is None or not isinstance(node, cst.BaseExpression):
        return set()
    meanings = program.origins.of_expression(node, scope)
    return {meaning for meaning in meanings if is_path(meaning)} if meanings else set()


def _makes_plain_optimizer(path: str) -> bool:
    """Whether `path` is an optimizer class of Keras, `tf.train` or an add-on."""
    parts = path.split(".")
    is_class = parts[-1][:1].isupper() and parts[-1] != "LossScaleOptimizer"
    is_known = parts[0] in ("tensorflow", "keras", "tf_keras", "tensorflow_addons")
    return is_class and is_known and ("optimizers" in parts or "train" in parts)


def _text(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)
