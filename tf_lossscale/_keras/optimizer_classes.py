"""Which class of Keras wrote an optimizer of a file, as far as the file shows it.

No file has the class itself. Slots have names that begin with that of the optimizer, which is its
class unless the program gave `name=`: `Adam/dense/kernel/m` of `OptimizerV2`, `Adam/m/dense/kernel`
of later optimizers. The latter lack it if `build` created the slots before the first step, as
TensorFlow's loss-scale optimizer does.
"""

from typing import Any, List, Sequence, Set

KERAS_CLASSES = (
    *("Adam", "AdamW", "Nadam", "Lamb", "Adamax", "SGD", "RMSprop", "Adagrad", "Adadelta"),
    *("Ftrl", "Lion"),
)

_ALIKE_OF_V2 = (("Adam", "AdamW", "Adamax"),)
_ALIKE_OF_NEW = (("Adam", "AdamW"), ("SGD", "Lion"))
"""Classes that save the same names, of `OptimizerV2` and of later optimizers of Keras 2."""


def keras_class(optimizer: Any) -> str:
    """Returns the name of Keras's own class that an optimizer is, or is derived from; or ""."""
    names = (base.__name__ for base in type(optimizer).__mro__)
    return next((name for name in names if name in KERAS_CLASSES), "")


def other_rules(optimizer: Any) -> List[str]:
    """Returns what an optimizer of Keras 3 computes in another way than `OptimizerV2`."""
    if keras_class(optimizer) != "RMSprop" or getattr(optimizer, "momentum", None):
        return []
    return ["legacy RMSprop of Keras 2 adds epsilon to the root of rms, and Keras 3 adds it to rms"]


def classes_alike(name: str, is_new: bool) -> Sequence[str]:
    """Returns the classes, of which one has this name, that a file shows only by their names."""
    groups = _ALIKE_OF_NEW if is_new else _ALIKE_OF_V2
    return next((classes for classes in groups if name in classes), ())


def named_classes(nodes: Sequence[Any], holders: Sequence[Any]) -> Set[str]:
    """Returns the classes that the names of slots begin with, in lower case.

    Args:
      nodes: the objects of a checkpoint.
      holders: those of an optimizer that have its slots, or lists of them, as children.
    """
    starts: List[str] = []
    for holder in holders:
        starts += [_start_of_slot(nodes, slot) for slot in holder.slot_variables]
        elements = [child for child in holder.children if child.local_name.isdigit()]
        starts += [_name(nodes[child.node_id]).partition("/")[0] for child in elements]
    words = {word for start in starts for word in start.lower().split("/")}
    known = {name.lower() for name in KERAS_CLASSES}
    return known & {word.rstrip("_0123456789") for word in words}


def _start_of_slot(nodes: Sequence[Any], slot: Any) -> str:
    """Returns what is before the name of the variable in the name of its slot.

    A layer can be called "sgd", too.
    """
    variable = _name(nodes[slot.original_variable_node_id])
    end = f"/{variable}/{slot.slot_name}"
    name = _name(nodes[slot.slot_variable_node_id])
    return name[: -len(end)] if name.endswith(end) else ""


def _name(node: Any) -> str:
    return str(node.attributes[0].full_name) if node.attributes else ""
