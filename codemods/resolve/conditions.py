"""Finds whether a condition depends on the version of TensorFlow, by the flow of data.

A condition does if it mentions the version, what a module of TensorFlow has, a private class of
TensorFlow in a class test, or a private attribute that the file itself does not make; directly, or
through names, attributes and functions of the file. What names of other files are made of is not
known here: the answer has these names, and the parent process connects the files.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Optional, Union

import libcst as cst

from ..facts import Made
from .given_names import CALLED, KEY, NAMED
from .legacy_symbols import (
    is_of_tensorflow,
    is_whole,
    legacy_of,
    root_of,
    shows_version,
    twin_of,
)
from .links import IMPORTING
from .module_paths import below
from .qualified_names import STAR, is_path
from .releases import first_release_again, is_conditional, value_on_newest
from .resolved_program import ResolvedProgram
from .scopes import Binding, BindingKind, Scope, ScopeKind
from .tree import last_name, root_name, string_of, walk

__all__ = [
    "Dependence",
    "decides_without",
    "dependence_of",
    "expressions_behind",
    "made_of",
    "tests_of_text",
    "tried_as",
    "tries_tensorflow",
]

_PRIVATE = re.compile(
    r"(?:keras\.)?(?:python\.keras|src|engine|(?:optimizers\.(?:legacy\.)?)?optimizer_v2)\."
)
"""The private packages of Keras, without their roots.

