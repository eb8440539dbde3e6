"""Which optimizer of the program belongs to which optimizer of the file."""

import collections.abc
import re
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Tuple

from tf_lossscale._restore.matching import Match
from tf_lossscale._restore.optimizer_state import OptimizerState
from tf_lossscale._restore.optimizers import ProgramOptimizer, is_optimizer
from tf_lossscale._restore.parts import node_at
from tf_lossscale._restore.stored import RestoreError, Stored
from tf_lossscale._types import Model, Optimizer

_ONLY_PARTIAL = "Pass partial=True to accept this"
_BEFORE_COMPILE = "Pass partial=True to accept this, or restore before compile()"


class Absent(NamedTuple):
    """An optimizer of the program that gets no state from the file, and so starts again.

    Attributes:
      optimizer: the optimizer, which restore() may not know the class of if it is compiled.
      name: what messages call it.
      reason: why it gets none.
      remedy: what to do, for the error without `partial=True`.
    """

    optimizer: Optimizer
    name: str
    reason: str
    remedy: str

    @property
    def note(self) -> str:
        """What the report says of it."""
        return f"{self.reason}, so {self.name} starts again"

    @property
    def refusal(self) -> str:
        """What the error says of it."""
        return f"{self.reason}, so {self.name} would start again. {self.remedy}"


class Pairing(NamedTuple):
    """The optimizers of the program: those with a state in the file, and those without one."""

    found: List[Tuple[Optimizer, OptimizerState]]
    absent: List[Absent]


def pair_optimizers(
    stored: Stored,
    model: Model,
    optimizer: Optimizer,
    states: Dict[int, OptimizerState],
    matches: List[Match],
) -> Pairing:
    """Returns the optimizers of the program, each with its state in the file.

    Args:
      stored: the file.
      model: the model or models, for the optimizers that they were compiled with.
      optimizer: the optimizer that the program passes, or a dictionary of them; or None.
      states: the optimizers of the file, by their nodes.
      matches: what the models have in the file.

    Raises:
      RestoreError: it is not known which of the optimizers in the file is the one of the program.
    """
    compiled = list(_compiled_optimizers(model))
    if isinstance(optimizer, collections.abc.Mapping):
        return _by_name(stored, optimizer, states)
    fitting = _fitting(list(states.values()), matches)
    if optimizer is None:
        return _of_compiled(stored, compiled, fitting)
    if fitting:
        return Pairing([(optimizer, _only(stored, fitting))], [])
    if compiled:
        remedy = "Pass partial=True to accept this, or restore without optimizer= before compile()"
    else:
        remedy = "Leave out optimizer=, or pass partial=True to accept this"
    return Pairing([], [_absent(stored, optimizer, _passed_name(optimizer), remedy)])


def _of_compiled(
    stored: Stored, compiled: List[Optimizer], fitting: List[OptimizerState]
) -> Pairing:
    """Returns the pairs for the optimizers that the models were compiled with."""
    if fitting and len(compiled) == 1:
        return Pairing([(compiled[0], _only(stored, fitting))], [])
    names = [f"the model's {_name_of(optimizer)}" for optimizer in compiled]
    if fitting:
        paths = _paths(stored, fitting)
        reason = f"the models were compiled with several optimizers, and the file has {paths}"
        remedy = "Pass optimizer={name: optimizer}, or partial=True to accept this"
        several = zip(compiled, names)
        return Pairing([], [Absent(own, name, reason, remedy) for own, name in several])
    absent = [_absent(stored, own, name, _BEFORE_COMPILE) for own, name in zip(compiled, names)]
    return Pairing([], absent)


def _absent(stored: Stored, optimizer: Optimizer, name: str, remedy: str) -> Absent:
    """Returns an optimizer for which the file has none, with what the file lacks."""
    if not any(node.slots for node in stored.nodes):
        return Absent(optimizer, name, "the file has no optimizer", remedy)
    reason = (
        "the file has slots of an optimizer and no iterations, which Keras 2 saves once the "
        "optimizer has taken a step"
    )
    return Absent(optimizer, name, reason, _ONLY_PARTIAL)


