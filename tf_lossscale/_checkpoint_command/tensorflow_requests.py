"""Answers the requests of `isolated` about TensorFlow checkpoints, in its child process."""

import os
from typing import Any, Iterator, List, Optional

from tf_lossscale._checkpoint import plans
from tf_lossscale._checkpoint.finding import Contents, State, StoredOptimizer
from tf_lossscale._checkpoint.locate import CheckpointError, Place
from tf_lossscale._checkpoint.plans import Plan
from tf_lossscale._checkpoint.tensorflow_files import Checkpoint, write
from tf_lossscale._checkpoint_command import keras3_copies, saver_optimizers, stored_optimizers
from tf_lossscale._restore import object_files
from tf_lossscale._restore.stored import RestoreError
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
    optimizers = tuple(_optimizers(checkpoint))
    return Contents(place.path, f"{place.format}, keys by {keys}", states, optimizers=optimizers)


def _optimizers(checkpoint: Checkpoint) -> Iterator[StoredOptimizer]:
    if not checkpoint.has_objects:
        yield from saver_optimizers.described(checkpoint)
        return
    try:
        stored = object_files.stored_of(checkpoint)
    except RestoreError as error:
        raise CheckpointError(str(error)) from error
    yield from stored_optimizers.described(stored)


def convert(place: Place, written: Optional[str], **options: Any) -> Plan:
    """Writes a copy of a checkpoint from which another class restores the loss scale.

    `written` is the prefix of the copy, in a directory that does not exist; None to write nothing.
    For the other options see `plans.plan`. Returns the plan of the copy, which has no tensors if
    the checkpoint has no loss-scale state and no option is about names.
    """
    checkpoint = Checkpoint(place.path)
    states = list(checkpoint.states())
    # A program with a fixed loss scale has no state, but names that depend on its control flow.
    if not states and not (options["control_flow"] or options["renames"]):
        return Plan([])
    plan = _planned(checkpoint, states, **options)
    if written is not None:
        try:
            os.makedirs(os.path.dirname(written))
        except OSError as error:
            raise CheckpointError(str(error)) from error
        write(checkpoint, plan, written)
    return plan


def _planned(checkpoint: Checkpoint, states: List[State], to: str, **options: Any) -> Plan:
    """Plans the copy; that of an object checkpoint of Keras 2 for Keras 3 has other objects."""
    prefix = checkpoint.prefix
    graph = checkpoint.object_graph() if checkpoint.has_objects else None
    from_keras_2 = [state for state in states if state.layout.family == "keras"]
    if graph is None or to != "keras3" or not from_keras_2:
        return plans.plan(prefix, states, checkpoint.tensors, graph, to=to, **options)
    plans.check_known(states)
    plans.check_no_names(**options)
    try:
        return keras3_copies.plan(object_files.stored_of(checkpoint), checkpoint.tensors, graph)
    except RestoreError as error:
        raise CheckpointError(str(error)) from error
    except keras3_copies.CannotCopy as error:
        message = plans.refusal_for_program(prefix, from_keras_2[0], to, str(error))
        raise CheckpointError(message) from error
