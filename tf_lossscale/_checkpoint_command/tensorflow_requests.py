"""Answers the requests of `isolated` about TensorFlow checkpoints, in its child process."""

import os
from typing import Any, Optional

from tf_lossscale._checkpoint import plans
from tf_lossscale._checkpoint.finding import Contents
from tf_lossscale._checkpoint.locate import CheckpointError, Place
from tf_lossscale._checkpoint.plans import Plan
from tf_lossscale._checkpoint.tensorflow_files import Checkpoint, write
from tf_lossscale._checkpoint_command import stored_optimizers
from tf_lossscale._versions.base import tf

# These do not show that the file is damaged.
OTHER_ERRORS = (
    tf.errors.NotFoundError,
    tf.errors.PermissionDeniedError,
    tf.errors.ResourceExhaustedError,
    tf.errors.UnauthenticatedError,
    tf.errors.UnavailableError,
)


def read(place: Place) -> Contents:
    checkpoint = Checkpoint(place.path)
    states = tuple(checkpoint.states())
    keys = "objects (tf.train.Checkpoint)" if checkpoint.has_objects else "names (tf.train.Saver)"
    optimizers = tuple(stored_optimizers.described(place.path)) if checkpoint.has_objects else ()
    return Contents(place.path, f"{place.format}, keys by {keys}", states, optimizers=optimizers)


def convert(place: Place, written: Optional[str], **options: Any) -> Plan:
    """Writes a copy of a checkpoint from which another class restores the loss scale.

    `written` is the prefix of the copy, in a directory that does not exist; None to write nothing.
    For the other options see `plans.plan`. Returns the plan of the copy, which has no tensors if
    the checkpoint has no loss-scale state.
    """
    checkpoint = Checkpoint(place.path)
    states = list(checkpoint.states())
    if not states:
        return Plan([])
    graph = checkpoint.object_graph() if checkpoint.has_objects else None
    plan = plans.plan(place.path, states, checkpoint.tensors, graph, **options)
    if written is not None:
        try:
            os.makedirs(os.path.dirname(written))
        except OSError as error:
            raise CheckpointError(str(error)) from error
        write(checkpoint, plan, written)
    return plan