def _by_name(
    stored: Stored, optimizers: Mapping[str, Any], states: Dict[int, OptimizerState]
) -> Pairing:
    """Returns the pairs for optimizers that the program passes by their names in the file.

    Raises:
      RestoreError: the file lacks a name, and has an optimizer of a name that is not passed, which
        may be a different spelling of it.
    """
    nodes = {name: node_at(stored, name) for name in optimizers}
    known = {name: node for name, node in nodes.items() if node is not None and node in states}
    missing = [name for name in optimizers if name not in known]
    others = [state for number, state in states.items() if number not in known.values()]
    if missing and others:
        raise RestoreError(
            f"{stored.path}: the file has no optimizer {missing[0]!r}; it has "
            f"{_paths(stored, others)}"
        )
    absent = []
    for name in missing:
        shown = f"{name!r} ({_passed_name(optimizers[name])})"
        remedy = f"Leave {name!r} out of the optimizers, or pass partial=True to accept this"
        absent.append(_absent(stored, optimizers[name], shown, remedy))
    found = [(optimizers[name], states[number]) for name, number in known.items()]
    return Pairing(found, absent)


def _compiled_optimizers(model: Model) -> Iterator[Optimizer]:
    """Yields the optimizers that models were compiled with, each once."""
    found: List[Optimizer] = []
    waiting = [model]
    while waiting:
        value = waiting.pop(0)
        if isinstance(value, collections.abc.Mapping):
            waiting += value.values()
        elif isinstance(value, (list, tuple)):
            waiting += value
        else:
            optimizer = getattr(value, "optimizer", None)
            is_new = not any(optimizer is other for other in found)
            if _is_any_optimizer(optimizer) and is_new:
                found.append(optimizer)
    yield from found


def _is_any_optimizer(value: object) -> bool:
    """Whether an object is an optimizer, also one that Keras made from an optimizer of `tf.train`.

    The attribute `optimizer` of a `tf.Module` may be anything else.
    """
    return hasattr(value, "apply_gradients") or hasattr(value, "get_updates")


def _passed_name(optimizer: Optimizer) -> str:
    """Returns the name of an optimizer that the program passes; refuses what is none of Keras."""
    return _name_of(ProgramOptimizer(optimizer).outer)


def _name_of(optimizer: Optimizer) -> str:
    """Returns the name of the class, as in `LossScaleOptimizer(Adam)` for a wrapped optimizer."""
    name = type(optimizer).__name__
    if not is_optimizer(optimizer):
        wrapped = getattr(optimizer, "optimizer", None)  # of `tf.train`, which Keras 2 has wrapped
        return name if wrapped is None else type(wrapped).__name__
    inner = ProgramOptimizer(optimizer).inner
    public = re.sub(r"^(LossScaleOptimizer)V\d$", r"\1", name)
    return name if inner is optimizer else f"{public}({type(inner).__name__})"


def _only(stored: Stored, fitting: List[OptimizerState]) -> OptimizerState:
    """Returns the one optimizer that fits; raises RestoreError if there are several."""
    if len(fitting) > 1:
        raise RestoreError(
            f"{stored.path}: the file has several optimizers: {_paths(stored, fitting)}. Pass "
            "optimizer={name: optimizer}"
        )
    return fitting[0]


def _paths(stored: Stored, states: List[OptimizerState]) -> str:
    return ", ".join(stored.path_of(state.node) for state in states)


def _fitting(states: List[OptimizerState], matches: List[Match]) -> List[OptimizerState]:
    """Returns the optimizers whose slots belong to the models; all, if there is only one."""
    if len(states) <= 1 or not matches:
        return states
    of_models = {number for match in matches for number in match.variables}
    fitting = []
    for state in states:
        own = {slot.variable for slot in state.slots} | set(state.trained)
        if not own.isdisjoint(of_models):
            fitting.append(state)
    return fitting or states
