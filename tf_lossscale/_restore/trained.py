"""Which variables each optimizer of the program trains, as far as a file shows it.

Keras 3, and the new-style optimizers of Keras 2, list slots in the order of the variables that the
optimizer was built for. If it is built for other variables, or in another order than when the
program starts again, the next checkpoint has the slots in places where TensorFlow's own `restore`
does not look for them: it gives a variable the slots of another one, or leaves them at 0 if the
shapes differ, and raises nothing. So an optimizer is built in the order that the program must have:
that of the one model that it trains, or that of the file if the program has the same Keras.
"""

import collections
import itertools
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from tf_lossscale._checkpoint.layouts import Layout
from tf_lossscale._restore.keras_2_order import is_graph, order_of_keras_2
from tf_lossscale._restore.matching import Match
from tf_lossscale._restore.optimizer_state import OptimizerState
from tf_lossscale._restore.optimizers import ProgramOptimizer
from tf_lossscale._restore.owners import (
    Candidates,
    agree,
    are_certain,
    candidates_of,
    certain_owners,
    length_of_list,
    narrowed,
)
from tf_lossscale._restore.program import (
    distinct,
    is_of_keras,
    is_variable,
    name_of,
    shape_of,
    trained_by,
)
from tf_lossscale._restore.stored import Stored
from tf_lossscale._types import Model, Optimizer, Variable
from tf_lossscale._versions.keras import KerasKind, keras_package_of

_LISTS_SLOTS = (Layout.NEW, Layout.KERAS_3)
"""The layouts that show the order of the variables."""


class Trained(NamedTuple):
    """The variables that an optimizer trains, or why they are not known.

    Attributes:
      variables: those for which it is built, in this order.
      problem: why they are not known.
      notes: what the order relies on.
      old: the same in the order in which the old program trained them, if that is known.
      candidates: the variables to which each slot of the optimizer can belong.
    """

    variables: List[Variable]
    problem: Optional[str] = None
    notes: Sequence[str] = ()
    old: Sequence[Variable] = ()
    candidates: Candidates = ()


