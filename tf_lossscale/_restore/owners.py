"""Which variables of the program the slots of an optimizer in a file belong to.

`OptimizerV2` and Keras 3 save the variable of each slot. The new-style optimizers of Keras 2 save
lists, and the name of a slot ends with the name of its variable, which variables of two models, or
of two parts of a model, can share. Then the number of a slot in its list shows the variable, if the
order of the variables is known, and no name contradicts it.
"""

from typing import Iterable, List, Optional, Sequence

from tf_lossscale._restore.matching import Match
from tf_lossscale._restore.optimizer_state import OptimizerState, StoredSlot
from tf_lossscale._restore.program import distinct, shape_of
from tf_lossscale._restore.stored import Stored
from tf_lossscale._types import Variable

Candidates = Sequence[Optional[List[Variable]]]
"""The variables that each slot can belong to.

None if no name in the file shows them; [] if only the file has the variable.
"""


def candidates_of(stored: Stored, state: OptimizerState, matches: Sequence[Match]) -> Candidates:
    """Returns the variables to which each slot of an optimizer can belong."""
    return [_candidates(stored, slot, matches) for slot in state.slots]


def _candidates(
    stored: Stored, slot: StoredSlot, matches: Sequence[Match]
) -> Optional[List[Variable]]:
    if slot.variable is not None:
        return _matched([slot.variable], matches)[:1]
    named = _named_like(stored, slot.tensor.name, matches)
    return named and _of_shape(slot, named)


def _named_like(stored: Stored, slot: str, matches: Sequence[Match]) -> Optional[List[Variable]]:
    """Returns the variables with whose name a slot's name ends: `Adam/m/dense/kernel`."""
    words = slot.split("/")
    for start in range(1, len(words)):
        nodes = stored.named("/".join(words[start:]))
        if nodes:
            return distinct(_matched(nodes, matches))
    return None


def _matched(nodes: Iterable[int], matches: Sequence[Match]) -> List[Variable]:
    """Returns the variables of the program that were found for nodes of the file."""
    nodes = list(nodes)
    return [match.variables[node] for match in matches for node in nodes if node in match.variables]


def _of_shape(slot: StoredSlot, variables: List[Variable]) -> List[Variable]:
    """Returns the variables with the shape of a slot; all, if it has a shape of its own."""
    return [own for own in variables if shape_of(own) == slot.tensor.shape] or variables


def narrowed(candidates: Candidates, variables: Iterable[Variable]) -> Candidates:
    """Returns the candidates that are among `variables`, where a slot has several."""
    ids = set(map(id, variables))
    return [
        [own for own in fitting if id(own) in ids] or fitting
        if fitting is not None and len(fitting) > 1
        else fitting
        for fitting in candidates
    ]


def are_certain(candidates: Candidates) -> bool:
    """Returns whether no slot can belong to several variables."""
    return all(fitting is None or len(fitting) < 2 for fitting in candidates)


def certain_owners(candidates: Candidates) -> List[Variable]:
    """Returns the variables to which alone a slot can belong, in the order of the slots."""
    return distinct(fitting[0] for fitting in candidates if fitting and len(fitting) == 1)


def owners_of(
    state: OptimizerState, candidates: Candidates, trained: List[Variable], old: List[Variable]
) -> List[Optional[Variable]]:
    """Returns the variable that each slot belongs to, or None.

    Args:
      state: the optimizer in the file.
      candidates: the variables to which each of its slots can belong.
      trained: the variables for which the optimizer of the program is built.
      old: the same in the order in which the old program trained them; [] if it is not known.
    """
    is_ordered = agree(state, candidates, old)
    return [
        _owner(state, slot, fitting, trained, old if is_ordered else [])
        for slot, fitting in zip(state.slots, narrowed(candidates, trained))
    ]


def _owner(
    state: OptimizerState,
    slot: StoredSlot,
    fitting: Optional[List[Variable]],
    trained: List[Variable],
    old: List[Variable],
) -> Optional[Variable]:
    """Returns the variable that a slot belongs to: by its name, or by its number in its list."""
    if fitting is not None and len(fitting) < 2:
        return fitting[0] if fitting else None
    if slot.number is None or len(trained) != length_of_list(state, slot.name):
        return None
    if old:
        return old[slot.number]
    if fitting is not None:
        return None
    of_shape = _of_shape(slot, trained)
    return of_shape[0] if len(of_shape) == 1 else trained[slot.number]


def agree(state: OptimizerState, candidates: Candidates, trained: List[Variable]) -> bool:
    """Returns whether each list has a slot for each variable, and no name contradicts the order."""
    return all(
        slot.number is not None
        and len(trained) == length_of_list(state, slot.name)
        and (fitting is None or any(own is trained[slot.number] for own in fitting))
        for slot, fitting in zip(state.slots, candidates)
    )


def length_of_list(state: OptimizerState, name: str) -> int:
    """Returns how many slots of a name an optimizer has."""
    return sum(1 for slot in state.slots if slot.name == name)
