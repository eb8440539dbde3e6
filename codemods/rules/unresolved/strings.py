"""Reports strings and configurations that name a legacy path; neither is ever rewritten.

`mock.patch("tensorflow.keras.mixed_precision.experimental.Policy")`, `operator.attrgetter`,
`pydoc.locate`, `eval`, defaults of flags: a legacy path in a string fails once the module is gone.
Documentation, messages and help texts do not count, and neither does a path in a sentence. One that
`getattr`, `patch.object` or `import_module` names a part of counts (LS902).

The same path is reported in a configuration: a `.json`, `.yaml`, `.yml`, `.toml`, `.ini`, `.cfg`,
`.gin` or `.txt` file of up to 1 MB. Lists of packages, changelogs, readmes and binary files are not
read. In files with `#` comments, `# lossscale: ignore[LS912]` on the line silences it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Optional

import libcst as cst

from ...resolve import tree
from ..rule import Decision, Named, Options, Program, Proposal, Rule
from ..to_shim import WRITTEN
from . import _called_paths as called, _legacy_paths as legacy

__all__ = ["RULE"]

_PATH = (
    "this string names {}, and strings are never rewritten: write {} in its place, or import the "
    "name with a statement"
)
_CALLED = (
    "this names {}, and strings are never rewritten: write {} in place of this expression, or "
    "import the name with a statement"
)
_LEADING = (
    "{} is read from what this returns, and strings are never rewritten: write {} where it is "
    "read, or import the name with a statement"
)
_OF_ATTRIBUTES = (
    "this string names {}, and strings are never rewritten: import {} with a statement, and use it "
    "in place of what the string leads to"
)
_PATCHED = (
    "this names {}, and strings are never rewritten: write {} for the object that has this name"
)
_IN_DATA = "this names {}, and only Python is rewritten: write {}, which needs tf-lossscale"

_GETTING = "attrgetter"
"""Takes attributes of its argument: `attrgetter("keras.mixed_precision")(tf)`."""
_ATTRIBUTES = ("contrib", "mixed_precision")
"""What such attributes can begin with, and no path of a module."""
_MESSAGES = re.compile(
    r"critical|debug|echo|error|exception|fatal|fail|format|info|log|print|skip|vlog|warn|write"
    r"|\w*(?:Error|Exception|Warning)$"
)
_TEXT_ARGUMENTS = frozenset(
    ["description", "doc", "epilog", "help", "label", "message", "msg", "reason", "title"]
)
_DISPLAYS = (
    cst.Dict, cst.DictElement, cst.Element, cst.IfExp, cst.List, cst.Set, cst.Tuple,
)  # fmt: skip


def reports(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Reports each such string."""
    legacy_paths = legacy.LegacyPaths(options, decision)
    for string in program.scopes.strings:
        path = _path_in(program, string, legacy_paths)
        code, message = "LS912", _message_of_path(program, string, path) if path else ""
        completed = _completed(program, string, legacy_paths)
        if completed:
            path = legacy.LegacyPath(completed, completed)
            code, message = "LS902", _message(program, string, path)
        if path is None:
            continue
        if _is_item_stored(program, string) or _is_set(program, string):
            message = WRITTEN
        yield Proposal.report(string, code, path.symbol, message)


def _message(program: Program, string: cst.SimpleString, found: legacy.LegacyPath) -> str:
    """What to write for a call that names a part of a legacy path."""
    call = _call_with(program, string)
    assert call is not None
    if called.is_of_shim(found.path):
        return called.message_of_shim(found.path)
    if tree.last_name(call.func) == "object":
        return _PATCHED.format(found.written, found.twin.rpartition(".")[0])
    is_whole = called.path_of(program, call) == found.path
    return (_CALLED if is_whole else _LEADING).format(found.written, found.twin)


def _message_of_path(program: Program, string: cst.SimpleString, found: legacy.LegacyPath) -> str:
    """What to write for a string that names a legacy path, or attributes of TensorFlow."""
    call = _call_with(program, string)
    is_got = call is not None and called.function_of(program, call) == _GETTING
    is_relative = is_got or found.written.partition(".")[0] in _ATTRIBUTES
    return (_OF_ATTRIBUTES if is_relative else _PATH).format(found.written, found.twin)


def _call_with(program: Program, string: cst.SimpleString) -> Optional[cst.Call]:
    """The call that a string is an argument of, if it is one."""
    argument = program.parents.get(string)
    call = program.parents.get(argument) if isinstance(argument, cst.Arg) else None
    return call if isinstance(call, cst.Call) else None


