"""What a restore will do: nothing is assigned before all of it is known."""

import re
from typing import Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from tf_lossscale._restore.program import dtype_of, name_of, shape_of
from tf_lossscale._restore.report import Entry, Report
from tf_lossscale._restore.stored import RestoreError, Stored, Tensor
from tf_lossscale._types import Array, JsonObject, Variable

_NUMBERED = re.compile(r"-\d+$")
"""The end of a checkpoint that `tf.train.Checkpoint.save` or a manager has numbered."""
_SEEDS = ("seed_generator", "_random_generator", "_state_var")


class Planned(NamedTuple):
    """A value of the file, and what it is assigned to."""

    source: Optional[Tensor]  # None for a value of the configuration
    path: str
    variable: Optional[Variable]
    name: str
    assign: Callable[[Array], object]
    read: Callable[[], Array]  # the value before, for an error while assigning
    value: Optional[Array] = None  # None if `source` has the value


class Plan:
    """What a restore will do: nothing is assigned before all of it is known."""

    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        self.planned: List[Planned] = []
        self.initial: List[Entry] = []
        self.unused: List[Entry] = []
        self.expected: List[Entry] = []  # initial, but no error
        self.used: Set[str] = set()  # keys of the file
        # What the file lacks of an optimizer, an error unless `partial`.
        self.absent: List[str] = []
        self.problems: List[str] = []
        self.notes: List[str] = []
        self.written_by = stored.format

    def add(self, tensor: Tensor, variable: Variable, name: str = "", factor: int = 1) -> None:
        """Plans to assign a value; notes a problem where it does not fit the variable.

        Args:
          tensor: the value.
          variable: what it is assigned to.
          name: how messages and the report call the variable.
          factor: by what the value is multiplied.
        """
        name = name or name_of(variable)
        is_planned = any(planned.variable is variable for planned in self.planned)
        if tensor.key in self.used and is_planned:
            return
        if tensor.shape != shape_of(variable):
            self.problems.append(differs(tensor, name, shape_of(variable)))
            return
        if _is_lossy(tensor.dtype, dtype_of(variable)):
            self.problems.append(
                f"{shown(tensor)} is {tensor.dtype}, and {name} is {dtype_of(variable)}"
            )
            return
        if is_planned:
            self.problems.append(f"{name} has a second value in the file, {shown(tensor)}")
            return
        self.used.add(tensor.key)
        assign = variable.assign
        if factor != 1:
            assign = _multiplied(variable, factor)
        self.planned.append(Planned(tensor, tensor.key, variable, name, assign, _reader(variable)))

    def skip(self, tensor: Tensor) -> None:
        """Takes note of a value that the program needs no variable for."""
        self.used.add(tensor.key)


def _multiplied(variable: Variable, factor: int) -> Callable[[Array], object]:
    return lambda value: variable.assign(value * factor)


def _reader(variable: Variable) -> Callable[[], Array]:
    return lambda: variable.numpy()


def shown(tensor: Tensor) -> str:
    return tensor.key.replace("/.ATTRIBUTES/VARIABLE_VALUE", "")


def differs(tensor: Tensor, name: str, shape: Tuple[int, ...]) -> str:
    return (
        f"{shown(tensor)} has shape {list(tensor.shape)} in the file, and {name} of the program "
        f"{list(shape)}"
    )


def _is_lossy(source: str, target: str) -> bool:
    """Returns whether a dtype cannot hold all values of another one."""
    kinds = ["".join(filter(str.isalpha, dtype)) for dtype in (source, target)]
    if (source, target) == ("float16", "bfloat16"):
        return True
    if source == target or kinds == ["int", "int"]:
        return False  # counters are int64 on Keras 2, and may be int32 on Keras 3
    order = ["float16", "bfloat16", "float32", "float64"]
    if source in order and target in order:
        return order.index(source) > order.index(target)
    return True


def note_unused(plan: Plan) -> None:
    """Notes each value of the file that nothing takes, but for the program's own bookkeeping."""
    stored = plan.stored
    for number, node in enumerate(stored.nodes):
        tensor = node.tensor
        if tensor is None or tensor.key in plan.used:
            continue
        if stored.path_of(number) == "save_counter":
            _note_counter_of_saves(plan)
            continue
        if "keras_api/metrics" in tensor.key:
            continue
        plan.used.add(tensor.key)
        plan.unused.append(Entry(shown(tensor), tensor.shape, None, None))
    plan.unused += [Entry(shown(tensor), tensor.shape, None, None) for tensor in stored.others]


