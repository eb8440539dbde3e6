"""Reads files of `tf.train.Saver` of graphs of TensorFlow 1, which have names and no objects.

The program says which variable each name belongs to. Slots have the name of their variable, and of
the optimizer: `w/Adam` and `w/Adam_1`. The file becomes a `Stored` with the objects that a
checkpoint of Keras 2 would have.
"""

import collections.abc
import itertools
import numbers
import re
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple, Union

import numpy as np

from tf_lossscale._checkpoint import finding
from tf_lossscale._checkpoint.tensorflow_files import Checkpoint
from tf_lossscale._restore.matching import Match
from tf_lossscale._restore.optimizers import ProgramOptimizer
from tf_lossscale._restore.plan import Plan, Planned, differs
from tf_lossscale._restore.program import is_variable, name_of, shape_of, weights_of
from tf_lossscale._restore.report import Entry
from tf_lossscale._restore.stored import Node, RestoreError, Slot, Stored, Tensor, add_node
from tf_lossscale._types import Array, CheckpointReader, Model, Variable

Names = Mapping[str, Union[str, Variable]]
"""Variables of the program, or their paths in the model, by their names in the file."""

SLOTS_OF_V1: Dict[str, Tuple[Tuple[str, ...], ...]] = {
    "Adam": (("m", "v"),),
    "RMSProp": (("rms", "momentum"), ("rms", "mg", "momentum")),
    "Adagrad": (("accumulator",),),
    "Adadelta": (("accum_grad", "accum_var"),),
    "Ftrl": (("accumulator", "linear"),),
}
"""The slots by the name of an optimizer of TensorFlow 1, in the order of their numbers. RMSProp has
three with `centered=True`."""

_EPSILONS = {"Adam": 1e-8, "RMSProp": 1e-10, "Adadelta": 1e-8, "Adagrad": 0.0}
"""What classes of TensorFlow 1 add by default to the size of gradients; Adagrad has no option."""
_WITH_EPSILON = ("Adam", "RMSProp", "Adadelta")
_UNLESS_PASSED = " unless the old program passed another one"

_GLOBAL_STEP = "global_step"
_FIRST_POWER = re.compile(r"(?P<scopes>(?:.*/)?)beta1_power(?P<number>(?:_\d+)?)$")
_MOST_STEPS = 200_000
"""After so many steps, 0.999 to their power is 0 or stays the same."""

_SMALLEST_NORMAL = 2.0**-126


class SaverFile(Stored):
    """A file of names; the nodes of its variables have the variables of the program."""

    def __init__(self, prefix: str, nodes: List[Node], read: Any) -> None:
        super().__init__(prefix, "file of tf.train.Saver", nodes, read)
        self.variables: Dict[int, Union[str, Variable]] = {}
        self.powers: List[_Powers] = []
        self.global_step: Optional[Tensor] = None
        self.classes: Set[str] = set()  # of the slots of its variables
        self.momentum = ""


class _Slots(NamedTuple):
    """The slots of a variable: the class of the optimizer, and each one's name and key."""

    optimizer: str
    keys: Dict[str, str]


class _Powers(NamedTuple):
    """The powers of beta of an Adam."""

    beta_1: Tensor
    beta_2: Tensor


_StepsOfPowers = Dict[_Powers, Optional[int]]
"""The steps that powers show; None for so many that both powers are 0."""


def read(checkpoint: Checkpoint, names: Optional[Names], reader: CheckpointReader) -> SaverFile:
    """Reads the names in a file, and no tensor yet, but for counters."""
    prefix = checkpoint.prefix
    if names is None:
        # A variable of the model, rather than a counter, which is found by its name.
        shapes = {key: shape for key, (_, shape) in sorted(checkpoint.tensors.items())}
        first = max(shapes, key=lambda key: len(shapes[key]), default="w")
        raise RestoreError(
            f"{prefix}: is a file of tf.train.Saver, which has names of variables and no objects. "
            f"Pass names={{{first!r}: variable, ...}}, the variables of the program by their names "
            "in the file"
        )
    if not isinstance(names, collections.abc.Mapping):
        raise RestoreError(
            f"names= is a {type(names).__name__}. Pass a dictionary: the variables of the program "
            "by their names in the file"
        )
    missing = [name for name in names if name not in checkpoint.tensors]
    if missing:
        raise RestoreError(f"{prefix}: names: the file has no {missing[0]!r}")
    stored = SaverFile(prefix, [Node()], reader)
    tensors = {key: Tensor(key, shape, dtype) for key, (dtype, shape) in checkpoint.tensors.items()}
    left = dict(tensors)
    for name, variable in names.items():
        stored.variables[add_node(stored.nodes, 0, name, left.pop(name))] = variable
    _add_optimizer(stored, left, checkpoint)
    stored.others = [left[key] for key in sorted(left)]
    return stored


