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

# What `legacy` optimizers and those of Keras 3 do with embeddings, measured with tf-keras 2.21 and
# Keras 3.15.
_KEEP_ROWS = ("Adamax", "Adadelta", "Ftrl")
_KEEP_ROWS_WITH_MOMENTUM = ("SGD", "RMSprop")
_USE_SIZES = ("Adam", "AdamW", "Adamax", "Nadam", "RMSprop", "Adagrad", "Adadelta", "Ftrl")


def keras_class(optimizer: Any) -> str:
    """Returns the name of Keras's own class that an optimizer is, or is derived from; or ""."""
    names = (base.__name__ for base in type(optimizer).__mro__)
    return next((name for name in names if name in KERAS_CLASSES), "")


def other_rules(optimizer: Any, variables: Sequence[Any] = (), is_of_v1: bool = False) -> List[str]:
    """Returns what an optimizer of Keras 3 computes in another way than `OptimizerV2`.

    Args:
      optimizer: an optimizer of Keras, of either kind.
      variables: those that it trains. Embeddings are known by the name that their layer gives them.
      is_of_v1: whether the other one is of `tf.train`, whose RMSProp adds epsilon as Keras 3 does.
    """
    name = keras_class(optimizer)
    has_momentum = bool(getattr(optimizer, "momentum", None))
    found = []
    if name == "RMSprop" and not has_momentum and not is_of_v1:
        found.append(
            "legacy RMSprop of Keras 2 adds epsilon to the root of rms, and Keras 3 adds it to rms"
        )
    if any(_last_name(variable) == "embeddings" for variable in variables):
        found += _rules_of_rows(name, has_momentum)
    return found


def _rules_of_rows(name: str, has_momentum: bool) -> List[str]:
    """Returns what is different for an embedding, whose gradient has only the rows looked up."""
    found = []
    if name in _KEEP_ROWS or (name in _KEEP_ROWS_WITH_MOMENTUM and has_momentum):
        found.append(
            f"legacy {name} of Keras 2 leaves the rows of an embedding that a step does not look "
            "up, and Keras 3 updates all rows"
        )
    if name in _USE_SIZES:
        found.append(
            "where a step looks up a row of an embedding twice, Keras 2 sums the two gradients "
            "before it computes their size, and Keras 3 does not"
        )
    return found


def _last_name(variable: Any) -> str:
    path = str(getattr(variable, "path", variable.name))
    return path.rpartition("/")[2].partition(":")[0]


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
