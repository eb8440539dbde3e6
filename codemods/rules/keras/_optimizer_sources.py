"""Finds out where the optimizer that a class test looks at comes from.

Under a `mixed_float16` policy, `compile` itself wraps the optimizer of a model that is not wrapped
yet, in the class of the installed Keras. Once a test names the shim's class, it is False for such
an optimizer: nothing is scaled. So a test is rewritten safely only if the source shows that the
program itself made the optimizer; the absence of `compile` shows nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Optional, Union

import libcst as cst

from ...model import Safety
from ...resolve.neighbors import Flow, is_in_run
from ...resolve.program import Program
from ...resolve.qualified_names import is_path
from ...resolve.reaching_values import reaching_definition
from ...resolve.scopes import Binding
from ...resolve.tree import children
from ._optimizer_type import is_loss_scale_class

__all__ = ["Risk", "Source", "object_of_test", "risk_of_test", "sources"]

_DEPTH = 8
_STEPS = 2000
"""How far and how long a search goes; what lies beyond is unknown."""
_FROM_LOSS_SCALE = "tf_lossscale.keras.mixed_precision.from_loss_scale"
_COMPILED_NAME = "optimizer"
"""The attribute in which a Keras model keeps the optimizer that `compile` was given."""
_TABLES = (cst.Element, cst.Tuple, cst.List, cst.Set, cst.BinaryOperation)
_CLASS_TESTS = frozenset(["isinstance", "issubclass", "assertIsInstance", "assertNotIsInstance"])
_WRAPPED_BY_COMPILE = (
    "compile may have wrapped this optimizer in the class of the installed Keras, for which this "
    "test would be False: wrap the optimizer explicitly before compile, then migrate again"
)
_UNKNOWN = (
    "where this optimizer comes from cannot be determined statically: if compile has wrapped it in "
    "the class of the installed Keras, this test becomes False"
)


class Source(enum.Enum):
    """Where an optimizer can come from."""

    WRAPPED = "a loss-scale class, called in this program"
    PLAIN = "another value that this program makes: an optimizer without loss scaling, or None"
    COMPILED = "a model, whose `compile` may have wrapped it"
    UNKNOWN = "a parameter whose callers are not known, or something computed"


class Risk(NamedTuple):
    """Why a class test cannot be moved to the shim's class safely."""

    outcome: Safety
    message: str


_Atom = Union[Source, Flow]
_Found = frozenset[_Atom]
_WRAPPED: _Found = frozenset([Source.WRAPPED])
_PLAIN: _Found = frozenset([Source.PLAIN])
_COMPILED: _Found = frozenset([Source.COMPILED])
_UNKNOWN_SOURCE: _Found = frozenset([Source.UNKNOWN])


def risk_of_test(program: Program, node: cst.CSTNode) -> Optional[Risk]:
    """Why the class test that names the class `node` is not safe to move to the shim's class.

    Safe are a place that is no test, and a test of an optimizer for which the source shows every
    value that it can have: the result of a loss-scale class, of another optimizer class, or None.
    """
    found = _known(program, atoms_of_test(program, node))
    if Source.COMPILED in found:
        return Risk(Safety.MANUAL, _WRAPPED_BY_COMPILE)
    if Source.UNKNOWN in found:
        return Risk(Safety.UNSAFE, _UNKNOWN)
    return None


def atoms_of_test(program: Program, node: cst.CSTNode) -> _Found:
    """The sources of what the class test that names `node` looks at, also those in other files."""
    found: set[_Atom] = set()
    for place in [node, *_reads_of_table(program, node)]:
        tested = object_of_test(program, place)
        if tested is not None:
            found |= _Search(program).of(tested, _DEPTH)
    return frozenset(found)


def _reads_of_table(program: Program, node: cst.CSTNode) -> list[cst.Name]:
    """The reads of a name that is bound to a tuple with the class in it: `KINDS = (A, B)`."""
    parent = program.parents.get(node)
    if not isinstance(parent, cst.Element):
        return []
    while isinstance(parent, _TABLES):
        parent = program.parents.get(parent)
    found = []
    for target in parent.targets if isinstance(parent, cst.Assign) else ():
        for name, scope in program.scopes.loads.items():
            bindings = scope.bindings_of(name.value)
            if any(binding.node is target.target for binding in bindings):
                found.append(name)
    return found


