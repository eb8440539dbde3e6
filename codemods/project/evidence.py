"""What a place in a project says about its Keras version."""

from __future__ import annotations

import enum
from typing import NamedTuple

__all__ = ["Evidence", "Rank"]


class Rank(enum.IntEnum):
    """The kinds of evidence; a lower rank takes precedence."""

    LEGACY_KERAS = 1
    """`TF_USE_LEGACY_KERAS`, or an import of `tf_keras`."""
    PIN = 2
    """A version of TensorFlow or Keras that the project requires."""


class Evidence(NamedTuple):
    """A place that decides for one Keras version.

    Attributes:
      rank: the kind of evidence.
      keras: the Keras version: 2 or 3.
      path: the path of the file, as reports show it.
      line: the line, counted from 1.
      words: what the file contains there, such as `tensorflow==2.10`.
    """

    rank: Rank
    keras: int
    path: str
    line: int
    words: str
