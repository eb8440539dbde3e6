"""Writes tests of the TensorFlow version with the numbers of the version."""

from __future__ import annotations

from typing import Optional

import libcst as cst

from ...resolve.program import Program
from ...resolve.releases import is_version, value_on_newest
from ...resolve.tree import walk

__all__ = ["version_test"]

_IMPORT = ", with `from packaging import version`"
_OF_TENSORFLOW = "version.parse(tf.__version__)"
_IN_WORDS = f"a comparison of {_OF_TENSORFLOW} where this is made"


def version_test(program: Program, test: cst.CSTNode) -> str:
    """The line to write for a comparison of versions, or for `version.startswith(...)`."""
    return (_of_call(program, test) or _of_comparison(program, test) or _IN_WORDS) + _IMPORT


def _of_call(program: Program, test: cst.CSTNode) -> str:
    if not isinstance(test, cst.Call) or not isinstance(test.func, cst.Attribute):
        return ""
    if test.func.attr.value != "startswith" or len(test.args) != 1:
        return ""  # a flag of another file
    version = _version_in(program, test.func.value)
    chosen = _choice(program, test.args[0].value)
    return f"{version}.release[:2] {chosen}" if version and chosen else ""


def _of_comparison(program: Program, test: cst.CSTNode) -> str:
    """The comparison of numbers that means what a comparison of text was to mean, if known."""
    if not isinstance(test, cst.Comparison):
        return ""
    target = test.comparisons[0]
    operator = program.code(target.operator).strip()
    if operator in ("==", "!=", "in", "not in"):
        version = _version_in(program, test.left)
        chosen = _choice(program, target.comparator, is_not=operator in ("!=", "not in"))
        return f"{version}.release[:2] {chosen}" if version and chosen else ""
    sides = [test.left, *(part.comparator for part in test.comparisons)]
    is_minor = any(_is_minor(program, side) for side in sides)
    to_word = _minor if is_minor else _operand
    words = [to_word(program, side) for side in sides]
    if not all(words):
        return ""
    text = words[0]
    for part, word in zip(test.comparisons, words[1:]):
        text += f" {program.code(part.operator).strip()} {word}"
    return text


def _is_minor(program: Program, node: cst.BaseExpression) -> bool:
    """Whether a side is the minor version, or its first digit, as text or as a number."""
    if isinstance(node, (cst.SimpleString, cst.Integer)):
        return False
    value = value_on_newest(program, node, {})
    return value is not None and isinstance(value[0], (int, str)) and "." not in str(value[0])


def _minor(program: Program, node: cst.BaseExpression) -> str:
    """A side of a comparison of minor versions."""
    numbers = _numbers(program, node)
    if isinstance(node, (cst.SimpleString, cst.Integer)):
        return str(numbers[-1]) if numbers else ""
    return (_version_in(program, node) or _OF_TENSORFLOW) + ".minor"


def _operand(program: Program, node: cst.BaseExpression) -> str:
    """A side of a comparison as a version object; empty if it is not known."""
    version = _version_in(program, node)
    if version:
        return version
    numbers = _numbers(program, node)
    text = ".".join(map(str, numbers or ()))
    return f'version.parse("{text}")' if text else ""


def _version_in(program: Program, node: cst.BaseExpression) -> str:
    """The version of TensorFlow that an expression is made of, as a version object."""
    for part in walk(node):
        if isinstance(part, (cst.Name, cst.Attribute)) and is_version(program, part):
            return f"version.parse({program.code(part)})"
    value = value_on_newest(program, node, {}) if isinstance(node, cst.Name) else None
    is_version_text = value is not None and isinstance(value[0], str) and "." in value[0]
    return f"version.parse({program.code(node)})" if is_version_text else ""


def _numbers(program: Program, node: cst.BaseExpression) -> Optional[tuple[int, ...]]:
    """The numbers of a version that the source shows: as text, as a number, or in a sequence."""
    value = value_on_newest(program, node, {})
    parts = value[0] if value is not None else None
    if isinstance(parts, float):
        parts = str(parts)
    if isinstance(parts, str):
        parts = tuple(parts.split("."))
    if isinstance(parts, int):
        parts = (2, parts)
    if not isinstance(parts, tuple) or not all(str(part).isdigit() for part in parts):
        return None
    return tuple(int(str(part)) for part in parts)


def _choice(program: Program, node: cst.BaseExpression, is_not: bool = False) -> str:
    """`== (2, 1)` or `in ((2, 1), (2, 2))` for what the first two numbers are compared with."""
    elements = getattr(node, "elements", None)
    nodes = [node] if elements is None else [element.value for element in elements]
    numbers = [_numbers(program, node) for node in nodes]
    pairs = [str(release[:2]) for release in numbers if release is not None and len(release) > 1]
    if len(pairs) < len(nodes):
        return ""
    if len(pairs) == 1:
        return f"{'!=' if is_not else '=='} {pairs[0]}"
    return f"{'not in' if is_not else 'in'} ({', '.join(pairs)})"
