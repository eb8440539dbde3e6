"""Renames legacy modules that are used as values, and reports names that they never had.

`mp = tf.keras.mixed_precision.experimental`, with `mp` passed on or read by other files, becomes
the shim's module, which has the same names. The final module becomes the shim's where the final
class goes to the shim. A module that also holds other things, such as `tf.contrib.tpu`, cannot be
renamed as a whole; where it is passed on, that is reported. A name that
`tf.contrib.mixed_precision` never had is an error in every TensorFlow. Private modules also have
names that the shim does not; where one is read, that is reported, as no current TensorFlow has the
module. The import of the module stays as long as it is read there. What is read from a module of
the shim that lacks the name is reported, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Optional

import libcst as cst

from ...resolve import legacy_symbols, tree
from ...resolve.places import NamespaceUse
from ..rule import Decision, Obstacle, Options, Program, Proposal, Rule, When
from ._contrib_module import ContribModule
from ._rebinding import can_rebind

__all__ = ["RULE"]

_ON_SHIM = "tf_lossscale.keras.mixed_precision"
_VALUE = "the module is used as a value, so what is read from it cannot be seen"
_EVALUATED = "a text that is evaluated, or `__all__`, names the module, where no edit reaches it"
_PASSED = "{} is used as a value: import by name what is read from it, then migrate again"
_LAZY = (
    "the `__dict__` of a module of the shim lacks the names that were not read yet: write "
    "{{name: getattr({0}, name) for name in dir({0})}}"
)
_ABSENT = "{} has no such name in any current TensorFlow, and nothing replaces it: remove this use"
_PRIVATE = "{} is private, and no current TensorFlow has it: remove this use"
_ABSENT_FROM_SHIM = "{} has no such name: remove this use"
_LEFT = (
    "this import fails from TensorFlow {} on: remove it, or move it to the branch for older "
    "versions, if only this needs it"
)


_UNREAD = "import only {}: nothing here reads the module, which TensorFlow {} removed"
_CONDITIONAL = (cst.If, cst.Try, cst.TryStar)


def needs(program: Program, options: Options) -> Iterator[Obstacle]:
    """A module that is passed on must keep its names, which the shim's has."""
    for use in program.namespaces:
        is_shims = use.is_on_shim and not use.module.is_final
        is_moved_final = use.is_final and options.for_keras_3
        if not (is_shims or is_moved_final or use.is_whole) or _is_read_here(program, use):
            continue
        stays_right = use.is_final and use.module.is_current  # also without its reads
        is_moved = stays_right or _moves_with_reads(program, use)
        names = tuple(program.mentions.names_bound(use))
        if is_moved and (_is_followed(program, use) or _is_left_for_texts(program, use, names)):
            yield from Obstacle.of_place(use, "LS909", _VALUE, When.IF_READ, names)
        else:
            is_shown = any(map(program.evaluated_texts.show, names))
            yield from Obstacle.of_place(use, "LS909", _EVALUATED if is_shown else _VALUE)
    if options.for_keras_3:
        yield from _needs_of_shims_final(program)


def _needs_of_shims_final(program: Program) -> Iterator[Obstacle]:
    """The needs of the shim's final module, which are those that TensorFlow's had before it.

    It is no place, since nothing in the file has to move.
    """
    uses = _uses_of(program, _ON_SHIM)
    bound = {read for use in uses for read in _reads_of(program, use)}
    for use in uses:
        reads = _reads_of(program, use)
        is_followed = all(
            isinstance(read, cst.Name) and isinstance(program.parents.get(read), cst.Attribute)
            for read in reads
        )
        if use.node in bound:
            continue
        if reads and is_followed:
            names = tuple(program.mentions.names_bound(use))
            yield from Obstacle.of_place(use, "LS909", _VALUE, When.IF_READ, names)
        else:
            yield from Obstacle.of_place(use, "LS909", _VALUE)


def _uses_of(program: Program, path: str) -> list[NamespaceUse]:
    """The imports of a module of the shim, and the chains that mean it."""
    imports = [imported for imported in program.imports() if imported.path == path]
    uses = [NamespaceUse(imported.node, imported.scope, path) for imported in imports]
    for node, _ in program.migrated:
        root = tree.root_name(node)
        if root is not None and program.paths_of(node) == {path}:
            uses.append(NamespaceUse(node, program.scopes.loads[root], path, root))
    return uses


