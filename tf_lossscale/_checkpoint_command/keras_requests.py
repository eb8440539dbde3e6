"""Answers the requests of `isolated` about the files of Keras, in its child process.

Nothing here needs TensorFlow.
"""

from tf_lossscale._checkpoint import keras_files
from tf_lossscale._checkpoint.finding import Contents, StoredOptimizer
from tf_lossscale._checkpoint.locate import HDF5, CheckpointError, Place
from tf_lossscale._checkpoint_command import stored_optimizers
from tf_lossscale._restore import hdf5_files
from tf_lossscale._restore.stored import RestoreError

OTHER_ERRORS = keras_files.OTHER_ERRORS


def read(place: Place) -> Contents:
    """Returns the loss scales in a file, and its optimizers."""
    contents = keras_files.read(place)
    named = keras_files.named_optimizer(place.path) if place.format == HDF5 else None
    if named is None:
        return contents
    try:
        stored = hdf5_files.read_any(place.path)
    except RestoreError as error:
        raise CheckpointError(str(error)) from error
    is_wrapped = bool(contents.states)
    described = stored_optimizers.described(stored)
    optimizers = (_as_named(found, named, place, is_wrapped) for found in described)
    return contents._replace(optimizers=tuple(optimizers))


def _as_named(
    optimizer: StoredOptimizer, named: keras_files.NamedOptimizer, place: Place, is_wrapped: bool
) -> StoredOptimizer:
    """Adds what the configuration says, which checkpoints do not have."""
    is_of_keras_3 = named.version.startswith("3")
    result = optimizer._replace(
        written_by="an optimizer of Keras 3" if is_of_keras_3 else "an optimizer of tf.keras",
        classes=named.classes or optimizer.classes,
    )
    if is_of_keras_3:
        # Keras 3 builds the optimizer of such a file for no variables. Our class waits for them.
        call = f"keras.models.load_model({place.path!r})"
        if is_wrapped:
            return result._replace(keras3=f"{call} restores it where tf_lossscale is imported")
        return result._replace(keras3=f"nothing of it: {call} restores the weights of the model")
    if optimizer.iterations is None:
        return result._replace(keras3="nothing: it was saved before its first step")
    return result._replace(keras3=f"{optimizer.keras3}; the loss scale is not in the file")
