"""Waits until a program imports `tf.contrib.mixed_precision`, in TensorFlow 1.15."""

from typing import Any, Callable

from tf_lossscale._import_hook import Subscriber, subscribe
from tf_lossscale._versions.originals import CONTRIB_MODULES, loaded_contrib_classes

__all__ = ["when_contrib_is_loaded"]


def when_contrib_is_loaded(name: str, action: Callable[[Any], None]) -> None:
    """Calls `action` with TensorFlow's class of this name, now or when the program imports it.

    Args:
      name: the name of a class.
      action: is called once.
    """
    for cls in loaded_contrib_classes(name)[:1]:
        action(cls)
        return
    subscribe(_Waiting(name, action))


class _Waiting(Subscriber):
    def __init__(self, name: str, action: Callable[[Any], None]) -> None:
        self._name = name
        self._action = action
        self._is_done = False

    def is_of_interest(self, name: str) -> bool:
        return not self._is_done and name in CONTRIB_MODULES

    def imported(self, name: str, module: Any) -> None:
        for cls in loaded_contrib_classes(self._name)[:1]:
            self._is_done = True
            self._action(cls)