def reports(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Proposes the shim's module for each use as a value; reports what has no twin."""
    for use in program.namespaces:
        parent = program.parents.get(use.node)
        name = parent.attr.value if isinstance(parent, cst.Attribute) else ""
        dictionary = _dictionary(program, use, name)
        if dictionary is not None and use.is_renamed_whole(decision):
            message = _LAZY.format(legacy_symbols.shown_path(use.module.twin))
            yield Proposal.report(dictionary, "LS909", "__dict__", message)
        if program.mentions.absent_name(use):
            yield Proposal.report(parent or use.node, "LS909", name, _missing(use))
        else:
            yield from _as_value(program, use, name, decision)
    yield from _imports(program)
    yield from _absent_from_shim(program)
    yield from ContribModule(program, decision, _moves).proposals()


def _as_value(
    program: Program, use: NamespaceUse, name: str, decision: Decision
) -> Iterator[Proposal]:
    """Renames a module that is used as a value, or reports one that cannot be renamed as a whole.

    `name` is the attribute that is read from it, if one is.
    """
    if use.is_whole or (not name and use.moves_as_final(decision)):
        if not _is_read_here(program, use) and not _stays_bound(program, use, decision):
            yield Proposal.module_to_shim(use, "LS909")
    elif not name and _is_lost(program, use, decision):
        yield Proposal.report(use.node, "LS909", use.path, _PASSED.format(use.path))


def _moves(program: Program, use: NamespaceUse, decision: Decision) -> bool:
    """Whether a module that is used as a value gets a new path."""
    if _is_read_here(program, use) or program.mentions.absent_name(use):
        return False
    return use.is_whole or _stays_bound(program, use, decision)


def _missing(use: NamespaceUse) -> str:
    """Why a name that is read from a module is in no current TensorFlow, or not in the shim."""
    if use.is_on_shim:
        return _ABSENT_FROM_SHIM.format(legacy_symbols.shown_path(use.path))
    return (_ABSENT if use.is_whole else _PRIVATE).format(use.path)


def _absent_from_shim(program: Program) -> Iterator[Proposal]:
    """Reports names that a module of the shim lacks, where only a branch imports that module."""
    for node, name in program.migrated:
        if not isinstance(node, cst.Attribute) or program.is_stored(node):
            continue
        paths = program.paths_of(node)
        on_shim = list(filter(legacy_symbols.is_absent_from_shim, paths))
        if on_shim and all(map(_is_absent, paths)):
            module = legacy_symbols.shown_path(on_shim[0].rpartition(".")[0])
            yield Proposal.report(node, "LS909", name, _ABSENT_FROM_SHIM.format(module))


def _is_absent(path: str) -> bool:
    """Whether no module of the shim has a name, also if its module is not yet the shim's."""
    module, _, name = path.rpartition(".")
    is_known = legacy_symbols.is_of_shim(path) or legacy_symbols.is_whole(module)
    twin = f"{legacy_symbols.twin_of(module)}.{name}"
    return is_known and legacy_symbols.is_absent_from_shim(twin)


def _dictionary(program: Program, use: NamespaceUse, name: str) -> Optional[cst.CSTNode]:
    """`module.__dict__` or `vars(module)` around the use of a module."""
    parent = program.parents.get(use.node)
    if name == "__dict__":
        return parent
    is_vars = _function_of(program, use) == "vars" and parent is not None
    return program.parents.get(parent) if is_vars and parent is not None else None


def _function_of(program: Program, use: NamespaceUse) -> str:
    """The function that a module is passed to."""
    parent = program.parents.get(use.node)
    call = program.parents.get(parent) if isinstance(parent, cst.Arg) else None
    return tree.last_name(call.func) if isinstance(call, cst.Call) else ""


def _is_read_here(program: Program, use: NamespaceUse) -> bool:
    """Whether an attribute of the module is read at the place, or tested: `getattr(mp, "name")`.

    A test of the final module asks for the version of TensorFlow, which the shim's cannot tell.
    """
    parent = program.parents.get(use.node)
    if isinstance(parent, cst.Attribute):
        return True
    function = _function_of(program, use)
    call = program.parents.get(parent) if parent is not None else None
    is_named = isinstance(call, cst.Call) and any(
        isinstance(argument.value, cst.SimpleString) for argument in call.args[1:2]
    )
    if function == "dir":
        return use.module.is_final
    if function == "getattr" and is_named and isinstance(call, cst.Call):
        # With a default, it is a test, too. What the program sets stays on the old module.
        return not use.is_whole or len(call.args) > 2 or bool(program.written)
    return function == "hasattr"


def _stays_bound(program: Program, use: NamespaceUse, decision: Decision) -> bool:
    """Whether the module is only bound to names of which every read is a place of its own.

    What binds them then gets a new path with the reads, or goes.
    """
    is_moved = _is_followed(program, use) and _moves_with_reads(program, use)
    return is_moved and not _is_read_elsewhere(program, use, decision)


def _moves_with_reads(program: Program, use: NamespaceUse) -> bool:
    """Whether the names that are bound to the module can mean another one.

    Where they cannot, each read gets a new path of its own, and the module is left over.
    """
    return all(can_rebind(program, use, name) for name in program.mentions.names_bound(use))


def _is_read_elsewhere(program: Program, use: NamespaceUse, decision: Decision) -> bool:
    is_top = use.scope is program.scopes.module_scope
    return is_top and any(map(decision.may_read, program.mentions.names_bound(use)))


def _is_lost(program: Program, use: NamespaceUse, decision: Decision) -> bool:
    """Whether a module that also holds other things is passed on."""
    if use.is_on_shim or use.module.is_current or use.root is None:
        return False
    return not _is_read_here(program, use) and not _stays_bound(program, use, decision)


def _is_followed(program: Program, use: NamespaceUse) -> bool:
    """Whether the module is bound to names of which every read is a place of its own.

    The reads of `self.mp` are not, nor that of `mp.__dict__`, and a name that nothing here reads is
    there for other files, or left over.
    """
    names = program.mentions.names_bound(use)
    reads = _reads_of(program, use)
    if any(_reads_other(program, read) for read in reads):
        return False
    return bool(names and reads) and program.cached(_known_reads).issuperset(reads)


def _is_left_for_texts(program: Program, use: NamespaceUse, names: Sequence[str]) -> bool:
    """Whether a module is only imported, and texts may read it.

    An earlier run leaves such an import of the shim where all that the file reads has moved.
    """
    may_be_read = any(map(program.evaluated_texts.may_read, names))
    return may_be_read and use.root is None and not _reads_of(program, use)


def _reads_of(program: Program, use: NamespaceUse) -> list[cst.CSTNode]:
    """The reads of a module.

    Where a class imports it, that is any attribute of its name, but for the paths of TensorFlow.
    """
    return list(filter(program.may_be_of_object, program.values.reads_of(use.node)))


def _reads_other(program: Program, read: cst.CSTNode) -> bool:
    """Whether what is read from a module is no legacy symbol, such as its `__dict__`."""
    parent = program.parents.get(read)
    is_module = any(use.node is read for use in program.namespaces)
    return is_module and isinstance(parent, cst.Attribute)


def _known_reads(program: Program) -> frozenset[cst.CSTNode]:
    """The first names of all chains that lead to one symbol or module, and so can be edited."""
    places = [*program.places(), *program.written]
    return frozenset(place.root for place in places if place.root is not None)


def _imports(program: Program) -> Iterator[Proposal]:
    """Reports names that a module never had, and imports of legacy modules for their effect."""
    for binding in program.imports():
        alias = binding.node
        if not isinstance(alias, cst.ImportAlias):
            continue
        is_plain = isinstance(program.parents.get(alias), cst.Import) and alias.asname is None
        path = tree.dotted(alias.name) if is_plain else binding.path
        if is_plain and legacy_symbols.is_whole(path) and not _is_read(program, path):
            yield _unread_import(program, alias, path)
        guidance = _missing_import(path)
        if guidance and not program.guards.depends_on_version(alias):
            yield Proposal.report(alias, "LS909", path.rpartition(".")[2], guidance)


def _missing_import(path: str) -> str:
    """Why an imported name is in no current TensorFlow, or not in the shim; empty if it is."""
    module = path.rpartition(".")[0]
    if legacy_symbols.is_absent_from_shim(path):
        return _ABSENT_FROM_SHIM.format(legacy_symbols.shown_path(module))
    is_known = bool(legacy_symbols.legacy_of(path) or legacy_symbols.namespace_of(path))
    if is_known or not legacy_symbols.is_whole(module):
        return ""
    return _ABSENT.format(module)


def _is_read(program: Program, path: str) -> bool:
    """Whether a legacy place of the file reads a module by its full path."""
    reads = [place.node for place in program.places() if place.root is not None]
    return any(tree.dotted(node).startswith(path) for node in reads)


def _unread_import(program: Program, alias: cst.ImportAlias, path: str) -> Proposal:
    """`import tensorflow.contrib.mixed_precision` that nothing reads imports only its package.

    One that decides about a branch is reported, because it fails on purpose.
    """
    version = "2.0" if path.startswith("tensorflow.contrib") else "2.9"
    is_deciding = any(isinstance(above, _CONDITIONAL) for above in program.ancestors(alias))
    if is_deciding:
        return Proposal.report(alias, "LS909", path, _LEFT.format(version))
    package = path.partition(".")[0]

    def edit(node: cst.CSTNode) -> cst.CSTNode:
        return node.with_changes(name=cst.Name(package))

    message = _UNREAD.format(package, version)
    return Proposal.edited(alias, "LS909", path, message, ((alias, edit),))


RULE = Rule(
    codes={"LS909": "a legacy module used as a value, or a name that it never had"},
    summary="legacy modules used as values",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.0.0 (tf.contrib removed)",
    needs=needs,
    reports=reports,
    cases="""
        # an import of a name that the module never had
        > manual: no such name
          from tensorflow.keras.mixed_precision.experimental import DynamicLossScale

        # a module that is passed on
        - import tensorflow as tf
        + import tf_lossscale as tfls

        - setup(tf.keras.mixed_precision.experimental)
        + setup(tfls.keras.mixed_precision.experimental)
    """,
)
