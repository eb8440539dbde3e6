"""One file, with what rules can learn about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

import libcst as cst

from .classes import Classes
from .guards import Guards
from .keras_2_methods import Keras2Methods
from .resolved_program import ResolvedProgram

__all__ = ["Program"]


class Program(ResolvedProgram):
    """A file with its names resolved, and the analyses of it, which are made once for all rules.

    Attributes:
      classes: what classes and objects are.
      guards: the branches that only some versions of TensorFlow take.
      keras_2_methods: uses of methods of Keras 2 on optimizers that the file does not make.
    """

    def __init__(self, modules: Sequence[Optional[cst.Module]], texts: Sequence[str] = ()) -> None:
        super().__init__(modules, texts)
        self.classes = Classes(self)
        self.guards = Guards(self)
        self.keras_2_methods = Keras2Methods(self, self.classes, self.guards)
