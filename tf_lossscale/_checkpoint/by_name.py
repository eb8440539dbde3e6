"""Plans the conversion of a `tf.train.Saver` checkpoint between contrib and v1."""

import re
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from tf_lossscale._checkpoint.errors import CheckpointError
from tf_lossscale._checkpoint.layouts import (
    BAD_STEPS,
    CONTRIB,
    GOOD_STEPS,
    V1,
    Layout,
    State,
    Variable,
)
from tf_lossscale._checkpoint.names import COUNTERS, Entry, parts_of
from tf_lossscale._checkpoint.plan import Plan, Tensor

__all__ = ["plan"]

_LAYOUTS: Dict[str, Layout] = {"contrib": CONTRIB, "v1": V1}
_LARGEST = {"int32": 2**31 - 1, "int64": 2**63 - 1}

# Adam and AdaMax create their powers of beta when they first apply gradients, which both wrappers
# do in a conditional. Control flow v1 prefixes their names with the name of the conditional.
_CONDITIONAL = {"contrib": "cond/", "v1": "cond_1/"}
_POWER = re.compile(
    r"(?P<scope>(?:.*?/)??)(?P<conditional>(?:cond(?:_\d+)?/)?)(?P<name>beta[12]_power(?:_\d+)?)$"
)


def plan(
    states: Sequence[State],
    tensors: Mapping[str, Entry],
    to: str,
    control_flow: Optional[str] = None,
    renames: Optional[Mapping[str, str]] = None,
) -> Plan:
    """Plans the conversion.

    Args:
      states: the loss scales in the checkpoint, each of contrib or v1.
      tensors: the index entries, by key.
      to: contrib or v1.
      control_flow: the control flow (v1 or v2) of the program that will read the copy; None means
        that of the program that wrote the checkpoint.
      renames: the new keys that the user requested, by old key.

    Raises:
      CheckpointError: the checkpoint cannot be converted faithfully.
    """
    renames = dict(renames or {})
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
