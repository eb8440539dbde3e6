"""Decides whether and how a TensorFlow checkpoint can be converted, and plans the copy.

Between contrib and v1, whose `tf.train.Saver` checkpoints have the same variables under other
names, the plan renames tensors. Any other conversion is refused unless the copy loses no state.
"""

import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from tf_lossscale._checkpoint import object_graphs
from tf_lossscale._checkpoint.finding import OBJECT_GRAPH, Entry, parts_of
from tf_lossscale._checkpoint.layouts import (
    BAD_STEPS,
    CONTRIB,
    COUNTERS,
    GOOD_STEPS,
    KERAS_1_14,
    LOSS_SCALE,
    V1,
    Layout,
    State,
    Variable,
)
from tf_lossscale._checkpoint.locate import CheckpointError

__all__ = ["Plan", "Tensor", "plan"]

_BY_NAME = ("contrib", "v1")
_LAYOUTS: Dict[str, Layout] = {"contrib": CONTRIB, "v1": V1}
_LARGEST = {"int32": 2**31 - 1, "int64": 2**63 - 1}

# Adam and AdaMax create their powers of beta when they first apply gradients, which both wrappers
# do in a conditional. Control flow v1 prefixes their names with the name of the conditional.
_CONDITIONAL = {"contrib": "cond/", "v1": "cond_1/"}
_POWER = re.compile(
    r"(?P<scope>(?:.*?/)??)(?P<conditional>(?:cond(?:_\d+)?/)?)(?P<name>beta[12]_power(?:_\d+)?)$"
)


class Tensor(NamedTuple):
    """A tensor of the new checkpoint.

    Attributes:
      key: its key in the new checkpoint.
      dtype: its type in the new checkpoint.
      source: its key in the old checkpoint; None for a tensor that is created.
      value: the value of a tensor that is created.
    """

    key: str
    dtype: str
    source: Optional[str]
    value: Optional[Union[int, bytes]] = None


class Plan(NamedTuple):
    """A new checkpoint.

    Attributes:
      tensors: all tensors in it.
      changes: a description of each difference, before and after.
      notices: notes for the user.
    """

    tensors: Tuple[Tensor, ...]
    changes: Tuple[Tuple[str, str], ...]
    notices: Tuple[str, ...]


def plan(
    prefix: str,
    states: Sequence[State],
    tensors: Mapping[str, Entry],
    graph: Any,
    to: str,
    control_flow: Optional[str],
    renames: Mapping[str, str],
) -> Plan:
    """Plans the conversion of a checkpoint.

    Args:
      prefix: its path, for messages.
      states: the loss scales in it.
      tensors: its tensors, by key.
      graph: its object graph, which may be changed; None if its keys are variable names.
      to: the family of the class that will read the copy.
      control_flow: the control flow (v1 or v2) of the program that will read the copy; None means
        that of the program that wrote the checkpoint.
      renames: the new keys that the user requested, by old key.
    """
    families = {state.layout.family for state in states}
    if "" in families:
        unknown = [v.key for state in states if not state.layout.family for v in state.variables]
        raise CheckpointError(
            f"{', '.join(unknown)}: may be a loss scale, but of a class that tf-lossscale does not "
            "know, so it cannot be converted"
        )
    if graph is None and to in _BY_NAME and families <= set(_BY_NAME):
        return _plan_by_name(states, tensors, to, control_flow, renames)
    if control_flow or renames:
        raise CheckpointError(
            "--control-flow and --rename only apply to tf.train.Saver checkpoints between contrib "
            "and v1; the keys of other checkpoints do not depend on variable names"
        )
    if families != {to}:
        raise CheckpointError(_refusal(prefix, states, to, graph is not None))
    if graph is not None and any(state.layout is KERAS_1_14 for state in states):
        return _plan_by_object(tensors, graph)
    return Plan(tuple(Tensor(key, tensors[key].dtype, key) for key in sorted(tensors)), (), ())


def _refusal(prefix: str, states: Sequence[State], to: str, by_object: bool) -> str:
    other = next(state for state in states if state.layout.family != to)
    if to == "contrib" and by_object:
        reason = "the contrib classes only restore tf.train.Saver checkpoints"
    elif by_object:
        reason = (
            "its inner optimizer stores iterations and slots under other keys than that of the "
            "target, which would silently restart them"
        )
    else:
        reason = (
            "its inner optimizer names its variables differently from that of the target, which "
            "could not restore the slots"
        )
    return (
        f"{prefix}: the loss scale of {other.layout.written_by} cannot be converted "
        f"faithfully to {to}: {reason}. {_start_with(other, to)}"
    )


def _start_with(state: State, to: str) -> str:
    """Describes how to create a new object with the values of a state."""
    values = {variable.role: variable.value for variable in state.variables}
    scale, good = values[LOSS_SCALE], values.get(GOOD_STEPS)
    if to == "contrib":
        return f"Start with init_loss_scale={scale}."
    if to == "v1":
        return f"Start with DynamicLossScale(initial_loss_scale={scale})."
    counter = "dynamic_counter" if to == "keras" else "step_counter"
    return (
        f"Restore the weights, and start with LossScaleOptimizer(inner, initial_scale={scale}); "
        f"once it is built, optimizer.{counter}.assign({good}) sets its counter."
    )


