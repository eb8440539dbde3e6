"""Describes the optimizer in a file of `tf.train.Saver`, by the names of its variables."""

import collections
import re
from typing import Any, Dict, Iterator, List, Optional, Tuple

from tf_lossscale._checkpoint import finding
from tf_lossscale._checkpoint.finding import StoredOptimizer
from tf_lossscale._checkpoint.tensorflow_files import Checkpoint
from tf_lossscale._restore.optimizer_state import SLOT_NAMES
from tf_lossscale._restore.saver_files import SLOTS_OF_V1
from tf_lossscale._restore.slots import classes_with

_V1_SLOT = re.compile(r"(?P<variable>.+)/(?P<optimizer>[A-Z]\w*?)(?:_\d+)?$")
_POWERS = ("beta1_power", "beta2_power")
_COUNTERS = ("global_step", "iter", "iteration")
_MOMENTUM = "Momentum"
_AVERAGES = "ExponentialMovingAverage"
"""The name of averages of weights, which no optimizer makes."""


def described(checkpoint: Checkpoint) -> Iterator[StoredOptimizer]:
    """Yields the optimizers, each with the slots that its name is a part of."""
    found = False
    for optimizer, slots in sorted(_slots_of_v1(checkpoint).items()):
        found = True
        yield _of_v1(checkpoint, optimizer, slots)
    slots = _slots_of_keras(checkpoint)
    if slots or (not found and _is_of_keras(checkpoint)):
        yield _of_keras(checkpoint, slots)


def _slots_of_v1(checkpoint: Checkpoint) -> Dict[str, Dict[str, int]]:
    """Returns the number of slots of each name, by the name of the optimizer: `w/Adam_1`."""
    found: Dict[str, Dict[str, int]] = collections.defaultdict(collections.Counter)
    for key in checkpoint.tensors:
        match = _V1_SLOT.match(key)
        if match is None or match["optimizer"] == _AVERAGES:
            continue
        if match["variable"] in checkpoint.tensors:
            found[match["optimizer"]][key[len(match["variable"]) + 1 :]] += 1
    return found


def _slots_of_keras(checkpoint: Checkpoint) -> Dict[str, int]:
    """Returns the number of slots of each name of Keras: `training/Adam/w/m`, `w/m`."""
    names = (key.rpartition("/") for key in checkpoint.tensors)
    counts = collections.Counter(
        name for variable, _, name in names if name in SLOT_NAMES and variable
    )
    return dict(counts) if _is_of_keras(checkpoint) else {}


def _is_of_keras(checkpoint: Checkpoint) -> bool:
    return finding.has_iterations(checkpoint.tensors)


def _of_v1(checkpoint: Checkpoint, optimizer: str, slots: Dict[str, int]) -> StoredOptimizer:
    is_known = optimizer in SLOTS_OF_V1 or optimizer == _MOMENTUM
    may_have_powers = optimizer == "Adam" or not is_known
    return StoredOptimizer(
        path="",
        written_by=f"an optimizer of tf.train with the name {optimizer}",
        classes=(f"{optimizer}Optimizer",) if is_known else (),
        iterations=_iterations(checkpoint),
        slots=dict(sorted(slots.items())),
        hyperparameters=_powers(checkpoint) if may_have_powers else {},
        keras3=_for_keras_3(checkpoint, optimizer),
    )


def _of_keras(checkpoint: Checkpoint, slots: Dict[str, int]) -> StoredOptimizer:
    """Describes an optimizer that graph-mode Keras saved by names, which tell its class at most."""
    words = {word.rstrip("_0123456789") for key in checkpoint.tensors for word in key.split("/")}
    return StoredOptimizer(
        path="",
        written_by="OptimizerV2 of tf.keras, in graph mode",
        classes=tuple(classes_with({word.lower() for word in words}, slots)),
        iterations=_iterations(checkpoint),
        slots=dict(sorted(slots.items())),
        hyperparameters={},
        keras3=(
            "weights and loss scale, by "
            f"{_call(checkpoint)}, partial=True): slots of Keras are not found by names"
        ),
    )


def _iterations(checkpoint: Checkpoint) -> Optional[int]:
    for counter in _COUNTERS:
        for key in sorted(checkpoint.tensors):
            entry = checkpoint.tensors[key]
            if key.split("/")[-1] == counter and not entry.shape and "int" in entry.dtype:
                return int(checkpoint.read(key))
    return None


def _powers(checkpoint: Checkpoint) -> Dict[str, Any]:
    """Returns the powers of beta, from which `checkpoints.restore` computes the iterations."""
    found: List[Tuple[str, Any]] = []
    for key in sorted(checkpoint.tensors):
        entry = checkpoint.tensors[key]
        if key.split("/")[-1] in _POWERS and not entry.shape and entry.dtype == "float32":
            found.append((key, float(str(checkpoint.read(key)))))
    return dict(found)


def _for_keras_3(checkpoint: Checkpoint, optimizer: str) -> str:
    if optimizer == _MOMENTUM:
        return (
            f"weights, by {_call(checkpoint)}, partial=True) without the optimizer: its slots are "
            "sums of gradients, and those of Keras sums of steps"
        )
    if optimizer not in SLOTS_OF_V1:
        return f"weights, by {_call(checkpoint)}, partial=True): no class has these slots"
    return f"iterations, slots and loss scale, by {_call(checkpoint, optimizer='optimizer, ')})"


def _call(checkpoint: Checkpoint, optimizer: str = "") -> str:
    names = "names={name: variable, ...}"
    return f"tf_lossscale.checkpoints.restore({checkpoint.prefix!r}, model, {optimizer}{names}"
