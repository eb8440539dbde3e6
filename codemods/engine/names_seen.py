"""Why a file with a legacy name is left unchanged: the names in it, and what each one means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Optional

import libcst as cst

from ..resolve.legacy_symbols import DISTINCTIVE, Family, root_of
from ..resolve.program import Program
from ..resolve.qualified_names import CALL, PARAMETER, is_path

__all__ = ["why_nothing"]

_NAMES = re.compile(
    rb"\b(?:%s)\b"
    % b"|".join(
        name.encode()
        for name in sorted([*DISTINCTIVE, "get_scaled_loss", "get_unscaled_gradients"])
    )
)
_MODULE = "mixed_precision"
_SHOWN = 4
_NOTHING = "no symbol to migrate in it"


def why_nothing(program: Program, sources: Sequence[bytes]) -> str:
    """Why there is nothing to migrate, for `-v`: the legacy names that occur, and their origins."""
    names = sorted({name.decode() for source in sources for name in _NAMES.findall(source)})
    if not names and any(_MODULE.encode() in source for source in sources):
        names = [_MODULE]
    found = [f"`{name}` {_why(program, name)}" for name in names]
    more = len(found) - _SHOWN
    shown = [*found[:_SHOWN], *([f"and {more} more"] if more > 0 else [])]
    return f"{_NOTHING}: {'; '.join(shown)}" if shown else _NOTHING


def _why(program: Program, name: str) -> str:
    named = [one.legacy for one in program.references if one.legacy.name == name]
    if any(legacy.is_on_shim for legacy in named):
        return "is the shim's already"
    if any(_is_done(legacy.family) for legacy in named):
        return "is the final API already"
    if any(symbol == name for _, symbol in program.migrated):
        return "is the shim's already"
    for binding in program.imports():
        if name in binding.path.split("."):
            return _of_path(binding.path.rpartition("." + name)[0] or binding.path)
    for attribute in program.attributes(name):
        return _of_attribute(program, attribute)
    for node, scope in program.scopes.loads.items():
        if node.value == name:
            for meaning in sorted(program.origins.of_name(name, scope)):
                if is_path(meaning):
                    return _of_path(meaning)
            break
    if any(name in scope.bindings for scope in program.all_scopes()):
        return "is defined in this file"
    return "is only in a string, a comment or an argument"


def _is_done(family: Family) -> bool:
    return family in (Family.FINAL, Family.V1, Family.CROSS_SHARD)


def _of_path(path: str) -> str:
    if root_of(path) is not None:
        return f"comes from `{path}`, where no name needs a rewrite"
    return f"comes from `{path}`, which is not TensorFlow"


def _of_attribute(program: Program, attribute: cst.Attribute) -> str:
    root: Optional[cst.CSTNode] = attribute.value
    while isinstance(root, (cst.Attribute, cst.Call, cst.Subscript)):
        root = root.func if isinstance(root, cst.Call) else root.value
    scope = program.scopes.loads.get(root) if isinstance(root, cst.Name) else None
    if scope is None or not isinstance(root, cst.Name):
        return "is an attribute of an object whose type is not known"
    meanings = program.origins.of_name(root.value, scope)
    for meaning in sorted(meanings):
        if is_path(meaning):
            return _of_path(meaning)
    known = not meanings & {CALL, PARAMETER}
    origin = "made in this file" if known else "whose type is not known"
    return f"is an attribute of `{root.value}`, an object {origin}"
