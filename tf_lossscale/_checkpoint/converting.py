"""`tf-lossscale checkpoint convert`: decides whether a file can be converted, and converts it."""

import sys
from typing import Mapping, Optional, Sequence

from tf_lossscale._checkpoint import by_name, by_object, copying, reading
from tf_lossscale._checkpoint.errors import CheckpointError
from tf_lossscale._checkpoint.layouts import GOOD_STEPS, KERAS_1_14, LOSS_SCALE, State
from tf_lossscale._checkpoint.locate import HDF5, KERAS, SAVED_MODEL, locate, without_suffix
from tf_lossscale._checkpoint.plan import Plan, Tensor
from tf_lossscale._checkpoint.printing import printable
from tf_lossscale._checkpoint.report import rows
from tf_lossscale._checkpoint.tensors import Reader

__all__ = ["convert"]

_BY_NAME = ("contrib", "v1")


def convert(
    source: str,
    destination: str,
    to: str,
    control_flow: Optional[str],
    renames: Mapping[str, str],
    force: bool,
    dry_run: bool,
) -> int:
    """Writes the copy and prints what has changed.

    Args:
      source: a path for `locate`.
      destination: the prefix of the copy.
      to: the family of the class that will read the copy.
      control_flow: the control flow (v1 or v2) of the program that will read the copy; None means
        that of the program that wrote the source.
      renames: the new keys, by old key.
      force: whether the destination may exist.
      dry_run: whether to write nothing.

    Returns:
      The exit status.

    Raises:
      CheckpointError: if the conversion is refused; nothing has been written.
    """
    place = locate(source)
    if place.format in (HDF5, KERAS, SAVED_MODEL):
        raise CheckpointError(
            f"{source}: only TensorFlow checkpoints can be converted. A {place.format} also "
            "describes its optimizer, so a copy with other state would not load. `inspect` shows "
            "the values to start with."
        )
    destination = without_suffix(destination)
    copying.check_destination(place.path, destination, force)
    reader = Reader(place.path)
    states = reading.states_of(reader)
    if not states:
        print(
            f"{place.path}: nothing to convert: there is no loss-scale state. A fixed loss scale "
            "has none.",
            file=sys.stderr,
        )
        return 1
    plan = _plan(reader, states, to, control_flow, renames)
    if not dry_run:
        copying.write(reader, plan, destination, force)
    _print_changes(plan, place.path, destination, dry_run)
    return 0


def _plan(
    reader: Reader,
    states: Sequence[State],
    to: str,
    control_flow: Optional[str],
    renames: Mapping[str, str],
) -> Plan:
    families = {state.layout.family for state in states}
    if "" in families:
        unknown = [v.key for state in states if not state.layout.family for v in state.variables]
        raise CheckpointError(
            f"{', '.join(unknown)}: may be a loss scale, but of a class that tf-lossscale does not "
            "know, so it cannot be converted"
        )
    if not reader.has_objects and to in _BY_NAME and families <= set(_BY_NAME):
        return by_name.plan(states, reader.tensors, to, control_flow, renames)
    if control_flow or renames:
        raise CheckpointError(
            "--control-flow and --rename only apply to tf.train.Saver checkpoints between contrib "
            "and v1; the keys of other checkpoints do not depend on variable names"
        )
    if families != {to}:
        raise CheckpointError(_refusal(reader, states, to))
    if any(state.layout is KERAS_1_14 for state in states):
        return by_object.plan(reader.object_graph(), reader.tensors)
    same = tuple(Tensor(key, entry.dtype, key) for key, entry in sorted(reader.tensors.items()))
    return Plan(same, (), ())


def _refusal(reader: Reader, states: Sequence[State], to: str) -> str:
    other = next(state for state in states if state.layout.family != to)
    if to == "contrib" and reader.has_objects:
        reason = "the contrib classes only restore tf.train.Saver checkpoints"
    elif reader.has_objects:
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
        f"{reader.prefix}: the loss scale of {other.layout.written_by} cannot be converted "
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


def _print_changes(plan: Plan, source: str, destination: str, dry_run: bool) -> None:
    verb = "would write" if dry_run else "wrote"
    print(printable(f"{verb} {destination}: {len(plan.tensors)} tensors of {source}"))
    if plan.changes:
        for row in rows([(old, "->", new) for old, new in plan.changes]):
            print(printable(f"  {row}"))
    else:
        print("  unchanged: the target can restore the loss scale from it")
    for notice in plan.notices:
        print(printable(f"note: {notice}"))
