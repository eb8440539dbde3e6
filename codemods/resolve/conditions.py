"""Finds whether a condition depends on the version of TensorFlow.

It does if it mentions the version, or what a module of TensorFlow has, directly or through a flag
or function of this file, or of another one by its words. Which version is not analyzed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Optional

import libcst as cst

from .legacy_symbols import is_of_shim, root_of
from .program import Program
from .scopes import Binding
from .tree import last_name, string_of, walk
from .values import bindings_of, sources_of

__all__ = ["asks_version", "tries_tensorflow"]

_VERSION = re.compile(
    r"(?:^|\.)(?:__version__|(?:GIT_)?VERSION|__dict__|\w*enabled|executing_eagerly\w*)$|^version$"
)
"""What shows the version of TensorFlow, without the path of a module around it."""
_Bound = tuple[cst.CSTNode, cst.CSTNode]
"""The target of an assignment, or a definition, and what decides its value."""
_ASKING = ("hasattr", "getattr", "dir", "signature", "vars")
"""The functions that show what a module has."""
_DISTRIBUTION = re.compile(r"(?:tensorflow|tf[-_]keras)\b(?!/)|keras$")
_OTHER = re.compile("register|(?:start|end)swith$|getLogger$")
"""Functions that do not ask for a distribution, though they may be called with its name."""
_FLAG = re.compile(
    r"(?:^|_)(?:tf|tensorflow)_?v?[12](?:_|\b|\d)|(?:tf|tensorflow).*version|version.*(?:tf|tensorflow)"
    r"|(?:prev|old|new|legacy|below|before)_tf",
    re.IGNORECASE,
)
"""The name of a flag that a file outside the run may have made of the version."""


def asks_version(program: Program, test: cst.CSTNode) -> bool:
    """Whether an expression is made of the version of TensorFlow, or of what its modules have."""
    return program.cached(_asks, test)


def _asks(program: Program, node: cst.CSTNode, seen: Optional[set[object]] = None) -> bool:
    seen = set() if seen is None else seen
    if node in seen:
        return False
    seen.add(node)
    for one in walk(node):
        if isinstance(one, cst.Call) and _asks_module(program, one):
            return True
        if isinstance(one, (cst.Name, cst.Attribute)) and _is_flag(program, one, seen):
            return True
    return False


def _asks_module(program: Program, call: cst.Call) -> bool:
    """Whether a call is `hasattr(module, ...)` or the like, or has a distribution's name."""
    function = last_name(call.func)
    values = [sources_of(program, one.value) for one in call.args[:2]]
    names = [[name for name in map(string_of, one) if name] for one in values]
    if function not in _ASKING or not names:
        is_distribution = any(map(_DISTRIBUTION.match, itertools.chain(*names[:1])))
        return is_distribution and not _OTHER.search(function)
    paths = program.paths_of(call.args[0].value)
    is_lookup = function == "getattr" and names[1:] == [[]]  # of a computed name
    return bool(paths) and all(map(root_of, paths)) and not is_lookup


def _is_flag(program: Program, node: cst.BaseExpression, seen: set[object]) -> bool:
    """Whether a name or attribute is the version, or made of it as far as the words show."""
    paths = program.paths_of(node)
    if any(root and _VERSION.search(root.rest) for root in map(root_of, paths)):
        return True
    if paths and all(map(_is_of_tensorflow, paths)):
        return False  # another part of TensorFlow, such as a module imported as `tf2`, or of ours
    name = last_name(node)
    scope = program.scopes.loads.get(node) if isinstance(node, cst.Name) else cst.Attribute
    if (scope, name, *paths) in seen:
        return False
    seen.add((scope, name, *paths))
    values: list[_Bound] = []
    bindings = bindings_of(program, node) if isinstance(node, cst.Name) else []
    if isinstance(node, cst.Attribute):  # of any object: most names have one meaning in a file
        if name == "__version__" and "tensorflow" in program.code(node.value):
            return True
        classes = [one for one in program.scopes.all if one.kind == "class"]
        bindings = [one for owner in classes for one in owner.bindings.get(name, ())]
        stores = filter(program.is_stored, program.attributes(name))
        values = [(store, value) for store in stores for value in _assigned(program, store)]
    values += [(one.node, value) for one in bindings for value in _deciding(program, one)]
    if not values and _FLAG.search(name):
        return True
    made = [path.rpartition(".")[2] for path in paths] or [name] * (not values)
    return not program.surroundings.flags.isdisjoint(made) or any(
        _asks(program, one[1], seen) or _is_chosen(program, node, one, seen) for one in values
    )


def _is_chosen(program: Program, node: cst.CSTNode, bound: _Bound, seen: set[object]) -> bool:
    """Whether a name is bound in a `try` to get TensorFlow, or to a constant in another branch."""
    target, value = bound
    is_constant = isinstance(value, (cst.Integer, cst.Name, cst.SimpleString))
    around = set(program.ancestors(node))
    for above in itertools.filterfalse(around.__contains__, program.ancestors(target)):
        if isinstance(above, cst.Try) and tries_tensorflow(program, above, is_constant):
            return True
        if isinstance(above, cst.If) and is_constant and _asks(program, above.test, seen):
            return True
    return False


def tries_tensorflow(program: Program, statement: cst.Try, reads: bool = True) -> bool:
    """Whether a `try` imports a part of TensorFlow, or reads one, if that counts."""
    imported = [one for one in program.imports() if _is_of_tensorflow(one.path)]
    parts = {one.node for one in imported if program.code(one.node).split()[0] != "tensorflow"}
    nodes = list(walk(statement.body))
    types = [program.code(one.type) for one in statement.handlers if one.type is not None]
    if not any("AttributeError" in one for one in types):  # calls fail for other reasons, too
        reads = reads and not any(isinstance(one, cst.Call) for one in nodes)
    return any(
        one in parts or (reads and any(map(_is_of_tensorflow, program.paths_of(one))))
        for one in nodes
    )


def _is_of_tensorflow(path: str) -> bool:
    """Whether a path is of TensorFlow, or of the shim, which a first run writes."""
    return root_of(path) is not None or is_of_shim(path)


def _deciding(program: Program, binding: Binding) -> Iterator[cst.CSTNode]:
    """What a name is made of: its value, or what a function returns and its conditions."""
    if binding.value is not None:
        yield binding.value
    elif isinstance(binding.node, cst.Param) and binding.node.default is not None:
        yield binding.node.default
    elif isinstance(binding.node, cst.FunctionDef):
        for one in walk(binding.node.body):
            if isinstance(one, cst.Return) and one.value is not None:
                yield one.value
            elif isinstance(one, cst.If):
                yield one.test
    else:
        yield from _assigned(program, binding.node)


def _assigned(program: Program, target: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The value of an assignment; for `major, minor = ...`, what both are made of."""
    for above in program.ancestors(target):
        if isinstance(above, (cst.Assign, cst.AnnAssign)) and above.value is not None:
            yield above.value
        if not isinstance(above, (cst.AssignTarget, cst.Tuple, cst.List, cst.Element)):
            return
