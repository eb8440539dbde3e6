"""The slots of Keras's optimizers, by their classes: their names in files of each Keras."""

from typing import Collection, Dict, List, Tuple

_MOMENTS: Dict[str, Tuple[str, ...]] = {
    "m": ("_momentums",),
    "v": ("_velocities",),
    "vhat": ("_velocity_hats",),
}

SLOTS: Dict[str, Dict[str, Tuple[str, ...]]] = {
    "Adam": _MOMENTS,
    "AdamW": _MOMENTS,
    "Nadam": {"m": ("_momentums",), "v": ("_velocities",)},
    "Lamb": {"m": ("_momentums",), "v": ("_velocities",)},
    "Adamax": {"m": ("_m",), "v": ("_u", "u")},
    "SGD": {"momentum": ("momentums", "_momentums", "m")},
    "RMSprop": {
        "rms": ("_velocities", "velocity"),
        "momentum": ("_momentums",),
        "mg": ("_average_gradients", "average_gradient"),
    },
    "Adagrad": {"accumulator": ("_accumulators",)},
    "Adadelta": {
        "accum_grad": ("_accumulated_grads", "accumulated_grad"),
        "accum_var": ("_accumulated_delta_vars", "accumulated_delta_var"),
    },
    "Ftrl": {"accumulator": ("_accumulators",), "linear": ("_linears",)},
    "Lion": {"m": ("_momentums", "momentums")},
}
"""The slots of each class: their names in `OptimizerV2`, the lists in later optimizers, and the
names in HDF5 files of the latter."""

KNOWN_CLASSES = {name.lower() for name in SLOTS}


def classes_with(words: Collection[str], slots: Collection[str]) -> List[str]:
    """Returns Keras's classes that can have saved an optimizer.

    Args:
      words: lower-case words in the names of its variables, among which can be its class.
      slots: the names of its slots or lists, as any Keras calls them.

    Returns:
      The class that is named, else those that have all the slots; none if there are no slots.
    """
    named = [name for name in SLOTS if name.lower() in words]
    if named or not slots:
        return named
    return [name for name, known in SLOTS.items() if all(_has_slot(known, slot) for slot in slots)]


def _has_slot(known: Dict[str, Tuple[str, ...]], slot: str) -> bool:
    return slot in known or any(slot in lists for lists in known.values())
