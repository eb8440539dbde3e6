"""Converts serialized Keras 2 optimizers to the form of Keras 3."""

from typing import Any, Dict

__all__ = ["for_keras_3"]

# Arguments that Keras 3 does not have. `decay` is converted; the others do not change the results.
_DROPPED = ("decay", "is_legacy_optimizer", "jit_compile")


def for_keras_3(serialized: Dict[str, Any]) -> Dict[str, Any]:
    """Returns the optimizer in the form of Keras 3. One that has this form is returned as it is.

    Args:
      serialized: a dict `{"class_name": ..., "config": {...}, ...}`.
    """
    arguments = dict(serialized.get("config") or {})
    if "lr" in arguments:
        arguments["learning_rate"] = arguments.pop("lr")
    decay = arguments.get("decay")
    if decay:
        arguments["learning_rate"] = _decaying(arguments["learning_rate"], decay)
    kept = {name: value for name, value in arguments.items() if name not in _DROPPED}
    class_name = serialized["class_name"].rpartition(">")[2]  # "Custom>Adam" in 2.11
    return {**serialized, "class_name": class_name, "config": kept}


def _decaying(learning_rate: float, decay: float) -> Dict[str, Any]:
    # Keras 2's `decay` argument computes learning_rate / (1 + decay * iterations).
    return {
        "module": "keras.optimizers.schedules",
        "class_name": "InverseTimeDecay",
        "config": {
            "initial_learning_rate": learning_rate,
            "decay_steps": 1,
            "decay_rate": decay,
            "staircase": False,
            "name": "InverseTimeDecay",
        },
        "registered_name": None,
    }
