"""Which variables each optimizer of the program trains, as far as a file shows it.

Keras 3, and the new-style optimizers of Keras 2, list slots in the order of the variables that the
optimizer was built for. If it is built for other variables, or in another order, the next
checkpoint has the slots in places where TensorFlow's own `restore` does not look for them: it gives
a variable the slots of another one, or leaves them at 0 if the shapes differ, and raises nothing.
So an optimizer is built only if the file shows the order, or if there is one that the program must
have: that of the one model that the optimizer trains.
"""

import collections
import itertools
from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from tf_lossscale._checkpoint.layouts import Layout
from tf_lossscale._restore.matching import Match
from tf_lossscale._restore.optimizer_state import OptimizerState
from tf_lossscale._restore.optimizers import ProgramOptimizer
from tf_lossscale._restore.program import distinct, is_variable, name_of, shape_of, trained_by
from tf_lossscale._restore.stored import Stored
from tf_lossscale._types import Model, Optimizer, Variable
from tf_lossscale._versions.keras import keras_package_of

_LISTS_SLOTS = (Layout.NEW, Layout.KERAS_3)
"""The layouts that show the order of the variables."""


class Trained(NamedTuple):
    """The variables that an optimizer trains, or why they are not known.

    Attributes:
      variables: those for which it is built, in this order.
      problem: why they are not known.
      note: what the order relies on.
    """

    variables: List[Variable]
    problem: Optional[str] = None
    note: Optional[str] = None


class Trainers:
    """The optimizers of a file, and the variables of the program for which each one has slots."""

    def __init__(
        self,
        stored: Stored,
        models: Sequence[Model],
        matches: Sequence[Match],
        states: Sequence[OptimizerState],
    ) -> None:
        self._stored = stored
        self._all = trained_by(list(models))
        self._models = [model for model in models if trained_by(model)]
        self._claims = {
            state.node: _with_slots(stored, state, self._models, matches) for state in states
        }

    def trained_by(self, program: ProgramOptimizer, state: OptimizerState) -> Trained:
        """Returns the variables for which to build an optimizer; those of one that is built.

        They are those for which the file has slots, and those of its models for which none can have
        any: Keras 2 creates slots at the first step with a gradient for the variable, Keras 3 for
        all variables at once.
        """
        if program.trained or not self._all:
            return Trained(program.trained or [])
        if program.makes_slots_one_by_one:  # whatever the others are, each belongs to a variable
            return Trained(self._all)
        if program.has_index:
            known = [variable for variable in self._all if program.has_variable(variable)]
            return Trained(known or self._all)
        if self._claims[state.node]:
            return self._of_slots(program.outer, state)
        return self._without_slots(program.outer, state)

    def _of_slots(self, optimizer: Optimizer, state: OptimizerState) -> Trained:
        """Returns the variables of the models for which an optimizer has slots.

        They are in the order of the file, or of the one model.
        """
        claimed = [id(variable) for variable in self._claims[state.node]]
        compiled = self._compiled_with(optimizer)
        parts: Dict[Tuple[int, ...], List[Variable]] = {}
        for model in compiled or self._models:
            variables = trained_by(model)
            if {id(variable) for variable in variables}.isdisjoint(claimed):
                continue
            part = self._part(variables, state, is_whole=bool(compiled))
            if part.problem is not None:
                return part
            parts[tuple(map(id, part.variables))] = part.variables
        variables = distinct(itertools.chain.from_iterable(parts.values()))
        if state.layout in _LISTS_SLOTS:
            numbers = {variable: number for number, variable in enumerate(claimed)}
            variables.sort(key=lambda variable: numbers.get(id(variable), len(numbers)))
        elif len(parts) > 1:
            return Trained([], self._unknown_order(state))
        elif len(variables) > 1 and not all(map(_has_steps_of_keras, compiled or [None])):
            return Trained(variables, note=self._note_of_order(state))
        return Trained(variables)

    def _note_of_order(self, state: OptimizerState) -> str:
        return (
            f"{self._stored.path_of(state.node)} was built for the variables in the order of the "
            "model; if apply_gradients() gets another order, call optimizer.build(variables) with "
            "that one before restore(): TensorFlow's restore of the next checkpoint relies on it"
        )

    def _compiled_with(self, optimizer: Optimizer) -> List[Model]:
        """Returns the models that were compiled with an optimizer: `fit` gives it all variables."""
        return [model for model in self._models if getattr(model, "optimizer", None) is optimizer]

    def _part(self, variables: List[Variable], state: OptimizerState, is_whole: bool) -> Trained:
        """Returns those variables of a model that an optimizer with slots for some of them trains.

        Whether it trains those without slots must be known: because it trains the model as a whole,
        or because the file lists the slots, all optimizers have some, and only this one has any for
        the model.
        """
        claimed = {id(variable) for variable in self._claims[state.node]}
        of_others = self._claimed_by_others(state)
        part = [own for own in variables if id(own) in claimed or id(own) not in of_others]
        left = [own for own in part if id(own) not in claimed]
        is_shared = any(id(own) in of_others for own in variables)
        is_listed = state.layout in _LISTS_SLOTS and all(self._claims.values())
        if left and (is_shared or not (is_whole or is_listed)):
            return Trained([], self._unknown(state, name_of(left[0])))
        return Trained(part)

    def _without_slots(self, optimizer: Optimizer, state: OptimizerState) -> Trained:
        """Returns the variables of the one model that an optimizer without slots can train."""
        models = [model for model in self._models if not is_variable(model)] or self._models
        if len(self._claims) == 1:
            return Trained(trained_by(models))
        compiled = self._compiled_with(optimizer)
        if compiled:
            return Trained(trained_by(compiled))
        of_others = self._claimed_by_others(state)
        left = [
            model
            for model in models
            if all(id(variable) not in of_others for variable in trained_by(model))
        ]
        without_slots = [claimed for claimed in self._claims.values() if not claimed]
        if len(left) == len(without_slots) == 1:
            return Trained(trained_by(left))
        return Trained([], self._unknown(state, name_of(self._all[0])))

    def _claimed_by_others(self, state: OptimizerState) -> Set[int]:
        return {
            id(variable)
            for node, variables in self._claims.items()
            if node != state.node
            for variable in variables
        }

    def _unknown(self, state: OptimizerState, name: str) -> str:
        return (
            f"the file does not show whether {self._stored.path_of(state.node)} trains {name}. "
            "Call optimizer.build(model.trainable_variables) with the model of each optimizer "
            "before restore()"
        )

    def _unknown_order(self, state: OptimizerState) -> str:
        return (
            f"the file does not show in which order {self._stored.path_of(state.node)} trains "
            "several models or variables. Call optimizer.build(variables) with the variables in "
            "the order of apply_gradients() before restore()"
        )


