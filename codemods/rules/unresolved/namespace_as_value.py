"""Reports modules of legacy symbols that are passed on whole, and names that they never had.

In `setup(tf.contrib.mixed_precision)`, the attributes that `setup` reads cannot be tracked. A name
that `tf.contrib.mixed_precision` never had is an error in every TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Safety
from ...resolve.legacy_symbols import is_of_shim, root_of
from ...resolve.program import NamespaceUse, Program
from ...resolve.reaching_values import loads_of
from ...resolve.scopes import Scope, dotted
from ...resolve.version_guards import guarded_places
from ...rewrite.proposal import Proposal
from ..findings import report
from ..rule import Example, Rule

__all__ = ["RULE"]

_WHOLE = (
    "contrib.mixed_precision",
    "keras.mixed_precision.experimental",
    "mixed_precision.experimental",
)
_PASSED = "the module {path} is passed on: its attributes cannot be tracked from here"
_ABSENT = "{path} has no such name, in any TensorFlow"


def check(program: Program) -> Iterator[Proposal]:
    """Reports each module of which everything is legacy, where it is a value."""
    guarded = {place.node for place in program.cached(guarded_places)}
    for use in program.namespaces:
        parent = program.parents.get(use.node)
        is_special = isinstance(parent, cst.Attribute) and parent.attr.value.startswith("__")
        if not _is_whole(program, use.path) and not _is_of_contrib(use.path):
            continue
        if isinstance(parent, cst.Attribute) and not is_special:
            if not _is_whole(program, use.path):
                continue  # a name that is not one of ours
            yield report(parent, "LS909", parent.attr.value, _ABSENT.format(path=use.path))
        elif use.node not in guarded and not _is_alias(program, use):
            yield report(use.node, "LS909", use.path, _PASSED.format(path=use.path))
    for binding in program.imports():
        alias = binding.node
        path = binding.path
        if isinstance(alias, cst.ImportAlias) and isinstance(program.parents[alias], cst.Import):
            path = dotted(alias.name)
        module, _, name = path.rpartition(".")
        if not _is_whole(program, module) or alias in guarded or alias in program.scopes.followed:
            continue
        is_known = program.legacy_of(path) is not None or program.namespace_of(path) is not None
        if not is_known and name != "python":
            yield report(alias, "LS909", name, _ABSENT.format(path=module))


def _is_of_contrib(path: str) -> bool:
    """Whether `path` is a module of `contrib`, of which no TensorFlow 2 has anything."""
    root = root_of(path)
    return root is not None and root.rest.startswith("contrib.")


def _is_whole(program: Program, path: str) -> bool:
    """Whether `path` is a module of which everything is legacy."""
    if is_of_shim(path):
        module = program.namespace_of(path)
        return module is not None and module.name in _WHOLE and not module.is_final
    root = root_of(path)
    if root is None or (root.name == "v1" and root.rest == "mixed_precision.experimental"):
        return False  # TensorFlow still has this one
    return root.rest in _WHOLE


def _is_alias(program: Program, use: NamespaceUse) -> bool:
    """Whether the module is assigned to a name, whose own uses are followed.

    The uses of `self.mp` are not, and a name that nothing here reads has none: it is there for
    other files, or left over.
    """
    value, parent = use.node, program.parents.get(use.node)
    while isinstance(parent, cst.IfExp) and parent.test is not value:
        value, parent = parent, program.parents.get(parent)
    if isinstance(parent, cst.AnnAssign):
        targets: list[cst.BaseExpression] = [parent.target]
    elif isinstance(parent, cst.Assign):
        targets = [one.target for one in parent.targets]
    else:
        return isinstance(parent, cst.NamedExpr)
    return all(_is_read(program, use.scope, target) for target in targets)


def _is_read(program: Program, scope: Scope, target: cst.BaseExpression) -> bool:
    if not isinstance(target, cst.Name):
        return False
    owner = scope.owner(target.value)
    return owner is not None and bool(loads_of(program, owner, target.value))


RULE = Rule(
    codes={"LS909": "a legacy module passed on, or a name that it never had"},
    summary="legacy modules used as values, reported",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.0.0 (tf.contrib removed)",
    check=check,
    examples=(
        Example(
            "not the final module",
            """\
            import tensorflow as tf

            setup(tf.keras.mixed_precision)
            """,
        ),
        Example(
            "not a module with other contents",
            """\
            import tensorflow as tf

            setup(tf.train.experimental, "mixed_precision")
            """,
        ),
        Example(
            "a module that is passed on",
            """\
            import tensorflow as tf

            setup(tf.keras.mixed_precision.experimental)
            """,
            None,
            Safety.MANUAL,
            message_contains="passed on",
        ),
        Example(
            "a module under a name that only other files read",
            """\
            import tensorflow as tf

            mp = tf.keras.mixed_precision.experimental
            """,
            None,
            Safety.MANUAL,
            message_contains="passed on",
        ),
        Example(
            "an import of a name that the module never had",
            """\
            from tensorflow.keras.mixed_precision.experimental import DynamicLossScale
            """,
            None,
            Safety.MANUAL,
            message_contains="no such name",
        ),
        Example(
            "a name that contrib never had",
            """\
            import tensorflow as tf

            manager = tf.contrib.mixed_precision.create_loss_scale_manager(8)
            """,
            None,
            Safety.MANUAL,
            message_contains="no such name",
        ),
    ),
)
