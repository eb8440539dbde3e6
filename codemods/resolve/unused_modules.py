"""Finds imports and names of legacy modules that nothing in the program reads.

Nobody notices them until TensorFlow no longer has the module, and the import fails. A name that
other files of the run read, so that it stays, counts as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from .legacy_symbols import ON_SHIM, Legacy, Namespace, is_of_shim
from .program import Program, Reference
from .reaching_values import loads_of
from .scopes import Binding, dotted
from .version_guards import guarded_places

__all__ = ["UnusedModule", "unused_modules"]


class UnusedModule(NamedTuple):
    """One import, or one assignment such as `mp = tf.keras.mixed_precision.experimental`.

    Attributes:
      reference: the import alias or the value; its symbol stands for the module.
      module: what is imported.
      name: the name that is bound.
      is_dotted: whether it is `import a.b.c`, which binds `a`.
      is_exported: whether it is marked as a re-export (`import x as x`, `__all__`).
      is_test: whether it is in a `try` that tests whether the module exists.
      is_shared: whether the name is also bound to something else, or is of another Keras.
      is_read: whether the program reads the name; then other files read it, too.
    """

    reference: Reference
    module: Namespace
    name: str
    is_dotted: bool
    is_exported: bool
    is_test: bool
    is_shared: bool
    is_read: bool


def unused_modules(program: Program) -> list[UnusedModule]:
    """Every such place."""
    return [*_imports(program), *_assignments(program)]


def _imports(program: Program) -> Iterator[UnusedModule]:
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
        module = program.namespace_of(path)
        if module is None or module.is_final:
            continue
        is_read = _is_read(program, binding, path)
        if is_read and (is_dotted or program.kept_name(binding.scope, binding.name) is None):
            continue
        others = [one for one in binding.scope.bindings[binding.name] if one is not binding]
        yield UnusedModule(
            Reference(alias, binding.scope, _legacy(module, path)),
            module,
            binding.name,
            is_dotted,
            is_exported=not is_dotted and (_is_same(alias) or binding.name in strings),
            is_test=any(isinstance(one, cst.Try) for one in program.ancestors(alias)),
            is_shared=(bool(others) and not is_dotted) or path.startswith("tf_keras."),
            is_read=is_read,
        )


def _assignments(program: Program) -> Iterator[UnusedModule]:
    guarded = {place.node for place in program.cached(guarded_places)}
    strings = {string.raw_value for string in program.scopes.strings}
    for use in program.namespaces:
        statement, module = program.parents.get(use.node), program.namespace_of(use.path)
        if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
            continue
        target = statement.targets[0].target
        if module is None or module.is_final or use.node in guarded or use.scope.kind == "class":
            continue
        if not use.path.endswith(f".{module.name}"):
            continue  # a private module, whose name can be that of a function as well
        if not isinstance(target, cst.Name):
            continue
        owner = use.scope.owner(target.value)
        if owner is None or (owner, target.value) in program.guarded_names:
            continue
        if program.kept_name(owner, target.value) is None:
            continue
        if not loads_of(program, owner, target.value):
            continue  # LS909 reports a name that nothing reads
        yield UnusedModule(
            Reference(use.node, use.scope, _legacy(module, use.path), use.root),
            module,
            target.value,
            is_dotted=False,
            is_exported=target.value in strings,
            is_test=any(isinstance(one, cst.Try) for one in program.ancestors(use.node)),
            is_shared=len(owner.bindings[target.value]) > 1 or use.path.startswith("tf_keras."),
            is_read=True,
        )


def _legacy(module: Namespace, path: str) -> Legacy:
    """A symbol that stands for the module."""
    root = ON_SHIM if is_of_shim(path) else "tf"
    return Legacy(module.name.rpartition(".")[2], "LS911", module.family, module.name, root)


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
