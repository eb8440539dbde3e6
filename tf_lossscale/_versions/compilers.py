"""Where `Model.compile` of each Keras finds the class that it wraps optimizers in.

Keras has no public way to set that class; these modules have it, or the module that defines it, in
a global variable. This module does not import TensorFlow, because `install()` runs before
TensorFlow is imported.
"""

import sys
from typing import Any, Dict, NamedTuple, Optional

__all__ = ["COMPILERS", "Compiler", "StandIn", "compile_uses_policies"]


class Compiler(NamedTuple):
    """A module that defines `compile`.

    Attributes:
      attribute: the name of its global variable.
      older: its name in TensorFlow 1.15, where the module has the same name but another variable.
      keras_3: whether it belongs to Keras 3, whose own class lacks the methods of Keras 2.
    """

    attribute: str
    keras_3: bool = False
    older: Optional[str] = None

    def attribute_of(self, module: Any) -> str:
        """Returns the name of the global variable that `module` has."""
        has_older = self.older is not None and hasattr(module, self.older)
        return str(self.older) if has_older else self.attribute


COMPILERS: Dict[str, Compiler] = {
    "keras.src.trainers.trainer": Compiler("LossScaleOptimizer", keras_3=True),
    "keras.engine.training": Compiler("lso"),
    "keras.engine.training_v1": Compiler("loss_scale_optimizer"),
    "keras.src.engine.training": Compiler("lso"),
    "keras.src.engine.training_v1": Compiler("loss_scale_optimizer"),
    "tf_keras.src.engine.training": Compiler("lso"),
    "tf_keras.src.engine.training_v1": Compiler("loss_scale_optimizer"),
    "tensorflow.python.keras.engine.training": Compiler("lso", older="loss_scale_optimizer"),
    "tensorflow.python.keras.engine.training_v1": Compiler("loss_scale_optimizer"),
    "tensorflow_core.python.keras.engine.training": Compiler("loss_scale_optimizer"),
}
"""By module name, for all versions."""


class StandIn:
    """What `install()` puts into such a global variable; other attributes are those of Keras.

    Attributes:
      installed: Keras's own value: a class, or the module of the classes.
      always: whether all optimizers are wrapped in our class, and not only those of models with
        one of our experimental policies.
    """

    def __init__(self, installed: Any, always: bool) -> None:
        self.installed = installed
        self.always = always

    def __getattr__(self, name: str) -> Any:
        return getattr(self.installed, name)


def compile_uses_policies() -> bool:
    """Returns whether `compile` of a loaded Keras uses the loss scales of our policies."""
    return any(
        isinstance(getattr(module, compiler.attribute_of(module), None), StandIn)
        for name, compiler in COMPILERS.items()
        for module in (sys.modules.get(name),)
    )
