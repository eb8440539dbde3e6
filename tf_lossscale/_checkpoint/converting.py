"""`tf-lossscale checkpoint convert`: decides what can be converted, and has it done."""

import sys
from typing import Mapping, Optional, Sequence

from tf_lossscale._checkpoint import by_name, by_object, copying, reading
from tf_lossscale._checkpoint.errors import CheckpointError
from tf_lossscale._checkpoint.layouts import GOOD_STEPS, KERAS_A, LOSS_SCALE, State
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
    """Writes the copy and says what differs.

    Args:
      source: what `locate` takes.
      destination: the prefix of the copy.
      to: the family of the class that is to read it.
      control_flow: v1 or v2, that of the program that is to read it; None for that of the old one.
      renames: new keys by old ones.
      force: whether the destination may exist.
      dry_run: whether to write nothing.

    Returns:
      The exit status.

    Raises:
      CheckpointError: it was refused; nothing was written.
    """
    place = locate(source)
    if place.format in (HDF5, KERAS, SAVED_MODEL):
        raise CheckpointError(
            f"{source}: a {place.format} describes its optimizer as well, so a copy with another "
            "state would not load; only TensorFlow checkpoints are converted. `inspect` shows the "
            "values to start with."
        )
    destination = without_suffix(destination)
    copying.check_destination(place.path, destination, force)
    reader = Reader(place.path)
    states = reading.states_of(reader)
    if not states:
        print(
            f"{place.path}: no loss-scale state, so there is nothing to convert. A fixed loss "
            "scale has none.",
            file=sys.stderr,
        )
        return 1
    plan = _plan(reader, states, to, control_flow, renames)
    if not dry_run:
        copying.write(reader, plan, destination, force)
    _tell(plan, place.path, destination, dry_run)
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
            f"{', '.join(unknown)}: may be a loss scale, but of no class that tf-lossscale knows, "
            "so what to do with it cannot be told"
        )
    if not reader.has_objects and to in _BY_NAME and families <= set(_BY_NAME):
        return by_name.plan(states, reader.tensors, to, control_flow, renames)
    if control_flow or renames:
        raise CheckpointError(
            "--control-flow and --rename are for checkpoints of tf.train.Saver between contrib and "
            "v1; the keys of other checkpoints do not depend on the names of variables"
        )
    if families != {to}:
        raise CheckpointError(_refusal(reader, states, to))
    if any(state.layout is KERAS_A for state in states):
        return by_object.plan(reader.object_graph(), reader.tensors)
    same = tuple(Tensor(key, entry.dtype, key) for key, entry in sorted(reader.tensors.items()))
    return Plan(same, (), ())


def _refusal(reader: Reader, states: Sequence[State], to: str) -> str:
    other = next(state for state in states if state.layout.family != to)
    if to == "contrib" and reader.has_objects:
        reason = "the classes of contrib restore checkpoints of tf.train.Saver only"
    elif reader.has_objects:
        reason = (
            "its inner optimizer keeps iterations and slots elsewhere than that of the target, "
            "which would start these anew without a word"
        )
    else:
        reason = (
            "its inner optimizer names its variables otherwise than that of the target, which "
            "could restore no slots"
        )
    return (
        f"{reader.prefix}: the loss scale of {other.layout.written_by} cannot be converted "
        f"faithfully to {to}: {reason}. {_start_with(other, to)}"
    )


def _start_with(state: State, to: str) -> str:
    """Says how to give a new object the values of a state."""
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


def _tell(plan: Plan, source: str, destination: str, dry_run: bool) -> None:
    verb = "would write" if dry_run else "wrote"
    print(printable(f"{verb} {destination}: {len(plan.tensors)} tensors of {source}"))
    if plan.changes:
        for row in rows([(old, "->", new) for old, new in plan.changes]):
            print(printable(f"  {row}"))
    else:
        print("  unchanged: the loss scale is where the target restores it")
    for notice in plan.notices:
        print(printable(f"note: {notice}"))
