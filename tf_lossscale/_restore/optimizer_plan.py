"""Plans what an optimizer of the program gets: iterations, slots, hyperparameters, loss scale."""

from typing import List, Optional, Sequence, Set, Tuple

from tf_lossscale._checkpoint.layouts import Layout
from tf_lossscale._keras.optimizer_classes import other_rules
from tf_lossscale._restore import saver_files
from tf_lossscale._restore.hyperparameters import plan_hyperparameters
from tf_lossscale._restore.optimizer_state import OptimizerState
from tf_lossscale._restore.optimizers import ACCUMULATED, ProgramOptimizer, is_optimizer
from tf_lossscale._restore.owners import Candidates, narrowed, owners_of
from tf_lossscale._restore.pairing import Absent
from tf_lossscale._restore.plan import Plan
from tf_lossscale._restore.program import name_of, shape_of, trained_by
from tf_lossscale._restore.report import Entry
from tf_lossscale._restore.slots import KNOWN_CLASSES
from tf_lossscale._restore.stored import RestoreError, Tensor
from tf_lossscale._restore.trained import Trained
from tf_lossscale._types import Model, Variable
from tf_lossscale._versions.keras import KerasKind

_ALIKE_ON_KERAS_2 = (("Adam", "AdamW", "Adamax"), ("Adam", "Lamb"))
_ALIKE = {
    Layout.NEW: (("Adam", "AdamW"), ("SGD", "Lion"), ("Adam", "Nadam"), ("Adam", "Lamb")),
    Layout.KERAS_3: (("Adam", "AdamW", "Lamb"), ("SGD", "Lion")),
}
"""Classes whose slots have the same names, by the layout of the file."""


def plan_optimizer(
    plan: Plan,
    program: ProgramOptimizer,
    state: OptimizerState,
    known: Trained,
) -> None:
    """Plans an optimizer with its slots and loss scale; it must be built for that."""
    plan.written_by = f"{plan.stored.format}, {state.layout.value}"
    if known.problem is not None:
        plan.problems.append(known.problem)
        return
    trained = known.variables
    if not trained:
        raise RestoreError(
            "the variables that the optimizer trains are not known. Pass the model, or call "
            "optimizer.build(variables) before restore()"
        )
    _check_class(plan, program, state, trained)
    owners = owners_of(state, known.candidates, trained, list(known.old))
    plan.notes += known.notes
    _note_unknown_order(plan, known.candidates, owners, trained)
    program.build(_in_order(trained, owners) if program.kind is KerasKind.LEGACY else trained)
    if state.iterations is not None:
        _plan_iterations(plan, program, state)
    saver_files.plan_iterations(plan, program)
    _plan_slots(plan, program, state, owners, trained)
    _plan_singles(plan, program, state)
    plan_hyperparameters(plan, program, state)
    _plan_scale(plan, program, state)
    _skip_own_variables(plan, state)


def note_absent(plan: Plan, absent: Absent, models: List[Model]) -> None:
    """Notes an optimizer that the file has no state for, and the variables that it has by now.

    It is not built for that. Its hyperparameters are those of the program in any case.
    """
    plan.absent.append(absent.refusal)
    plan.notes.append(absent.note)
    if not is_optimizer(absent.optimizer):
        return
    program = ProgramOptimizer(absent.optimizer)
    plan.initial.append(Entry(None, None, "iterations", ()))
    if program.has_slots:
        trained = program.trained or trained_by(models)
        plan.initial += [
            Entry(None, None, f"{name} of {name_of(variable)}", shape_of(slot))
            for name, variable, slot in program.slots(trained)
        ]
    plan.initial += _entries_of_scale(program)


def _in_order(trained: List[Variable], owners: List[Optional[Variable]]) -> List[Variable]:
    """Returns the trained variables for which a file has slots; all, if it has none."""
    known = {id(owner) for owner in owners if owner is not None}
    return [variable for variable in trained if id(variable) in known] or trained


