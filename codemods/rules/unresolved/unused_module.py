"""Rewrites imports of legacy modules that nothing reads.

`import tensorflow.keras.mixed_precision.experimental as mp` fails on TensorFlow 2.9 and later, even
if nothing uses `mp`. The import is rewritten like one that is used. In a `try`, it can be a test
whether the module exists, and is left.

Evidence for safe: no file of the run reads the name from this one any more after its own rewrite,
or the name is bound in a function, or begins with `_`. If a file still reads it, the line is left
until that file is resolved. The edit is unsafe if a file may read it (a notebook, `getattr`, a
module name in a string), or if the command is given this file alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

from ...model import Safety, Target
from ...resolve.legacy_symbols import Namespace
from ...resolve.program import Program
from ...resolve.unused_modules import UnusedModule, unused_modules
from ...rewrite.proposal import Proposal
from ...rewrite.rename import FINAL, SHIM, V1
from ..exported_names import reason_to_keep
from ..findings import manual, safe, unsafe
from ..rule import Example, Rule

__all__ = ["RULE"]

_EXPERIMENTAL = {
    "keras.mixed_precision.experimental": FINAL,
    "mixed_precision.experimental": f"{V1}.mixed_precision",
}
_MISSING = "the module is missing in newer TensorFlow"
_UNREAD = "nothing reads this import"
_FAILS = f"{_UNREAD}, and {_MISSING}"
_TEST = "this import may test whether TensorFlow has the module: test for what the program uses"
_CAVEAT = "other files may read it from here"


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the module that uses of the import would be rewritten to."""
    for one in program.cached(unused_modules):
        path = _path(program, one.module)
        if path is not None:
            made = _of_shared_name(program, one) if one.is_read else _proposal(one, path)
            yield made._replace(group=None)


def _of_shared_name(program: Program, one: UnusedModule) -> Proposal:
    """The finding for a name that this file and others read; this file's uses are rewritten."""
    why = reason_to_keep(program, one.name)
    made = safe(one.reference, why if one.reference.legacy.is_on_shim else f"{why}; {_MISSING}")
    is_left = program.neighbors.kept[one.name].is_certain
    return made._replace(outcome=Safety.MANUAL if is_left else Safety.UNSAFE)


def _proposal(one: UnusedModule, path: str) -> Proposal:
    on_shim = one.reference.legacy.is_on_shim
    why = _UNREAD if on_shim else _FAILS
    if one.is_test and not on_shim:
        return manual(one.reference, _TEST)
    if one.is_shared or one.is_test:
        return manual(one.reference, f"{why}: remove it")
    if one.is_dotted:
        message = f"{why}: only `import {SHIM if on_shim else 'tensorflow'}` is left"
        return safe(one.reference, message, removed=(one.reference,))
    if one.is_exported:
        return unsafe(one.reference, f"{why}; {_CAVEAT}", path=path)
    shown = path.replace(f"{SHIM}.", "tfls.").replace("tensorflow.", "tf.")
    return safe(one.reference, f"{why}: use {shown}", path=path)


def _path(program: Program, module: Namespace) -> Optional[str]:
    """The module to import instead; None for modules that have other contents."""
    if module.name == "contrib.mixed_precision":
        return f"{SHIM}.{module.name}"
    if module.name not in _EXPERIMENTAL:
        return None
    to_shim = program.options.target is Target.SHIM
    return f"{SHIM}.{module.name}" if to_shim else _EXPERIMENTAL[module.name]


RULE = Rule(
    codes={"LS911": "an import of a legacy module that nothing reads"},
    summary="unused imports of legacy modules",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.9.0",
    check=check,
    examples=(
        Example(
            "not the final module",
            """\
            from tensorflow.keras import mixed_precision
            import tensorflow.compat.v1.mixed_precision as mp
            """,
        ),
        Example(
            "not a module with other contents",
            """\
            import tensorflow.train.experimental as experimental  # mixed_precision
            """,
        ),
        Example(
            "not another library's module",
            """\
            from paddle.fluid.contrib import mixed_precision
            """,
        ),
        Example(
            "not where it may be a test",
            """\
            try:
                import tensorflow.contrib.mixed_precision
                HAS_CONTRIB = True
            except ImportError:
                HAS_CONTRIB = False
            """,
            None,
            Safety.MANUAL,
            message_contains="may test",
        ),
        Example(
            "not a re-export",
            """\
            from tensorflow.keras.mixed_precision import experimental as mixed_precision

            __all__ = ["mixed_precision"]
            """,
            None,
            Safety.UNSAFE,
            message_contains="other files",
        ),
        Example(
            "a module under another name",
            """\
            import tensorflow as tf
            import tensorflow.keras.mixed_precision.experimental as mp

            print(tf.__version__)
            """,
            """\
            import tensorflow as tf
            import tensorflow.keras.mixed_precision as mp

            print(tf.__version__)
            """,
            Safety.SAFE,
        ),
        Example(
            "a module of contrib",
            """\
            from tensorflow.contrib import mixed_precision
            """,
            """\
            from tf_lossscale.contrib import mixed_precision
            """,
            Safety.SAFE,
        ),
        Example(
            "a dotted import",
            """\
            import tensorflow.keras.mixed_precision.experimental

            print(tensorflow.__version__)
            """,
            """\
            import tensorflow

            print(tensorflow.__version__)
            """,
            Safety.SAFE,
        ),
        Example(
            "to the shim",
            """\
            from tensorflow.mixed_precision import experimental
            """,
            """\
            from tf_lossscale.mixed_precision import experimental
            """,
            Safety.SAFE,
            target=Target.SHIM,
        ),
    ),
)
