"""What object checkpoints are made of, which is private in every version."""

import sys
from typing import Any

from tf_lossscale._versions.base import TF_VERSION, first_module

__all__ = [
    "LEGACY_KEEPS_INNER_APART",
    "Trackable",
    "TrackableReference",
    "called_from_checkpoint",
]

_trackable: Any = first_module(
    "tensorflow.python.trackable.base", "tensorflow.python.training.tracking.base"
)


# The base class of everything that `tf.train.Checkpoint` saves. The public `tf.Module` would track
# every attribute under the attribute's own name, and so change the keys of the originals' files.
Trackable: Any = _trackable.Trackable


# The (name, object) pair that `Trackable._checkpoint_dependencies` lists.
TrackableReference: Any = _trackable.TrackableReference


# TensorFlow 1.14 to 2.2 saved the inner optimizer as a child of the wrapper. Where a Keras has no
# later class, that is the layout which its own class can read.
LEGACY_KEEPS_INNER_APART: bool = TF_VERSION < (2, 3)


_CHECKPOINT_CODE = ("tracking.graph_view", "checkpoint.graph_view", "checkpoint.util")


def called_from_checkpoint(method: str, owner: Any) -> bool:
    """Returns whether `owner.method()` was called by the code that lays out an object checkpoint.

    That code asks *every* optimizer for its slots and refuses a slot that two optimizers name, so a
    wrapper that names the slots of its inner optimizer must not name them there: the inner one is
    saved as well, and the files of the originals have the slots under it. Nothing but the caller
    tells that question from a user's.

    Args:
      method: name of the method of `owner` that calls this function.
      owner: the wrapper; overrides of `method` in its subclasses are looked through.
    """
    frame = sys._getframe(1)
    while (
        frame.f_back is not None
        and frame.f_code.co_name == method
        and frame.f_locals.get("self") is owner
    ):
        frame = frame.f_back
    module = frame.f_globals.get("__name__", "")
    return module.startswith("tensorflow") and module.endswith(_CHECKPOINT_CODE)
