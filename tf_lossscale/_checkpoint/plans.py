"""Decides whether and how a TensorFlow checkpoint can be converted, and plans the copy.

Between contrib and v1, whose `tf.train.Saver` checkpoints have the same variables under other
names, the plan renames tensors. Any other conversion is refused unless the copy loses no state.
"""

import collections
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union

from tf_lossscale._checkpoint import finding, powers
from tf_lossscale._checkpoint.finding import (
    COUNTERS,
    GOOD_STEPS,
    NAMED,
    Entry,
    State,
    Variable,
    parts_of,
)
from tf_lossscale._checkpoint.locate import CheckpointError
from tf_lossscale._types import ObjectGraph, ObjectNode


class Tensor(NamedTuple):
    """A tensor of the new checkpoint: a copy of `source`, or a new one with a value."""

    key: str
    dtype: str
    source: Optional[str]
    value: Optional[Union[int, bytes]] = None


class Plan(NamedTuple):
    """A new checkpoint, how it differs (before and after), and notes for the user."""

    tensors: Sequence[Tensor]
    changes: Sequence[Tuple[str, str]] = ()
    notices: Sequence[str] = ()


def plan(
    prefix: str,
    states: Sequence[State],
    tensors: Mapping[str, Entry],
    graph: ObjectGraph,
    to: str,
    control_flow: Optional[str],
    renames: Mapping[str, str],
) -> Plan:
    """Plans a copy of a checkpoint from which a class of the family `to` restores the loss scale.

    The object graph, which is None for a checkpoint of variable names, may be changed. For
    `control_flow` and `renames` see the options of the command: with them, names are changed in a
    checkpoint without `states`, whose loss scale is fixed, too. Raises CheckpointError if the
    checkpoint cannot be converted faithfully.
    """
    families = {state.layout.family for state in states}
    check_known(states)
    if graph is None and to in NAMED and families <= set(NAMED):
        return _plan_by_name(states, tensors, to, control_flow, renames)
    check_no_names(control_flow, renames)
    if not states or not all(_is_of(state, to) for state in states):
        raise CheckpointError(_refusal(prefix, states, to, graph is not None))
    if not any(state.layout is finding.KERAS_1_14 for state in states):
        return Plan([Tensor(key, tensors[key].dtype, key) for key in sorted(tensors)])
    return _plan_merged(tensors, graph)


def _is_of(state: State, family: str) -> bool:
    """Returns whether a class of a family restores a loss scale from the file as it is."""
    if state.layout is finding.V1_OR_KERAS and family == "keras":
        return True
    return state.layout.family == family


def check_no_names(control_flow: Optional[str], renames: Mapping[str, str]) -> None:
    """Raises CheckpointError for options that only apply to names of variables."""
    if control_flow or renames:
        raise CheckpointError(
            "--control-flow and --rename only apply to tf.train.Saver checkpoints between contrib "
            "and v1; the keys of other checkpoints do not depend on variable names"
        )


def check_known(states: Sequence[State]) -> None:
    """Raises CheckpointError for a loss scale of an unknown class."""
    unknown = [state for state in states if not state.layout.family]
    keys = [variable.key for state in unknown for variable in state.variables]
    if keys:
        raise CheckpointError(
            f"{', '.join(keys)}: may be a loss scale, but of a class that tf-lossscale does not "
            "know, so it cannot be converted"
        )


def _plan_merged(tensors: Mapping[str, Entry], graph: ObjectGraph) -> Plan:
    """Plans a copy in which each loss-scale optimizer has the variables of its inner optimizer."""
    keys = merge_inner_optimizers(graph)
    kept = [key for key in sorted(tensors) if key != finding.OBJECT_GRAPH]
    result = [Tensor(keys.get(key, key), tensors[key].dtype, key) for key in kept]
    result.append(Tensor(finding.OBJECT_GRAPH, "string", None, graph.SerializeToString()))
    if len({tensor.key for tensor in result}) != len(result):
        raise CheckpointError("two tensors would have the same key")
    return Plan(result, list(keys.items()))


def _refusal(prefix: str, states: Sequence[State], to: str, by_object: bool) -> str:
    """Returns why a copy would lose state, and what to write instead."""
    other = next(state for state in states if not _is_of(state, to))
    reason = _reason(to, by_object)
    if {to, other.layout.family} == {"keras", "keras3"} and by_object:
        return refusal_for_program(prefix, other, to, reason)
    return _start_of_refusal(prefix, other, to, reason) + _start_with(other, to, by_object)


def refusal_for_program(prefix: str, state: State, to: str, reason: str) -> str:
    """Returns why there is no copy, and the lines with which the program reads the file itself."""
    start = _start_of_refusal(prefix, state, to, reason)
    return start + _LINES_FOR_PROGRAM.format(prefix=prefix)


