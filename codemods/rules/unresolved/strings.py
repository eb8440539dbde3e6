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

import functools
import re
from collections.abc import Iterator
from typing import Callable, NamedTuple, Optional

import libcst as cst

from ...facts import SINGLE_FILE
from ...resolve.legacy_symbols import is_of_shim, legacy_of, namespace_of
from ...resolve.tree import last_name, string_of, walk
from ...resolve.vocabulary import MODULE, PATH_WORDS, TPU
from ...rewrite.proposal import is_renamed, shown_path, twin_of
from ..rule import Decision, Named, Options, Program, Proposal, Rule
from ..to_shim import WRITTEN
from .namespace_as_value import keeps_names

__all__ = ["RULE"]

_IsLegacy = Callable[[str, bool], bool]
"""Whether a path is legacy; the second argument says whether it is the whole path of a string."""
_PATH = (
    "this string names {}, and strings are never rewritten: write {} in its place, or import the "
    "name with a statement"
)
_CALLED = (
    "this names {}, and strings are never rewritten: write {} in place of this expression, or "
    "import the name with a statement"
)
_PATCHED = (
    "this names {}, and strings are never rewritten: write {} for the object that has this name"
)
_IN_DATA = "this names {}, and only Python is rewritten: write {}, which needs tf-lossscale"

_FULL = {
    "tf": "tensorflow",
    "contrib": "tensorflow.contrib",
    MODULE: f"tensorflow.keras.{MODULE}",
}
"""How a path can begin in a string, as in `operator.attrgetter("contrib.tpu...")`, in full."""
_PATH_IN_TEXT = re.compile(
    r"(?:(?<!\w)(\w+) +)?(?<![\w./])"
    rf"((?:tensorflow|tensorflow_core|tf|keras|tf_keras|contrib|{MODULE})(?:\.\w+)+)"
    r"(?: +(\w+))?"
)
"""A path, with the words before and after it."""
_DEEPEST = 12
"""Names of a path; a path of a private module has seven."""
_OF_CODE = ("", "as", "assert", "else", "for", "from", "if", "import", "in", "return", "with")
"""Words that stand beside a path in code; others make it a part of a sentence."""
_NAMING = ("delattr", "getattr", "object", "setattr")
"""Functions that name an attribute by a string, such as `mock.patch.object`."""
_IMPORTING = ("import_module", "__import__")
_WORDS = (*sorted(PATH_WORDS), TPU)
"""One of them is in every legacy path that is reported."""
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
    is_legacy = functools.partial(_is_legacy, options, decision)
    for string in program.scopes.strings:
        path = _path_in(program, string, is_legacy)
        code, message = "LS912", _PATH.format(path.written, path.twin) if path else ""
        completed = _completed(program, string, is_legacy)
        if completed:
            path = _Path(completed, completed, 0)
            code, message = "LS902", _message(program, string, path)
        if path is None:
            continue
        if _is_item_stored(program, string) or _is_set(program, string):
            message = WRITTEN
        yield Proposal.report(string, code, path.symbol, message)


def _message(program: Program, string: cst.SimpleString, found: _Path) -> str:
    """What to write for a call that names a part of a legacy path."""
    call = program.parents.get(program.parents[string])
    assert isinstance(call, cst.Call)
    if last_name(call.func) == "object":
        return _PATCHED.format(found.written, found.twin.rpartition(".")[0])
    return _CALLED.format(found.written, found.twin)


def _is_item_stored(program: Program, string: cst.SimpleString) -> bool:
    """Whether a string is the key of `sys.modules["..."] = module`."""
    _, above = program.outside(string, (cst.Index, cst.SubscriptElement))
    return isinstance(above, cst.Subscript) and program.is_stored(above)


