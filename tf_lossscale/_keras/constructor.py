"""The constructor of the final class, and what else does not depend on the kind of optimizer."""

from typing import Any, Dict, Optional

from tf_lossscale._keras.arguments import check_inner, final_loss_scale, mark_wrapped
from tf_lossscale._keras.config import from_config
from tf_lossscale._versions.base import tf
from tf_lossscale._versions.keras import KerasFamily, default_family

__all__ = ["Constructor"]


class Constructor:
    """Base of the wrappers of all kinds.

    Attributes:
      role: whose constructor the class has: "final" or "experimental".
    """

    role = "final"
    _family: KerasFamily

    def __init__(
        self,
        inner_optimizer: Any,
        dynamic: bool = True,
        initial_scale: Optional[float] = None,
        dynamic_growth_steps: Optional[int] = None,
    ) -> None:
        family = check_inner(inner_optimizer)
        scale = final_loss_scale(dynamic, initial_scale, dynamic_growth_steps)
        self._wrap(inner_optimizer, family, scale)

    def _wrap(self, inner: Any, family: KerasFamily, loss_scale: Any) -> None:
        """Becomes the wrapper of `inner`, and of its kind if that is not the kind of the class."""
        self._become(family)
        self._set_up(inner, loss_scale)
        mark_wrapped(inner)

    @classmethod
    def _class_for(cls, family: KerasFamily) -> Any:
        """Returns the class that a loss-scale optimizer of `family` has when `cls` is called."""
        raise NotImplementedError("the class for each kind does this")

    @classmethod
    def _is_of_one_kind(cls) -> bool:
        """Returns whether instances are over the one kind of optimizer that is known already."""
        derived = any("_derived_from" in vars(each) for each in cls.__mro__)
        return derived or cls._family != default_family()

    def _become(self, family: KerasFamily) -> None:
        # Only now is the inner optimizer known: `__init__` of a subclass may make it.
        cls = type(self)._class_for(family)
        if cls is not type(self):
            object.__setattr__(self, "__class__", cls)

    def _set_up(self, inner: Any, loss_scale: Any) -> None:
        raise NotImplementedError("the wrapper of each kind does this")

    @classmethod
    def from_config(
        cls, config: Dict[str, Any], custom_objects: Optional[Dict[str, Any]] = None
    ) -> Any:
        """Makes an optimizer from what `get_config` returned, of any version.

        Args:
          config: the configuration; it is not changed.
          custom_objects: name to class, for inner optimizers that Keras does not know.

        Raises:
          ValueError: the configuration names a loss scale that only older classes can have.
        """
        return from_config(cls, config, custom_objects)

    def __repr__(self) -> str:
        inner = self.__dict__.get("inner_optimizer", self.__dict__.get("_optimizer"))
        if inner is None:  # within the constructor
            return object.__repr__(self)
        return (
            f"<tf_lossscale {type(self).__name__} loss_scale={_shown_scale(self)} "
            f"inner_optimizer={inner!r}>"
        )


def _shown_scale(optimizer: Any) -> str:
    if not optimizer.dynamic:
        return f"{optimizer.initial_scale:g} (fixed)"
    if tf.executing_eagerly():
        return f"{float(optimizer.loss_scale):g} (dynamic)"
    return f"dynamic, from {optimizer.initial_scale:g}"
