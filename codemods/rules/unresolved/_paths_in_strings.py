"""Finds legacy paths in strings that a program uses as paths or runs as code.

`mock.patch("tensorflow.keras.mixed_precision.experimental.Policy")` fails when the module is gone,
and no import shows it. Documentation and messages name such paths, too; they are no uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, Optional

import libcst as cst

from ...model import Target
from ...resolve.legacy_symbols import Family, is_final, is_namespace, legacy_of, namespace_of
from ...resolve.program import Program
from ...resolve.tree import string_of

__all__ = ["PathInString", "is_left_behind", "paths_in_strings"]

_PATH = re.compile(r"(?<![\w./])(?:tensorflow|tensorflow_core|tf|keras|tf_keras)(?:\.\w+)+")
_WORD = re.compile(r"\w+(?:\.\w+)+\Z")
_AFTER_PATH = (":", "(", "[")
"""What may follow a path in an argument: `"package.module:name"`, `"package.name()"`."""
_RUN_AS_CODE = frozenset(
    [
        "Popen", "Timer", "bind_parameter", "call", "check_call", "check_output", "compile", "eval",
        "exec", "parse_config", "parse_config_files_and_bindings", "query_parameter", "repeat",
        "run", "system", "timeit",
    ]
)  # fmt: skip
"""Functions that run a string, by their last name; a path can be anywhere in it."""
_MESSAGES = frozenset(
    [
        "critical", "debug", "echo", "error", "exception", "fatal", "fail", "format", "info", "log",
        "print", "skip", "skipIf", "skipTest", "skipUnless", "vlog", "warn", "warning", "write",
    ]
)  # fmt: skip
_TEXT_ARGUMENTS = frozenset(
    ["description", "doc", "epilog", "help", "label", "message", "msg", "reason", "title"]
)
_IMPORTING = re.compile(r"import|load|locate|resolve|patch|spec", re.IGNORECASE)
_READING_ATTRIBUTES = re.compile(r"attr", re.IGNORECASE)
_BELOW = ("tensorflow.", "tensorflow.keras.", "tensorflow.compat.v1.")
"""Where `operator.attrgetter("contrib.tpu.CrossShardOptimizer")` may start."""
_WHOLE = ("contrib.mixed_precision", "keras.mixed_precision.experimental")
_DISPLAYS = (
    cst.ConcatenatedString, cst.Dict, cst.DictElement, cst.Element, cst.IfExp, cst.List, cst.Set,
    cst.Tuple,
)  # fmt: skip


class PathInString(NamedTuple):
    """A string with a legacy path.

    Attributes:
      node: the string.
      name: the last name of the path.
      path: the path as written.
    """

    node: cst.SimpleString
    name: str
    path: str


def paths_in_strings(program: Program) -> Iterator[PathInString]:
    """Every string that holds a legacy path, except documentation and messages."""
    for string in program.scopes.strings:
        if "mixed_precision" in string.value or "Shard" in string.value or "tpu" in string.value:
            path = _path_in(program, string)
            if path:
                yield PathInString(string, path.rpartition(".")[2], path)
    yield from _completed_by_attributes(program)


def is_left_behind(program: Program, path: str) -> bool:
    """Whether a run rewrites the symbol or module `path` elsewhere, but not in a string."""
    legacy = legacy_of(path)
    if legacy is not None and legacy.family is Family.FINAL:
        moves = program.options.for_keras_3 or program.options.target is Target.SHIM
        return bool(legacy.rule) and moves
    return is_final(path) is False


def _path_in(program: Program, string: cst.SimpleString) -> str:
    text = string.raw_value
    if "b" in string.prefix.lower():
        return ""
    node: cst.CSTNode = string
    parent = program.parents.get(node)
    while isinstance(parent, _DISPLAYS):
        node, parent = parent, program.parents.get(parent)
    if isinstance(parent, cst.Expr):
        return ""  # documentation
    call = program.parents.get(parent) if isinstance(parent, cst.Arg) else None
    if isinstance(parent, cst.Assign) and _is_run(program, parent):
        return _in_code(program, text)
    if not isinstance(call, cst.Call) or not isinstance(parent, cst.Arg):
        match = _PATH.match(text)
        is_whole = match is not None and text[match.end() :].partition(".")[0] in ("", ":")
        return _legacy_part(program, match[0]) if match is not None and is_whole else ""
    function = program.code(call.func).rpartition(".")[2]
    keyword = parent.keyword.value if parent.keyword is not None else ""
    if function in _MESSAGES or keyword in _TEXT_ARGUMENTS:
        return ""
    if function in _RUN_AS_CODE:
        return _in_code(program, text)
    match = _PATH.match(text)
    if match is not None and (text[match.end() :].startswith(_AFTER_PATH) or match[0] == text):
        found_here = _legacy_part(program, match[0], bool(_IMPORTING.search(function)))
        if found_here:
            return found_here
    if _READING_ATTRIBUTES.search(function) and _WORD.match(text):
        return next((text for below in _BELOW if _legacy_part(program, below + text)), "")
    return ""


def _in_code(program: Program, text: str) -> str:
    """The first legacy path in a string of code; empty if there is none."""
    found = (_legacy_part(program, match[0], True) for match in _PATH.finditer(text))
    return next((path for path in found if path), "")


def _is_run(program: Program, statement: cst.Assign) -> bool:
    """Whether a name that is bound here is given to `exec` or the like, in whichever scope."""
    names = {each.target.value for each in statement.targets if isinstance(each.target, cst.Name)}
    for name in program.scopes.loads:
        argument = program.parents.get(name) if name.value in names else None
        call = program.parents.get(argument) if isinstance(argument, cst.Arg) else None
        function = program.code(call.func) if isinstance(call, cst.Call) else ""
        if function.rpartition(".")[2] in _RUN_AS_CODE:
            return True
    return False


def _legacy_part(program: Program, written: str, any_module: bool = False) -> str:
    """The legacy symbol or module that a path begins with, as written; empty if there is none.

    Args:
      program: the program.
      written: the path.
      any_module: whether a module that also has other contents counts.
    """
    parts = written.split(".")
    for end in range(2, len(parts) + 1):
        path = ".".join(["tensorflow" if parts[0] == "tf" else parts[0], *parts[1:end]])
        if legacy_of(path) is not None:
            return ".".join(parts[:end]) if is_left_behind(program, path) else ""
        module = namespace_of(path)
        is_whole = module is not None and (module.name in _WHOLE or any_module)
        if end == len(parts) and is_whole and is_left_behind(program, path):
            return written
    return ""


def _completed_by_attributes(program: Program) -> Iterator[PathInString]:
    """Paths that a string begins: `getattr(tf, "keras").mixed_precision.experimental.Policy`."""
    for string in program.scopes.strings:
        argument = program.parents.get(string)
        call = program.parents.get(argument) if isinstance(argument, cst.Arg) else None
        start = _path_of_call(program, call, 6) if isinstance(call, cst.Call) else ""
        if not start or not isinstance(call, cst.Call):
            continue
        if is_namespace(start) or legacy_of(start) is not None:
            continue  # the string itself shows it
        for place in [call, *_reads_of_target(program, call)]:
            path = start
            node: cst.CSTNode = place
            while True:
                parent = program.parents.get(node)
                if not isinstance(parent, cst.Attribute) or parent.value is not node:
                    break
                node, path = parent, f"{path}.{parent.attr.value}"
                if legacy_of(path) is not None:
                    break
            is_module = namespace_of(path) is not None and path != start
            if (legacy_of(path) is not None or is_module) and is_left_behind(program, path):
                yield PathInString(string, path.rpartition(".")[2], path)
                break


def _path_of_call(program: Program, node: cst.CSTNode, depth: int) -> str:
    """What `getattr(tf, "keras")` or `import_module("tensorflow")` means; empty if unknown."""
    if depth == 0:
        return ""
    if isinstance(node, cst.Attribute):
        base = _path_of_call(program, node.value, depth - 1)
        if base:
            return f"{base}.{node.attr.value}"
    if isinstance(node, (cst.Name, cst.Attribute)):
        root: cst.CSTNode = node
        while isinstance(root, cst.Attribute):
            root = root.value
        scope = program.scopes.loads.get(root) if isinstance(root, cst.Name) else None
        paths = program.origins.of_expression(node, scope) if scope is not None else frozenset()
        path = min(paths) if len(paths) == 1 else "<"
        return "" if path.startswith("<") else path
    if not isinstance(node, cst.Call) or not node.args:
        return ""
    function = program.code(node.func).rpartition(".")[2]
    if function == "getattr" and len(node.args) > 1:
        text = _text_of(node.args[1])
        base = _path_of_call(program, node.args[0].value, depth - 1)
        return f"{base}.{text}" if base and text else ""
    if function in ("import_module", "__import__"):
        return _text_of(node.args[0]) or ""
    return ""


def _text_of(argument: cst.Arg) -> Optional[str]:
    return None if argument.star else string_of(argument.value)


def _reads_of_target(program: Program, call: cst.Call) -> list[cst.Name]:
    """The reads of a name that is bound to the call alone."""
    parent = program.parents.get(call)
    if not isinstance(parent, cst.Assign):
        return []
    return [
        name
        for one in parent.targets
        if isinstance(one.target, cst.Name)
        for name, scope in program.scopes.loads.items()
        if name.value == one.target.value
        and [binding.node for binding in scope.bindings_of(name.value)] == [one.target]
    ]