def _is_set(program: Program, string: cst.SimpleString) -> bool:
    """Whether a string is the name in `setattr(module, "...", value)`."""
    argument = program.parents.get(string)
    call = program.parents.get(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(call, cst.Call) or argument not in call.args[1:2]:
        return False
    return last_name(call.func) in ("delattr", "setattr")


def in_data(line: str, options: Options) -> Iterator[Named]:
    """The legacy paths in a line of a configuration."""
    for found in _paths_in_text(line, functools.partial(_is_legacy, options, SINGLE_FILE)):
        message = _IN_DATA.format(found.written, found.twin)
        end = found.start + len(found.written)
        yield Named(found.start, end, "LS912", found.symbol, message)


def _completed(program: Program, string: cst.SimpleString, is_legacy: _IsLegacy) -> str:
    """The legacy path that `getattr(tf.keras.mixed_precision, "experimental")` leads to, if any."""
    argument = program.parents.get(string)
    call = program.parents.get(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(call, cst.Call) or last_name(call.func) not in (*_NAMING, *_IMPORTING):
        return ""  # nearly all strings
    modules = [use.node for use in program.namespaces if keeps_names(use)]
    base = _path_of(program, call) if call.args[0].value not in modules else ""
    nodes = [call, *program.values.reads_of(call)] if base else []
    found = (_continued(program, node, base, is_legacy) for node in nodes)
    return next(filter(None, found), "")


def _continued(program: Program, node: cst.CSTNode, path: str, is_legacy: _IsLegacy) -> str:
    """The legacy path that the attributes after `node`, which means `path`, lead to, if any."""
    while not is_legacy(path, True):
        parent = program.parents.get(node)
        if not isinstance(parent, cst.Attribute):
            return ""
        node, path = parent, f"{path}.{parent.attr.value}"
    return path


def _path_of(program: Program, node: cst.CSTNode) -> str:
    """What `getattr(tf, "keras")` or `import_module("tensorflow")` means; empty if unknown."""
    if isinstance(node, cst.Call):
        return _path_of_call(program, node)
    paths = program.paths_of(node)
    if isinstance(node, cst.Attribute) and not paths:
        base = _path_of(program, node.value)
        return f"{base}.{node.attr.value}" if base else ""
    return min(paths) if len(paths) == 1 else ""


def _path_of_call(program: Program, call: cst.Call) -> str:
    """The path of `import_module("a.b")` or `getattr(a, "b")`; empty for other calls."""
    function = last_name(call.func)
    arguments = [argument.value for argument in call.args[:2]]
    if function in _IMPORTING:
        return (string_of(arguments[0]) if arguments else "") or ""
    if function not in _NAMING or len(arguments) < 2:
        return ""
    name = string_of(arguments[1])
    base = _path_of(program, arguments[0]) if name else ""
    return f"{base}.{name}" if base else ""


def _path_in(program: Program, string: cst.SimpleString, is_legacy: _IsLegacy) -> Optional[_Path]:
    """The legacy path in a string, as it is written there; none in documentation and messages.

    The parts of one string are one text: NVIDIA/DeepLearningExamples has a sentence in parts.
    """
    whole, _ = program.outside(string, (cst.ConcatenatedString,))
    if whole is string and not _has_word(string.value):
        return None  # most strings: `walk` takes longer
    parts = [node for node in walk(whole) if isinstance(node, cst.SimpleString)]
    if parts[0] is not string:
        return None  # a concatenation is read at its first part
    text = "".join(part.raw_value for part in parts)
    is_bytes = "b" in string.prefix.lower()
    if is_bytes or not _has_word(text) or _is_for_people(program, whole):
        return None
    return next(_paths_in_text(text, is_legacy), None)


def _has_word(text: str) -> bool:
    """Whether a text may have a legacy path: a test that takes little time."""
    return any(word in text for word in _WORDS)


def _is_for_people(program: Program, text: cst.CSTNode) -> bool:
    """Whether a string is documentation, a message or a help text."""
    _, parent = program.outside(text, _DISPLAYS)
    if isinstance(parent, cst.Expr):
        return True
    call = program.parents.get(parent) if isinstance(parent, cst.Arg) else None
    if not isinstance(parent, cst.Arg) or not isinstance(call, cst.Call):
        return False
    keyword = parent.keyword.value if parent.keyword is not None else ""
    return keyword in _TEXT_ARGUMENTS or bool(_MESSAGES.match(last_name(call.func)))


class _Path(NamedTuple):
    """A legacy path in a text.

    Attributes:
      written: how it is written there.
      path: its full path.
      start: where it begins.
    """

    written: str
    path: str
    start: int

    @property
    def symbol(self) -> str:
        """The last name of the path."""
        return self.written.rpartition(".")[2]

    @property
    def twin(self) -> str:
        """The path in the shim, which begins as the path in the text does."""
        path = twin_of(self.path)
        return shown_path(path) if self.written.startswith("tf.") else path


def _paths_in_text(text: str, is_legacy: _IsLegacy) -> Iterator[_Path]:
    """The legacy paths in a text that do not stand in a sentence."""
    for match in _PATH_IN_TEXT.finditer(text):
        before, written, after = (part or "" for part in match.groups())
        if before not in _OF_CODE or after not in _OF_CODE:
            continue
        found = _first_legacy(written, is_legacy)
        if found is not None:
            yield found._replace(start=match.start(2))


def _first_legacy(written: str, is_legacy: _IsLegacy) -> Optional[_Path]:
    """The first part of a path that is a legacy symbol, or else a module with what follows."""
    first, *names = written.split(".", _DEEPEST)[:_DEEPEST]
    path = _FULL.get(first, first)
    module: Optional[_Path] = None
    for index, name in enumerate(names, 1):
        path = f"{path}.{name}"
        if not is_legacy(path, index == len(names)):
            continue
        if legacy_of(path) is not None:
            return _Path(".".join([first, *names[:index]]), path, 0)
        if module is None:
            module = _Path(".".join([first, *names]), path, 0)
    return module


def _is_legacy(options: Options, decision: Decision, path: str, is_whole: bool) -> bool:
    """Whether a run rewrites the symbol or module `path` elsewhere, but not in a string."""
    legacy = legacy_of(path)
    if legacy is not None:
        return is_renamed(legacy, options, decision) or legacy.never_existed
    module = namespace_of(path)
    if module is None or module.is_final or is_of_shim(path):
        return False
    return is_whole or MODULE in module.name


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
