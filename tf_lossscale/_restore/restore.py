"""`tfls.checkpoints.restore`: a file of either Keras, for the model and optimizer of a program.

Everything is matched and read before the first variable is assigned.
"""

import collections.abc
import os
import re
import zipfile
from typing import Any, Dict, List, Optional, Tuple, Union

from tf_lossscale._checkpoint import keras_files
from tf_lossscale._checkpoint.locate import HDF5, SAVED_MODEL, TENSORFLOW, CheckpointError, locate
from tf_lossscale._restore import hdf5_files, object_files, saver_files
from tf_lossscale._restore.matching import Match, best_match, contradict, names_in
from tf_lossscale._restore.optimizer_plan import note_absent, plan_optimizer
from tf_lossscale._restore.optimizer_state import OptimizerState, optimizers_in, state_of
from tf_lossscale._restore.optimizers import ProgramOptimizer
from tf_lossscale._restore.pairing import Absent, pair_optimizers
from tf_lossscale._restore.parts import CHECKPOINTS, node_at, parts_of_checkpoint, parts_of_mapping
from tf_lossscale._restore.plan import (
    Plan,
    assign,
    differs,
    note_unused,
    raise_problems,
    read_values,
    report_of,
)
from tf_lossscale._restore.program import (
    direct_variables,
    layers_below,
    name_of,
    shape_of,
    trained_by,
    weights_of,
)
from tf_lossscale._restore.report import Entry, Report
from tf_lossscale._restore.stored import RestoreError, Stored
from tf_lossscale._restore.trained import Trained, Trainers
from tf_lossscale._types import Array, Model, Optimizer, Variable
from tf_lossscale._versions.base import tf

_Optimizers = List[Tuple[ProgramOptimizer, OptimizerState, Trained]]


def restore(
    path: Union[str, "os.PathLike[str]"],
    model: Model = None,
    optimizer: Optimizer = None,
    partial: bool = False,
    names: Optional[saver_files.Names] = None,
) -> Report:
    """Restores a file of Keras 2 or Keras 3 into the model and the optimizer of this program.

    Stands in for `tf.train.Checkpoint.restore` and `Model.load_weights` where the other Keras wrote
    the file, which stores the same variables under other paths. The steps are:

    1. Variables of the model are found by the names of attributes and layers. Layers of functional
       and sequential models are found by their names if all of them fit, else by their order.
    2. Of the optimizer, iterations, learning rate, hyperparameters, slots and the loss scale with
       its counter are found. A learning rate of the program that is a schedule stays.
    3. Shapes must be equal, and dtypes such that no value is rounded.
    4. All values are read. Only then, the first variable is assigned; if one cannot be assigned,
       those before it get their old values back.

    One line about the result is printed.

    Args:
      path: a checkpoint of `tf.train.Checkpoint`, a directory of `tf.train.CheckpointManager`
        (the latest checkpoint), a file of `save_weights`, an `.h5` file of `save` or
        `save_weights` of Keras 2, the directory of a SavedModel, or a file of `tf.train.Saver`.
      model: the Keras model, or a `tf.Module`, with its variables created; or a dictionary of
        such objects, loss scales and variables, by their paths in the checkpoint, as in
        `trainer/net`; or a `tf.train.Checkpoint` of them, with the optimizers, also in modules,
        lists and dictionaries.
      optimizer: the optimizer, wrapped in a loss-scale optimizer or not, and built or not; by
        default the one that the model was compiled with. Or a dictionary of optimizers by their
        paths. One that is not built yet is built for the variables that have its slots in the
        file.
      partial: whether values of the file without a variable, and variables without a value, are
        allowed; also an optimizer that the file has none for, which then starts again. A shape
        that differs is always an error.
      names: for files of `tf.train.Saver`, the variables of the program by their names in the
        file; or instead of a variable its path in the model. Slots, powers of beta, `global_step`
        and the loss scale are found by the names that TensorFlow 1 gives them.

    Returns:
      A `Report` with the names and shapes of what was restored, and of what was not.

    Raises:
      RestoreError: the file cannot be read, or does not fit the program; nothing was changed.

    Examples:
      >>> import os, tempfile
      >>> import tensorflow as tf
      >>> import tf_lossscale as tfls
      >>> prefix = os.path.join(tempfile.mkdtemp(), "c")
      >>> path = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0])).save(prefix)
      >>> variable = tf.Variable([0.0, 0.0])
      >>> tfls.checkpoints.restore(path, {"v": variable}).unused  # doctest: +ELLIPSIS
      tf-lossscale: restored 1 values of ...
      ()
      >>> variable.numpy().tolist()
      [1.0, 2.0]
    """
    if not tf.executing_eagerly():
        raise RestoreError("restore() assigns variables, which needs eager execution.")
    stored = _read(_existing(path), names)
    model, optimizer = _taken_apart(stored, model, optimizer)
    states = {number: state_of(stored, number) for number in optimizers_in(stored)}
    stored.of_optimizers = set().union(*(state.nodes for state in states.values()))
    models, matches = _match_models(stored, model, states)
    pairing = pair_optimizers(stored, model, optimizer, states, matches)
    trainers = Trainers(stored, models, matches, list(states.values()), pairing.found)
    optimizers = [_paired(trainers, owner, state) for owner, state in pairing.found]
    values = _rehearse(stored, models, matches, optimizers, pairing.absent, partial)
    plan = _plan(stored, models, matches, optimizers, pairing.absent)
    raise_problems(plan, partial)
    assign(plan, values)
    for program, _, _ in optimizers:
        program.forget_other_restore()
    _finalize_layers(plan, models)
    report = report_of(plan)
    print(report)
    return report


