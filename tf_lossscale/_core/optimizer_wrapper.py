"""The base class of optimizers that wrap a `tf.compat.v1.train.Optimizer`."""

from typing import Any, List

from tf_lossscale._versions.base import tf1
from tf_lossscale._versions.checkpoints import Trackable, called_from_checkpoint

__all__ = ["OptimizerWrapper"]


class OptimizerWrapper(tf1.train.Optimizer):
    """Delegates to the inner optimizer; subclasses define the step.

    Subclasses implement `_inner`. No method needs `__init__` to have run: users' subclasses of the
    contrib optimizer may not call it, because the original never initialized its base class.
    """

    def __init__(self, inner: Any) -> None:
        # Not `super()`: TensorFlow's own class may stand between, for class tests only.
        tf1.train.Optimizer.__init__(
            self, use_locking=getattr(inner, "_use_locking", False), name=_name_of(inner)
        )
        if isinstance(inner, Trackable):
            self._track_trackable(inner, "base_optimizer")

    def _inner(self) -> Any:
        raise NotImplementedError("a subclass returns the optimizer that it wraps")

    def get_name(self) -> str:
        """Returns the name of the inner optimizer."""
        return self._inner().get_name()

    def get_slot(self, var: Any, name: str) -> Any:
        """Returns a slot of the inner optimizer.

        Args:
          var: the variable that the slot belongs to.
          name: name of the slot, one of `get_slot_names()`.

        Returns:
          A variable with the shape and, as a rule, the dtype of `var`; None if it is not made yet.
        """
        return self._inner().get_slot(var, name)

    def get_slot_names(self) -> List[str]:
        """Returns the names of the slots of the inner optimizer."""
        if called_from_checkpoint("get_slot_names", self):
            return []  # they are saved with the inner optimizer, as in the originals' files
        return self._inner().get_slot_names()

    def variables(self) -> List[Any]:
        """Returns the variables of the inner optimizer."""
        return self._inner().variables()


def _name_of(inner: Any) -> str:
    try:
        return str(inner.get_name())
    except AttributeError:  # wrappers that never called `Optimizer.__init__` have no name
        return type(inner).__name__