def _add_optimizer(stored: SaverFile, left: Dict[str, Tensor], checkpoint: Checkpoint) -> None:
    """Adds the optimizer of a file, and takes what belongs to it from `left`."""
    slots = {number: _slots_of(_key(stored, number), left) for number in stored.variables}
    scale = _scale_in(checkpoint, left)
    sums = (f"{_key(stored, number)}/Momentum" for number in stored.variables)
    stored.momentum = next((key for key in sums if key in left), "")
    stored.classes = {found.optimizer for found in slots.values() if found is not None}
    counters = _counters_in(stored, left)
    if not (any(slots.values()) or scale or counters or stored.momentum):
        return
    optimizer = add_node(stored.nodes, 0, "optimizer")
    # By it, an optimizer of Keras 2 is known; the value follows from the counters.
    add_node(stored.nodes, optimizer, "iter")
    for number, found in slots.items():
        if found is not None:
            _add_slots(stored, optimizer, number, found, left)
    if scale:
        owner = add_node(stored.nodes, optimizer, "loss_scale")
        for role, key in scale.items():
            add_node(stored.nodes, owner, role, left.pop(key))
        _drop_zero(checkpoint, "bad_steps", left)
    for tensor in counters:
        _add_node_alone(stored, left.pop(tensor.key))


def _counters_in(stored: SaverFile, left: Mapping[str, Tensor]) -> List[Tensor]:
    """Finds what shows how many steps were made."""
    if stored.classes <= {"Adam"}:  # else powers are of an optimizer of other variables
        stored.powers = _powers_in(left)
    stored.global_step = left.get(_GLOBAL_STEP)
    found = list(itertools.chain(*stored.powers))
    return [*found, stored.global_step] if stored.global_step else found


def _add_slots(
    stored: SaverFile, optimizer: int, number: int, found: _Slots, left: Dict[str, Tensor]
) -> None:
    """Adds the slots of a variable under the names that `OptimizerV2` has for them."""
    for slot, key in found.keys.items():
        name = f"{found.optimizer}/{_key(stored, number)}/{slot}"
        node = _add_node_alone(stored, left.pop(key)._replace(name=name))
        stored.nodes[optimizer].slots.append(Slot(slot, number, node))


def _add_node_alone(stored: SaverFile, tensor: Tensor) -> int:
    """Appends a node that is no child of another one."""
    node = Node()
    node.tensor = tensor
    stored.nodes.append(node)
    return len(stored.nodes) - 1


def _drop_zero(checkpoint: Checkpoint, key: str, left: Dict[str, Tensor]) -> None:
    """Takes a counter of contrib from `left` if it is 0, which Keras does not need."""
    if key in left and not left[key].shape and checkpoint.read(key) == 0:
        del left[key]


def _powers_in(left: Mapping[str, Tensor]) -> List[_Powers]:
    """Returns the powers of beta of each Adam in the file.

    Their names may have a conditional before them, and those of the second Adam have a number.
    """
    powers = []
    for key in sorted(left):
        match = _FIRST_POWER.match(key)
        second = match and left.get(f"{match['scopes']}beta2_power{match['number']}")
        if second and not (left[key].shape or second.shape):
            powers.append(_Powers(left[key], second))
    return powers


def _key(stored: SaverFile, number: int) -> str:
    tensor = stored.nodes[number].tensor
    assert tensor is not None
    return tensor.key


def _slots_of(name: str, tensors: Mapping[str, Tensor]) -> Optional[_Slots]:
    for optimizer, variants in SLOTS_OF_V1.items():
        keys = list(_numbered(f"{name}/{optimizer}", tensors))
        for slots in variants:
            if len(slots) == len(keys):
                return _Slots(optimizer, dict(zip(slots, keys)))
    return None