def _plan_by_object(tensors: Mapping[str, Entry], graph: Any) -> Plan:
    keys = object_graphs.merge_inner_optimizers(graph)
    kept = [key for key in sorted(tensors) if key != OBJECT_GRAPH]
    result = [Tensor(keys.get(key, key), tensors[key].dtype, key) for key in kept]
    result.append(Tensor(OBJECT_GRAPH, "string", None, graph.SerializeToString()))
    if len({each.key for each in result}) != len(result):
        raise CheckpointError("two tensors would have the same key")
    return Plan(tuple(result), tuple(keys.items()), ())


def _plan_by_name(
    states: Sequence[State],
    tensors: Mapping[str, Entry],
    to: str,
    control_flow: Optional[str],
    renames: Mapping[str, str],
) -> Plan:
    missing = sorted(set(renames) - set(tensors))
    if missing:
        raise CheckpointError(f"--rename: SRC has no tensor {', '.join(missing)}")
    notices: List[str] = []
    moved: Dict[str, Optional[Tensor]] = {}
    made: List[Tensor] = []
    for state in states:
        if state.layout.family != to:
            _move(state, to, moved, made, notices)
    for key, new in _powers(tensors, states, to, control_flow, notices).items():
        moved[key] = Tensor(new, tensors[key].dtype, key)
    for key, new in renames.items():
        planned = moved.get(key) or Tensor(key, tensors[key].dtype, key)
        moved[key] = planned._replace(key=new)
    kept = [moved.get(key, Tensor(key, tensors[key].dtype, key)) for key in sorted(tensors)]
    result = [each for each in kept if each is not None] + made
    _check_keys(result)
    return Plan(tuple(result), tuple(_changes(moved, made, tensors)), tuple(notices))


def _move(
    state: State,
    to: str,
    moved: Dict[str, Optional[Tensor]],
    made: List[Tensor],
    notices: List[str],
) -> None:
    names = {role: name for name, role in _LAYOUTS[to].roles.items()}
    left = dict(names)
    for variable in state.variables:
        left.pop(variable.role, None)
        if variable.role not in names:
            moved[variable.key] = None
            notices.append(_dropped(variable))
            continue
        dtype = COUNTERS[to] if variable.role == GOOD_STEPS else variable.dtype
        if dtype in _LARGEST and abs(int(variable.value or 0)) > _LARGEST[dtype]:
            raise CheckpointError(
                f"{variable.key} is {variable.value}, which {dtype}, its type in the copy, cannot "
                "represent"
            )
        scope, _, number = parts_of(variable.key)
        key = scope + names[variable.role] + number
        moved[variable.key] = Tensor(key, dtype, variable.key)
    for role, name in left.items():
        scope, _, number = parts_of(state.variables[0].key)
        made.append(Tensor(scope + name + number, COUNTERS[to], None, 0))
        notices.append(f"{scope + name + number} ({role}), which is not in SRC, is set to 0")


def _dropped(variable: Variable) -> str:
    message = f"{variable.key} ({variable.value}) is dropped: DynamicLossScale has no such counter"
    if variable.role == BAD_STEPS:
        message += " and lowers the loss scale at every bad step"
    return message


def _powers(
    tensors: Mapping[str, Entry],
    states: Sequence[State],
    to: str,
    control_flow: Optional[str],
    notices: List[str],
) -> Dict[str, str]:
    """Returns the new keys of the powers of beta, by old key."""
    old = {_CONDITIONAL[state.layout.family] for state in states}
    new = {}
    for key in sorted(tensors):
        match = _POWER.match(key)
        if match is None or tensors[key].shape:
            continue
        scope, conditional, name = match.group("scope", "conditional", "name")
        if conditional and conditional not in old:
            notices.append(
                f"{key} keeps its name, which depends on the conditionals of the whole program; "
                f"use --rename {key}=NEW to change it"
            )
            continue
        flow = control_flow or ("v1" if conditional else "v2")
        wanted = scope + (_CONDITIONAL[to] if flow == "v1" else "") + name
        if wanted != key:
            new[key] = wanted
    named_after = sorted(value for value in new.values() if _CONDITIONAL[to] in value)
    if named_after and control_flow is None:
        notices.append(
            f"{' and '.join(named_after)}: these are the names in a program with control flow v1, "
            "like the one that wrote SRC. For a program with control flow v2, the default in "
            "TensorFlow 2 unless disable_v2_behavior() or disable_control_flow_v2() is called, "
            "pass --control-flow v2"
        )
    return new


def _check_keys(tensors: Sequence[Tensor]) -> None:
    seen = set()
    for each in tensors:
        if each.key in seen:
            raise CheckpointError(
                f"two tensors would have the key {each.key}; change one with --rename OLD=NEW"
            )
        seen.add(each.key)


def _changes(
    moved: Mapping[str, Optional[Tensor]], made: Sequence[Tensor], tensors: Mapping[str, Entry]
) -> List[Tuple[str, str]]:
    changes = []
    for key, tensor in moved.items():
        if tensor is None:
            changes.append((f"{key} {tensors[key].dtype}", "(dropped)"))
        elif (tensor.key, tensor.dtype) != (key, tensors[key].dtype):
            changes.append((f"{key} {tensors[key].dtype}", f"{tensor.key} {tensor.dtype}"))
    return changes + [("(new)", f"{each.key} {each.dtype} 0") for each in made]
