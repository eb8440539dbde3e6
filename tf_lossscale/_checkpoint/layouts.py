"""The optimizers of Keras whose children a checkpoint with objects can have."""

import enum
from typing import Sequence


class Layout(enum.Enum):
    """The optimizers of which the children in a checkpoint are."""

    KERAS_3 = "Keras 3"
    # Up to TensorFlow 2.2, the inner optimizer is a child of the loss-scale optimizer.
    INNER_IS_CHILD = "Keras 2 of TensorFlow 1.14 to 2.2"
    # `OptimizerV2`, wrapped or not. Slots belong to the variables of the program.
    OPTIMIZER_V2 = "Keras 2, legacy optimizer"
    # The newer optimizers of Keras 2, TensorFlow 2.11 and later. Slots are in lists.
    NEW = "Keras 2, new-style optimizer"

    @property
    def is_of_optimizer_v2(self) -> bool:
        """Whether the inner optimizer is an `OptimizerV2`."""
        return self in (Layout.OPTIMIZER_V2, Layout.INNER_IS_CHILD)


def layout_of(children: Sequence[str]) -> Layout:
    """Returns the layout of the node of an optimizer, from the names of its children."""
    names = set(children)
    if names & {"inner_optimizer", "_trainable_variables"}:
        return Layout.KERAS_3
    if "iter" in names:
        return Layout.OPTIMIZER_V2
    if "base_optimizer" in names:
        return Layout.INNER_IS_CHILD
    if "_iterations" in names and names & {"_variables", "_index_dict"}:
        return Layout.NEW
    return Layout.KERAS_3
