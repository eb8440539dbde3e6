"""Finds what calls with strings lead to, such as `import_module("a.b")` and `getattr(a, "b")`."""

from __future__ import annotations

from importlib.util import resolve_name

import libcst as cst

from ...resolve import tree
from ...resolve.legacy_symbols import is_of_shim, legacy_of, namespace_of
from ..rule import Decision, Options, Program

__all__ = [
    "IMPORTING",
    "NAMING",
    "function_of",
    "is_moved",
    "is_of_shim",
    "message_of_shim",
    "path_of",
    "paths_read",
]

NAMING = ("delattr", "getattr", "object", "setattr")
"""Functions that name an attribute by a string, such as `mock.patch.object`."""
_RELATIVE = "import_module"
"""Takes the package of a relative name: `import_module(".contrib", "tensorflow")`."""
IMPORTING = (_RELATIVE, "__import__")
_MOVES = (
    "a string leads to {0}.{1} here, and strings are never rewritten: import it with `from {0} "
    "import {1}`, then migrate again"
)


def message_of_shim(path: str) -> str:
    """What to write where a string leads to a name of the shim that moves to the final API."""
    module, _, name = path.rpartition(".")
    return _MOVES.format(module, name)


def function_of(program: Program, call: cst.Call) -> str:
    """The last name of what is called, also where it was given another name."""
    written = tree.last_name(call.func)
    paths = program.paths_of(call.func)
    return min(paths).rpartition(".")[2] if len(paths) == 1 else written


def path_of(program: Program, node: cst.CSTNode) -> str:
    """What `getattr(tf, "keras")` or `import_module("tensorflow")` means; empty if unknown."""
    if isinstance(node, cst.Call):
        return _path_of_call(program, node)
    paths = program.paths_of(node)
    if isinstance(node, cst.Attribute) and not paths:
        base = path_of(program, node.value)
        return f"{base}.{node.attr.value}" if base else ""
    return min(paths) if len(paths) == 1 else ""


def _path_of_call(program: Program, call: cst.Call) -> str:
    """The path of `import_module("a.b")` or `getattr(a, "b")`; empty for other calls."""
    function = function_of(program, call)
    arguments = [argument.value for argument in call.args[:2]]
    if function in IMPORTING:
        path, package = [*(tree.string_of(argument) or "" for argument in arguments), "", ""][:2]
        if function != _RELATIVE and len(call.args) == 1:  # without names, the top package
            return path.partition(".")[0]
        is_relative = function == _RELATIVE and path.startswith(".")
        return _absolute(path, package) if is_relative else path
    if function not in NAMING or len(arguments) < 2:
        return ""
    name = tree.string_of(arguments[1])
    base = path_of(program, arguments[0]) if name else ""
    return f"{base}.{name}" if base else ""


def _absolute(name: str, package: str) -> str:
    """The path of a relative name; empty if it leads out of the package."""
    try:
        return resolve_name(name, package)
    except (ImportError, ValueError):  # before Python 3.9.0, the second
        return ""


def paths_read(program: Program, node: cst.CSTNode) -> frozenset[str]:
    """Every path of an attribute of what such calls return; empty if one is unknown."""
    names = ""
    while isinstance(node, cst.Attribute):
        names = f".{node.attr.value}{names}"
        node = node.value
        paths = [path_of(program, source) for source in program.values.sources_of(node)]
        if paths and all(paths):
            return frozenset(f"{path}{names}" for path in paths)
    return frozenset()


def is_moved(path: str, options: Options, decision: Decision) -> bool:
    """Whether a path of the shim, of a symbol or a module, goes to the final API."""
    legacy, module = legacy_of(path), namespace_of(path)
    if legacy is not None:
        return legacy.is_renamed(options, decision)
    return module is not None and not module.is_final and not options.to_shim