The classes of its optimizers differ between versions. A private module of TensorFlow, such as
`tensorflow.python.training.optimizer` in Cerebras/modelzoo, holds the class of the public name.
"""
_ASKING = ("hasattr", "getattr", "dir", "signature", "vars")
"""The functions that show what a module has."""
_READING = ("getattr", "hasattr")
"""Those that read an attribute by its name."""
_GETTING = ("get", "getenv")
_CLASS_TESTS = ("isinstance", "issubclass")
_OWN = ("self", "cls")
_DISTRIBUTION = re.compile(r"(?:tensorflow|tf[-_]keras)\b(?!/)|keras$")
_CLASS_NAMES = frozenset(["BaseOptimizer", "OptimizerV1", "OptimizerV2", "_OptimizerV2"])
"""Names of private classes, which Cerebras/modelzoo looks for in the bases of an optimizer."""
_OTHER = re.compile("register|(?:start|end)swith$|getLogger$")
"""Functions that do not ask for a distribution, though they may be called with its name."""
_AROUND_TARGETS = (cst.AsName, cst.AssignTarget, cst.Element, cst.List, cst.Tuple)
_CONSTANTS = (cst.Integer, cst.Name, cst.SimpleString)


class Dependence(NamedTuple):
    """Whether an expression depends on the version.

    Attributes:
      is_certain: whether this file makes it of the version.
      names: the names of other files that it is made of; the name of an attribute begins with a
        dot, and one that other files may give a value as `names_given` has it.
    """

    is_certain: bool = False
    names: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return self.is_certain or bool(self.names)


_Key = tuple[Optional[Scope], str]
"""A name in its scope, or an attribute of any object, for which the first part is None."""


_Tried = Union[cst.Try, cst.With]
"""What can fail because a part of TensorFlow is missing, and goes on."""


class _Direct(NamedTuple):
    """What an expression reads directly, without what these names are made of."""

    is_certain: bool
    names: frozenset[str]
    keys: frozenset[_Key]


def dependence_of(program: ResolvedProgram, node: cst.CSTNode) -> Dependence:
    """Whether an expression is made of the version of TensorFlow, or of what its modules have."""
    return program.cached(_dependence, node)


def made_of(program: ResolvedProgram, name: str) -> Made:
    """What a top-level name of the file, or an attribute of any object, is made of.

    The name of an attribute begins with a dot. `module.name` is a name of a module that the file
    imports.
    """
    if "." in name[1:]:
        return _made_of_imported(program, *name.split(".", 1))
    scope: Optional[Scope] = None if name.startswith(".") else program.scopes.module_scope
    key = (scope, name.lstrip("."))
    if scope is not None and key[1] not in scope.bindings:
        stars = frozenset(below(path, name) for _, path in scope.stars if not _is_known(path))
        return Made(False, stars)
    is_certain, names = _closed(program, {key})
    bindings = scope.bindings[key[1]] if scope is not None else []
    is_certain = is_certain or _is_tried_without_flag(program, bindings)
    value = None
    is_only = len(bindings) == 1 and not is_conditional(program, bindings[0].node)
    if is_only and bindings[0].value is not None:
        value = value_on_newest(program, bindings[0].value, {})
    values = [made for _, made in _values(program, scope, key[1])]
    behind = expressions_behind(program, values)
    return Made(is_certain, frozenset(names), value, _release_as_text(program, behind))


def tried_as(
    program: ResolvedProgram, statement: _Tried, bindings: Iterable[Binding]
) -> frozenset[str]:
    """The paths in the shim of all that a `try` binds a name to, given the bindings of the name."""
    tried = [binding for binding in bindings if statement in program.ancestors(binding.node)]
    paths = (path for binding in tried for path in program.origins.of_binding(binding))
    return frozenset(map(twin_of, paths))


def _is_tried_without_flag(program: ResolvedProgram, bindings: Sequence[Binding]) -> bool:
    """Whether a `try` binds a name to one of two classes, and no flag that shows which it is."""
    tries = {tried for binding in bindings for tried in _tries_around(program, binding.node)}
    return any(
        len(tried_as(program, tried, bindings)) > 1 and not any(map(_sets_flag, walk(tried)))
        for tried in tries
    )


def _sets_flag(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Assign) and isinstance(node.value, _CONSTANTS)


def _made_of_imported(program: ResolvedProgram, module: str, name: str) -> Made:
    """What a name below one that the file imports is made of; nothing if the file makes that."""
    scope = program.scopes.module_scope
    bindings = [item for item in scope.bindings.get(module, ()) if item.kind is BindingKind.IMPORT]
    above = {binding.path for binding in bindings}
    if module not in scope.bindings:
        above = {below(path, module) for _, path in scope.stars}
    paths = frozenset(below(path, name) for path in above)
    is_version = any(map(shows_version, paths))
    return Made(is_version, frozenset(path for path in paths if not _is_known(path)))


def _release_as_text(program: ResolvedProgram, expressions: Iterable[cst.CSTNode]) -> str:
    """The first release that a comparison in one of the expressions takes for an older one."""
    releases = (
        release for node in expressions for release in tests_of_text(program, node).values()
    )
    return next(releases, "")


def tests_of_text(program: ResolvedProgram, expression: cst.CSTNode) -> dict[cst.CSTNode, str]:
    """The tests in an expression that compare versions as text, as in `first_release_again`."""
    tests = (part for part in walk(expression) if isinstance(part, (cst.Call, cst.Comparison)))
    found = {test: first_release_again(program, test) for test in tests}
    return {test: release for test, release in found.items() if release}


def expressions_behind(program: ResolvedProgram, nodes: Iterable[cst.CSTNode]) -> list[cst.CSTNode]:
    """Conditions, and the expressions of the file that their names and attributes are made of."""
    found = list(nodes)
    seen = {key for node in found for key in _direct(program, node).keys}
    pending = list(seen)
    while pending:
        scope, name = pending.pop()
        found += [part for part in _parts(program, scope, name) if part is not None]
        new = _names_read(program, scope, name) - seen
        seen |= new
        pending += new
    return found


def decides_without(program: ResolvedProgram, test: cst.CSTNode, statement: cst.Try) -> bool:
    """Whether the version decides a test by more than what a `try` of the file binds.

    Flags that the `try` sets, and what its names are, go with the import that succeeds.
    """
    for part in expressions_behind(program, [test]):
        tries = set(_tries_behind(program, part))
        if statement in tries:
            continue
        is_of_try = any(tries_tensorflow(program, tried) for tried in tries)
        if is_of_try or _direct(program, part).is_certain:
            return True
    return False


def _tries_behind(program: ResolvedProgram, expression: cst.CSTNode) -> Iterator[_Tried]:
    """The `try` statements that bind the names in an expression, but for TensorFlow itself."""
    for name in walk(expression):
        paths = program.paths_of(name)
        roots = [root_of(path) for path in paths]
        is_tensorflow = bool(roots) and all(root and root.rest in _EVERYWHERE for root in roots)
        if isinstance(name, cst.Name) and not is_tensorflow:
            for binding in program.values.bindings_of(name):
                yield from _tries_around(program, binding.node)


def _names_read(program: ResolvedProgram, scope: Optional[Scope], name: str) -> set[_Key]:
    """What the values of a name are made of directly, also if one is made of the version."""
    parts = [value for _, value in _values(program, scope, name)]
    return {key for part in parts for key in _direct(program, part).keys}


def _dependence(program: ResolvedProgram, node: cst.CSTNode) -> Dependence:
    direct = _direct(program, node)
    if direct.is_certain:
        return Dependence(True)
    is_certain, names = _closed(program, set(direct.keys))
    return Dependence(is_certain, direct.names | names)


def _closed(program: ResolvedProgram, keys: set[_Key]) -> tuple[bool, set[str]]:
    """Whether one of the names is made of the version, and which names of other files."""
    names: set[str] = set()
    pending, seen = list(keys), set(keys)
    while pending:
        direct = program.cached(_direct_of_key, pending.pop())
        if direct.is_certain:
            return True, set()
        names |= direct.names
        pending += direct.keys - seen
        seen |= direct.keys
    return False, names


def _direct(program: ResolvedProgram, node: cst.CSTNode) -> _Direct:
    """What an expression reads, but for what is certain on the newest TensorFlow."""
    names: set[str] = set()
    keys: set[_Key] = set()
    for part in itertools.chain.from_iterable(map(walk, _open_operands(program, node))):
        if isinstance(part, cst.Call) and _asks(program, part):
            return _CERTAIN
        if isinstance(part, cst.SimpleString) and string_of(part) in _CLASS_NAMES:
            return _CERTAIN
        direct = _direct_of_part(program, part)
        if direct.is_certain:
            return direct
        names |= direct.names
        keys |= direct.keys
    return _Direct(False, frozenset(names), frozenset(keys))


def _open_operands(program: ResolvedProgram, node: cst.CSTNode) -> list[cst.CSTNode]:
    """The operands of `and` and `or` that can still decide on the newest TensorFlow.

    `amp and not tf.__version__.startswith("2.0.")` depends on `amp` alone there. A comparison of
    text stays: it is reported.
    """
    if not isinstance(node, cst.BooleanOperation):
        return [node]
    is_and = isinstance(node.operator, cst.And)
    operands: list[cst.CSTNode] = []
    rest: cst.BaseExpression = node
    while isinstance(rest, cst.BooleanOperation) and isinstance(rest.operator, cst.And) is is_and:
        operands.append(rest.right)
        rest = rest.left
    operands.append(rest)
    found = [operand for operand in operands if not _is_neutral(program, operand, is_and=is_and)]
    return found or [node]


def _is_neutral(program: ResolvedProgram, operand: cst.CSTNode, is_and: bool) -> bool:
    """Whether an operand of `and` is certainly true on the newest TensorFlow, of `or` false."""
    if not isinstance(operand, cst.BaseExpression) or tests_of_text(program, operand):
        return False
    value = value_on_newest(program, operand, {})
    if value is None or bool(value[0]) is not is_and:
        return False
    return not _direct(program, operand).names  # a subclass elsewhere may have another value


_CERTAIN = _Direct(True, frozenset(), frozenset())
_NOTHING = _Direct(False, frozenset(), frozenset())


def _direct_of_part(program: ResolvedProgram, node: cst.CSTNode) -> _Direct:
    """What a part of an expression leads to, without its own parts."""
    if isinstance(node, cst.Call):
        return _direct_of_call(program, node)
    if isinstance(node, (cst.Name, cst.Attribute)):
        return _direct_of_name(program, node)
    if isinstance(node, cst.SimpleString) and _is_key(program, node):
        return _Direct(False, frozenset([f"{KEY}{string_of(node)}"]), frozenset())
    return _NOTHING


def _is_key(program: ResolvedProgram, node: cst.SimpleString) -> bool:
    """Whether a string is a key, as in `flags["old"]` and `os.environ.get("OLD")`."""
    parent = program.parents.get(node)
    call = program.parents.get(parent) if isinstance(parent, cst.Arg) else None
    return isinstance(parent, cst.Index) or (
        isinstance(call, cst.Call) and last_name(call.func) in _GETTING
    )


def _direct_of_name(program: ResolvedProgram, node: cst.Name | cst.Attribute) -> _Direct:
    """What a name or an attribute leads to: the version, a name of the file, or of another one."""
    paths = program.paths_of(node)
    if any(map(shows_version, paths)):
        return _CERTAIN
    if paths and all(map(_is_known, paths)):
        # Another part of TensorFlow, such as a module imported as `tf2`, or ours.
        return _direct_of_module(program, node)
    if paths:
        return _Direct(False, paths, frozenset())
    if isinstance(node, cst.Name):
        scope = program.scopes.loads.get(node)
        owners = scope.owners(node.value) if scope is not None else []
        if owners:
            return _Direct(False, frozenset(), frozenset((owner, node.value) for owner in owners))
        return _Direct(False, _of_stars(program, node), frozenset())
    return _direct_of_attribute(program, node)


def _direct_of_module(program: ResolvedProgram, node: cst.Name | cst.Attribute) -> _Direct:
    """What a name of a part of TensorFlow leads to, if it is None where that is missing.

    Only the value itself is a flag, as in `if contrib:`. To read an attribute of None is an error.
    """
    parent = program.parents.get(node)
    scope = program.scopes.loads.get(node) if isinstance(node, cst.Name) else None
    if scope is None or not isinstance(node, cst.Name) or isinstance(parent, cst.Attribute):
        return _NOTHING
    owner = scope.owner(node.value)
    if owner is None or not program.cached(_is_optional, owner, node.value):
        return _NOTHING
    return _Direct(False, frozenset(), frozenset([(owner, node.value)]))


def _is_optional(program: ResolvedProgram, scope: Scope, name: str) -> bool:
    """Whether a name of TensorFlow is None where a part of that is missing.

    What goes to the shim is never missing. TensorFlow itself is there, but `tf = None` can handle
    an import of `tensorflow.contrib` in the same `try`.
    """
    bindings = scope.bindings[name]
    if not any(_may_be_none(binding.value) for binding in bindings):
        return False
    paths = {path for binding in bindings for path in program.origins.of_binding(binding)}
    if any(map(_may_be_missing, paths)):
        return True
    tries = {above for binding in bindings for above in _tries_around(program, binding.node)}
    return any(
        tries.intersection(_tries_around(program, binding.node))
        for binding in program.imports()
        if _may_be_missing(binding.path) or _may_be_missing(program.code(binding.node).split()[0])
    )


def _may_be_none(value: Optional[cst.BaseExpression]) -> bool:
    """Whether an expression is None, or false, on some versions."""
    if isinstance(value, cst.BooleanOperation):  # `has_contrib and tf.contrib`
        return True
    return value is not None and any(
        isinstance(part, cst.Name) and part.value == "None" for part in walk(value)
    )


_EVERYWHERE = ("", "keras", "keras.optimizers", "train")
"""The modules that each TensorFlow has, and each Keras."""


def _may_be_missing(path: str) -> bool:
    """Whether TensorFlow 2 lacks a part of TensorFlow 1 that does not go to the shim.

    Other parts are missing where TensorFlow is, which a program may do without.
    """
    root = root_of(path)
    is_contrib = root is not None and root.rest.partition(".")[0] == "contrib"
    return is_contrib and legacy_of(path) is None and not is_whole(path)


def _tries_around(program: ResolvedProgram, node: cst.CSTNode) -> Iterator[_Tried]:
    """The `try` statements around a node, in the same function."""
    for above in program.ancestors(node):
        if isinstance(above, (cst.FunctionDef, cst.ClassDef)):
            return
        tried = _tried(program, above)
        if tried is not None:
            yield tried


def _direct_of_call(program: ResolvedProgram, call: cst.Call) -> _Direct:
    """What `getattr(flags, "old")` leads to, which is what `flags.old` does."""
    if last_name(call.func) not in _READING or len(call.args) < 2:
        return _NOTHING
    paths = program.paths_of(call.args[0].value)
    texts = [text for text in _texts(program, call.args[1]) if text.isidentifier()]
    below = frozenset(f"{path}.{text}" for path in paths for text in texts)
    if paths:
        return _Direct(False, frozenset(path for path in below if not _is_known(path)), frozenset())
    names = frozenset(f".{text}" for text in texts)
    return _Direct(False, names, frozenset((None, text) for text in texts))


def _direct_of_attribute(program: ResolvedProgram, node: cst.Attribute) -> _Direct:
    """An attribute of an object: in one file, most names of attributes have one meaning."""
    name = node.attr.value
    if name == "__version__" and "tensorflow" in program.code(node.value):
        return _CERTAIN  # of `sys.modules["tensorflow"]`
    paths = {f"{module}.{name}" for module in _modules_loaded(program, node.value)}
    root = root_name(node)
    if root is not None:
        rest = program.code(node)[len(root.value) :]
        paths |= {f"{path}{rest}" for path in _of_stars(program, root)}
    return _Direct(False, frozenset([f".{name}", *paths]), frozenset([(None, name)]))


def _modules_loaded(program: ResolvedProgram, node: cst.CSTNode) -> Iterator[str]:
    """The paths of the modules that an expression can be, as after `import_module("pkg.flags")`."""
    for source in program.values.sources_of(node):
        if isinstance(source, cst.Call) and last_name(source.func) in IMPORTING:
            for argument in source.args[:1]:
                yield from _texts(program, argument)
        elif isinstance(source, cst.Subscript) and last_name(source.value) == "modules":
            keys = [part.slice.value for part in source.slice if isinstance(part.slice, cst.Index)]
            yield from filter(None, map(string_of, keys))


def _of_stars(program: ResolvedProgram, node: cst.Name) -> frozenset[str]:
    """The paths that a name can have if a star import binds it."""
    scope = program.scopes.loads.get(node)
    if scope is None or STAR not in program.origins.of_name(node.value, scope):
        return frozenset()
    stars = [path for around in scope.chain() for _, path in around.stars]
    return frozenset(below(path, node.value) for path in stars if not _is_known(path))


def _direct_of_key(program: ResolvedProgram, key: _Key) -> _Direct:
    """What the bindings of a name, or the values of an attribute, are made of."""
    scope, name = key
    names: set[str] = set()
    keys: set[_Key] = set()
    for part in _parts(program, scope, name):
        direct = program.cached(_direct, part) if part is not None else _CERTAIN
        if direct.is_certain:
            return direct
        names |= direct.names
        keys |= direct.keys
    for binding in scope.bindings[name] if scope is not None else ():
        names.update(_names_elsewhere(program, binding))
    return _Direct(False, frozenset(names), frozenset(keys))


def _names_elsewhere(program: ResolvedProgram, binding: Binding) -> Iterator[str]:
    """The names by which other files may decide about the value of a binding."""
    if binding.kind is BindingKind.IMPORT and not _is_known(binding.path):
        yield binding.path
    if isinstance(binding.node, cst.Param):
        yield f"{NAMED}{binding.name}"
        yield f"{CALLED}{_called_with(program, binding.node)}"


def _called_with(program: ResolvedProgram, parameter: cst.Param) -> str:
    """The name of the function, or of the class, that is called with a parameter."""
    above = itertools.islice(program.ancestors(parameter), 2)
    functions = [node for node in above if isinstance(node, cst.FunctionDef)]
    owner = program.values.class_around(functions[0]) if functions else None
    if owner is not None and functions[0].name.value == "__init__":
        return owner.name.value
    return functions[0].name.value if functions else ""


def _parts(
    program: ResolvedProgram, scope: Optional[Scope], name: str
) -> Iterator[Optional[cst.CSTNode]]:
    """The values of a name, and what decides whether it is bound to them."""
    for target, value in _values(program, scope, name):
        yield value
        yield from _conditions_around(program, target, value)
    if scope is not None and name in scope.bindings and program.cached(_is_optional, scope, name):
        for binding in scope.bindings[name]:
            yield from _conditions_of_part(program, binding)


def _conditions_of_part(
    program: ResolvedProgram, binding: Binding
) -> Iterator[Optional[cst.CSTNode]]:
    """What decides whether a name is a part of TensorFlow: None for a `try` to get it.

    The None that it is otherwise can stand before the `try`, which then has no constant.
    """
    if not any(map(_may_be_missing, program.origins.of_binding(binding))):
        return
    below = binding.node
    for above in program.ancestors(binding.node):
        if isinstance(above, (cst.FunctionDef, cst.ClassDef)):
            return
        tried = _tried(program, above)
        if tried is not None and below is tried.body:
            yield None
        if isinstance(above, cst.If):
            yield above.test
        below = above


_Bound = tuple[cst.CSTNode, cst.CSTNode]
"""The target of an assignment, or a definition, and what decides its value."""


def _values(program: ResolvedProgram, scope: Optional[Scope], name: str) -> Iterator[_Bound]:
    """Each value that a name in a scope, or an attribute of any object, can have."""
    yield from _values_of_items(program, scope, name)
    if scope is not None:
        bindings = scope.bindings.get(name, [])
    else:
        classes = [owner for owner in program.scopes.all if owner.kind is ScopeKind.CLASS]
        bindings = [binding for owner in classes for binding in owner.bindings.get(name, ())]
        for store in filter(program.is_stored, program.attributes(name)):
            for value in _assigned(program, store):
                yield store, value
    for binding in bindings:
        yield from _deciding(program, binding)


def _values_of_items(
    program: ResolvedProgram, scope: Optional[Scope], name: str
) -> Iterator[_Bound]:
    """The values of `flags["old"] = ...`, where `flags` is a name in a scope, or an attribute."""
    if scope is not None:
        holders: list[cst.CSTNode] = [*program.loads_of(scope, name)]
    else:
        holders = [*program.attributes(name)]
    for holder in holders:
        item = program.parents.get(holder)
        is_item = isinstance(item, cst.Subscript) and item.value is holder
        if item is not None and is_item and program.is_stored(item):
            for value in _assigned(program, item):
                yield item, value


def _conditions_around(
    program: ResolvedProgram, target: cst.CSTNode, value: cst.CSTNode
) -> Iterator[Optional[cst.CSTNode]]:
    """What decides whether a target is bound: None for a `try` to get a part of TensorFlow.

    Only a constant is a flag: `if old: optimizer = wrap(optimizer)` does not make one.
    """
    is_constant = isinstance(value, _CONSTANTS)
    # What a function returns is decided around it, too.
    is_left = not isinstance(target, cst.Return)
    for above in program.ancestors(target):
        if isinstance(above, (cst.FunctionDef, cst.ClassDef)):
            if is_left:
                return
            is_left = True
        tried = _tried(program, above)
        if tried is not None and tries_tensorflow(program, tried, is_constant):
            yield None
        if isinstance(above, cst.If) and is_constant:
            yield above.test


def _tried(program: ResolvedProgram, node: cst.CSTNode) -> Optional[_Tried]:
    """A node if it is a `try`, or `with contextlib.suppress(ImportError)`; otherwise None."""
    if isinstance(node, cst.With):
        is_suppressed = any("suppress(" in program.code(item) for item in node.items)
        return node if is_suppressed else None
    return node if isinstance(node, cst.Try) else None


def tries_tensorflow(program: ResolvedProgram, statement: _Tried, reads: bool = True) -> bool:
    """Whether a `try` can fail because a part of TensorFlow is missing.

    It can if it imports a part. With `reads`, it also can if it reads one, unless it has a call,
    which can fail for other reasons, and no handler of an `AttributeError`.
    """
    nodes = list(walk(statement.body))
    imported = _imported_parts(program)
    if any(node in imported for node in nodes):
        return True
    if not reads:
        return False
    has_call = any(isinstance(node, cst.Call) for node in nodes)
    if has_call and not _handles_attribute_error(program, statement):
        return False  # calls fail for other reasons, too
    return any(_is_known(path) for node in nodes for path in program.paths_of(node))


def _imported_parts(program: ResolvedProgram) -> set[cst.CSTNode]:
    """The imports of parts of TensorFlow, but not of TensorFlow itself."""
    known = [binding.node for binding in program.imports() if _is_known(binding.path)]
    return {node for node in known if program.code(node).split()[0] != "tensorflow"}


def _handles_attribute_error(program: ResolvedProgram, statement: _Tried) -> bool:
    if isinstance(statement, cst.With):
        return any("AttributeError" in program.code(item) for item in statement.items)
    types = [handler.type for handler in statement.handlers if handler.type is not None]
    return any("AttributeError" in program.code(type_of_handler) for type_of_handler in types)


def _asks(program: ResolvedProgram, call: cst.Call) -> bool:
    """Whether a call shows what a version of TensorFlow has."""
    function = last_name(call.func)
    if function in _CLASS_TESTS:
        return _tests_private_class(program, call)
    if function not in _ASKING:
        return not _OTHER.search(function) and _names_distribution(program, call)
    if not call.args:
        return False
    paths = program.paths_of(call.args[0].value)
    names = [_texts(program, argument) for argument in call.args[1:2]]
    if paths and all(map(root_of, paths)):
        return not (function == "getattr" and names == [[]])  # a lookup of a computed name
    return bool(names) and any(_is_foreign_private(program, call, name) for name in names[0])


def _texts(program: ResolvedProgram, argument: cst.Arg) -> list[str]:
    return [text for text in map(string_of, program.values.sources_of(argument.value)) if text]


def _names_distribution(program: ResolvedProgram, call: cst.Call) -> bool:
    """Whether the first argument is the name of TensorFlow's distribution."""
    return any(
        _DISTRIBUTION.match(text)
        for argument in call.args[:1]
        for text in _texts(program, argument)
    )


