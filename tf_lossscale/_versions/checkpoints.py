"""The classes and the graph of object checkpoints, which are private in every version."""

import importlib
import sys
from typing import Any

from tf_lossscale._versions.base import first_module, has
from tf_lossscale._versions.releases import Since

_trackable: Any = first_module(
    "tensorflow.python.trackable.base", "tensorflow.python.training.tracking.base"
)


# The base class of all objects that `tf.train.Checkpoint` saves. The public `tf.Module` would track
# every attribute under its own name, so that files would not have the keys of the originals.
Trackable: Any = _trackable.Trackable


# The (name, object) pair that `Trackable._checkpoint_dependencies` lists.
TrackableReference: Any = _trackable.TrackableReference


# The protocol buffer in which an object checkpoint stores its objects, their names for each other,
# and the keys of their tensors.
TrackableObjectGraph: Any = importlib.import_module(
    "tensorflow.core.protobuf.trackable_object_graph_pb2"
).TrackableObjectGraph


LEGACY_KEEPS_INNER_APART: bool = not has(Since.LEGACY_SAVES_ONE_OBJECT)

_CHECKPOINT_CODE = ("tracking.graph_view", "checkpoint.graph_view", "checkpoint.util")


def called_from_checkpoint(method: str, owner: Any) -> bool:
    """Returns whether `owner.method()` was called by the code that builds an object checkpoint.

    That code queries *every* optimizer for its slots and rejects a slot that two optimizers return.
    So a wrapper that forwards the slots of its inner optimizer must return none to this code: the
    inner optimizer is saved, too, and in the files of the originals the slots belong to it. Only
    the caller distinguishes this from a call by the user. Overrides of the method in subclasses of
    the wrapper are looked through.
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
