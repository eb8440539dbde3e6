"""What the other files of a run tell about one file: the meanings of the names that it imports.

A run finds this out before it rewrites any file; see `run/`. A module of the run has a path of its
own, such as `./pkg/compat.py`, which no import can spell, and its names are below it:
`./pkg/compat.py.wrap`. So they are never mistaken for names of a library.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["ALONE", "NOBODY", "Flow", "Kept", "Neighbors", "is_in_run"]

_EMPTY: Mapping[str, str] = {}


def is_in_run(path: str) -> bool:
    """Whether a path is that of a module of the run, or of a name that such a module defines."""
    return path.startswith("./")


class Flow(NamedTuple):
    """A value that crosses from one file of the run to another.

    Attributes:
      kind: `value` of a name; what calling a name `returns`; `parameter` of a function, as other
        files call it; or an optimizer `constructed` in a file.
      path: the path in the run of the name, the function, or the file.
      parameter: the name of the parameter.
      positions: for a parameter, the names of the positional parameters that calls give.
      has_default: whether calls may leave the parameter out.
      is_called: whether the file of the function calls it.
    """

    kind: str
    path: str
    parameter: str = ""
    positions: tuple[str, ...] = ()
    has_default: bool = False
    is_called: bool = False


class Kept(NamedTuple):
    """Why a name of a file must keep its meaning.

    Attributes:
      file: a file that reads the name, or may read it.
      is_certain: whether it does so by a path that is resolved; then a finding in it is left.
    """

    file: str
    is_certain: bool


class Neighbors(NamedTuple):
    """What is known about the names that one file imports from other files of the run.

    Attributes:
      names: what a name means, by the path with which the file imports it, or by the path of its
        module in the run. Names that cannot be resolved to one meaning are missing.
      written: how the file writes the path of each module of the run that it imports.
      used: the names of this file that others import.
      values: the path in the run of a name that another file binds to a computed value, by the path
        with which this file imports it; such a value can be an optimizer.
      starred: what the names mean that the star import of this file binds, by name.
      kept: the names of this file from TensorFlow that must keep their meaning, because other files
        still read them after their own rewrite, or may read them.
      path: the path of this file in the run; empty if callers of its functions are not known.
      flows: for values that come from other files, their kinds (see `rules/keras/`).
      blocked_by: codes of rules that must not apply to this file, each with the file that is the
        reason: one that tests or constructs the same optimizers, and keeps the old class.
      is_closed: whether nothing outside this source can call its functions (a notebook).
      needs_shim: whether a file of the run needs methods that Keras 3's own class lacks.
      needs_contrib: whether another file of the same program needs what no class of TensorFlow 2
        has, of a class of `tf.contrib.mixed_precision`.
      has_optimizers: whether a file of the run makes Keras loss-scale optimizers.
      changed_elsewhere: the attributes of objects that files which import this one, directly or
        through others, may assign to; `compile` stands for calls of a method of that name.
      is_alone: whether the run is this one file, so that others may read its names.
    """

    names: Mapping[str, str] = _EMPTY
    written: Mapping[str, str] = _EMPTY
    used: frozenset[str] = frozenset()
    values: Mapping[str, str] = _EMPTY
    starred: Mapping[str, str] = _EMPTY
    kept: Mapping[str, Kept] = {}
    path: str = ""
    flows: Mapping[Flow, frozenset[str]] = {}
    blocked_by: Mapping[str, str] = _EMPTY
    is_closed: bool = False
    needs_shim: bool = False
    needs_contrib: bool = False
    has_optimizers: bool = False
    changed_elsewhere: frozenset[str] = frozenset()
    is_alone: bool = False

    def means(self, symbol: str) -> bool:
        """Whether a name that this file imports from others means a symbol of that name."""
        return any(path.rpartition(".")[2] == symbol for path in self.names.values())

    def meaning(self, path: str) -> str:
        """What `path` means; the path itself if nothing is known about it."""
        found = self.names.get(path)
        if found is not None:
            return found
        module, _, name = path.rpartition(".")
        written = self.written.get(module)
        if written is None:
            return path
        outside = f"{written}.{name}"  # such as a name that is set at run time
        return self.names.get(outside, outside)


NOBODY = Neighbors()
"""Nothing is known about other files."""
ALONE = Neighbors(is_alone=True)
"""The run is one file, or standard input."""