def _existing(path: "Union[str, os.PathLike[str], None]") -> str:
    if path is None:
        raise RestoreError(
            "the path is None, so tf.train.latest_checkpoint() or a manager found no checkpoint. "
            "Call restore() only if there is one"
        )
    return os.fspath(path)


def _taken_apart(
    stored: Stored, model: Model, optimizer: Optimizer
) -> Tuple[Model, Optional[Optimizer]]:
    """Returns models and optimizers by their paths in the file, where the program names them."""
    has_paths = not isinstance(stored, saver_files.SaverFile)
    if isinstance(model, CHECKPOINTS):
        parts = parts_of_checkpoint(stored, model)
    elif isinstance(model, collections.abc.Mapping) and has_paths:
        parts = parts_of_mapping(stored, model)
    else:
        return model, optimizer
    if isinstance(optimizer, collections.abc.Mapping):
        return parts.models, {**parts.optimizers, **optimizer}
    return parts.models, (parts.optimizers or None) if optimizer is None else optimizer


def _paired(
    trainers: Trainers, optimizer: Optimizer, state: OptimizerState
) -> Tuple[ProgramOptimizer, OptimizerState, Trained]:
    program = ProgramOptimizer(optimizer)
    return program, state, trainers.trained_by(program, state)


def _rehearse(
    stored: Stored,
    models: List[Model],
    matches: List[Match],
    optimizers: _Optimizers,
    absent: List[Absent],
    partial: bool,
) -> Dict[str, Array]:
    """Reads all values, after a plan with copies of the optimizers that are not built yet.

    Only a built optimizer shows its slots, and a restore that is refused must not build it.

    Raises:
      RestoreError: the file does not fit the program, or is damaged.
    """
    copies = [(program.as_built_copy(), state, trained) for program, state, trained in optimizers]
    plan = _plan(stored, models, matches, copies, absent)
    raise_problems(plan, partial)
    return read_values(plan)


def _plan(
    stored: Stored,
    models: List[Model],
    matches: List[Match],
    optimizers: _Optimizers,
    absent: List[Absent],
) -> Plan:
    """Plans all values of a file; builds the optimizers."""
    plan = Plan(stored)
    for value, match in zip(models, matches):
        _plan_weights(plan, value, match)
    for program, state, trained in optimizers:
        plan_optimizer(plan, program, state, trained)
    for own in absent:
        note_absent(plan, own, models)
    note_unused(plan)
    return plan


def _read(path: str, names: Optional[saver_files.Names]) -> Stored:
    """Reads what a file holds, but for its values, in the way of its format."""
    try:
        place = locate(path)
    except CheckpointError as error:
        raise RestoreError(str(error)) from error
    except OSError as error:
        raise RestoreError(f"{path}: {error}") from error
    if names is not None and place.format != TENSORFLOW:
        raise RestoreError(
            f"{path}: names= is for files of tf.train.Saver; this is an {place.format}"
        )
    if place.format == HDF5:
        return hdf5_files.read(place.path)
    if place.format in (TENSORFLOW, SAVED_MODEL):
        return object_files.read(place.path, names)
    raise _of_archive(path)


