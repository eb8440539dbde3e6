"""`tfls.checkpoints.restore`: a file of either Keras, for the model and optimizer of a program.

Everything is matched and read before the first variable is assigned.
"""

import collections
import collections.abc
import os
import re
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple, Union

from tf_lossscale._checkpoint.locate import HDF5, SAVED_MODEL, TENSORFLOW, CheckpointError, locate
from tf_lossscale._restore import hdf5_files, object_files
from tf_lossscale._restore.matching import Match, best_match, contradict, names_in
from tf_lossscale._restore.optimizer_state import (
    OptimizerState,
    StoredSlot,
    optimizers_in,
    state_of,
)
from tf_lossscale._restore.optimizers import KNOWN_CLASSES, ProgramOptimizer
from tf_lossscale._restore.program import (
    direct_variables,
    dtype_of,
    layers_below,
    name_of,
    shape_of,
    trained_by,
    weights_of,
)
from tf_lossscale._restore.report import Entry, Report
from tf_lossscale._restore.stored import RestoreError, Stored, Tensor
from tf_lossscale._versions.base import tf

_SEEDS = ("seed_generator", "_random_generator", "_state_var")


class _Planned(NamedTuple):
    """A value of the file, and what it is assigned to."""

    source: Optional[Tensor]  # None for a value of the configuration
    path: str
    variable: Optional[Any]
    name: str
    assign: Callable[[Any], Any]
    read: Callable[[], Any]  # the value before, for an error while assigning
    value: Optional[Any] = None  # unless it is that of `source`


class _Plan:
    """What a restore will do: nothing is assigned before all of it is known."""

    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        self.planned: List[_Planned] = []
        self.initial: List[Entry] = []
        self.unused: List[Entry] = []
        self.expected: List[Entry] = []  # initial, but no error
        self.used: Set[str] = set()  # keys of the file
        self.problems: List[str] = []
        self.notes: List[str] = []
        self.written_by = stored.format

    def add(self, tensor: Tensor, variable: Any, name: str = "") -> None:
        """Plans to assign a value; notes a problem where it does not fit the variable."""
        name = name or name_of(variable)
        is_planned = any(planned.variable is variable for planned in self.planned)
        if tensor.key in self.used and is_planned:
            return
        if tensor.shape != shape_of(variable):
            self.problems.append(_differs(tensor, name, shape_of(variable)))
            return
        if _is_lossy(tensor.dtype, dtype_of(variable)):
            self.problems.append(
                f"{_shown(tensor)} is {tensor.dtype}, and {name} is {dtype_of(variable)}"
            )
            return
        if is_planned:
            self.problems.append(f"{name} has a second value in the file, {_shown(tensor)}")
            return
        self.used.add(tensor.key)
        self.planned.append(
            _Planned(tensor, tensor.key, variable, name, variable.assign, _reader(variable))
        )

    def skip(self, tensor: Tensor) -> None:
        """Takes note of a value that the program needs no variable for."""
        self.used.add(tensor.key)


def _reader(variable: Any) -> Callable[[], Any]:
    return lambda: variable.numpy()


def _shown(tensor: Tensor) -> str:
    return tensor.key.replace("/.ATTRIBUTES/VARIABLE_VALUE", "")