def _tests_private_class(program: ResolvedProgram, call: cst.Call) -> bool:
    """Whether a class test names a private class, such as the `OptimizerV2` of TensorFlow 2.10."""
    if len(call.args) < 2:
        return False
    parts = walk(call.args[1].value)
    paths = {path for part in parts for path in program.paths_of(part)}
    return any(map(_is_private_class, paths))


def _is_private_class(path: str) -> bool:
    """Whether a path leads to a private class of Keras that has no twin in the shim."""
    root = root_of(path)
    return root is not None and bool(_PRIVATE.match(root.rest)) and legacy_of(path) is None


def _is_foreign_private(program: ResolvedProgram, call: cst.Call, name: str) -> bool:
    """Whether `hasattr(optimizer, "_hyper")` asks for a private attribute of another class.

    An attribute that the file makes itself is not one.
    """
    if not name.startswith("_") or name.startswith("__"):
        return False
    receiver = call.args[0].value
    if isinstance(receiver, cst.Name) and receiver.value in _OWN:
        return False
    classes = (scope for scope in program.scopes.all if scope.kind is ScopeKind.CLASS)
    is_made = any(name in scope.bindings for scope in classes)
    return not is_made and not any(map(program.is_stored, program.attributes(name)))


def _is_known(path: str) -> bool:
    """Whether no other file decides what a meaning is: a path of TensorFlow, or no path at all.

    Neither does one decide about a path of the shim, which a first run writes.
    """
    return is_of_tensorflow(path) or not is_path(path)