def _of_archive(path: str) -> RestoreError:
    """Returns the error for a `.keras` file, which says what reads it."""
    try:
        version = keras_files.version_in_archive(path)
    except (CheckpointError, OSError, ValueError, RuntimeError, zipfile.BadZipFile) as error:
        return RestoreError(str(error) if path in str(error) else f"{path}: {error}")
    if version.startswith("2."):
        return RestoreError(
            f"{path}: is a .keras file of Keras {version}. Load it where it was saved, or with "
            "TF_USE_LEGACY_KERAS=1, and save a checkpoint there: "
            "tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(prefix)"
        )
    return RestoreError(
        f"{path}: is a .keras file of Keras 3, which restores it itself, with the optimizer that "
        f"the model is compiled with: model = keras.models.load_model({path!r}). For Keras 2, load "
        "it on Keras 3, and save a checkpoint there: "
        "tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(prefix)"
    )


def _match_models(
    stored: Stored, model: Model, states: Dict[int, OptimizerState]
) -> Tuple[List[Variable], List[Match]]:
    """Returns the models of the program, each with its match."""
    if isinstance(stored, saver_files.SaverFile):
        return saver_files.match(stored, model)
    if model is None:
        return [], []
    of_optimizers = stored.of_optimizers
    if isinstance(model, collections.abc.Mapping):
        named = dict(model)
        starts = _starts(stored, named)
    else:
        children = stored.nodes[0].children.values()
        named = {"": model}
        starts = {"": [0, *(child for child in children if child not in of_optimizers)]}
    matches = []
    for name, value in named.items():
        if not weights_of(value):
            raise _without_variables(value)
        matches.append(best_match(stored, value, starts[name], of_optimizers))
        _bind_trained(value, matches[-1], list(states.values()))
    return list(named.values()), matches


def _starts(stored: Stored, named: Dict[str, Any]) -> Dict[str, List[int]]:
    """Returns the nodes of the models that the program passes by their names or paths."""
    nodes = {name: node_at(stored, name) for name in named}
    missing = [name for name, node in nodes.items() if node is None]
    if missing:
        raise RestoreError(
            f"{stored.path}: the file has no object {missing[0]!r}; it has "
            f"{', '.join(sorted(stored.nodes[0].children))}"
        )
    return {name: [node] for name, node in nodes.items() if node is not None}


def _without_variables(model: Model) -> RestoreError:
    """Returns the error for a model whose variables are not created yet, with what creates them."""
    if getattr(model, "built", False):
        return RestoreError(
            "the model is built, and has no variables yet, because build() of Keras 3 does not "
            "create those of a subclassed model. Call it on a batch before restore()"
        )
    return RestoreError(
        "the model has no variables yet. Call it on a batch, or build it, before restore()"
    )


def _bind_trained(model: Model, match: Match, states: List[OptimizerState]) -> None:
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
    The name of a slot contains the names of layer and variable: `m_dense_1_kernel_momentum`.
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


def _plan_weights(plan: Plan, model: Model, match: Match) -> None:
    """Plans the variables of a model as they were matched."""
    stored = plan.stored
    for conflict in match.conflicts:
        tensor = stored.nodes[conflict.node].tensor
        assert tensor is not None
        plan.problems.append(
            differs(tensor, name_of(conflict.variable), shape_of(conflict.variable))
        )
    for number, variable in match.variables.items():
        tensor = stored.nodes[number].tensor
        if tensor is not None:
            plan.add(tensor, variable)
    plan.initial += [
        Entry(None, None, name_of(variable), shape_of(variable))
        for variable in match.missing(model)
    ]


def _finalize_layers(plan: Plan, models: List[Model]) -> None:
    """Lets `Normalization` layers compute what they use from the restored mean and variance."""
    restored = {id(planned.variable) for planned in plan.planned}
    for layer in layers_below(models):
        finalize = getattr(layer, "finalize_state", None)
        if callable(finalize) and any(id(own) in restored for own in direct_variables(layer)):
            finalize()
