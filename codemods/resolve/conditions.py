"""Tells whether a condition depends on the version of TensorFlow.

It does if it mentions the version, or what a module of TensorFlow has, directly or through a flag
or function of this file, or of another one by its words. Which version is not analyzed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Optional

import libcst as cst

from .legacy_symbols import is_of_shim, root_of
from .program import Program
from .scopes import Binding
from .tree import last_name, root_name, string_of, walk
from .values import bindings_of

__all__ = ["asks_version"]

_VERSIONS = (
    "__version__", "VERSION", "keras.__version__", "version", "version.GIT_VERSION",
    "version.VERSION",
)  # fmt: skip
_ASKING, _INSTALLED = ("hasattr", "getattr", "dir"), ("get_distribution", "version")
"""The functions that tell what a module has, and which version of a distribution is installed."""
_FLAG = re.compile(
    r"(?:^|_)(?:tf|tensorflow)_?v?[12](?:_|\b|\d)|(?:tf|tensorflow).*version|version.*(?:tf|tensorflow)"
    r"|(?:prev|old|new|legacy|below|before)_tf",
    re.IGNORECASE,
)
"""The name of a flag that a file outside the run may have made of the version."""


def asks_version(program: Program, test: cst.CSTNode) -> bool:
    """Whether an expression is made of the version of TensorFlow, or of what its modules have."""
    known = program.cached(_answers)
    if test not in known:
        known[test] = _asks(program, test, set())
    return known[test]


def _answers(program: Program) -> dict[cst.CSTNode, bool]:
    """Filled with the answer for each condition, as many places can be below one."""
    return {}


def _asks(program: Program, node: cst.CSTNode, seen: set[cst.CSTNode]) -> bool:
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
    """Whether a call is `hasattr(module, ...)` or the like, or `version("tensorflow")`."""
    if call.args and last_name(call.func) in _INSTALLED:
        return (string_of(call.args[0].value) or "").startswith("tensorflow")
    if not call.args or not isinstance(call.func, cst.Name) or call.func.value not in _ASKING:
        return False
    paths = program.paths_of(call.args[0].value)
    return bool(paths) and all(root_of(path) is not None for path in paths)


def _is_flag(program: Program, node: cst.BaseExpression, seen: set[cst.CSTNode]) -> bool:
    """Whether a name or attribute is the version, or made of it as far as this file shows."""
    paths = program.paths_of(node)
    roots = [root_of(path) for path in paths]
    if any(root is not None and root.rest in _VERSIONS for root in roots):
        return True
    if paths and all(root or is_of_shim(path) for root, path in zip(roots, paths)):
        return False  # another part of TensorFlow, such as a module imported as `tf2`, or of ours
    if any(path.rpartition(".")[2] in program.surroundings.flags for path in paths):
        return True
    name = program.code(node)
    parts: list[cst.CSTNode] = []
    bindings = bindings_of(program, node) if isinstance(node, cst.Name) else []
    if isinstance(node, cst.Attribute):  # of any object: most names have one meaning in a file
        name = node.attr.value
        classes = [one for one in program.scopes.all if one.kind == "class"]
        bindings = [one for owner in classes for one in owner.bindings.get(name, ())]
        stores = filter(program.is_stored, program.attributes(name))
        parts = [value for store in stores for value in _assigned(program, store)]
    if any(_is_set_by_import(program, one) for one in bindings):
        return True
    parts += [part for one in bindings for part in _deciding(program, one)]
    return any(_asks(program, one, seen) for one in parts) if parts else bool(_FLAG.search(name))


def _is_set_by_import(program: Program, binding: Binding) -> bool:
    """Whether a name is bound in a `try` around an import of TensorFlow, but not by the import."""
    return binding.kind != "import" and any(
        isinstance(above, cst.Try) and any(map(_imports_tensorflow, walk(above.body)))
        for above in program.ancestors(binding.node)
    )


def _imports_tensorflow(node: cst.CSTNode) -> bool:
    """Whether a statement imports TensorFlow, or the shim, which a first run writes."""
    names: list[Optional[cst.CSTNode]] = []
    if isinstance(node, cst.ImportFrom):
        names = [node.module]
    elif isinstance(node, cst.Import):
        names = [alias.name for alias in node.names]
    roots = [root.value for root in map(root_name, names) if root is not None]
    return "tensorflow" in roots or any(map(is_of_shim, roots))


def _deciding(program: Program, binding: Binding) -> Iterator[cst.CSTNode]:
    """What a name is made of: its value, or what a function returns and its conditions."""
    if binding.value is not None:
        yield binding.value
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
