"""Lets our class and TensorFlow's class of the same name count as one class in class tests.

A program may name our class in one file and TensorFlow's in another, or test what TensorFlow itself
made. Each test then gives the answer of the original program, whichever class is named or made:

* objects of TensorFlow's class pass tests for ours, by the metaclass `SameClass`;
* objects of our class pass tests for TensorFlow's: it is a base of ours, or an abstract class that
  ours is registered with. As a base it only answers tests: our class overrides all its methods.

A user's subclass of our class is an ordinary class: only its own instances pass a test for it.
"""

import abc
from typing import Any, Callable, Dict, Iterable, Optional

__all__ = ["SameClass", "is_our", "stands_for"]

_FINDERS: Dict[type, Callable[[], Iterable[Optional[type]]]] = {}


class SameClass(abc.ABCMeta):
    """Metaclass of our public classes: TensorFlow's class counts as a subclass of ours.

    It derives from `ABCMeta`, so that users can still combine our classes with abstract ones.
    """

    def originals(cls) -> Iterable[Optional[type]]:
        """Returns the installed classes that `cls` stands for; none for a user's subclass."""
        find = _FINDERS.get(cls)
        return () if find is None else find()

    # Not by `register` or `__subclasshook__`: TensorFlow's abstract classes register ours, and the
    # two would call each other without end. The order of resolution answers at once.

    def __instancecheck__(cls, instance: Any) -> bool:
        return _is_original(cls, type(instance)) or super().__instancecheck__(instance)

    def __subclasscheck__(cls, subclass: Any) -> bool:
        return _is_original(cls, subclass) or super().__subclasscheck__(subclass)


def _is_original(cls: SameClass, other: Any) -> bool:
    bases = getattr(other, "__mro__", ())
    if isinstance(other, SameClass):
        return cls in bases  # ours: TensorFlow's classes are among its bases for its tests only
    return any(each is not None and each in bases for each in cls.originals())


def is_our(cls: Any, instance: Any) -> bool:
    """Returns whether `instance` is of our class `cls` itself, or of a subclass of it.

    Args:
      cls: one of our public classes.
      instance: any object, also of TensorFlow's class, for which `isinstance` is true.
    """
    return cls in type(instance).__mro__


def stands_for(find: Callable[[], Iterable[Optional[type]]]) -> Callable[[Any], Any]:
    """Returns a class decorator that names the TensorFlow classes that a public class stands for.

    Args:
      find: returns the installed classes; called at each test, because TensorFlow may load a class
        after ours is made. It must not import anything.
    """

    def decorator(cls: Any) -> Any:
        _FINDERS[cls] = find
        return cls

    return decorator
