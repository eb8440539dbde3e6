"""Plans the hyperparameters of an optimizer, and notes what differs and cannot be set."""

from typing import Any, Collection, Dict, Optional, Set, Union

import numpy as np

from tf_lossscale._restore.optimizer_state import OptimizerState
from tf_lossscale._restore.optimizers import ProgramOptimizer
from tf_lossscale._restore.plan import Plan, Planned
from tf_lossscale._restore.saver_files import SaverFile
from tf_lossscale._restore.stored import RestoreError, Tensor
from tf_lossscale._types import Config
from tf_lossscale._versions.keras import KerasKind

_SETTINGS = (
    *("epsilon", "amsgrad", "centered", "nesterov", "weight_decay", "use_ema"),
    *("clipnorm", "global_clipnorm", "clipvalue"),
)
"""What decides a step, and may be no number that can be set: a Boolean, or None."""

_RATES = ("learning_rate", "lr")


def plan_hyperparameters(plan: Plan, program: ProgramOptimizer, state: OptimizerState) -> None:
    """Plans the hyperparameters that the file has, in variables or in a configuration."""
    tensors = {
        name: value
        for name, value in state.hyperparameters.items()
        if isinstance(value, Tensor) and not value.shape
    }
    values = plan.stored.read(list(tensors.values()))
    numbers: Dict[str, Any] = dict(zip(tensors, values))
    for name, value in plan.stored.config.items():
        if _is_number(value):
            numbers.setdefault(name, value)
    found: Set[str] = set()
    for name, value in numbers.items():
        if name in tensors:
            plan.used.add(tensors[name].key)
        if _is_decay_of_addons(plan, program, state, name, float(value)):
            plan.notes.append(
                f"weight_decay is {float(value):g} in the file, of an optimizer that does not "
                "multiply it by the learning rate, as Keras does: the program's own stays"
            )
            found.add(name)
        elif _plan_number(plan, program, tensors.get(name), name, float(value)):
            found.add(name)
    _note_rate(plan, program, numbers)
    _note_settings(plan, program, {**plan.stored.config, **numbers}, found)


def _plan_number(
    plan: Plan, program: ProgramOptimizer, tensor: Optional[Tensor], name: str, value: float
) -> bool:
    """Plans one hyperparameter; returns whether the program has a place for it."""
    try:
        assignment = program.hyperparameter(name, value)
    except RestoreError as error:
        plan.problems.append(str(error))
        return True
    if assignment is None:
        return False
    note = program.note_of_number(assignment, name, value)
    if note is not None:
        plan.notes.append(note)
    variable, read, assign = assignment
    key = tensor.key if tensor is not None else f"configuration/{name}"
    plan.planned.append(Planned(None, key, variable, name, assign, read, value))
    return True


def _is_decay_of_addons(
    plan: Plan, program: ProgramOptimizer, state: OptimizerState, name: str, value: float
) -> bool:
    """Returns whether it is the weight decay of tensorflow-addons, which Keras 2 had no class for.

    Its classes subtract `weight_decay * variable` in a step, Keras's the same times the learning
    rate.
    """
    if name != "weight_decay" or value == 0 or program.kind is KerasKind.LEGACY:
        return False
    is_new = "use_ema" in plan.stored.config  # of an .h5 file, whose layout does not show it
    return state.layout.is_of_optimizer_v2 and not is_new


def _note_rate(plan: Plan, program: ProgramOptimizer, numbers: Dict[str, Any]) -> None:
    """Notes where one of file and program has a learning rate, and the other one a schedule."""
    rate = next((float(numbers[name]) for name in _RATES if name in numbers), None)
    decay = float(numbers.get("decay", 0))
    if program.has_schedule:
        if rate is not None:
            shown = f"{rate:g}" if not decay else f"{rate:g} with a decay of {decay:g}"
            plan.notes.append(
                f"the learning rate is {shown} in the file, and a schedule in the program, which "
                "counts"
            )
    elif rate is None and not isinstance(plan.stored, SaverFile):
        plan.notes.append(
            "the file has no learning rate, as of an optimizer with a schedule; that of the "
            f"program stays, {program.learning_rate:g}"
        )


def _note_settings(
    plan: Plan, program: ProgramOptimizer, stored: Config, planned: Collection[str]
) -> None:
    """Notes settings of a configuration that the program has not, or has in another way."""
    if not plan.stored.config:
        return
    own = program.inner.get_config()
    for name in _SETTINGS:
        if name in planned or _is_same(own.get(name), stored.get(name)):
            continue
        plan.notes.append(
            f"{name} is {own.get(name)} in the program, and {stored.get(name)} in the file"
        )
    before = _schedule(stored.get("learning_rate"))
    now = _schedule(own.get("learning_rate"))
    if before and now and before != now:
        plan.notes.append("the schedule of the learning rate is another one than in the file")


def _schedule(value: object) -> Config:
    """Returns the class and the settings of a schedule in a configuration, but for its name."""
    if not isinstance(value, dict) or not isinstance(value.get("config"), dict):
        return {}
    settings = {name: setting for name, setting in value["config"].items() if name != "name"}
    return {"class": value.get("class_name"), **settings}


def _is_same(one: Any, other: Any) -> bool:
    if _is_number(one) and _is_number(other):
        return bool(np.float32(one) == np.float32(other))
    return (one or None) == (other or None)


def _is_number(value: Union[object, float]) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
