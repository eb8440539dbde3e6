"""The state of an optimizer in a file: iterations, hyperparameters, slots and the loss scale."""

from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Union

from tf_lossscale._checkpoint.layouts import Layout, layout_of
from tf_lossscale._restore.stored import Stored, Tensor

_ITERATIONS = ("iter", "_iterations", "iterations", "iteration")
_NO_HYPERPARAMETERS = (
    *("loss_scale", "base_optimizer", "inner_optimizer", "_variables", "_index_dict"),
    *("_trainable_variables", "_trainable_variables_indices", "_update_step_xla"),
    *("step_counter", "dynamic_scale", "_current_learning_rate"),
)
_SINGLE = ("momentum_cache", "_u_product")
"""What Nadam has once: the product of its momentums, or its cache."""

SLOT_NAMES = (
    *("m", "v", "vhat", "momentum", "rms", "mg"),
    *("accumulator", "linear", "accum_grad", "accum_var"),
)
"""The names of the slots of `OptimizerV2`, which names in files of Keras 2 contain."""


class StoredSlot(NamedTuple):
    """A slot: its list or its name on Keras 2, and what shows the variable that it belongs to."""

    name: str
    tensor: Tensor
    variable: Optional[int] = None  # the node, if the file has it
    number: Optional[int] = None  # else the number among the trained variables


class OptimizerState(NamedTuple):
    """What a file has of one optimizer, whichever Keras wrote it."""

    node: int
    layout: Layout
    iterations: Optional[Union[Tensor, int]]
    hyperparameters: Dict[str, Union[Tensor, float]]
    slots: List[StoredSlot]
    singles: Dict[str, Tensor]
    scale: Optional[Tensor]
    good_steps: Optional[Tensor]
    nodes: Set[int]  # of the file, that belong to the optimizer
    trained: List[int]  # the nodes of the trained variables, in order, in files of Keras 3
    classes: Set[str]  # words in the names of its variables, such as "adam"

    @property
    def slot_names(self) -> Set[str]:
        return {slot.name for slot in self.slots}


def optimizers_in(stored: Stored) -> List[int]:
    """Returns the nodes of the optimizers in a file, without those within another one."""
    found = [
        number
        for number, node in enumerate(stored.nodes)
        if _is_optimizer(stored, number) and node.children
    ]
    inner = {
        child
        for number in found
        for name, child in stored.nodes[number].children.items()
        if name in ("inner_optimizer", "base_optimizer")
    }
    return [number for number in found if number not in inner]


def _is_optimizer(stored: Stored, number: int) -> bool:
    children = stored.nodes[number].children
    # Keras 3 has a counter called `iterations` up to 3.4.
    counts = bool({"_iterations", "iterations"} & set(children))
    if "iter" in children or (counts and {"_learning_rate", "_variables"} & set(children)):
        return True
    base = children.get("base_optimizer")
    return base is not None and "iter" in stored.nodes[base].children


def state_of(stored: Stored, number: int) -> OptimizerState:
    """Reads the state of one optimizer from the objects of a file."""
    outer = stored.nodes[number]
    layout = layout_of(list(outer.children))
    inner_number = outer.children.get("inner_optimizer", number)
    if layout is Layout.INNER_IS_CHILD:
        inner_number = outer.children["base_optimizer"]
    inner = stored.nodes[inner_number]
    below = _scale_of(stored, number)
    trained_node = inner.children.get("_trainable_variables")
    trained = [] if trained_node is None else _elements(stored, trained_node)
    slots = list(_slots(stored, number, inner_number, trained))
    slots += [] if layout is Layout.OPTIMIZER_V2 else _listed_slots(stored, inner_number, trained)
    singles = _tensors(stored, inner_number, lambda name: name in _SINGLE)
    nodes = set(stored.below(number, trained)) | {
        slot.slot for node in (outer, inner) for slot in node.slots
    }
    nodes -= {slot.variable for node in (outer, inner) for slot in node.slots}
    return OptimizerState(
        node=number,
        layout=layout,
        iterations=_iterations(stored, inner_number),
        hyperparameters=_hyperparameters(stored, inner_number),
        slots=slots,
        singles=singles,
        scale=below.get("current_loss_scale", below.get("dynamic_scale")),
        good_steps=below.get("good_steps", below.get("step_counter")),
        nodes=nodes,
        trained=trained,
        classes=_classes(slots),
    )


def _classes(slots: List[StoredSlot]) -> Set[str]:
    """Returns the words before the slots' own names, which may be the name of the optimizer.

    Its name is `AdamW` or `AdamW_1` on Keras 2, and `adam_w` on Keras 3.
    """
    words = (word for slot in slots for word in slot.tensor.name.lower().split("/")[:-1])
    return {word.rstrip("_0123456789").replace("_", "") for word in words}


def _tensors(stored: Stored, number: int, wanted: Callable[[str], bool]) -> Dict[str, Tensor]:
    children = stored.nodes[number].children.items()
    found = ((name, stored.nodes[child].tensor) for name, child in children if wanted(name))
    return {name: tensor for name, tensor in found if tensor is not None}


def _iterations(stored: Stored, number: int) -> Optional[Tensor]:
    found = _tensors(stored, number, lambda name: name in _ITERATIONS)
    return next(iter(found.values()), None)


def _hyperparameters(stored: Stored, number: int) -> Dict[str, Union[Tensor, float]]:
    others = (*_ITERATIONS, *_NO_HYPERPARAMETERS, *_SINGLE)
    found = _tensors(stored, number, lambda name: name not in others)
    return {name.lstrip("_"): tensor for name, tensor in found.items()}


def _scale_of(stored: Stored, number: int) -> Dict[str, Tensor]:
    children = stored.nodes[number].children
    names = ("current_loss_scale", "good_steps", "dynamic_scale", "step_counter")
    owner = children.get("loss_scale", number)
    return _tensors(stored, owner, lambda name: name in names)


def _slots(stored: Stored, outer: int, inner: int, trained: List[int]) -> Iterator[StoredSlot]:
    for number in dict.fromkeys((outer, inner)):
        for slot in stored.nodes[number].slots:
            tensor = stored.nodes[slot.slot].tensor
            if tensor is not None:
                yield StoredSlot(slot.name, tensor, variable=slot.variable)


def _elements(stored: Stored, number: int) -> List[int]:
    children = stored.nodes[number].children
    return [children[name] for name in sorted(filter(str.isdigit, children), key=int)]


def _listed_slots(stored: Stored, number: int, trained: List[int]) -> List[StoredSlot]:
    """Returns the slots in the lists of an optimizer of Keras 3, or a new-style one of Keras 2."""
    found = []
    for name, child in stored.nodes[number].children.items():
        if name in _NO_HYPERPARAMETERS or stored.nodes[child].tensor is not None:
            continue
        elements = stored.nodes[child].children
        for element in sorted(filter(str.isdigit, elements), key=int):
            index = int(element)
            tensor = stored.nodes[elements[element]].tensor
            if tensor is None:
                continue
            variable = trained[index] if index < len(trained) else None
            found.append(StoredSlot(name, tensor, variable, index))
    return found
