"""Seeds TensorFlow for `tf-lossscale run --seed`; its `sitecustomize` seeds Python and NumPy."""

import os
from typing import Any

from tf_lossscale import _import_hook

__all__ = ["REQUEST", "start_if_asked"]

REQUEST = "TF_LOSSSCALE_SEED"


def start_if_asked() -> None:
    """Seeds TensorFlow when it is imported, if the environment asks for it."""
    if REQUEST in os.environ:
        _import_hook.subscribe(_Seeds(int(os.environ[REQUEST])))


class _Seeds(_import_hook.Subscriber):
    def __init__(self, seed: int) -> None:
        self._seed = seed

    def is_of_interest(self, name: str) -> bool:
        return name == "tensorflow"

    def imported(self, name: str, module: Any) -> None:
        from tf_lossscale._versions.watching import seed_tensorflow

        seed_tensorflow(self._seed)