def _check_class(
    plan: Plan, program: ProgramOptimizer, state: OptimizerState, trained: List[Variable]
) -> None:
    """Notes a class that has the same slots as the program's class, but another rule."""
    known = state.classes & KNOWN_CLASSES
    name = program.known_class
    if known and name and name.lower() not in known:
        plan.problems.append(
            f"the file has the optimizer {min(known)}, and the program {program.class_name}"
        )
    if _is_of_v2_and_of_keras_3(program, state):
        is_of_v1 = isinstance(plan.stored, saver_files.SaverFile)
        plan.notes += other_rules(program.inner, trained, is_of_v1)
    if name == "Nadam" and program.kind is KerasKind.LEGACY and state.layout is Layout.KERAS_3:
        plan.problems.append("the optimizer Nadam of Keras 3 is another one than legacy Nadam")
    if name == "Nadam" and program.kind is KerasKind.NEW:
        plan.notes.append(
            "Nadam of Keras 2 counts its steps in Python, so it does not go on as Keras 3 would"
        )
    alike = _alike(name, state)
    if not known and state.slots and alike:
        plan.notes.append(f"the file does not say whether {' or '.join(alike)} wrote it")


def _is_of_v2_and_of_keras_3(program: ProgramOptimizer, state: OptimizerState) -> bool:
    """Returns whether one of file and program has `OptimizerV2`, and the other one Keras 3."""
    if program.kind is KerasKind.LEGACY:
        return state.layout is Layout.KERAS_3
    return program.kind is KerasKind.KERAS_3 and state.layout.is_of_optimizer_v2


def _alike(name: str, state: OptimizerState) -> Sequence[str]:
    """Returns the classes, of which one has this name, that a file shows only by their names."""
    groups = _ALIKE.get(state.layout, _ALIKE_ON_KERAS_2)
    return next((classes for classes in groups if name in classes), ())


def _note_unknown_order(
    plan: Plan, candidates: Candidates, owners: List[Optional[Variable]], trained: List[Variable]
) -> None:
    """Notes a problem if only an order that the program has not shown would place slots."""
    lost = [
        fitting
        for fitting, owner in zip(narrowed(candidates, trained), owners)
        if owner is None and fitting
    ]
    if lost:
        plan.problems.append(
            "the slots of the optimizer are listed in the order of the variables that the old "
            "program trained, of which several have the same name and shape. Call "
            "optimizer.build(variables) in that order before restore()"
        )


def _plan_iterations(plan: Plan, program: ProgramOptimizer, state: OptimizerState) -> None:
    """Plans the iterations, which an optimizer that accumulates gradients counts one by one.

    If the old program did not accumulate, each of its iterations was a step of the optimizer.
    """
    assert isinstance(state.iterations, Tensor)
    factor = program.steps_of_accumulation if ACCUMULATED not in state.slot_names else 1
    plan.add(state.iterations, program.iterations, "iterations", factor)


def _plan_singles(plan: Plan, program: ProgramOptimizer, state: OptimizerState) -> None:
    """Plans what Nadam has once, which a file of another class does not have."""
    for name, tensor in state.singles.items():
        single = program.single(name)
        if single is not None:
            plan.add(tensor, single)
    missing = program.single("_u_product")
    if missing is not None and not state.singles and state.slots:
        plan.initial.append(Entry(None, None, "product of momentums", shape_of(missing)))


def _plan_slots(
    plan: Plan,
    program: ProgramOptimizer,
    state: OptimizerState,
    owners: List[Optional[Variable]],
    trained: List[Variable],
) -> None:
    """Plans the slots of an optimizer; `owners` are the variables to which its slots belong."""
    found: Set[int] = set()
    unread: List[Tensor] = []
    with_slots: Set[int] = {id(owner) for owner in owners if owner is not None}
    for slot, owner in zip(state.slots, owners):
        target = None
        if owner is not None:
            target = program.slot(program.resolve(slot.name), owner)
        if target is not None:
            found.add(id(target))
            name = f"{program.resolve(slot.name)} of {name_of(owner)}"
            plan.add(slot.tensor, target, name)
        if owner is not None and _is_unread(program, slot.name):
            unread.append(slot.tensor)
    _plan_unread(plan, state, unread)
    _note_slots_without_value(plan, program, state, found, with_slots, trained)