def _differs(tensor: Tensor, name: str, shape: Tuple[int, ...]) -> str:
    return (
        f"{_shown(tensor)} has shape {list(tensor.shape)} in the file, and {name} of the program "
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


def restore(
    path: Union[str, "os.PathLike[str]"],
    model: Any = None,
    optimizer: Any = None,
    partial: bool = False,
) -> Report:
    """Restores a file of Keras 2 or Keras 3 into the model and the optimizer of this program.

    The variables are found by the names of attributes and layers, which Keras 2 and Keras 3 store
    under different paths. Layers of functional and sequential models are found by their names if
    all of them fit, else by their order. From the optimizer, iterations, learning rate,
    hyperparameters, slots and the loss scale are restored. Everything is matched and read before
    the first variable is changed. One line about the result is printed.

    Args:
      path: a checkpoint of `tf.train.Checkpoint`, a directory of `tf.train.CheckpointManager`
        (the latest checkpoint), a file of `save_weights`, an `.h5` file of `save` or
        `save_weights` of Keras 2, or the directory of a SavedModel.
      model: the Keras model, or a `tf.Module`, with its variables created; or a dictionary of
        such objects and variables, by their names in the checkpoint.
      optimizer: the optimizer, wrapped in a loss-scale optimizer or not; by default the one that
        the model was compiled with. Or a dictionary of optimizers by their names.
      partial: whether values of the file without a variable, and variables without a value, are
        allowed. A shape that differs is always an error.

    Returns:
      A report with the names and shapes of what was restored, and of what was not.

    Raises:
      RestoreError: the file cannot be read, or does not fit the program; nothing was changed.
    """
    if not tf.executing_eagerly():
        raise RestoreError("restore() assigns variables, which needs eager execution.")
    stored = _read(os.fspath(path))
    plan = _Plan(stored)
    states = {number: state_of(stored, number) for number in optimizers_in(stored)}
    models, matches = _match_models(stored, model, states)
    for value, match in zip(models, matches):
        _plan_weights(plan, value, match)
    optimizers = _named_optimizers(stored, model, optimizer, states, matches)
    for owner, state in optimizers:
        _plan_optimizer(plan, ProgramOptimizer(owner), state, models, matches)
    _note_unused(plan)
    _raise_problems(plan, partial)
    values = _values(plan)
    _assign(plan, values)
    _finalize_layers(plan, models)
    report = _report(plan)
    print(report)
    return report


def _read(path: str) -> Stored:
    try:
        place = locate(path)
    except CheckpointError as error:
        raise RestoreError(str(error)) from error
    except OSError as error:
        raise RestoreError(f"{path}: {error}") from error
    if place.format == HDF5:
        return hdf5_files.read(place.path)
    if place.format in (TENSORFLOW, SAVED_MODEL):
        return object_files.read(place.path)
    raise RestoreError(
        f"{path}: a {place.format} cannot be restored in parts; use load_model() of its Keras"
    )


def _match_models(
    stored: Stored, model: Any, states: Dict[int, OptimizerState]
) -> Tuple[List[Any], List[Match]]:
    """Returns the models of the program, each with its match."""
    if model is None:
        return [], []
    of_optimizers = set().union(*(state.nodes for state in states.values()))
    children = stored.nodes[0].children
    if isinstance(model, collections.abc.Mapping):
        missing = [name for name in model if name not in children]
        if missing:
            raise RestoreError(
                f"{stored.path}: the file has no object {missing[0]!r}; it has "
                f"{', '.join(sorted(children))}"
            )
        starts = {name: [children[name]] for name in model}
        named = dict(model)
    else:
        named = {"": model}
        starts = {"": [0, *(child for child in children.values() if child not in of_optimizers)]}
    matches = []
    for name, value in named.items():
        if not weights_of(value):
            raise RestoreError(
                "the model has no variables yet. Call it on a batch, or build it, before restore()"
            )
        matches.append(best_match(stored, value, starts[name], of_optimizers))
        _bind_trained(value, matches[-1], list(states.values()))
    return list(named.values()), matches


def _bind_trained(model: Any, match: Match, states: List[OptimizerState]) -> None:
    """Matches what only the optimizer of Keras 3 lists: layers in lists are in no other place."""
    trained = trained_by(model)
    for state in states:
        if len(state.trained) != len(trained):
            continue
        bound = dict(zip(state.trained, trained))
        agree = all(
            match.variables.get(node, variable) is variable for node, variable in bound.items()
        )
        left = {node: value for node, value in bound.items() if node not in match.variables}
        if agree and _is_the_order(state, left):
            for node, variable in bound.items():
                match.bind(node, variable)


def _is_the_order(state: OptimizerState, left: Dict[int, Any]) -> bool:
    """Returns whether the names of slots, or else the shapes, show that an order is right.

    Keras 3 lists the layers of a list where they were appended, Keras 2 where the list was made.
    The name of a slot contains those of the layer and of the variable: `m_dense_1_kernel_momentum`.
    """
    slots = {slot.variable: slot.tensor.name for slot in state.slots}
    names = [names_in(name_of(variable)) for variable in left.values()]
    found = []
    for node, (layer, name) in zip(left, names):
        stem = re.escape(re.sub(r"_\d+$", "", layer))
        pattern = rf"(?:^|[_/])({stem}(?:_\d+)?)_{re.escape(name)}_[a-z]+$"
        found.append(re.search(pattern, slots.get(node, "")))
    if all(found) and len(set(names)) == len(names):
        in_file = [match.group(1) for match in found if match is not None]
        return not contradict(in_file, [layer for layer, _ in names])
    shapes = [shape_of(variable) for variable in left.values()]
    return len(set(shapes)) == len(shapes)


def _plan_weights(plan: _Plan, model: Any, match: Match) -> None:
    """Plans the variables of a model as they were matched."""
    stored = plan.stored
    for conflict in match.conflicts:
        tensor = stored.nodes[conflict.node].tensor
        assert tensor is not None
        plan.problems.append(
            _differs(tensor, name_of(conflict.variable), shape_of(conflict.variable))
        )
    for number, variable in match.variables.items():
        tensor = stored.nodes[number].tensor
        if tensor is not None:
            plan.add(tensor, variable)
    plan.initial += [
        Entry(None, None, name_of(variable), shape_of(variable))
        for variable in match.missing(model)
    ]


def _named_optimizers(
    stored: Stored,
    model: Any,
    optimizer: Any,
    states: Dict[int, OptimizerState],
    matches: List[Match],
) -> List[Tuple[Any, OptimizerState]]:
    """Returns the optimizers of the program, each with its state in the file.

    Raises:
      RestoreError: the file does not have the optimizer, or it is not known which one it is.
    """
    if isinstance(optimizer, collections.abc.Mapping):
        children = stored.nodes[0].children
        missing = [name for name in optimizer if children.get(name) not in states]
        if missing:
            raise RestoreError(f"{stored.path}: the file has no optimizer {missing[0]!r}")
        return [(value, states[children[name]]) for name, value in optimizer.items()]
    is_default = optimizer is None
    if is_default and not isinstance(model, collections.abc.Mapping):
        optimizer = getattr(model, "optimizer", None)
    if optimizer is None:
        return []
    fitting = _fitting(list(states.values()), matches)
    if len(fitting) == 1:
        return [(optimizer, fitting[0])]
    if not fitting and is_default:
        return []  # a file of weights, for a model that is compiled
    found = ", ".join(stored.path_of(state.node) for state in fitting)
    raise RestoreError(
        f"{stored.path}: the file has no optimizer. Leave out optimizer="
        if not fitting
        else f"{stored.path}: the file has several optimizers: {found}. Pass "
        "optimizer={name: optimizer}"
    )


def _fitting(states: List[OptimizerState], matches: List[Match]) -> List[OptimizerState]:
    """Returns the optimizers whose slots belong to the models; all, if there is only one."""
    if len(states) <= 1 or not matches:
        return states
    known = {number for match in matches for number in match.variables}
    return [
        state
        for state in states
        if any(slot.variable in known for slot in state.slots) or set(state.trained) & known
    ] or states


def _plan_optimizer(
    plan: _Plan,
    program: ProgramOptimizer,
    state: OptimizerState,
    models: List[Any],
    matches: List[Match],
) -> None:
    """Plans an optimizer with its slots and loss scale; it must be built for that."""
    plan.written_by = f"{plan.stored.format}, {state.layout.value}"
    trained = program.trained or trained_by(models)
    if not trained:
        raise RestoreError(
            "the variables that the optimizer trains are not known. Pass the model, or call "
            "optimizer.build(variables) before restore()"
        )
    _check_class(plan, program, state)
    owners = [_owner(plan, slot, state, trained, matches) for slot in state.slots]
    program.build(_in_order(trained, owners) if program.kind == "legacy" else trained)
    if state.iterations is not None:
        assert isinstance(state.iterations, Tensor)
        plan.add(state.iterations, program.iterations, "iterations")
    _plan_slots(plan, program, state, owners, trained)
    for name, tensor in state.singles.items():
        single = program.single(name)
        if single is not None:
            plan.add(tensor, single)
    _plan_hyperparameters(plan, program, state)
    _plan_scale(plan, program, state)
    _skip_own_variables(plan, state)


def _in_order(trained: List[Any], owners: List[Optional[Any]]) -> List[Any]:
    """Returns the trained variables for which a file has slots; all, if it has none."""
    known = {id(owner) for owner in owners if owner is not None}
    return [variable for variable in trained if id(variable) in known] or trained


def _check_class(plan: _Plan, program: ProgramOptimizer, state: OptimizerState) -> None:
    """Notes a class that has the same slots as that of the program, and another rule."""
    known = state.classes & KNOWN_CLASSES
    name = program.known_class.lower()
    if known and name and name not in known:
        plan.problems.append(
            f"the file has the optimizer {min(known)}, and the program {program.class_name}"
        )


def _owner(
    plan: _Plan,
    slot: StoredSlot,
    state: OptimizerState,
    trained: List[Any],
    matches: List[Match],
) -> Optional[Any]:
    """Returns the variable of the program that a slot belongs to."""
    if slot.variable is not None:
        for match in matches:
            if slot.variable in match.variables:
                return match.variables[slot.variable]
        return None
    named = _named_like(plan.stored, slot.tensor.name, matches)
    if named:
        return named[0] if len(named) == 1 else None  # orders of Keras 2 and Keras 3 differ
    count = sum(1 for other in state.slots if other.name == slot.name)
    if slot.number is not None and count == len(trained):
        return trained[slot.number]
    return None


def _named_like(stored: Stored, slot: str, matches: List[Match]) -> List[Any]:
    """Returns the variables whose name ends that of a slot: `Adam/m/dense/kernel`."""
    found = collections.defaultdict(list)
    for match in matches:
        for node, variable in match.variables.items():
            name = getattr(stored.nodes[node].tensor, "name", "")
            if name and slot.endswith("/" + name):
                found[len(name)].append(variable)
    return found[max(found)] if found else []


def _plan_slots(
    plan: _Plan,
    program: ProgramOptimizer,
    state: OptimizerState,
    owners: List[Optional[Any]],
    trained: List[Any],
) -> None:
    """Plans the slots of an optimizer; `owners` are the variables that those of the file are of."""
    found: Set[int] = set()
    with_slots: Set[int] = {id(owner) for owner in owners if owner is not None}
    for slot, owner in zip(state.slots, owners):
        target = None
        if owner is not None:
            target = program.slot(program.resolve(slot.name), owner)
        if target is not None:
            found.add(id(target))
            name = f"{program.resolve(slot.name)} of {name_of(owner)}"
            plan.add(slot.tensor, target, name)
        elif owner is not None and _is_unread(program, slot):
            plan.skip(slot.tensor)
    in_file = {program.resolve(name) for name in state.slot_names}
    for name, variable, target in program.slots(trained):
        if id(target) in found:
            continue
        entry = Entry(None, None, f"{name} of {name_of(variable)}", shape_of(target))
        # Keras 2 creates slots at the first step with a gradient for the variable.
        is_new = id(variable) not in with_slots and (name in in_file)
        (plan.expected if is_new else plan.initial).append(entry)


def _is_unread(program: ProgramOptimizer, slot: StoredSlot) -> bool:
    """Returns whether it is the momentum of plain SGD, which Keras 2 saves and never reads."""
    if program.known_class != "SGD" or program.resolve(slot.name) != "momentum":
        return False
    momentum = getattr(program.inner, "momentum", 0)
    return isinstance(momentum, (int, float)) and momentum == 0


def _plan_hyperparameters(plan: _Plan, program: ProgramOptimizer, state: OptimizerState) -> None:
    """Plans the hyperparameters that the file has, in variables or in a configuration."""
    tensors = {
        name: value
        for name, value in state.hyperparameters.items()
        if isinstance(value, Tensor) and not value.shape
    }
    values = plan.stored.read(list(tensors.values()))
    numbers: Dict[str, Any] = {**plan.stored.config, **dict(zip(tensors, values))}
    for name, value in numbers.items():
        tensor = tensors.get(name)
        try:
            assignment = program.hyperparameter(name, float(value))
        except RestoreError as error:
            plan.problems.append(str(error))
            continue
        if tensor is not None:
            plan.used.add(tensor.key)
        if assignment is None:
            continue
        variable, read, assign = assignment
        key = tensor.key if tensor is not None else f"configuration/{name}"
        plan.planned.append(_Planned(None, key, variable, name, assign, read, float(value)))


def _plan_scale(plan: _Plan, program: ProgramOptimizer, state: OptimizerState) -> None:
    """Plans the loss scale and its counter; without them in the file, they stay as they are."""
    scale, good_steps = program.scale()
    if scale is None:
        return
    if state.scale is not None and state.good_steps is not None:
        plan.add(state.scale, scale, "loss scale")
        plan.add(state.good_steps, good_steps, "good steps")
        return
    entries = [
        Entry(None, None, name, shape_of(variable))
        for name, variable in (("loss scale", scale), ("good steps", good_steps))
    ]
    if not plan.stored.lacks_scale:
        plan.initial += entries
        return
    plan.expected += entries
    plan.notes.append("files of this format have no loss scale, which stays at its initial value")


def _skip_own_variables(plan: _Plan, state: OptimizerState) -> None:
    """Takes note of what the wrapper of Keras 3 saves and never uses."""
    node = plan.stored.nodes[state.node]
    if "inner_optimizer" not in node.children:
        names: Tuple[str, ...] = ("_current_learning_rate",)
    else:
        names = ("_iterations", "iterations", "_learning_rate")
    for name in names:
        child = node.children.get(name)
        tensor = None if child is None else plan.stored.nodes[child].tensor
        if tensor is not None:
            plan.skip(tensor)


def _note_unused(plan: _Plan) -> None:
    """Notes each value of the file that nothing takes, but for the program's own bookkeeping."""
    stored = plan.stored
    for number, node in enumerate(stored.nodes):
        tensor = node.tensor
        if tensor is None or tensor.key in plan.used:
            continue
        if stored.path_of(number) == "save_counter" or "keras_api/metrics" in tensor.key:
            continue
        plan.used.add(tensor.key)
        plan.unused.append(Entry(_shown(tensor), tensor.shape, None, None))
    plan.unused += [Entry(_shown(tensor), tensor.shape, None, None) for tensor in stored.others]


def _raise_problems(plan: _Plan, partial: bool) -> None:
    """Raises a RestoreError that names the first difference, if the plan cannot be carried out."""
    start = f"{plan.stored.path}: nothing was restored"
    if plan.problems:
        raise RestoreError(f"{start}: {plan.problems[0]}")
    if not plan.planned:
        raise RestoreError(f"{start}: no value of the file fits the program")
    if partial:
        return
    unused = [entry for entry in plan.unused if not _is_of_a_seed(entry)]
    if unused:
        entry = unused[0]
        raise RestoreError(
            f"{start}: the program has no variable for {entry.in_file} of shape "
            f"{list(entry.file_shape or ())}{_more(unused)}. Pass what it belongs to (model=, "
            "optimizer=), or partial=True"
        )
    if plan.initial:
        entry = plan.initial[0]
        raise RestoreError(
            f"{start}: the file has no value for {entry.in_program} of shape "
            f"{list(entry.program_shape or ())}{_more(plan.initial)}. Use the model and optimizer "
            "that the file was saved with, or partial=True"
        )


def _is_of_a_seed(entry: Entry) -> bool:
    return any(word in str(entry.in_file) for word in _SEEDS)


def _more(entries: List[Entry]) -> str:
    return f", and {len(entries) - 1} more" if len(entries) > 1 else ""


def _values(plan: _Plan) -> List[Any]:
    tensors = [planned.source for planned in plan.planned if planned.source is not None]
    read = iter(plan.stored.read(tensors))
    return [planned.value if planned.source is None else next(read) for planned in plan.planned]


def _assign(plan: _Plan, values: List[Any]) -> None:
    """Assigns all values; if one cannot be assigned, those before it get their old values back."""
    done: List[Tuple[_Planned, Any]] = []
    try:
        for planned, value in zip(plan.planned, values):
            done.append((planned, planned.read()))
            planned.assign(value)
    except Exception:
        for planned, before in done:
            planned.assign(before)
        raise


def _finalize_layers(plan: _Plan, models: List[Any]) -> None:
    """Lets `Normalization` layers compute what they use from the restored mean and variance."""
    restored = {id(planned.variable) for planned in plan.planned}
    for layer in layers_below(models):
        finalize = getattr(layer, "finalize_state", None)
        if callable(finalize) and any(id(own) in restored for own in direct_variables(layer)):
            finalize()


def _report(plan: _Plan) -> Report:
    """Returns the plan as what has been done."""
    restored = tuple(
        Entry(
            _shown(planned.source) if planned.source else planned.path,
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