def _numbered(start: str, tensors: Mapping[str, Tensor]) -> Iterator[str]:
    """Yields the keys `start`, `start_1`, and so on."""
    key, number = start, 0
    while key in tensors:
        yield key
        number += 1
        key = f"{start}_{number}"


def _scale_in(checkpoint: Checkpoint, left: Mapping[str, Tensor]) -> Dict[str, str]:
    """Returns the keys of the loss scale and its counter, by their names on Keras 2."""
    layouts = (finding.CONTRIB, finding.V1, finding.KERAS_NAMES)
    found = [keys for layout, keys in finding.by_name(checkpoint.tensors) if layout in layouts]
    if len(found) > 1:
        raise RestoreError(f"{checkpoint.prefix}: has several loss scales; nothing was restored")
    keys = found[0] if found else {}
    scale = keys.get("current_loss_scale", keys.get("loss_scale"))
    if scale is None or scale not in left:
        return {}
    return {"current_loss_scale": scale, "good_steps": keys["good_steps"]}


def match(stored: SaverFile, model: Model) -> Tuple[List[Variable], List[Match]]:
    """Matches the variables of the program as the names say."""
    models = [] if model is None else [model]
    known = [variable for value in models for variable in weights_of(value)]
    found = Match(stored, 0, set())
    for number, variable in stored.variables.items():
        if not is_variable(variable):
            variable = _by_path(stored, str(variable), known)
        found.bind(number, variable)
    for conflict in found.conflicts:
        tensor = stored.nodes[conflict.node].tensor
        assert tensor is not None
        what = differs(tensor, name_of(conflict.variable), shape_of(conflict.variable))
        raise RestoreError(f"{stored.path}: nothing was restored: {what}")
    return models or list(found.variables.values()), [found]


def _by_path(stored: SaverFile, path: str, known: List[Variable]) -> Optional[Variable]:
    fitting = [variable for variable in known if name_of(variable) == path]
    if len(fitting) == 1:
        return fitting[0]
    what = "several variables" if fitting else "no variable"
    raise RestoreError(f"{stored.path}: names: the model has {what} {path!r}")


def plan_iterations(plan: Plan, program: ProgramOptimizer) -> None:
    """Plans the iterations, where the counters of a file of TensorFlow 1 show them for certain."""
    stored = plan.stored
    if not isinstance(stored, SaverFile):
        return
    plan.written_by = stored.format
    _note_epsilon(plan, stored, program)
    if stored.momentum:
        plan.problems.append(
            f"{stored.momentum} is a sum of gradients, and Keras's SGD has a sum of steps, which "
            "contain the learning rate. Restore without optimizer=, and with partial=True"
        )
    variable = program.iterations
    by_powers = _steps_of_powers(stored, program)
    is_unknown = None in by_powers.values() and len(stored.powers) > 1
    if is_unknown or len(set(by_powers.values())) > 1:
        _leave_iterations(plan, program, by_powers)
        return
    counters = _counters(stored, by_powers)
    if not counters:
        plan.initial.append(Entry(None, None, "iterations", shape_of(variable)))
        return
    plan.used.update(counters)
    if len(set(counters.values())) > 1:
        plan.problems.append(
            "the counters differ: {}. Pass names={{'global_step': variable}} to restore it into a "
            "variable of the program".format(
                ", ".join(f"{key} is of step {steps}" for key, steps in counters.items())
            )
        )
        return
    path, steps = next(iter(counters.items()))
    if by_powers and len(by_powers) < len(stored.powers):
        plan.notes.append(
            f"the file has several Adams, of which only the one with {path} fits the beta_1 and "
            f"beta_2 of the program: iterations are {steps}"
        )
    plan.planned.append(
        Planned(None, path, variable, "iterations", variable.assign, variable.numpy, steps)
    )


