"""Compares `migrate --to shim`, then `migrate`, with `migrate` alone.

Both ways must end at the same program. Import lines may differ, and so may what is left: on
TensorFlow's legacy symbol after one step, on the shim's twin of it after two.
"""

import ast
import collections
from typing import NamedTuple

from execution.leftovers import imported, path_of
from tf_lossscale_codemods.model import FileResult, Options, Target
from tf_lossscale_codemods.resolve.legacy_symbols import (
    is_of_shim,
    legacy_of,
    namespace_of,
    root_of,
)
from verbs import transform_once as transform

ATTRIBUTES = ("body", "orelse", "finalbody", "handlers")


class Ways(NamedTuple):
    """One program after one step, after the first of two, and after both."""

    direct: FileResult
    shim: FileResult
    second: FileResult


def both_ways(source: bytes, options: Options) -> Ways:
    shim = transform(source, Options(target=Target.SHIM))
    return Ways(transform(source, options), shim, transform(shim.source, options))


def left(result: FileResult) -> collections.Counter:
    """What a person must do: codes, symbols and outcomes."""
    return collections.Counter(
        (finding.code, finding.symbol, finding.outcome.value)
        for finding in result.findings
        if finding.is_left
    )


def meaning(source: bytes) -> str:
    """The program with its imported names replaced by what they mean, and without imports."""
    tree = ast.parse(source)
    names = imported(tree)
    tree = _Meaning(names).visit(tree)
    for node in ast.walk(tree):
        for attribute in ATTRIBUTES:
            body = getattr(node, attribute, None)
            if isinstance(body, list):
                kept = [statement for statement in body if not isinstance(statement, ast.Pass)]
                setattr(node, attribute, kept)
    return ast.dump(tree)


def names_to_migrate_on_shim(source: bytes) -> list[str]:
    """The names of the shim in a program that have another final path."""
    tree = ast.parse(source)
    names = imported(tree)
    paths = [path_of(node, names) or "" for node in ast.walk(tree)]
    found = {path: legacy_of(path) for path in paths if is_of_shim(path)}
    return [path for path, legacy in found.items() if legacy and not legacy.is_final_path]


class _Meaning(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]):
        self.names = names

    def visit_Import(self, node):
        return ast.Pass()

    def visit_ImportFrom(self, node):
        return ast.Pass()

    def visit_Name(self, node):
        path = path_of(node, self.names)
        return ast.Constant(_object(path)) if path else node

    def visit_Attribute(self, node):
        path = path_of(node, self.names)
        return ast.Constant(_object(path)) if path else self.generic_visit(node)


def _object(path: str) -> str:
    """The path of what `path` means; the same for a legacy symbol and its twin in the shim."""
    legacy = legacy_of(path)
    if legacy is not None and not legacy.is_final_path:
        return f"legacy {legacy.family.value}.{legacy.name}"
    module = namespace_of(path)
    if module is not None and not module.is_final:
        return f"legacy module {module.name}"
    root = root_of(path)
    if root is None:
        return path
    if legacy is not None and legacy.root == "v1" and path.startswith("tensorflow.compat.v1.keras"):
        return f"tensorflow.{root.rest}"  # the same object in both
    where = {"v1": "tensorflow.compat.v1", "keras": "tensorflow.keras", "tf_keras": "tf_keras"}
    return f"{where.get(root.name, 'tensorflow')}.{root.rest}"
