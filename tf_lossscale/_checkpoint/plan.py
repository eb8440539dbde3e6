"""The planned contents of a converted checkpoint."""

from typing import NamedTuple, Optional, Tuple, Union

__all__ = ["Plan", "Tensor"]


class Tensor(NamedTuple):
    """A tensor of the new checkpoint.

    Attributes:
      key: its key in the new checkpoint.
      dtype: its type in the new checkpoint.
      source: its key in the old checkpoint; None for a tensor that is created.
      value: the value of a tensor that is created.
    """

    key: str
    dtype: str
    source: Optional[str]
    value: Optional[Union[int, bytes]] = None


class Plan(NamedTuple):
    """A new checkpoint.

    Attributes:
      tensors: all tensors in it.
      changes: a description of each difference, before and after.
      notices: notes for the user.
    """

    tensors: Tuple[Tensor, ...]
    changes: Tuple[Tuple[str, str], ...]
    notices: Tuple[str, ...]