def _note_epsilon(plan: Plan, stored: SaverFile, program: ProgramOptimizer) -> None:
    """Notes an epsilon that is not the default of TensorFlow 1, as no file has it."""
    epsilon = program.inner.get_config().get("epsilon")
    for name in sorted(stored.classes & set(_EPSILONS)):
        default = _EPSILONS[name]
        if epsilon is not None and np.float32(epsilon) != np.float32(default):
            plan.notes.append(
                f"epsilon is {epsilon:g} here; tf.train's {name}, whose epsilon the file does not "
                f"have, uses {default:g}{_UNLESS_PASSED if name in _WITH_EPSILON else ''}"
            )


def _leave_iterations(plan: Plan, program: ProgramOptimizer, steps: _StepsOfPowers) -> None:
    """Leaves the iterations as they are, because the file has several optimizers.

    Its `global_step` may count the steps of any of them, or of all.
    """
    shown = " or ".join(
        f"{'an unknown number' if count is None else count} by {powers.beta_1.key}"
        for powers, count in steps.items()
    )
    reason = f"the file has several Adams, and does not show how many steps this one took: {shown}"
    plan.absent.append(f"{reason}. Pass partial=True, and then assign optimizer.iterations")
    plan.notes.append(f"{reason}; assign optimizer.iterations, which keeps its initial value")
    plan.initial.append(Entry(None, None, "iterations", shape_of(program.iterations)))


def _counters(stored: SaverFile, steps: _StepsOfPowers) -> Dict[str, int]:
    """Returns the number of steps that each counter shows, by its key."""
    counters: Dict[str, int] = {}
    global_step = stored.global_step
    if global_step is not None:
        counters[global_step.key] = int(stored.read([global_step])[0])
    for powers, count in list(steps.items())[:1]:  # others are of other optimizers
        if count is None:  # which needs none if there is a global step
            if global_step is None:
                return {}
            count = counters[global_step.key]
        counters = {**{power.key: count for power in powers}, **counters}
    return counters


def _steps_of_powers(stored: SaverFile, program: ProgramOptimizer) -> _StepsOfPowers:
    """Returns the steps of the Adams in the file that can be the optimizer, by their betas."""
    if not stored.powers:
        return {}
    config = program.inner.get_config()
    betas = [config.get(name) for name in ("beta_1", "beta_2")]
    first = stored.powers[0]
    if not all(isinstance(beta, numbers.Real) for beta in betas):
        raise RestoreError(
            f"{stored.path}: nothing was restored: the file has {first.beta_1.key}, and "
            f"{program.class_name} has no beta_1 and beta_2 that are numbers"
        )
    read = iter(stored.read([power for powers in stored.powers for power in powers]))
    values = {
        powers: (np.float32(beta_1), np.float32(beta_2))
        for powers, beta_1, beta_2 in zip(stored.powers, read, read)
    }
    found = _steps_to(values, [np.float32(beta) for beta in betas])
    if found:
        return found
    raise RestoreError(
        f"{stored.path}: nothing was restored: {first.beta_1.key} and {first.beta_2.key} "
        f"are {values[first][0]} and {values[first][1]}, which no number of steps gives with the "
        f"beta_1={betas[0]} and beta_2={betas[1]} of the program"
    )


def _steps_to(values: Dict[_Powers, Tuple[Array, Array]], betas: List[Array]) -> _StepsOfPowers:
    """Returns the steps after which the powers of `betas` have exactly the values of a file.

    Powers are left out if they have them after no step.
    """
    found: _StepsOfPowers = {
        powers: None for powers, (_, beta_2) in values.items() if beta_2 < _SMALLEST_NORMAL
    }
    waiting: Dict[Array, List[_Powers]] = {}
    for powers, (_, beta_2) in values.items():
        if powers not in found:
            waiting.setdefault(beta_2, []).append(powers)
    beta_1, beta_2 = betas
    for steps in range(_MOST_STEPS):
        if beta_2 < _SMALLEST_NORMAL:
            break
        for powers in waiting.get(beta_2, ()):
            if _is_same(beta_1, values[powers][0]):
                found.setdefault(powers, steps)
        beta_1, beta_2 = beta_1 * betas[0], beta_2 * betas[1]
    return {powers: found[powers] for powers in values if powers in found}


def _is_same(power: Array, wanted: Array) -> bool:
    is_small = power < _SMALLEST_NORMAL and wanted < _SMALLEST_NORMAL
    return bool(is_small or power == wanted)
