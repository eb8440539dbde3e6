"""Registers our class with every Keras, now or when it is imported.

A model file contains the class name of its optimizer, and Keras looks it up in the custom objects
first. So our class must be registered before the first file is read, which may be before its first
instance is created. A program may also import a second Keras (`import tf_keras`) after our class
was loaded. We never import a Keras for this; the import hook reports each one.
"""

from typing import Any

from tf_lossscale._import_hook import Subscriber, subscribe
from tf_lossscale._versions.keras import KERAS_PACKAGES, loaded_keras_packages
from tf_lossscale._versions.keras_files import (
    register_loss_scale_optimizer,
    unregister_loss_scale_optimizer,
)

__all__ = ["register_with_every_keras"]


def register_with_every_keras(cls: Any) -> None:
    """Lets every Keras read the optimizers of model files as `cls`.

    Args:
      cls: our final class.
    """
    registration = _Registration(cls)
    registration.resume()
    subscribe(registration)


class _Registration(Subscriber):
    """Registers a class with each Keras, until `uninstall()` if `install()` came before it."""

    def __init__(self, cls: Any) -> None:
        self._cls = cls

    def is_of_interest(self, name: str) -> bool:
        return name in KERAS_PACKAGES

    def imported(self, name: str, module: Any) -> None:
        if name in loaded_keras_packages():
            register_loss_scale_optimizer(name, self._cls)

    def pause(self) -> None:
        for package in loaded_keras_packages():
            unregister_loss_scale_optimizer(package, self._cls)

    def resume(self) -> None:
        for package in loaded_keras_packages():
            register_loss_scale_optimizer(package, self._cls)