def _start_of_refusal(prefix: str, state: State, to: str, reason: str) -> str:
    return (
        f"{prefix}: the loss scale of {state.layout.written_by} cannot be converted "
        f"faithfully to {to}: {reason}. "
    )


_LINES_FOR_PROGRAM = (
    "The program reads the file itself: in place of its own restore, write three lines, the second "
    "unless the optimizer is wrapped already: import tf_lossscale; optimizer = "
    "tf_lossscale.keras.mixed_precision.LossScaleOptimizer(optimizer); "
    "tf_lossscale.checkpoints.restore({prefix!r}, model, optimizer)"
)


def _reason(to: str, by_object: bool) -> str:
    """Returns why a copy for `to` would lose state; `by_object`: the file has an object graph."""
    if to == "contrib" and by_object:
        return "the contrib classes only restore tf.train.Saver checkpoints"
    if by_object:
        return (
            "its inner optimizer and the target's store iterations and slots under different keys, "
            "so the target would silently restart them"
        )
    return (
        "its inner optimizer and the target's name their variables differently, so the target "
        "could not restore the slots"
    )


def _start_with(other: State, to: str, by_object: bool) -> str:
    """Returns the arguments by which a new loss scale begins with the values of an old one."""
    values = {variable.role: variable.value for variable in other.variables}
    scale = values[finding.LOSS_SCALE]
    if to == "contrib":
        return f"Start with init_loss_scale={scale}."
    if to == "v1":
        return f"Start with DynamicLossScale(initial_loss_scale={scale})."
    counter = "dynamic_counter" if to == "keras" else "step_counter"
    by_program = (
        "The program itself can read the file with its slots, by "
        "tf_lossscale.checkpoints.restore(path, model, optimizer, names=...). Or: "
    )
    return (
        f"{'' if by_object else by_program}Restore the weights, and start with "
        f"LossScaleOptimizer(inner, initial_scale={scale}); once it is built, "
        f"optimizer.{counter}.assign({values.get(GOOD_STEPS)}) sets its counter."
    )


def _plan_by_name(
    states: Sequence[State],
    tensors: Mapping[str, Entry],
    to: str,
    control_flow: Optional[str],
    renames: Mapping[str, str],
) -> Plan:
    """Plans a copy of a file of `tf.train.Saver` for the names of contrib or of v1.

    Raises CheckpointError if a tensor to rename is missing, or two would have the same name.
    """
    missing = sorted(set(renames) - set(tensors))
    if missing:
        raise CheckpointError(f"--rename: SRC has no tensor {', '.join(missing)}")
    moved, made, notices = _moved([state for state in states if state.layout.family != to], to)
    same = {key: Tensor(key, tensors[key].dtype, key) for key in sorted(tensors)}
    families = {state.layout.family for state in states}
    names, more = powers.new_names(tensors, families, to, control_flow, renames)
    for key, name in [*names.items(), *renames.items()]:
        moved[key] = (moved.get(key) or same[key])._replace(key=name)
    result = [tensor for tensor in {**same, **moved}.values() if tensor is not None] + made
    ((key, count),) = collections.Counter(tensor.key for tensor in result).most_common(1)
    if count > 1:
        raise CheckpointError(
            f"two tensors would have the key {key}; change one with --rename OLD=NEW"
        )
    changes = [
        (f"{key} {tensors[key].dtype}", f"{new.key} {new.dtype}" if new else "(dropped)")
        for key, new in moved.items()
    ]
    changes += [("(new)", f"{tensor.key} {tensor.dtype} 0") for tensor in made]
    return Plan(result, [(old, new) for old, new in changes if old != new], notices + more)


def _moved(
    states: Sequence[State], to: str
) -> Tuple[Dict[str, Optional[Tensor]], List[Tensor], List[str]]:
    """Returns the tensors of another class by old key, new tensors, and notes for the user."""
    moved: Dict[str, Optional[Tensor]] = {}
    made: List[Tensor] = []
    notices: List[str] = []
    for state in states:
        scope, _, number = parts_of(state.variables[0].key)
        names = {role: scope + name + number for name, role in NAMED[to].roles.items()}
        for variable in state.variables:
            if variable.role in names:
                moved[variable.key] = _renamed(variable, names.pop(variable.role), to)
                continue
            moved[variable.key] = None
            notices.append(
                f"{variable.key} ({variable.value}) is dropped: DynamicLossScale has no such "
                "counter and lowers the loss scale at every bad step"
            )
        for role, key in names.items():
            made.append(Tensor(key, COUNTERS[to], None, 0))
            notices.append(f"{key} ({role}), which is not in SRC, is set to 0")
    return moved, made, notices