def object_of_test(program: Program, node: cst.CSTNode) -> Optional[cst.BaseExpression]:
    """The `x` of `isinstance(x, node)`, `type(x) is node` and `case node():`; otherwise None."""
    parent = program.parents.get(node)
    while isinstance(parent, _TABLES):
        node, parent = parent, program.parents.get(parent)
    if isinstance(parent, cst.MatchClass):
        return next(
            (above.subject for above in program.ancestors(parent) if isinstance(above, cst.Match)),
            None,
        )
    if isinstance(parent, cst.ComparisonTarget):
        comparison = program.parents.get(parent)
        return comparison.left if isinstance(comparison, cst.Comparison) else None
    if isinstance(parent, cst.Comparison):
        return parent.comparisons[0].comparator
    call = program.parents.get(parent) if isinstance(parent, cst.Arg) else None
    if not isinstance(call, cst.Call) or len(call.args) < 2 or call.args[1] is not parent:
        return None
    is_test = program.code(call.func).rpartition(".")[2] in _CLASS_TESTS
    return call.args[0].value if is_test else None


def sources(program: Program, node: Optional[cst.CSTNode]) -> frozenset[Source]:
    """Everything that the value of `node` can come from."""
    return _known(program, atoms(program, node))


def atoms(program: Program, node: Optional[cst.CSTNode]) -> _Found:
    """The same, with the values that come from other files of the run as flows."""
    return _Search(program).of(node, _DEPTH)


def returned(program: Program, definition: cst.CSTNode) -> _Found:
    """What a call of a function or class of this file returns."""
    return _Search(program).defined(definition, _DEPTH)


def _known(program: Program, found: _Found) -> frozenset[Source]:
    """Replaces flows by the sources that the run has found for them."""
    known: set[Source] = set()
    for atom in found:
        if isinstance(atom, Source):
            known.add(atom)
        elif atom.kind == "made":
            known.add(Source.WRAPPED)
        else:
            names = program.neighbors.flows.get(atom, frozenset([Source.UNKNOWN.name]))
            known |= {Source[name] for name in names}
    return frozenset(known)


def _is_wrapped(atom: _Atom) -> bool:
    return atom is Source.WRAPPED or (isinstance(atom, Flow) and atom.kind == "made")