def _is_item_stored(program: Program, string: cst.SimpleString) -> bool:
    """Whether a string is the key of `sys.modules["..."] = module`."""
    _, above = program.outside(string, (cst.Index, cst.SubscriptElement))
    return isinstance(above, cst.Subscript) and program.is_stored(above)


def _is_set(program: Program, string: cst.SimpleString) -> bool:
    """Whether a string is the name in `setattr(module, "...", value)`."""
    call = _call_with(program, string)
    if call is None or not any(argument.value is string for argument in call.args[1:2]):
        return False
    return tree.last_name(call.func) in ("delattr", "setattr")


def in_data(line: str, options: Options) -> Iterator[Named]:
    """The legacy paths in a line of a configuration."""
    for found in legacy.LegacyPaths(options).in_text(line):
        message = _IN_DATA.format(found.written, found.twin)
        end = found.start + len(found.written)
        yield Named(found.start, end, "LS912", found.symbol, message)


def _completed(program: Program, string: cst.SimpleString, legacy_paths: legacy.LegacyPaths) -> str:
    """The legacy path that `getattr(tf.keras.mixed_precision, "experimental")` leads to, if any."""
    call = _call_with(program, string)
    if call is None:
        return ""  # nearly all strings
    function = called.function_of(program, call)
    if function not in (*called.NAMING, *called.IMPORTING):
        return ""
    if function in called.IMPORTING and string is not call.args[0].value:
        return ""  # the package of a relative name
    modules = [use.node for use in program.namespaces if use.keeps_names]
    base = called.path_of(program, call) if call.args[0].value not in modules else ""
    nodes = [call, *program.values.reads_of(call)] if base else []
    found = (_continued(program, node, base, legacy_paths) for node in nodes)
    return next(filter(None, found), "")


def _continued(
    program: Program, node: cst.CSTNode, path: str, legacy_paths: legacy.LegacyPaths
) -> str:
    """The legacy path that the attributes after `node`, which means `path`, lead to, if any."""
    while not legacy_paths.has(path):
        parent = program.parents.get(node)
        if not isinstance(parent, cst.Attribute):
            return ""
        node, path = parent, f"{path}.{parent.attr.value}"
    return path


def _path_in(
    program: Program, string: cst.SimpleString, legacy_paths: legacy.LegacyPaths
) -> Optional[legacy.LegacyPath]:
    """The legacy path in a string, as it is written there; none in documentation and messages.

    The parts of one string are one text: NVIDIA/DeepLearningExamples has a sentence in parts.
    """
    whole, _ = program.outside(string, (cst.ConcatenatedString,))
    if whole is string and not legacy.LegacyPaths.may_be_in(string.value):
        return None  # most strings: `walk` takes longer
    parts = [node for node in tree.walk(whole) if isinstance(node, cst.SimpleString)]
    if parts[0] is not string:
        return None  # a concatenation is read at its first part
    text = "".join(part.raw_value for part in parts)
    is_bytes = "b" in string.prefix.lower()
    if is_bytes or not legacy.LegacyPaths.may_be_in(text) or _is_for_people(program, whole):
        return None
    return next(legacy_paths.in_text(text), None)


def _is_for_people(program: Program, text: cst.CSTNode) -> bool:
    """Whether a string is documentation, a message or a help text."""
    _, parent = program.outside(text, _DISPLAYS)
    if isinstance(parent, cst.Expr):
        return True
    call = program.parents.get(parent) if isinstance(parent, cst.Arg) else None
    if not isinstance(parent, cst.Arg) or not isinstance(call, cst.Call):
        return False
    keyword = parent.keyword.value if parent.keyword is not None else ""
    return keyword in _TEXT_ARGUMENTS or bool(_MESSAGES.match(tree.last_name(call.func)))


RULE = Rule(
    codes={"LS912": "a legacy path in a string"},
    summary="paths that strings and configurations name, reported",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.9.0",
    reports=reports,
    in_data=in_data,
    cases='''
        # not documentation, messages and help texts
          """tf.keras.mixed_precision.experimental.Policy is deprecated."""
          import logging
          import tensorflow as tf

          logging.warning("tf.keras.mixed_precision.experimental.Policy")
          parser.add_argument("--policy", help="tf.keras.mixed_precision.experimental.Policy")
          raise ValueError("tf.keras.mixed_precision.experimental is not there")

        # a path to patch
        > manual: strings are never rewritten
          from unittest import mock

          with mock.patch("tensorflow.keras.mixed_precision.experimental.Policy"):
              pass

        # a path that is loaded
        > manual
          import pydoc

          wrap = pydoc.locate("tensorflow.keras.mixed_precision.experimental.LossScaleOptimizer")
    ''',
)