def _renamed(variable: Variable, name: str, to: str) -> Tensor:
    """Returns the tensor of a variable under another name, with the type of the class `to`."""
    dtype = COUNTERS[to] if variable.role == GOOD_STEPS else variable.dtype
    if dtype == "int32" and abs(variable.value or 0) >= 2**31:
        raise CheckpointError(
            f"{variable.key} is {variable.value}, which {dtype}, its type in the copy, cannot "
            "represent"
        )
    return Tensor(name, dtype, variable.key)


_INNER = "base_optimizer"
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


def merge_inner_optimizers(graph: ObjectGraph) -> Dict[str, str]:
    """Changes layout A to layout B, in the object graph from which TensorFlow restores.

    Keras of TensorFlow 1.14 to 2.2 stored the inner optimizer as a child of the loss-scale
    optimizer (layout A). Later Keras stores one optimizer with the variables of both (layout B).
    Returns the new keys of tensors, by old key.

    Raises:
      CheckpointError: an inner optimizer is stored a second time.
    """
    keys: Dict[str, str] = {}
    dropped: List[int] = []
    for node in graph.nodes:
        number = _inner_of(graph, node)
        if number is None:
            continue
        _check_stored_once(graph, number)
        inner = graph.nodes[number]
        _rename(graph, inner, keys)
        _absorb(node, inner)
        dropped.append(number)
    _remove(graph, dropped)
    return keys


def _absorb(outer: ObjectNode, inner: ObjectNode) -> None:
    """Puts the children and slots of an inner optimizer in its own place.

    Of two children with one name, that of the loss-scale optimizer counts.
    """
    own = [child.local_name for child in outer.children]
    place = own.index(_INNER)
    del outer.children[place]
    del own[place]
    outer.children.extend(child for child in inner.children if child.local_name not in own)
    outer.slot_variables.extend(inner.slot_variables)


def _inner_of(graph: ObjectGraph, node: ObjectNode) -> Optional[int]:
    """Returns the number of the optimizer in a loss-scale optimizer of layout A, else None."""
    children = {child.local_name: child.node_id for child in node.children}
    inner = children.get(_INNER)
    if inner is None or "loss_scale" not in children:
        return None
    names = [child.local_name for child in graph.nodes[inner].children]
    return inner if "iter" in names else None


def _check_stored_once(graph: ObjectGraph, inner: int) -> None:
    references = (child for node in graph.nodes for child in node.children)
    names = [child.local_name for child in references if child.node_id == inner]
    if names != [_INNER]:
        raise CheckpointError(
            "the inner optimizer was stored a second time, as {}, which later Keras restores "
            "as a separate object".format(", ".join(sorted({*names} - {_INNER})) or _INNER)
        )


def _rename(graph: ObjectGraph, inner: ObjectNode, keys: Dict[str, str]) -> None:
    """Removes the inner optimizer from the keys of its variables and slots."""
    named = [(child.local_name, child.node_id) for child in inner.children]
    named += [(slot.slot_name, slot.slot_variable_node_id) for slot in inner.slot_variables]
    for name, number in named:
        end = f"{_INNER}/{name}{_VALUE}"
        for attribute in graph.nodes[number].attributes:
            old = attribute.checkpoint_key
            if old == end or old.endswith("/" + end):
                new = old[: -len(end)] + name + _VALUE
                attribute.checkpoint_key = keys[old] = new


def remove_unreachable(graph: ObjectGraph) -> None:
    """Removes the nodes that no path from the root leads to."""
    reached: Set[int] = set()
    waiting = [0]
    while waiting:
        number = waiting.pop()
        if number not in reached:
            reached.add(number)
            node = graph.nodes[number]
            waiting += [child.node_id for child in node.children]
            for slot in node.slot_variables:
                waiting += [slot.original_variable_node_id, slot.slot_variable_node_id]
    _remove(graph, [number for number in range(len(graph.nodes)) if number not in reached])


def _remove(graph: ObjectGraph, dropped: List[int]) -> None:
    """Removes nodes; TensorFlow would report unreferenced ones as not restored."""
    kept = (number for number in range(len(graph.nodes)) if number not in dropped)
    new = {old: number for number, old in enumerate(kept)}
    for number in sorted(dropped, reverse=True):
        del graph.nodes[number]
    for node in graph.nodes:
        for child in node.children:
            child.node_id = new[child.node_id]
        for slot in node.slot_variables:
            slot.original_variable_node_id = new[slot.original_variable_node_id]
            slot.slot_variable_node_id = new[slot.slot_variable_node_id]