def _deciding(program: ResolvedProgram, binding: Binding) -> Iterator[_Bound]:
    """What a name is made of: its value, or what a function returns and its conditions."""
    if binding.value is not None:
        yield binding.node, binding.value
    elif isinstance(binding.node, cst.Param):
        if binding.node.default is not None:
            yield binding.node, binding.node.default
        yield from _arguments_of(program, binding.node)
    elif isinstance(binding.node, cst.FunctionDef):
        yield from _deciding_of_function(binding.node)
    else:
        for value in _assigned(program, binding.node):
            yield binding.node, value


def _arguments_of(program: ResolvedProgram, parameter: cst.Param) -> Iterator[_Bound]:
    """What the calls in the file give a parameter of a function or of a constructor."""
    parameters = program.parents.get(parameter)
    function = program.parents.get(parameters) if parameters is not None else None
    if not isinstance(parameters, cst.Parameters) or not isinstance(function, cst.FunctionDef):
        return
    owner = program.values.class_around(function)
    names = [item.name.value for item in (*parameters.posonly_params, *parameters.params)]
    is_constructor = owner is not None and function.name.value == "__init__"
    for read in program.values.reads_of(owner if is_constructor and owner else function):
        call = program.parents.get(read)
        if isinstance(call, cst.Call) and call.func is read:
            is_bound = is_constructor or (owner is not None and isinstance(read, cst.Attribute))
            given = _argument_of(call, names[is_bound:], parameter.name.value)
            yield from ((argument, argument.value) for argument in given)


