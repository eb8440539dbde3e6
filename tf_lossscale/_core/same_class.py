"""Lets our class and TensorFlow's class of the same name count as one class in class tests.

A program may name our class in one file and TensorFlow's in another, or test what TensorFlow itself
made. Each test then gives the answer of the original program, whichever class is named or made:

* objects of TensorFlow's class pass tests for our class, by the metaclass `SameClass`;
* objects of our class pass tests for TensorFlow's: it is a base of our class, or an abstract class
  that our class is registered with. As a base it only answers tests: our class overrides all its
  methods.

A user's subclass of our class is an ordinary class: only its own instances pass a test for it.
"""

import abc
from typing import Any, Dict, Iterable, Optional, Tuple

from tf_lossscale._types import Class, LossScaleObject, Optimizer
from tf_lossscale._versions.base import tf1
from tf_lossscale._versions.interventions import set_class

_installed: Dict[type, Optional[type]] = {}


class SameClass(abc.ABCMeta):
    """Metaclass of our public classes: TensorFlow's class counts as a subclass of our class.

    It derives from `ABCMeta`, so that users can still combine our classes with abstract ones.
    """

    def originals(cls) -> Iterable[Optional[type]]:
        """Returns the installed classes that `cls` stands for; none for a user's subclass."""
        return (_installed.get(cls),)

    # Not by `register` or `__subclasshook__`: TensorFlow's abstract classes register our classes,
    # and the two would call each other without end. The order of resolution answers at once.

    def __instancecheck__(cls, instance: object) -> bool:
        return _is_original(cls, type(instance)) or super().__instancecheck__(instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return _is_original(cls, subclass) or super().__subclasscheck__(subclass)


def _is_original(cls: SameClass, other: object) -> bool:
    bases = getattr(other, "__mro__", ())
    if isinstance(other, SameClass):
        return (
            cls in bases
        )  # our class: TensorFlow's classes are among its bases for its tests only
    return any(original is not None and original in bases for original in cls.originals())


def is_our(cls: type, instance: object) -> bool:
    """Returns whether `instance` is of our class `cls`; `isinstance` accepts TensorFlow's, too."""
    return cls in type(instance).__mro__


def stands_for(cls: Class, installed: Optional[type]) -> None:
    """Lets our class `cls` and TensorFlow's class `installed`, if there is one, count as one.

    If it is neither a base of our class nor abstract, objects of our class do not pass tests for
    it.
    """
    if isinstance(installed, abc.ABCMeta):
        installed.register(cls)  # which fails where it is our class already
    _installed[cls] = installed


_KERAS_AND_CONTRIB = ("LossScaleOptimizer", "BaseLossScaleOptimizer")
_PACKAGES = frozenset({"tf_lossscale", "tensorflow", "tensorflow_core", "keras", "tf_keras"})


def loss_scale_class(optimizer: Optimizer) -> str:
    """Returns the name of the loss-scale class that `optimizer` is an instance of, or ''.

    The classes are known by name and package, because looking them up would import a Keras. A
    user's own class that merely has such a name is an optimizer like any other.
    """
    for base in type(optimizer).__mro__:
        name = base.__name__
        is_v1 = isinstance(optimizer, tf1.train.Optimizer)
        if is_v1 and name == "MixedPrecisionLossScaleOptimizer":
            return name
        if name.startswith(_KERAS_AND_CONTRIB) and base.__module__.split(".")[0] in _PACKAGES:
            return "LossScaleOptimizer"
    return ""


_classes: Dict[Tuple[type, type, bool], type] = {}


def change_class(loss_scale: LossScaleObject, mixin: type, overrides: bool) -> None:
    """Makes one `LossScale`, of the shim or of TensorFlow, also an instance of `mixin`.

    `overrides` is whether the methods of `mixin` override the methods of the loss scale.
    """
    cls: Any = type(loss_scale)
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
        _classes[key] = type(cls)(cls.__name__, bases, body)
    set_class(loss_scale, _classes[key])


def behaves_as(loss_scale: LossScaleObject) -> Class:
    """Returns the class of a loss scale, as it was before `change_class`."""
    return vars(type(loss_scale)).get("_behaves_as", type(loss_scale))
