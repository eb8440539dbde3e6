"""Finds the attributes that lead from one module of TensorFlow to a symbol of another."""

from __future__ import annotations

from typing import Optional

from .legacy_symbols import root_of

__all__ = ["attribute_path"]

_IN_BOTH = frozenset(["keras.mixed_precision.LossScaleOptimizer"])
"""Symbols that are the same object in `compat.v1`."""


def attribute_path(path: str, target: str) -> Optional[str]:
    """The attributes that lead from the module `path` to `target`; None if there are none.

    >>> attribute_path("tensorflow.compat.v1", "tensorflow.compat.v1.tpu.cross_replica_sum")
    'tpu.cross_replica_sum'
    >>> attribute_path("tensorflow.compat.v1", "tensorflow.keras.mixed_precision.Policy")
    'compat.v2.keras.mixed_precision.Policy'
    """
    if target == path:
        return ""
    if target.startswith(path + ".") and path != "tensorflow.compat":
        return target[len(path) + 1 :]
    root = root_of(path)
    if root is None or not target.startswith("tensorflow."):
        return None
    wanted = root_of(target)
    assert wanted is not None
    if root.name in ("keras", "tf_keras"):
        if wanted.name != "tf" or not wanted.rest.startswith("keras."):
            return None
        place = f"keras.{root.rest}" if root.rest else "keras"
        return wanted.rest[len(place) + 1 :] if wanted.rest.startswith(place + ".") else None
    if root.name == wanted.name or (wanted.name == "tf" and root.name == "v2"):
        if not root.rest:
            return wanted.rest
        if wanted.rest.startswith(root.rest + "."):
            return wanted.rest[len(root.rest) + 1 :]
        return None
    in_both = wanted.name == "tf" and root.name == "v1" and wanted.rest in _IN_BOTH
    if in_both and f".{wanted.rest}".startswith(f".{root.rest}." if root.rest else "."):
        return wanted.rest[len(root.rest) + 1 if root.rest else 0 :]
    if root.rest:
        return None
    return f"compat.{wanted.name if wanted.name != 'tf' else 'v2'}.{wanted.rest}"
