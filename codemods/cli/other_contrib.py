"""Finds the files that use `tf.contrib` for what no rule migrates, by searching their bytes."""

from __future__ import annotations

import re

__all__ = ["uses_other_contrib"]

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
