"""Finds legacy paths in strings that a program uses as paths or runs as code.

`mock.patch("tensorflow.keras.mixed_precision.experimental.Policy")` fails when the module is gone,
and no import shows it. Documentation and messages name such paths, too; they are no uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from ...resolve.legacy_symbols import legacy_of, namespace_of
from ...resolve.program import Program
from ...resolve.tree import string_of
from ...resolve.values import bindings_of
from ...rewrite.rename import is_renamed
from ..names import names_assigned

__all__ = ["completed_paths", "paths_in_strings"]

_PATH = re.compile(r"(?<![\w./])(?:tensorflow|tensorflow_core|tf|keras|tf_keras)(?:\.\w+)+")
_RUN_AS_CODE = re.compile(
    r"exec|eval|compile|call|run|system|popen|timeit|timer|repeat|config|bind|query", re.IGNORECASE
)
"""Functions that may run a string, by a part of their name; a path can be anywhere in it."""
_MESSAGES = re.compile(
    r"critical|debug|echo|error|exception|fatal|fail|format|info|log|print|skip|vlog|warn|write"
)
_TEXT_ARGUMENTS = frozenset(
    ["description", "doc", "epilog", "help", "label", "message", "msg", "reason", "title"]
)
_DISPLAYS = (
    cst.ConcatenatedString, cst.Dict, cst.DictElement, cst.Element, cst.IfExp, cst.List, cst.Set,
    cst.Tuple,
)  # fmt: skip
_BELOW = ("tensorflow.", "tensorflow.keras.", "tensorflow.compat.v1.")
"""Where `operator.attrgetter("contrib.tpu.CrossShardOptimizer")` may start."""
_DEPTH = 4


def paths_in_strings(program: Program) -> Iterator[tuple[cst.SimpleString, str]]:
    """Every string that holds a legacy path, with the path, but for documentation and messages."""
    for string in program.scopes.strings:
        if "mixed_precision" in string.value or "Shard" in string.value or "tpu" in string.value:
            path = _path_in(program, string)
            if path:
                yield string, path


def completed_paths(program: Program) -> dict[cst.SimpleString, str]:
    """The strings that complete a path: `getattr(tf.keras.mixed_precision, "experimental")`."""
    found = {}
    for string in program.scopes.strings:
        argument = program.parents.get(string)
        call = program.parents.get(argument) if isinstance(argument, cst.Arg) else None
        if not isinstance(call, cst.Call) or argument not in call.args[:2]:
            continue
        path = _path_of_call(program, call, _DEPTH)
        for place in [call, *_reads_of(program, call)] if path else ():
            whole = _completed(program, place, path)
            if whole:
                found[string] = whole
                break
    return found


def _completed(program: Program, node: cst.CSTNode, path: str) -> str:
    """The legacy path that attributes after `node` lead to; empty if there is none."""
    while not _is_left(program, path, True):
        parent = program.parents.get(node)
        if not isinstance(parent, cst.Attribute):
            return ""
        node, path = parent, f"{path}.{parent.attr.value}"
    return path


def _reads_of(program: Program, call: cst.Call) -> list[cst.Name]:
    """The reads of a name that is bound to the call alone."""
    names = names_assigned(program, call)
    reads = [name for name in program.scopes.loads if name.value in names]
    return [one for one in reads if [made.value for made in bindings_of(program, one)] == [call]]


def _path_of_call(program: Program, node: cst.CSTNode, depth: int) -> str:
    """What `getattr(tf, "keras")` or `import_module("tensorflow")` means; empty if unknown."""
    if isinstance(node, cst.Attribute):
        base = _path_of_call(program, node.value, depth)
        if base:
            return f"{base}.{node.attr.value}"
    if isinstance(node, (cst.Name, cst.Attribute)):
        paths = program.paths_of(node)
        if len(paths) == 1:
            return min(paths)
        bound = bindings_of(program, node) if isinstance(node, cst.Name) else []
        value = bound[0].value if len(bound) == 1 else None
        return _path_of_call(program, value, depth - 1) if value is not None and depth else ""
    if not isinstance(node, cst.Call) or not node.args:
        return ""
    function = program.code(node.func).rpartition(".")[2]
    texts = [string_of(argument.value) for argument in node.args]
    if function == "getattr" and len(texts) > 1 and texts[1]:
        base = _path_of_call(program, node.args[0].value, depth)
        return f"{base}.{texts[1]}" if base else ""
    return texts[0] or "" if function in ("import_module", "__import__") else ""


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
    if not isinstance(parent, cst.Arg) or not isinstance(call, cst.Call):
        is_run = isinstance(parent, cst.Assign) and _is_run(program, parent)
        return _legacy_in(program, text, is_run)
    function = program.code(call.func).rpartition(".")[2]
    keyword = parent.keyword.value if parent.keyword is not None else ""
    if keyword in _TEXT_ARGUMENTS or _MESSAGES.match(function):
        return ""
    if "attr" in function.lower() and not _PATH.match(text):
        return next((text for below in _BELOW if _is_left(program, below + text, True)), "")
    return _legacy_in(program, text, bool(_RUN_AS_CODE.search(function)))


def _legacy_in(program: Program, text: str, may_run: bool) -> str:
    """The legacy path that a text is or, if it may be run, contains; empty if there is none."""
    for match in _PATH.finditer(text) if may_run else filter(None, [_PATH.match(text)]):
        end = text[match.end() :]
        if not may_run and end and not end.startswith((":", "(", "[")):
            return ""
        parts = match[0].split(".")
        for length in range(2, len(parts) + 1):
            path = ".".join(["tensorflow" if parts[0] == "tf" else parts[0], *parts[1:length]])
            if _is_left(program, path, length == len(parts)):
                return ".".join(parts[:length]) if legacy_of(path) is not None else match[0]
    return ""


def _is_run(program: Program, statement: cst.Assign) -> bool:
    """Whether a name that is bound here is given to `exec` or the like, in whichever scope."""
    names = {each.target.value for each in statement.targets if isinstance(each.target, cst.Name)}
    for name in program.scopes.loads:
        argument = program.parents.get(name) if name.value in names else None
        call = program.parents.get(argument) if isinstance(argument, cst.Arg) else None
        if isinstance(call, cst.Call) and _RUN_AS_CODE.search(program.code(call.func)):
            return True
    return False


def _is_left(program: Program, path: str, is_whole: bool) -> bool:
    """Whether a run rewrites the symbol or module `path` elsewhere, but not in a string."""
    legacy = legacy_of(path)
    if legacy is not None:
        return is_renamed(program, legacy) or legacy.never_existed
    module = namespace_of(path)
    if module is None or module.is_final:
        return False
    return is_whole or "mixed_precision" in module.name
