"""Finds imports of legacy modules that nothing in the program reads.

Nobody notices them until TensorFlow no longer has the module, and the import fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from .legacy_symbols import Legacy, Namespace, namespace_of, root_of
from .program import Program, Reference
from .reaching_values import loads_of
from .scopes import Binding, dotted
from .version_guards import guarded_places

__all__ = ["UnusedModule", "unused_modules"]


class UnusedModule(NamedTuple):
    """One import.

    Attributes:
      reference: the import alias; its symbol stands for the module.
      module: what is imported.
      is_dotted: whether it is `import a.b.c`, which binds `a`.
      is_exported: whether it is marked as a re-export (`import x as x`, `__all__`).
      is_test: whether it is in a `try` that tests whether the module exists.
      is_shared: whether the name is also bound to something else, or is of another Keras.
    """

    reference: Reference
    module: Namespace
    is_dotted: bool
    is_exported: bool
    is_test: bool
    is_shared: bool


def unused_modules(program: Program) -> list[UnusedModule]:
    """Every import of a module of legacy symbols whose name nothing reads."""
    return list(_found(program))


def _found(program: Program) -> Iterator[UnusedModule]:
    guarded = {place.node for place in program.cached(guarded_places)}
    strings = {string.raw_value for string in program.scopes.strings}
    for binding in program.imports():
        alias = binding.node
        if not isinstance(alias, cst.ImportAlias) or alias in guarded:
            continue
        is_dotted = (
            isinstance(program.parents.get(alias), cst.Import)
            and isinstance(alias.name, cst.Attribute)
            and alias.asname is None
        )
        if alias in program.scopes.followed:
            continue  # another file of the run imports the module
        path = dotted(alias.name) if is_dotted else binding.path
        root, module = root_of(path), namespace_of(path)
        if root is None or module is None or module.is_final or _is_read(program, binding, path):
            continue
        legacy = Legacy(module.name.rpartition(".")[2], "LS911", module.family, module.name, "tf")
        others = [one for one in binding.scope.bindings[binding.name] if one is not binding]
        yield UnusedModule(
            Reference(alias, binding.scope, legacy),
            module,
            is_dotted,
            is_exported=not is_dotted and (_is_same(alias) or binding.name in strings),
            is_test=any(isinstance(one, cst.Try) for one in program.ancestors(alias)),
            is_shared=(bool(others) and not is_dotted) or root.name == "tf_keras",
        )


def _is_same(alias: cst.ImportAlias) -> bool:
    """Whether it is `x as x`."""
    local = alias.asname.name if alias.asname is not None else None
    return isinstance(local, cst.Name) and dotted(alias.name).rpartition(".")[2] == local.value


def _is_read(program: Program, binding: Binding, path: str) -> bool:
    """Whether any chain of names begins with the import; `path` is what it imports."""
    loads = loads_of(program, binding.scope, binding.name)
    if binding.path == path:
        return bool(loads)
    return any(f"{_chain(program, name)}.".startswith(f"{path}.") for name in loads)


def _chain(program: Program, name: cst.Name) -> str:
    node: cst.CSTNode = name
    parent = program.parents.get(node)
    while isinstance(parent, cst.Attribute) and parent.value is node:
        node, parent = parent, program.parents.get(parent)
    return dotted(node)