def _has_steps_of_keras(model: Model) -> bool:
    """Returns whether a step of a model is Keras's, which trains the variables in their order."""
    step = getattr(type(model), "train_step", None)
    return model is not None and (step is None or keras_package_of(step.__module__) is not None)


def _with_slots(
    stored: Stored, state: OptimizerState, models: List[Model], matches: Sequence[Match]
) -> List[Variable]:
    """Returns the variables for which an optimizer has slots in the file, in the order there."""
    nodes = state.trained or [slot.variable for slot in state.slots if slot.variable is not None]
    known = {node: own for match in matches for node, own in match.variables.items()}
    if nodes:
        return distinct(known[node] for node in nodes if node in known)
    candidates = [named_like(stored, slot.tensor.name, matches) for slot in state.slots]
    named = distinct(found[0] for found in candidates if found is not None and len(found) == 1)
    if named or [] in candidates:
        return named
    return _with_the_shapes(state, models)


def _with_the_shapes(state: OptimizerState, models: List[Model]) -> List[Variable]:
    """Returns the variables of the only model that has the shapes of one list of slots.

    They are in the order of the slots if the shapes show it.
    """
    first = state.slots[0].name if state.slots else ""
    shapes = [slot.tensor.shape for slot in state.slots if slot.name == first]
    counts = collections.Counter(shapes)
    fitting = [
        model for model in models if collections.Counter(map(shape_of, trained_by(model))) == counts
    ]
    if len(fitting) != 1:
        return []
    variables = trained_by(fitting[0])
    if len(counts) == len(shapes):
        variables.sort(key=lambda variable: shapes.index(shape_of(variable)))
    return variables


def named_like(stored: Stored, slot: str, matches: Sequence[Match]) -> Optional[List[Variable]]:
    """Returns the variables with whose name a slot's name ends: `Adam/m/dense/kernel`.

    None if no name in the file shows it; [] if only the file has a variable of this name.
    """
    words = slot.split("/")
    for start in range(1, len(words)):
        nodes = stored.named("/".join(words[start:]))
        if nodes:
            return distinct(
                match.variables[node]
                for match in matches
                for node in nodes
                if node in match.variables
            )
    return None
