"""Which legacy names a program still uses: a look that shares nothing with the rules."""

from __future__ import annotations

import ast
import re

LEGACY = re.compile(
    r"tensorflow_core\..*|tensorflow\.(contrib|python)(\..*)?"
    r"|tensorflow\.(compat\.v[12]\.)?keras\.mixed_precision\.experimental(\..*)?"
    r"|tensorflow\.(compat\.v2\.)?(mixed_precision|train)\.experimental(\..*)?"
    r"|tensorflow\.tpu\.(CrossShardOptimizer|cross_replica_sum)"
)


def leftovers(source: str) -> list[str]:
    """Dotted legacy paths that the program imports or reads, resolved through its own bindings."""
    tree = ast.parse(source)
    bound = bindings_of(tree)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            found.append(path_of(node, bound) or "")
    return sorted({path for path in [*bound.values(), *found] if LEGACY.fullmatch(path)})


def bindings_of(tree: ast.AST) -> dict[str, str]:
    """The names that imports bind, and assignments to what they lead to, with their paths."""
    bound = imported(tree)
    for _ in range(2):  # an alias of an alias
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                path = path_of(node.value, bound)
                if path and path.startswith(("tensorflow", "tf_lossscale")):
                    bound[node.targets[0].id] = path
    return bound


def imported(tree: ast.AST) -> dict[str, str]:
    """The names that the imports of a program bind, with their paths."""
    bound = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                bound[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                bound[alias.asname or alias.name] = f"{module}.{alias.name}"
    return bound


def path_of(node: ast.AST, bound: dict[str, str]) -> str | None:
    """The dotted path that a name or attribute means, if it begins with a name that is bound."""
    if isinstance(node, ast.Name):
        return bound.get(node.id)
    if isinstance(node, ast.Attribute):
        base = path_of(node.value, bound)
        return f"{base}.{node.attr}" if base else None
    return None