def _argument_of(call: cst.Call, names: Sequence[str], name: str) -> Iterator[cst.Arg]:
    """The arguments of a call that a parameter gets, where those without names have these."""
    for index, argument in enumerate(call.args):
        if argument.star:
            return
        is_next = argument.keyword is None and names[index : index + 1] == [name]
        if is_next or (argument.keyword is not None and argument.keyword.value == name):
            yield argument


def _deciding_of_function(function: cst.FunctionDef) -> Iterator[_Bound]:
    """What a function returns, and the conditions of its returns.

    A condition around something else, such as a call that only some optimizers need in
    fastestimator/fastestimator, does not change what the function returns.
    """
    for node in walk(function.body):
        if isinstance(node, cst.Return) and node.value is not None:
            yield node, node.value
        elif isinstance(node, cst.If) and _returns(node):
            yield node, node.test


def _returns(node: cst.If) -> bool:
    return any(isinstance(inner, cst.Return) for inner in walk(node))


def _assigned(program: ResolvedProgram, target: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The value of an assignment, a loop or a `with`; of `major, minor`, what both are made of."""
    for above in program.ancestors(target):
        if isinstance(above, (cst.Assign, cst.AnnAssign)) and above.value is not None:
            yield above.value
        elif isinstance(above, cst.For):
            yield above.iter
        elif isinstance(above, cst.WithItem):
            yield above.item
        if not isinstance(above, _AROUND_TARGETS):
            return