class Trainers:
    """The optimizers of a file, and the variables of the program for which each one has slots.

    Args:
      stored: the file.
      models: the models of the program.
      matches: the variables of each model, by their nodes in the file.
      states: the optimizers of the file.
      found: the optimizers of the program, each with its state in the file.
    """

    def __init__(
        self,
        stored: Stored,
        models: Sequence[Model],
        matches: Sequence[Match],
        states: Sequence[OptimizerState],
        found: Sequence[Tuple[Optimizer, OptimizerState]],
    ) -> None:
        self._stored = stored
        self._all = trained_by(list(models))
        self._models = [model for model in models if trained_by(model)]
        self._compiled = {state.node: self._compiled_with(optimizer) for optimizer, state in found}
        self._candidates = {state.node: candidates_of(stored, state, matches) for state in states}
        claims = {state.node: self._claim(state) for state in states}
        self._unclear = {node for node, claim in claims.items() if claim is None}
        self._claims = {node: claim or [] for node, claim in claims.items()}

    def _claim(self, state: OptimizerState) -> Optional[List[Variable]]:
        compiled = self._compiled.get(state.node, [])
        return _with_slots(state, self._candidates[state.node], self._models, compiled)

    def trained_by(self, program: ProgramOptimizer, state: OptimizerState) -> Trained:
        """Returns the variables for which to build an optimizer; those of one that is built.

        They are those for which the file has slots, and those of its models for which none can have
        any: Keras 2 creates slots at the first step with a gradient for the variable, Keras 3 for
        all variables at once.
        """
        trained = self._trained_by(program, state)
        return trained._replace(candidates=self._candidates[state.node])

    def _trained_by(self, program: ProgramOptimizer, state: OptimizerState) -> Trained:
        if program.trained or not self._all:
            return self._of_built(program.trained or [], state)
        if program.makes_slots_one_by_one:  # whatever the others are, each belongs to a variable
            return Trained(self._all)
        if program.has_index:
            known = program.in_order_of_index(self._all)
            return Trained(known or self._all, old=known)
        if state.node in self._unclear:
            return Trained([], self._unclear_names(state))
        if self._claims[state.node]:
            return self._of_slots(program, state)
        return self._without_slots(state)

    def _of_built(self, trained: List[Variable], state: OptimizerState) -> Trained:
        """Returns the variables for which an optimizer is built by now.

        If nothing else shows the order of the old program, it is the order of `build()`.
        """
        old = self._old_order(trained, state)
        notes = self._notes_of_numbers(state, old or trained, is_shown=bool(old))
        return Trained(trained, notes=notes, old=old or trained)

    def _old_order(self, trained: List[Variable], state: OptimizerState) -> List[Variable]:
        """Returns variables in the order of their slots, if names and their model show it."""
        wanted = set(map(id, trained))
        candidates = self._candidates[state.node]
        if not any(candidates):
            return []
        if set(map(id, self._claims[state.node])) == wanted:
            return self._claims[state.node]
        models = [model for model in self._models if set(map(id, trained_by(model))) == wanted]
        orders = (_only_order(state, candidates, [model]) for model in models)
        return next(filter(None, orders), [])

    def _of_slots(self, program: ProgramOptimizer, state: OptimizerState) -> Trained:
        """Returns the variables of the models for which an optimizer has slots."""
        claimed = {id(variable) for variable in self._claims[state.node]}
        compiled = self._compiled[state.node]
        parts: List[Tuple[Model, List[Variable]]] = []
        for model in compiled or self._models:
            variables = trained_by(model)
            if {id(variable) for variable in variables}.isdisjoint(claimed):
                continue
            part = self._part(variables, state, is_whole=bool(compiled))
            if part.problem is not None:
                return part
            parts.append((model, part.variables))
        if state.layout in _LISTS_SLOTS:
            return self._of_lists(program, state, parts)
        if len({tuple(map(id, variables)) for _, variables in parts}) > 1:
            return Trained([], self._unknown_order(state))
        return Trained(parts[0][1], notes=self._notes_of_order(state, parts[0][1]))

    def _of_lists(
        self,
        program: ProgramOptimizer,
        state: OptimizerState,
        parts: List[Tuple[Model, List[Variable]]],
    ) -> Trained:
        """Returns the same where the file lists the slots, and so shows the old order.

        The program has the old order if it has the Keras of the file. Otherwise the order is that
        of its model, since each Keras lists layers in lists and dictionaries in its own order. The
        variables of a `tf.Module` have the order that the old program gave them.
        """
        places = {id(own): number for number, own in enumerate(self._claims[state.node])}

        def place(variable: Variable) -> int:
            return places.get(id(variable), len(places))

        old = distinct(itertools.chain.from_iterable(variables for _, variables in parts))
        old.sort(key=place)
        if (state.layout is Layout.KERAS_3) == (program.kind is KerasKind.KERAS_3):
            return Trained(old, old=old)
        own_orders = [
            variables if is_of_keras(model) else sorted(variables, key=place)
            for model, variables in parts
        ]
        new = _in_turns(old, own_orders)
        is_same = list(map(id, new)) == list(map(id, old))
        notes = self._notes_of_numbers(state, old, is_shown=True)
        notes += [] if is_same else self._notes_of_order(state, new)
        return Trained(new, notes=notes, old=old)

    def _notes_of_order(self, state: OptimizerState, variables: List[Variable]) -> List[str]:
        """Returns what the report says of the order of a model that has steps of its own."""
        compiled = self._compiled[state.node]
        if len(variables) < 2 or all(map(_has_steps_of_keras, compiled or [None])):
            return []
        return [
            f"{self._stored.path_of(state.node)} was built for the variables in the order of the "
            "model; if apply_gradients() gets another order, call optimizer.build(variables) with "
            "that one before restore(): TensorFlow's restore of the next checkpoint relies on it"
        ]

    def _notes_of_numbers(
        self, state: OptimizerState, old: List[Variable], is_shown: bool
    ) -> List[str]:
        """Returns what the report says of slots that only their numbers have placed."""
        names = narrowed(self._candidates[state.node], old)
        is_of_keras_3 = any(hasattr(variable, "path") for variable in old)
        if are_certain(names) or not is_of_keras_3:
            return []
        if is_shown and all(map(is_graph, self._models)):
            return []
        order = "in which Keras 2 lists them" if is_shown else "of optimizer.build()"
        return [
            f"several variables have the names of slots of {self._stored.path_of(state.node)}, "
            f"which were restored in the order {order}; check that the old program trained its "
            "variables in this order"
        ]

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

    def _without_slots(self, state: OptimizerState) -> Trained:
        """Returns the variables of the one model that an optimizer without slots can train."""
        models = [model for model in self._models if not is_variable(model)] or self._models
        compiled = self._compiled[state.node]
        if compiled or len(self._claims) == 1:
            variables = trained_by(compiled or models)
            return Trained(variables, notes=self._notes_of_order(state, variables))
        of_others = self._claimed_by_others(state)
        left = [
            model
            for model in models
            if all(id(variable) not in of_others for variable in trained_by(model))
        ]
        without_slots = [claimed for claimed in self._claims.values() if not claimed]
        if len(left) == len(without_slots) == 1:
            variables = trained_by(left)
            return Trained(variables, notes=self._notes_of_order(state, variables))
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

    def _unclear_names(self, state: OptimizerState) -> str:
        return (
            f"several variables have the names of slots of {self._stored.path_of(state.node)}. "
            "Call optimizer.build(variables) before restore() with those that it trains, in the "
            "order in which the old program trained them, as in "
            "optimizer.build(model.trainable_variables)"
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


def _in_turns(old: List[Variable], orders: List[List[Variable]]) -> List[Variable]:
    """Returns variables in the orders of their models, which take turns as in the old order.

    That is the order of one model if it has all variables.
    """
    for order in orders:
        if len(order) == len(old):
            return order
    first: Dict[int, int] = {}
    for number, order in enumerate(orders):
        for variable in order:
            first.setdefault(id(variable), number)
    queues = [
        iter([variable for variable in order if first[id(variable)] == number])
        for number, order in enumerate(orders)
    ]
    return [next(queues[first[id(variable)]]) for variable in old]


def _with_slots(
    state: OptimizerState, candidates: Candidates, models: List[Model], compiled: List[Model]
) -> Optional[List[Variable]]:
    """Returns the variables for which an optimizer has slots in the file, in the order there.

    None if several variables have the name of a slot, and nothing shows which is meant.
    """
    if not any(fitting is not None for fitting in candidates):
        return _with_the_shapes(state, models)
    candidates = narrowed(candidates, trained_by(compiled or models))
    known = {id(variable) for variable in certain_owners(candidates)}
    own = [model for model in models if not known.isdisjoint(map(id, trained_by(model)))]
    candidates = narrowed(candidates, trained_by(own))
    if are_certain(candidates):
        return certain_owners(candidates)
    found = {}
    for variables in _possible(candidates, own, compiled or models):
        order = _only_order(state, candidates, variables)
        if order is not None:
            found[frozenset(map(id, order))] = order
    return next(iter(found.values())) if len(found) == 1 else None


def _possible(
    candidates: Candidates, own: List[Model], models: List[Model]
) -> Iterator[List[Model]]:
    """Yields the models that an optimizer can train: one of them, or all that it must train."""
    yield from ([model] for model in own or models)
    numbers = {id(owner): number for number, owner in enumerate(certain_owners(candidates))}

    def first(model: Model) -> int:
        return min(numbers.get(id(own), len(numbers)) for own in trained_by(model))

    if len(own) > 1:
        yield sorted(own, key=first)


def _only_order(
    state: OptimizerState, candidates: Candidates, models: List[Model]
) -> Optional[List[Variable]]:
    """Returns the variables of models in the order of the slots, if these are all of them."""
    trained = distinct(itertools.chain.from_iterable(map(order_of_keras_2, models)))
    left = narrowed(candidates, trained)
    if are_certain(left):
        owners = certain_owners(left)
        is_whole = len(owners) == len(trained) == length_of_list(state, state.slots[0].name)
        return owners if is_whole else None
    is_order = all(map(is_of_keras, models)) and agree(state, candidates, trained)
    return trained if is_order else None


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
