"""Which variables each optimizer of the program trains, as far as a file shows it.

Keras 3, and the new-style optimizers of Keras 2, list slots in the order of the variables that the
optimizer was built for. If it is built for other variables, or in another order, the next
checkpoint has the slots in places where TensorFlow's own `restore` does not look for them.
"""

import collections
import itertools
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set

from tf_lossscale._checkpoint.layouts import Layout
from tf_lossscale._restore.matching import Match
from tf_lossscale._restore.optimizer_state import OptimizerState
from tf_lossscale._restore.optimizers import ProgramOptimizer
from tf_lossscale._restore.program import distinct, is_variable, name_of, shape_of, trained_by
from tf_lossscale._restore.stored import Stored
from tf_lossscale._types import Model, Optimizer, Variable

_LISTS_SLOTS = (Layout.NEW, Layout.KERAS_3)
"""The layouts that show the order of the variables."""
_MOST_PARTS = 6
"""The models of one optimizer of which all orders are tried."""


class Trained(NamedTuple):
    """The variables that an optimizer trains, or why they are not known."""

    variables: List[Variable]
    problem: Optional[str] = None


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
        if len(states) == 1 and all(map(is_variable, self._models)):
            self._models = [self._models]  # variables of one program, without a model
        self._claims = {
            state.node: _with_slots(stored, state, self._models, matches) for state in states
        }

    def trained_by(self, program: ProgramOptimizer, state: OptimizerState) -> Trained:
        """Returns the variables for which to build an optimizer; those of one that is built.

        They are those for which the file has slots, in the order of the model. A variable without
        slots is one of them if no other optimizer can train it: Keras 2 creates slots at the first
        step with a gradient for the variable, Keras 3 for all variables at once.
        """
        if program.trained or not self._all:
            return Trained(program.trained or [])
        if program.makes_slots_one_by_one:  # whatever the others are, each belongs to a variable
            return Trained(self._all)
        if program.has_index:
            known = [variable for variable in self._all if program.has_variable(variable)]
            return Trained(known or self._all)
        if self._claims[state.node]:
            return self._of_slots(program, state)
        return self._without_slots(program.outer, state)

    def _of_slots(self, program: ProgramOptimizer, state: OptimizerState) -> Trained:
        """Returns the variables of the models for which an optimizer has slots.

        They are in the order of the file if it shows one. Otherwise the order of the models must
        not matter.
        """
        claimed = [id(variable) for variable in self._claims[state.node]]
        parts = []
        for model in self._models:
            variables = trained_by(model)
            if {id(variable) for variable in variables}.isdisjoint(claimed):
                continue
            part = self._part(variables, state)
            if part.problem is not None:
                return part
            parts.append(part.variables)
        variables = distinct(itertools.chain.from_iterable(parts))
        if state.layout in _LISTS_SLOTS:
            numbers = {variable: number for number, variable in enumerate(claimed)}
            variables.sort(key=lambda variable: numbers.get(id(variable), len(numbers)))
        elif _can_be_exchanged(parts):
            return Trained([], self._unknown_order(state))
        return Trained(variables)

    def _part(self, variables: List[Variable], state: OptimizerState) -> Trained:
        """Returns those variables of a model that an optimizer with slots for some of them trains.

        All optimizers must have slots, and only this one for the model, if some have none.
        """
        claimed = {id(variable) for variable in self._claims[state.node]}
        of_others = self._claimed_by_others(state)
        part = [own for own in variables if id(own) in claimed or id(own) not in of_others]
        left = [own for own in part if id(own) not in claimed]
        is_shared = any(id(own) in of_others for own in variables)
        if left and (is_shared or not all(self._claims.values())):
            return Trained([], self._unknown(state, name_of(left[0])))
        return Trained(part)

    def _without_slots(self, optimizer: Optimizer, state: OptimizerState) -> Trained:
        """Returns the variables of the one model that an optimizer without slots can train."""
        models = [model for model in self._models if not is_variable(model)] or self._models
        if len(self._claims) == 1:
            return Trained(trained_by(models))
        compiled = [model for model in models if getattr(model, "optimizer", None) is optimizer]
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
            "models with equal shapes. Call optimizer.build(variables) with the variables in the "
            "order of apply_gradients() before restore()"
        )


def _with_slots(
    stored: Stored, state: OptimizerState, models: List[Model], matches: Sequence[Match]
) -> List[Variable]:
    """Returns the variables for which an optimizer has slots in the file, in the order there."""
    nodes = state.trained or [slot.variable for slot in state.slots if slot.variable is not None]
    known = {node: own for match in matches for node, own in match.variables.items()}
    if nodes:
        return distinct(known[node] for node in nodes if node in known)
    candidates = (named_like(stored, slot.tensor.name, matches) for slot in state.slots)
    named = distinct(found[0] for found in candidates if len(found) == 1)
    return named or _with_the_shapes(state, models)


def _with_the_shapes(state: OptimizerState, models: List[Model]) -> List[Variable]:
    """Returns the variables of the only model that has the shapes of one list of slots."""
    first = state.slots[0].name if state.slots else ""
    shapes = collections.Counter(slot.tensor.shape for slot in state.slots if slot.name == first)
    fitting = [
        model for model in models if collections.Counter(map(shape_of, trained_by(model))) == shapes
    ]
    return trained_by(fitting) if len(fitting) == 1 else []


def named_like(stored: Stored, slot: str, matches: Sequence[Match]) -> List[Variable]:
    """Returns the variables with whose name a slot's name ends: `Adam/m/dense/kernel`."""
    found: Dict[int, List[Any]] = collections.defaultdict(list)
    for match in matches:
        for node, variable in match.variables.items():
            name = getattr(stored.nodes[node].tensor, "name", "")
            if name and slot.endswith("/" + name):
                found[len(name)].append(variable)
    return found[max(found)] if found else []


def _can_be_exchanged(parts: List[List[Variable]]) -> bool:
    """Returns whether lists of variables may have the same shapes in another order."""
    shapes = [tuple(map(shape_of, part)) for part in parts]
    written = sum(shapes, ())
    orders = itertools.islice(itertools.permutations(shapes), 1, None)  # all but the given one
    return len(shapes) > _MOST_PARTS or any(sum(order, ()) == written for order in orders)
