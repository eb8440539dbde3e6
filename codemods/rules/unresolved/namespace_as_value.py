"""Reports modules of legacy symbols that are passed on whole, and names that they never had.

In `setup(tf.contrib.mixed_precision)`, the attributes that `setup` reads cannot be tracked. A name
that `tf.contrib.mixed_precision` never had is an error in every TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Safety
from ...resolve.legacy_symbols import root_of
from ...resolve.program import NamespaceUse, Program
from ...rewrite.proposal import Proposal
from ..findings import report
from ..rule import Example, Rule

__all__ = ["RULE"]

_WHOLE = ("contrib.mixed_precision", "keras.mixed_precision.experimental")
_PASSED = "the module {path} is passed on: its attributes cannot be tracked from here"
_ABSENT = "{path} has no such name, in any TensorFlow"


def check(program: Program) -> Iterator[Proposal]:
    """Reports each module of which everything is legacy, where it is a value."""
    for use in program.namespaces:
        root = root_of(use.path)
        if root is None or root.rest not in _WHOLE:
            continue
        parent = program.parents.get(use.node)
        if isinstance(parent, cst.Attribute):
            yield report(parent, "LS909", parent.attr.value, _ABSENT.format(path=use.path))
        elif not _is_alias(program, use):
            yield report(use.node, "LS909", use.path, _PASSED.format(path=use.path))


def _is_alias(program: Program, use: NamespaceUse) -> bool:
    """Whether the module is assigned to a name, whose own uses are followed."""
    parent = program.parents.get(use.node)
    return isinstance(parent, (cst.Assign, cst.AnnAssign, cst.IfExp))


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
