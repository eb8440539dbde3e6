"""Finds the files that need no parse, by searching their bytes for legacy names.

In repositories that use these classes, 3.8% of the files contain one of the words below. Searching
a file takes microseconds; parsing takes up to a tenth of a second.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from ..resolve.legacy_symbols import DISTINCTIVE

__all__ = ["WORDS", "may_concern", "may_concern_in", "may_refer"]

WORDS: tuple[bytes, ...] = (
    b"mixed_precision",
    b"LossScale",
    b"CrossShardOptimizer",
    b"cross_replica_sum",
    b"get_scaled_loss",
    b"get_unscaled_gradients",
    b"loss_scale:0",
    b".loss_scale()",
    b"set_policy",
    b"global_policy",
    b"layer_policy",
    b".Policy(",
    b"mixed_float16",
    b"mixed_bfloat16",
    b"lossscale:",
)
"""A file in which a rule can find something contains one of these words (checked by a test).

Those of policies are for names that another file of the run re-exports (`compat.set_policy`). The
last one is for suppression comments, which are reported if they silence nothing.
"""


def may_concern(source: bytes) -> bool:
    """Whether any rule could apply to `source`."""
    return any(word in source for word in WORDS)


_PART = 1024 * 1024
_OVERLAP = max(map(len, WORDS)) - 1


def may_concern_in(file: BinaryIO) -> bool:
    """Like `may_concern`, for a file that is too large to be held in memory."""
    end = b""
    while True:
        part = file.read(_PART)
        if may_concern(end + part):
            return True
        if not part:
            return False
        end = part[-_OVERLAP:]


_TENSORFLOW = re.compile(rb"tensorflow|keras|\btf|\bfrom\s+\.", re.IGNORECASE)
_LEGACY = re.compile(
    rb"\b(?:LossScale|get_scaled_loss|get_unscaled_gradients|"
    + "|".join(sorted(DISTINCTIVE)).encode()
    + rb")\b|\b(?:keras|contrib|train|v1|v2)\s*\.\s*mixed_precision\b|\bmixed_precision\s*\."
    rb"|\bimport\b[^\n]*\bmixed_precision\b"
)


def may_refer(source: bytes) -> bool:
    """Whether a source that cannot be parsed may use a legacy name of TensorFlow.

    That is, it mentions TensorFlow or imports from its own package, and it mentions a legacy name
    or module. In doubt, it does: comments and strings count, too.
    """
    return bool(_TENSORFLOW.search(source) and _LEGACY.search(source))