def _note_counter_of_saves(plan: Plan) -> None:
    """Notes that the next save may have the number of an old one, by which it is replaced."""
    if _NUMBERED.search(plan.stored.path):
        plan.notes.append(
            "its count of saves was not restored, so a CheckpointManager of this directory would "
            "begin with 1 again and replace old checkpoints; pass the program's "
            "tf.train.Checkpoint in place of the model to go on counting"
        )


def raise_problems(plan: Plan, partial: bool) -> None:
    """Raises a RestoreError that names the first difference, if the plan cannot be carried out."""
    start = f"{plan.stored.path}: nothing was restored"
    if plan.problems:
        raise RestoreError(f"{start}: {plan.problems[0]}")
    if not plan.planned:
        raise RestoreError(f"{start}: no value of the file fits the program")
    if partial:
        return
    if plan.absent:
        raise RestoreError(f"{start}: {plan.absent[0]}")
    unused = [entry for entry in plan.unused if not _is_of_a_seed(entry)]
    if unused:
        entry = unused[0]
        if "/.ATTRIBUTES/" in str(entry.in_file):
            raise RestoreError(f"{start}: {_no_variables(entry)}")
        raise RestoreError(
            f"{start}: the program has no variable for {entry.in_file} of shape "
            f"{list(entry.file_shape or ())}{_more(unused)}. Pass what it belongs to (model=, "
            "optimizer=, or the program's tf.train.Checkpoint as model=), or partial=True"
        )
    if plan.initial:
        entry = plan.initial[0]
        raise RestoreError(
            f"{start}: the file has no value for {entry.in_program} of shape "
            f"{list(entry.program_shape or ())}{_more(plan.initial)}. Use the model and optimizer "
            "that the file was saved with, or partial=True"
        )


def _no_variables(entry: Entry) -> str:
    """Returns the message for the state of an object that does not keep it in variables."""
    owner = str(entry.in_file).partition("/.ATTRIBUTES/")[0]
    return (
        f"the program has no variable for {entry.in_file}: restore() reads models, optimizers, "
        f"loss scales and variables, but no dataset iterators or tables. Restore {owner} with a "
        "tf.train.Checkpoint that has only this object, and all else with partial=True"
    )


def _is_of_a_seed(entry: Entry) -> bool:
    return any(word in str(entry.in_file) for word in _SEEDS)


def _more(entries: List[Entry]) -> str:
    return f", and {len(entries) - 1} more" if len(entries) > 1 else ""


def read_values(plan: Plan) -> Dict[str, Array]:
    """Reads the values that are planned, by their paths in the file."""
    tensors = [planned.source for planned in plan.planned if planned.source is not None]
    read = iter(plan.stored.read(tensors))
    return {
        planned.path: planned.value if planned.source is None else next(read)
        for planned in plan.planned
    }


def assign(plan: Plan, values: JsonObject) -> None:
    """Assigns all values; if one cannot be assigned, those before it get their old values back."""
    done: List[Tuple[Planned, Array]] = []
    try:
        for planned in plan.planned:
            done.append((planned, planned.read()))
            planned.assign(values[planned.path])
    except Exception:
        for planned, before in done:
            _put_back(planned, before)
        raise


def _put_back(planned: Planned, before: Array) -> None:
    if planned.variable is not None:
        planned.variable.assign(before)
    else:
        planned.assign(before)


def report_of(plan: Plan) -> Report:
    """Returns the plan as what has been done."""
    restored = tuple(
        Entry(
            shown(planned.source) if planned.source else planned.path,
            planned.source.shape if planned.source else (),
            planned.name,
            shape_of(planned.variable) if planned.variable is not None else (),
        )
        for planned in plan.planned
    )
    return Report(
        plan.stored.path,
        plan.written_by,
        restored,
        tuple(plan.initial + plan.expected),
        tuple(plan.unused),
        tuple(dict.fromkeys(plan.notes)),
    )
