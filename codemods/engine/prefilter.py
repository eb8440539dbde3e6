"""Finds the files that need no parse, by searching their bytes for legacy names.

In repositories that use these classes, 3.9% of the files contain one of the words below. Searching
a file takes microseconds; parsing takes up to a tenth of a second.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from ..resolve.legacy_symbols import DISTINCTIVE

__all__ = ["may_concern", "may_concern_in", "may_refer", "uses_other_contrib"]

_WHOLE = (b"mixed_precision", b"CrossShardOptimizer", b"cross_replica_sum")
"""Words that mean nothing as a part of a longer name, such as `use_mixed_precision`."""

_PARTS = (
    b"mixed_precision_graph_rewrite",
    b"LossScale",
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
"""Words that can be parts of a name.

A file in which a rule can find something contains one of these or those above (checked by a test).
Those of policies are for names that another file of the run re-exports (`compat.set_policy`). The
last one is for suppression comments, which are reported if they silence nothing.
"""

_WHOLE_NAMES = re.compile(
    rb"(?:(?<![\w\x80-\xff])|(?<=\\[a-z])|(?<=\\u[\da-fA-F]{4}))(?:%s)(?![\w\x80-\xff])"
    % b"|".join(_WHOLE)
)
"""The whole words, also after an escape in a string: `"\\nmixed_precision"` in a notebook."""


def may_concern(source: bytes) -> bool:
    """Whether any rule could apply to `source`."""
    if not (
        b"cale" in source
        or b"mixed_" in source
        or b"olicy" in source
        or b"CrossShardOptimizer" in source
        or b"cross_replica_sum" in source
    ):  # nearly all files; each word above contains one of these (checked by a test)
        return False
    if any(word in source for word in _PARTS):
        return True
    return any(word in source for word in _WHOLE) and bool(_WHOLE_NAMES.search(source))


_PART = 1024 * 1024
_OVERLAP = max(map(len, (*_WHOLE, *_PARTS))) - 1


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


_CONTRIB = b".contrib"
_OTHER = re.compile(
    rb"^[^#\n]*(?:(?<![\w.])|(?<=\\n))(?:tf|tensorflow)\.contrib\b"
    rb"(?![\w.]*(?:\.|\s+import\s+\(?\s*)"
    rb"(?:mixed_precision|CrossShardOptimizer|cross_replica_sum|tpu_optimizer|tpu_ops)\b)",
    re.MULTILINE,
)
"""Matches a use outside comments. Below `.contrib`, the names that rules migrate do not count."""


def uses_other_contrib(source: bytes) -> bool:
    """Whether a source uses `tf.contrib` for something else than the symbols of the rules.

    Strings count, too. Aliases such as `from tensorflow import contrib` do not.
    """
    return _CONTRIB in source and bool(_OTHER.search(source))
