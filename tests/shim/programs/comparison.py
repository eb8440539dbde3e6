"""What two runs of one program must have in common."""

import json
import math
from typing import Any, Dict, List, Sequence

WEIGHTS = ("weights",)
"""What may differ in the last bits between TensorFlows. Every decision (scale, counters, skipped
steps, whether wrapped) is compared exactly."""

TOLERANCES = {
    # Kernels of another TensorFlow contract `a * b + c` or not, and order their terms otherwise.
    "graph": 2e-6,
    # Keras up to 2.10 keeps Adam's beta_2 in float32, so its `1 - beta_2` is 1.3e-5 too small.
    "keras": 2e-5,
}

CONFIG = {"dynamic": True, "initial_scale": None, "dynamic_growth_steps": None}
"""What every version's configuration says alike, with the value of one that is not written; the
inner optimizer's is that version's own."""


def differences(
    expected: Dict[str, Any], actual: Dict[str, Any], tolerance: float, ignores: Sequence[str]
) -> List[str]:
    """Where `actual` is not what it must be; empty when all is well.

    Args:
      expected: what the original program printed.
      actual: what the migrated one printed.
      tolerance: how far weights may be apart; 0 where both ran on one TensorFlow: then everything
        must be equal to the bit.
      ignores: keys that may differ.
    """
    wrong = []
    for key in sorted(set(expected) | set(actual)):
        mine, other = expected.get(key), actual.get(key)
        if key in ignores:
            continue
        if key == "config" and tolerance and isinstance(other, dict):
            mine, other = _said(mine), _said(other)
        if key in WEIGHTS and tolerance:
            equal = other is not None and _close(mine, other, tolerance)
        else:
            equal = json.dumps(mine, sort_keys=True) == json.dumps(other, sort_keys=True)
        if not equal:
            wrong.append(f"{key}: {mine} became {other}")
    return wrong


def _said(config: Dict[str, Any]) -> Dict[str, Any]:
    """What a configuration says of the loss scale, in the names of the final class."""
    if "loss_scale" in config:  # the form of TensorFlow up to 2.3
        scale = config["loss_scale"]["config"]
        is_dynamic = config["loss_scale"]["class_name"] == "DynamicLossScale"
        config = {
            "dynamic": is_dynamic,
            "initial_scale": scale["initial_loss_scale" if is_dynamic else "loss_scale_value"],
            "dynamic_growth_steps": scale.get("increment_period"),
        }
    return {name: config.get(name, CONFIG[name]) for name in CONFIG}


def close(one: Any, other: Any, tolerance: float = 1e-4) -> bool:
    """Whether two results of programs of several files are the same, except for rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return _close(one, other, tolerance)
    return bool(one == other)


def _close(one: Any, other: Any, tolerance: float) -> bool:
    if isinstance(one, list):
        return len(one) == len(other) and all(
            _close(mine, theirs, tolerance) for mine, theirs in zip(one, other)
        )
    if not math.isfinite(one) or not math.isfinite(other):
        # Where a fixed scale let an overflow through, inf and NaN are what is left of the weight;
        # which of the two differs from one TensorFlow to the next.
        return math.isfinite(one) == math.isfinite(other)
    return one == other or abs(one - other) <= tolerance * max(1.0, abs(one), abs(other))
