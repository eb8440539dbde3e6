"""Reports legacy paths in strings that are used as paths or run as code.

`mock.patch("tensorflow.keras.mixed_precision.experimental.Policy")`, `operator.attrgetter`,
`pydoc.locate`, `eval`, defaults of flags: strings are never rewritten, and such a string fails once
the module is gone. A string counts if it is such a path, possibly with more after it, or if a
function runs it, also through a name. Documentation, messages and help texts do not count.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ..findings import report
from ..rule import Example, Rule
from ._strings import completed_paths, paths_in_strings

__all__ = ["RULE"]

_MESSAGE = (
    "this string names {}, and strings are never rewritten: write the new path in it, or import "
    "the name with a statement"
)


def check(program: Program) -> Iterator[Proposal]:
    """Reports each string, unless LS902 does."""
    known = program.cached(completed_paths)
    for string, path in paths_in_strings(program):
        if string not in known:
            yield report(string, "LS912", path.rpartition(".")[2], _MESSAGE.format(path))


RULE = Rule(
    codes={"LS912": "a legacy path in a string"},
    summary="legacy paths in strings, reported",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.9.0",
    check=check,
    examples=(
        Example(
            "not documentation, messages and help texts",
            '''\
            """tf.keras.mixed_precision.experimental.Policy is deprecated."""
            import logging
            import tensorflow as tf

            logging.warning("tf.keras.mixed_precision.experimental.Policy")
            parser.add_argument("--policy", help="tf.keras.mixed_precision.experimental.Policy")
            raise ValueError("tf.keras.mixed_precision.experimental is not there")
            ''',
        ),
        Example(
            "a path to patch",
            """\
            from unittest import mock

            with mock.patch("tensorflow.keras.mixed_precision.experimental.Policy"):
                pass
            """,
            None,
            Safety.MANUAL,
            message_contains="strings are never rewritten",
        ),
        Example(
            "code in a string",
            """\
            import tensorflow as tf

            policy = eval("tf.keras.mixed_precision.experimental.Policy('float32')")
            """,
            None,
            Safety.MANUAL,
        ),
    ),
)