def _note_slots_without_value(
    plan: Plan,
    program: ProgramOptimizer,
    state: OptimizerState,
    found: Set[int],
    with_slots: Set[int],
    trained: List[Variable],
) -> None:
    """Notes the slots that keep their initial value: those whose `id` is not in `found`."""
    in_file = {program.resolve(name) for name in state.slot_names}
    is_before_first_step = _is_before_first_step(plan, state)
    for name, variable, target in program.slots(trained):
        if id(target) in found:
            continue
        entry = Entry(None, None, f"{name} of {name_of(variable)}", shape_of(target))
        # Keras 2 creates slots at the first step with a gradient for the variable.
        is_new = id(variable) not in with_slots and (name in in_file)
        is_expected = is_new or name == ACCUMULATED or _is_unread(program, name)
        is_expected = is_expected or is_before_first_step
        (plan.expected if is_expected else plan.initial).append(entry)


def _is_before_first_step(plan: Plan, state: OptimizerState) -> bool:
    """Returns whether the old program saved its optimizer before it had slots."""
    if state.slots or not isinstance(state.iterations, Tensor):
        return False
    (iterations,) = plan.stored.read([state.iterations])
    return int(iterations) == 0


def _plan_unread(plan: Plan, state: OptimizerState, momentums: List[Tensor]) -> None:
    """Takes note of the slots of an SGD, of which the program's has no momentum.

    A legacy one has them only with a momentum, which the file has, too. A new-style one writes them
    in any case, and does not store the momentum. One of Keras 3 has them only with a momentum.
    """
    is_known = "momentum" in {**state.hyperparameters, **plan.stored.config}
    if momentums and state.layout is Layout.KERAS_3 and not is_known:
        plan.absent.append(
            "the file has the slots of an SGD with a momentum, and the program has none. Pass "
            "momentum= to the optimizer, or partial=True"
        )
        plan.notes.append("the file has the slots of an SGD with a momentum, which are not used")
        return
    if momentums and not is_known:
        plan.notes.append("the file does not show whether its SGD had a momentum; here, it is 0")
    for tensor in momentums:
        plan.skip(tensor)


def _is_unread(program: ProgramOptimizer, slot: str) -> bool:
    """Returns whether it is the momentum of plain SGD, which Keras 2 saves and never reads."""
    if program.known_class != "SGD" or program.resolve(slot) != "momentum":
        return False
    momentum = getattr(program.inner, "momentum", 0)
    return isinstance(momentum, (int, float)) and momentum == 0


def _plan_scale(plan: Plan, program: ProgramOptimizer, state: OptimizerState) -> None:
    """Plans the loss scale and its counter; without them in the file, they stay as they are."""
    scale, good_steps = program.scale()
    if scale is None:
        if state.scale is not None and program.outer is program.inner:
            plan.absent.append(
                f"the file has the loss scale of {plan.stored.path_of(state.node)}, and "
                f"{program.class_name} of the program none. Pass the loss-scale optimizer instead "
                "of the optimizer in it, or partial=True"
            )
        return
    if state.scale is not None and state.good_steps is not None:
        plan.add(state.scale, scale, "loss scale")
        plan.add(state.good_steps, good_steps, "good steps")
        return
    entries = _entries_of_scale(program)
    if not plan.stored.lacks_scale:
        plan.initial += entries
        return
    plan.expected += entries
    plan.notes.append("files of this format have no loss scale, which stays at its initial value")


def _entries_of_scale(program: ProgramOptimizer) -> List[Entry]:
    """Returns what a report has for the loss scale and its counter, if these stay as they are."""
    variables = zip(("loss scale", "good steps"), program.scale())
    return [
        Entry(None, None, name, shape_of(variable))
        for name, variable in variables
        if variable is not None
    ]


def _skip_own_variables(plan: Plan, state: OptimizerState) -> None:
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
