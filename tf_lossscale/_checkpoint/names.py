"""Finds loss scales in a checkpoint whose keys are variable names (`tf.train.Saver`)."""

import re
from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

from tf_lossscale._checkpoint.layouts import CONTRIB, KERAS_NAMES, UNKNOWN, V1, Layout

__all__ = ["COUNTERS", "Entry", "Found", "find", "parts_of"]

# The integer type of each class's counters; it distinguishes `good_steps` of different classes.
COUNTERS = {"contrib": "int32", "v1": "int64", "keras": "int64"}

_NAMES = (set(CONTRIB.roles) | set(V1.roles)) & {
    "loss_scale",
    "current_loss_scale",
    "good_steps",
    "bad_steps",
}
_KEY = re.compile(r"(?P<scope>(?:.*/)?)(?P<name>[a-z_]+?)(?P<number>(?:_\d+)?)$")


class Entry(NamedTuple):
    """The index entry of a tensor."""

    dtype: str
    shape: Tuple[int, ...]


class Found(NamedTuple):
    """A loss scale: its layout, and the keys of its variables by the last part of their names."""

    layout: Layout
    keys: Dict[str, str]


def parts_of(key: str) -> Tuple[str, str, str]:
    """Splits a key into scope, name, and the number that TensorFlow appends to a name in use."""
    match = _KEY.match(key)
    if match is None:
        return "", key, ""
    return match.group("scope"), match.group("name"), match.group("number")


def find(tensors: Mapping[str, Entry]) -> List[Found]:
    """Returns the loss scales in a checkpoint.

    Args:
      tensors: the index entries, by key.
    """
    groups: Dict[Tuple[str, str], Dict[str, str]] = {}
    for key, entry in sorted(tensors.items()):
        scope, name, number = parts_of(key)
        if name in _NAMES and not entry.shape:
            groups.setdefault((scope, number), {})[name] = key
    found: List[Found] = []
    for keys in groups.values():
        found.extend(_in_group(keys, tensors))
    return found


def _in_group(keys: Dict[str, str], tensors: Mapping[str, Entry]) -> List[Found]:
    found = []
    if _has(keys, tensors, "contrib", "loss_scale", ("good_steps", "bad_steps")):
        found.append(Found(CONTRIB, {name: keys[name] for name in CONTRIB.roles}))
    if _has(keys, tensors, "v1", "current_loss_scale", ("good_steps",)):
        layout = KERAS_NAMES if _has_keras_iterations(tensors) else V1
        found.append(Found(layout, {name: keys[name] for name in V1.roles}))
    taken = {key for each in found for key in each.keys.values()}
    for name, key in keys.items():
        if name in UNKNOWN.roles and key not in taken and _is_float(tensors[key]):
            found.append(Found(UNKNOWN, {name: key}))
    return found


def _has(
    keys: Dict[str, str],
    tensors: Mapping[str, Entry],
    family: str,
    scale: str,
    counters: Sequence[str],
) -> bool:
    return (
        scale in keys
        and _is_float(tensors[keys[scale]])
        and all(name in keys and tensors[keys[name]].dtype == COUNTERS[family] for name in counters)
    )


def _is_float(entry: Entry) -> bool:
    return entry.dtype in ("float16", "float32", "float64", "bfloat16")


def _has_keras_iterations(tensors: Mapping[str, Entry]) -> bool:
    """Whether the file holds a Keras optimizer, as v1 optimizers do not count iterations."""
    return any(
        key.split("/")[-1] in ("iter", "iteration") and entry == Entry("int64", ())
        for key, entry in tensors.items()
    )
