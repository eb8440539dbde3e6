"""Where `Model.compile` of each Keras finds the class that it wraps optimizers in.

Keras has no public way to set that class; the modules here keep it, or the module that holds it, in
a global variable. Nothing of TensorFlow is imported here, so that `install()` can read the table
before TensorFlow is imported.
"""

import sys
from typing import Any, Dict, NamedTuple

__all__ = ["COMPILERS", "Compiler", "StandIn", "heeds_policies"]


class Compiler(NamedTuple):
    """A module with a `compile`.

    Attributes:
      attribute: its global variable.
      keras_3: whether it is that of Keras 3, where Keras 2's methods are missing otherwise.
    """

    attribute: str
    keras_3: bool = False


COMPILERS: Dict[str, Compiler] = {
    "keras.src.trainers.trainer": Compiler("LossScaleOptimizer", keras_3=True),
    "keras.engine.training": Compiler("lso"),
    "keras.engine.training_v1": Compiler("loss_scale_optimizer"),
    "keras.src.engine.training": Compiler("lso"),
    "keras.src.engine.training_v1": Compiler("loss_scale_optimizer"),
    "tf_keras.src.engine.training": Compiler("lso"),
    "tf_keras.src.engine.training_v1": Compiler("loss_scale_optimizer"),
    "tensorflow.python.keras.engine.training": Compiler("lso"),
    "tensorflow.python.keras.engine.training_v1": Compiler("loss_scale_optimizer"),
    "tensorflow_core.python.keras.engine.training": Compiler("loss_scale_optimizer"),
}
"""By the name of the module, of all versions."""


class StandIn:
    """What `install()` puts into such a global variable: everything but the wrapping is Keras's.

    Attributes:
      installed: the value that Keras has there: a class, or the module of the classes.
      always: whether all optimizers become ours, and not only those under an experimental policy of
        ours.
    """

    def __init__(self, installed: Any, always: bool) -> None:
        self.installed = installed
        self.always = always

    def __getattr__(self, name: str) -> Any:
        return getattr(self.installed, name)


def heeds_policies() -> bool:
    """Returns whether `compile` of a loaded Keras knows the loss scales of our policies."""
    return any(
        isinstance(getattr(sys.modules.get(name), compiler.attribute, None), StandIn)
        for name, compiler in COMPILERS.items()
    )
