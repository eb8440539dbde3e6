"""The constructor of the final class, and the other methods that all kinds of optimizer share."""

from typing import Any, Dict, Optional

from tf_lossscale._keras.arguments import check_inner, final_loss_scale, mark_wrapped
from tf_lossscale._keras.config import from_config
from tf_lossscale._versions.base import tf
from tf_lossscale._versions.keras import KerasFamily, default_family

__all__ = ["Constructor"]


class Constructor:
    """Base class of the wrappers.

    Attributes:
      role: "final" or "experimental": the class whose constructor arguments it takes.
    """

    role = "final"
    _family: KerasFamily
    _state: Any

    @property
    def _loss_scale(self) -> Any:
        """The loss scale, under the name that programs read it by."""
        return self._state

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
        """Wraps `inner`, after changing the class of `self` to the one for its family."""
        self._become(family)
        self._set_up(inner, loss_scale)
        mark_wrapped(inner)

    @classmethod
    def _class_for(cls, family: KerasFamily) -> Any:
        """Returns the class of an instance of `cls` that wraps an optimizer of `family`."""
        raise NotImplementedError("each implementation defines this")

    @classmethod
    def _is_of_one_kind(cls) -> bool:
        """Returns whether the class is already bound to one kind of inner optimizer."""
        derived = any("_derived_from" in vars(each) for each in cls.__mro__)
        return derived or cls._family != default_family()

    def _become(self, family: KerasFamily) -> None:
        # Not in `__new__`: the `__init__` of a subclass may create the inner optimizer.
        cls = type(self)._class_for(family)
        if cls is not type(self):
            object.__setattr__(self, "__class__", cls)

    def _set_up(self, inner: Any, loss_scale: Any) -> None:
        raise NotImplementedError("each wrapper defines this")

    @classmethod
    def from_config(
        cls, config: Dict[str, Any], custom_objects: Optional[Dict[str, Any]] = None
    ) -> Any:
        """Makes an optimizer from the result of `get_config`, of any version.

        Args:
          config: the configuration; it is not changed.
          custom_objects: maps names to classes, for inner optimizers that Keras does not know.

        Raises:
          ValueError: the configuration holds a loss scale that only older classes accept.
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
    if optimizer.initial_scale is None:
        return type(optimizer._state.loss_scale).__name__
    return f"dynamic, from {optimizer.initial_scale:g}"
