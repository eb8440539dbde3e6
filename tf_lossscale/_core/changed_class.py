"""Changes the class of a loss scale to a subclass with the same name.

This gives one object methods that the other objects of its class, TensorFlow's or a user's, do not
have.
"""

from typing import Any, Dict, Tuple

__all__ = ["behaves_as", "change_class"]

_classes: Dict[Tuple[Any, Any, bool], Any] = {}


def change_class(loss_scale: Any, mixin: Any, overrides: bool) -> None:
    """Makes `loss_scale` an instance of `mixin`, too.

    Args:
      loss_scale: a `LossScale`, ours or the installed TensorFlow's.
      mixin: a class with the methods to add.
      overrides: whether the methods of `mixin` override those of the class of the loss scale.
    """
    cls = type(loss_scale)
    key = (cls, mixin, overrides)
    if key not in _classes:
        body = {
            "__doc__": cls.__doc__,
            "__hash__": cls.__hash__,  # it would be None if `mixin` defines `__eq__`
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "_behaves_as": behaves_as(loss_scale),
        }
        bases = (mixin, cls) if overrides else (cls, mixin)
        metaclass: Any = type(cls)
        _classes[key] = metaclass(cls.__name__, bases, body)
    loss_scale.__class__ = _classes[key]


def behaves_as(loss_scale: Any) -> Any:
    """Returns the class of a loss scale, as it was before `change_class`."""
    return vars(type(loss_scale)).get("_behaves_as", type(loss_scale))