class _Search:
    """One search. A value that depends on itself adds nothing (`opt = wrap(opt)`)."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.open: set[cst.CSTNode] = set()
        self.left = _STEPS

    def of(self, node: Optional[cst.CSTNode], depth: int) -> _Found:
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

    def _of(self, node: cst.CSTNode, depth: int) -> _Found:
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

    def _outside(self, kind: str, node: cst.CSTNode) -> _Found:
        """The flows of a name that other files of the run define; empty if it is another name."""
        paths = _paths(self.program, node)
        if not paths or not all(map(is_in_run, paths)):
            return frozenset()
        return frozenset(Flow(kind, path) for path in paths)

    def _wrapped(self) -> _Found:
        path = self.program.neighbors.path
        return frozenset([Flow("made", path)]) if path else _WRAPPED

    def _called(self, call: cst.Call, depth: int) -> _Found:
        function = call.func
        if _text(function) == "type" and len(call.args) == 1:
            return self.of(call.args[0].value, depth)
        if _text(function) == "getattr" and len(call.args) > 1:
            name = call.args[1].value
            is_compiled = isinstance(name, cst.SimpleString) and _COMPILED_NAME in name.value
            return _COMPILED if is_compiled else _UNKNOWN_SOURCE
        if isinstance(function, cst.Attribute) and function.attr.value == "from_config":
            function = function.value
        return self._made_by(function, depth)

    def _made_by(self, function: Optional[cst.CSTNode], depth: int) -> _Found:
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
        definitions = list(_definitions(program, function))
        found: set[_Atom] = set()
        for definition in definitions:
            if isinstance(definition, (cst.ClassDef, cst.FunctionDef)):
                found |= self.defined(definition, depth)
            elif isinstance(definition, cst.Param):
                found |= self._made_by_all([*self._passed_to(definition)], depth)
                found |= _UNKNOWN_SOURCE if self._callers_elsewhere(definition) else frozenset()
            else:
                found |= self._made_by(definition, depth - 1)
        return frozenset(found) if found else _UNKNOWN_SOURCE

    def defined(self, definition: cst.CSTNode, depth: int) -> _Found:
        """What a call of this class or function returns."""
        if isinstance(definition, cst.ClassDef):
            bases = [base.value for base in definition.bases]
            is_wrapper = any(is_loss_scale_class(self.program, base) for base in bases)
            return self._wrapped() if is_wrapper else _UNKNOWN_SOURCE
        found: set[_Atom] = set()
        if isinstance(definition, cst.FunctionDef) and not definition.decorators:
            for value in _returned(definition):
                found |= self.of(value, depth)
        return frozenset(found) if found else _UNKNOWN_SOURCE

    def _made_by_all(self, functions: Sequence[Optional[cst.CSTNode]], depth: int) -> _Found:
        made = [self._made_by(function, depth - 1) for function in functions]
        return frozenset().union(*made) if made else _UNKNOWN_SOURCE

    def _named(self, name: cst.Name, depth: int) -> _Found:
        if name.value == "None":
            return _PLAIN
        binding = reaching_definition(self.program, name)
        if binding is not None and binding.value is not None:
            return self.of(binding.value, depth)
        scope = self.program.scopes.loads.get(name)
        bindings = scope.bindings_of(name.value) if scope is not None else []
        found: set[_Atom] = set() if bindings else {Source.UNKNOWN}
        for each in bindings:
            found |= self._bound(each, depth)
        return frozenset(found)

    def _bound(self, binding: Binding, depth: int) -> _Found:
        if binding.value is not None:
            return self.of(binding.value, depth)
        if binding.kind == "parameter" and isinstance(binding.node, cst.Param):
            return self._parameter(binding.node, depth)
        return _UNKNOWN_SOURCE

    def _parameter(self, parameter: cst.Param, depth: int) -> _Found:
        """What the calls in this program pass; a function that nothing here calls is unknown."""
        if parameter in self.open:
            return frozenset()
        self.open.add(parameter)
        try:
            found: set[_Atom] = set()
            for passed in self._passed_to(parameter):
                found |= self.of(passed, depth - 1)
            return frozenset(found | self._callers_elsewhere(parameter))
        finally:
            self.open.discard(parameter)

    def _callers_elsewhere(self, parameter: cst.Param) -> _Found:
        """What other files pass for a parameter; empty if they cannot call its function."""
        program = self.program
        function = _function_of(program, parameter)
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
        is_method = "." in path and not _is_static(function)
        names = tuple(each.name.value for each in positional[1 if is_method else 0 :])
        flow = Flow(
            "parameter",
            f"{program.neighbors.path}.{path}",
            parameter.name.value,
            names,
            parameter.default is not None,
            any(program.call_of(use) is not None for use in _uses(program, function)),
        )
        default = self.of(parameter.default, 1) if parameter.default is not None else frozenset()
        return default | {flow}

    def _passed_to(self, parameter: cst.Param) -> list[Optional[cst.BaseExpression]]:
        """The arguments of every call in this program; one None if they are not known."""
        program = self.program
        function = _function_of(program, parameter)
        if function is None:
            return [None]
        passed: list[Optional[cst.BaseExpression]] = []
        for use in _uses(program, function):
            call = program.call_of(use)
            if call is None:
                return [None]
            skipped = 1 if _is_bound(function, use) else 0
            passed.append(_passed(call, function, parameter, skipped))
        is_called_elsewhere = bool(program.neighbors.path) and qualified_name(program, function)
        return passed or ([] if is_called_elsewhere else [None])

    def _attribute(self, node: cst.Attribute, depth: int) -> _Found:
        if node.attr.value == "__class__":
            return self.of(node.value, depth)
        program, name = self.program, node.attr.value
        stores = list(_stores(program, name))
        owner = _class_around(program, node) if _text(node.value) == "self" else None
        if owner is not None:
            own = [store for store in stores if _class_around(program, store.place) is owner]
            stores = own or stores
        found: set[_Atom] = set()
        for store in stores:
            found |= self.of(store.value, depth)
        if name == _COMPILED_NAME and not (stores and all(map(self._is_plain_class, stores))):
            found |= self._compiled(depth)
        return frozenset(found) if found else _UNKNOWN_SOURCE

    def _compiled(self, depth: int) -> _Found:
        """What `compile` leaves in a model: what it was given, if that is always wrapped."""
        given = list(_given_to_compile(self.program))
        found: set[_Atom] = set()
        for each in given:
            found |= self.of(each, depth)
        return frozenset(found) if found and all(map(_is_wrapped, found)) else _COMPILED

    def _is_plain_class(self, store: _Store) -> bool:
        """Returns whether `store` is in a class that cannot be a Keras model: it has no base."""
        owner = _class_around(self.program, store.place)
        bases = [_text(base.value) for base in owner.bases] if owner is not None else [""]
        return all(base == "object" for base in bases)


def qualified_name(program: Program, function: cst.FunctionDef) -> str:
    """The name with which other files can reach a function; empty for a nested one."""
    parts = [function.name.value]
    for above in program.ancestors(function):
        if isinstance(above, (cst.FunctionDef, cst.Lambda)):
            return ""
        if isinstance(above, cst.ClassDef):
            parts.append(above.name.value)
    return ".".join(reversed(parts))


def _function_of(program: Program, parameter: cst.Param) -> Optional[cst.FunctionDef]:
    """The function that has the parameter; None for a lambda."""
    functions = (cst.FunctionDef, cst.Lambda)
    around = (each for each in program.ancestors(parameter) if isinstance(each, functions))
    function = next(around, None)
    return function if isinstance(function, cst.FunctionDef) else None


def _is_static(function: cst.FunctionDef) -> bool:
    return any(_text(each.decorator) == "staticmethod" for each in function.decorators)


class _Store(NamedTuple):
    place: cst.Attribute
    value: Optional[cst.BaseExpression]


def _stores(program: Program, name: str) -> Iterator[_Store]:
    """The assignments to `anything.name`; the value is None where it cannot be seen."""
    for attribute in program.attributes(name):
        parent = program.parents.get(attribute)
        if isinstance(parent, cst.AssignTarget):
            statement = program.parents.get(parent)
            yield _Store(attribute, statement.value if isinstance(statement, cst.Assign) else None)
        elif isinstance(parent, cst.AnnAssign) and parent.target is attribute:
            if parent.value is not None:
                yield _Store(attribute, parent.value)
        elif isinstance(parent, (cst.AugAssign, cst.For, cst.CompFor)):
            if parent.target is attribute:
                yield _Store(attribute, None)
        elif _is_target(program, parent):
            yield _Store(attribute, None)


def _is_target(program: Program, node: Optional[cst.CSTNode]) -> bool:
    """Whether `a.b` in `a.b, c = ...` or `with f() as a.b` is assigned to; `node` is around it."""
    if isinstance(node, cst.AsName):
        return True
    if not isinstance(node, (cst.Element, cst.StarredElement)):
        return False
    above = program.parents.get(node)
    while isinstance(above, (cst.Tuple, cst.List, cst.Element, cst.StarredElement)):
        node, above = above, program.parents.get(above)
    if isinstance(above, (cst.For, cst.CompFor)):
        return above.target is node
    return isinstance(above, (cst.AssignTarget, cst.AsName))


def _given_to_compile(program: Program) -> Iterator[Optional[cst.BaseExpression]]:
    """The optimizer of every `compile` call; None where it cannot be seen.

    `super().compile(optimizer)` in a method that only passes its own parameter on does not count.
    """
    for attribute in program.attributes("compile"):
        call = program.call_of(attribute)
        if call is None or _text(attribute.value) in ("re", "regex"):
            continue
        value = call.args[0].value if call.args and call.args[0].keyword is None else None
        if call.args and call.args[0].star:
            value = None
        for argument in call.args:
            if argument.keyword is not None and argument.keyword.value == _COMPILED_NAME:
                value = argument.value
        if not _is_passed_on(program, attribute, value):
            yield value


def _is_passed_on(
    program: Program, attribute: cst.Attribute, value: Optional[cst.BaseExpression]
) -> bool:
    if _text(attribute.value) != "super()" or not isinstance(value, cst.Name):
        return False
    scope = program.scopes.loads.get(value)
    bindings = scope.bindings_of(value.value) if scope is not None else []
    around = scope.node if scope is not None else None
    return (
        isinstance(around, cst.FunctionDef)
        and around.name.value == "compile"
        and [binding.kind for binding in bindings] == ["parameter"]
    )


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


def _definitions(program: Program, function: cst.CSTNode) -> Iterator[Optional[cst.CSTNode]]:
    """What defines `function`: definitions, parameters and values; None where it is not known."""
    if isinstance(function, cst.Name):
        scope = program.scopes.loads.get(function)
        for binding in scope.bindings_of(function.value) if scope is not None else []:
            if isinstance(binding.node, (cst.FunctionDef, cst.ClassDef, cst.Param)):
                yield binding.node
            else:
                yield binding.value
    elif isinstance(function, cst.Attribute):
        for scope in program.all_scopes():
            if scope.kind == "class":
                for binding in scope.bindings.get(function.attr.value, []):
                    if isinstance(binding.node, cst.FunctionDef):
                        yield binding.node


def _returned(function: cst.CSTNode) -> list[Optional[cst.BaseExpression]]:
    """The values that a function returns; one None if it has no `return`."""
    if isinstance(function, cst.Lambda):
        return [function.body]
    found: list[Optional[cst.BaseExpression]] = []
    stack = children(function)
    while stack:
        node = stack.pop()
        if isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            continue
        if isinstance(node, cst.Return):
            found.append(node.value)
        stack.extend(children(node))
    return found or [None]


def _uses(program: Program, function: cst.FunctionDef) -> Iterator[cst.CSTNode]:
    """Every place that reads `function`, a method by its name; a base class is not a call."""
    name = function.name.value
    owner = _class_around(program, function)
    if owner is not None and _function_around(program, function) is None:
        if name == "__init__":
            name = owner.name.value
        else:
            yield from program.attributes(name)
            return
    for load, scope in program.scopes.loads.items():
        if load.value == name:
            bindings = scope.bindings_of(name)
            if any(binding.node in (function, owner) for binding in bindings):
                yield load


def _is_bound(function: cst.FunctionDef, use: cst.CSTNode) -> bool:
    """Whether the call passes the first parameter itself: `trainer.step(x)`, `Trainer(x)`."""
    if _is_static(function):
        return False
    return isinstance(use, cst.Attribute) or function.name.value == "__init__"


def _passed(
    call: cst.Call, function: cst.FunctionDef, parameter: cst.Param, skipped: int
) -> Optional[cst.BaseExpression]:
    """The argument for `parameter`, or its default; None where stars hide it."""
    if any(argument.star for argument in call.args):
        return None
    for argument in call.args:
        if argument.keyword is not None and argument.keyword.value == parameter.name.value:
            return argument.value
    positional: Sequence[cst.Param] = [*function.params.posonly_params, *function.params.params]
    if parameter in positional:
        index = list(positional).index(parameter) - skipped
        given = [argument for argument in call.args if argument.keyword is None]
        if 0 <= index < len(given):
            return given[index].value
    return parameter.default


def _function_around(program: Program, node: cst.CSTNode) -> Optional[cst.CSTNode]:
    """The function around `node` within its nearest class."""
    for above in program.ancestors(node):
        if isinstance(above, cst.ClassDef):
            return None
        if isinstance(above, (cst.FunctionDef, cst.Lambda)):
            return above
    return None


def _class_around(program: Program, node: cst.CSTNode) -> Optional[cst.ClassDef]:
    return next(
        (above for above in program.ancestors(node) if isinstance(above, cst.ClassDef)), None
    )


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
